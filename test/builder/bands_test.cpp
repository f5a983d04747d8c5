// SPDX-License-Identifier: Apache-2.0
// Bands of an expansion and the depthwise convolution after it against layer by layer: the clock decides, the timing
// cache remembers.
#include <algorithm>

#include "builder/build.h"
#include "kernels/cpu/jit/emitter.h"
#include "ops/convolution/op.h"
#include "support/graph_maker.h"
#include "support/messages.h"
#include "tactic/cpu_tactic.h"
#include "tune/timing_cache.h"

namespace tw::test {

namespace {

// z takes `times` L2.
plan::Contents expansion(int64_t times)
{
    constexpr int64_t kChannels = 64, kWidth = 32;
    int64_t const rows = times * ops::thisCpu().l2Bytes / (kChannels * kWidth * 4) + 1;
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({1, 8, rows, kWidth}));
    ir::Value* z = m.add(ops::convolution::def(), ops::convolution::Attrs::plain(2),
                         {x, m.constant("w1", {kChannels, 8, 1, 1}), m.constant("b1", {kChannels})}, "expand");
    ops::convolution::Attrs a = ops::convolution::Attrs::plain(2);
    a.groups = kChannels;
    ir::Value* y = m.add(ops::convolution::def(), a,
                         {z, m.constant("w2", {kChannels, 1, 3, 3}), m.constant("b2", {kChannels})}, "depthwise");
    m.output(y, "y");
    plan::Contents c;
    c.graph = m.take();
    c.io.resize(2);
    c.io[0].name = "x";
    c.io[0].isInput = true;
    c.io[1].name = "y";
    return c;
}

bool hasBands(plan::Contents const& c)
{
    auto const& nodes = c.graph->nodes;
    return std::any_of(nodes.begin(), nodes.end(),
                       [](auto const& n) { return std::string_view(n->op->name) == "expanded_depthwise"; });
}

} // namespace

TEST(Bands, TheClockDecides)
{
    if (!kernels::jit::isaOf(ops::thisCpu()))
        GTEST_SKIP() << "this CPU has no emitted kernels";
    tune::TimingCache cache("test");
    builder::Options options;
    options.fingerprint = "test";
    options.tune.cache = &cache;
    for (int64_t times : {1, 3}) {
        bool chosen = false;
        for (bool isKnown : {false, true}) {
            Messages log;
            options.log = &log;
            plan::Contents c = expansion(times);
            auto built = builder::build(c, options);
            ASSERT_TRUE(built.ok()) << built.error().message;
            bool const isTimed = log.text.find("With fuse_expanded_depthwise the engine takes") != std::string::npos;
            EXPECT_EQ(isTimed, times > 2 && !isKnown) << log.text;
            EXPECT_TRUE(!isKnown || hasBands(c) == chosen) << "the cache says otherwise";
            chosen = hasBands(c);
            EXPECT_TRUE(!chosen || times > 2);
        }
    }
}

} // namespace tw::test
