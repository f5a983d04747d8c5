// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "device/cuda/cudnn_graph.h"
#include "device/cuda/device.h"
#include "families/attention/cuda_fused.h"
#include "families/elementwise/cuda_pointwise.h"
#include "ops/attention/op.h"
#include "ops/attention/tactics.h"
#include "tactic/cuda_library.h"
#include "tactic/cudnn_layer.h"

namespace tw::ops::attention {

namespace {

using cuda::CudnnAttention;

constexpr int kMostEngines = 8;                 // in the library's list
constexpr int kLeastVersion = 91900;            // of the library: what the bounds below were checked with
constexpr int64_t kAlignment = 16, kStep = 256; // bytes: of tensors, of the workspace

Geometry geometryOf(Problem const& p)
{
    std::vector<TensorRef> in;
    for (TensorSpec const& t : p.inputs)
        in.push_back(TensorRef{t.type, t.present ? t.dims : Extents(), nullptr});
    return attention::geometryOf(p.node->attrsAs<Attrs>(), in);
}

CudnnAttention attentionOf(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    Geometry const g = geometryOf(p);
    MaskPlan const plan = maskPlan(p);
    CudnnAttention out;
    out.batch = g.batch;
    out.heads = a.heads;
    out.rows = g.rows;
    out.columns = g.columns;
    out.size = a.size;
    auto strides = [&](Strides const& at) {
        // One head needs no step, but strides are never 0.
        return CudnnAttention::Four{at.batch, a.heads == 1 ? at.row : at.head, at.row, 1};
    };
    out.q = strides(g.q);
    out.k = strides(g.k);
    out.v = strides(g.v);
    out.y = {g.y.batch, g.y.head, g.y.row, 1};
    out.causal = plan.masks.causal;
    out.mask = plan.masks.mask;
    if (out.mask) {
        Extents const& e = p.inputs[size_t(g.maskInput)].dims;
        out.maskDims = {e[0], e[1], e[2], e[3]};
        out.maskStrides = {e[1] * e[2] * e[3], e[2] * e[3], e[3], 1};
    }
    return out;
}

class CudnnKernel final : public Kernel
{
public:
    CudnnKernel(Problem const& p, CudnnRunner runner)
        : attrs_(p.node->attrsAs<Attrs>()), plan_(maskPlan(p)), runner_(std::move(runner)), scale_(float(attrs_.scale))
    {}
    // The device's context is current.
    void warmUp() const
    {
        void* const at = cuda::nowhere();
        runner_.warmUp(addresses(at, at, at, at, at, at));
    }
    int64_t workspaceBytes(std::span<TensorRef const>, std::span<TensorRef const>) const override
    {
        return runner_.workspaceBytes() > 0 ? runner_.workspaceBytes() + kStep : 0;
    }
    bool readsConstant(size_t i) const override { return int(i) != plan_.causalInput; }
    bool readsOnDevice(size_t i) const override { return int(i) != plan_.causalInput; }
    int64_t alignment() const override { return kAlignment; }
    Result<void> run(RunArgs& args) const override
    {
        Geometry const g = attention::geometryOf(attrs_, args.inputs);
        auto at = [&](size_t i, int64_t offset) { return args.inputs[i].as<uint16_t>() + offset; };
        uint64_t const step = kStep;
        auto* const workspace = reinterpret_cast<void*>((cuda::addressOf(args.workspace) + step - 1) / step * step);
        void const* const mask = plan_.masks.mask ? args.inputs[size_t(g.maskInput)].data : nullptr;
        return runner_.run(
            addresses(at(0, g.q.offset), at(1, g.k.offset), at(2, g.v.offset), mask, args.outputs[0].data, workspace),
            static_cast<CUstream_st*>(args.stream), args.kept);
    }

private:
    cuda::CudnnAddresses addresses(void const* q, void const* k, void const* v, void const* mask, void* y,
                                   void* workspace) const
    {
        cuda::CudnnAddresses at;
        at.add(CudnnAttention::kQ, q);
        at.add(CudnnAttention::kK, k);
        at.add(CudnnAttention::kV, v);
        at.add(CudnnAttention::kScale, &scale_);
        at.add(CudnnAttention::kY, y);
        if (plan_.masks.mask)
            at.add(CudnnAttention::kMask, mask);
        if (plan_.masks.causal)
            at.add(CudnnAttention::kLowest, &lowest_);
        at.workspace = workspace;
        return at;
    }

