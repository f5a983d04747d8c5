// SPDX-License-Identifier: Apache-2.0
// Cases of what is more than a product of two matrices.
#include "cases/integer_sums.h"
#include "cases/sparse_weights.h"
#include "ops/matrix_multiply/cases.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops::matrix_multiply {

// Fully connected layers.
void connectedCases(CaseList& list)
{
    auto add = [&](std::string const& name, Attrs a, std::vector<CaseInput> in,
                   std::vector<std::vector<double>> expected = {}) {
        list.add("connected_" + name, std::move(a), std::move(in), std::move(expected));
    };
    auto connect = [&](char const* name, DataType t, Extents const& x, Extents const& w, bool bias) {
        std::vector<CaseInput> in{input(t, x), constant(t, w)};
        if (bias)
            in.push_back(constant(t, {w[0]}));
        add(name, Attrs::fullyConnected(), in);
    };
    add("by_hand", Attrs::fullyConnected(),
        {f32({1, 2, 1, 2}, {1, 2, 3, 4}), constant(DataType::kFloat, {2, 4}, {1, 1, 1, 1, 1, 0, -1, 0}),
         constant(DataType::kFloat, {2}, {0, 10})},
        {{10, 8}});
    connect("rank_3", DataType::kFloat, {3, 4, 5}, {7, 60}, true);
    connect("batch_1", DataType::kFloat, {1, 3, 4, 5}, {33, 60}, true);
    connect("batch_9", DataType::kFloat, {9, 3, 4, 5}, {33, 60}, false);
    connect("kernel_4d", DataType::kFloat, {5, 3, 4, 5}, {8, 3, 4, 5}, true);
    connect("batch_dims", DataType::kFloat, {2, 3, 4, 1, 1}, {5, 4}, true);
    connect("one_output", DataType::kFloat, {6, 40, 1, 1}, {1, 40}, true);
    connect("large", DataType::kFloat, {5, 10, 6, 7}, {260, 420}, true);
    connect("inner_huge", DataType::kFloat, {15, 5001, 1, 1}, {34, 5001}, true);
    connect("empty_batch", DataType::kFloat, {0, 3, 2, 2}, {5, 12}, true);
    connect("no_channels", DataType::kFloat, {2, 0, 2, 2}, {5, 0}, true);
    connect("half_1", DataType::kHalf, {1, 3, 4, 5}, {9, 60}, true);
    connect("half_rows", DataType::kHalf, {131, 8, 5, 5}, {72, 200}, true);
    connect("half_1000", DataType::kHalf, {1, 512, 1, 1}, {1000, 512}, true);
    connect("half_no_bias", DataType::kHalf, {2, 3, 8, 3, 3}, {71, 8, 3, 3}, false);
    connect("half_6", DataType::kHalf, {6, 3, 4, 5}, {9, 60}, false);
    using activation::Kind;
    add("epilogue_relu_by_hand", Attrs::fullyConnected(Kind::kRelu),
        {f32({1, 2, 1, 1}, {1, -2}), constant(DataType::kFloat, {2, 2}, {1, 1, 3, 1}),
         constant(DataType::kFloat, {2}, {0.5, 0})},
        {{0, 1}});
    for (int k = FusedActivation::kNone; k < kFusedKindCount; ++k) {
        FusedActivation const f(FusedKind(k), 0.3F, 1.25F);
        add(fmt::format("epilogue_kind{}", k + 1), Attrs::fullyConnected(f),
            {f32({3, 4, 5, 2}), constant(DataType::kFloat, {9, 40}), constant(DataType::kFloat, {9})});
    }
    add("epilogue_half", Attrs::fullyConnected(Kind::kSigmoid),
        {input(DataType::kHalf, {2, 3, 4, 5}), constant(DataType::kHalf, {7, 60}), constant(DataType::kHalf, {7})});
    add("epilogue_half_rows", Attrs::fullyConnected(FusedActivation(FusedKind::kHardSwish, 0.25f, 0.5f)),
        {input(DataType::kHalf, {70, 8, 5, 5}), constant(DataType::kHalf, {136, 200}),
         constant(DataType::kHalf, {136})});
    for (DataType t : {DataType::kHalf, DataType::kFloat})
        add(isNarrowFloat(t) ? "epilogue_half_residual" : "epilogue_residual", Attrs::fullyConnected(Kind::kRelu),
            {input(t, {3, 4, 5, 2}), constant(t, {9, 40}), constant(t, {9}), input(t, {3, 9, 1, 1})});
    add("epilogue_one", Attrs::fullyConnected(Kind::kTanh),
        {input(DataType::kHalf, {6, 1, 1, 1}), constant(DataType::kHalf, {1, 1}), constant(DataType::kHalf, {1})});
}

