// SPDX-License-Identifier: Apache-2.0
// IParser::getError() says why, where the network is what refuses: by layer, tensor and numbers.
#include "api/client.h"
#include "models.h"

namespace tw::test {

namespace {

TEST(OnnxParserErrors, CarryTheReasonOfTheNetwork)
{
    ModelProto m = convModel();
    m.mutable_graph()->mutable_node(0)->set_output(0, "t"); // [1,1,2,2]
    addFloats(*m.mutable_graph(), "v", {1, 1, 3, 2}, floats(6));
    addNode(*m.mutable_graph(), "Add", {"t", "v"}, {"y"}, "sum");
    for (bool const hasRecorder : {false, true}) {
        Fixture f;
        CountingRecorder recorder;
        if (hasRecorder)
            f.network->setErrorRecorder(&recorder);
        ASSERT_FALSE(f.parse(m));
        ASSERT_EQ(f.parser->getNbErrors(), 1);
        for (char const* part : {"node 1 'sum' (Add)", "layer 'sum_1' is not valid", "'t' [1, 1, 2, 2]", "[1, 1, 3, 2]",
                                 "input 'conv1' (f32[1,1,2,2])"})
            EXPECT_NE(f.error().find(part), std::string::npos) << part << ": " << f.error();
        EXPECT_EQ(f.error().find("message before"), std::string::npos) << f.error();
        EXPECT_EQ(f.network->getErrorRecorder(), hasRecorder ? &recorder : nullptr);
        if (hasRecorder) {
            EXPECT_GT(recorder.getNbErrors(), 0) << "it hears as ever";
        }
    }
}

} // namespace

} // namespace tw::test
