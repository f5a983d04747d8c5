// SPDX-License-Identifier: Apache-2.0
// Which layers of a network with ranges stay in floating point, by times that are planted; the mixture computes what both
// its engines compute.
#include "builder/integer_layers.h"

#include "builder/lowering.h"
#include "interp/interp.h"
#include "ops/convolution/op.h"
#include "runtime/profile_shapes.h"
#include "support/graph_maker.h"
#include "tactic/registry.h"

namespace tw::test {

namespace {

struct InBoth
{
    double integers = 1, floats = 1;
};

// x -> a -> b -> ... -> y: convolutions, the last of which is none of integers, as nothing before a network output is.
struct Ranged
{
    plan::Contents contents;
    std::vector<passes::Alternative> alternatives;
    builder::Options options;

    explicit Ranged(std::vector<std::string> const& names)
    {
        GraphMaker m;
        ir::Value* v = m.input("x", ir::shapeOf({1, 8, 16, 16}));
        double step = 0.02;
        for (std::string const& name : names) {
            options.ranges[v->name] = step;
            step *= 5; // a sum of 72 products is about as much larger
            ops::convolution::Attrs a = ops::convolution::Attrs::plain(2);
            a.prePadding = a.postPadding = {1, 1};
            v = m.add(ops::convolution::def(), a,
                      {v, m.constant(name + ".w", {8, 8, 3, 3}), m.constant(name + ".b", {8})}, name);
        }
        m.output(v, "y");
        contents.graph = m.take();
        contents.profiles.emplace_back();
        options.tune.permits = {Permission::kInt8};
        NullLog log;
        auto lowered = builder::lower(contents, options, log);
        EXPECT_TRUE(lowered.ok()) << lowered.error().message;
        alternatives = std::move(*lowered);
        EXPECT_EQ(alternatives.size(), 1u);
    }
    static builder::Attempt attempt(ir::Graph const& g, std::map<std::string, InBoth> const& times, bool integers)
    {
        builder::Attempt a;
        a.graph = g.clone();
        for (size_t i = 0; i < g.nodes.size(); ++i) {
            plan::Step step;
            step.node = int32_t(i);
            auto const& layers = g.nodes[i]->layers;
            auto const at = layers.empty() ? times.end() : times.find(layers[0]);
            step.choice.microseconds = at == times.end() ? 0 : integers ? at->second.integers : at->second.floats;
            a.root.steps.push_back(step);
        }
        return a;
    }
    std::set<std::string> floats(std::map<std::string, InBoth> const& times, builder::ConversionCost const& cost) const
    {
        ir::Graph const& g = *alternatives[0].graph;
        auto const block = runtime::outlineBlock(g);
        auto const shapes = runtime::resolveProfiles(contents, *block);
        EXPECT_TRUE(shapes.ok());
        return builder::layersInFloat(g, shapes->opt(), attempt(*contents.graph, times, true), attempt(g, times, false),
                                      cost);
    }
};

using Names = std::set<std::string>;
constexpr builder::ConversionCost kCheap{1e6, 0.1}, kDear{1e6, 20};

} // namespace

TEST(IntegerLayers, WhatIsSlowerInIntegersStaysInFloats)
{
    Ranged const n({"a", "b", "c", "d", "e"});
    EXPECT_EQ(n.floats({{"a", {1, 3}}, {"b", {9, 3}}, {"c", {1, 3}}, {"d", {1, 3}}, {"e", {3, 3}}}, kCheap),
              Names{"b"});
    EXPECT_EQ(n.floats({{"a", {1, 3}}, {"b", {9, 3}}, {"c", {9, 3}}, {"d", {1, 3}}, {"e", {3, 3}}}, kCheap),
              (Names{"b", "c"}));
}

TEST(IntegerLayers, ConversionsCount)
{
    Ranged const n({"a", "b", "c", "d"});
    // 6 us against one conversion back to integers; a sum of integers writes floats for nothing.
    EXPECT_EQ(n.floats({{"a", {1, 3}}, {"b", {9, 3}}, {"c", {1, 30}}, {"d", {3, 3}}}, kDear), Names{});
    // Nothing to convert back to.
    EXPECT_EQ(n.floats({{"a", {1, 30}}, {"b", {1, 30}}, {"c", {9, 3}}, {"d", {3, 3}}}, kDear), Names{"c"});
}

TEST(IntegerLayers, NoMixtureWhereOneTypeIsFasterThroughout)
{
    Ranged const n({"a", "b", "c", "d"});
    EXPECT_EQ(n.floats({{"a", {1, 3}}, {"b", {1, 3}}, {"c", {1, 3}}, {"d", {3, 3}}}, kCheap), Names{});
    EXPECT_EQ(n.floats({{"a", {9, 3}}, {"b", {9, 3}}, {"c", {9, 3}}, {"d", {3, 3}}}, kCheap), Names{});
}

TEST(IntegerLayers, TheMixtureIsTheNetwork)
{
    Ranged const n({"a", "b", "c", "d"});
    auto mixed = builder::lowerWithFloats(n.contents, n.alternatives[0], {"b"}, n.options);
    ASSERT_TRUE(mixed.ok()) << mixed.error().message;
    auto typeOf = [&](std::string const& name) {
        for (auto const& node : (*mixed)->nodes)
            if (node->name == name)
                return node->inputs[0]->type;
        ADD_FAILURE() << "no node " << name;
        return DataType::kBool;
    };
    EXPECT_EQ(typeOf("a"), DataType::kInt8);
    EXPECT_EQ(typeOf("b"), DataType::kFloat);
    EXPECT_EQ(typeOf("c"), DataType::kInt8);
    ir::Graph const& floats = *n.alternatives[0].graph;
    auto const inputs = randomInputs(floats);
    auto const right = interp::run(floats, refsOf(inputs)), got = interp::run(**mixed, refsOf(inputs));
    ASSERT_TRUE(right.ok() && got.ok());
    double most = 0, error = 0;
    for (int64_t i = 0; i < (*right)[0].ref().count(); ++i) {
        most = std::max(most, std::abs((*right)[0].ref().get(i)));
        error = std::max(error, std::abs((*right)[0].ref().get(i) - (*got)[0].ref().get(i)));
    }
    EXPECT_LT(error, 0.1 * most);
    EXPECT_GT(error, 0);
}

TEST(IntegerLayers, BitsOfAChoice)
{
    std::vector<std::string> names;
    for (int i = 0; i < 70; ++i)
        names.push_back("c" + std::to_string(i));
    Ranged const n(names);
    ir::Graph const& g = *n.alternatives[0].graph;
    Names const layers{"c0", "c61", "c62", "c69"};
    auto const bits = builder::asBits(g, layers);
    EXPECT_EQ(bits.size(), 2u);
    EXPECT_EQ(builder::fromBits(g, bits), layers);
    // Of a damaged cache.
    EXPECT_EQ(builder::fromBits(g, std::vector<int64_t>{}), Names{});
    EXPECT_EQ(builder::fromBits(g, std::vector<int64_t>{-1, -1, -1, -1}).size(), names.size());
}

} // namespace tw::test
