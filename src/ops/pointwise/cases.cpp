// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <limits>

#include "families/elementwise/activate.h"
#include "ops/pointwise/op.h"

namespace tw::ops::pointwise {

namespace {

struct Maker
{
    Attrs a;
    int inputs = 0;

    Maker& in(InputKind kind = InputKind::kBroadcast, int64_t axis = 0)
    {
        a.inputs.push_back(int64_t(kind));
        a.inputs.push_back(axis);
        ++inputs;
        return *this;
    }
    Maker& step(int64_t code, int64_t x = 0, int64_t y = 0, int64_t kind = 0, double alpha = 0, double beta = 0)
    {
        for (int64_t v : {code, x, y, kind})
            a.steps.push_back(v);
        a.parameters.push_back(alpha);
        a.parameters.push_back(beta);
        return *this;
    }
};

// i8 in and out: what becomes of element-wise layers between dequantize and quantize layers.
void addQuantized(CaseList& list)
{
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    constexpr DataType kInt8 = DataType::kInt8, kFloat = DataType::kFloat;
    auto as = [](Maker const& m, DataType y) {
        Attrs a = m.a;
        a.outputType = y;
        return a;
    };
    auto const scalar = InputKind::kScalar;
    auto number = [](double v) { return constant(DataType::kFloat, {}, {v}); };
    // Half to even, clamped, NaN to 0.
    list.add("to_i8_by_hand", as(Maker().in().step(1, 0, 0), kInt8),
             {f32({8}, {0.25, 0.75, -0.25, -0.75, 63.75, 64, -70, kNan})}, {{0, 2, 0, -2, 127, 127, -128, 0}});
    // max(x s + y t, 0) / u, steps of FP32: a residual sum and its ReLU.
    Maker sum = Maker().in().in().in(scalar).in(scalar).in(scalar);
    sum.step(3, 0, 2).step(3, 1, 3).step(1, 5, 6).step(30, 7, 0, 0).step(4, 8, 4);
    list.add("sum_i8_by_hand", as(sum, kInt8),
             {input(kInt8, {4}, {10, -20, 100, 3}), input(kInt8, {4}, {1, 2, 100, -4}), number(0.5), number(0.25),
              number(0.5)},
             {{10, 0, 127, 1}}); // (5.25, -9.5, 75, 0.5) / 0.5
    for (int64_t c : {1, 3, 15, 16, 17, 33, 64, 100}) {
        std::string const n = std::to_string(c);
        std::vector<CaseInput> const pair{input(kInt8, {2, c, 5, 3}), input(kInt8, {2, c, 5, 3}), number(0.07),
                                          number(0.11), number(0.06)};
        list.add("sum_i8_" + n, as(sum, kInt8), pair);
        list.add("sum_i8_to_f32_" + n, as(sum, kFloat), pair);
        list.add("gate_i8_" + n, as(Maker().in().in().in(scalar).step(3, 0, 1).step(3, 3, 2), kInt8),
                 {input(kInt8, {2, c, 5, 3}), input(kInt8, {2, c, 1, 1}), number(0.004)});
        list.add("channel_i8_" + n, as(Maker().in().in(InputKind::kChannel, 1).step(3, 0, 1), kInt8),
                 {input(kInt8, {2, c, 5, 3}), constant(kFloat, {c})});
        // An image of integers and one of floats, whose pixels are vectors of another size.
        for (DataType y : {kInt8, kFloat, DataType::kHalf})
            list.add("mixed_image_to_" + std::string(nameOf(y)) + "_" + n,
                     as(Maker().in().in().in(scalar).step(3, 0, 2).step(1, 3, 1), y),
                     {input(kInt8, {2, c, 5, 3}), input(isFullFloat(y) ? y : DataType::kHalf, {2, c, 5, 3}),
                      number(isQuantized(y) ? 0.3 : 0.02)});
    }
    list.add("mixed_i8_f32", as(Maker().in().in().in(scalar).step(3, 0, 2).step(1, 3, 1), kFloat),
             {input(kInt8, {3, 50}), f32({3, 50}), number(0.02)});
    list.add("mixed_i8_f16_to_i8", as(Maker().in().in().in(scalar).step(3, 1, 2).step(1, 0, 3), kInt8),
             {input(kInt8, {3, 50}), input(DataType::kHalf, {3, 50}), number(20)});
    list.add("long_i8", as(sum, kInt8),
             {input(kInt8, {3, 20011}), input(kInt8, {3, 20011}), number(0.07), number(0.11), number(0.06)});
    list.add("row_i8", as(Maker().in().in().in(scalar).step(1, 0, 1).step(3, 3, 2), kInt8),
             {input(kInt8, {7, 33}), input(kInt8, {1, 33}), number(0.5)});
    for (int64_t code = 1; code <= 7; ++code)
        list.add(fmt::format("i8_code_{}", code),
                 as(Maker().in().in().in(scalar).step(code, 0, 1).step(3, 3, 2), kInt8),
                 {input(kInt8, {3, 41}), input(kInt8, {3, 41}), number(0.43)});
    // Of one variable: every value it can have.
    std::vector<double> all;
    for (int v = -128; v < 128; ++v)
        all.push_back(v);
    for (int64_t code = 10; code <= 20; ++code)
        list.add(fmt::format("table_code_{}", code),
                 as(Maker().in().in(scalar).in(scalar).step(3, 0, 1).step(code, 3).step(4, 4, 2), kInt8),
                 {input(kInt8, {256}, all), number(0.031), number(0.027)});
    for (int kind = 0; kind < kFusedKindCount; ++kind)
        list.add(
            fmt::format("table_activation_{}", kind),
            as(Maker().in().in(scalar).in(scalar).step(3, 0, 1).step(30, 3, 0, kind, 0.3, 1.25).step(4, 4, 2), kInt8),
            {input(kInt8, {2, 3, 8, 16}), number(0.05), number(0.03)});
    Attrs const sigmoid = as(Maker().in().in(scalar).in(scalar).step(3, 0, 1).step(30, 3, 0, 1).step(4, 4, 2), kInt8);
    for (int64_t c : {1, 63, 64, 65, 130})
        list.add(fmt::format("table_channels_{}", c), sigmoid,
                 {input(kInt8, {2, c, 5, 3}), number(0.05), number(0.01)});
    list.add("table_long", sigmoid, {input(kInt8, {3, 40011}), number(0.05), number(0.01)});
    list.add("table_scalar", as(Maker().in().step(30, 0, 0, 1).step(0, 0, 0, 0, 100).step(3, 1, 2), kInt8),
             {input(kInt8, {}, {1})});
    list.add("i8_empty", as(Maker().in().step(20, 0), kInt8), {input(kInt8, {0, 3})});
}

} // namespace

void cases(CaseList& list)
{
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    auto const channel = InputKind::kChannel, scalar = InputKind::kScalar;
    // (x * s + b) max 0.5, then minus x.
    Maker chain = Maker().in().in(channel, 1).in(channel, 1);
    chain.step(3, 0, 1).step(1, 3, 2).step(0, 0, 0, 0, 0.5).step(5, 4, 5).step(2, 6, 0);
    auto pair = [](Extents const& e) { return constant(DataType::kFloat, e); };
    list.add("by_hand", chain.a,
             {f32({1, 2, 2}, {1, 2, 3, -4}), constant(DataType::kFloat, {2}, {2, 3}),
              constant(DataType::kFloat, {2}, {0, 1})},
             {{1, 2, 7, 4.5}});
    list.add("nan_by_hand", Maker().in().in().step(5, 0, 1).step(6, 0, 1).step(1, 2, 3).a,
             {f32({4}, {kNan, 1, 2, -1}), f32({4}, {1, kNan, 3, -2})}, {{kNan, kNan, 5, -3}});
    list.add("parametric_relu_by_hand", Maker().in().in().step(7, 0, 1).step(7, 2, 1).a,
             {f32({4}, {-2, kNan, 2, -1}), f32({4}, {0.5, 1, 3, -2})}, {{-0.5, kNan, 2, 2}});
    for (int64_t c : {1, 3, 16, 17, 40, 64, 256})
        list.add(fmt::format("channels_{}", c), chain.a, {f32({2, c, 5, 3}), pair({c}), pair({c})});
    // x * gate[n, c] + y: squeeze and excitation with a sum.
    Maker const gate = Maker().in().in().in().step(3, 0, 1).step(1, 3, 2);
    for (int64_t c : {1, 24, 32})
        list.add(fmt::format("gate_{}", c), gate.a, {f32({2, c, 4, 5}), f32({2, c, 1, 1}), f32({2, c, 4, 5})});
    list.add("pixel_gate", gate.a, {f32({2, 20, 4, 5}), f32({2, 1, 4, 5}), f32({1, 20, 4, 5})});
    list.add("outer_product", gate.a, {f32({3, 1, 5}), f32({1, 7, 1}), f32({3, 7, 1})});
    list.add("vector", gate.a, {f32({100}), f32({1}), f32({100})});
    list.add("scalar_tensor", gate.a, {f32({}), f32({}), f32({})});
    list.add("empty", gate.a, {f32({2, 0, 3}), f32({2, 1, 3}), f32({2, 0, 3})});
    Maker const scaled = Maker().in().in(scalar).step(3, 0, 1).step(30, 2, 0, 12);
    list.add("scalar_input", scaled.a, {f32({3, 50}), f32({1, 1}, {1.5})});
    list.add("matrix_bias", Maker().in().in().step(1, 0, 1).step(30, 2, 0, 14).a, {f32({7, 33}), f32({1, 33})});
    for (int64_t c : {5, 16, 40})
        list.add(fmt::format("parametric_relu_{}", c), Maker().in().in().step(20, 0).step(2, 2, 0).step(7, 3, 1).a,
                 {f32({2, c, 3, 7}), f32({1, c, 1, 1})});
    for (int64_t code = 10; code <= 20; ++code)
        list.add(fmt::format("code_{}", code), Maker().in().step(code, 0).step(2, 0, 1).a, {f32({3, 41})});
    for (int kind = 0; kind < kFusedKindCount; ++kind)
        list.add(fmt::format("activation_{}", kind), Maker().in().in().step(2, 0, 1).step(30, 2, 0, kind, 0.3, 1.25).a,
                 {f32({2, 19, 7}), f32({2, 19, 7})});
    // f16 in and out, and mixed: v + x * s[c], with the sum in f32 although x * s is beyond f16.
    for (DataType x : {DataType::kFloat, DataType::kHalf})
        for (DataType s : {DataType::kFloat, DataType::kHalf})
            for (DataType y : {DataType::kFloat, DataType::kHalf}) {
                if (isFullFloat(x) && s == x && y == x)
                    continue;
                Attrs a = Maker().in().in().in(channel, 1).step(3, 0, 2).step(1, 3, 1).a;
                a.outputType = y;
                std::string const types = std::string(nameOf(x)) + "_" + nameOf(s) + "_" + nameOf(y);
                list.add("types_" + types + "_by_hand", a,
                         {input(x, {1, 2, 2}, {40000, 1, 2, -4}), f32({1, 2, 2}, {-59999, 0.5, 0, 1}),
                          constant(s, {2}, {3, 0.5})},
                         {{isNarrowFloat(y) ? 60000.0 : 60001.0, 3.5, 1, -1}});
                for (int64_t c : {5, 16})
                    list.add(fmt::format("types_{}_{}", types, c), a,
                             {input(x, {2, c, 3, 7}), input(x, {2, c, 3, 7}), constant(s, {c})});
            }
    addQuantized(list);
    Maker many; // as many inputs as there can be
    for (int i = 0; i < kMaxInputs; ++i)
        many.in();
    many.step(3, 0, 1);
    for (int i = 2; i < many.inputs; ++i)
        many.step(1, many.inputs + i - 2, i);
    list.add("many_inputs", many.a, std::vector<CaseInput>(size_t(many.inputs), f32({5, 37})));
    list.add("long_rows", chain.a, {f32({1, 3, 130, 131}), pair({3}), pair({3})});
}

} // namespace tw::ops::pointwise
