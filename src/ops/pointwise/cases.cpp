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
        list.add("channels_" + std::to_string(c), chain.a, {f32({2, c, 5, 3}), pair({c}), pair({c})});
    // x * gate[n, c] + y: squeeze and excitation with a sum.
    Maker const gate = Maker().in().in().in().step(3, 0, 1).step(1, 3, 2);
    for (int64_t c : {1, 24, 32})
        list.add("gate_" + std::to_string(c), gate.a, {f32({2, c, 4, 5}), f32({2, c, 1, 1}), f32({2, c, 4, 5})});
    list.add("pixel_gate", gate.a, {f32({2, 20, 4, 5}), f32({2, 1, 4, 5}), f32({1, 20, 4, 5})});
    list.add("outer_product", gate.a, {f32({3, 1, 5}), f32({1, 7, 1}), f32({3, 7, 1})});
    list.add("vector", gate.a, {f32({100}), f32({1}), f32({100})});
    list.add("scalar_tensor", gate.a, {f32({}), f32({}), f32({})});
    list.add("empty", gate.a, {f32({2, 0, 3}), f32({2, 1, 3}), f32({2, 0, 3})});
    Maker const scaled = Maker().in().in(scalar).step(3, 0, 1).step(30, 2, 0, 12);
    list.add("scalar_input", scaled.a, {f32({3, 50}), f32({1, 1}, {1.5})});
    list.add("matrix_bias", Maker().in().in().step(1, 0, 1).step(30, 2, 0, 14).a, {f32({7, 33}), f32({1, 33})});
    for (int64_t c : {5, 16, 40})
        list.add("parametric_relu_" + std::to_string(c), Maker().in().in().step(20, 0).step(2, 2, 0).step(7, 3, 1).a,
                 {f32({2, c, 3, 7}), f32({1, c, 1, 1})});
    for (int64_t code = 10; code <= 20; ++code)
        list.add("code_" + std::to_string(code), Maker().in().step(code, 0).step(2, 0, 1).a, {f32({3, 41})});
    for (int kind = 0; kind < kFusedKindCount; ++kind)
        list.add("activation_" + std::to_string(kind),
                 Maker().in().in().step(2, 0, 1).step(30, 2, 0, kind, 0.3, 1.25).a, {f32({2, 19, 7}), f32({2, 19, 7})});
    // f16 in and out, and mixed: v + x * s[c], with the sum in f32 although x * s is beyond f16.
    for (DataType x : {DataType::kFloat, DataType::kHalf})
        for (DataType s : {DataType::kFloat, DataType::kHalf})
            for (DataType y : {DataType::kFloat, DataType::kHalf}) {
                if (x == DataType::kFloat && s == x && y == x)
                    continue;
                Attrs a = Maker().in().in().in(channel, 1).step(3, 0, 2).step(1, 3, 1).a;
                a.outputType = y;
                std::string const types = std::string(nameOf(x)) + "_" + nameOf(s) + "_" + nameOf(y);
                list.add("types_" + types + "_by_hand", a,
                         {input(x, {1, 2, 2}, {40000, 1, 2, -4}), f32({1, 2, 2}, {-59999, 0.5, 0, 1}),
                          constant(s, {2}, {3, 0.5})},
                         {{y == DataType::kHalf ? 60000.0 : 60001.0, 3.5, 1, -1}});
                for (int64_t c : {5, 16})
                    list.add("types_" + types + "_" + std::to_string(c), a,
                             {input(x, {2, c, 3, 7}), input(x, {2, c, 3, 7}), constant(s, {c})});
            }
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
