// SPDX-License-Identifier: Apache-2.0
// What the parser makes of a model: names, outputs, and the layers behind nodes whose meaning has edges.
#include "models.h"

#include <gtest/gtest.h>

using namespace tw::test;

namespace {

// The graph's name stays in the file, and nodes without one are named after what they make.
TEST(OnnxParser, NamesOfNetworkAndNodes)
{
    ModelProto m = convModel();
    m.mutable_graph()->mutable_node(0)->clear_name();
    m.mutable_graph()->mutable_node(0)->set_output(0, "t");
    addNode(*m.mutable_graph(), "Relu", {"t"}, {"y"});
    Fixture f;
    ASSERT_TRUE(f.parse(m)) << f.error();
    EXPECT_STREQ(f.network->getName(), "Unnamed Network 0");
    ASSERT_EQ(f.network->getNbLayers(), 2);
    EXPECT_STREQ(f.network->getLayer(0)->getName(), "node_of_t");
    EXPECT_STREQ(f.network->getLayer(1)->getName(), "node_of_y");

    Fixture named;
    named.network->setName("mine");
    ASSERT_TRUE(named.parse(m)) << named.error();
    EXPECT_STREQ(named.network->getName(), "mine");
}

// Outputs that are other tensors' values: each is a tensor of its own, under the model's name. A network cannot have an
// input and an output of one name, so the input takes another.
TEST(OnnxParser, OutputsThatAreOtherTensorsToo)
{
    ModelProto m = convModel();
    GraphProto& g = *m.mutable_graph();
    addNode(g, "Identity", {"y"}, {"z"});
    addNode(g, "Identity", {"x"}, {"same"});
    addNode(g, "Identity", {"w"}, {"weights"});
    std::vector<int64_t> const image{1, 1, 4, 4}, result{1, 1, 2, 2}, kernel{1, 1, 3, 3};
    addValue(*g.add_output(), "x", TensorProto::FLOAT, image);
    addValue(*g.add_output(), "z", TensorProto::FLOAT, result);
    addValue(*g.add_output(), "same", TensorProto::FLOAT, image);
    addValue(*g.add_output(), "w", TensorProto::FLOAT, kernel);
    addValue(*g.add_output(), "weights", TensorProto::FLOAT, kernel);
    addValue(*g.add_output(), "y", TensorProto::FLOAT, result); // once more
    Fixture f;
    ASSERT_TRUE(f.parse(m)) << f.error();
    EXPECT_STREQ(f.network->getInput(0)->getName(), "__x");
    EXPECT_EQ(f.logger.count("'__x'"), 1);
    EXPECT_EQ(f.logger.count("output 'y' is listed twice"), 1);
    std::vector<std::string> names;
    for (int i = 0; i < f.network->getNbOutputs(); ++i)
        names.push_back(f.network->getOutput(i)->getName());
    EXPECT_EQ(names, (std::vector<std::string>{"y", "x", "z", "same", "w", "weights"}));
    EXPECT_EQ(f.run({{"__x", floats(16)}, {"y", {}}, {"x", {}}, {"z", {}}, {"same", {}}, {"w", {}}, {"weights", {}}}),
              "");
    EXPECT_EQ(f.results["x"], floats(16));
    EXPECT_EQ(f.results["same"], floats(16));
    EXPECT_EQ(f.results["w"], floats(9));
    EXPECT_EQ(f.results["weights"], floats(9));
    EXPECT_EQ(f.results["y"].size(), 4u);
    EXPECT_EQ(f.results["y"], f.results["z"]);

    ModelProto taken = m; // the other name is there already
    addValue(*taken.mutable_graph()->add_input(), "__x", TensorProto::FLOAT, image);
    Fixture g2;
    ASSERT_TRUE(g2.parse(taken)) << g2.error();
    EXPECT_STREQ(g2.network->getInput(0)->getName(), "____x");
}

} // namespace
