// SPDX-License-Identifier: Apache-2.0
#include "families/attention/cuda_fused.h"

#include <algorithm>

namespace tw::ops::attention {

namespace {

// Input that holds a mask: added (keep false), or of what to keep; -1: none.
int maskInput(ir::Node const& node, bool keep)
{
    for (size_t i = 3; i < size_t(node.attrsAs<Attrs>().masksEnd(node.inputs.size())); ++i)
        if ((node.inputs[i]->type == DataType::kBool) == keep)
            return int(i);
    return -1;
}

// Whether input `m` is a constant that lets query i of sq see the keys up to i + sk - sq and no other one: by a number
// so low that scores cannot come near it.
bool isCausal(Problem const& problem, int m, bool keep)
{
    // Scores of FP16 are below 65504^2 * 256 = 1.1e12 before the factor; those of FP32 that reach this are no scores.
    double const lowest = isNarrowFloat(problem.inputs[0].type) ? -1e30 : -1e37;
    constexpr double kMostScale = 1e10;
    auto const& a = problem.node->attrsAs<Attrs>();
    TensorSpec const& mask = problem.inputs[size_t(m)];
    Extents const& e = mask.dims;
    if (!mask.constant || e.rank != 4 || e[0] != 1 || e[1] != 1 || e[2] < 1 || e[2] > e[3] || a.scale > kMostScale ||
        problem.outputs[0].maxDims[a.rowsAxis()] != e[2] || (keep && a.fill > lowest))
        return false;
    TensorRef const t{mask.type, e, const_cast<void*>(mask.constant->data())};
    int64_t const shift = e[3] - e[2];
    for (int64_t i = 0; i < e[2]; ++i)
        for (int64_t j = 0; j < e[3]; ++j) {
            double const v = t.get(i * e[3] + j);
            bool const seen = j <= i + shift;
            if (keep ? ((v != 0) != a.keepInverted) != seen : !(seen ? v == 0 : v < lowest))
                return false;
        }
    return true;
}

// Keys of an image, in these dimensions of the problem.
int64_t columnsOf(Problem const& problem, Extents TensorSpec::*dims)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    if (a.pages)
        return (problem.inputs[size_t(a.pagesInput(problem.inputs.size()))].*dims)[1] * kPageRows;
    Extents const& k = problem.inputs[1].*dims;
    return k[a.k.rowsAxis(k.rank)];
}

cuda::AttentionStrides stridesOf(Strides const& p, int64_t heads)
{
    // One head needs no step, but a tensor map wants one.
    return {p.batch, heads == 1 ? p.row : p.head, p.row};
}

} // namespace

MaskPlan maskPlan(Problem const& problem)
{
    MaskPlan plan;
    ir::Node const& node = *problem.node;
    auto const& attrs = node.attrsAs<Attrs>();
    plan.masks.pairs = true;
    plan.masks.scoreSteps = attrs.scoreStep > 0;
    plan.masks.sumSteps = attrs.sumStep > 0; // what is hidden by -infinity has a weight then
    plan.masks.weightSteps = attrs.weightStep > 0;
    plan.masks.segments = attrs.segments;
    plan.masks.lengths = attrs.lengths;
    plan.masks.causal = attrs.causal;
    plan.masks.window = attrs.window > 0;
    plan.masks.softcap = attrs.softcap > 0;
    plan.masks.sinks = attrs.sinks;
    plan.masks.slopes = attrs.slopes;
    plan.masks.places = attrs.lengths || attrs.byPosition();
    for (bool keep : {true, false}) {
        int const m = maskInput(node, keep);
        if (m < 0)
            continue;
        if (plan.causalInput < 0 && !plan.masks.sumSteps && !attrs.ofDecoders() && isCausal(problem, m, keep)) {
            plan.causalInput = m;
            plan.masks.causal = true;
            continue;
        }
        ir::Shape const& s = node.inputs[size_t(m)]->shape;
        (keep ? plan.masks.keep : plan.masks.mask) = true;
        (keep ? plan.masks.keepRows : plan.masks.maskRows) = !s[2].is(1);
        plan.masks.pairs = plan.masks.pairs && s[3].isConst() && s[3].value() % 2 == 0;
    }
    plan.masks.pairs = plan.masks.pairs && (plan.masks.mask || plan.masks.keep);
    plan.masks.inverted = plan.masks.keep && attrs.keepInverted;
    return plan;
}

