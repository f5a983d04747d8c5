// SPDX-License-Identifier: Apache-2.0
#include "ops/expanded_depthwise/jit_bands.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/round.h"
#include "families/convolution/tactics.h"
#include "ops/convolution/op.h"
#include "ops/expanded_depthwise/op.h"
#include "tactic/registry.h"

namespace tw::ops::expanded_depthwise {

namespace {

using convolution::Geometry;
using kernels::jit::Isa;

constexpr CpuTactic kExpand[] = {{"expand_avx2", 1, Isa::kAvx2, kDirectConvolution, DirectInput::kNhwc},
                                 {"expand_avx512", 1, Isa::kAvx512, kDirectConvolution, DirectInput::kNhwc}};
constexpr CpuTactic kDepthwise[] = {{"depthwise_avx2", 1, Isa::kAvx2, kDepthwiseConvolution},
                                    {"depthwise_avx512", 1, Isa::kAvx512, kDepthwiseConvolution}};

// The two convolutions as problems of their own. Rows above and below the image are zeros in the buffer, so that the
// second has padding only left and right.
struct Halves
{
    std::unique_ptr<ir::Node> expandNode, depthwiseNode;
    Problem expand, depthwise;
};

TensorSpec specOf(Extents const& dims, Extents const& maxDims)
{
    TensorSpec s;
    s.dims = dims;
    s.maxDims = maxDims;
    s.present = true;
    s.format = Format::kChannelsLast;
    return s;
}

Extents expandedDims(Extents const& x, Extents const& y)
{
    return {y[0], y[1], x[2], x[3]};
}

Geometry geometryOf(Attrs const& a, Extents const& x, Extents const& w2, Extents const& y)
{
    return ops::geometryOf(WindowKind::kConvolution, a, expandedDims(x, y), w2, y);
}

// Rows of z that one row of y reads, from the first to the last.
int64_t extentOf(Geometry const& g)
{
    return (g.window[1] - 1) * g.dilation[1] + 1;
}

std::unique_ptr<ir::Node> nodeOf(ir::Node const& of, KernelWindowAttrs const& a, FusedActivation const& f)
{
    auto n = std::make_unique<ir::Node>();
    n->op = &convolution::def();
    n->attrs = std::make_unique<convolution::Attrs>(a, f);
    n->name = of.name;
    return n;
}

Halves halvesOf(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    TensorSpec const &x = p.inputs[0], &y = p.outputs[0];
    Geometry const g = geometryOf(a, x.dims, p.inputs[3].dims, y.dims);
    KernelWindowAttrs depthwise = a;
    depthwise.paddingMode = PaddingMode::kExplicitRoundDown;
    depthwise.prePadding = {0, g.before[2]};
    depthwise.postPadding = {0, 0}; // what lies after the last column is not asked for
    Halves h;
    h.expandNode = nodeOf(*p.node, KernelWindowAttrs::plain(2), a.inner);
    h.depthwiseNode = nodeOf(*p.node, depthwise, a.outer);
    TensorSpec const z = specOf(expandedDims(x.dims, y.dims), expandedDims(x.maxDims, y.maxDims));
    TensorSpec const in = specOf(x.dims, x.maxDims), out = specOf(y.dims, y.maxDims);
    h.expand = {h.expandNode.get(), {in, p.inputs[1], p.inputs[2]}, {z}, 1, p.target};
    h.depthwise = {h.depthwiseNode.get(), {z, p.inputs[3], p.inputs[4]}, {out}, 1, p.target};
    return h;
}

// Rows [from, to) of z, counted from the first row of the image, of which those in [begin, end) are made anew.
struct Band
{
    int64_t n = 0, out = 0, outRows = 0; // of y
    int64_t from = 0, to = 0;
    int64_t kept = 0, keptAt = 0; // rows moved to the front, from this one of the band before
    int64_t begin = 0, end = 0;
    Prepared const* expand = nullptr;
    Prepared const* depthwise = nullptr;
};

struct BandsPrepared final : Prepared
{
    Geometry g;
    int64_t rowBytes = 0, bufferBytes = 0; // of z
    std::vector<std::vector<Band>> parts;
    std::map<int64_t, std::shared_ptr<Prepared const>> expand, depthwise; // by rows
};

class BandsKernel final : public Kernel
{
public:
    BandsKernel(ir::Node const& node, Halves halves, int64_t bandBytes, int threads, std::unique_ptr<Kernel> expand,
                std::unique_ptr<Kernel> depthwise)
        : node_(node), halves_(std::move(halves)), bandBytes_(bandBytes), threads_(std::max(threads, 1)),
          expand_(std::move(expand)), depthwise_(std::move(depthwise))
    {}

