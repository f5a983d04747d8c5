// SPDX-License-Identifier: Apache-2.0
// Weights in panels: the order itself, plans that hold it, engines that use it or undo it.
#include <cstring>

#include <gtest/gtest.h>

#include "families/convolution/tactics.h"
#include "kernels/cpu/jit/emitter.h"
#include "ops/convolution/op.h"
#include "plan/bytes.h"
#include "plan/network.h"
#include "tactic/cpu_tactic.h"
#include "tactic/panel_order.h"
#include "tactic/registry.h"

namespace tw::test {

namespace {

using ops::PanelOrder;

PanelOrder const kOrders[] = {
    {{16, 16}, 8, 1, 1, 8, false},
    {{48, 32, 32}, 5, 1, 1, 8, false},
    {{16}, 7, 3, 3, 4, false},
    {{8, 24, 8}, 12, 5, 2, 4, false},
    {{32, 32, 16}, 9 * 11, 1, 1, 1, false},
    {{1}, 1, 1, 1, 1, false},
    {{32, 32, 16}, 37, 1, 1, 1, true},
    {{3}, 2, 1, 1, 1, true},
};

TEST(PanelOrder, IsWhatItsCommentSays)
{
    for (PanelOrder const& o : kOrders) {
        int64_t const all = o.outputs(), depth = o.depth();
        SCOPED_TRACE(std::to_string(all) + " x " + std::to_string(depth));
        ASSERT_TRUE(o.fits(all * depth));
        std::vector<float> plain(size_t(all * depth)), got(plain.size()), back(plain.size());
        for (size_t i = 0; i < plain.size(); ++i)
            plain[i] = float(i);
        ops::toPanels(o, plain.data(), got.data());
        size_t at = 0;
        int64_t first = 0;
        auto expectRow = [&](int64_t c, int64_t i, int64_t j, int64_t lanes) {
            int64_t const d = (c * o.rows + i) * o.taps + j;
            for (int64_t k = first; k < first + lanes; ++k, ++at)
                ASSERT_EQ(got[at], float(o.outputsLast ? d * all + k : k * depth + d));
        };
        for (int32_t lanes : o.panels) {
            int64_t const whole = o.channels / o.together * o.together;
            for (int64_t i = 0; i < o.rows; ++i) {
                for (int64_t c = 0; c < whole; c += o.together)
                    for (int64_t j = 0; j < o.taps; ++j)
                        for (int64_t q = 0; q < o.together; ++q)
                            expectRow(c + q, i, j, lanes);
                for (int64_t c = whole; c < o.channels; ++c)
                    for (int64_t j = 0; j < o.taps; ++j)
                        expectRow(c, i, j, lanes);
            }
            first += lanes;
        }
        ops::fromPanels(o, got.data(), back.data());
        EXPECT_EQ(back, plain);
    }
}

TEST(PanelOrder, RefusesWhatDoesNotFit)
{
    PanelOrder const good{{16, 16}, 8, 3, 3, 4, false};
    int64_t const count = 32 * 8 * 9;
    EXPECT_TRUE(good.fits(count));
    EXPECT_FALSE(good.fits(count - 1));
    EXPECT_FALSE(good.fits(0));
    auto wrong = [&](auto&& change) {
        PanelOrder o = good;
        change(o);
        return !o.fits(count);
    };
    EXPECT_TRUE(wrong([](PanelOrder& o) { o.panels = {}; }));
    EXPECT_TRUE(wrong([](PanelOrder& o) { o.panels = {32, 0}; }));
    EXPECT_TRUE(wrong([](PanelOrder& o) { o.panels = {40, -8}; }));
    EXPECT_TRUE(wrong([](PanelOrder& o) { o.channels = 0; }));
    EXPECT_TRUE(wrong([](PanelOrder& o) {
        o.rows = -3;
        o.taps = -3;
    }));
    EXPECT_TRUE(wrong([](PanelOrder& o) { o.together = 0; }));
    EXPECT_TRUE(wrong([](PanelOrder& o) { o.outputsLast = true; }));
    PanelOrder huge{{INT32_MAX, INT32_MAX}, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, false};
    EXPECT_FALSE(huge.fits(count));
    EXPECT_FALSE(huge.fits(INT64_MAX));
}

// x f32[1,18,12,12] -> conv 3x3 -> conv 3x3, stride 2 -> conv 1x1 -> y f32[1,48,6,6]
plan::Contents convolutions()
{
    ir::Graph g;
    g.name = "convolutions";
    ir::Value* x = g.addInput("x", DataType::kFloat, {1, 18, 12, 12});
    struct Layer
    {
        int64_t k, window, stride;
    };
    Layer const layers[] = {{32, 3, 1}, {64, 3, 2}, {48, 1, 1}};
    int64_t c = 18;
    for (auto const& l : layers) {
        std::string const name = "conv" + std::to_string(c);
        Tensor w(DataType::kFloat, {l.k, c, l.window, l.window}), b(DataType::kFloat, {l.k});
        for (int64_t i = 0; i < w.count(); ++i)
            w.ref().set(i, double((i * 37 + l.k) % 61 - 30) / 256);
        for (int64_t i = 0; i < b.count(); ++i)
            b.ref().set(i, double(i % 7) / 8);
        auto a = ops::convolution::Attrs::plain(2);
        a.prePadding = a.postPadding = {l.window / 2, l.window / 2};
        a.strides = {l.stride, l.stride};
        auto node = g.addNode(ops::convolution::def(), std::make_unique<ops::convolution::Attrs>(a),
                              {x, g.addConstant(name + ".w", DataType::kFloat, w.dims(), w.data()),
                               g.addConstant(name + ".b", DataType::kFloat, b.dims(), b.data())},
                              name);
        EXPECT_TRUE(node.ok());
        x = (*node)->outputs[0];
        c = l.k;
    }
    x->name = "y";
    g.outputs = {x};
    return contentsOf(g);
}

Tensor image()
{
    Tensor t(DataType::kFloat, {1, 18, 12, 12});
    for (int64_t i = 0; i < t.count(); ++i)
        t.ref().set(i, double((i * 29 + 7) % 50 - 25) / 32);
    return t;
}

std::vector<float> outputOf(plan::Contents contents, bool& borrows)
{
    auto engine = loadEngine(std::move(contents));
    if (!engine.ok()) {
        ADD_FAILURE() << engine.error().message;
        return {};
    }
    borrows = (*engine)->borrowsPlan();
    Tensor const x = image();
    auto got = runEngine(*engine, {x.ref()});
    if (!got.ok()) {
        ADD_FAILURE() << got.error().message;
        return {};
    }
    auto const* y = static_cast<float const*>((*got)[0].data());
    return {y, y + (*got)[0].count()};
}

TEST(PlanPanels, KernelsUseThemWhereTheyLie)
{
    plan::Contents c = convolutions();
    std::map<std::string, BlobPtr> originals;
    for (auto const& v : c.graph->values())
        if (v->isConstant())
            originals[v->name] = v->constant->data;
    ASSERT_TRUE(buildContents(c).ok());
    bool const emits = kernels::jit::isaOf(ops::thisCpu()).has_value();
    EXPECT_GE(c.panels.size(), emits ? 2u : 0u); // not those that Winograd kernels transform at load
    EXPECT_LE(c.panels.size(), emits ? 3u : 0u);
    bool borrows = true;
    std::string const bytes = planOf(c);
    auto plain = plan::read(bytes.data(), bytes.size());
    ASSERT_TRUE(plain.ok()) << plain.error().message;
    EXPECT_EQ(plain->panels.size(), c.panels.size());
    for (auto const& v : plain->graph->values())
        if (auto it = originals.find(v->name); v->isConstant() && it != originals.end()) {
            EXPECT_EQ(std::memcmp(v->constant->data->data(), it->second->data(), it->second->sizeBytes()), 0)
                << v->name;
        }
    EXPECT_EQ(planOf(*plain), bytes);
    std::vector<float> const want = outputOf(std::move(*plain), borrows);
    EXPECT_FALSE(borrows);
    auto kept = readKept(bytes);
    ASSERT_TRUE(kept.ok()) << kept.error().message;
    EXPECT_EQ(planOf(*kept), bytes);
    EXPECT_EQ(outputOf(std::move(*kept), borrows), want);
    EXPECT_EQ(borrows, emits);
}

TEST(PlanPanels, WinogradInPlace)
{
    plan::Contents c = convolutions();
    ASSERT_TRUE(buildContents(c).ok());
    bool borrows = false;
    std::string const plain = planOf(c);
    auto read = plan::read(plain.data(), plain.size());
    ASSERT_TRUE(read.ok());
    std::vector<float> const want = outputOf(std::move(*read), borrows);
    int tried = 0;
    for (size_t i = 0; i < c.graph->nodes.size(); ++i) {
        ir::Node const& node = *c.graph->nodes[i];
        ir::Value const* const w = node.inputs.size() > 1 ? node.inputs[1] : nullptr;
        if (!w || w->name != "conv18.w" || !node.op->cpuTactics)
            continue;
        ops::Problem problem;
        problem.node = &node;
        problem.inputs.resize(2);
        problem.inputs[1].dims = ir::extentsOf(w->shape);
        for (ops::Tactic const* t : *node.op->cpuTactics) {
            if (t->traits().rounding != ops::Rounding::kWinograd)
                continue;
            for (int64_t columns : {32, 64}) {
                SCOPED_TRACE(t->name() + std::string(", columns ") + std::to_string(columns));
                plan::Choice& choice = c.targets[0].root.steps[i].choice;
                choice.tactic = t->id();
                choice.config = {4, 2, 8, columns, 64};
                auto const order = dynamic_cast<ops::PanelTactic const&>(*t).panelOrder(problem, choice.config);
                ASSERT_TRUE(order.has_value());
                c.panels = {{w, *order}};
                std::string const bytes = planOf(c);
                auto kept = readKept(bytes);
                auto undone = plan::read(bytes.data(), bytes.size());
                ASSERT_TRUE(kept.ok() && undone.ok());
                auto const got = outputOf(std::move(*kept), borrows);
                EXPECT_EQ(got, outputOf(std::move(*undone), borrows));
                ASSERT_EQ(got.size(), want.size());
                for (size_t k = 0; k < got.size(); ++k)
                    EXPECT_NEAR(got[k], want[k], 1e-4);
                ++tried;
            }
        }
    }
    EXPECT_EQ(tried, 4);
}

// As from a plan of another CPU, or of a later version's choice.
TEST(PlanPanels, OthersAreUndone)
{
    plan::Contents c = convolutions();
    ASSERT_TRUE(buildContents(c).ok());
    bool borrows = false;
    std::string const own = planOf(c);
    auto plain = plan::read(own.data(), own.size());
    ASSERT_TRUE(plain.ok());
    std::vector<float> const want = outputOf(std::move(*plain), borrows);
    c.panels.clear();
    for (auto const& v : c.graph->values())
        if (v->isConstant() && v->rank() == 4) {
            auto const size = [&](size_t d) { return int32_t(v->shape[d].value()); };
            c.panels[v.get()] = PanelOrder{{5, size(0) - 5}, size(1), size(2), size(3), 3, false};
        }
    EXPECT_EQ(c.panels.size(), 3u);
    std::string const other = planOf(c);
    EXPECT_NE(other, own);
    for (bool hasTarget : {true, false}) {
        auto kept = readKept(other);
        ASSERT_TRUE(kept.ok()) << kept.error().message;
        if (!hasTarget)
            kept->targets.clear();
        auto const got = outputOf(std::move(*kept), borrows);
        EXPECT_FALSE(borrows);
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); ++i)
            EXPECT_NEAR(got[i], want[i], hasTarget ? 0 : 1e-4);
    }
}

