// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/cuda_deconv_f16.h"

#include <algorithm>

#include "base/element.h"
#include "families/convolution/cuda_conv_f16.h"
#include "families/elementwise/cuda_epilogue.h"
#include "kernels/cuda/gemm/wgmma.h"
#include "ops/convolution/op.h"

namespace tw::ops::deconv_f16 {

namespace {

namespace gemm = cuda::gemm_f16;
using Geometry = KernelWindowGeometry;
using conv_f16::roundUp8;

constexpr size_t kMostConfigs = 4;
constexpr int64_t kLeastChannels = 16, kMostWindow = 4;

// A config's numbers.
enum ConfigField
{
    kTileP,
    kTileQ,
    kStages,
    kGroups,
    kPingPong,
    kSplit,
    kCopies,
    kConfigFields,
};

gemm::Spec baseOf(Problem const& p)
{
    gemm::Spec s;
    s.bias = true;
    s.copies = true;
    setEpilogue(s, p.node->attrsAs<convolution::Attrs>().epilogue, false);
    return s;
}

char const* specOf(Problem const& p, Config const& c, gemm::Spec& s)
{
    if (!isConfig(c, kConfigFields, 0, 256))
        return "a config has other numbers";
    s = baseOf(p);
    s.tileP = int(c[kTileP]);
    s.tileQ = int(c[kTileQ]);
    s.stages = int(c[kStages]);
    s.groups = int(c[kGroups]);
    s.pingPong = c[kPingPong] != 0;
    s.split = int(c[kSplit]);
    s.copies = c[kCopies] != 0;
    return gemm::unsupported(s);
}

// Rows of x are collections: their outputs are not neighbours of the next row's.
gemm::Shape shapeOf(Geometry const& g, int64_t pixelX, int64_t pixelY)
{
    gemm::Shape s;
    s.m = g.in[2];
    s.n = roundUp8(g.k);
    s.k = g.c;
    s.batch = g.batch * g.in[1];
    s.lda = pixelX;
    s.ldb = roundUp8(g.c);
    s.ldy = pixelY * g.stride[2];
    s.batchA = pixelX * g.in[2];
    s.batchY = pixelY * g.out[2] * g.stride[1];
    return s;
}

char const* unsupportedGeometry(gemm::Spec const& spec, Geometry const& g)
{
    for (int i = 1; i < 3; ++i)
        if (g.out[i] != g.in[i] * g.stride[i])
            return "windows lie side by side";
    return g.batch * g.in[1] * g.in[2] == 0 ? nullptr
                                            : gemm::unsupported(spec, shapeOf(g, roundUp8(g.c), roundUp8(g.k)));
}

} // namespace

Geometry geometryOf(ir::Node const& node, Extents const& x, Extents const& w, Extents const& y)
{
    return ops::geometryOf(WindowKind::kDeconvolution, node.attrsAs<KernelWindowAttrs>(), x, w, y);
}

Geometry geometryOf(Problem const& p, bool atMaximum)
{
    auto dims = [&](TensorSpec const& t) { return atMaximum ? t.maxDims : t.dims; };
    return geometryOf(*p.node, dims(p.inputs[0]), p.inputs[1].dims, dims(p.outputs[0]));
}

Support supportsTransposed(Problem const& p)
{
    if (!p.node->attrsAs<convolution::Attrs>().transposed)
        return Support::no("takes transposed convolutions only");
    if (hasInput(*p.node, Epilogue::kResidual))
        return Support::no("takes no residual");
    return Support::yes();
}

std::string packTransposed(TensorSpec const& w, int64_t filters, int64_t each)
{
    int64_t const taps = w.dims[2] * w.dims[3];
    std::string bytes(size_t(taps * filters * each * sizeOf(w.type)), '\0');
    auto fill = [&](auto* to, auto const* from) {
        for (int64_t c = 0; c < w.dims[0]; ++c)
            for (int64_t k = 0; k < w.dims[1]; ++k)
                for (int64_t t = 0; t < taps; ++t)
                    to[(t * filters + k) * each + c] = *from++;
    };
    withFloat(w.type, [&](auto element) {
        using T = decltype(element);
        fill(reinterpret_cast<T*>(bytes.data()), w.constant->as<T>());
    });
    return bytes;
}

bool areBeside(Geometry const& g, int64_t mostWindow)
{
    for (int i = 1; i < 3; ++i)
        if (g.window[i] != g.stride[i] || g.window[i] > mostWindow || g.before[i] != 0 ||
            g.out[i] != g.in[i] * g.stride[i])
            return false;
    return true;
}

Support supports(Problem const& p)
{
    if (!p.cuda || p.cuda->capability != 90)
        return Support::no("needs a GPU of compute capability 9.0");
    TW_SUPPORTS(supportsTransposed(p));
    TensorSpec const& w = p.inputs[1];
    TW_SUPPORTS(takesOnly(DataType::kHalf, p));
    bool const hasBias = p.inputs.size() > 2 && p.inputs[2].present;
    if (w.dims.rank != 4 || !w.constant || (hasBias && !p.inputs[2].constant))
        return Support::no("takes 2-D windows, constant filters and biases only");
    auto const& a = p.node->attrsAs<KernelWindowAttrs>();
    if (a.groups != 1 || w.dims[0] < kLeastChannels || w.dims[1] == 0)
        return Support::no("takes one group of at least " + std::to_string(kLeastChannels) + " channels");
    Geometry const g = geometryOf(p, true);
    if (!areBeside(g, kMostWindow))
        return Support::no("takes windows of at most " + std::to_string(kMostWindow) + " that lie side by side");
    return configs(p).empty() ? Support::no("TMA cannot read such an image") : Support::yes();
}

std::vector<Config> configs(Problem const& p)
{
    Geometry const optimum = geometryOf(p, false), maximum = geometryOf(p, true);
    std::vector<Config> list;
    if (optimum.batch * optimum.in[1] * optimum.in[2] == 0)
        return list;
    for (gemm::Spec const& s : gemm::candidates(baseOf(p), shapeOf(optimum, roundUp8(optimum.c), roundUp8(optimum.k)),
                                                p.cuda->multiprocessors, SIZE_MAX))
        if (list.size() < kMostConfigs && !s.swap && s.multicast == 1 && !unsupportedGeometry(s, maximum))
            list.push_back({s.tileP, s.tileQ, s.stages, s.groups, s.pingPong, s.split, s.copies});
    return list;
}

std::vector<Formats> formats(Problem const& p)
{
    if (p.inputs[0].dims.rank < 3 || p.inputs[0].constant)
        return {};
    Formats f = linearFormats(p);
    f.inputs[0] = f.outputs[0] = Format::kHWC8;
    return {f};
}

namespace {

class WindowKernels final : public conv_f16::SpecKernels<gemm::Spec>
{
public:
    using SpecKernels::SpecKernels;
    Result<std::vector<std::string>> pack(Problem const& problem) const override;
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override;
};

Result<std::vector<std::string>> WindowKernels::pack(Problem const& p) const
{
    TensorSpec const& w = p.inputs[1];
    int64_t const channels = w.dims[0], filters = w.dims[1];
    return std::vector<std::string>{conv_f16::packBias(p, roundUp8(filters)),
                                    packTransposed(w, filters, roundUp8(channels))};
}

Result<void> WindowKernels::run(CudaLaunch const& launch, RunArgs& args) const
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    Geometry const g = geometryOf(node_, x.dims, args.inputs[1].dims, y.dims);
    if (char const* const why = unsupportedGeometry(spec_, g))
        return unsupported(why);
    int64_t const pixelY = y.pixelStride();
    gemm::Launch l = gemm::launch(spec_, shapeOf(g, x.pixelStride(), pixelY), launch.multiprocessors());
    l.q.dims[1] = uint64_t(g.k); // those that round y up are zeros
    TW_ASSIGN(cuda::TensorMap const mapP, launch.encode(l.p, x.data));
    l.args.bias = static_cast<float const*>(launch.packed(0));
    for (int64_t r = 0; r < g.window[1]; ++r)
        for (int64_t s = 0; s < g.window[2]; ++s) {
            auto const* const filters =
                static_cast<uint16_t const*>(launch.packed(1)) + (r * g.window[2] + s) * g.k * roundUp8(g.c);
            TW_ASSIGN(cuda::TensorMap const mapQ, launch.encode(l.q, filters));
            l.args.y = y.as<uint16_t>() + (r * g.out[2] + s) * pixelY;
            if (!spec_.copies) {
                TW_TRY(launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &l.args}));
                continue;
            }
            TW_ASSIGN(cuda::TensorMap const mapY, launch.encode(l.y, l.args.y));
            TW_TRY(launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &mapY, &l.args}));
        }
    return {};
}

} // namespace

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config)
{
    gemm::Spec spec;
    if (char const* const why = specOf(p, config, spec))
        return noKernels(unsupported(why));
    return std::make_unique<WindowKernels>(p, gemm::kKernel, spec);
}

} // namespace tw::ops::deconv_f16