    Attrs const& attrs_;
    MaskPlan plan_;
    CudnnRunner runner_;
    float scale_, lowest_ = std::numeric_limits<float>::lowest();
};

CudnnLayer layerOf(Problem const& p)
{
    CudnnAttention const what = attentionOf(p);
    return {what.text(), [what](cuda::Cudnn const& c, cuda::CudnnHandle* handle) { return what.graph(c, handle); }};
}

// Whether a constant added mask hides all keys from a query: that is NaN, and zeros by the library.
bool hidesAll(TensorSpec const& mask)
{
    if (!mask.constant)
        return false;
    TensorRef const t{mask.type, mask.dims, const_cast<void*>(mask.constant->data())};
    int64_t const columns = mask.dims[3], count = t.count();
    for (int64_t i = 0, hidden = 0; i < count; ++i) {
        hidden = t.get(i) == -std::numeric_limits<double>::infinity() ? hidden + 1 : 0;
        if (i % columns == columns - 1) {
            if (hidden >= columns)
                return true;
            hidden = 0;
        }
    }
    return false;
}

// But for the library and the GPU: what its engines were seen to compute rightly, inside their tensors.
Support supportsProblem(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    TW_SUPPORTS(supportsFused(p, DataType::kHalf));
    if (a.integers)
        return Support::no("makes no integers");
    if (a.segments)
        return Support::no("takes no sequences one behind the other");
    if (a.ofDecoders())
        return Support::no("takes neither lengths nor positions nor what changes scores");
    if (a.roundsScores() || a.weightStep > 0)
        return Support::no("rounds neither scores nor weights");
    constexpr int64_t kMostSize = 128, kUnit = 8;
    if (a.size != a.valueSize || a.size % kUnit != 0 || a.size > kMostSize)
        return Support::no(fmt::format(
            "takes heads of up to 128 elements in steps of 8, the same for keys and values, these have {} and {}",
            a.size, a.valueSize));
    if (a.headsPerKey != 1)
        return Support::no("takes as many heads of keys as of queries");
    if (copyUnit(p) != kUnit)
        return Support::no("takes heads that begin at multiples of 8 elements");
    if (!isStatic(p))
        return Support::no("the library's plans are for one shape, this layer's varies");
    Geometry const g = geometryOf(p);
    if (p.outputs[0].dims.volume() == 0 || g.columns == 0)
        return Support::no("there is nothing to compute");
    MaskPlan const plan = maskPlan(p);
    if (plan.masks.keep)
        return Support::no("takes no tensors of what to keep, but for constant causal ones");
    if (plan.masks.causal && g.rows != g.columns)
        return Support::no("takes causal masks of as many queries as keys");
    if (plan.masks.mask && hidesAll(p.inputs[size_t(g.maskInput)]))
        return Support::no("takes no constant masks that hide all keys from a query");
    for (Strides const& at : {g.q, g.k, g.v})
        if (at.row < a.size || (a.heads > 1 && at.head < a.size))
            return Support::no("takes heads and rows that lie apart");
    for (TensorSpec const& t : p.inputs)
        if (t.present && t.dims.volume() > INT32_MAX)
            return Support::no("counts in 32 bits");
    return g.batch * a.heads * g.rows > INT32_MAX ? Support::no("counts in 32 bits") : Support::yes();
}

} // namespace

Support CudnnTactic::supports(Problem const& p) const
{
    TW_SUPPORTS(supportsProblem(p));
    TW_SUPPORTS(supportsLibrary(Source::kCudnn, p));
    if (p.target.cuda->capability != 90)
        return Support::no("needs compute capability 9.0, where it was checked");
    int const version = (*p.target.cuda->libraries->cudnn())->version();
    return version >= kLeastVersion ? Support::yes()
                                    : Support::no(fmt::format("needs cuDNN 9.19, this is {}", version));
}

std::vector<Config> CudnnTactic::configs(Problem const& p) const
{
    // The first is best for many queries, the last for few; those between are after one of them.
    std::vector<Config> const all = cudnnConfigs(p, layerOf(p), kMostEngines);
    return all.size() > 2 ? std::vector<Config>{all.front(), all.back()} : all;
}

Result<std::string> CudnnTactic::build(Problem const& p, Config const& config) const
{
    if (!isConfig(config, 1, 0, kMostEngines - 1))
        return invalidArgument("no such engine of cuDNN");
    return buildCudnn(p, layerOf(p), int(config[0]));
}

Result<std::unique_ptr<Kernel>> CudnnTactic::load(Problem const& p, Config const& config,
                                                  std::string const& image) const
{
    if (!isConfig(config, 1, 0, kMostEngines - 1))
        return invalidArgument("the plan's configuration of an attention by cuDNN names no engine");
    TW_ASSIGN(CudnnRunner runner, CudnnRunner::load(p, layerOf(p), int(config[0]), image));
    cuda::Current const current(*p.target.cuda->device);
    auto kernel = std::make_unique<CudnnKernel>(p, std::move(runner));
    kernel->warmUp();
    return std::unique_ptr<Kernel>(std::move(kernel));
}

} // namespace tw::ops::attention
