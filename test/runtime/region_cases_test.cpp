// SPDX-License-Identifier: Apache-2.0
// The cases of the ops with regions, by hand and random, from builder to executor.
#include <cstdlib>
#include <ctime>

#include "cases/draw.h"
#include "engine_run.h"
#include "support/op_case.h"
#include "tactic/registry.h"

namespace tw::test {

namespace {

void runThroughEngine(ir::OpDef const& op, ops::Case const& c)
{
    SCOPED_TRACE(std::string(op.name) + "." + c.name);
    auto made = makeCase(op, c);
    ASSERT_TRUE(made.ok()) << made.error().message;
    CaseGraph& g = **made;
    for (size_t i = 0; i < g.graph.outputs.size(); ++i)
        g.graph.outputs[i]->name = "y" + std::to_string(i);
    auto want = interp::run(g.graph, g.graphInputs);
    ASSERT_TRUE(want.ok()) << want.error().message;
    GraphMaker m;
    m.g = std::move(g.graph);
    auto e = makeEngine(m);
    ASSERT_TRUE(e.ok()) << e.error().message;
    runtime::Context context(e->engine);
    context.setProfile(0);
    for (int run = 0; run < 2; ++run) {
        auto got = runEngine(context, g.graphInputs);
        ASSERT_TRUE(got.ok()) << got.error().message;
        ASSERT_NO_FATAL_FAILURE(expectSame(got->outputs, *want, 1e-5));
    }
}

} // namespace

TEST(RegionCases, ByHand)
{
    for (char const* name : {"conditional", "loop"})
        for (ops::Case const& c : ops::casesOf(name).cases)
            ASSERT_NO_FATAL_FAILURE(runThroughEngine(*ops::find(name), c));
}

// By the seed of the day; TW_TEST_SEED repeats one, TW_TEST_COUNT is how many.
TEST(RegionCases, RandomLoops)
{
    auto number = [](char const* variable, uint64_t otherwise) {
        char const* const text = std::getenv(variable);
        return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
    };
    uint64_t const seed = number("TW_TEST_SEED", uint64_t(std::time(nullptr) / (24 * 60 * 60)));
    uint64_t const count = number("TW_TEST_COUNT", 60);
    for (ops::OpCases const& op : ops::allCases())
        for (uint64_t i = 0; std::string_view(op.op) == "loop" && i < count; ++i) {
            ops::CaseList list;
            ops::Draw draw(seed + i);
            op.addRandom(list, draw, "seed_" + std::to_string(seed + i));
            ASSERT_NO_FATAL_FAILURE(runThroughEngine(*ops::find("loop"), list.cases[0]));
        }
}

} // namespace tw::test