// Readers of one constant that want different orders get the order of the shape, or each its own of whatever it is.
TEST(PlanPanels, ReadersOfOtherOrdersAreServed)
{
    plan::Contents c = convolutions();
    ir::Graph& g = *c.graph;
    auto a = ops::convolution::Attrs::plain(2);
    auto node = g.addNode(ops::convolution::def(), std::make_unique<ops::convolution::Attrs>(a),
                          {g.outputs[0], g.nodes[2]->inputs[1]}, "refused");
    EXPECT_FALSE(node.ok()) << "48 channels into filters of 64";
    a.prePadding = a.postPadding = {1, 1};
    auto again = g.addNode(ops::convolution::def(), std::make_unique<ops::convolution::Attrs>(a),
                           {g.nodes[0]->inputs[0], g.nodes[0]->inputs[1]}, "again");
    ASSERT_TRUE(again.ok()) << again.error().message;
    g.outputs.push_back((*again)->outputs[0]);
    g.outputs.back()->name = "z";
    plan::Contents twice = contentsOf(g);
    ASSERT_TRUE(buildContents(twice).ok());
    for (auto const& v : twice.graph->values()) // such as a writer that does not care has it
        if (v->name == "conv18.w")
            twice.panels[v.get()] = PanelOrder{{32}, 18, 3, 3, 4, false};
    bool borrows = false;
    std::string const bytes = planOf(twice);
    auto plain = plan::read(bytes.data(), bytes.size());
    auto kept = readKept(bytes);
    ASSERT_TRUE(plain.ok() && kept.ok());
    EXPECT_EQ(outputOf(std::move(*kept), borrows), outputOf(std::move(*plain), borrows));
}

} // namespace

} // namespace tw::test
