// SPDX-License-Identifier: Apache-2.0
// Shapes that change from run to run, shapes that only the data decides, and plans that are the same every time.
#include "engine_run.h"
#include "ops/concatenation/op.h"
#include "ops/convolution/op.h"
#include "ops/elementwise/op.h"
#include "ops/gather/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/reduce/op.h"
#include "ops/reformat/op.h"
#include "ops/resize/op.h"
#include "ops/scale/op.h"
#include "ops/shuffle/op.h"

namespace tw::test {

namespace {

using ops::activation::Kind;
using Operation = ops::elementwise::Operation;

// conv + scale + relu, residual, flatten by shape arithmetic, fully connected by a matrix product.
void smallNetwork(GraphMaker& m, ir::Dim const& batch)
{
    auto padded = ops::convolution::Attrs::plain(2);
    padded.prePadding = padded.postPadding = {1, 1};
    ir::Value* x = m.input("x", {batch, 3, 6, 6});
    ir::Value* y = m.add(ops::convolution::def(), padded, {x, m.constant("w1", {3, 3, 3, 3})}, "conv1");
    y = m.add(ops::scale::def(), ops::scale::Attrs(ops::scale::Mode::kChannel),
              {y, m.constant("s", {3}), m.constant("t", {3})}, "bn1");
    y = activation(m, y, "relu1", Kind::kRelu);
    y = m.add(ops::convolution::def(), padded, {y, m.constant("w2", {3, 3, 3, 3}), m.constant("b2", {3})}, "conv2");
    y = m.add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kSum), {y, x}, "add2");
    y = activation(m, y, "relu2", Kind::kRelu);
    ir::Value* shape = m.add(ops::shape::def(), {y}, "shape");
    ir::Value* n = m.add(ops::gather::def(), ops::gather::Attrs{}, {shape, m.i32("zero", {0})}, "n");
    ir::Value* dims = m.add(ops::concatenation::def(), ops::concatenation::Attrs(0), {n, m.i32("rest", {-1})}, "dims");
    y = m.add(ops::shuffle::def(), ops::shuffle::Attrs{}, {y, dims}, "flatten");
    y = m.add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs{}, {y, m.constant("w3", {108, 10})}, "fc");
    y = m.add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kSum), {y, m.constant("b3", {1, 10})},
              "bias");
    m.output(activation(m, y, "sigmoid", Kind::kSigmoid), "y");
}

} // namespace

TEST(Dynamic, SmallNetworkOverProfiles)
{
    GraphMaker m;
    smallNetwork(m, ir::Dim::symbol("N"));
    auto e = makeEngine(m, {{{"N", {1, 2, 4}}}, {{"N", {3, 8, 8}}}});
    ASSERT_TRUE(e.ok()) << e.error().message;
    size_t layers = 0; // conv1 + bn1 + relu1, conv2 + add2 + relu2, flatten, fc + ...
    for (auto const& n : e->engine->graph().nodes)
        layers += n->op != &ops::reformat::def();
    EXPECT_EQ(layers, 4u);
    runtime::Context context(e->engine);
    for (int profile : {0, 1, 0}) {
        context.setProfile(profile);
        for (int64_t n : {3, 1, 4, 8}) {
            auto const inputs = randomInputs(*e->imported, {{"N", n}});
            bool const inRange = profile == 0 ? n <= 4 : n >= 3;
            if (!inRange) {
                EXPECT_FALSE(context.setInputShape(0, inputs[0].dims()).ok());
                continue;
            }
            checkRun(*e, context, inputs, 1e-4);
            if (profile == 0) {
                EXPECT_EQ(whyNotCaptured(*e, inputs), "");
            }
        }
    }
    EXPECT_EQ(e->engine->block().steps.size(), e->engine->graph().nodes.size());
}

