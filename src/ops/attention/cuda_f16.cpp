// SPDX-License-Identifier: Apache-2.0
// FP16 on matrix units: kernels/cuda/attention_*f16. q, k and v are read where they lie, in one tensor or several.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cuda/attention_wgmma_f16.h"
#include "ops/attention/op.h"
#include "ops/attention/tactics.h"

namespace tw::ops::attention {

namespace {

namespace mma = cuda::attention_f16;
namespace wgmma = cuda::attention_wgmma_f16;

constexpr int64_t kUnit = 8; // halves in the 16 bytes of a copy

// Input that holds a mask: added (keep false), or of what to keep; -1: none.
int maskInput(ir::Node const& node, bool keep)
{
    for (size_t i = 3; i < node.inputs.size(); ++i)
        if ((node.inputs[i]->type == DataType::kBool) == keep)
            return int(i);
    return -1;
}

// Whether input `m` is a constant that lets query i of sq see the keys up to i + sk - sq and no other one: by a number
// so low that scores of FP16 cannot come near it.
bool isCausal(Problem const& problem, int m, bool keep)
{
    constexpr double kLowest = -1e30; // scores are below 65504^2 * 128 = 5.5e11 before the factor
    constexpr double kMostScale = 1e10;
    auto const& a = problem.node->attrsAs<Attrs>();
    TensorSpec const& mask = problem.inputs[size_t(m)];
    Extents const& e = mask.dims;
    if (!mask.constant || e.rank != 4 || e[0] != 1 || e[1] != 1 || e[2] < 1 || e[2] > e[3] || a.scale > kMostScale ||
        problem.outputs[0].maxDims[1] != e[2] || (keep && a.fill > kLowest))
        return false;
    TensorRef const t{mask.type, e, const_cast<void*>(mask.constant->data())};
    int64_t const shift = e[3] - e[2];
    for (int64_t i = 0; i < e[2]; ++i)
        for (int64_t j = 0; j < e[3]; ++j) {
            double const v = t.get(i * e[3] + j);
            bool const seen = j <= i + shift;
            if (keep ? ((v != 0) != a.keepInverted) != seen : !(seen ? v == 0 : v < kLowest))
                return false;
        }
    return true;
}

// How the kernel sees the masks, and which inputs it then leaves unread.
struct MaskPlan
{
    cuda::AttentionMasks masks;
    int causalInput = -1;
};

MaskPlan maskPlan(Problem const& problem)
{
    MaskPlan plan;
    ir::Node const& node = *problem.node;
    plan.masks.pairs = true;
    for (bool keep : {true, false}) {
        int const m = maskInput(node, keep);
        if (m < 0)
            continue;
        if (plan.causalInput < 0 && isCausal(problem, m, keep)) {
            plan.causalInput = m;
            plan.masks.causal = true;
            continue;
        }
        ir::Shape const& s = node.inputs[size_t(m)]->shape;
        (keep ? plan.masks.keep : plan.masks.mask) = true;
        (keep ? plan.masks.keepRows : plan.masks.maskRows) = !s[2].is(1);
        plan.masks.pairs = plan.masks.pairs && s[3].isConst() && s[3].value() % 2 == 0;
    }
    plan.masks.pairs = plan.masks.pairs && plan.masks.any();
    plan.masks.inverted = plan.masks.keep && node.attrsAs<Attrs>().keepInverted;
    return plan;
}

// Rows that begin on 16 bytes.
bool isAligned(TensorSpec const& x, Operand const& o, Attrs const& a)
{
    return x.dims.rank == 4 ||
           (o.offset % kUnit == 0 && x.dims[2] % kUnit == 0 && (a.heads == 1 || o.headStride % kUnit == 0));
}

Support supportsF16(Problem const& problem)
{
    constexpr int64_t kMostBlocks = 65535, kMostRows = 1 << 30;
    auto const& a = problem.node->attrsAs<Attrs>();
    for (int i = 0; i < 3; ++i)
        if (problem.inputs[size_t(i)].type != DataType::kHalf)
            return Support::no("takes f16 only");
    if (a.size != a.valueSize || a.size % kUnit != 0 || a.size > 128)
        return Support::no("takes heads of 8 to 128 elements in steps of 8, the same for keys and values, these have " +
                           std::to_string(a.size) + " and " + std::to_string(a.valueSize));
    if (!(float(a.scale) > 0))
        return Support::no("takes scores with a positive factor");
    if (!isAligned(problem.inputs[0], a.q, a) || !isAligned(problem.inputs[1], a.k, a) ||
        !isAligned(problem.inputs[2], a.v, a))
        return Support::no("takes heads that begin at multiples of " + std::to_string(kUnit) + " elements");
    Extents const &y = problem.outputs[0].maxDims, &k = problem.inputs[1].maxDims;
    if (y[0] > kMostBlocks || a.heads > kMostBlocks || y[1] > kMostRows || k[k.rank - 2] > kMostRows)
        return Support::no("takes at most 65535 batches and heads and 2^30 rows");
    return Support::yes();
}

Support supportsMma(Problem const& problem)
{
    if (!problem.cuda || problem.cuda->capability < 80)
        return Support::no("needs compute capability 8.0");
    return supportsF16(problem);
}

Support supportsWgmma(Problem const& problem)
{
    if (!problem.cuda || problem.cuda->capability != 90)
        return Support::no("needs compute capability 9.0");
    if (int64_t const size = problem.node->attrsAs<Attrs>().size; size != 64 && size != 128)
        return Support::no("takes heads of 64 or 128 elements, these have " + std::to_string(size));
    return supportsF16(problem);
}

cuda::AttentionStrides stridesOf(Place const& p, int64_t heads)
{
    // One head needs no step, but a tensor map wants one.
    return {p.batch, heads == 1 ? p.row : p.head, p.row};
}

// Arguments of a run; nothing to do when there are no keys but to write zeros.
struct Run
{
    cuda::AttentionArgs args;
    mma::Shape shape;
};

Run runOf(Attrs const& a, MaskPlan const& plan, RunArgs const& args)
{
    Geometry const g = geometryOf(a, args.inputs);
    auto at = [&](int i, int64_t offset) { return static_cast<uint16_t const*>(args.inputs[size_t(i)].data) + offset; };
    Run r;
    cuda::AttentionArgs& x = r.args;
    x.q = at(0, g.q.offset);
    x.k = at(1, g.k.offset);
    x.v = at(2, g.v.offset);
    x.y = args.outputs[0].data;
    x.qStride = stridesOf(g.q, a.heads);
    x.kStride = stridesOf(g.k, a.heads);
    x.vStride = stridesOf(g.v, a.heads);
    x.yStride = {g.rows * a.heads * a.valueSize, a.valueSize, a.heads * a.valueSize};
    if (plan.masks.mask) {
        x.mask = args.inputs[size_t(g.maskInput)].data;
        x.maskStride = {g.mask.batch, g.mask.head, g.mask.row};
    }
    if (plan.masks.keep) {
        x.keep = args.inputs[size_t(g.keepInput)].data;
        x.keepStride = {g.keep.batch, g.keep.head, g.keep.row};
    }
    x.sq = int32_t(g.rows);
    x.sk = int32_t(g.columns);
    x.scale = float(a.scale);
    x.fill = float(a.fill);
    x = cuda::forKernel(x);
    r.shape = {g.batch, a.heads, g.rows, g.columns};
    return r;
}

CudaKernels common(MaskPlan const& plan, std::string source, int64_t sharedBytes)
{
    CudaKernels out = wholeKernels(mma::kKernel, std::move(source), sharedBytes);
    if (plan.causalInput >= 0)
        out.packedInputs = {plan.causalInput};
    return out;
}

Error damaged()
{
    return invalidArgument("the plan's configuration of an attention names no kernel");
}

// Queries and keys at the optimum, blocks of 64 rows that there are.
struct Sizes
{
    int64_t rows, keys;
};
Sizes sizesOf(Problem const& problem)
{
    Extents const& k = problem.inputs[1].dims;
    return {problem.outputs[0].dims[1], std::max<int64_t>(k[k.rank - 2], 1)};
}

// {warps, keys}
mma::Spec mmaSpec(Problem const& problem, Config const& c, cuda::AttentionMasks const& masks)
{
    mma::Spec s;
    s.headDim = int(problem.node->attrsAs<Attrs>().size);
    s.warps = int(c[0]);
    s.keys = int(c[1]);
    s.masks = masks;
    return s;
}

std::vector<Config> mmaConfigs(Problem const& problem)
{
    Sizes const z = sizesOf(problem);
    int64_t const fitting = z.rows <= 16 ? 1 : z.rows <= 32 ? 2 : 4;
    std::vector<Config> list;
    auto add = [&](int64_t warps, int64_t keys) {
        Config const c{warps, keys};
        if (!unsupported(mmaSpec(problem, c, {})) && std::find(list.begin(), list.end(), c) == list.end())
            list.push_back(c);
    };
    add(fitting, z.keys <= 32 ? 32 : 64);
    if (!supportsWgmma(problem).ok) { // else the other kernel is ahead of these
        if (z.keys > 64)
            add(fitting, 128);
        if (fitting == 4) {
            add(2, 64);
            add(8, 64);
        }
    }
    return list;
}

CudaKernels generateMma(Problem const& problem, Config const& config)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    MaskPlan const plan = maskPlan(problem);
    if (!isConfig(config, 2, 1, 256) || unsupported(mmaSpec(problem, config, plan.masks)))
        return noKernels(damaged());
    mma::Spec const spec = mmaSpec(problem, config, plan.masks);
    CudaKernels out = common(plan, source(spec), spec.sharedBytes());
    out.run = [&a, plan, spec](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Run const r = runOf(a, plan, args);
        return launch.withGeometry(0, mma::launch(spec, r.shape), {&r.args});
    };
    return out;
}

// {groups, keys, stages}
wgmma::Spec wgmmaSpec(Problem const& problem, Config const& c, cuda::AttentionMasks const& masks)
{
    wgmma::Spec s;
    s.headDim = int(problem.node->attrsAs<Attrs>().size);
    s.groups = int(c[0]);
    s.keys = int(c[1]);
    s.stages = int(c[2]);
    s.masks = masks;
    return s;
}

std::vector<Config> wgmmaConfigs(Problem const& problem)
{
    constexpr int64_t kMostKeys = 256, kLong = 512;
    Sizes const z = sizesOf(problem);
    cuda::AttentionMasks const masks = maskPlan(problem).masks;
    std::vector<Config> list;
    auto add = [&](int64_t groups, int64_t keys) {
        int64_t const steps = (z.keys + keys - 1) / keys;
        Config const c{groups, keys, std::min<int64_t>(steps, 2)};
        bool const fits = !unsupported(wgmmaSpec(problem, c, masks));
        if (fits && std::find(list.begin(), list.end(), c) == list.end())
            list.push_back(c);
        return fits;
    };
    // A group of warps for 64 rows, several blocks on a multiprocessor: the fewest steps that registers allow, which is
    // best for few blocks; one more; steps of 64 for many. More groups share what they copy: for long sequences.
    int64_t steps = 1;
    auto evenly = [&] { return (z.keys + steps * 16 - 1) / (steps * 16) * 16; };
    while (evenly() > kMostKeys || !add(1, evenly()))
        ++steps;
    ++steps;
    add(1, evenly());
    add(1, 64);
    if (z.keys % 96 == 0)
        add(1, 96);
    if (z.rows > 64)
        add(2, std::min<int64_t>((z.keys + 15) / 16 * 16, 128));
    if (z.rows >= kLong) {
        add(3, 96);
        add(1, 128);
    }
    return list;
}

CudaKernels generateWgmma(Problem const& problem, Config const& config)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    MaskPlan const plan = maskPlan(problem);
    if (!isConfig(config, 3, 1, 256) || unsupported(wgmmaSpec(problem, config, plan.masks)))
        return noKernels(damaged());
    wgmma::Spec const spec = wgmmaSpec(problem, config, plan.masks);
    CudaKernels out = common(plan, source(spec), spec.sharedBytes());
    out.run = [&a, plan, spec](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Run const r = runOf(a, plan, args);
        if (r.shape.sk == 0) { // a tensor map holds at least one row
            cuda::Driver const& driver = launch.device().driver();
            return driver.check(driver.cuMemsetD8Async(cuda::addressOf(r.args.y), 0,
                                                       size_t(args.outputs[0].sizeBytes()), launch.stream()),
                                "cuMemsetD8Async");
        }
        wgmma::Maps const maps = wgmma::maps(spec, r.shape, r.args);
        TW_ASSIGN(cuda::TensorMap const q, launch.encode(maps.q, r.args.q));
        TW_ASSIGN(cuda::TensorMap const k, launch.encode(maps.k, r.args.k));
        TW_ASSIGN(cuda::TensorMap const v, launch.encode(maps.v, r.args.v));
        return launch.withGeometry(0, wgmma::launch(spec, r.shape), {&q, &k, &v, &r.args});
    };
    return out;
}

} // namespace

constinit CudaTactic const kF16Wgmma{"attention_f16_wgmma_cuda", 1, generateWgmma, supportsWgmma, wgmmaConfigs};
constinit CudaTactic const kF16Mma{"attention_f16_mma_cuda", 1, generateMma, supportsMma, mmaConfigs};

} // namespace tw::ops::attention
