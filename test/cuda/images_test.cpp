// SPDX-License-Identifier: Apache-2.0
// Images of generated kernels on a fake driver and a compiler that compiles nothing: layers that
// differ in little have images of their own, and none is loaded for another layer.
#include <cstdlib>

#include "builder/build.h"
#include "cuda/fake_target.h"
#include "ops/layer_norm/op.h"
#include "ops/reduce/op.h"
#include "support/graph_maker.h"
#include "tactic/tactic.h"

namespace tw::test {

namespace {

ops::layer_norm::Attrs norm(double epsilon)
{
    ops::layer_norm::Attrs a;
    a.axis = 1;
    a.epsilon = epsilon;
    a.hasGamma = a.hasBeta = false;
    return a;
}

// A layer of [40, 33] with a problem; the symbol's optimum and maximum are 33.
struct Layer
{
    GraphMaker maker;
    ops::Problem problem;

    template <class A>
    Layer(ir::OpDef const& op, A attrs, cuda::Target const& target, ir::Dim const& columns = ir::Dim(33))
    {
        problem.node = maker.addNode(op, std::make_unique<A>(std::move(attrs)),
                                     {maker.input("x", {ir::Dim(40), columns})}, "layer");
        problem.target.cuda = &target;
        problem.inputs = {ops::TensorSpec{.dims = {40, 33}, .maxDims = {40, 33}, .present = true}};
        problem.outputs = problem.inputs;
        problem.outputs[0].dims = problem.outputs[0].maxDims = ir::extentsOf(
            ir::isStatic(problem.node->outputs[0]->shape) ? problem.node->outputs[0]->shape : ir::shapeOf({40, 33}));
    }
};

std::string why(Result<std::unique_ptr<ops::Kernel>> const& loaded)
{
    return loaded.ok() ? std::string() : loaded.error().message;
}

} // namespace

TEST(Images, OfAnotherLayerAreRefused)
{
    auto const target = fakeTarget();
    ASSERT_TRUE(target.ok()) << target.error().message;
    Layer const one(ops::layer_norm::def(), norm(1e-7), **target), other(ops::layer_norm::def(), norm(1e-10), **target);
    int tried = 0;
    for (ops::Tactic const* t : ops::layer_norm::cudaTactics) {
        if (!ops::supportsFormats(*t, one.problem).ok)
            continue;
        SCOPED_TRACE(t->name());
        ops::Config const config = t->configs(one.problem).at(0);
        auto const image = t->build(one.problem, config), others = t->build(other.problem, config);
        ASSERT_TRUE(image.ok() && others.ok()) << image.error().message;
        EXPECT_NE(*image, *others);
        EXPECT_EQ(why(t->load(one.problem, config, *image)), "");
        EXPECT_NE(why(t->load(other.problem, config, *image)).find("compiled from another source"), std::string::npos)
            << why(t->load(other.problem, config, *image));
        std::string older = *image, damaged = *image;
        older[7] = '1';
        EXPECT_NE(why(t->load(one.problem, config, older)).find("of another version of this library"),
                  std::string::npos);
        damaged.back() ^= 1;
        EXPECT_NE(why(t->load(one.problem, config, damaged)).find("damaged"), std::string::npos);
        EXPECT_NE(why(t->load(one.problem, config, image->substr(0, 40))).find("damaged"), std::string::npos);
        ++tried;
    }
    EXPECT_GT(tried, 0);
}

// A row whose length is a number in the kernel, and one that may be shorter.
TEST(Images, StaticAndDynamicSizesOfOneOptimum)
{
    auto const target = fakeTarget();
    ASSERT_TRUE(target.ok()) << target.error().message;
    ops::reduce::Attrs sum;
    sum.axes = 1 << 1;
    Layer const fixed(ops::reduce::def(), sum, **target),
        varies(ops::reduce::def(), sum, **target, ir::Dim::symbol("C"));
    int different = 0;
    for (ops::Tactic const* t : ops::reduce::cudaTactics) {
        if (!ops::supportsFormats(*t, fixed.problem).ok || !ops::supportsFormats(*t, varies.problem).ok)
            continue;
        ops::Config const config = t->configs(fixed.problem).at(0);
        auto const image = t->build(fixed.problem, config), others = t->build(varies.problem, config);
        ASSERT_TRUE(image.ok() && others.ok()) << t->name();
        bool const isOther = *image != *others;
        EXPECT_EQ(why(t->load(varies.problem, config, *image)).empty(), !isOther) << t->name();
        different += isOther;
    }
    EXPECT_GT(different, 0) << "some kernel knows the length";
}

// One build: equal layers share an image, those of another epsilon do not.
TEST(Images, OfOneNetwork)
{
    auto const target = fakeTarget();
    ASSERT_TRUE(target.ok()) << target.error().message;
    GraphMaker m;
    double const epsilons[] = {1e-7, 1e-10, 1e-7};
    for (size_t i = 0; i < std::size(epsilons); ++i) {
        std::string const n = std::to_string(i);
        m.output(
            m.add(ops::layer_norm::def(), norm(epsilons[i]), {m.input("x" + n, ir::shapeOf({40, 33}))}, "norm" + n),
            "y" + n);
    }
    plan::Contents c;
    c.graph = m.take();
    for (ir::Value const* v : c.graph->inputs)
        c.io.push_back(plan::IoTensor{v->name, true, false, true, false, {}});
    for (ir::Value const* v : c.graph->outputs)
        c.io.push_back(plan::IoTensor{v->name, false, false, true, false, {}});
    builder::Options options;
    options.fingerprint = "fake";
    options.cuda = *target;
    options.tune.heuristicOnly = true; // kernels do nothing there: the plain ones stay
    auto const built = builder::build(c, options);
    ASSERT_TRUE(built.ok()) << built.error().message;
    std::vector<std::string> images(std::size(epsilons));
    for (size_t i = 0; i < c.graph->nodes.size(); ++i)
        images[size_t(c.graph->nodes[i]->name.back() - '0')] = c.targets[0].root.steps[i].choice.image;
    EXPECT_FALSE(images[0].empty());
    EXPECT_NE(images[0], images[1]);
    EXPECT_EQ(images[0], images[2]);
}

} // namespace tw::test
