// SPDX-License-Identifier: Apache-2.0
// Cases of matrix products whose weights follow 2:4: what they mean is the dense product.
#include "cases/integer_sums.h"
#include "cases/sparse_weights.h"
#include "ops/matrix_multiply/cases.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops::matrix_multiply {

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
            std::string const name = "sparse_" + std::to_string(s.m) + "x" + std::to_string(s.n) + "x" +
                                     std::to_string(s.k) + (transposed ? "_t" : "_n");
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
                list.add("sparse_int8_" + std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k) +
                             (transposed ? "_t_" : "_n_") + what,
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