int copyUnit(Problem const& problem)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    int unit = cuda::attentionUnit(int(sizeOf(problem.inputs[0].type)), {a.size, a.valueSize});
    Operand const* const operands[] = {&a.q, &a.k, &a.v};
    for (int i = 0; i < 3; ++i) {
        ir::Shape const& x = problem.node->inputs[size_t(i)]->shape;
        if (x.size() == 4)
            continue;
        Operand const& o = *operands[i];
        while (o.offset % unit != 0 || x[2].value() % unit != 0 || (a.heads > 1 && o.headStride % unit != 0))
            unit /= 2;
    }
    return unit;
}

Support supportsFused(Problem const& problem, DataType type, bool mayBeBytes)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    return a.table || a.pages ? Support::no("takes keys of one image, one behind the other")
                              : supportsFusedTable(problem, type, mayBeBytes);
}

Support supportsFusedTable(Problem const& problem, DataType type, bool mayBeBytes)
{
    constexpr int64_t kMostBlocks = 65535, kMostRows = 1 << 30, kMostSize = 256;
    auto const& a = problem.node->attrsAs<Attrs>();
    for (int i = 0; i < 3; ++i)
        if (problem.inputs[size_t(i)].type != type && !(mayBeBytes && a.scales && i > 0))
            return Support::no(std::string("takes ") + nameOf(type) + " only");
    if (a.size > kMostSize || a.valueSize > kMostSize)
        return Support::no(fmt::format("takes heads of up to 256 elements, these have {} and {}", a.size, a.valueSize));
    if (!(float(a.scale) > 0))
        return Support::no("takes scores with a positive factor");
    if (a.ofDecoders() && (a.segments || a.sumStep > 0 || a.weightStep > 0))
        return Support::no("takes what decoders have without sequences one behind the other and without rounding");
    if (a.segments && a.masksEnd(problem.inputs.size()) > 3)
        return Support::no("takes no masks beside sequences that lie one behind the other");
    Extents const& y = problem.outputs[0].maxDims;
    if (y[a.batchAxis()] > kMostBlocks || a.heads > kMostBlocks || y[a.rowsAxis()] > kMostRows ||
        columnsOf(problem, &TensorSpec::maxDims) > kMostRows)
        return Support::no("takes at most 65535 batches and heads and 2^30 rows");
    return Support::yes();
}

FusedRun fusedRun(Attrs const& a, MaskPlan const& plan, RunArgs const& args)
{
    Geometry const g = geometryOf(a, args.inputs);
    auto at = [&](int i, int64_t offset) {
        return static_cast<std::byte const*>(args.inputs[size_t(i)].data) +
               offset * sizeOf(args.inputs[size_t(i)].type);
    };
    FusedRun r;
    cuda::AttentionArgs& x = r.args;
    x.q = at(0, g.q.offset);
    x.k = at(1, g.k.offset);
    x.v = at(2, g.v.offset);
    x.y = args.outputs[0].data;
    if (a.integers)
        x.step = args.inputs[size_t(a.scaleInput(args.inputs.size()))].as<float>();
    x.qStride = stridesOf(g.q, a.heads);
    x.kStride = stridesOf(g.k, a.keyHeads());
    x.vStride = stridesOf(g.v, a.keyHeads());
    x.yStride = {g.y.batch, g.y.head, g.y.row};
    if (plan.masks.mask) {
        x.mask = args.inputs[size_t(g.maskInput)].data;
        x.maskStride = {g.mask.batch, g.mask.head, g.mask.row};
    }
    if (plan.masks.keep) {
        x.keep = static_cast<uint8_t const*>(args.inputs[size_t(g.keepInput)].data);
        x.keepStride = {g.keep.batch, g.keep.head, g.keep.row};
    }
    x.headsPerKey = int32_t(a.headsPerKey);
    x.sq = int32_t(g.rows);
    x.sk = int32_t(g.columns);
    x.scale = float(a.scale);
    x.fill = float(a.fill);
    x.lengths = elementsOf<int32_t>(args.inputs, g.lengthsInput);
    x.sinks = elementsOf(args.inputs, g.sinksInput);
    x.slopes = elementsOf<float>(args.inputs, g.slopesInput);
    if (a.scales) {
        x.keyScales = elementsOf<float>(args.inputs, g.scalesInput);
        x.valueScales = elementsOf<float>(args.inputs, g.scalesInput + 1);
    }
    x.window = int32_t(a.window);
    x.table = elementsOf<int32_t>(args.inputs, g.tableInput);
    x.sharing = int32_t(g.sharing);
    x.pages = elementsOf<int32_t>(args.inputs, g.pagesInput);
    x.blocks = int32_t(g.blocks);
    x.softcap = float(a.softcap);
    x = cuda::forKernel(x, {a.scoreStep, a.sumStep, a.weightStep});
    r.shape = {g.batch, a.heads, g.rows, g.columns};
    if (g.beginsInput >= 0) {
        TensorRef const& begins = args.inputs[size_t(g.beginsInput)];
        x.begins = begins.as<int32_t>();
        x.beginCount = int32_t(begins.dims[0]);
        r.shape.begins = begins.dims[0];
    }
    return r;
}

