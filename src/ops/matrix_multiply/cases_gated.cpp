// SPDX-License-Identifier: Apache-2.0
// Cases of matrix products of which one half of the columns gates the other.
#include "ops/matrix_multiply/cases.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops::matrix_multiply {

void gatedCases(CaseList& list)
{
    using enum MatrixOperation;
    using activation::Kind;
    auto add = [&](std::string const& name, MatrixOperation opA, MatrixOperation opB, FusedActivation f,
                   std::vector<CaseInput> in, std::vector<std::vector<double>> expected = {}) {
        Attrs a(opA, opB, f);
        a.gated = true;
        list.add("gated_" + name, a, std::move(in), std::move(expected));
    };
    // The product is [1 -2 3 4; 2 0 -1 5].
    CaseInput const identity = f32({2, 2}, {1, 0, 0, 1}),
                    b = constant(DataType::kFloat, {2, 4}, {1, -2, 3, 4, 2, 0, -1, 5});
    add("by_hand", kNone, kNone, {}, {identity, b}, {{3, -8, -2, 0}});
    add("bias_relu_by_hand", kNone, kNone, Kind::kRelu, {identity, b, constant(DataType::kFloat, {4}, {-2, 1, 1, -3})},
        {{0, 0, 0, 2}});
    for (DataType t : {DataType::kHalf, DataType::kFloat}) {
        auto on = [&](std::string const& name, MatrixOperation opA, MatrixOperation opB, FusedActivation f,
                      std::vector<CaseInput> in) { add(wordOf(t) + "_" + name, opA, opB, f, std::move(in)); };
        auto x = [&](Extents const& e) { return input(t, e); };
        auto w = [&](Extents const& e) { return constant(t, e); };
        FusedActivation const swish(FusedKind::kSwish), gelu(FusedKind::kGeluErf);
        for (int k = FusedActivation::kNone; k < kFusedKindCount; ++k) {
            FusedActivation const f(FusedKind(k), 0.3F, 1.25F);
            on("kind" + std::to_string(k + 1), kNone, kTranspose, f, {x({9, 72}), w({64, 72}), w({64})});
        }
        // Before, at and behind whole vectors, tiles and parts of k; with and without bias.
        on("odd", kNone, kNone, swish, {x({7, 19}), w({19, 2}), w({2})});
        on("columns_3", kNone, kTranspose, swish, {x({5, 40}), w({6, 40})});
        on("columns_17", kNone, kNone, gelu, {x({29, 24}), w({24, 34}), w({34})});
        on("columns_48", kNone, kNone, swish, {x({33, 64}), w({64, 96})});
        on("columns_72", kNone, kTranspose, Kind::kSigmoid, {x({130, 72}), w({144, 72}), w({144})});
        on("columns_100", kNone, kNone, swish, {x({64, 48}), w({48, 200}), w({200})});
        on("columns_136", kNone, kNone, gelu, {x({260, 72}), w({72, 272}), w({272})});
        on("columns_320", kNone, kNone, swish, {x({520, 64}), w({64, 640})});
        on("few_rows", kNone, kNone, swish, {x({1, 200}), w({200, 256})});
        on("few_rows_5", kNone, kTranspose, gelu, {x({5, 520}), w({272, 520}), w({272})});
        on("long_few_columns", kNone, kTranspose, gelu, {x({9, 2100}), w({22, 2100}), w({22})});
        on("long", kNone, kNone, swish, {x({70, 3000}), w({3000, 80}), w({80})});
        on("batch_of_rows", kNone, kNone, swish, {x({2, 67, 72}), w({1, 72, 144}), w({144})});
        on("batch", kNone, kTranspose, Kind::kTanh, {x({3, 17, 64}), w({3, 80, 64}), w({80})});
        on("transposed", kTranspose, kNone, swish, {x({64, 40}), w({64, 48})});
        on("vector_a", kVector, kNone, Kind::kRelu, {x({33}), w({33, 18}), w({18})});
        on("not_constant", kNone, kNone, gelu, {x({9, 40}), x({40, 64}), x({64})});
        on("bias_not_constant", kNone, kNone, gelu, {x({9, 40}), w({40, 64}), x({64})});
        on("no_rows", kNone, kNone, swish, {x({0, 8}), w({8, 16})});
        on("no_inner", kNone, kNone, Kind::kSigmoid, {x({2, 0}), w({0, 6}), w({6})});
    }
}

} // namespace tw::ops::matrix_multiply