TEST(Dynamic, EveryPassCanBeLeftOut)
{
    for (auto const& p : passes::pipeline()) {
        SCOPED_TRACE(p.name);
        GraphMaker m;
        smallNetwork(m, ir::Dim::symbol("N"));
        passes::Options options;
        options.disabled = {p.name};
        auto e = makeEngine(m, {{{"N", {1, 2, 4}}}}, options);
        ASSERT_TRUE(e.ok()) << e.error().message;
        runtime::Context context(e->engine);
        context.setProfile(0);
        checkRun(*e, context, randomInputs(*e->imported, {{"N", 3}}), 1e-4);
    }
    for (int stop = 0; stop < 8; ++stop) {
        SCOPED_TRACE("stop after " + std::to_string(stop));
        GraphMaker m;
        smallNetwork(m, 2);
        passes::Options options;
        options.stopAfter = stop;
        auto e = makeEngine(m, {{}}, options);
        ASSERT_TRUE(e.ok()) << e.error().message;
        runtime::Context context(e->engine);
        context.setProfile(0);
        checkRun(*e, context, randomInputs(*e->imported), 1e-4);
    }
}

TEST(Dynamic, SameNetworkSameBytes)
{
    std::string bytes[2];
    for (auto& b : bytes) {
        GraphMaker m;
        smallNetwork(m, ir::Dim::symbol("N"));
        auto e = makeEngine(m, {{{"N", {1, 2, 4}}}});
        ASSERT_TRUE(e.ok()) << e.error().message;
        b = e->planBytes;
    }
    EXPECT_EQ(bytes[0], bytes[1]);
}

TEST(Dynamic, SizesThatTheDataDecides)
{
    GraphMaker m;
    ir::Value* x = m.input("x", {ir::Dim::symbol("N"), 3});
    ir::Value* relu = activation(m, x, "relu", Kind::kRelu);
    ir::Value* where = m.add(ops::non_zero::def(), {relu}, "where"); // [2, count]
    ir::Value* twice =
        m.add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kSum), {where, where}, "twice");
    ops::reduce::Attrs rows;
    rows.axes = 2;
    m.output(twice, "y");
    m.output(m.add(ops::reduce::def(), rows, {twice}, "sum"), "z");
    m.output(m.add(ops::shape::def(), {twice}, "shape"), "size");
    auto e = makeEngine(m, {{{"N", {1, 4, 9}}}});
    ASSERT_TRUE(e.ok()) << e.error().message;
    runtime::Context context(e->engine);
    context.setProfile(0);
    for (int64_t n : {1, 4, 9}) {
        auto inputs = randomInputs(*e->imported, {{"N", n}});
        checkRun(*e, context, inputs);
        for (int64_t i = 0; i < inputs[0].count(); ++i)
            inputs[0].ref().set(i, -1);
        checkRun(*e, context, inputs); // nothing is left
        for (int64_t i = 0; i < inputs[0].count(); ++i)
            inputs[0].ref().set(i, 1);
        checkRun(*e, context, inputs); // everything is
        EXPECT_EQ(whyNotCaptured(*e, inputs), "layer 'where' makes a tensor whose size depends on data");
    }
}

TEST(Dynamic, ShapeTensorInput)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({2, 4, 5}));
    ir::Value* dims = m.input("dims", ir::shapeOf({3}), DataType::kInt32);
    dims->host = true;
    dims->content = std::vector<ir::Dim>{2, ir::Dim::symbol("height"), ir::Dim::symbol("width")};
    ir::Value* y = m.add(ops::resize::def(), ops::resize::Attrs{}, {x, dims}, "resize");
    m.output(activation(m, y, "relu", Kind::kRelu), "y");
    std::unique_ptr<ir::Graph> imported = m.take();
    plan::Contents c;
    c.graph = imported->clone();
    c.io = {{"x", true, false, true, false, {}},
            {"dims", true, true, false, false, {}},
            {"y", false, false, true, false, {}}};
    plan::Profile p = profileOf(*c.graph, {});
    p.inputs["dims"].minValues = {2, 1, 2};
    p.inputs["dims"].optValues = {2, 8, 8};
    p.inputs["dims"].maxValues = {2, 16, 9};
    c.profiles = {p};
    builder::Options options;
    options.fingerprint = "test";
    options.tune.heuristicOnly = true;
    auto built = builder::build(c, options);
    ASSERT_TRUE(built.ok()) << built.error().message;
    EngineUnderTest e;
    e.imported = std::move(imported);
    auto loaded = runtime::Engine::load(std::move(c), {{}, "test", nullptr});
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    e.engine = *loaded;
    runtime::Context context(e.engine);
    context.setProfile(0);
    for (auto [height, width] : {std::pair{1, 2}, std::pair{16, 9}, std::pair{7, 5}}) {
        auto inputs = randomInputs(*e.imported);
        inputs[1].ref().setInt(0, 2);
        inputs[1].ref().setInt(1, height);
        inputs[1].ref().setInt(2, width);
        checkRun(e, context, inputs);
    }
}

