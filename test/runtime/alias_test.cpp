// SPDX-License-Identifier: Apache-2.0
// Concatenations, slices and reshapes that need no work, and the memory plan.
#include "engine_run.h"
#include "ops/concatenation/op.h"
#include "ops/elementwise/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"

namespace tw::test {

namespace {

using ops::activation::Kind;

ir::Value* sum(GraphMaker& m, ir::Value* a, ir::Value* b, std::string const& name)
{
    return m.add(ops::elementwise::def(), ops::elementwise::Attrs(ops::elementwise::Operation::kSum), {a, b}, name);
}

ir::Value* concat(GraphMaker& m, std::vector<ir::Value*> in, int32_t axis, std::string const& name)
{
    return m.add(ops::concatenation::def(), ops::concatenation::Attrs(axis), std::move(in), name);
}

ir::Value* slice(GraphMaker& m, ir::Value* x, std::vector<int64_t> start, std::vector<int64_t> size,
                 std::string const& name, std::vector<int64_t> stride = {})
{
    ops::slice::Attrs a;
    a.stride = stride.empty() ? std::vector<int64_t>(start.size(), 1) : stride;
    a.start = std::move(start);
    a.size = std::move(size);
    return m.add(ops::slice::def(), a, {x}, name);
}

ir::Value* shuffle(GraphMaker& m, ir::Value* x, std::vector<int64_t> first, std::vector<int64_t> dims,
                   std::string const& name)
{
    ops::shuffle::Attrs a;
    a.firstTranspose = std::move(first);
    a.hasReshape = !dims.empty();
    a.reshape = std::move(dims);
    return m.add(ops::shuffle::def(), a, {x}, name);
}

// How many steps the run left out, after comparing with the interpreter. The arena is as small as it can be.
void expectSkipped(GraphMaker& m, int steps, SymbolSizes const& sizes = {}, ir::Bindings const& at = {},
                   builder::FormatPolicy formats = builder::FormatPolicy::kLeastTime)
{
    auto const inputs = randomInputs(m.g, at);
    passes::Options keep; // every activation a node of its own
    keep.disabled = {"fuse_pointwise"};
    auto e = makeEngine(m, {sizes}, keep, formats);
    ASSERT_TRUE(e.ok()) << e.error().message;
    runtime::Context context(e->engine);
    context.setProfile(0);
    checkRun(*e, context, inputs);
    auto r = runEngine(context, refsOf(inputs));
    ASSERT_TRUE(r.ok()) << r.error().message;
    EXPECT_EQ(r->skipped(), steps);
    EXPECT_EQ(r->instance->arenaBytes, r->instance->arenaLowerBound);
}

// The same in channels-last; of the steps that were left out, those that join or cut.
void expectJoined(GraphMaker& m, int steps)
{
    auto const inputs = randomInputs(m.g, {});
    passes::Options keep; // every activation a node of its own
    keep.disabled = {"fuse_pointwise"};
    auto e = makeEngine(m, {{}}, keep, builder::FormatPolicy::kChannelsLast);
    ASSERT_TRUE(e.ok()) << e.error().message;
    runtime::Context context(e->engine);
    context.setProfile(0);
    checkRun(*e, context, inputs);
    auto r = runEngine(context, refsOf(inputs));
    ASSERT_TRUE(r.ok()) << r.error().message;
    int joined = 0;
    for (size_t i = 0; i < r->instance->skipped.size(); ++i) {
        auto const* op = r->instance->block->steps[i].node->op;
        joined += r->instance->skipped[i] && (op == &ops::concatenation::def() || op == &ops::slice::def());
    }
    EXPECT_EQ(joined, steps);
}

} // namespace

TEST(Alias, ConcatenationOfPartsThatWriteInPlace)
{
    for (bool isOutput : {false, true}) {
        GraphMaker m;
        ir::Value* x = m.input("x", ir::shapeOf({1, 3, 5}));
        ir::Value* all =
            concat(m, {activation(m, x, "a"), activation(m, x, "b", Kind::kRelu), activation(m, x, "c")}, 1, "concat");
        m.output(isOutput ? all : activation(m, all, "last"), "y");
        expectSkipped(m, 1);
    }
}

TEST(Alias, ConcatenationsThatCopy)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({2, 3}));
    ir::Value *a = activation(m, x, "a"), *b = activation(m, x, "b", Kind::kRelu);
    m.output(concat(m, {a, b}, 1, "inner_axis"), "y0");
    m.output(concat(m, {a, a}, 0, "twice"), "y1");
    m.output(concat(m, {x, b}, 0, "graph_input"), "y2");
    m.output(concat(m, {m.constant("c", {2, 3}), b}, 0, "constant"), "y3");
    m.output(a, "y4");
    m.output(concat(m, {a, b}, 0, "graph_output"), "y5");
    expectSkipped(m, 0);
}

