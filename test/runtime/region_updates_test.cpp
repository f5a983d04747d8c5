// SPDX-License-Identifier: Apache-2.0
// Caches that a loop carries: which of them stay where they are from trip to trip, and that nobody can tell.
#include "engine_run.h"
#include "runtime/alias.h"
#include "runtime/regions.h"
#include "runtime/updates.h"
#include "support/update_loops.h"

namespace tw::test {

namespace {

constexpr int64_t kLength = 6;

// The loop's body in a block of these inputs.
runtime::Instance const& bodyOf(runtime::Instance const& instance)
{
    for (size_t i = 0; i < instance.regions.size(); ++i)
        if (!instance.regions[i].empty())
            return *instance.regions[i][1];
    return instance;
}

} // namespace

TEST(RegionUpdates, WhatStays)
{
    for (UpdateLoop const& kind : updateLoops()) {
        SCOPED_TRACE(kind.name);
        GraphMaker m;
        addUpdateLoop(m, kind, kLength);
        auto block = runtime::outlineBlock(m.g);
        std::vector<runtime::InputState> states;
        for (ir::Value const* v : m.g.inputs)
            states.push_back({ir::extentsOf(v->shape), true, TensorRef{}});
        auto instance = runtime::resolve(*block, states);
        ASSERT_TRUE(instance.ok()) << instance.error().message;
        ASSERT_TRUE(runtime::placeInArena(**instance).ok());
        runtime::Instance const& body = bodyOf(**instance);
        EXPECT_EQ(runtime::isUpdatedInPlace(body, 3), kind.aStays);
        EXPECT_EQ(runtime::isUpdatedInPlace(body, 4), kind.bStays);
        EXPECT_EQ(runtime::isOverwritten(body, 3), kind.aIsOverwritten);
        EXPECT_EQ(runtime::isOverwritten(body, 4), kind.bStays);
        for (size_t i = 0; i < 3; ++i)
            EXPECT_FALSE(runtime::isUpdatedInPlace(body, i) || runtime::isOverwritten(body, i)) << i;
        // What stays has no second place in the workspace.
        runtime::Instance const* const regions[] = {(*instance)->regions[0][0].get(), &body};
        auto const memory = runtime::regionMemory(*m.g.nodes[0], regions, 0);
        EXPECT_EQ(memory.spare[3].pitch == 0, kind.aStays);
        EXPECT_EQ(memory.spare[4].pitch == 0, kind.bStays);
    }
}

TEST(RegionUpdates, GiveWhatTheInterpreterGives)
{
    for (UpdateLoop const& kind : updateLoops())
        for (First const first : {First::kGiven, First::kMade, First::kMadeForTwo}) {
            SCOPED_TRACE(kind.name);
            GraphMaker m;
            addUpdateLoop(m, kind, kLength, first);
            auto e = makeEngine(m);
            ASSERT_TRUE(e.ok()) << e.error().message;
            for (int trips : {0, 1, 2, 5, 6}) {
                SCOPED_TRACE(trips);
                auto inputs = updateInputs(*e->imported, trips);
                auto const before = updateInputs(*e->imported, trips);
                checkTwice(*e, inputs);
                expectSame(refsOf(inputs), before, 0); // inputs are read alone
            }
        }
}

// A value that is made for the loop alone is made where the loop leaves its result.
TEST(RegionUpdates, FirstValuesAreMadeInPlace)
{
    for (UpdateLoop const& kind : updateLoops())
        for (First const first : {First::kMade, First::kMadeForTwo}) {
            SCOPED_TRACE(kind.name);
            GraphMaker m;
            addUpdateLoop(m, kind, kLength, first);
            ir::Node const& loop = *m.g.nodes.back();
            auto block = runtime::outlineBlock(m.g);
            std::vector<runtime::InputState> states;
            for (ir::Value const* v : m.g.inputs)
                states.push_back({ir::extentsOf(v->shape), true, TensorRef{}});
            auto instance = runtime::resolve(*block, states);
            ASSERT_TRUE(instance.ok()) << instance.error().message;
            ASSERT_TRUE(runtime::placeInArena(**instance).ok());
            auto const isThere = [&](size_t i) {
                return runtime::storageOf(**instance, block->indexOf(loop.inputs[i])).root ==
                       block->indexOf(loop.outputs[i]);
            };
            EXPECT_EQ(isThere(3), kind.aIsOverwritten);
            EXPECT_EQ(isThere(4), kind.bStays && first == First::kMade);
        }
}

// The client gives a cache and what becomes of it one address.
TEST(RegionUpdates, TheClientsCacheIsWrittenInPlace)
{
    GraphMaker m;
    addUpdateLoop(m, updateLoops()[0], kLength);
    auto e = makeEngine(m);
    ASSERT_TRUE(e.ok()) << e.error().message;
    if (e->engine->cuda())
        GTEST_SKIP() << "addresses of the host are given";
    auto inputs = updateInputs(*e->imported, 4);
    auto want = interp::run(*e->imported, refsOf(inputs));
    ASSERT_TRUE(want.ok()) << want.error().message;
    runtime::Context context(e->engine);
    context.setProfile(0);
    auto instance = context.instance();
    ASSERT_TRUE(instance.ok()) << instance.error().message;
    Tensor arena(DataType::kInt8, {(*instance)->arenaBytes});
    std::vector<Tensor> storage;
    std::vector<TensorRef> outputs;
    for (Tensor const& t : *want) {
        storage.emplace_back(t.ref().type, t.dims());
        outputs.push_back(storage.back().ref());
    }
    outputs[3].data = inputs[3].data();
    outputs[4].data = inputs[4].data();
    auto const given = refsOf(inputs);
    uint64_t state = 0;
    runtime::ExecuteArgs args{arena.data(), given, outputs, &state, nullptr};
    auto done = runtime::execute(**instance, args);
    ASSERT_TRUE(done.ok()) << done.error().message;
    expectSame(outputs, *want, 0);
}

} // namespace tw::test
