// SPDX-License-Identifier: Apache-2.0
// Conditionals and loops through plan and executor.
#include "engine_run.h"
#include "ir/text.h"
#include "ops/elementwise/op.h"
#include "ops/loop/op.h"

namespace tw::test {

namespace {

using ops::activation::Kind;
using Operation = ops::elementwise::Operation;

ir::Value* binary(GraphMaker& m, Operation o, ir::Value* a, ir::Value* b, char const* name)
{
    return m.add(ops::elementwise::def(), ops::elementwise::Attrs(o), {a, b}, name);
}

ir::Value* scalar(GraphMaker& m, char const* name, double v)
{
    return m.constant(name, {}, {v}, DataType::kInt32);
}

ir::Node* node(GraphMaker& m, ir::OpDef const& op, int64_t carried, std::vector<ir::Value*> in, GraphMaker& first,
               GraphMaker& second, char const* name)
{
    std::vector<std::unique_ptr<ir::Graph>> regions;
    regions.push_back(first.take());
    regions.push_back(second.take());
    std::unique_ptr<ir::AttrsBase> attrs = op.makeAttrs();
    if (&op == &ops::loop::def()) {
        static_cast<ops::loop::Attrs&>(*attrs).carried = carried;
        in.insert(in.begin() + carried, nullptr); // no count
    }
    return m.addNode(op, std::move(attrs), std::move(in), name, std::move(regions));
}

// (i, acc) <- while (i < limit) (i + 1, tanh(acc) + step)
ir::Node* countingLoop(GraphMaker& m, ir::Value* i, ir::Value* acc, ir::Value* limit, ir::Value* step, char const* name)
{
    GraphMaker condition, body;
    for (GraphMaker* r : {&condition, &body}) {
        r->input("i", {}, DataType::kInt32);
        r->input("acc", acc->shape);
        r->input("limit", {}, DataType::kInt32);
        r->input("step", acc->shape);
    }
    condition.output(binary(condition, Operation::kLess, condition.g.inputs[0], condition.g.inputs[2], "less"));
    body.output(binary(body, Operation::kSum, body.g.inputs[0], scalar(body, "one", 1), "next"));
    body.output(binary(body, Operation::kSum, activation(body, body.g.inputs[1], "tanh"), body.g.inputs[3], "add"));
    return node(m, ops::loop::def(), 2, {i, acc, limit, step}, condition, body, name);
}

Tensor number(DataType type, double v)
{
    Tensor t(type, {});
    t.ref().set(0, v);
    return t;
}

} // namespace

TEST(Region, Conditional)
{
    GraphMaker m, yes, no;
    yes.input("x", ir::shapeOf({4}));
    no.input("x", ir::shapeOf({4}));
    yes.output(activation(yes, activation(yes, yes.g.inputs[0], "t1"), "t2"));
    no.output(no.g.inputs[0]); // an empty branch passes through
    ir::Value* c = m.input("c", {}, DataType::kBool);
    ir::Value* x = activation(m, m.input("x", ir::shapeOf({4})), "before", Kind::kSigmoid);
    ir::Node* n = node(m, ops::conditional::def(), 0, {c, x}, yes, no, "if");
    m.output(activation(m, n->outputs[0], "after", Kind::kSigmoid), "y");
    auto e = makeEngine(m);
    ASSERT_TRUE(e.ok()) << e.error().message;
    for (double taken : {0.0, 1.0}) {
        auto inputs = randomInputs(*e->imported);
        inputs[0].ref().set(0, taken);
        checkTwice(*e, inputs);
        EXPECT_EQ(whyNotCaptured(*e, inputs), "layer 'if' is a loop or a conditional, whose way the host decides");
    }
}

TEST(Region, TheOtherBranchDoesNotRun)
{
    GraphMaker m, yes, no, condition, body;
    yes.input("b", {}, DataType::kBool);
    no.input("b", {}, DataType::kBool);
    yes.output(yes.g.inputs[0]);
    // A loop without end: running it is an error.
    condition.output(condition.input("b", {}, DataType::kBool));
    body.output(body.input("b", {}, DataType::kBool));
    no.output(node(no, ops::loop::def(), 1, {no.g.inputs[0]}, condition, body, "endless")->outputs[0]);
    ir::Value* c = m.input("c", {}, DataType::kBool);
    ir::Value* b = m.input("b", {}, DataType::kBool);
    m.output(node(m, ops::conditional::def(), 0, {c, b}, yes, no, "if")->outputs[0], "y");
    auto e = makeEngine(m);
    ASSERT_TRUE(e.ok()) << e.error().message;
    std::vector<Tensor> inputs;
    inputs.push_back(number(DataType::kBool, 1));
    inputs.push_back(number(DataType::kBool, 1));
    checkTwice(*e, inputs);
    inputs[0].ref().set(0, 0);
    runtime::Context context(e->engine);
    context.setProfile(0);
    auto endless = runEngine(context, refsOf(inputs));
    ASSERT_FALSE(endless.ok());
    EXPECT_NE(endless.error().message.find("endless"), std::string::npos) << endless.error().message;
}

TEST(Region, LoopWithCapturesAndZeroTrips)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({5}));
    ir::Value* limit = m.input("limit", {}, DataType::kInt32);
    ir::Value* step = activation(m, m.input("step", ir::shapeOf({5})), "before");
    ir::Node* n = countingLoop(m, scalar(m, "zero", 0), x, limit, step, "loop");
    m.output(n->outputs[0], "count");
    m.output(activation(m, n->outputs[1], "after"), "y");
    auto e = makeEngine(m);
    ASSERT_TRUE(e.ok()) << e.error().message;
    for (double trips : {0.0, 1.0, 2.0, 17.0}) {
        auto inputs = randomInputs(*e->imported);
        inputs[1].ref().set(0, trips);
        checkTwice(*e, inputs);
        EXPECT_EQ(whyNotCaptured(*e, inputs), "layer 'loop' is a loop or a conditional, whose way the host decides");
    }
}