    bool readsConstant(size_t i) const override { return i == 0; } // filters and biases are packed

    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const override
    {
        if (out[0].count() == 0)
            return 0;
        return threads_ * bufferBytes(in, out);
    }

    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const> out) const override
    {
        auto p = std::make_shared<BandsPrepared>();
        if (out[0].count() == 0)
            return std::shared_ptr<Prepared const>(std::move(p));
        TensorRef const &x = in[0], &y = out[0];
        Geometry const& g = p->g = geometryOf(node_.attrsAs<Attrs>(), x.dims, in[3].dims, y.dims);
        p->rowBytes = rowBytesOf(x, y);
        p->bufferBytes = bufferBytes(in, out);
        int64_t const perImage = std::min<int64_t>(threads_ > 1 ? 2 * threads_ : 1, g.out[1]);
        int64_t const rows = std::max<int64_t>((p->bufferBytes / p->rowBytes - extentOf(g)) / g.stride[1] + 1, 1);
        for (int64_t n = 0; n < g.batch; ++n)
            for (int64_t part = 0; part < perImage; ++part) {
                int64_t const first = g.out[1] * part / perImage, last = g.out[1] * (part + 1) / perImage;
                TW_TRY(cut(*p, n, first, last, rows, in, out));
            }
        return std::shared_ptr<Prepared const>(std::move(p));
    }

    Result<void> run(RunArgs& args) const override
    {
        auto const& p = *static_cast<BandsPrepared const*>(args.prepared);
        args.workers->run(int64_t(p.parts.size()), [&](int64_t part, int worker) {
            auto* buffer = static_cast<std::byte*>(args.workspace) + worker * p.bufferBytes;
            for (Band const& b : p.parts[size_t(part)])
                runBand(p, b, args, buffer);
        });
        return {};
    }

private:
    static int64_t rowBytesOf(TensorRef const& x, TensorRef const& y)
    {
        return x.dims[3] * pixelStrideOf(Format::kChannelsLast, DataType::kFloat, y.dims[1]) * int64_t(sizeof(float));
    }

    // At least what one row of y takes, at most what all of them do. Grows with every dimension.
    int64_t bufferBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const
    {
        Geometry const g = geometryOf(node_.attrsAs<Attrs>(), in[0].dims, in[3].dims, out[0].dims);
        int64_t const row = rowBytesOf(in[0], out[0]), all = row * ((g.out[1] - 1) * g.stride[1] + extentOf(g));
        return std::max(row * extentOf(g), bandBytes_ > 0 ? std::min(bandBytes_, all) : all);
    }

    // Rows [first, last) of y in bands of at most `most`.
    Result<void> cut(BandsPrepared& p, int64_t n, int64_t first, int64_t last, int64_t most,
                     std::span<TensorRef const> in, std::span<TensorRef const> out) const
    {
        Geometry const& g = p.g;
        auto& bands = p.parts.emplace_back();
        int64_t const count = divideUp(last - first, most);
        for (int64_t i = 0; i < count; ++i) {
            Band b;
            b.n = n;
            b.out = first + (last - first) * i / count;
            b.outRows = first + (last - first) * (i + 1) / count - b.out;
            b.from = b.out * g.stride[1] - g.before[1];
            b.to = b.from + (b.outRows - 1) * g.stride[1] + extentOf(g);
            int64_t made = b.from;
            if (i > 0 && bands.back().to > b.from) {
                b.kept = bands.back().to - b.from;
                b.keptAt = b.from - bands.back().from;
                made = bands.back().to;
            }
            b.begin = std::clamp<int64_t>(made, 0, g.in[1]);
            b.end = std::clamp<int64_t>(b.to, b.begin, g.in[1]);
            auto& expand = p.expand[b.end - b.begin];
            if (!expand && b.end > b.begin) {
                TensorRef const x = rowsOf(in[0], 0, 0, b.end - b.begin), z = buffer(p, nullptr, b.end - b.begin);
                TensorRef const inputs[] = {x, in[1], in[2]};
                TW_ASSIGN(expand, expand_->prepare(inputs, {&z, 1}));
            }
            auto& depthwise = p.depthwise[b.outRows];
            if (!depthwise) {
                TensorRef const z = buffer(p, nullptr, b.to - b.from), y = rowsOf(out[0], 0, 0, b.outRows);
                TensorRef const inputs[] = {z, in[3], in[4]};
                TW_ASSIGN(depthwise, depthwise_->prepare(inputs, {&y, 1}));
            }
            b.expand = expand.get();
            b.depthwise = depthwise.get();
            bands.push_back(b);
        }
        return {};
    }

