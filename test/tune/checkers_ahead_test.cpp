// SPDX-License-Identifier: Apache-2.0
#include "tune/checkers_ahead.h"

#include <chrono>

#include <gtest/gtest.h>

#include "ops/softmax/op.h"
#include "support/case_problem.h"
#include "tactic/registry.h"
#include "tune/check.h"

namespace tw::test {

namespace {

// Softmax of some rows.
struct Layer
{
    explicit Layer(int64_t rows)
    {
        ops::CaseList list;
        list.add("rows", ops::softmax::Attrs(), {ops::f32({rows, 24})});
        auto g = makeCase(*ops::find("softmax"), list.cases[0]);
        EXPECT_TRUE(g.ok()) << g.error().message;
        graph = std::move(*g);
        auto made = caseProblem(*graph);
        EXPECT_TRUE(made.ok()) << made.error().message;
        problem = std::move(*made);
    }
    std::unique_ptr<CaseGraph> graph;
    ops::Problem problem;
};

} // namespace

TEST(CheckersAhead, EachRegionsCheckerIsGivenOnce)
{
    std::vector<std::unique_ptr<Layer>> layers;
    std::vector<tune::CheckersAhead::Region> regions;
    for (int64_t rows = 1; rows <= 20; ++rows) {
        layers.push_back(std::make_unique<Layer>(rows));
        regions.push_back({layers.back()->problem, {}});
        regions.push_back({layers.back()->problem, {}}); // the same again is one
    }
    tune::CheckersAhead ahead;
    ahead.start(std::move(regions), 3, serialWorkers());
    int made = 0;
    for (auto const& layer : layers) {
        auto const checker = ahead.take(layer->problem, {});
        EXPECT_EQ(ahead.take(layer->problem, {}), nullptr);
        if (!checker) // nobody had begun with it
            continue;
        ++made;
        EXPECT_GT(checker->bytes(), 0);
        ops::Tactic const* const plain = layer->problem.node->op->tactics(false).back();
        auto kernel = plain->load(layer->problem, {}, {});
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        auto const checked = checker->check(layer->problem, **kernel, plain->name(), serialWorkers());
        ASSERT_TRUE(checked.ok()) << checked.error().message;
        EXPECT_TRUE(checked->isRight());
    }
    RecordProperty("made", made);
}

TEST(CheckersAhead, OtherSizesAndPointsAreOtherRegions)
{
    Layer const few(2);
    tune::CheckersAhead ahead;
    std::vector<tune::Point> const points{{"elsewhere", {{Extents{5, 24}, {}}}}};
    ahead.start({{few.problem, points}}, 1, serialWorkers());
    EXPECT_EQ(ahead.take(few.problem, {}), nullptr);
    ops::Problem wide = few.problem;
    wide.inputs[0].dims[0] = 3;
    EXPECT_EQ(ahead.take(wide, points), nullptr);
    auto const begin = std::chrono::steady_clock::now();
    ahead.stop(); // whatever it was at
    EXPECT_EQ(ahead.take(few.problem, points), nullptr);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

TEST(CheckersAhead, StartsAnew)
{
    Layer const one(2), other(3);
    tune::CheckersAhead ahead;
    for (int i = 0; i < 50; ++i) {
        ahead.start({{one.problem, {}}, {other.problem, {}}}, 1 + i % 3, serialWorkers());
        if (i % 2)
            (void)ahead.take(other.problem, {});
    }
}

} // namespace tw::test