FusedSizes fusedSizes(Problem const& problem)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    FusedSizes sizes{problem.outputs[0].dims[a.rowsAxis()],
                     std::max<int64_t>(columnsOf(problem, &TensorSpec::dims), 1)};
    if (int const i = a.beginsInput(problem.inputs.size()); i >= 0) // of a sequence: twice the mean covers nearly all
        sizes.rows = sizes.keys = std::clamp<int64_t>(
            2 * sizes.keys / std::max<int64_t>(problem.inputs[size_t(i)].dims[0] - 1, 1), 1, sizes.keys);
    return sizes;
}

Support isAmpere(Problem const& problem)
{
    bool const is = problem.target.cuda && problem.target.cuda->capability >= 80;
    return is ? Support::yes() : Support::no("needs compute capability 8.0");
}

cuda::attention_few_rows::Spec fewRowsSpec(Problem const& problem, Config const& c, cuda::AttentionMasks const& masks)
{
    cuda::attention_few_rows::Spec s;
    auto const& a = problem.node->attrsAs<Attrs>();
    s.headDim = int(a.size);
    s.valueDim = int(a.valueSize);
    s.warps = int(c[0]);
    s.splits = int(c[1]);
    s.headsPerKey = a.headsPerKey;
    s.table = a.table;
    s.pages = a.pages;
    s.bytes = a.scales;
    s.masks = masks;
    return s;
}

Support supportsFewRows(Problem const& problem)
{
    TW_SUPPORTS(isAmpere(problem));
    TW_SUPPORTS(supportsFusedTable(problem, DataType::kHalf, true));
    auto const& a = problem.node->attrsAs<Attrs>();
    if (a.integers)
        return Support::no("makes no integers");
    if (copyUnit(problem) != 8)
        return Support::no("takes heads that begin at multiples of 8 elements");
    if (char const* const reason = unsupported(fewRowsSpec(problem, {1, 1}, maskPlan(problem).masks)))
        return Support::no(reason);
    constexpr int64_t kMostRows = 64; // beyond, keys are read more than a few times; blocks have no other fast kernel
    if (int64_t const rows = a.headsPerKey * problem.outputs[0].dims[a.rowsAxis()]; rows > kMostRows && !a.pages)
        return Support::no(fmt::format("takes up to {} queries on a head of keys, these are {}", kMostRows, rows));
    return Support::yes();
}

// As many blocks of a cluster as give each warp a step and keep all multiprocessors busy, and half of that; more warps where each has many
// steps then.
std::vector<Config> fewRowsConfigs(Problem const& problem)
{
    FusedSizes const z = fusedSizes(problem);
    auto const& a = problem.node->attrsAs<Attrs>();
    int64_t const blocks = std::max<int64_t>(problem.outputs[0].dims[a.batchAxis()] * a.keyHeads(), 1);
    int64_t splits = problem.target.cuda->capability >= 90 ? 8 : 1;
    while (splits > 1 && (z.keys < splits * 64 || blocks * splits > 3 * problem.target.cuda->multiprocessors))
        splits /= 2;
    std::vector<Config> list{{4, splits}};
    if (splits > 1)
        list.push_back({4, splits / 2});
    if (Config const c{8, splits / 2}; splits > 1 && !unsupported(fewRowsSpec(problem, c, maskPlan(problem).masks)))
        list.push_back(c); // as many warps in fewer blocks
    if (Config const wide{8, splits};
        z.keys >= splits * 512 && !unsupported(fewRowsSpec(problem, wide, maskPlan(problem).masks)))
        list.push_back(wide);
    return list;
}

std::unique_ptr<CudaKernels> noAttention()
{
    return noKernels(invalidArgument("the plan's configuration of an attention names no kernel"));
}

} // namespace tw::ops::attention
