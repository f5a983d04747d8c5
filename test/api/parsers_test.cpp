// SPDX-License-Identifier: Apache-2.0
// The old parsers and the plugin library: their objects live and die by the rules, and say what they cannot do yet.
#include <memory>

#include <gtest/gtest.h>

#include "NvCaffeParser.h"
#include "api/client.h"
#include "api/entry.h"
#include "api/network/network.h"

using namespace nvinfer1;
using namespace tw::test;

namespace {

struct Parsers : testing::Test
{
    KeepingLogger logger;
    tw::api::LoggerUse use{&logger};
    CountingRecorder recorder;
    tw::api::NetworkObject object{tw::api::Reporter(&logger)};
    INetworkDefinition& net = object;
};

TEST_F(Parsers, CaffeComesLater)
{
    nvcaffeparser1::ICaffeParser* parser = nvcaffeparser1::createCaffeParser();
    ASSERT_NE(parser, nullptr);
    parser->setErrorRecorder(&recorder);
    EXPECT_EQ(recorder.references, 1);
    EXPECT_EQ(parser->getErrorRecorder(), &recorder);
    parser->setPluginFactoryV2(nullptr);
    parser->setPluginNamespace(nullptr);
    parser->setProtobufBufferSize(0);
    EXPECT_EQ(parser->parse("deploy.prototxt", "model.caffemodel", net, DataType::kFLOAT), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "ICaffeParser::parse"));
    EXPECT_EQ(parser->parse(nullptr, nullptr, net, DataType::kFLOAT), nullptr);
    EXPECT_EQ(parser->parseBuffers(nullptr, 7, nullptr, 7, net, DataType::kFLOAT), nullptr);
    EXPECT_EQ(parser->parseBinaryProto("mean.binaryproto"), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "parseBinaryProto: 'mean.binaryproto' is not read"));
    EXPECT_TRUE(contains(logger.lastError(), "blobproto_to_array"));
    EXPECT_EQ(parser->parseBinaryProto(nullptr), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "parseBinaryProto: the name is null"));
    EXPECT_EQ(logger.errors(), 5);
    EXPECT_EQ(recorder.getNbErrors(), 5);
    EXPECT_EQ(recorder.getErrorCode(0), ErrorCode::kUNSUPPORTED_STATE);
    EXPECT_EQ(recorder.getErrorCode(4), ErrorCode::kINVALID_ARGUMENT);
    parser->destroy();
    EXPECT_EQ(recorder.references, 0);
    nvcaffeparser1::shutdownProtobufLibrary();
    std::unique_ptr<nvcaffeparser1::ICaffeParser> other(
        static_cast<nvcaffeparser1::ICaffeParser*>(createNvCaffeParser_INTERNAL()));
    EXPECT_NE(other, nullptr);
}

// What needs no network can be called before there is a builder, and so a logger.
TEST(ParsersAlone, TheRecorderOfTheRegistryHearsOfErrors)
{
    ASSERT_EQ(getLogger(), nullptr);
    CountingRecorder ofAll, own;
    getPluginRegistry()->setErrorRecorder(&ofAll);
    nvcaffeparser1::ICaffeParser* parser = nvcaffeparser1::createCaffeParser();
    EXPECT_EQ(parser->parseBinaryProto("mean.binaryproto"), nullptr);
    ASSERT_EQ(ofAll.getNbErrors(), 1);
    EXPECT_TRUE(contains(ofAll.getErrorDesc(0), "mean.binaryproto"));
    parser->setErrorRecorder(&own);
    EXPECT_EQ(parser->parseBinaryProto("mean.binaryproto"), nullptr);
    EXPECT_EQ(own.getNbErrors(), 1);
    EXPECT_EQ(ofAll.getNbErrors(), 1);
    parser->destroy();
    getPluginRegistry()->setErrorRecorder(nullptr);
}

} // namespace