struct Warnings final : Log
{
    std::string text, details;
    void write(Severity severity, std::string const& message) override
    {
        (severity == Severity::kWarning ? text : details) += message + "\n";
    }
};

// A plan for a device of another kind: the sentence names both, and the cure.
TEST(Plans, OfAnotherKindOfDevice)
{
    Warnings log;
    GraphMaker m;
    m.output(activation(m, m.input("x", ir::shapeOf({3, 5})), "tanh", Kind::kTanh), "y");
    EngineUnderTest e;
    e.imported = m.take();
    auto built = buildContents(*e.imported, {{}});
    ASSERT_TRUE(built.ok()) << built.error().message;
    auto gpu = testGpu();
    ASSERT_TRUE(gpu.ok());
    built->targets.at(0).backend = *gpu ? "cpu" : "cuda";
    built->targets.at(0).fingerprint = "a device that is far away";
    runtime::LoadOptions options;
    options.fingerprint = "the device at hand";
    options.log = &log;
    options.cuda = *gpu;
    auto loaded = runtime::Engine::load(std::move(*built), options);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_EQ(log.text,
              "the plan was tuned on a device that is far away and has no choices for this device, the device at "
              "hand: plain kernels, which are slow, are used. Build it here for speed.\n");
    e.engine = *loaded;
    runtime::Context context(e.engine);
    context.setProfile(0);
    checkRun(e, context, randomInputs(*e.imported));
}

// A plan from another machine: who runs it is told that it is slow, and why.
TEST(Plans, KernelsThatCannotRunHereAreCounted)
{
    Warnings log;
    GraphMaker m;
    ir::Value* y = activation(m, m.input("x", ir::shapeOf({3, 5})), "tanh", Kind::kTanh);
    y = m.add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs(), {y, m.constant("w", {5, 4})}, "product");
    m.output(y, "y");
    EngineUnderTest e;
    e.imported = m.take();
    auto built = buildContents(*e.imported, {{}});
    ASSERT_TRUE(built.ok()) << built.error().message;
    int planned = 0;
    for (plan::Step& step : built->targets.at(0).root.steps)
        if (step.choice.tactic != 0) {
            step.choice.tactic = 12345;
            ++planned;
        }
    ASSERT_GT(planned, 0);
    runtime::LoadOptions options;
    options.fingerprint = "test";
    options.log = &log;
    auto gpu = testGpu();
    ASSERT_TRUE(gpu.ok());
    options.cuda = *gpu;
    auto loaded = runtime::Engine::load(std::move(*built), options);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    std::string const lines = " kernels of the plan cannot run here, and ";
    EXPECT_EQ(log.text.find(std::to_string(planned) + lines), 0U) << log.text;
    EXPECT_NE(log.text.find(" take their place; the verbose log says which. Build it here for speed.\n"),
              std::string::npos)
        << log.text;
    if (!*gpu) { // a product has kernels for every CPU
        EXPECT_EQ(log.text.find("plain"), std::string::npos) << log.text;
    }
    EXPECT_NE(log.details.find("layer 'product'"), std::string::npos) << log.details;
    e.engine = *loaded;
    runtime::Context context(e.engine);
    context.setProfile(0);
    checkRun(e, context, randomInputs(*e.imported));
}

} // namespace tw::test