    static TensorRef rowsOf(TensorRef const& t, int64_t n, int64_t row, int64_t rows)
    {
        TensorRef r = t;
        if (t.data)
            r.data = t.as<float>() + (n * t.dims[2] + row) * t.dims[3] * t.pixelStride();
        r.dims[0] = 1;
        r.dims[2] = rows;
        return r;
    }

    static TensorRef buffer(BandsPrepared const& p, void* data, int64_t rows)
    {
        return {DataType::kFloat, {1, p.g.k, rows, p.g.in[2]}, data, Format::kChannelsLast};
    }

    void runBand(BandsPrepared const& p, Band const& b, RunArgs& args, std::byte* rows) const
    {
        if (b.kept > 0 && b.keptAt > 0)
            std::memmove(rows, rows + b.keptAt * p.rowBytes, size_t(b.kept * p.rowBytes));
        auto zero = [&](int64_t from, int64_t to) {
            if (to > from)
                std::memset(rows + (from - b.from) * p.rowBytes, 0, size_t((to - from) * p.rowBytes));
        };
        int64_t const made = b.from + b.kept;
        zero(made, std::min<int64_t>(b.to, 0));
        zero(std::max({made, p.g.in[1]}), b.to);
        RunArgs half;
        if (b.end > b.begin) {
            TensorRef const inputs[] = {rowsOf(args.inputs[0], b.n, b.begin, b.end - b.begin), {}, {}};
            TensorRef z = buffer(p, rows + (b.begin - b.from) * p.rowBytes, b.end - b.begin);
            half.inputs = inputs;
            half.outputs = {&z, 1};
            half.prepared = b.expand;
            (void)expand_->run(half); // neither half can fail once it is prepared
        }
        TensorRef const inputs[] = {buffer(p, rows, b.to - b.from), {}, {}};
        TensorRef y = rowsOf(args.outputs[0], b.n, b.out, b.outRows);
        half.inputs = inputs;
        half.outputs = {&y, 1};
        half.prepared = b.depthwise;
        (void)depthwise_->run(half);
    }

    ir::Node const& node_;
    Halves halves_; // nodes that the two kernels refer to
    int64_t bandBytes_;
    int threads_;
    std::unique_ptr<Kernel> expand_, depthwise_;
};

Support supports(CpuTactic const& t, Problem const& p)
{
    for (size_t i : {2, 3, 4})
        if (!p.inputs[i].constant)
            return Support::no("the weights are not constant");
    if (p.outputs[0].maxDims.volume() == 0)
        return Support::no("there is nothing to do");
    PaddingMode const mode = p.node->attrsAs<Attrs>().paddingMode;
    if (mode == PaddingMode::kSameUpper || mode == PaddingMode::kSameLower)
        return Support::no("takes explicit padding only");
    Halves const h = halvesOf(p);
    TW_SUPPORTS(kExpand[int(t.isa())].supports(h.expand));
    return kDepthwise[int(t.isa())].supports(h.depthwise);
}

std::vector<Config> configs(CpuTactic const& t, Problem const& p)
{
    int64_t const width = kernels::jit::vectorWidth(t.isa()), vectors = (p.outputs[0].dims[1] + width - 1) / width;
    int64_t const l2 = p.target.cpu->l2Bytes >> 10;
    std::vector<Config> list;
    auto add = [&](int64_t expand, int64_t block, int64_t kib) {
        if (expand <= vectors && block <= vectors)
            list.push_back({expand, block, kib});
    };
    // Small buffers leave room in L2 for what streams past. Without bands the two take as long as apart: where that is
    // faster (a quick L3 after a small L2), the clock finds it.
    for (int64_t kib : {l2 / 4, l2 / 8})
        for (int64_t expand : {2, 3})
            add(expand, 1, kib);
    add(2, 2, l2 / 4);
    for (int64_t expand : {3, 2, 1})
        add(expand, 1, 0);
    add(3, 2, 0);
    if (list.empty())
        list.push_back({1, 1, l2 / 4});
    return list;
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& p, Config const& config, PackedConstants&)
{
    if (config.size() != 3 || config[2] < 0 || config[2] > int64_t(1) << 30)
        return t.wrongConfig("{1..4, 1..2, KiB}");
    Halves h = halvesOf(p);
    TW_ASSIGN(auto expand, kExpand[int(t.isa())].load(h.expand, {config[0], 0}, {}));
    TW_ASSIGN(auto depthwise, kDepthwise[int(t.isa())].load(h.depthwise, {config[1], config[2] == 0 ? 1 : 0}, {}));
    return makeKernel<BandsKernel>(*p.node, std::move(h), config[2] << 10, p.threads, std::move(expand),
                                   std::move(depthwise));
}

} // namespace

constexpr CpuFunctions kBands{.supports = supports, .formats = allChannelsLast, .configs = configs, .load = load};

} // namespace tw::ops::expanded_depthwise
