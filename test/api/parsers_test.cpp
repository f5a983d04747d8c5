// SPDX-License-Identifier: Apache-2.0
// The UFF parser: its objects live and die by the rules, and say what they cannot do yet.
#include <memory>

#include <gtest/gtest.h>

#include "NvUffParser.h"
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

TEST_F(Parsers, UffComesLater)
{
    nvuffparser::IUffParser* parser = nvuffparser::createUffParser();
    ASSERT_NE(parser, nullptr);
    parser->setErrorRecorder(&recorder);
    EXPECT_EQ(parser->getUffRequiredVersionMajor(), 0);
    EXPECT_EQ(parser->getUffRequiredVersionMinor(), 6);
    EXPECT_EQ(parser->getUffRequiredVersionPatch(), 9);
    EXPECT_TRUE(parser->registerInput("in", Dims3(1, 28, 28), nvuffparser::UffInputOrder::kNCHW));
    EXPECT_TRUE(parser->registerOutput("out"));
    EXPECT_EQ(logger.errors(), 0);
    EXPECT_FALSE(parser->registerInput(nullptr, Dims3(1, 28, 28), nvuffparser::UffInputOrder::kNCHW));
    EXPECT_FALSE(parser->registerInput("in", Dims{9, {}}, nvuffparser::UffInputOrder::kNCHW));
    EXPECT_FALSE(parser->registerOutput(nullptr));
    EXPECT_FALSE(parser->parse("model.uff", net));
    EXPECT_TRUE(contains(logger.lastError(), "IUffParser::parse"));
    EXPECT_FALSE(parser->parseBuffer(nullptr, 3, net));
    EXPECT_EQ(logger.errors(), 5);
    EXPECT_EQ(recorder.getNbErrors(), 5);
    parser->destroy();
    EXPECT_EQ(recorder.references, 0);
    nvuffparser::shutdownProtobufLibrary();
    std::unique_ptr<nvuffparser::IUffParser> other(static_cast<nvuffparser::IUffParser*>(createNvUffParser_INTERNAL()));
    EXPECT_NE(other, nullptr);
}

TEST_F(Parsers, FieldMapKeepsItsArguments)
{
    int32_t const value[] = {1, 2};
    nvuffparser::FieldMap const map("stride", value, nvuffparser::FieldType::kINT32, 2);
    EXPECT_STREQ(map.name, "stride");
    EXPECT_EQ(map.data, value);
    EXPECT_EQ(map.type, nvuffparser::FieldType::kINT32);
    EXPECT_EQ(map.length, 2);
}

} // namespace