TEST(Region, CarriedValuesThatChangePlaces)
{
    GraphMaker m, condition, body;
    for (GraphMaker* r : {&condition, &body}) {
        r->input("i", {}, DataType::kInt32);
        r->input("a", ir::shapeOf({3}));
        r->input("b", ir::shapeOf({3}));
    }
    condition.output(binary(condition, Operation::kLess, condition.g.inputs[0], scalar(condition, "three", 3), "less"));
    body.output(binary(body, Operation::kSum, body.g.inputs[0], scalar(body, "one", 1), "next"));
    body.output(body.g.inputs[2]);
    body.output(body.g.inputs[1]);
    ir::Value* a = m.input("a", ir::shapeOf({3}));
    ir::Value* b = m.input("b", ir::shapeOf({3}));
    ir::Node* n = node(m, ops::loop::def(), 3, {scalar(m, "zero", 0), a, b}, condition, body, "swap");
    for (ir::Value* v : n->outputs)
        m.output(v, "y" + std::to_string(v->producerIndex));
    checkEngine(m, randomInputs(m.g));
}

TEST(Region, LoopInLoopInConditional)
{
    GraphMaker m, yes, no, condition, body;
    for (GraphMaker* r : {&yes, &no, &condition, &body}) {
        if (r == &condition || r == &body)
            r->input("i", {}, DataType::kInt32);
        r->input("x", ir::shapeOf({4}));
        r->input("limit", {}, DataType::kInt32);
        r->input("step", ir::shapeOf({4}));
    }
    condition.output(binary(condition, Operation::kLess, condition.g.inputs[0], condition.g.inputs[2], "less"));
    body.output(binary(body, Operation::kSum, body.g.inputs[0], scalar(body, "one", 1), "next"));
    body.output(
        countingLoop(body, scalar(body, "zero", 0), body.g.inputs[1], body.g.inputs[2], body.g.inputs[3], "inner")
            ->outputs[1]);
    yes.output(node(yes, ops::loop::def(), 2,
                    {scalar(yes, "zero", 0), yes.g.inputs[0], yes.g.inputs[1], yes.g.inputs[2]}, condition, body,
                    "outer")
                   ->outputs[1]);
    no.output(activation(no, no.g.inputs[2], "step_only"));
    ir::Value* c = m.input("c", {}, DataType::kBool);
    ir::Value* x = m.input("x", ir::shapeOf({4}));
    ir::Value* limit = m.input("limit", {}, DataType::kInt32);
    ir::Value* step = m.input("step", ir::shapeOf({4}));
    ir::Node* n = node(m, ops::conditional::def(), 0, {c, x, limit, step}, yes, no, "if");
    m.output(activation(m, n->outputs[0], "after"), "y");
    auto e = makeEngine(m);
    ASSERT_TRUE(e.ok()) << e.error().message;
    for (double taken : {0.0, 1.0})
        for (double trips : {0.0, 3.0}) {
            auto inputs = randomInputs(*e->imported);
            inputs[0].ref().set(0, taken);
            inputs[2].ref().set(0, trips);
            checkTwice(*e, inputs);
        }
}

