// SPDX-License-Identifier: Apache-2.0
// The runner: order, repetition, regions, what can be left out, what it writes.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/text.h"
#include "nodes.h"
#include "ops/concatenation/op.h"
#include "ops/convolution/op.h"
#include "ops/gather/op.h"

namespace tw::test {

namespace {

struct CollectingLog final : Log
{
    void write(Severity s, std::string const& message) override
    {
        (s == Severity::kVerbose ? verboseLines : loudLines).push_back(message);
    }
    std::vector<std::string> verboseLines, loudLines;
};

// conv -> identity -> relu -> reshape to [shape(x)[0], -1], twice.
void network(GraphMaker& m)
{
    m.g.symbols["N"].range = {1, 8};
    ir::Value* x = m.input("x", {ir::Dim::symbol("N"), 2, 4, 4});
    ir::Value* y =
        m.add(ops::convolution::def(), ops::convolution::Attrs::plain(2), {x, m.constant("w", {3, 2, 1, 1})}, "conv");
    y = activation(m, m.add(ops::identity::def(), ops::identity::Attrs(), {y}, "identity"), "relu");
    for (std::string const s : {"a", "b"}) {
        ir::Value* n = m.add(ops::gather::def(), ops::gather::Attrs{},
                             {m.add(ops::shape::def(), {y}, s + ".shape"), m.i32(s + ".zero", {0})}, s + ".n");
        ir::Value* dims =
            m.add(ops::concatenation::def(), ops::concatenation::Attrs(0), {n, m.i32(s + ".rest", {-1})}, s + ".dims");
        y = m.add(ops::shuffle::def(), ops::shuffle::Attrs{}, {y, dims}, s);
    }
    m.output(y, "y");
}

} // namespace

TEST(Pipeline, PassesWorkTogether)
{
    GraphMaker m;
    network(m);
    checkPass(m.g, wholePipeline, true);
    // b read past a, which the arithmetic for b still needed; then nothing did.
    EXPECT_EQ(nodesOf(m.g), "conv + relu:convolution, b:shuffle");
    EXPECT_EQ(m.g.form, ir::Form::kFused);
}

TEST(Pipeline, NamesAreUniqueAndFormsGrow)
{
    std::set<std::string> names;
    ir::Form form = ir::Form::kImported;
    for (auto const& p : passes::pipeline()) {
        EXPECT_TRUE(names.insert(p.name).second) << p.name;
        EXPECT_LE(p.needs, form) << p.name;
        form = std::max(form, p.gives);
    }
    EXPECT_EQ(form, ir::Form::kFused);
}

TEST(Pipeline, DisableByNameAndStopAfter)
{
    CollectingLog log;
    GraphMaker m;
    network(m);
    passes::Options options;
    options.disabled = {"fuse_activation", "fuse_epilogue", "no_such_pass"};
    ASSERT_TRUE(passes::run(m.g, {{}, log}, options).ok());
    EXPECT_EQ(nodesOf(m.g), "conv:convolution, relu:activation, b:shuffle");
    ASSERT_EQ(log.loudLines.size(), 1u);
    EXPECT_NE(log.loudLines[0].find("no_such_pass"), std::string::npos);

    GraphMaker n;
    network(n);
    std::string const before = nodesOf(n.g);
    options.disabled = {};
    options.stopAfter = 0;
    ASSERT_TRUE(passes::run(n.g, {{}, log}, options).ok());
    EXPECT_EQ(nodesOf(n.g), before);
}

// z of the expansion takes more than two L2 of 64 bytes.
TEST(Pipeline, WhatIsSpeculativeIsOfferedWithoutItToo)
{
    auto make = [](GraphMaker& m) {
        ops::convolution::Attrs depthwise = ops::convolution::Attrs::plain(2);
        depthwise.groups = 6;
        ir::Value* z = m.add(
            ops::convolution::def(), ops::convolution::Attrs::plain(2),
            {m.input("x", ir::shapeOf({1, 3, 4, 4})), m.constant("w", {6, 3, 1, 1}), m.constant("b", {6})}, "expand");
        z = m.add(ops::convolution::def(), depthwise, {z, m.constant("v", {6, 1, 3, 3}), m.constant("c", {6})}, "dw");
        m.output(activation(m, z, "relu"), "y");
    };
    std::string const folder = testing::TempDir() + "tensorwright_speculative";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    CollectingLog log;
    passes::PassContext ctx{{{passes::TargetInfo::Cpu{passes::TargetInfo::Isa::kAvx2, 64}}}, log};
    for (bool isDisabled : {false, true}) {
        GraphMaker m;
        make(m);
        passes::Options options;
        options.dumpFolder = &folder;
        if (isDisabled)
            options.disabled = {"fuse_expanded_depthwise"};
        auto const inputs = randomInputs(m.g);
        auto const before = interp::run(m.g, refsOf(inputs));
        ASSERT_TRUE(before.ok());
        auto const alternatives = passes::run(m.g, ctx, options);
        ASSERT_TRUE(alternatives.ok()) << alternatives.error().message;
        EXPECT_EQ(nodesOf(m.g),
                  isDisabled ? "expand:convolution, dw + relu:convolution" : "expand + dw + relu:expanded_depthwise");
        ASSERT_EQ(alternatives->size(), isDisabled ? 0u : 1u);
        for (passes::Alternative const& a : *alternatives) {
            EXPECT_STREQ(a.without, "fuse_expanded_depthwise");
            EXPECT_EQ(nodesOf(*a.graph), "expand:convolution, dw + relu:convolution");
            EXPECT_EQ(a.graph->form, m.g.form);
            ASSERT_TRUE(ir::verify(*a.graph).ok());
            auto const after = interp::run(*a.graph, refsOf(inputs));
            ASSERT_TRUE(after.ok());
            expectSame(refsOf(*after), *before);
        }
    }
    ctx.target = kGpu;
    GraphMaker m;
    make(m);
    EXPECT_EQ(passes::run(m.g, ctx)->size(), 0u);
    std::filesystem::remove_all(folder);
}

TEST(Pipeline, BeginsAtAPass)
{
    GraphMaker m;
    network(m);
    NullLog log;
    passes::Options options;
    options.startAt = "fuse_gate";
    std::string const before = ir::print(m.g);
    ASSERT_TRUE(passes::run(m.g, {{}, log}, options).ok());
    EXPECT_EQ(ir::print(m.g), [&] {
        GraphMaker n;
        network(n);
        n.g.form = ir::Form::kFused;
        return ir::print(n.g);
    }()) << before;
    options.startAt = "remove_dead_rows";
    ASSERT_TRUE(passes::run(m.g, {{}, log}, options).ok());
    EXPECT_EQ(nodesOf(m.g).find("conv:convolution, identity:identity, relu:activation, a.shape"), 0u) << nodesOf(m.g);
}

TEST(Pipeline, DumpsTextThatParses)
{
    std::string const folder = testing::TempDir() + "tensorwright_pipeline_test";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    GraphMaker m;
    network(m);
    m.g.name = "a/../b c"; // no path comes of a name
    passes::Options options;
    options.dumpFolder = &folder;
    NullLog log;
    ASSERT_TRUE(passes::run(m.g, {{}, log}, options).ok());
    std::set<std::string> files;
    for (auto const& f : std::filesystem::directory_iterator(folder))
        files.insert(f.path().filename().string());
    ASSERT_FALSE(files.empty());
    EXPECT_NE(files.rbegin()->find("fuse_activation"), std::string::npos) << *files.rbegin();
    std::ifstream last(folder + "/" + *files.rbegin());
    std::stringstream text;
    text << last.rdbuf();
    EXPECT_NE(text.str().find("conv + relu"), std::string::npos);
    auto parsed = ir::parse(text.str(), ops::find);
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_EQ(nodesOf(**parsed), nodesOf(m.g));
    std::filesystem::remove_all(folder);

    CollectingLog loud;
    GraphMaker n;
    network(n);
    std::string const missing = folder + "/missing";
    options.dumpFolder = &missing;
    EXPECT_TRUE(passes::run(n.g, {{}, loud}, options).ok());
    EXPECT_FALSE(loud.loudLines.empty());
}

TEST(Pipeline, RegionsToo)
{
    GraphMaker m, branch[2];
    std::vector<std::unique_ptr<ir::Graph>> regions;
    for (GraphMaker& b : branch) {
        network(b);
        regions.push_back(b.take());
    }
    m.g.symbols["N"].range = {1, 8};
    ir::Value* c = m.input("c", {}, DataType::kBool);
    ir::Value* x = m.input("x", {ir::Dim::symbol("N"), 2, 4, 4});
    ir::Node* n = m.addNode(ops::conditional::def(), std::make_unique<ir::NoAttrs>(), {c, x}, "if", std::move(regions));
    m.output(n->outputs[0], "y");
    checkPass(m.g, wholePipeline, false); // the outer graph stays as it is
    for (auto const& r : n->regions)
        EXPECT_EQ(nodesOf(*r), "conv + relu:convolution, b:shuffle");
}

} // namespace tw::test
