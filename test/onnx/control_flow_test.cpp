// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan: what the parser makes of subgraphs, and what the engine computes.
#include <tuple>

#include <gtest/gtest.h>

#include "models.h"

using namespace tw::test;

namespace {

constexpr int kBool = TensorProto::BOOL;

ModelProto model(int opset = 17)
{
    ModelProto m;
    m.set_ir_version(8);
    m.add_opset_import()->set_version(opset);
    m.mutable_graph()->set_name("g");
    return m;
}
GraphProto& graphAttr(NodeProto& node, char const* name)
{
    auto& a = *node.add_attribute();
    a.set_name(name);
    a.set_type(tw_onnx::AttributeProto::GRAPH);
    a.mutable_g()->set_name(name);
    return *a.mutable_g();
}
// `less` = sum(x) < 0
void addIsNegative(GraphProto& g, std::string const& x)
{
    addFloats(g, "zero", {}, {0});
    addInt(addNode(g, "ReduceSum", {x}, {"total"}), "keepdims", 0);
    addNode(g, "Less", {"total", "zero"}, {"negative"});
}

// y = sum(x) < 0 ? -x : x + 1, with names from around and from inside.
ModelProto ifModel()
{
    ModelProto m = model(11);
    GraphProto& g = *m.mutable_graph();
    addValue(*g.add_input(), "x", kFloat, {2});
    addValue(*g.add_output(), "y", kFloat, {2});
    addIsNegative(g, "x");
    NodeProto& n = addNode(g, "If", {"negative"}, {"y"}, "choice");
    GraphProto& then = graphAttr(n, "then_branch");
    addNode(then, "Neg", {"x"}, {"y"});
    addValue(*then.add_output(), "y", kFloat, {2});
    GraphProto& otherwise = graphAttr(n, "else_branch");
    addFloats(otherwise, "one", {1}, {1});
    addNode(otherwise, "Add", {"x", "one"}, {"result"});
    addValue(*otherwise.add_output(), "result", kFloat, {2});
    return m;
}

TEST(OnnxIf, TakesEitherBranch)
{
    Fixture f;
    ASSERT_TRUE(f.parse(ifModel())) << f.error();
    EXPECT_EQ(f.run({{"x", {1, 2}}, {"y", {}}}), "");
    EXPECT_EQ(f.results["y"], (std::vector<float>{2, 3}));
    EXPECT_EQ(f.run({{"x", {-1, -2}}, {"y", {}}}), "");
    EXPECT_EQ(f.results["y"], (std::vector<float>{1, 2}));
}

TEST(OnnxIf, AKnownConditionLeavesOneBranch)
{
    ModelProto m = ifModel();
    GraphProto& g = *m.mutable_graph();
    addIntegers(g, "no", {}, {0}, kBool);
    NodeProto& n = *g.mutable_node(g.node_size() - 1);
    n.set_input(0, "no");
    // The other branch could not even be imported.
    n.mutable_attribute(0)->mutable_g()->mutable_node(0)->set_op_type("Unheard");
    Fixture f;
    ASSERT_TRUE(f.parse(m)) << f.error();
    for (int i = 0; i < f.network->getNbLayers(); ++i)
        EXPECT_NE(f.network->getLayer(i)->getType(), nvinfer1::LayerType::kCONDITION);
    EXPECT_EQ(f.run({{"x", {1, 2}}, {"y", {}}}), "");
    EXPECT_EQ(f.results["y"], (std::vector<float>{2, 3}));
}

TEST(OnnxIf, RefusesByName)
{
    {
        ModelProto m = ifModel();
        auto& otherwise = *m.mutable_graph()->mutable_node(2)->mutable_attribute(1)->mutable_g();
        otherwise.mutable_initializer(0)->clear_dims();
        otherwise.mutable_initializer(0)->add_dims(3);
        otherwise.mutable_initializer(0)->add_dims(1);
        otherwise.mutable_initializer(0)->add_float_data(1);
        otherwise.mutable_initializer(0)->add_float_data(1);
        Fixture f;
        EXPECT_FALSE(f.parse(m));
        EXPECT_NE(f.error().find("must be equal"), std::string::npos) << f.error();
        EXPECT_NE(f.error().find("'choice'"), std::string::npos) << f.error();
    }
    {
        ModelProto m = ifModel();
        m.mutable_graph()->mutable_node(2)->mutable_attribute(0)->mutable_g()->mutable_node(0)->set_op_type("Unheard");
        Fixture f;
        EXPECT_FALSE(f.parse(m));
        EXPECT_NE(f.error().find("graph 'then_branch', node 0 (Unheard)"), std::string::npos) << f.error();
    }
    {
        ModelProto m = ifModel();
        m.mutable_graph()->mutable_node(2)->mutable_attribute()->RemoveLast();
        Fixture f;
        EXPECT_FALSE(f.parse(m));
        EXPECT_NE(f.error().find("'else_branch' must be a graph"), std::string::npos) << f.error();
    }
    {
        ModelProto m = ifModel();
        m.mutable_graph()->mutable_node(2)->mutable_attribute(0)->mutable_g()->mutable_node(0)->set_input(0, "nobody");
        Fixture f;
        EXPECT_FALSE(f.parse(m));
        EXPECT_NE(f.error().find("'nobody'"), std::string::npos) << f.error();
    }
}

// A squeeze of a dimension that is not known, as PyTorch writes it.
TEST(OnnxIf, ASqueezeThatMayBeNone)
{
    ModelProto m = ifModel();
    GraphProto& g = *m.mutable_graph();
    NodeProto& n = *g.mutable_node(2);
    n.mutable_attribute(0)->mutable_g()->mutable_node(0)->set_op_type("Squeeze");
    auto& otherwise = *n.mutable_attribute(1)->mutable_g();
    otherwise.mutable_node(0)->set_op_type("Identity");
    otherwise.mutable_node(0)->mutable_input()->RemoveLast();
    g.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_value(1);
    addInts(*n.mutable_attribute(0)->mutable_g()->mutable_node(0), "axes", {0});
    Fixture f;
    ASSERT_TRUE(f.parse(m)) << f.error();
    EXPECT_EQ(f.logger.count("is taken to be 1"), 1);
    EXPECT_EQ(f.network->getOutput(0)->getDimensions().nbDims, 0);
    EXPECT_EQ(f.run({{"x", {5}}, {"y", {}}}), "");
    EXPECT_EQ(f.results["y"], std::vector<float>{5});
}

// What a branch takes from around may stand behind it in the file.
TEST(OnnxIf, NodesInAnyOrder)
{
    ModelProto m = ifModel();
    GraphProto& g = *m.mutable_graph();
    g.mutable_node(2)->mutable_attribute(0)->mutable_g()->mutable_node(0)->set_input(0, "late");
    addNode(g, "Abs", {"x"}, {"late"});
    Fixture f;
    ASSERT_TRUE(f.parse(m)) << f.error();
    EXPECT_EQ(f.run({{"x", {-1, -2}}, {"y", {}}}), "");
    EXPECT_EQ(f.results["y"], (std::vector<float>{-1, -2}));
}

// y = the sum of the first three rows of x that are flagged, times w; if there are any, as detectors write it. What stands behind the If is given
// kernels for as many rows as there can be.
TEST(OnnxIf, LayersBehindABranchThatDataDecide)
{
    ModelProto m = model(13);
    GraphProto& g = *m.mutable_graph();
    addValue(*g.add_input(), "x", kFloat, {5, 4});
    addValue(*g.add_input(), "flags", kFloat, {5});
    addValue(*g.add_output(), "y", kFloat, {2});
    addIntegers(g, "front", {1}, {0});
    addIntegers(g, "none", {1}, {0});
    addFloats(g, "w", {4, 2}, {1, 0, 0, 1, 2, 0, 0, 2});
    addNode(g, "NonZero", {"flags"}, {"places"});
    addNode(g, "Squeeze", {"places", "front"}, {"at"});
    addNode(g, "Shape", {"at"}, {"count"});
    addNode(g, "Equal", {"count", "none"}, {"isEmpty"});
    NodeProto& n = addNode(g, "If", {"isEmpty"}, {"kept"}, "any");
    GraphProto& nothing = graphAttr(n, "then_branch");
    addIntegers(nothing, "nothing", {0}, {});
    addValue(*nothing.add_output(), "nothing", kInt64, {0});
    GraphProto& all = graphAttr(n, "else_branch");
    addNode(all, "Identity", {"at"}, {"same"});
    addValue(*all.add_output(), "same", kInt64, {-1});
    addIntegers(g, "three", {1}, {3});
    addNode(g, "Slice", {"kept", "front", "three"}, {"first"});
    addNode(g, "Gather", {"x", "first"}, {"rows"});
    addNode(g, "MatMul", {"rows", "w"}, {"product"});
    addInt(addNode(g, "ReduceSum", {"product", "front"}, {"y"}), "keepdims", 0);
    std::vector<float> const x{1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 0, 1, 1, 0, 1, 0, 2, 2, 2, 2};
    for (auto const& [flags, want] : {std::pair<std::vector<float>, std::vector<float>>{{1, 0, 0, 1, 0}, {10, 10}},
                                      {{0, 0, 0, 0, 0}, {0, 0}},
                                      {{1, 1, 1, 1, 1}, {26, 35}}}) {
        Fixture f;
        ASSERT_TRUE(f.parse(m)) << f.error();
        EXPECT_EQ(f.run({{"x", x}, {"flags", flags}, {"y", {}}}), "");
        EXPECT_EQ(f.results["y"], want);
        for (std::string const& message : f.logger.infos)
            EXPECT_EQ(message.find("has no size"), std::string::npos) << message;
    }
}

// state = state + x for M trips while sum(state) < `below`; each state before is stacked.
ModelProto loopModel(std::string const& count, std::string const& condition, float below)
{
    ModelProto m = model(13);
    GraphProto& g = *m.mutable_graph();
    addValue(*g.add_input(), "x", kFloat, {2});
    addValue(*g.add_output(), "last", kFloat, {2});
    addValue(*g.add_output(), "all", kFloat, {-1, 2});
    addIntegers(g, "three", {}, {3});
    addIntegers(g, "yes", {1}, {1}, kBool);
    addFloats(g, "start", {2}, {0, 1});
    NodeProto& n = addNode(g, "Loop", {count, condition, "start"}, {"last", "all"}, "adding");
    GraphProto& body = graphAttr(n, "body");
    addValue(*body.add_input(), "i", kInt64, {});
    addValue(*body.add_input(), "go_in", kBool, {});
    addValue(*body.add_input(), "state", kFloat, {2});
    addFloats(body, "below", {}, {below});
    addNode(body, "Add", {"state", "x"}, {"next"});
    addInt(addNode(body, "ReduceSum", {"next"}, {"total"}), "keepdims", 0);
    addNode(body, "Less", {"total", "below"}, {"go"});
    addNode(body, "Identity", {"state"}, {"now"});
    addValue(*body.add_output(), "go", kBool, {});
    addValue(*body.add_output(), "next", kFloat, {2});
    addValue(*body.add_output(), "now", kFloat, {2});
    return m;
}

std::vector<float> lastOf(ModelProto const& m, std::string& error)
{
    Fixture f;
    ModelProto alone = m;
    while (alone.graph().output_size() > 1)
        alone.mutable_graph()->mutable_output()->RemoveLast();
    error = f.parse(alone) ? f.run({{"x", {1, 2}}, {"last", {}}}) : f.error();
    return f.results["last"];
}

TEST(OnnxLoop, CountConditionAndBoth)
{
    std::string error;
    // The body's condition means nothing without the node's.
    EXPECT_EQ(lastOf(loopModel("three", "", 2), error), (std::vector<float>{3, 7})) << error;
    EXPECT_EQ(lastOf(loopModel("three", "yes", 100), error), (std::vector<float>{3, 7})) << error;
    EXPECT_EQ(lastOf(loopModel("three", "yes", 5), error), (std::vector<float>{2, 5})) << error;
    EXPECT_EQ(lastOf(loopModel("", "yes", 20), error), (std::vector<float>{7, 15})) << error;
    ModelProto m = loopModel("", "yes", 20);
    m.mutable_graph()->mutable_initializer(1)->set_int32_data(0, 0);
    EXPECT_EQ(lastOf(m, error), (std::vector<float>{0, 1})) << error;
}

TEST(OnnxLoop, StacksWhatEachTripGives)
{
    Fixture f;
    ASSERT_TRUE(f.parse(loopModel("three", "", 2))) << f.error();
    EXPECT_EQ(f.network->getOutput(1)->getDimensions().d[0], 3);
    EXPECT_EQ(f.run({{"x", {1, 2}}, {"last", {}}, {"all", {}}}), "");
    EXPECT_EQ(f.results["all"], (std::vector<float>{0, 1, 1, 3, 2, 5}));
}

// list = list ++ [state] for three trips, as scripts of PyTorch gather what they compute; `start`: rows at the beginning;
// `isRead`: state += the sum of the list's columns, so that the trips are of different shapes.
ModelProto growingModel(std::vector<float> const& start, bool isRead)
{
    ModelProto m = model(13);
    GraphProto& g = *m.mutable_graph();
    addValue(*g.add_input(), "x", kFloat, {2});
    addValue(*g.add_output(), "whole", kFloat, {-1, 2});
    addIntegers(g, "three", {}, {3});
    addFloats(g, "start", {int64_t(start.size() / 2), 2}, start);
    addFloats(g, "zero", {2}, {0, 0});
    NodeProto& n = addNode(g, "Loop", {"three", "", "start", "zero"}, {"whole", "last"}, "growing");
    GraphProto& body = graphAttr(n, "body");
    addValue(*body.add_input(), "i", kInt64, {});
    addValue(*body.add_input(), "go_in", kBool, {});
    addValue(*body.add_input(), "list", kFloat, {-1, 2});
    addValue(*body.add_input(), "state", kFloat, {2});
    addIntegers(body, "front", {1}, {0});
    addNode(body, "Identity", {"go_in"}, {"go"});
    addNode(body, "Add", {"state", "x"}, {"sum"});
    addNode(body, "Unsqueeze", {"sum", "front"}, {"row"});
    addInt(addNode(body, "Concat", {"list", "row"}, {"longer"}), "axis", 0);
    if (isRead)
        addInt(addNode(body, "ReduceSum", {"list", "front"}, {"columns"}), "keepdims", 0);
    addNode(body, "Add", {"sum", isRead ? "columns" : "zero"}, {"next"});
    for (char const* name : {"go", "longer", "next"})
        addValue(*body.add_output(), name, std::string(name) == "go" ? kBool : kFloat, {});
    return m;
}

TEST(OnnxLoop, ListsThatGrow)
{
    for (auto const& [start, isRead, want] :
         {std::tuple<std::vector<float>, bool, std::vector<float>>{{}, false, {1, 2, 2, 4, 3, 6}},
          {{7, 8}, false, {7, 8, 1, 2, 2, 4, 3, 6}},
          {{1, 0}, true, {1, 0, 1, 2, 3, 4, 6, 8}}}) {
        Fixture f;
        ASSERT_TRUE(f.parse(growingModel(start, isRead))) << f.error();
        EXPECT_EQ(f.network->getOutput(0)->getDimensions().d[0], int(want.size() / 2));
        EXPECT_EQ(f.run({{"x", {1, 2}}, {"whole", {}}}), "");
        EXPECT_EQ(f.results["whole"], want);
    }
    // Of trips that are not known there are no copies.
    ModelProto m = growingModel({1, 0}, true);
    GraphProto& g = *m.mutable_graph();
    addValue(*g.add_input(), "count", kInt64, {});
    g.mutable_node(0)->set_input(0, "count");
    Fixture f;
    EXPECT_FALSE(f.parse(m));
    EXPECT_NE(f.error().find("change their type or shape"), std::string::npos) << f.error();
}

TEST(OnnxLoop, RefusesByName)
{
    auto refused = [](ModelProto const& m, char const* part) {
        Fixture f;
        EXPECT_FALSE(f.parse(m)) << part;
        EXPECT_NE(f.error().find(part), std::string::npos) << f.error();
        EXPECT_NE(f.error().find("'adding'"), std::string::npos) << f.error();
    };
    refused(loopModel("", "", 2), "never ends");
    ModelProto grows = loopModel("three", "", 2);
    auto& body = *grows.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g();
    addInt(addNode(body, "Concat", {"next", "next"}, {"twice"}), "axis", 0);
    body.mutable_output(1)->set_name("twice");
    refused(grows, "change their type or shape");
    ModelProto short_ = loopModel("three", "", 2);
    short_.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g()->mutable_output()->RemoveLast();
    refused(short_, "gives 2 values, the node needs 3");
    ModelProto inputs = loopModel("three", "", 2);
    addValue(*inputs.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g()->add_input(), "more", kFloat,
             {});
    refused(inputs, "has 4 inputs, the node needs 3");
}

// The guide's example: the sum of the even elements, by an If in a Loop, as PyTorch exports the script.
TEST(OnnxLoop, SumOfEvenElements)
{
    ModelProto m = model(13);
    GraphProto& g = *m.mutable_graph();
    addValue(*g.add_input(), "items", kFloat, {4});
    addValue(*g.add_output(), "sum", kFloat, {1});
    addIntegers(g, "four", {}, {4});
    addIntegers(g, "yes", {}, {1}, kBool);
    addFloats(g, "start", {1}, {0});
    GraphProto& body = graphAttr(addNode(g, "Loop", {"four", "yes", "start"}, {"sum"}, "items_loop"), "body");
    addValue(*body.add_input(), "i", kInt64, {});
    addValue(*body.add_input(), "go_in", kBool, {});
    addValue(*body.add_input(), "s", kFloat, {1});
    addFloats(body, "two", {}, {2});
    addFloats(body, "zero", {}, {0});
    addIntegers(body, "true", {}, {1}, kBool);
    addInt(addNode(body, "Gather", {"items", "i"}, {"c"}), "axis", 0);
    addInt(addNode(body, "Mod", {"c", "two"}, {"rest"}), "fmod", 1);
    addNode(body, "Equal", {"rest", "zero"}, {"even"});
    addNode(body, "Identity", {"true"}, {"go"});
    NodeProto& choice = addNode(body, "If", {"even"}, {"next"});
    GraphProto& then = graphAttr(choice, "then_branch");
    addNode(then, "Add", {"s", "c"}, {"more"});
    addValue(*then.add_output(), "more", kFloat, {1});
    GraphProto& otherwise = graphAttr(choice, "else_branch");
    addNode(otherwise, "Identity", {"s"}, {"same"});
    addValue(*otherwise.add_output(), "same", kFloat, {1});
    addValue(*body.add_output(), "go", kBool, {});
    addValue(*body.add_output(), "next", kFloat, {1});
    Fixture f;
    ASSERT_TRUE(f.parse(m)) << f.error();
    EXPECT_EQ(f.run({{"items", {1, 2, 3, 4}}, {"sum", {}}}), "");
    EXPECT_EQ(f.results["sum"], (std::vector<float>{6}));
}

// Running sums of the columns of x from the right; stacked in the order of the trips along axis 1, and backwards.
TEST(OnnxScan, AxesAndDirections)
{
    ModelProto m = model(11);
    GraphProto& g = *m.mutable_graph();
    addValue(*g.add_input(), "x", kFloat, {2, 3});
    addValue(*g.add_output(), "last", kFloat, {2});
    addValue(*g.add_output(), "sums", kFloat, {2, 3});
    addValue(*g.add_output(), "back", kFloat, {3, 2});
    addFloats(g, "start", {2}, {0, 0});
    NodeProto& n = addNode(g, "Scan", {"start", "x"}, {"last", "sums", "back"}, "scan");
    addInt(n, "num_scan_inputs", 1);
    addInts(n, "scan_input_axes", {-1});
    addInts(n, "scan_input_directions", {1});
    addInts(n, "scan_output_axes", {1, 0});
    addInts(n, "scan_output_directions", {0, 1});
    GraphProto& body = graphAttr(n, "body");
    addValue(*body.add_input(), "state", kFloat, {2});
    addValue(*body.add_input(), "column", kFloat, {2});
    addNode(body, "Add", {"state", "column"}, {"next"});
    addNode(body, "Identity", {"next"}, {"copy"});
    for (char const* name : {"next", "copy", "next"})
        addValue(*body.add_output(), name, kFloat, {2});
    Fixture f;
    ASSERT_TRUE(f.parse(m)) << f.error();
    EXPECT_EQ(f.run({{"x", {1, 2, 3, 10, 20, 30}}, {"last", {}}, {"sums", {}}, {"back", {}}}), "");
    EXPECT_EQ(f.results["last"], (std::vector<float>{6, 60}));
    EXPECT_EQ(f.results["sums"], (std::vector<float>{3, 5, 6, 30, 50, 60}));
    EXPECT_EQ(f.results["back"], (std::vector<float>{6, 60, 5, 50, 3, 30}));
}

} // namespace
