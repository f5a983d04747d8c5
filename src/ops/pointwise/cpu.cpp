// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/pointwise/jit_program.h"
#include "tactic/blocks.h"

namespace tw::ops::pointwise {

namespace {

Result<PointwiseSpec> specOfProblem(Problem const& p)
{
    return specOf(p.node->attrsAs<Attrs>());
}

using kernels::jit::Isa;
constexpr auto kInt8Avx512 = kPointwise<"pointwise", specOfProblem, DataType::kInt8, Isa::kAvx512>;
constexpr auto kInt8Avx2 = kPointwise<"pointwise", specOfProblem, DataType::kInt8, Isa::kAvx2>;

constexpr TableTactic kTableAvx512{"pointwise_i8_table_avx512", Isa::kAvx512};
constexpr TableTactic kTableAvx2{"pointwise_i8_table_avx2", Isa::kAvx2};
constexpr TableTactic kTable{"pointwise_i8_table_cpu", std::nullopt};

// ---- Plain: blocks of elements, step by step; the workspace holds a block of every value.

// The element of input i for each of n elements of y from `first` on.
void gatherInput(Attrs const& a, size_t i, TensorRef const& x, Extents const& y, int64_t first, int64_t n, float* to)
{
    auto const kind = InputKind(a.inputs[i * kNumbersOfInput]);
    int const axis = int(a.inputs[i * kNumbersOfInput + 1]);
    bool const one = kind == InputKind::kScalar || x.count() == 1;
    if (one || (kind == InputKind::kBroadcast && x.dims == y)) {
        float const* from = loadFloats(x.type, x.data, one ? 0 : first, one ? 0 : 1, n, to);
        if (from != to)
            std::copy_n(from, n, to);
        return;
    }
    Extents const strides = stridesOf(x.dims, true);
    for (int64_t e = 0; e < n; ++e) {
        int64_t rest = first + e, from = 0;
        for (int d = y.rank - 1; d >= 0; --d) {
            int64_t const at = rest % y[d];
            rest /= y[d];
            if (kind == InputKind::kBroadcast)
                from += at * strides[d];
            else if (kind == InputKind::kChannel && d == axis)
                from = at;
        }
        to[e] = float(x.get(from));
    }
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const& y = args.outputs[0];
    std::vector<ExpressionStep> const steps = stepsOf(a.steps, a.parameters);
    size_t const inputs = args.inputs.size();
    auto* const values = static_cast<float*>(args.workspace);
    float* const result = values + int64_t(inputs + steps.size() - 1) * kBlock;
    std::vector<float const*> x(inputs);
    for (int64_t at = 0; at < y.count(); at += kBlock) {
        int64_t const n = std::min(kBlock, y.count() - at);
        for (size_t i = 0; i < inputs; ++i) {
            gatherInput(a, i, args.inputs[i], y.dims, at, n, values + int64_t(i) * kBlock);
            x[i] = values + int64_t(i) * kBlock;
        }
        TW_TRY(computeSteps(steps, x, result, values + int64_t(inputs) * kBlock, n, isQuantized(node)));
        if (isFullFloat(y.type))
            std::copy_n(result, n, y.as<float>() + at);
        else
            storeFloats(y.type, y.data, at, n, result);
    }
    return {};
}

int64_t workspace(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    size_t const steps = node.attrsAs<Attrs>().steps.size() / kNumbersOfStep;
    return int64_t(in.size() + steps) * kBlock * int64_t(sizeof(float));
}

constexpr PlainTactic kPlain{"pointwise_any_plain_cpu", 1, run, workspace};

} // namespace

extern constinit TacticList const cpuTactics =
    kPointwiseTactics<"pointwise", specOfProblem, kTableAvx512, kInt8Avx512, kTableAvx2, kInt8Avx2, kTable, kPlain>;

} // namespace tw::ops::pointwise
