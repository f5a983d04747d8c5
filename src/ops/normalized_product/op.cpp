// SPDX-License-Identifier: Apache-2.0
#include "ops/normalized_product/op.h"

#include <algorithm>
#include <cmath>

#include "tactic/cases.h"
#include "tactic/registry.h"

namespace tw::ops::normalized_product {

namespace {

using matrix_multiply::MatrixOperation;

constexpr int64_t kColumns[] = {128, 192, 256};

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (!std::isfinite(a.epsilon) || a.epsilon < 0)
        return ctx.error("epsilon " + std::to_string(a.epsilon) + " must be finite and not negative");
    if (a.a == MatrixOperation::kVector || a.b == MatrixOperation::kVector)
        return ctx.error("rows are normalized, but an operand is a vector");
    TW_TRY(fused_matrix_multiply::def().infer(ctx));
    ir::Dim const n = ctx.outputs()[0].shape.back();
    for (int i : {int(kGamma), int(kBeta)})
        if (!ctx.has(i) || ctx.type(i) != ctx.type(0) || ctx.rank(i) != 1 ||
            (n.isConst() && ctx.shape(i)[0].isConst() && !(n == ctx.shape(i)[0])))
            return ctx.error(std::string(i == kGamma ? "gamma " : "beta ") + (ctx.has(i) ? ctx.describe(i) : "") +
                             " must be " + nameOf(ctx.type(0)) + "[" + n.str() + "]");
    return {};
}

[[gnu::cold]] void cases(CaseList& list)
{
    using enum MatrixOperation;
    using activation::Kind;
    auto add = [&](std::string const& name, MatrixOperation opA, MatrixOperation opB, FusedActivation f, double epsilon,
                   std::vector<CaseInput> in, std::vector<std::vector<double>> expected = {}) {
        matrix_multiply::Attrs m;
        m.a = opA;
        m.b = opB;
        list.add(name, Attrs(fused_matrix_multiply::Attrs(m, f), epsilon), std::move(in), std::move(expected));
    };
    // The product is [1 3 1 -1]: mean 1, variance 2, so that the divisor is 2. Then [0 0 0 0].
    add("by_hand", kNone, kNone, {}, 2,
        {f32({2, 1}, {1, 0}), constant(DataType::kFloat, {1, 4}, {0, 2, 0, -2}),
         constant(DataType::kFloat, {4}, {1, 1, 1, 1}), f32({2, 4}, {0, 0, 0, 0, -1, -1, -1, -1}),
         constant(DataType::kFloat, {4}, {1, 1, 2, 2}), constant(DataType::kFloat, {4}, {0, 1, 0, 1})},
        {{0, 2, 0, -1, 0, 1, 0, 1}});
    auto product = [&](std::string const& name, DataType t, Extents const& a, int64_t n, MatrixOperation opB,
                       FusedActivation f = {}) {
        int64_t const k = a[a.rank - 1];
        Extents b = a, y = a;
        for (int d = 0; d + 2 < a.rank; ++d)
            b[d] = 1;
        b[a.rank - 2] = opB == kNone ? k : n;
        b[a.rank - 1] = opB == kNone ? n : k;
        y[a.rank - 1] = n;
        CaseInput const row = constant(t, {n});
        add(name, kNone, opB, f, 1e-5, {input(t, a), constant(t, b), row, input(t, y), row, row});
    };
    for (DataType t : {DataType::kHalf, DataType::kFloat}) {
        std::string const type = t == DataType::kHalf ? "half_" : "single_";
        product(type + "odd", t, {7, 40}, 33, kNone);
        product(type + "one_column", t, {5, 9}, 1, kTranspose);
        product(type + "relu", t, {70, 72}, 136, kTranspose, Kind::kRelu);
        product(type + "batch_of_rows", t, {2, 17, 64}, 256, kNone);
        product(type + "no_rows", t, {0, 8}, 16, kNone);
    }
    // Tuner and network give constants; others are refused by the fast kernels.
    add("gamma_not_constant", kNone, kNone, {}, 1e-3,
        {f32({3, 5}), f32({5, 40}), f32({40}), f32({3, 40}), f32({40}), f32({40})});
    // Blocks hold rows together from 256 columns on; tiles have 64 or 128 rows.
    for (int64_t n : {256, 384, 512, 768, 1024, 2048})
        product("half_n" + std::to_string(n), DataType::kHalf, {n == 768 ? 333 : 131, 200}, n, kNone);
    product("half_batch", DataType::kHalf, {3, 67, 136}, 768, kTranspose);
    product("half_gelu", DataType::kHalf, {260, 72}, 1024, kTranspose, FusedActivation(FusedKind::kGeluErf));
    product("half_many_rows", DataType::kHalf, {9001, 8}, 512, kNone); // several tiles for a block
    product("half_many_wide_rows", DataType::kHalf, {4500, 24}, 1024, kTranspose);
}

} // namespace

// Of 2 to 8 blocks that have 128, 192 or 256 columns each.
bool takesRows(int64_t n)
{
    return std::any_of(std::begin(kColumns), std::end(kColumns),
                       [&](int64_t columns) { return n % columns == 0 && n / columns >= 2 && n / columns <= 8; });
}

ir::OpDef const& def()
{
    static constexpr ir::OpDef kDef{
        .name = "normalized_product",
        .minInputs = kInputs,
        .maxInputs = kInputs,
        .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<Attrs>()); },
        .infer = infer,
        .reference = reference,
        .cases = cases,
        .cpuTactics = cpuTactics,
        .cudaTactics = cudaTactics,
    };
    return kDef;
}

} // namespace tw::ops::normalized_product
