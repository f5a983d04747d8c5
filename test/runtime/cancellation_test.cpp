// SPDX-License-Identifier: Apache-2.0
// Expressions whose steps cancel, overflow or underflow in their type: fused, the exact reference says otherwise than
// any kernel can compute. They are valid networks; they build, and compute what their nodes do one by one.
#include <cmath>
#include <functional>

#include "engine_run.h"
#include "ops/elementwise/op.h"
#include "ops/reduce/op.h"
#include "ops/unary/op.h"

namespace tw::test {

namespace {

using Binary = ops::elementwise::Operation;
using Unary = ops::unary::Operation;

// Expressions over one network.
struct Maker : GraphMaker
{
    int count = 0;
    std::string name(char const* what) { return what + std::to_string(count++); }
    ir::Value* unary(Unary op, ir::Value* x) { return add(ops::unary::def(), ops::unary::Attrs(op), {x}, name("u")); }
    ir::Value* binary(Binary op, ir::Value* x, ir::Value* y)
    {
        return add(ops::elementwise::def(), ops::elementwise::Attrs(op), {x, y}, name("b"));
    }
    ir::Value* number(double v, DataType type = DataType::kFloat) { return constant(name("c"), {1, 1}, {v}, type); }
    ir::Value* plus(ir::Value* x, double v) { return binary(Binary::kSum, x, number(v, x->type)); }
    ir::Value* minus(ir::Value* x, double v) { return binary(Binary::kSub, x, number(v, x->type)); }
    ir::Value* exp(ir::Value* x) { return unary(Unary::kExp, x); }
    ir::Value* neg(ir::Value* x) { return unary(Unary::kNeg, x); }
};

ops::reduce::Attrs sumOfRows()
{
    ops::reduce::Attrs a;
    a.axes = 1 << 1;
    a.keepDims = true;
    return a;
}

using Expression = std::function<ir::Value*(Maker&, ir::Value*)>;

struct Case
{
    char const* name;
    Expression make;
    double lo = -3, hi = 3; // of x
};

Case const kCases[] = {
    {"softplus", [](Maker& m, ir::Value* x) { return m.unary(Unary::kLog, m.plus(m.exp(x), 1)); }},
    {"softplus_large", [](Maker& m, ir::Value* x) { return m.unary(Unary::kLog, m.plus(m.exp(x), 1)); }, -80, 80},
    {"sigmoid", [](Maker& m, ir::Value* x) { return m.binary(Binary::kDiv, m.exp(x), m.plus(m.exp(x), 1)); }},
    {"tanh",
     [](Maker& m, ir::Value* x) {
         ir::Value *p = m.exp(x), *n = m.exp(m.neg(x));
         return m.binary(Binary::kDiv, m.binary(Binary::kSub, p, n), m.binary(Binary::kSum, p, n));
     }},
    {"half_range", [](Maker& m, ir::Value* x) { return m.minus(m.plus(x, 65504), 65504); }},
    {"rounds", [](Maker& m, ir::Value* x) { return m.minus(m.plus(x, 12582912), 12582912); }},
    {"fraction",
     [](Maker& m, ir::Value* x) {
         ir::Value* y = m.binary(Binary::kProd, m.unary(Unary::kSin, x), m.number(43758.5));
         return m.binary(Binary::kSub, y, m.unary(Unary::kFloor, y));
     }},
    {"softmax",
     [](Maker& m, ir::Value* x) {
         ir::Value* e = m.exp(x);
         ir::Value* sum = m.add(ops::reduce::def(), sumOfRows(), {e}, m.name("sum"));
         return m.binary(Binary::kDiv, e, sum);
     }},
    {"squares",
     [](Maker& m, ir::Value* x) { // (1 + x)^2 - 2 x - 1, of numbers so small that nothing but zeros is left
         ir::Value* y = m.plus(x, 1);
         y = m.binary(Binary::kSub, m.binary(Binary::kProd, y, y), m.binary(Binary::kProd, x, m.number(2)));
         return m.minus(y, 1);
     },
     -1e-6, 1e-6},
    {"overflow",
     [](Maker& m, ir::Value* x) { // x * 1e38 * 1e38 / 1e38 / 1e38
         ir::Value* y = x;
         for (Binary op : {Binary::kProd, Binary::kProd, Binary::kDiv, Binary::kDiv})
             y = m.binary(op, y, m.number(1e38));
         return y;
     }},
};

} // namespace

TEST(Cancellation, NetworksBuildAndComputeWhatTheirNodesDo)
{
    for (Case const& c : kCases)
        for (int64_t rows : {3, 200}) { // compared whole, and at samples
            SCOPED_TRACE(c.name + std::string(", rows ") + std::to_string(rows));
            Maker m;
            ir::Value* x = m.input("x", ir::shapeOf({rows, 65}));
            m.output(c.make(m, x), "y");
            auto e = makeEngine(m);
            ASSERT_TRUE(e.ok()) << e.error().message;
            std::vector<Tensor> inputs;
            inputs.emplace_back(DataType::kFloat, Extents{rows, 65});
            fillRandom(inputs[0].ref(), ops::Domain{c.lo, c.hi, false, false}, 7);
            auto want = interp::run(*e->imported, refsOf(inputs));
            ASSERT_TRUE(want.ok()) << want.error().message;
            runtime::Context context(e->engine);
            context.setProfile(0);
            auto got = runEngine(context, refsOf(inputs));
            ASSERT_TRUE(got.ok()) << got.error().message;
            // A sine that is off by one bit moves the fraction by 43758.5 * 2^-24, and past an integer by 1.
            double const limit = std::string_view(c.name) == "fraction" ? 0.01 : 2e-5;
            int64_t wrong = 0;
            for (int64_t i = 0; i < got->outputs[0].count(); ++i) {
                double const a = got->outputs[0].get(i), b = (*want)[0].ref().get(i);
                double const apart = std::fabs(a - b), round = std::string_view(c.name) == "fraction" ? 1 : 0;
                bool const isRight = (std::isnan(a) && std::isnan(b)) || a == b ||
                                     apart <= limit * (1 + std::fabs(b)) || std::fabs(apart - round) <= limit;
                wrong += !isRight;
                EXPECT_TRUE(isRight || wrong > 3) << "element " << i << ": got " << a << ", want " << b;
            }
            EXPECT_EQ(wrong, 0);
        }
}

} // namespace tw::test
