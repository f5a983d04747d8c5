// SPDX-License-Identifier: Apache-2.0
// What makes two regions one: whoever has the key of another gets its kernel.
#include "tune/region_key.h"

#include <cmath>

#include <gtest/gtest.h>

#include "ops/activation/op.h"
#include "ops/elementwise/op.h"
#include "ops/layer_norm/op.h"
#include "ops/pointwise/op.h"
#include "tactic/registry.h"

namespace tw::tune {

namespace {

// A node of one input and its problem at dims 4 x 8 (optimum and maximum).
struct Region
{
    ir::Graph graph;
    ops::Problem problem;

    template <class A>
    Region(ir::OpDef const& op, A attrs, ir::Shape const& shape = {ir::Dim(4), ir::Dim(8)})
    {
        ir::Value* x = graph.addInput("x", DataType::kFloat, shape);
        problem.node = *graph.addNode(op, std::make_unique<A>(std::move(attrs)), {x}, "n");
        ops::TensorSpec const spec{.type = DataType::kFloat, .dims = {4, 8}, .maxDims = {4, 8}, .present = true};
        problem.inputs = problem.outputs = {spec};
    }
    ir::Value& in() { return *graph.inputs[0]; }
    std::string key() const { return regionKey(problem, "test"); }
};

ops::activation::Attrs leaky(float alpha)
{
    ops::activation::Attrs a(ops::activation::Kind::kLeakyRelu);
    a.alpha = alpha;
    return a;
}

Region relu(ir::Shape const& shape = {ir::Dim(4), ir::Dim(8)})
{
    return Region(ops::activation::def(), ops::activation::Attrs(), shape);
}

} // namespace

TEST(RegionKey, EqualRegionsAreOne)
{
    EXPECT_EQ(relu().key(), relu().key());
    EXPECT_NE(relu().key(), regionKey(relu().problem, "other"));
    Region larger = relu();
    larger.problem.inputs[0].maxDims = {5, 8};
    EXPECT_NE(relu().key(), larger.key());
}

// Each is another number to generated code.
TEST(RegionKey, AttributesCountToTheLastBit)
{
    double const values[] = {
        0.0, -0.0, 1e-5, 1e-7, 1e-10, 1e-12, 1e-5 + 1e-12, 0.1, std::nextafter(0.1, 1), 1e300, 1e-300, 123456.7890625};
    for (double a : values)
        for (double b : values) {
            auto keyOf = [](double epsilon) {
                ops::layer_norm::Attrs attrs;
                attrs.axis = 1;
                attrs.hasGamma = attrs.hasBeta = false;
                attrs.epsilon = epsilon;
                return Region(ops::layer_norm::def(), attrs).key();
            };
            bool const isOne = a == b && std::signbit(a) == std::signbit(b);
            EXPECT_EQ(keyOf(a) == keyOf(b), isOne) << a << " and " << b;
        }
    EXPECT_NE(Region(ops::activation::def(), leaky(0.1F)).key(),
              Region(ops::activation::def(), leaky(std::nextafter(0.1F, 1.0F))).key());
}

// Generators ask which sizes are numbers, and which of the others are the same.
TEST(RegionKey, StaticAndDynamicAreTwo)
{
    ir::Dim const n = ir::Dim::symbol("N"), m = ir::Dim::symbol("M");
    std::vector<ir::Shape> const shapes = {{ir::Dim(4), ir::Dim(8)}, {n, ir::Dim(8)}, {ir::Dim(4), n}, {n, m}, {n, n}};
    for (size_t a = 0; a < shapes.size(); ++a)
        for (size_t b = 0; b < shapes.size(); ++b)
            EXPECT_EQ(relu(shapes[a]).key() == relu(shapes[b]).key(), a == b) << a << " and " << b;
    EXPECT_EQ(relu({n, m}).key(), relu({m, n}).key()) << "names do not count";
}

// A fused node is compared with the nodes that it stands for.
TEST(RegionKey, Bodies)
{
    auto keyOf = [](ops::elementwise::Operation op, double constant) {
        ops::pointwise::Attrs a;
        a.inputs = {0, 0};
        a.steps = {10, 0, 0, 0};
        a.parameters = {0, 0};
        Region r(ops::pointwise::def(), a);
        auto body = std::make_unique<ir::Graph>();
        ir::Value* x = body->addInput("x", DataType::kFloat, r.in().shape);
        float const c = float(constant);
        ir::Value* y = body->addConstant("c", DataType::kFloat, {1, 1}, &c);
        body->outputs = {
            (*body->addNode(ops::elementwise::def(), std::make_unique<ops::elementwise::Attrs>(op), {x, y}, "b"))
                ->outputs[0]};
        const_cast<ir::Node*>(r.problem.node)->body = std::move(body);
        return r.key();
    };
    using Operation = ops::elementwise::Operation;
    EXPECT_EQ(keyOf(Operation::kSum, 1), keyOf(Operation::kSum, 1));
    EXPECT_NE(keyOf(Operation::kSum, 1), keyOf(Operation::kProd, 1));
    EXPECT_NE(keyOf(Operation::kSum, 1), keyOf(Operation::kSum, 1.0000001));
}

TEST(RegionKey, PointsCount)
{
    Tensor contents(DataType::kInt32, {1});
    Point a{"here", {{{4, 8}, {}}}}, b{"there", {{{4, 7}, {}}}}, c{"here", {{{4, 8}, contents.ref()}}};
    EXPECT_EQ(pointsKey({}), "");
    EXPECT_NE(pointsKey(std::vector{a}), pointsKey(std::vector{b}));
    EXPECT_NE(pointsKey(std::vector{a}), pointsKey(std::vector{c}));
    std::string const before = pointsKey(std::vector{c});
    contents.ref().setInt(0, 5);
    EXPECT_NE(before, pointsKey(std::vector{c}));
}

} // namespace tw::tune
