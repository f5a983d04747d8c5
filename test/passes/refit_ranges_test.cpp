// SPDX-License-Identifier: Apache-2.0
// Recipes of INT8 by ranges: other ranges through them give what the passes would have made with those.
#include "ops/convolution/op.h"
#include "ops/pooling/op.h"
#include "ops/softmax/op.h"
#include "pass_test.h"

namespace tw::test {

namespace {

// x -> a -> maximum pool -> b -> c -> softmax, and a -> d -> e. Both sides of the pool are read as integers.
struct RangedNetwork
{
    GraphMaker m;
    passes::Ranges ranges;
    recipe::Recipes recipes;

    explicit RangedNetwork(std::map<std::string, float> const& of)
    {
        for (auto const& [name, range] : of)
            ranges[name] = range / 127;
        ir::Value* x = convolution(m.input("x", ir::shapeOf({2, 4, 6, 6})), "a");
        m.output(convolution(convolution(x, "d"), "e"), "e");
        x = m.add(ops::pooling::def(), ops::pooling::Attrs::plain(ops::pooling::Kind::kMax, {2, 2}), {x}, "pool");
        x->name = "pool";
        x = convolution(convolution(x, "b"), "c");
        m.output(m.add(ops::softmax::def(), ops::softmax::Attrs(), {x}, "softmax"), "y");
        auto added = recipes.addSources(m.g);
        EXPECT_TRUE(added.ok());
        NullLog log;
        passes::PassContext ctx{{}, log};
        ctx.permits = {Permission::kInt8};
        ctx.ranges = &ranges;
        ctx.recipes = &recipes;
        auto done = passes::quantizeRanges(m.g, ctx);
        EXPECT_TRUE(done.ok() && *done);
        auto fused = passes::fuseQuantization(m.g, ctx);
        EXPECT_TRUE(fused.ok() && *fused);
    }
    ir::Value* convolution(ir::Value* x, std::string const& name)
    {
        ir::Value* y = m.add(ops::convolution::def(), ops::convolution::Attrs::plain(2),
                             {x, m.constant(name + ".w", {4, 4, 1, 1}), m.constant(name + ".b", {4})}, name);
        y->name = name;
        return y;
    }
};

// Sets the ranges among the sources.
void set(ir::Graph& recipes, std::map<std::string, float> const& ranges)
{
    for (auto const& v : recipes.values())
        if (auto const at = v->isConstant() ? ranges.find(v->constant->layer) : ranges.end(); at != ranges.end()) {
            auto c = std::make_shared<ir::Constant>(*v->constant);
            c->data = Blob::copy(&at->second, sizeof at->second);
            v->constant = std::move(c);
        }
}

std::vector<std::string> rangesIn(ir::Graph const& recipes)
{
    std::vector<std::string> names;
    for (auto const& v : recipes.values())
        if (v->isConstant() && !v->constant->layer.empty() && v->constant->role == ir::WeightsRole::kAny)
            names.push_back(v->constant->layer);
    std::sort(names.begin(), names.end());
    return names;
}

bool allHold(ir::Graph const& recipes, std::vector<BlobPtr> const& made)
{
    bool holds = true;
    int conditions = 0;
    for (size_t i = 0; i < made.size(); ++i)
        if (recipes.outputs[i]->type == DataType::kBool) {
            ++conditions;
            holds = holds && *static_cast<uint8_t const*>(made[i]->data()) != 0;
        }
    EXPECT_GT(conditions, 0);
    return holds;
}

} // namespace

TEST(RefitOfRanges, IsABuildWithThem)
{
    std::map<std::string, float> const other{{"x", 3}, {"a", 2}, {"pool", 2}, {"b", 7}, {"d", 7}};
    RangedNetwork first({{"x", 1}, {"a", 4}, {"pool", 4}, {"b", 5}, {"d", 5}}), next(other);
    EXPECT_EQ(nodesOf(first.m.g), nodesOf(next.m.g));
    auto finished = first.recipes.finish(first.m.g);
    ASSERT_TRUE(finished.ok()) << finished.error().message;
    ir::Graph& recipes = *finished->recipes;
    // All but those that only the last convolutions read, which stay in floats.
    EXPECT_EQ(rangesIn(recipes), (std::vector<std::string>{"a", "pool", "x"}));
    set(recipes, other);
    auto made = recipe::evaluate(recipes, {});
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_TRUE(allHold(recipes, *made));
    for (auto const& [v, at] : finished->made) {
        auto c = std::make_shared<ir::Constant>(*v->constant);
        c->data = (*made)[size_t(at)];
        const_cast<ir::Value*>(v)->constant = std::move(c);
    }
    auto const inputs = randomInputs(first.m.g);
    auto const got = interp::run(first.m.g, refsOf(inputs)), want = interp::run(next.m.g, refsOf(inputs));
    ASSERT_TRUE(got.ok() && want.ok());
    expectSame(refsOf(*got), *want, 0);
}

TEST(RefitOfRanges, ThatParts)
{
    RangedNetwork r({{"x", 1}, {"a", 4}, {"pool", 4}, {"b", 5}, {"d", 5}});
    auto finished = r.recipes.finish(r.m.g);
    ASSERT_TRUE(finished.ok()) << finished.error().message;
    auto made = recipe::evaluate(*finished->recipes, {});
    ASSERT_TRUE(made.ok());
    EXPECT_TRUE(allHold(*finished->recipes, *made)) << "as it was built";
    set(*finished->recipes, {{"a", 4.5F}}); // and not that of the pool, through which integers go
    made = recipe::evaluate(*finished->recipes, {});
    ASSERT_TRUE(made.ok());
    EXPECT_FALSE(allHold(*finished->recipes, *made));
}

// The graph without INT8 was chosen: nobody asks about ranges.
TEST(RefitOfRanges, LeaveNothingBehindInFloats)
{
    RangedNetwork r({{"x", 1}, {"a", 4}, {"pool", 4}, {"b", 5}, {"d", 5}});
    GraphMaker floats;
    floats.output(floats.add(ops::softmax::def(), ops::softmax::Attrs(), {floats.input("x", ir::shapeOf({2, 4}))}, "s"),
                  "y");
    auto finished = r.recipes.finish(floats.g);
    ASSERT_TRUE(finished.ok()) << finished.error().message;
    EXPECT_TRUE(rangesIn(*finished->recipes).empty());
    EXPECT_TRUE(finished->recipes->outputs.empty());
}

} // namespace tw::test
