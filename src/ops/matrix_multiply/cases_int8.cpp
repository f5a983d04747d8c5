// SPDX-License-Identifier: Apache-2.0
// Cases of products of i8.
#include "cases/integer_sums.h"
#include "ops/matrix_multiply/cases.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops::matrix_multiply {

void int8Cases(CaseList& list)
{
    using enum MatrixOperation;
    using enum DataType;
    using activation::Kind;
    auto add = [&](std::string const& name, Attrs a, std::vector<CaseInput> in, IntegerSums const& s, Extents const& y,
                   int64_t columns) {
        endIntegers(a.epilogue, in, s, y, columns);
        list.add("int8_" + name, std::move(a), std::move(in));
    };
    auto x = [](Extents const& e) { return input(kInt8, e); };
    auto w = [](Extents const& e) { return constant(kInt8, e); };
    auto number = [](std::vector<double> v) { return constant(kFloat, {int64_t(v.size())}, v); };
    auto byHand = [&](char const* name, DataType out, FusedActivation const& f, std::vector<CaseInput> in,
                      std::vector<double> expected) {
        Attrs a(kNone, kNone, f);
        a.epilogue.outputType = int32_t(out);
        list.add(std::string("int8_by_hand_") + name, std::move(a), std::move(in), {std::move(expected)});
    };
    // The product is [5 -1; 14 -1].
    CaseInput const a23 = input(kInt8, {2, 3}, {1, 2, 3, 4, 5, 6}), b32 = constant(kInt8, {3, 2}, {1, 0, 2, 1, 0, -1}),
                    none = absent();
    byHand("f32", kFloat, {}, {a23, b32, none, none, none, none, number({0.5, 3})}, {2.5, -3, 7, -3});
    byHand("ties", kInt8, {}, {a23, b32, none, none, none, none, number({0.5})}, {2, 0, 7, 0});
    byHand("beyond_integers", kInt8, {}, {a23, b32, none, none, none, none, number({1e10, -1e30})},
           {127, 127, 127, 127});
    byHand("relu", kInt8, Kind::kRelu, {a23, b32, number({-6, 3}), none, none, none, number({1, 20})}, {0, 0, 8, 0});
    byHand("residual", kInt8, {},
           {a23, b32, number({-6, 3}), input(kInt8, {2, 2}, {4, -128, 1, 127}), none, none, number({10, 20}),
            number({0.5})},
           {46, -81, 127, 46});
    byHand("output_scale", kHalf, {Kind::kClip, 0, 10},
           {a23, b32, none, input(kHalf, {2, 2}, {1, 2.5, 1, -3}), none, none, number({1}), none, number({0.25})},
           {1.5, 0.375, 2.5, 0});
    for (auto opA : {kNone, kTranspose})
        for (auto opB : {kNone, kTranspose})
            for (bool isConstant : {true, false}) {
                std::string const name = std::string(opA == kTranspose ? "t" : "n") + (opB == kTranspose ? "t" : "n") +
                                         (isConstant ? "" : "_variable");
                auto b = [&](Extents const& e) { return isConstant ? w(e) : x(e); };
                auto dimsA = [&](int64_t m, int64_t k) { return opA == kTranspose ? Extents{k, m} : Extents{m, k}; };
                auto dimsB = [&](int64_t k, int64_t n) { return opB == kTranspose ? Extents{n, k} : Extents{k, n}; };
                add(name, Attrs(opA, opB), {x(dimsA(21, 70)), b(dimsB(70, 83))}, {.f = Kind::kRelu}, {21, 83}, 83);
                add(name + "_whole", Attrs(opA, opB), {x(dimsA(24, 64)), b(dimsB(64, 64))}, {.type = kFloat}, {24, 64},
                    64);
                add(name + "_deep", Attrs(opA, opB), {x(dimsA(9, 1030)), b(dimsB(1030, 33))},
                    {.residual = kInt8, .bias = false}, {9, 33}, 33);
                add(name + "_row", Attrs(opA, opB), {x(dimsA(1, 131)), b(dimsB(131, 200))}, {.type = kFloat}, {1, 200},
                    200);
                add(name + "_column", Attrs(opA, opB), {x(dimsA(40, 19)), b(dimsB(19, 1))}, {}, {40, 1}, 1);
            }
    add("batch", {}, {x({3, 2, 17, 40}), x({3, 2, 40, 24})}, {.type = kFloat, .residual = kInt8}, {3, 2, 17, 24}, 24);
    add("batch_transposed", Attrs(kNone, kTranspose), {x({4, 33, 64}), x({4, 33, 64})},
        {.bias = false, .scaleEach = false}, {4, 33, 33}, 33);
    add("broadcast", {}, {x({1, 3, 5, 30}), w({2, 1, 30, 20})}, {}, {2, 3, 5, 20}, 20);
    add("rows_of_batch", Attrs(kNone, kTranspose), {x({2, 70, 40}), w({1, 65, 40})}, {.f = Kind::kRelu}, {2, 70, 65},
        65);
    // More rows than a tile has, and more tiles than some GPUs have multiprocessors.
    for (DataType out : {kInt8, kFloat, kHalf}) {
        add(std::string("many_rows_to_") + nameOf(out), Attrs(kNone, kTranspose), {x({1100, 272}), w({400, 272})},
            {.type = out, .f = Kind::kRelu, .residual = out}, {1100, 400}, 400);
        add(std::string("many_rows_short_to_") + nameOf(out), Attrs(kNone, kTranspose),
            {x({1601, 48}), w({int64_t(isQuantized(out) ? 1040 : 280), 48})}, {.type = out},
            {1601, isQuantized(out) ? 1040 : 280}, isQuantized(out) ? 1040 : 280);
    }
    for (FusedKind kind : {FusedKind::kGeluErf, FusedKind::kGeluTanh}) {
        std::string const curve = kind == FusedKind::kGeluErf ? "gelu_erf" : "gelu_tanh";
        add("many_rows_" + curve, Attrs(kNone, kTranspose), {x({1100, 272}), w({400, 272})},
            {.f = FusedActivation(kind), .outputScale = true}, {1100, 400}, 400);
        // All along the curve, in steps of a usual size and in tiny ones: sums are -128 .. 127.
        std::vector<double> rows(256 * 16), columns(32 * 16), scales;
        for (int i = 0; i < 256; ++i)
            rows[size_t(i * 16)] = i - 128;
        for (int i = 0; i < 32; ++i) {
            columns[size_t(i * 16)] = 1;
            scales.push_back(0.002 * (i + 1));
        }
        for (double steps : {20., 1e3, 1e5}) {
            Attrs a(kNone, kTranspose, FusedActivation(kind));
            a.epilogue.outputType = int32_t(kInt8);
            list.add(fmt::format("int8_{}_{}_steps", curve, int(steps)), std::move(a),
                     {input(kInt8, {256, 16}, rows), constant(kInt8, {32, 16}, columns), none, none, none, none,
                      number(scales), none, number({steps})});
        }
    }
    // So many tiles that a block does several, whose residuals come ahead.
    add("many_tiles", Attrs(kNone, kTranspose), {x({4200, 48}), w({1040, 48})}, {.residual = kInt8}, {4200, 1040},
        1040);
    add("batch_many_rows", Attrs(kNone, kTranspose), {x({3, 600, 64}), x({3, 144, 64})},
        {.residual = kInt8, .scaleEach = false}, {3, 600, 144}, 144);
    IntegerSums const bare{.bias = false, .scaleEach = false};
    add("vector_a", Attrs(kVector, kNone), {x({33}), w({33, 20})}, {}, {20}, 20);
    add("vector_b", Attrs(kNone, kVector), {x({20, 33}), w({33})}, bare, {20}, 1);
    add("vectors", Attrs(kVector, kVector), {x({2, 33}), x({2, 33})}, bare, {2}, 1);
    Attrs const connected = Attrs::fullyConnected();
    add("connected", connected, {x({3, 4, 5, 2}), w({19, 40})}, {.f = Kind::kRelu}, {3, 19, 1, 1}, 19);
    add("connected_1000", connected, {x({1, 512, 1, 1}), w({1000, 512})}, {.type = kFloat}, {1, 1000, 1, 1}, 1000);
    add("connected_rows", connected, {x({70, 8, 5, 5}), w({136, 200})}, {.type = kHalf, .residual = kInt8},
        {70, 136, 1, 1}, 136);
    // Ends of the sum, of many rows and few.
    for (int64_t m : {70, 3})
        for (DataType out : {kInt8, kFloat, kHalf}) {
            auto end = [&](std::string const& name, IntegerSums const& s) {
                add(fmt::format("end_{}_{}_to_{}", m, name, nameOf(out)), Attrs(kNone, kTranspose),
                    {x({m, 72}), w({139, 72})}, s, {m, 139}, 139);
            };
            end("none", {.type = out});
            end("one_scale", {.type = out, .bias = false, .scaleEach = false});
            end("variable", {.type = out, .residual = kInt8, .constants = false});
            for (DataType r : {kInt8, kFloat, kHalf})
                if (isQuantized(out) || isQuantized(r) || r == out)
                    end("residual_" + std::string(nameOf(r)), {.type = out, .f = Kind::kRelu, .residual = r});
            end("rounded", {.type = out, .f = Kind::kRelu, .residual = kInt8, .innerScale = true});
            if (isQuantized(out)) {
                end("table", {.table = true});
                end("table_behind_all", {.f = Kind::kRelu, .residual = kInt8, .innerScale = true, .table = true});
            }
            for (int k = 0; k < kFusedKindCount; ++k) {
                FusedActivation const f(FusedKind(k), 0.3F, 1.25F);
                end(fmt::format("kind{}", k + 1), {.type = out, .f = f, .outputScale = true});
            }
        }
    // Every product is the largest there is: 16 bits, and 8 + 8 of them, would saturate.
    for (double weight : {-128., 127.}) {
        auto filled = [](Extents const& dims, double v) { return std::vector<double>(size_t(dims.volume()), v); };
        Attrs a;
        std::vector<CaseInput> in{input(kInt8, {9, 1024}, filled({9, 1024}, -128)),
                                  constant(kInt8, {1024, 70}, filled({1024, 70}, weight))};
        endIntegers(a.epilogue, in, {.type = kFloat}, {9, 70}, 70);
        list.add(std::string("int8_largest") + (weight < 0 ? "" : "_127"), a, in).isConstant = true;
    }
    add("no_rows", {}, {x({0, 4}), w({4, 3})}, {}, {0, 3}, 3);
    add("no_inner", {}, {x({2, 0}), w({0, 3})}, {}, {2, 3}, 3);
}

} // namespace tw::ops::matrix_multiply