// Products whose rows are normalized.
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
        product(fmt::format("half_n{}", n), DataType::kHalf, {n == 768 ? 333 : 131, 200}, n, kNone);
    // Rows of a are copied first, to whole 16 bytes: three kernels, of which the norm's is the last.
    product("half_padded", DataType::kHalf, {131, 36}, 256, kNone);
    product("half_padded_odd", DataType::kHalf, {5, 7}, 264, kTranspose);
    product("half_batch", DataType::kHalf, {3, 67, 136}, 768, kTranspose);
    product("half_gelu", DataType::kHalf, {260, 72}, 1024, kTranspose, FusedActivation(FusedKind::kGeluErf));
    product("half_many_rows", DataType::kHalf, {9001, 8}, 512, kNone); // several tiles for a block
    product("half_many_wide_rows", DataType::kHalf, {4500, 24}, 1024, kTranspose);
}

// Products of which one half of the columns gates the other.
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
            on(fmt::format("kind{}", k + 1), kNone, kTranspose, f, {x({9, 72}), w({64, 72}), w({64})});
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
        // Tiles turned round, whose rows are gates and what they let through.
        for (int64_t rows : {2, 9, 16, 17, 33, 70})
            on(fmt::format("turned_{}", rows), kNone, rows % 2 ? kTranspose : kNone, swish,
               {x({rows, 264}), w(rows % 2 ? Extents{208, 264} : Extents{264, 208}), w({208})});
        on("long_few_columns", kNone, kTranspose, gelu, {x({9, 2100}), w({22, 2100}), w({22})});
        on("long", kNone, kNone, swish, {x({70, 3000}), w({3000, 80}), w({80})});
        on("batch_of_rows", kNone, kNone, swish, {x({2, 67, 72}), w({1, 72, 144}), w({144})});
        on("batch", kNone, kTranspose, Kind::kTanh, {x({3, 17, 64}), w({3, 80, 64}), w({80})});
        on("transposed", kTranspose, kNone, swish, {x({64, 40}), w({64, 48})});
        on("vector_a", kVector, kNone, Kind::kRelu, {x({33}), w({33, 18}), w({18})});
        on("not_constant", kNone, kNone, gelu, {x({9, 40}), x({40, 64}), x({64})});
        on("bias_not_constant", kNone, kNone, gelu, {x({9, 40}), w({40, 64}), x({64})});
        std::vector<double> halves(size_t(1700) * 136);
        for (size_t i = 0; i < halves.size(); ++i)
            halves[i] = double(int64_t(i * 37 + i / 7) % 4093 - 2046) / 1024;
        for (int64_t rows : {1, 17, 150})
            on(fmt::format("narrow_{}", rows), kNone, kNone, swish,
               {x({rows, 1700}), constant(t, {1700, 136}, halves), w({136})});
        on("no_rows", kNone, kNone, swish, {x({0, 8}), w({8, 16})});
        on("no_inner", kNone, kNone, Kind::kSigmoid, {x({2, 0}), w({0, 6}), w({6})});
    }
}

// As steps of decoders have: rows and columns before, at and behind whole vectors and tiles.
void fewRowsCases(CaseList& list)
{
    using enum MatrixOperation;
    struct Size
    {
        int64_t k, n;
    };
    int i = 0;
    for (Size const& z : {Size{8, 8}, {5, 7}, {72, 24}, {200, 136}, {768, 1000}, {1000, 40}, {3001, 64}, {4100, 19}})
        for (int64_t rows : {1, 2, 3, 4})
            for (MatrixOperation b : {kNone, kTranspose}) {
                DataType const t = DataType::kHalf;
                Attrs a(kNone, b, ++i % 3 == 0 ? FusedActivation(FusedKind::kGeluErf) : FusedActivation());
                std::vector<CaseInput> in{input(t, {rows, z.k}),
                                          constant(t, b == kNone ? Extents{z.k, z.n} : Extents{z.n, z.k})};
                if (i % 2 == 0)
                    in.push_back(constant(t, {z.n}));
                if (i % 4 == 0)
                    in.push_back(input(t, {rows, z.n}));
                list.add(fmt::format("half_rows_{}_{}x{}{}", rows, z.k, z.n, b == kNone ? "" : "_transposed"), a,
                         std::move(in));
            }
}

