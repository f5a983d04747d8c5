// SPDX-License-Identifier: Apache-2.0
// Layers that differ in little: in one network each must run with its own numbers, and its own sizes.
#include "engine_run.h"
#include "ops/layer_norm/op.h"
#include "ops/reduce/op.h"
#include "ops/softmax/op.h"

namespace tw::test {

namespace {

ops::layer_norm::Attrs norm(double epsilon)
{
    ops::layer_norm::Attrs a;
    a.axis = 1;
    a.epsilon = epsilon;
    return a;
}

} // namespace

// Inputs of about 1e-5 have a variance of 3e-11: beside 1e-7 it is nothing, beside 1e-10 it counts.
TEST(NearEqual, LayerNormalizationsOfTwoEpsilons)
{
    for (DataType type : {DataType::kFloat, DataType::kHalf}) {
        SCOPED_TRACE(nameOf(type));
        constexpr int64_t kRows = 64, kColumns = 768;
        GraphMaker m;
        ir::Value* gamma = m.constant("gamma", {kColumns}, std::vector<double>(kColumns, 1.0), type);
        ir::Value* beta = m.constant("beta", {kColumns}, std::vector<double>(kColumns, 0.0), type);
        for (int i = 0; i < 4; ++i) {
            std::string const n = std::to_string(i);
            ir::Value* x = m.input("x" + n, ir::shapeOf({kRows, kColumns}), type);
            m.output(m.add(ops::layer_norm::def(), norm(std::array{1e-7, 1e-10, 1e-12, 1.5e-10}[size_t(i)]),
                           {x, gamma, beta}, "norm" + n),
                     "y" + n);
        }
        auto e = makeEngine(m);
        ASSERT_TRUE(e.ok()) << e.error().message;
        std::vector<Tensor> inputs;
        for (int i = 0; i < 4; ++i) {
            inputs.emplace_back(type, Extents{kRows, kColumns});
            fillRandom(inputs.back().ref(), ops::Domain{-1e-5, 1e-5, false, false}, 11);
        }
        auto const want = interp::run(*e->imported, refsOf(inputs));
        ASSERT_TRUE(want.ok()) << want.error().message;
        double const apart = std::fabs((*want)[0].ref().get(5) - (*want)[1].ref().get(5));
        EXPECT_GT(apart, 0.01) << "else the test tells nothing";
        runtime::Context context(e->engine);
        context.setProfile(0);
        checkRun(*e, context, inputs, type == DataType::kHalf ? 2e-3 : 1e-4);
    }
}

// Equal sizes at optimum and maximum, but one may be smaller.
TEST(NearEqual, StaticBesideDynamic)
{
    constexpr int64_t kRows = 40, kColumns = 33;
    GraphMaker m;
    ir::Value* a = m.input("a", ir::shapeOf({kRows, kColumns}));
    ir::Value* b = m.input("b", {ir::Dim(kRows), ir::Dim::symbol("C")});
    ops::softmax::Attrs softmax;
    softmax.axis = 1;
    ops::reduce::Attrs sum;
    sum.axes = 1 << 1;
    for (ir::Value* x : {a, b}) {
        std::string const n = x->name;
        m.output(m.add(ops::softmax::def(), softmax, {x}, "softmax_" + n), "s" + n);
        m.output(m.add(ops::reduce::def(), sum, {x}, "sum_" + n), "r" + n);
    }
    auto e = makeEngine(m, {{{"C", {1, kColumns, kColumns}}}});
    ASSERT_TRUE(e.ok()) << e.error().message;
    runtime::Context context(e->engine);
    context.setProfile(0);
    for (int64_t columns : {1, 2, 7, 16, 31, 33})
        checkRun(*e, context, randomInputs(*e->imported, {{"C", columns}}), 1e-4);
}

} // namespace tw::test
