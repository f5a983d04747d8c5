// SPDX-License-Identifier: Apache-2.0
#include "api/plugin/registry.h"

#include <thread>

#include <gtest/gtest.h>

#include "api/client.h"
#include "api/entry.h"

using namespace nvinfer1;
using namespace tw::test;

namespace {

struct Creator final : IPluginCreator
{
    explicit Creator(char const* n = "Name", char const* v = "1") : name(n), version(v) {}
    char const* getPluginName() const noexcept override { return name; }
    char const* getPluginVersion() const noexcept override { return version; }
    PluginFieldCollection const* getFieldNames() noexcept override { return nullptr; }
    IPluginV2* createPlugin(char const*, PluginFieldCollection const*) noexcept override { return nullptr; }
    IPluginV2* deserializePlugin(char const*, void const*, size_t) noexcept override { return nullptr; }
    void setPluginNamespace(char const* n) noexcept override { space = n; }
    char const* getPluginNamespace() const noexcept override { return space.c_str(); }
    char const* name;
    char const* version;
    std::string space;
};

struct Registry : testing::Test
{
    KeepingLogger logger;
    tw::api::LoggerUse use{&logger};
    CountingRecorder recorder;
    tw::api::PluginRegistry registry;
};

TEST_F(Registry, KeyIsNameVersionNamespace)
{
    Creator a("A"), a2("A", "2"), other("A");
    EXPECT_TRUE(registry.registerCreator(a, ""));
    EXPECT_TRUE(registry.registerCreator(a2, ""));
    EXPECT_TRUE(registry.registerCreator(other, "mine"));
    EXPECT_EQ(other.space, "mine");
    EXPECT_EQ(registry.getPluginCreator("A", "1", ""), &a);
    EXPECT_EQ(registry.getPluginCreator("A", "2", ""), &a2);
    EXPECT_EQ(registry.getPluginCreator("A", "1", "mine"), &other);
    EXPECT_EQ(registry.getPluginCreator("A", "3", ""), nullptr);
    EXPECT_EQ(registry.getPluginCreator("A", "2", "mine"), nullptr);
    int32_t n = -1;
    IPluginCreator* const* list = registry.getPluginCreatorList(&n);
    ASSERT_EQ(n, 3);
    EXPECT_EQ(list[0], &a);
    EXPECT_EQ(list[2], &other);
    EXPECT_TRUE(logger.lines.empty());
}

TEST_F(Registry, DuplicatesAreRefusedWithAnError)
{
    Creator a("A"), again("A");
    registry.setErrorRecorder(&recorder);
    EXPECT_EQ(recorder.references, 1);
    EXPECT_EQ(registry.getErrorRecorder(), &recorder);
    EXPECT_TRUE(registry.registerCreator(a, "s"));
    EXPECT_FALSE(registry.registerCreator(again, "s"));
    EXPECT_EQ(again.space, "") << "a refused creator is left alone";
    EXPECT_TRUE(contains(logger.lastError(), "'A' version '1' namespace 's' is registered already"));
    EXPECT_EQ(recorder.getNbErrors(), 1);
    EXPECT_EQ(registry.getPluginCreator("A", "1", "s"), &a);
    registry.setErrorRecorder(nullptr);
    EXPECT_EQ(recorder.references, 0);
}

TEST_F(Registry, Deregister)
{
    Creator a("A"), b("B");
    registry.registerCreator(a, "");
    registry.registerCreator(b, "");
    EXPECT_TRUE(registry.deregisterCreator(a));
    EXPECT_FALSE(registry.deregisterCreator(a));
    EXPECT_EQ(registry.getPluginCreator("A", "1", ""), nullptr);
    EXPECT_EQ(registry.getPluginCreator("B", "1", ""), &b);
    EXPECT_TRUE(registry.registerCreator(a, ""));
    registry.deregisterCreator(a);
    registry.deregisterCreator(b);
    int32_t n = -1;
    EXPECT_EQ(registry.getPluginCreatorList(&n), nullptr);
    EXPECT_EQ(n, 0);
}

TEST_F(Registry, BadArguments)
{
    Creator noName(nullptr), noVersion("A", nullptr), empty("");
    Creator a;
    EXPECT_FALSE(registry.registerCreator(noName, ""));
    EXPECT_FALSE(registry.registerCreator(noVersion, ""));
    EXPECT_FALSE(registry.registerCreator(empty, ""));
    EXPECT_FALSE(registry.registerCreator(a, nullptr));
    std::string const endless(5000, 'x');
    Creator longName(endless.c_str());
    EXPECT_FALSE(registry.registerCreator(longName, ""));
    EXPECT_EQ(registry.getPluginCreator(nullptr, "1", ""), nullptr);
    EXPECT_EQ(registry.getPluginCreator("A", nullptr, ""), nullptr);
    EXPECT_EQ(registry.getPluginCreator("A", "1", nullptr), nullptr);
    EXPECT_EQ(registry.getPluginCreatorList(nullptr), nullptr);
    EXPECT_EQ(logger.errors(), 9);
}

TEST_F(Registry, ThreadsMayRegister)
{
    std::vector<std::string> names;
    for (int i = 0; i < 64; ++i)
        names.push_back("P" + std::to_string(i));
    std::vector<std::unique_ptr<Creator>> creators;
    for (auto const& n : names)
        creators.push_back(std::make_unique<Creator>(n.c_str()));
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = t; i < 64; i += 4) {
                EXPECT_TRUE(registry.registerCreator(*creators[size_t(i)], ""));
                EXPECT_NE(registry.getPluginCreator(names[size_t(i)].c_str(), "1", ""), nullptr);
            }
        });
    for (auto& t : threads)
        t.join();
    int32_t n = 0;
    registry.getPluginCreatorList(&n);
    EXPECT_EQ(n, 64);
}

