// SPDX-License-Identifier: Apache-2.0
// Cases of matrix products whose rows are normalized.
#include "ops/matrix_multiply/cases.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops::matrix_multiply {

void normCases(CaseList& list)
{
    using enum MatrixOperation;
    using activation::Kind;
    auto add = [&](std::string const& name, MatrixOperation opA, MatrixOperation opB, FusedActivation f, double epsilon,
                   std::vector<CaseInput> in, std::vector<std::vector<double>> expected = {}) {
        Attrs a(opA, opB, f);
        a.epilogue.epsilon = epsilon;
        list.add("norm_" + name, a, std::move(in), std::move(expected));
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
        std::string const type = wordOf(t) + "_";
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
    // Rows of a are copied first, to whole 16 bytes: three kernels, of which the norm's is the last.
    product("half_padded", DataType::kHalf, {131, 36}, 256, kNone);
    product("half_padded_odd", DataType::kHalf, {5, 7}, 264, kTranspose);
    product("half_batch", DataType::kHalf, {3, 67, 136}, 768, kTranspose);
    product("half_gelu", DataType::kHalf, {260, 72}, 1024, kTranspose, FusedActivation(FusedKind::kGeluErf));
    product("half_many_rows", DataType::kHalf, {9001, 8}, 512, kNone); // several tiles for a block
    product("half_many_wide_rows", DataType::kHalf, {4500, 24}, 1024, kTranspose);
}

} // namespace tw::ops::matrix_multiply
