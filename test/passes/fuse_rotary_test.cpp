// SPDX-License-Identifier: Apache-2.0
#include "nodes.h"
#include "ops/concatenation/op.h"
#include "ops/rotary/op.h"
#include "ops/slice/op.h"

namespace tw::test {

namespace {

ir::Dim const kB = ir::Dim::symbol("B");

class RotaryMaker : public NodeMaker
{
public:
    // Of x [7, .., n] or with B in front: every `step`-th of `count` elements of the last dimension from `start` on. The
    // other dimensions are numbers.
    ir::Value* part(ir::Value* x, int64_t start, int64_t count, int64_t step, std::string const& name)
    {
        ops::slice::Attrs a;
        for (ir::Dim const& d : x->shape) {
            a.start.push_back(0);
            a.size.push_back(d.value());
            a.stride.push_back(1);
        }
        a.start.back() = start;
        a.size.back() = count;
        a.stride.back() = step;
        return add(ops::slice::def(), a, {x}, name);
    }
    ir::Value* join(ir::Value* a, ir::Value* b, std::string const& name)
    {
        return add(ops::concatenation::def(), ops::concatenation::Attrs(int32_t(a->rank() - 1)), {a, b}, name);
    }
    // One behind the other, element by element.
    ir::Value* interleave(ir::Value* a, ir::Value* b, std::string const& name)
    {
        std::vector<int64_t> apart, whole;
        for (ir::Dim const& d : a->shape) {
            apart.push_back(d.value());
            whole.push_back(d.value());
        }
        apart.push_back(1);
        whole.back() *= 2;
        return reshape(join(reshape(a, apart, name + "_a"), reshape(b, apart, name + "_b"), name + "_joined"), whole,
                       name);
    }
    ir::Value* negative(ir::Value* x, std::string const& name)
    {
        return add(ops::unary::def(), ops::unary::Attrs(ops::unary::Operation::kNeg), {x}, name);
    }
    // x c + turned(x) s
    ir::Value* whole(ir::Value* x, ir::Value* c, ir::Value* s, bool interleaved)
    {
        int64_t const half = x->shape.back().value() / 2;
        ir::Value* low = part(x, 0, half, interleaved ? 2 : 1, "low");
        ir::Value* high = negative(part(x, interleaved ? 1 : half, half, interleaved ? 2 : 1, "high"), "negative");
        ir::Value* turned = interleaved ? interleave(high, low, "turned") : join(high, low, "turned");
        return apply(Operation::kSum, apply(Operation::kProd, x, c, "kept"),
                     apply(Operation::kProd, turned, s, "taken"), "sum");
    }
    // x1 c - x2 s, x2 c + x1 s
    ir::Value* pairs(ir::Value* x, ir::Value* c, ir::Value* s, bool interleaved)
    {
        int64_t const half = x->shape.back().value() / 2;
        ir::Value* x1 = part(x, 0, half, interleaved ? 2 : 1, "low");
        ir::Value* x2 = part(x, interleaved ? 1 : half, half, interleaved ? 2 : 1, "high");
        ir::Value* y1 =
            apply(Operation::kSub, apply(Operation::kProd, x1, c, "a"), apply(Operation::kProd, s, x2, "b"), "first");
        ir::Value* y2 =
            apply(Operation::kSum, apply(Operation::kProd, x1, s, "d"), apply(Operation::kProd, x2, c, "e"), "second");
        return interleaved ? interleave(y1, y2, "y_both") : join(y1, y2, "y_both");
    }
};

void expectRotary(RotaryMaker& m, ir::Value* y, int64_t size, bool interleaved)
{
    m.output(y, "y");
    checkPass(m.g, passes::fuseRotary, true);
    ASSERT_EQ(m.g.nodes.size(), 1u) << nodesOf(m.g);
    ir::Node const& n = *m.g.nodes[0];
    ASSERT_EQ(n.op, &ops::rotary::def());
    EXPECT_EQ(n.attrsAs<ops::rotary::Attrs>().size, size);
    EXPECT_EQ(n.attrsAs<ops::rotary::Attrs>().interleaved, interleaved);
    checkBody(n);
}

} // namespace

TEST(FuseRotary, OfWholeTables)
{
    for (bool interleaved : {false, true})
        for (bool constant : {false, true}) {
            RotaryMaker m;
            ir::Value* x = m.input("x", {2, 3, 5, 8});
            ir::Value* c = constant ? m.constant("c", {1, 1, 5, 8}) : m.input("c", {2, 1, 5, 8});
            ir::Value* s = constant ? m.constant("s", {1, 1, 5, 8}) : m.input("s", {2, 1, 5, 8});
            expectRotary(m, m.whole(x, c, s, interleaved), 8, interleaved);
        }
}

TEST(FuseRotary, OfTablesByPair)
{
    for (bool interleaved : {false, true}) {
        RotaryMaker m;
        ir::Value* x = m.input("x", {2, 5, 3, 8});
        expectRotary(m, m.pairs(x, m.constant("c", {1, 5, 1, 4}), m.constant("s", {1, 5, 1, 4}), interleaved), 8,
                     interleaved);
    }
}

// The reshape that puts neighbours side by side has become one with another behind it.
TEST(FuseRotary, OfNeighboursInAnotherShape)
{
    for (std::vector<int64_t> const& shape : {std::vector<int64_t>{2, 5, 24}, {2, 5, 3, 1, 8}, {240}}) {
        RotaryMaker m;
        ir::Value* x = m.input("x", {2, 5, 3, 8});
        ir::Value* y = m.pairs(x, m.constant("c", {1, 5, 1, 4}), m.constant("s", {1, 5, 1, 4}), true);
        ir::Node* const last = y->producer;
        m.output(m.reshape(last->inputs[0], shape, "y_other"), "y");
        m.g.eraseNode(last);
        checkPass(m.g, passes::fuseRotary, true);
        ASSERT_EQ(m.g.nodes.size(), 2u) << nodesOf(m.g);
        EXPECT_EQ(m.g.nodes[0]->op, &ops::rotary::def());
        EXPECT_TRUE(m.g.nodes[0]->attrsAs<ops::rotary::Attrs>().interleaved);
        checkBody(*m.g.nodes[0]);
    }
}

// ... or with a transpose.
TEST(FuseRotary, OfNeighboursThatAreMoved)
{
    RotaryMaker m;
    ir::Value* x = m.input("x", {2, 5, 3, 8});
    ir::Value* y = m.pairs(x, m.constant("c", {1, 5, 1, 4}), m.constant("s", {1, 5, 1, 4}), true);
    ir::Node* const last = y->producer;
    ops::shuffle::Attrs a;
    a.hasReshape = true;
    a.reshape = {2, 5, 3, 8};
    a.secondTranspose = {0, 2, 1, 3};
    m.output(m.add(ops::shuffle::def(), a, {last->inputs[0]}, "y_moved"), "y");
    m.g.eraseNode(last);
    checkPass(m.g, passes::fuseRotary, true);
    ASSERT_EQ(m.g.nodes.size(), 2u) << nodesOf(m.g);
    EXPECT_EQ(m.g.nodes[0]->op, &ops::rotary::def());
    EXPECT_FALSE(m.g.nodes[1]->attrsAs<ops::shuffle::Attrs>().hasReshape);
    checkBody(*m.g.nodes[0]);
}

TEST(FuseRotary, OfAPart)
{
    RotaryMaker m;
    ir::Value* z = m.input("x", {2, 3, 5, 12});
    ir::Value* y =
        m.whole(m.part(z, 0, 8, 1, "head"), m.constant("c", {1, 1, 5, 8}), m.constant("s", {1, 1, 5, 8}), false);
    expectRotary(m, m.join(y, m.part(z, 8, 4, 1, "tail"), "all"), 8, false);
}

// [B, S, heads * n] -> [B, heads, S, n]: the node stands in front of the transpose.
TEST(FuseRotary, BehindATranspose)
{
    for (bool constant : {false, true}) {
        RotaryMaker m;
        ops::shuffle::Attrs heads;
        heads.hasReshape = true;
        heads.reshape = {2, 5, 3, 8};
        heads.secondTranspose = {0, 2, 1, 3};
        ir::Value* x = m.add(ops::shuffle::def(), heads, {m.input("x", {2, 5, 24})}, "heads");
        ir::Value* c = constant ? m.constant("c", {1, 1, 5, 8}) : m.input("c", {2, 1, 5, 8});
        m.output(m.whole(x, c, m.constant("s", {1, 1, 5, 8}), false), "y");
        checkPass(m.g, passes::fuseRotary, true);
        ASSERT_EQ(m.g.nodes.size(), constant ? 3u : 4u) << nodesOf(m.g);
        ir::Node const& n = *m.g.nodes[m.g.nodes.size() - 2];
        ASSERT_EQ(n.op, &ops::rotary::def());
        EXPECT_EQ(n.outputs[0]->shape, (ir::Shape{2, 5, 3, 8}));
        checkBody(n);
    }
}

TEST(FuseRotary, ReasonsNotTo)
{
    auto with = [](auto make) {
        RotaryMaker m;
        ir::Value* x = m.input("x", {2, 3, 5, 8});
        m.output(make(m, x, m.constant("c", {1, 1, 5, 8}), m.constant("s", {1, 1, 5, 8})), "y");
        checkPass(m.g, passes::fuseRotary, false);
    };
    with([](RotaryMaker& m, ir::Value* x, ir::Value* c, ir::Value* s) { // others read what is turned
        ir::Value* y = m.whole(x, c, s, false);
        m.output(y->producer->inputs[1], "taken_out");
        return y;
    });
    with([](RotaryMaker& m, ir::Value* x, ir::Value* c, ir::Value* s) { // the other half is negative
        ir::Value* turned =
            m.join(m.part(x, 4, 4, 1, "high"), m.negative(m.part(x, 0, 4, 1, "low"), "negative"), "turned");
        return m.apply(Operation::kSum, m.apply(Operation::kProd, x, c, "kept"),
                       m.apply(Operation::kProd, turned, s, "taken"), "sum");
    });
    with([](RotaryMaker& m, ir::Value* x, ir::Value* c, ir::Value* s) { // not the halves
        ir::Value* turned =
            m.join(m.negative(m.part(x, 3, 4, 1, "high"), "negative"), m.part(x, 0, 4, 1, "low"), "turned");
        return m.apply(Operation::kSum, m.apply(Operation::kProd, x, c, "kept"),
                       m.apply(Operation::kProd, turned, s, "taken"), "sum");
    });
}

} // namespace tw::test
