// SPDX-License-Identifier: Apache-2.0
#include "ops/matrix_multiply/cases.h"

#include "cases/cases.h"
#include "cases/draw.h"
#include "cases/integer_sums.h"
#include "cases/programs.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops::matrix_multiply {

void cases(CaseList& list)
{
    using enum MatrixOperation;
    auto multiply = [&](std::string const& name, MatrixOperation opA, CaseInput a, MatrixOperation opB, CaseInput b,
                        std::vector<std::vector<double>> expected = {}) {
        Attrs attrs;
        attrs.a = opA;
        attrs.b = opB;
        list.add(name, attrs, {std::move(a), std::move(b)}, std::move(expected));
    };
    CaseInput const m23 = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    multiply("by_hand", kNone, m23, kNone, f32({3, 2}, {1, 0, 2, 1, 0, -1}), {{5, -1, 14, -1}});
    multiply("by_hand_transposed", kTranspose, m23, kTranspose, f32({2, 2}, {1, 1, 0, 2}), {{5, 8, 7, 10, 9, 12}});
    multiply("by_hand_vectors", kVector, f32({3}, {1, 2, 3}), kVector, f32({3}, {4, 5, 6}), {{32}});
    multiply("no_inner", kNone, f32({2, 0}), kNone, f32({0, 3}), {{0, 0, 0, 0, 0, 0}});
    multiply("no_rows", kNone, f32({0, 4}), kNone, f32({4, 3}), {{}});
    multiply("no_batch", kNone, f32({0, 2, 4}), kNone, f32({0, 4, 3}), {{}});
    // Tiles are 4 x 8, panels 128 x 256 x 256: just below, at and above.
    for (int64_t size : {1, 3, 4, 5, 7, 8, 9, 17})
        multiply(fmt::format("square_{}", size), kNone, f32({size, size}), kNone, f32({size, size}));
    multiply("panels_above", kNone, f32({129, 257}), kNone, f32({257, 261}));
    multiply("panels_transposed", kTranspose, f32({257, 130}), kTranspose, f32({258, 257}));
    for (auto opA : {kNone, kTranspose})
        for (auto opB : {kNone, kTranspose}) {
            std::string const ops = std::string(opA == kTranspose ? "t" : "n") + (opB == kTranspose ? "t" : "n");
            for (DataType t : {DataType::kFloat, DataType::kHalf}) {
                Extents a{3, 2, 6, 19}, b{3, 2, 19, 11};
                if (opA == kTranspose)
                    std::swap(a[2], a[3]);
                if (opB == kTranspose)
                    std::swap(b[2], b[3]);
                multiply("batch_" + ops + "_" + nameOf(t), opA, input(t, a), opB, input(t, b));
            }
            multiply("column_" + ops, opA, f32(opA == kTranspose ? Extents{40, 9} : Extents{9, 40}), opB,
                     f32(opB == kTranspose ? Extents{1, 40} : Extents{40, 1}));
            multiply("row_" + ops, opA, f32(opA == kTranspose ? Extents{40, 1} : Extents{1, 40}), opB,
                     f32(opB == kTranspose ? Extents{9, 40} : Extents{40, 9}));
        }
    multiply("broadcast_a", kNone, f32({1, 2, 3, 4}), kNone, f32({5, 2, 4, 6}));
    multiply("broadcast_both", kNone, f32({1, 2, 3, 4}), kNone, f32({5, 1, 4, 6}));
    multiply("vector_matrix", kVector, f32({33}), kNone, f32({33, 9}));
    multiply("matrix_vector", kNone, f32({9, 33}), kVector, f32({33}));
    multiply("transposed_vector", kTranspose, f32({2, 33, 9}), kVector, f32({2, 33}));
    multiply("vector_transposed", kVector, f32({2, 33}), kTranspose, f32({2, 9, 33}));
    multiply("batch_of_vectors", kVector, f32({5, 33}), kVector, f32({5, 33}));
    // Emitted kernels: tiles of 14 x 32, 9 x 48, 6 x 64, 28 x 16 (AVX-512) and 6 x 16 ... (AVX2); rows and panels just
    // below, at and above; row strides that fall into one set of L1; sums longer than a block of k.
    for (int64_t m : {2, 13, 15, 29})
        for (int64_t n : {15, 31, 33, 65})
            multiply(fmt::format("tile_{}x{}", m, n), kNone, f32({m, 23}), kNone, constant(DataType::kFloat, {23, n}));
    multiply("inner_1", kNone, f32({30, 1}), kNone, f32({1, 50}));
    multiply("inner_1_transposed", kTranspose, f32({1, 30}), kTranspose, f32({50, 1}));
    multiply("inner_huge", kNone, f32({3, 9001}), kNone, constant(DataType::kFloat, {9001, 5}));
    multiply("inner_huge_transposed", kTranspose, f32({5001, 20}), kTranspose, f32({35, 5001}));
    multiply("strides_of_4096", kNone, f32({17, 1024}), kNone, constant(DataType::kFloat, {1024, 300}));
    multiply("strides_of_4096_transposed", kTranspose, f32({50, 1024}), kNone, f32({50, 300}));
    multiply("rows_of_batch", kNone, f32({3, 7, 20}), kNone, constant(DataType::kFloat, {1, 20, 40}));
    multiply("rows_of_batch_vector", kVector, f32({3, 20}), kNone, f32({1, 20, 40}));
    multiply("constant_batch", kNone, f32({1, 7, 20}), kNone, constant(DataType::kFloat, {3, 20, 40}));
    multiply("constant_batch_transposed", kNone, f32({2, 3, 7, 20}), kTranspose,
             constant(DataType::kFloat, {1, 3, 40, 20}));
    multiply("constant_vector", kNone, f32({2, 7, 20}), kVector, constant(DataType::kFloat, {1, 20}));
    multiply("constant_b", kNone, f32({4, 20}), kNone, constant(DataType::kFloat, {20, 10}));
    // Few rows: panels of 1 to 4 vectors, two at once, of 8 where b is not known; sums of their own for four steps.
    for (int64_t m : {1, 2, 3, 4})
        for (int64_t n : {4, 8, 17, 31, 100, 261})
            for (bool known : {true, false}) {
                std::string const name = fmt::format("{}x{}{}", m, n, known ? "" : "_unknown");
                Extents const b{35, n};
                multiply("few_rows_" + name, kNone, f32({m, 35}), kNone,
                         known ? constant(DataType::kFloat, b) : f32(b));
            }
    for (int64_t m : {1, 2, 3, 4, 9})
        for (int64_t k : {1, 7, 16, 33, 100})
            multiply(fmt::format("few_rows_dots_{}_{}", m, k), kNone, f32({3, m, k}), kTranspose, f32({3, 29, k}));
    multiply("few_rows_dots_shared", kNone, f32({12, 1, 64}), kTranspose, f32({12, 301, 64}));
    multiply("few_rows_dots_transposed", kTranspose, f32({40, 3}), kTranspose, f32({70, 40}));
    multiply("few_rows_inner_1", kNone, f32({1, 1}), kNone, constant(DataType::kFloat, {1, 70}));
    multiply("few_rows_no_inner", kNone, f32({1, 0}), kNone, constant(DataType::kFloat, {0, 70}),
             {std::vector<double>(70, 0)});
    multiply("few_rows_shared", kNone, f32({1, 601}), kNone, constant(DataType::kFloat, {601, 1030}));
    multiply("few_rows_shared_unknown", kNone, f32({2, 301}), kNone, f32({301, 999}));
    multiply("few_rows_transposed", kTranspose, f32({40, 3}), kTranspose, constant(DataType::kFloat, {70, 40}));
    multiply("few_rows_batch", kNone, f32({5, 1, 20}), kNone, constant(DataType::kFloat, {5, 20, 40}));
    multiply("few_rows_batch_unknown", kNone, f32({3, 4, 2, 20}), kNone, f32({3, 1, 20, 72}));
    multiply("few_rows_of_batch", kVector, f32({4, 20}), kNone, constant(DataType::kFloat, {1, 20, 40}));
    // Weights that are numbers of FP16, of BF16 as well, or of one in a thousand of neither.
    for (int64_t m : {1, 3, 4, 7, 16, 17})
        for (int64_t steps : {4093, 251, 0}) {
            std::vector<double> values(size_t(70 * 131));
            for (size_t i = 0; i < values.size(); ++i)
                values[i] = steps ? double(int64_t(i * 37) % steps - steps / 2) / 1024
                                  : double(int64_t(i) % 201 - 100) / (i % 1000 == 999 ? 3 : 64);
            multiply(fmt::format("weights_in_steps_of_{}_{}", steps, m), kNone, f32({m, 70}), kNone,
                     constant(DataType::kFloat, {70, 131}, values));
        }
    // Likewise, by panels that become floats anew: several parts of rows and of k, panels that are not whole, several matrices.
    auto const halves = [](Extents const& e) {
        std::vector<double> values(size_t(e.volume()));
        for (size_t i = 0; i < values.size(); ++i)
            values[i] = double(int64_t(i * 37 + i / 7) % 4093 - 2046) / 1024;
        return constant(DataType::kFloat, e, values);
    };
    multiply("narrow_large", kNone, f32({300, 1700}), kTranspose, halves({200, 1700}));
    multiply("narrow_part_of_panel", kNone, f32({65, 130}), kNone, halves({130, 75}));
    multiply("narrow_few_columns", kNone, f32({40, 130}), kNone, halves({130, 5}));
    multiply("narrow_batch", kNone, f32({3, 20, 64}), kNone, halves({3, 64, 40}));
    multiply("narrow_turned", kTranspose, f32({64, 130}), kNone, halves({64, 136}));
    // Tiles of 64 x 32 to 128 x 256, steps of 64 or 32 along k, rows of 16 bytes: products that tensor cores may do, at
    // edges.
    for (DataType type : {DataType::kHalf, DataType::kFloat}) {
        auto on = [&](std::string const& name, MatrixOperation opA, CaseInput a, MatrixOperation opB, CaseInput b) {
            multiply(wordOf(type) + "_" + name, opA, std::move(a), opB, std::move(b));
        };
        auto x = [&](Extents const& e) { return input(type, e); };
        auto weights = [&](Extents const& e) { return constant(type, e); };
        on("nn", kNone, x({131, 200}), kNone, weights({200, 136}));
        on("nt", kNone, x({131, 200}), kTranspose, weights({136, 200}));
        on("tn", kTranspose, x({72, 136}), kNone, x({72, 200}));
        on("tt", kTranspose, x({72, 136}), kTranspose, x({264, 72}));
        on("steps", kNone, x({128, 1024}), kTranspose, weights({64, 1024}));
        on("few_rows", kNone, x({5, 1032}), kNone, weights({1032, 264}));
        on("few_rows_transposed", kNone, x({9, 520}), kTranspose, weights({71, 520}));
        on("large", kNone, x({520, 72}), kNone, weights({72, 776}));
        on("odd_columns", kNone, x({70, 64}), kNone, weights({64, 33}));
        on("odd_inner", kTranspose, x({20, 64}), kTranspose, weights({33, 20}));
        on("odd_batch", kNone, x({2, 9, 64}), kNone, weights({2, 64, 33}));
        on("rows_of_batch", kNone, x({3, 7, 64}), kNone, weights({1, 64, 40}));
        on("batch", kNone, x({3, 2, 70, 64}), kTranspose, x({3, 2, 72, 64}));
        on("batch_odd", kNone, x({3, 70, 64}), kTranspose, x({3, 35, 64}));
        on("batch_transposed", kTranspose, x({4, 64, 72}), kNone, x({1, 64, 40}));
        on("broadcast_both", kNone, x({5, 1, 40, 64}), kNone, x({1, 3, 64, 48}));
        on("outer_order", kNone, x({1, 2, 2, 40, 64}), kNone, x({3, 1, 2, 64, 48}));
        on("broadcast_inner", kNone, x({2, 1, 3, 40, 64}), kNone, x({2, 4, 1, 64, 48}));
        on("vector_matrix", kVector, x({5, 72}), kNone, weights({1, 72, 40}));
        on("matrix_vector", kNone, x({3, 70, 72}), kVector, x({3, 72}));
        // Rows of 8, 4 and 2 bytes, in each order; batches of odd sizes; the last number of a tensor alone in its word.
        if (isNarrowFloat(type)) {
            for (int64_t odd : {4, 2, 1}) {
                int64_t const m = 128 + odd, n = 72 + odd, k = 192 + odd;
                std::string const rows = fmt::format("rows_of_{}", odd);
                on(rows + "_nn", kNone, x({m, k}), kNone, x({k, n}));
                on(rows + "_nt", kNone, x({m, k}), kTranspose, x({n, k}));
                on(rows + "_tn", kTranspose, x({k, m}), kNone, x({k, n}));
                on(rows + "_tt", kTranspose, x({k, m}), kTranspose, x({n, k}));
            }
            on("odd_batches", kNone, x({3, 67, 33}), kTranspose, x({1, 35, 33}));
            on("odd_batches_tn", kTranspose, x({5, 31, 9}), kNone, x({5, 31, 37}));
            on("inner_1", kNone, x({33, 1}), kNone, x({1, 65}));
            on("inner_huge_odd", kTranspose, x({5001, 21}), kTranspose, x({35, 5001}));
        }
        // Sums that only grow: what each step cuts off would add up.
        auto positive = [](int64_t count) {
            std::vector<double> v;
            for (int64_t e = 0; e < count; ++e)
                v.push_back(double(e * 37 % 101 + 1) / 103);
            return v;
        };
        on("positive", kNone, input(type, {9, 4096}, positive(9 * 4096)), kNone,
           constant(type, {4096, 40}, positive(4096 * 40)));
    }
    multiply("rank_8", kNone, f32({1, 2, 1, 2, 1, 2, 3, 4}), kNone, f32({2, 1, 1, 2, 1, 2, 4, 5}));
    epilogueCases(list);
    programCases(list);
    int8Cases(list);
    sparseCases(list);
    connectedCases(list);
    normCases(list);
    gatedCases(list);
    fewRowsCases(list);
    firstNormCases(list);
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    using enum MatrixOperation;
    Attrs a;
    Extents x, y;
    d.until([&] {
        int64_t const m = d.chance(20) ? 1 : d.size(140), n = d.size(140), k = d.size(300);
        a.a = d.chance(30) ? kTranspose : kNone;
        a.b = d.chance(30) ? kTranspose : kNone;
        int const batches = int(d.from(0, 2));
        Extents bx = d.extents(batches, 4), by = bx;
        int64_t work = m * n * k;
        for (int i = 0; i < batches; ++i) {
            work *= bx[i];
            if (d.chance(25))
                (d.chance(50) ? bx : by)[i] = 1;
        }
        x = bx, y = by;
        x.rank = y.rank = batches + 2;
        x[batches + (a.a == kTranspose)] = m, x[batches + (a.a != kTranspose)] = k;
        y[batches + (a.b == kTranspose)] = k, y[batches + (a.b != kTranspose)] = n;
        return work <= kMostWork;
    });
    DataType const t = d.chance(30) ? DataType::kInt8 : d.type();
    std::vector<CaseInput> in{input(t, x), d.chance(50) ? constant(t, y) : input(t, y)};
    Extents result = x;
    int const last = x.rank - 1;
    for (int i = 0; i + 2 < x.rank; ++i)
        result[i] = std::max(x[i], y[i]);
    result[last - 1] = x[last - (a.a != kTranspose)];
    result[last] = y[last - (a.b == kTranspose)];
    if (isQuantized(t)) {
        endIntegers(a.epilogue, in, integerSums(d), result, result[last]);
        list.add(name, a, in);
        return;
    }
    if (a.a == kNone && d.chance(15))
        a.firstNorm = d.chance(50) ? FirstNorm::kLayer : FirstNorm::kRms;
    a.gated = result[last] % 2 == 0 && d.chance(25);
    bool const residual = !a.gated && d.chance(30);
    if (d.chance(40))
        in.push_back(constant(t, {result[last]}));
    else if (residual)
        in.push_back(absent());
    if (residual)
        in.push_back(input(t, result));
    a.epilogue.activation = activationOf(d);
    if (!a.gated && d.chance(20))
        drawProgram(d, residual).setTo(a.epilogue);
    list.add(name, a, in);
}

} // namespace tw::ops::matrix_multiply
