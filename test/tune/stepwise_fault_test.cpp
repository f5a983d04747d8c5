// SPDX-License-Identifier: Apache-2.0
// Fused regions that cancel and overflow: kernels that compute exactly and kernels that compute step by step, each step
// rounded to its type, are both right, element by element; what is neither is refused, but for the plain kernel, which
// nobody refuses for its arithmetic.
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "ops/elementwise/op.h"
#include "ops/pointwise/op.h"
#include "ops/slice/op.h"
#include "ops/unary/op.h"
#include "support/graph_maker.h"

namespace tw::test {

namespace {

using Function = std::function<double(double)>;

// y = f(x), element by element.
class Mapped final : public ops::Kernel
{
public:
    explicit Mapped(std::function<double(double x, int64_t i)> f) : f_(std::move(f)) {}
    Result<void> run(ops::RunArgs& args) const override
    {
        for (int64_t i = 0; i < args.outputs[0].count(); ++i)
            args.outputs[0].set(i, f_(args.inputs[0].get(i), i));
        return {};
    }

private:
    std::function<double(double, int64_t)> f_;
};

// pointwise(x) of `steps` with the body that it stands for.
struct Region
{
    GraphMaker maker, inner;
    ops::Problem problem;

    Region(int64_t count, DataType type, std::vector<int64_t> const& steps, std::vector<double> const& constants,
           std::function<ir::Value*(GraphMaker&, ir::Value*)> const& body)
    {
        ops::pointwise::Attrs a;
        a.inputs = {0, 0};
        a.steps = steps;
        a.parameters.assign(steps.size() / 2, 0.0);
        for (size_t i = 0; i < constants.size(); ++i)
            a.parameters[2 * i] = constants[i];
        a.outputType = type;
        ir::Node* node = maker.addNode(ops::pointwise::def(), std::make_unique<ops::pointwise::Attrs>(a),
                                       {maker.input("x", ir::shapeOf({count}), type)}, "region");
        inner.output(body(inner, inner.input("x", ir::shapeOf({count}), type)));
        node->body = inner.take();
        problem.node = node;
        ops::TensorSpec const spec{.type = type, .dims = {count}, .maxDims = {count}, .present = true};
        problem.inputs = problem.outputs = {spec};
    }
    Result<tune::Checked> check(std::function<double(double, int64_t)> f, bool isPlain = false) const
    {
        return tune::Checker(problem).check(problem, Mapped(std::move(f)), "test_mapped", serialWorkers(),
                                            {.isPlain = isPlain});
    }
    bool passes(Function const& f, bool isPlain = false) const
    {
        return check([&](double x, int64_t) { return f(x); }, isPlain).ok();
    }
};

ir::Value* unary(GraphMaker& m, ops::unary::Operation op, ir::Value* x, char const* name)
{
    return m.add(ops::unary::def(), ops::unary::Attrs(op), {x}, name);
}
ir::Value* binary(GraphMaker& m, ops::elementwise::Operation op, ir::Value* x, double v, char const* name)
{
    return m.add(ops::elementwise::def(), ops::elementwise::Attrs(op),
                 {x, m.constant(name + std::string("_by"), {1}, {v}, x->type)}, name);
}

// log(1 + exp(x)).
Region softplus(int64_t count, DataType type = DataType::kFloat)
{
    return Region(count, type, {0, 0, 0, 0, 10, 0, 0, 0, 1, 1, 2, 0, 11, 3, 0, 0}, {1},
                  [](GraphMaker& m, ir::Value* x) {
                      ir::Value* e = unary(m, ops::unary::Operation::kExp, x, "exp");
                      return unary(m, ops::unary::Operation::kLog,
                                   binary(m, ops::elementwise::Operation::kSum, e, 1, "plus"), "log");
                  });
}

double exact(double x)
{
    return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}
double inSteps(double x)
{
    return std::log(1 + std::exp(float(x)));
}
double toHalf(double x)
{
    return halfToFloat(floatToHalf(float(x)));
}

} // namespace

TEST(Stepwise, EitherArithmeticIsRight)
{
    for (int64_t count : {100, 70'000}) { // compared whole, and at samples
        Region const r = softplus(count);
        EXPECT_TRUE(r.passes(exact)) << r.check([](double x, int64_t) { return exact(x); }).error().message;
        EXPECT_TRUE(r.passes(inSteps)) << r.check([](double x, int64_t) { return inSteps(x); }).error().message;
        // Vectors one way, what is left of them the other.
        EXPECT_TRUE(r.check([](double x, int64_t i) { return i % 16 < 13 ? inSteps(x) : exact(x); }).ok());
    }
}

TEST(Stepwise, NeitherIsWrong)
{
    for (int64_t count : {100, 70'000}) {
        Region const r = softplus(count);
        Function const faults[] = {
            [](double) { return 0.0; },
            [](double x) { return std::exp(x); },                      // log and sum are missing
            [](double x) { return std::log(2 + std::exp(float(x))); }, // another constant
            [](double x) { return x > 88 ? -INFINITY : inSteps(x); },  // an infinity of the wrong sign
            [](double x) { return x > 88 ? NAN : inSteps(x); },
            [](double x) { return x < -88 ? NAN : exact(x); },
            [](double x) { return exact(x) * 1.01; },
        };
        for (Function const& f : faults)
            EXPECT_FALSE(r.passes(f)) << "fault " << &f - faults << ", " << count << " elements";
        EXPECT_FALSE(r.check([&](double x, int64_t i) { return i == count - 1 ? 9.0 : inSteps(x); }).ok());
    }
}

// (x + 65504) - 65504 in f32 keeps 8 bits after the point; by 1.5 * 2^23, none.
TEST(Stepwise, Cancellation)
{
    for (double c : {65504.0, 12582912.0}) {
        Region const r(500, DataType::kFloat, {0, 0, 0, 0, 1, 0, 1, 0, 2, 2, 1, 0}, {c},
                       [c](GraphMaker& m, ir::Value* x) {
                           x = binary(m, ops::elementwise::Operation::kSum, x, c, "plus");
                           return binary(m, ops::elementwise::Operation::kSub, x, c, "minus");
                       });
        EXPECT_TRUE(r.passes([c](double x) {
            float volatile const sum = float(x) + float(c);
            return double(sum - float(c));
        }));
        EXPECT_TRUE(r.passes([](double x) { return x; }));
        EXPECT_FALSE(r.passes([](double x) { return x + 0.25; }));
        EXPECT_FALSE(r.passes([](double x) { return std::trunc(x * 4) / 4; }));
    }
}

// Kernels of f16 graphs compute in f16 throughout, in f32 and round once, or exactly.
TEST(Stepwise, HalfInEachRounding)
{
    Region const r = softplus(400, DataType::kHalf);
    EXPECT_TRUE(r.passes(exact));
    EXPECT_TRUE(r.passes(inSteps)) << r.check([](double x, int64_t) { return inSteps(x); }).error().message;
    EXPECT_TRUE(r.passes([](double x) { return toHalf(std::log(toHalf(1 + toHalf(std::exp(x))))); }));
    EXPECT_FALSE(r.passes([](double x) { return toHalf(std::log(toHalf(2 + toHalf(std::exp(x))))); }));
    EXPECT_FALSE(r.passes([](double x) { return x > 40 ? 40 : exact(x); }));
    // In f32 the sum is exact to 2^-8, in f16 to 32.
    Region const sum(400, DataType::kHalf, {0, 0, 0, 0, 1, 0, 1, 0, 2, 2, 1, 0}, {40000},
                     [](GraphMaker& m, ir::Value* x) {
                         x = binary(m, ops::elementwise::Operation::kSum, x, 40000, "plus");
                         return binary(m, ops::elementwise::Operation::kSub, x, 40000, "minus");
                     });
    EXPECT_TRUE(sum.passes([](double x) { return x; }));
    EXPECT_TRUE(sum.passes([](double x) {
        float volatile const plus = float(x) + 40000.0F;
        return double(plus - 40000.0F);
    }));
    EXPECT_TRUE(sum.passes([](double x) { return toHalf(x + 40000) - 40000; }));
    EXPECT_FALSE(sum.passes([](double) { return 1.0; }));
}

TEST(Stepwise, PlainKernelsAreNotRefusedForTheirArithmetic)
{
    Region const r = softplus(100);
    auto const other = [](double x, int64_t) { return std::log(1.001 + std::exp(x)); };
    EXPECT_FALSE(r.check(other).ok());
    auto const plain = r.check(other, true);
    ASSERT_TRUE(plain.ok()) << plain.error().message;
    EXPECT_EQ(plain->incomparable, "");
    EXPECT_EQ(plain->differs.find("output 0 ('" + r.problem.node->outputs[0]->name + "'), "), 0u) << plain->differs;
    EXPECT_TRUE(r.check([](double x, int64_t) { return inSteps(x); }, true)->isRight());
}

// What moves elements rounds nothing: a plain kernel that takes wrong ones is wrong.
TEST(Stepwise, PlainKernelsThatMoveElementsAreRefused)
{
    GraphMaker m;
    ops::slice::Attrs a;
    a.start = {10};
    a.size = {50};
    a.stride = {1};
    ops::Problem p;
    p.node = m.addNode(ops::slice::def(), std::make_unique<ops::slice::Attrs>(a), {m.input("x", ir::shapeOf({100}))},
                       "slice");
    p.inputs = {ops::TensorSpec{.dims = {100}, .maxDims = {100}, .present = true}};
    p.outputs = {ops::TensorSpec{.dims = {50}, .maxDims = {50}, .present = true}};
    struct Slice final : ops::Kernel
    {
        explicit Slice(int64_t start) : from(start) {}
        int64_t from;
        Result<void> run(ops::RunArgs& args) const override
        {
            for (int64_t i = 0; i < 50; ++i)
                args.outputs[0].set(i, args.inputs[0].get(from + i));
            return {};
        }
    };
    tune::Checker checker(p);
    EXPECT_TRUE(checker.check(p, Slice(10), "test_slice", serialWorkers(), {.isPlain = true}).ok());
    EXPECT_FALSE(checker.check(p, Slice(11), "test_slice", serialWorkers(), {.isPlain = true}).ok());
}

} // namespace tw::test