TEST(Alias, OnePartOfTwoConcatenations)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({2, 3}));
    ir::Value *a = activation(m, x, "a"), *b = activation(m, x, "b", Kind::kRelu), *c = activation(m, x, "c");
    m.output(concat(m, {a, b}, 0, "first"), "y0");
    m.output(concat(m, {b, c}, 0, "second"), "y1");
    expectSkipped(m, 1); // b lies in the first
}

TEST(Alias, ConcatenationOfConcatenations)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({2, 3}));
    ir::Value* inner = concat(m, {activation(m, x, "a"), activation(m, x, "b", Kind::kRelu)}, 0, "inner");
    ir::Value* outer = concat(m, {activation(m, x, "c", Kind::kSigmoid), inner}, 0, "outer");
    m.output(activation(m, outer, "last"), "y");
    m.output(activation(m, inner, "of_inner"), "z");
    expectSkipped(m, 2);
}

// One pixel for each image: its channels are a linear tensor as they lie, but not as a part of a wider one.
TEST(Alias, PixelsThatAreReadAsALinearTensor)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({2, 16, 1, 1}));
    ir::Value *a = activation(m, x, "a"), *b = activation(m, x, "b", Kind::kRelu);
    m.output(activation(m, concat(m, {a, b}, 1, "join"), "last"), "y");
    m.output(activation(m, shuffle(m, a, {}, {2, 16}, "vectors"), "of_vectors"), "z");
    expectJoined(m, 0);
}

TEST(Alias, SlicesInOnePiece)
{
    GraphMaker m;
    ir::Value* x = activation(m, m.input("x", ir::shapeOf({4, 6, 5})), "first");
    ir::Value* rows = slice(m, x, {1, 0, 0}, {2, 6, 5}, "rows");
    ir::Value* part = slice(m, x, {3, 2, 0}, {1, 3, 5}, "part");
    ir::Value* piece = slice(m, part, {0, 1, 1}, {1, 1, 3}, "piece"); // of a view
    ir::Value* backward = slice(m, x, {3, 0, 0}, {1, 6, 5}, "one_row", {-1, 1, 1});
    ir::Value* columns = slice(m, x, {0, 0, 1}, {4, 6, 2}, "columns");
    ir::Value* strided = slice(m, x, {0, 0, 0}, {2, 6, 5}, "strided", {2, 1, 1});
    int i = 0;
    for (ir::Value* v : {rows, part, piece, backward, columns, strided})
        m.output(activation(m, v, "of" + std::to_string(i), Kind::kSigmoid), "y" + std::to_string(i)), ++i;
    expectSkipped(m, 4);
}

TEST(Alias, ViewsOfInputsAndOutputs)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({4, 6}));
    ir::Value* y = activation(m, x, "first");
    m.output(activation(m, slice(m, x, {2, 0}, {1, 6}, "of_input"), "a", Kind::kSigmoid), "y0");
    m.output(y, "y1");
    m.output(activation(m, slice(m, y, {1, 0}, {2, 6}, "of_output"), "b", Kind::kSigmoid), "y2");
    m.output(slice(m, y, {0, 0}, {2, 6}, "output_itself"), "y3");
    expectSkipped(m, 2);
}

TEST(Alias, ViewsThatAreOutputs)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({2, 6}));
    ir::Value* y = activation(m, x, "first");
    m.output(shuffle(m, y, {}, {3, 4}, "reshape"), "y0"); // written in place
    m.output(shuffle(m, y, {}, {12}, "again"), "y1");     // y has one place only
    m.output(activation(m, y, "reads"), "y2");
    m.output(shuffle(m, x, {}, {4, 3}, "of_input"), "y3");
    expectSkipped(m, 1);
}

TEST(Alias, ShufflesThatMoveNothing)
{
    GraphMaker m;
    ir::Value* x = activation(m, m.input("x", ir::shapeOf({2, 1, 6})), "first");
    ir::Value* reshape = activation(m, shuffle(m, x, {}, {3, 4}, "reshape"), "a");
    ir::Value* ones = activation(m, shuffle(m, x, {1, 0, 2}, {}, "ones"), "b");
    ir::Value* moved = activation(m, shuffle(m, x, {2, 1, 0}, {}, "moved"), "c");
    m.output(reshape, "y0");
    m.output(ones, "y1");
    m.output(moved, "y2");
    expectSkipped(m, 2);
}

TEST(Alias, ChainsAndBranchesReachTheLowerBound)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({1, 64, 10}));
    for (int i = 0; i < 6; ++i) {
        std::string const n = std::to_string(i);
        ir::Value* a = activation(m, x, "a" + n);
        ir::Value* b = activation(m, slice(m, a, {0, 0, 0}, {1, 32, 10}, "s" + n), "b" + n, Kind::kSigmoid);
        x = sum(m, concat(m, {b, activation(m, b, "c" + n)}, 1, "d" + n), a, "e" + n);
    }
    m.output(x, "y");
    expectSkipped(m, 12);
}