TEST(Entry, VersionRegistryLogger)
{
    EXPECT_EQ(getInferLibVersion(), 8503);
    EXPECT_EQ(tensorwright_abi_8_5, 0);
    ASSERT_NE(getPluginRegistry(), nullptr);
    EXPECT_EQ(getBuilderPluginRegistry(EngineCapability::kSTANDARD), getPluginRegistry());
    ASSERT_NE(getBuilderPluginRegistry(EngineCapability::kSAFETY), nullptr);
    EXPECT_NE(getBuilderPluginRegistry(EngineCapability::kSAFETY), getPluginRegistry());
    EXPECT_EQ(getBuilderPluginRegistry(EngineCapability::kDLA_STANDALONE), nullptr);
    KeepingLogger one, two;
    EXPECT_EQ(getLogger(), nullptr);
    auto first = std::make_unique<tw::api::LoggerUse>(&one);
    {
        tw::api::LoggerUse second(&two);
        EXPECT_EQ(getLogger(), &one);
        first.reset();
        EXPECT_EQ(getLogger(), &two) << "the first user is gone, its logger may be too";
    }
    EXPECT_EQ(getLogger(), nullptr);
}

TEST(Entry, ClientVersion)
{
    KeepingLogger logger;
    EXPECT_TRUE(tw::api::checkClientVersion(&logger, 8503, "createX"));
    EXPECT_TRUE(tw::api::checkClientVersion(&logger, 8500, "createX"));
    EXPECT_FALSE(tw::api::checkClientVersion(&logger, 8601, "createX"));
    EXPECT_TRUE(contains(logger.lastError(), "8601"));
    EXPECT_FALSE(tw::api::checkClientVersion(nullptr, 8503, "createX"));
}

TEST(Entry, RefitterNeedsAnEngine)
{
    KeepingLogger logger;
    int anything = 0;
    EXPECT_EQ(createInferRefitter_INTERNAL(&anything, &logger, 8601), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "createInferRefitter"));
    EXPECT_EQ(createInferRefitter_INTERNAL(nullptr, &logger, 8503), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "null pointer"));
    EXPECT_EQ(createInferRefitter_INTERNAL(&anything, nullptr, 8503), nullptr);
}

} // namespace