// Products whose weights follow 2:4: what they mean is the dense product.
void sparseCases(CaseList& list)
{
    using enum MatrixOperation;
    using activation::Kind;
    constexpr DataType kType = DataType::kHalf;
    // Steps are 64, tiles 64 to 256 of either side: below, at and above.
    struct Size
    {
        int64_t m, n, k;
    };
    for (Size const& s : {Size{1, 8, 32}, Size{37, 72, 64}, Size{64, 64, 72}, Size{129, 136, 200}, Size{257, 264, 192},
                          Size{513, 520, 72}, Size{2500, 256, 64}, Size{17, 1000, 1024}})
        for (bool transposed : {false, true}) {
            std::string const name = fmt::format("sparse_{}x{}x{}{}", s.m, s.n, s.k, transposed ? "_t" : "_n");
            CaseInput const a = input(kType, {s.m, s.k}),
                            b = twoOfFour(kType, transposed ? Extents{s.n, s.k} : Extents{s.k, s.n},
                                          transposed ? 1 : 0),
                            bias = constant(kType, {s.n}), residual = input(kType, {s.m, s.n});
            auto const opB = transposed ? kTranspose : kNone;
            list.add(name, Attrs(kNone, opB, {}), {a, b});
            list.add(name + "_relu", Attrs(kNone, opB, Kind::kRelu), {a, b, bias});
            list.add(name + "_residual", Attrs(kNone, opB, Kind::kTanh), {a, b, bias, residual});
            list.add(name + "_residual_no_bias", Attrs(kNone, opB, {}), {a, b, absent(), residual});
        }
    list.add("sparse_batch", Attrs(kNone, kTranspose, Kind::kRelu),
             {input(kType, {3, 7, 64}), twoOfFour(kType, {1, 40, 64}, 2), constant(kType, {40})});
    list.add("sparse_batch_of_weights", Attrs(kNone, kTranspose, {}),
             {input(kType, {3, 7, 64}), twoOfFour(kType, {3, 40, 64}, 2)});
    list.add("sparse_other_axis", Attrs(kNone, kTranspose, {}),
             {input(kType, {70, 64}), twoOfFour(kType, {40, 64}, 0)});
    list.add("sparse_transposed_a", Attrs(kTranspose, kTranspose, {}),
             {input(kType, {64, 72}), twoOfFour(kType, {40, 64}, 1)});
    list.add("sparse_odd_columns", Attrs(kNone, kTranspose, {}),
             {input(kType, {70, 64}), twoOfFour(kType, {41, 64}, 1)});
    list.add("sparse_no_rows", Attrs(kNone, kTranspose, {}), {input(kType, {0, 64}), twoOfFour(kType, {40, 64}, 1)});
    // Of i8 steps are 128.
    for (Size const& s :
         {Size{1, 16, 64}, Size{37, 80, 128}, Size{129, 144, 208}, Size{257, 272, 192}, Size{2500, 256, 64}})
        for (bool transposed : {false, true}) {
            Extents const y{s.m, s.n};
            auto add = [&](char const* what, IntegerSums const& end) {
                Attrs a(kNone, transposed ? kTranspose : kNone, {});
                std::vector<CaseInput> in{
                    input(DataType::kInt8, {s.m, s.k}),
                    twoOfFour(DataType::kInt8, transposed ? Extents{s.n, s.k} : Extents{s.k, s.n}, transposed ? 1 : 0)};
                endIntegers(a.epilogue, in, end, y, s.n);
                list.add(fmt::format("sparse_int8_{}x{}x{}{}{}", s.m, s.n, s.k, transposed ? "_t_" : "_n_", what),
                         std::move(a), std::move(in));
            };
            add("relu", {.f = Kind::kRelu});
            add("residual", {.f = Kind::kRelu, .residual = DataType::kInt8});
            add("one_scale", {.bias = false, .scaleEach = false});
            add("scales", {.residual = DataType::kInt8, .outputScale = true, .innerScale = true});
            add("to_f16", {.type = DataType::kHalf});
        }
}

} // namespace tw::ops::matrix_multiply