TEST(Alias, ChannelsOfPixels)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({2, 32, 3, 5}));
    ir::Value* all =
        concat(m, {activation(m, x, "a"), activation(m, x, "b", Kind::kRelu), activation(m, x, "c", Kind::kSigmoid)}, 1,
               "cat");
    m.output(activation(m, all, "last", Kind::kSigmoid), "y");
    m.output(activation(m, slice(m, all, {0, 48, 0, 0}, {2, 32, 3, 5}, "cut"), "of_cut", Kind::kSigmoid), "z");
    expectJoined(m, 2);
}

// Each layer adds channels to all before it (DenseNet): the last join holds every one.
TEST(Alias, JoinsThatGrow)
{
    GraphMaker m;
    std::vector<ir::Value*> parts{activation(m, m.input("x", ir::shapeOf({2, 48, 4, 3})), "first")};
    for (int i = 0; i < 4; ++i) {
        std::string const n = std::to_string(i);
        ir::Value* all = i == 0 ? parts[0] : concat(m, parts, 1, "cat" + n);
        int64_t const channels = all->shape[1].value();
        parts.push_back(activation(
            m, slice(m, activation(m, all, "a" + n, Kind::kSigmoid), {0, channels - 16, 0, 0}, {2, 16, 4, 3}, "s" + n),
            "b" + n));
    }
    m.output(activation(m, concat(m, parts, 1, "all"), "last", Kind::kSigmoid), "y");
    expectJoined(m, 4 + 4);
}

// A split whose parts are joined again with what comes from them (YOLO's C2f).
TEST(Alias, PartsOfOneValueThatAreJoinedAgain)
{
    GraphMaker m;
    ir::Value* x = activation(m, m.input("x", ir::shapeOf({1, 64, 3, 3})), "first");
    ir::Value* a = slice(m, x, {0, 0, 0, 0}, {1, 32, 3, 3}, "a");
    ir::Value* b = slice(m, x, {0, 32, 0, 0}, {1, 32, 3, 3}, "b");
    ir::Value* c = sum(m, b, activation(m, b, "of_b", Kind::kSigmoid), "c");
    m.output(activation(m, concat(m, {a, b, c, activation(m, c, "d")}, 1, "cat"), "last", Kind::kSigmoid), "y");
    expectJoined(m, 3);
}

TEST(Alias, OneValueTwice)
{
    for (bool pixels : {false, true}) {
        GraphMaker m;
        ir::Value* a = activation(m, m.input("x", pixels ? ir::shapeOf({2, 32, 3, 5}) : ir::shapeOf({4, 5})), "a");
        m.output(activation(m, concat(m, {a, a}, pixels ? 1 : 0, "twice"), "last", Kind::kSigmoid), "y");
        if (pixels)
            expectJoined(m, 0); // but only one of the two is copied
        else
            expectSkipped(m, 0);
    }
}

TEST(Alias, ChannelsThatAreCopied)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({2, 32, 3, 5}));
    ir::Value *a = activation(m, x, "a"), *b = activation(m, x, "b", Kind::kRelu), *c = activation(m, x, "c");
    auto last = [&](ir::Value* v, char const* name) {
        m.output(activation(m, v, std::string("of_") + name, Kind::kSigmoid), name);
    };
    last(concat(m, {a, a}, 1, "twice"), "y0"); // once in its place
    last(concat(m, {x, b}, 1, "graph_input"), "y1");
    ir::Value* whole = concat(m, {slice(m, c, {0, 16, 0, 0}, {2, 16, 3, 5}, "part"), b}, 1, "part_of_another");
    last(whole, "y2");
    last(slice(m, c, {0, 8, 0, 0}, {2, 16, 3, 5}, "between_lines"), "y3");
    last(concat(m, {slice(m, c, {0, 0, 0, 0}, {2, 31, 3, 5}, "odd"), a}, 1, "odd_first"), "y4");
    last(concat(m, {b, a}, 1, "the_other_way"), "y5");
    // "part" and "the_other_way"; pixels of a GPU are vectors of 8 channels, so that one begins "between_lines".
    expectJoined(m, kOnGpu ? 3 : 2);
}

TEST(Alias, DependsOnTheSizesOfTheRun)
{
    for (int64_t n : {1, 2, 4}) {
        GraphMaker m;
        ir::Value* x = m.input("x", {ir::Dim::symbol("N"), 3});
        ir::Value* all = concat(m, {activation(m, x, "a"), activation(m, x, "b", Kind::kRelu)}, 1, "concat");
        m.output(activation(m, all, "last"), "y");
        expectSkipped(m, n == 1 ? 1 : 0, {{"N", {1, 2, 4}}}, {{"N", n}});
    }
}

} // namespace tw::test
