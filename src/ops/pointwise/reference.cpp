// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/pointwise/op.h"

namespace tw::ops::pointwise {

namespace {

// Where element `at` of y reads in an input.
int64_t source(Attrs const& attrs, int i, Extents const& x, Counter const& at)
{
    if (attrs.inputs[size_t(i) * kNumbersOfInput] == int64_t(InputKind::kScalar))
        return 0;
    if (attrs.inputs[size_t(i) * kNumbersOfInput] == int64_t(InputKind::kChannel))
        return at.at[int(attrs.inputs[size_t(i) * kNumbersOfInput + 1])];
    return at.offset(stridesOf(x, true));
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    auto const& attrs = ctx.attrs<Attrs>();
    TensorRef const& y = ctx.out();
    constexpr int64_t kBlock = 1024;             // elements that go through the steps together
    bool const rounds = isQuantized(ctx.node()); // each step by itself
    std::vector<ExpressionStep> const steps = stepsOf(attrs.steps, attrs.parameters);
    auto const inputs = size_t(ctx.inputCount());
    std::vector<std::vector<double>> x(inputs, std::vector<double>(size_t(kBlock)));
    std::vector<double> values(steps.size() * size_t(kBlock));
    std::vector<double const*> from(inputs);
    Counter at(y.dims);
    for (int64_t first = 0; first < y.count(); first += kBlock) {
        int64_t const n = std::min(kBlock, y.count() - first);
        for (size_t i = 0; i < inputs; ++i)
            from[i] = x[i].data();
        for (int64_t e = 0; e < n; ++e, at.next())
            for (size_t i = 0; i < inputs; ++i)
                x[i][size_t(e)] = ctx.in(int(i)).get(source(attrs, int(i), ctx.in(int(i)).dims, at));
        double result[kBlock];
        TW_TRY(computeSteps(steps, from, result, values.data(), n, rounds));
        for (int64_t e = 0; e < n; ++e)
            y.setReal(first + e, result[e]);
    }
    return {};
}

} // namespace tw::ops::pointwise
