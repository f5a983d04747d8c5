// SPDX-License-Identifier: Apache-2.0
// Plans with plugins are untrusted: whatever stands there, an error or an engine, and every plugin that was made is
// destroyed.
#include <cstring>
#include <random>

#include "engine/plugins.h"
#include "ops/plugin/op.h"
#include "plan/file.h"
#include "plan/plan.h"
#include "tactic/registry.h"

using namespace tw;
using namespace tw::test;
using ops::plugin::Attrs;

namespace {

struct PluginPlan : testing::Test
{
    PluginPlan()
    {
        ITensor* x = maker.input("x", {2, 3});
        DynamicPlugin plugin(behaviour, 3);
        maker.output(maker.network->addPluginV2(&x, 1, plugin)->getOutput(0), "y");
        auto const plan = maker.plan();
        if (plan)
            bytes.assign(static_cast<char const*>(plan->data()), plan->size());
        maker.network.reset(); // and its plugin
        runtime.reset(createInferRuntime(maker.logger));
    }
    ~PluginPlan() override { EXPECT_EQ(behaviour.record->living, 0); }

    static Attrs& attrsOf(plan::Contents& c)
    {
        for (auto const& n : c.graph->nodes)
            if (n->op == &ops::plugin::def())
                return n->attrsAs<Attrs>();
        std::abort();
    }
    bool loads(std::string const& plan)
    {
        std::unique_ptr<ICudaEngine> const engine(runtime->deserializeCudaEngine(plan.data(), plan.size()));
        if (engine)
            Context const c = contextOf(*engine);
        return engine != nullptr;
    }
    // The plan with other attributes.
    template <class Change>
    std::string changed(Change const& change)
    {
        auto contents = plan::read(bytes.data(), bytes.size());
        EXPECT_TRUE(contents.ok());
        change(attrsOf(*contents));
        auto out = plan::write(*contents);
        EXPECT_TRUE(out.ok());
        return *out;
    }

    Behaviour behaviour;
    Maker maker;
    std::string bytes;
    std::unique_ptr<IRuntime> runtime;
};

TEST_F(PluginPlan, WhatThePluginWroteIsThere)
{
    RecordedCreator<DynamicPlugin> creator(behaviour);
    ASSERT_FALSE(bytes.empty()) << maker.errors();
    auto contents = plan::read(bytes.data(), bytes.size());
    ASSERT_TRUE(contents.ok());
    Attrs const& a = attrsOf(*contents);
    EXPECT_EQ(a.state.type, "Recorded");
    EXPECT_EQ(a.state.version, "1");
    EXPECT_EQ(a.state.bytes.size(), sizeof(float) + sizeof(int64_t));
    EXPECT_EQ(a.shapes, "[2|3]");
    EXPECT_TRUE(loads(bytes)) << maker.errors();
    EXPECT_TRUE(loads(changed([](Attrs&) {})));
}

TEST_F(PluginPlan, DamagedAttributesAreRefused)
{
    RecordedCreator<DynamicPlugin> creator(behaviour);
    auto refused = [&](char const* what, auto const& change) {
        maker.takeErrors();
        EXPECT_FALSE(loads(changed(change))) << what;
        EXPECT_GE(maker.logger.errors(), 1) << what;
    };
    refused("no creator", [](Attrs& a) { a.state.type = "Unknown"; });
    refused("no such version", [](Attrs& a) { a.state.version = "2"; });
    refused("no such namespace", [](Attrs& a) { a.state.nameSpace = "other"; });
    refused("bytes", [](Attrs& a) { a.state.bytes += "more"; });
    refused("no bytes", [](Attrs& a) { a.state.bytes.clear(); });
    refused("interface", [](Attrs& a) { a.interface = ops::plugin::Interface(17); });
    refused("another interface", [](Attrs& a) {
        a.interface = ops::plugin::Interface::kIOExt;
        a.dropsBatch = true;
    });
    refused("outputs", [](Attrs& a) { a.outputTypes.push_back(0); });
    refused("types", [](Attrs& a) { a.inputTypes = {99}; });
    refused("inputs", [](Attrs& a) { a.inputTypes.clear(); });
    refused("ranks", [](Attrs& a) { a.inputRanks = {INT64_MIN}; });
    refused("workspace", [](Attrs& a) { a.workspaceBytes = INT64_MIN; });
    refused("workspace", [](Attrs& a) { a.workspaceBytes = INT64_MAX; });
    refused("broadcast", [](Attrs& a) { a.broadcast.assign(5000, 1); });
    for (char const* shapes :
         {"", "[", "[]", "[x0.0]", "[x0.0|x9.1]", "[x0.0|x0.9]", "[x0.0|-3]", "[x0.0|floordiv(x0.0, 0)]", "[2|3];[2]",
          "[x0.0|((((((]", "[x|3]", "[x18446744073709551616.0|3]", "[1|1|1|1|1|1|1|1|1]", "[2|99999999999999]", "2|3"})
        refused(shapes, [&](Attrs& a) { a.shapes = shapes; });
    refused("a long shape", [](Attrs& a) { a.shapes = "[2|" + std::string(100000, '(') + "]"; });
    // Ranges only inform the plugin.
    EXPECT_TRUE(loads(changed([](Attrs& a) { a.least = {INT64_MIN, 5}; })));
    EXPECT_TRUE(loads(changed([](Attrs& a) { a.most.assign(a.most.size(), INT64_MAX); })));
}

TEST_F(PluginPlan, FlippedBytesDoNoHarm)
{
    RecordedCreator<DynamicPlugin> creator(behaviour);
    std::mt19937 random(7);
    int loaded = 0;
    for (int i = 0; i < 1500; ++i) {
        std::string bad = bytes;
        size_t const skip = sizeof(plan::FileHeader);
        for (int k = 0; k < 1 + i % 3; ++k)
            bad[skip + random() % (bad.size() - skip)] = char(random());
        plan::FileHeader h{};
        std::memcpy(&h, bad.data(), sizeof h);
        h.hash = plan::fileHash(bad.data(), bad.size(), h.minor);
        std::memcpy(bad.data(), &h, sizeof h);
        loaded += loads(bad);
    }
    EXPECT_GT(loaded, 0);
    maker.takeErrors();
}

} // namespace