TEST(Region, DynamicShapes)
{
    GraphMaker m;
    ir::Shape const shape{ir::Dim::symbol("N"), 3};
    ir::Value* x = m.input("x", shape);
    ir::Value* limit = m.input("limit", {}, DataType::kInt32);
    ir::Value* step = m.input("step", shape);
    m.output(countingLoop(m, scalar(m, "zero", 0), x, limit, step, "loop")->outputs[1], "y");
    auto e = makeEngine(m, {{{"N", {1, 4, 9}}}});
    ASSERT_TRUE(e.ok()) << e.error().message;
    for (int64_t n : {1, 4, 5, 9}) {
        auto inputs = randomInputs(*e->imported, {{"N", n}});
        inputs[1].ref().set(0, 3);
        checkTwice(*e, inputs);
    }
}

TEST(Region, LayersInALoopAreFusedAndTuned)
{
    auto g = ir::parse(R"(graph "g" imported { input %0 "x" f32[1,4,6,6] input %1 "w" f32[1,4,6,6]
        const %2 "n" i32[] = [3]
        node 0 "loop" loop(%0, %2, %1) {carried = 1}
          region graph "condition" imported { input %0 "x" f32[1,4,6,6] input %1 "w" f32[1,4,6,6]
            const %2 "yes" b[] = [1] output %2 }
          region graph "body" imported { input %0 "x" f32[1,4,6,6] input %1 "w" f32[1,4,6,6]
            const %2 "k" f32[4,4,1,1] = splat 0.125
            node 0 "conv" convolution(%0, %2) {strides = [1, 1], dilations = [1, 1], pre_padding = [0, 0], post_padding = [0, 0]} -> %3 "c" f32[1,4,6,6]
            node 1 "relu" activation(%3) {kind = 0, alpha = 0, beta = 0} -> %4 "r" f32[1,4,6,6]
            node 2 "tanh" activation(%1) {kind = 2, alpha = 0, beta = 0} -> %5 "t" f32[1,4,6,6]
            node 3 "add" elementwise(%4, %5) {operation = 0} -> %6 "y" f32[1,4,6,6] output %6 }
          -> %3 "y" f32[1,4,6,6]
        output %3 })",
                       ops::find);
    ASSERT_TRUE(g.ok()) << g.error().message;
    GraphMaker m;
    m.g = std::move(**g);
    auto e = makeEngine(m);
    ASSERT_TRUE(e.ok()) << e.error().message;
    checkTwice(*e, randomInputs(*e->imported));
    auto const& steps = e->engine->block().steps;
    ASSERT_EQ(steps.size(), 2u) << "tanh stands in front of the loop";
    std::string names;
    for (runtime::LoadedStep const& step : steps[1].regions[1]->steps) {
        EXPECT_NE(step.tactic, nullptr);
        names += step.node->op->convertsFormat ? "" : step.node->name + ";";
    }
    EXPECT_EQ(names, "conv + relu + add;");
}

} // namespace tw::test
