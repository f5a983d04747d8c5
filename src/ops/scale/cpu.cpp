// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "families/elementwise/pointwise_jit.h"
#include "ops/scale/op.h"
#include "tactic/blocks.h"

namespace tw::ops::scale {

namespace {

// T is double where y is i8, so that ties are met exactly; float elsewhere. power may be null.
template <class T>
void compute(float const* x, float const* scale, float const* shift, float const* power, T* y, int64_t n)
{
    for (int64_t i = 0; i < n; ++i)
        y[i] = T(x[i]) * T(scale[i]) + T(shift[i]);
    if (power)
        for (int64_t i = 0; i < n; ++i)
            y[i] = std::pow(y[i], T(power[i]));
}

// Coefficients of one block: from `at` on with step 1, or the one at `at` for all (step 0).
float const* coefficients(TensorRef const& t, float otherwise, int64_t at, int64_t step, int64_t n, float* buffer)
{
    if (t.data)
        return loadFloats(t.type, t.data, at, step, n, buffer);
    std::fill(buffer, buffer + n, otherwise);
    return buffer;
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    auto const optional = [&](size_t i) { return i < args.inputs.size() ? args.inputs[i] : TensorRef{}; };
    TensorRef const scale = optional(1), shift = optional(2), power = optional(3);
    Geometry const g = geometryOf(node.attrsAs<Attrs>(), x.dims);
    bool const along = g.inner == 1; // a row runs over coefficients, else over elements of one coefficient
    int64_t const row = along ? g.coefficients : g.inner, rows = along ? g.outer : g.outer * g.coefficients;
    int64_t const step = along ? 1 : 0;
    float xBlock[kBlock], scaleBlock[kBlock], shiftBlock[kBlock], powerBlock[kBlock], yBlock[kBlock];
    double exact[kBlock];
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < row; i += kBlock) {
            int64_t const n = std::min(kBlock, row - i), at = r * row + i;
            int64_t const k = along ? i : r % g.coefficients;
            float const* xs = loadFloats(x.type, x.data, at, 1, n, xBlock);
            float const* a = coefficients(scale, 1, k, step, n, scaleBlock);
            float const* b = coefficients(shift, 0, k, step, n, shiftBlock);
            float const* p = power.data ? coefficients(power, 1, k, step, n, powerBlock) : nullptr;
            if (isQuantized(y.type)) {
                compute(xs, a, b, p, exact, n);
                for (int64_t e = 0; e < n; ++e)
                    y.as<int8_t>()[at + e] = saturateToInt8(exact[e]);
            } else {
                float* to = floatsAt(y.type, y.data, at, yBlock);
                compute(xs, a, b, p, to, n);
                storeFloats(y.type, y.data, at, n, to);
            }
        }
    return {};
}

constexpr PlainTactic kPlain{"scale_any_plain_cpu", 1, run};

// x * scale + shift as an emitted expression.
Result<PointwiseSpec> specOf(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    auto const given = [&](size_t i) { return i < p.inputs.size() && p.inputs[i].present; };
    if (given(3))
        return invalidArgument("does not raise to a power");
    if (!given(1) && !given(2))
        return invalidArgument("needs a scale or a shift");
    using Kind = PointwiseInput::Kind;
    Kind const kind = a.mode == Mode::kUniform   ? Kind::kScalar
                      : a.mode == Mode::kChannel ? Kind::kChannel
                                                 : Kind::kTrailing;
    PointwiseSpec spec;
    spec.inputs = {{0}};
    for (int i : {1, 2})
        if (given(size_t(i)))
            spec.inputs.push_back({i, kind, a.channelAxis});
    spec.program.inputs = int(spec.inputs.size());
    int value = 0;
    for (int i : {1, 2})
        if (given(size_t(i))) {
            int const operand = i == 2 && given(1) ? 2 : 1;
            spec.program.steps.push_back({i == 1 ? StepCode::kMul : StepCode::kAdd, value, operand});
            value = spec.program.inputs;
        }
    return spec;
}

} // namespace

extern constinit TacticList const cpuTactics = kPointwiseTactics<"scale", specOf, kPlain>;

} // namespace tw::ops::scale
