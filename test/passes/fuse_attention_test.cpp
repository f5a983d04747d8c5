// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "nodes.h"
#include "ops/attention/op.h"
#include "ops/gather/op.h"
#include "ops/select/op.h"
#include "ops/slice/op.h"
#include "ops/softmax/op.h"

namespace tw::test {

namespace {

using ops::matrix_multiply::MatrixOperation;
using Permutation = std::vector<int64_t>;

constexpr int64_t kHeads = 3, kSize = 4, kWidth = kHeads * kSize;

class AttentionMaker : public NodeMaker
{
public:
    ir::Dim const batch = ir::Dim::symbol("N"), length = ir::Dim::symbol("S");

    ir::Value* number(std::string const& name, double v) { return constant(name, {1, 1, 1, 1}, {v}); }
    ir::Value* shuffle(ir::Value* x, std::vector<int64_t> dims, Permutation const& second, std::string const& name,
                       Permutation const& first = {})
    {
        ops::shuffle::Attrs a;
        a.firstTranspose = first;
        a.hasReshape = !dims.empty();
        a.reshape = std::move(dims);
        a.secondTranspose = second;
        return add(ops::shuffle::def(), a, {x}, name);
    }
    ir::Value* tokens(std::string const& name, int64_t width = kWidth) { return input(name, {batch, length, width}); }
    ir::Value* split(ir::Value* x, Permutation const& p, std::string const& name)
    {
        return shuffle(x, {0, 0, kHeads, kSize}, p, name);
    }
    ir::Value* multiply(ir::Value* a, ir::Value* b, std::string const& name,
                        MatrixOperation op = MatrixOperation::kNone)
    {
        ops::matrix_multiply::Attrs attrs;
        attrs.b = op;
        return add(ops::matrix_multiply::def(), attrs, {a, b}, name);
    }
    ir::Value* softmax(ir::Value* scores)
    {
        ops::softmax::Attrs a;
        a.axis = scores->rank() - 1;
        return add(ops::softmax::def(), a, {scores}, "softmax");
    }
    ir::Value* attend(ir::Value* scores, ir::Value* v)
    {
        ir::Value* y = multiply(softmax(scores), v, "result");
        return shuffle(y, {0, 0, kWidth}, {}, "merge", {0, 2, 1, 3});
    }
};

// One attention node, and perhaps reshapes.
ops::attention::Attrs const* only(ir::Graph const& g)
{
    ops::attention::Attrs const* found = nullptr;
    for (auto const& n : g.nodes) {
        if (n->op == &ops::attention::def() && !found)
            found = &n->attrsAs<ops::attention::Attrs>();
        else if (n->op != &ops::shuffle::def() || !n->attrsAs<ops::shuffle::Attrs>().firstTranspose.empty())
            return nullptr;
    }
    return found;
}

} // namespace

TEST(FuseAttention, ThreeTensorsFactorAndMask)
{
    for (bool divide : {false, true})
        for (bool transposed : {false, true}) {
            AttentionMaker m;
            ir::Value* q = m.split(m.tokens("q"), {0, 2, 1, 3}, "q1");
            ir::Value* k = m.split(m.tokens("k"), transposed ? Permutation{0, 2, 1, 3} : Permutation{0, 2, 3, 1}, "k1");
            ir::Value* v = m.split(m.tokens("v"), {0, 2, 1, 3}, "v1");
            ir::Value* s =
                m.multiply(q, k, "scores", transposed ? MatrixOperation::kTranspose : MatrixOperation::kNone);
            s = m.apply(divide ? Operation::kDiv : Operation::kProd, s, m.number("f", 2), "factor");
            s = m.apply(Operation::kSum, s, m.input("mask", {m.batch, 1, 1, m.length}), "masked");
            m.output(m.attend(s, v), "y");
            checkPass(m.g, passes::fuseAttention, true, kCheck);
            auto const* a = only(m.g);
            ASSERT_NE(a, nullptr) << nodesOf(m.g);
            ASSERT_EQ(m.g.nodes.size(), 1u) << nodesOf(m.g);
            EXPECT_EQ(a->heads, kHeads);
            EXPECT_EQ(a->size, kSize);
            EXPECT_EQ(a->scale, divide ? 0.5 : 2);
            EXPECT_EQ(m.g.nodes[0]->inputs.size(), 4u);
            EXPECT_EQ(m.g.nodes[0]->body->nodes.size(), 9u);
        }
}

// 3 heads of queries on one of keys and values, 6 on two: each is expanded along a dimension of its own, which is then
// joined; by a stride of 0, or as Tile does it.
TEST(FuseAttention, HeadsOfKeysThatQueriesShare)
{
    for (int64_t keys : {1, 2})
        for (bool wraps : {false, true}) {
            AttentionMaker m;
            int64_t const heads = kHeads * keys;
            auto operand = [&](std::string const& name, int64_t own) {
                return m.shuffle(m.input(name, ir::shapeOf({2, 5, own * kSize})), {2, 5, own, kSize}, {0, 2, 1, 3},
                                 name + "1");
            };
            auto repeated = [&](std::string const& name, Permutation const& turned) {
                ops::slice::Attrs a;
                a.start = {0, 0, 0, 0, 0};
                a.size = {2, keys, kHeads, 5, kSize};
                a.stride = {1, 1, wraps ? 1 : 0, 1, 1};
                a.mode = wraps ? ops::slice::Mode::kWrap : ops::slice::Mode::kStrict;
                ir::Value* v = m.shuffle(operand(name, keys), {2, keys, 1, 5, kSize}, {}, name + "2");
                v = m.add(ops::slice::def(), a, {v}, name + "3");
                return m.shuffle(v, {2, heads, 5, kSize}, turned, name + "4");
            };
            ir::Value* s = m.multiply(operand("q", heads), repeated("k", {0, 1, 3, 2}), "scores");
            ir::Value* y = m.multiply(m.softmax(s), repeated("v", {}), "result");
            m.output(m.shuffle(y, {2, 5, heads * kSize}, {}, "merge", {0, 2, 1, 3}), "y");
            checkPass(m.g, passes::fuseAttention, true, kCheck);
            auto const* a = only(m.g);
            ASSERT_NE(a, nullptr) << nodesOf(m.g);
            ASSERT_EQ(m.g.nodes.size(), 1u) << nodesOf(m.g);
            EXPECT_EQ(a->heads, heads);
            EXPECT_EQ(a->headsPerKey, kHeads);
            EXPECT_EQ(m.g.nodes[0]->inputs[1]->shape, ir::shapeOf({2, 5, keys * kSize}));
            checkBody(*m.g.nodes[0]);
        }
}

TEST(FuseAttention, SplitOfOneTensorWithACondition)
{
    for (bool inverted : {false, true}) {
        AttentionMaker m;
        ir::Value* x = m.input("x", ir::shapeOf({2, 5, 3 * kWidth}));
        ir::Value* part[3];
        for (int i = 0; i < 3; ++i) {
            ops::slice::Attrs a;
            a.start = {0, 0, i * kWidth};
            a.stride = {1, 1, 1};
            a.size = {2, 5, kWidth};
            std::string const name(1, "qkv"[i]);
            part[i] = m.add(ops::slice::def(), a, {x}, name + ".part");
            part[i] = m.split(part[i], i == 1 ? Permutation{0, 2, 3, 1} : Permutation{0, 2, 1, 3}, name + ".heads");
        }
        ir::Value* s = m.apply(Operation::kDiv, m.multiply(part[0], part[1], "scores"), m.number("f", 2), "factor");
        std::vector<double> lower;
        for (int i = 0; i < 25; ++i)
            lower.push_back((i % 5 <= i / 5) != inverted);
        ir::Value* condition = m.constant("lower", {1, 1, 5, 5}, lower, DataType::kBool);
        ir::Value* low = m.number("low", -1e9);
        s = m.add(ops::select::def(), ops::select::Attrs{},
                  inverted ? std::vector<ir::Value*>{condition, low, s} : std::vector<ir::Value*>{condition, s, low},
                  "where");
        m.output(m.attend(s, part[2]), "y");
        checkPass(m.g, passes::fuseAttention, true);
        auto const* a = only(m.g);
        ASSERT_NE(a, nullptr) << nodesOf(m.g);
        EXPECT_EQ(m.g.nodes.size(), 1u) << nodesOf(m.g);
        EXPECT_EQ(a->q.offset, 0);
        EXPECT_EQ(a->k.offset, kWidth);
        EXPECT_EQ(a->v.offset, 2 * kWidth);
        EXPECT_EQ(a->v.headStride, kSize);
        EXPECT_EQ(a->keepInverted, inverted);
        for (int i = 0; i < 3; ++i)
            EXPECT_EQ(m.g.nodes[0]->inputs[size_t(i)], x);
    }
}

TEST(FuseAttention, GathersOfOneTransposedTensor)
{
    AttentionMaker m;
    ir::Value* x = m.tokens("x", 3 * kWidth);
    ir::Value* all = m.shuffle(x, {0, 0, 3, kHeads, kSize}, {2, 0, 3, 1, 4}, "all");
    ir::Value* part[3];
    for (int i = 0; i < 3; ++i)
        part[i] = m.add(ops::gather::def(), ops::gather::Attrs{},
                        {all, m.constant("index" + std::to_string(i), {}, {double(i)}, DataType::kInt32)},
                        std::string(1, "qkv"[i]));
    ir::Value* q = m.apply(Operation::kProd, part[0], m.number("f", 0.5), "scaled");
    ir::Value* s = m.multiply(q, m.shuffle(part[1], {}, {0, 1, 3, 2}, "turned"), "scores");
    m.output(m.attend(s, part[2]), "y");
    checkPass(m.g, passes::fuseAttention, true, kCheck);
    auto const* a = only(m.g);
    ASSERT_NE(a, nullptr) << nodesOf(m.g);
    EXPECT_EQ(m.g.nodes.size(), 1u) << nodesOf(m.g);
    EXPECT_EQ(a->scale, 0.5);
    EXPECT_EQ(a->k.offset, kWidth);
    EXPECT_EQ(m.g.nodes[0]->inputs[0], x);
}

TEST(FuseAttention, RowsOfAllBatchesAndHeadsFirst)
{
    AttentionMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({10, kWidth})); // 2 batches of 5
    ir::Value* q = m.shuffle(x, {2, 5, kHeads, kSize}, {0, 2, 1, 3}, "q");
    ir::Value* k = m.input("k", ir::shapeOf({2, kHeads, 7, kSize}));
    ir::Value* v = m.input("v", ir::shapeOf({2, kHeads, 7, kSize}));
    ir::Value* s = m.multiply(q, k, "scores", MatrixOperation::kTranspose);
    ops::softmax::Attrs soft;
    soft.axis = 3;
    ir::Value* y = m.multiply(m.add(ops::softmax::def(), soft, {s}, "softmax"), v, "result");
    m.output(m.shuffle(y, {10, kWidth}, {}, "merge", {0, 2, 1, 3}), "y");
    checkPass(m.g, passes::fuseAttention, true);
    ASSERT_NE(only(m.g), nullptr) << nodesOf(m.g);
    EXPECT_EQ(m.g.nodes.size(), 3u) << nodesOf(m.g); // a reshape before and one after
}

// [B * heads, S, size] as BART, OPT and Whisper have it, the mask between two reshapes.
TEST(FuseAttention, BatchesAndHeadsAsOne)
{
    for (bool masked : {false, true}) {
        AttentionMaker m;
        auto heads = [&](std::string const& name) {
            ir::Value* x = m.split(m.input(name, {m.batch, 5, kWidth}), {0, 2, 1, 3}, name + ".heads");
            return m.shuffle(x, {-1, 5, kSize}, {}, name + ".joined");
        };
        ir::Value* q = heads("q");
        ir::Value* k = m.shuffle(heads("k"), {}, {0, 2, 1}, "k.turned");
        ir::Value* v = heads("v");
        ir::Value* s = m.multiply(q, k, "scores");
        if (masked) {
            s = m.shuffle(s, {-1, kHeads, 5, 5}, {}, "apart");
            s = m.apply(Operation::kSum, s, m.input("mask", {m.batch, 1, 5, 5}), "masked");
            s = m.shuffle(s, {-1, 5, 5}, {}, "together");
        }
        ir::Value* y = m.multiply(m.softmax(s), v, "result");
        y = m.shuffle(y, {-1, kHeads, 5, kSize}, {0, 2, 1, 3}, "merge");
        m.output(m.shuffle(y, {-1, 5, kWidth}, {}, "rows"), "y");
        checkPass(m.g, passes::fuseAttention, true, kCheck);
        auto const* a = only(m.g);
        ASSERT_NE(a, nullptr) << nodesOf(m.g);
        EXPECT_EQ(a->heads, kHeads);
        EXPECT_EQ(m.g.nodes[0]->inputs[0]->name, "q"); // through both shuffles
        EXPECT_EQ(m.g.nodes[0]->inputs.size(), masked ? 4u : 3u);
    }
}

// torch.nn.MultiheadAttention: [S, B, columns], whose rows are not side by side.
TEST(FuseAttention, SequenceFirst)
{
    for (int64_t batch : {1, 2})
        for (bool merged : {true, false}) {
            AttentionMaker m;
            int64_t const all = batch * kHeads;
            auto heads = [&](std::string const& name, Permutation const& p) {
                return m.shuffle(m.input(name, ir::shapeOf({5, batch, kWidth})), {5, all, kSize}, p, name + ".heads");
            };
            ir::Value* q =
                m.apply(Operation::kProd, heads("q", {1, 0, 2}), m.constant("f", {1, 1, 1}, {0.5}), "factor");
            ir::Value* s = m.multiply(q, heads("k", {1, 2, 0}), "scores");
            s = m.apply(Operation::kSum, s, m.input("mask", ir::shapeOf({all, 1, 5})), "masked");
            ir::Value* y = m.multiply(m.softmax(s), heads("v", {1, 0, 2}), "result");
            m.output(merged ? m.shuffle(y, {5 * batch, kWidth}, {}, "merge", {1, 0, 2}) : y, "y");
            checkPass(m.g, passes::fuseAttention, true);
            ops::attention::Attrs const* a = nullptr;
            for (auto const& n : m.g.nodes) {
                EXPECT_NE(n->op, &ops::softmax::def());
                if (n->op == &ops::attention::def())
                    a = &n->attrsAs<ops::attention::Attrs>();
            }
            ASSERT_NE(a, nullptr) << nodesOf(m.g);
            EXPECT_EQ(a->heads, merged ? kHeads : 1);
        }
}

// The heads of a result that is transposed in another way, or not at all.
TEST(FuseAttention, NothingMerges)
{
    for (Permutation const& p : {Permutation{2, 0, 1, 3}, Permutation{}}) {
        AttentionMaker m;
        ir::Value* q = m.split(m.tokens("q"), {0, 2, 1, 3}, "q1");
        ir::Value* k = m.split(m.tokens("k"), {0, 2, 3, 1}, "k1");
        ir::Value* v = m.split(m.tokens("v"), {0, 2, 1, 3}, "v1");
        ir::Value* y = m.multiply(m.softmax(m.multiply(q, k, "scores")), v, "result");
        m.output(p.empty() ? y : m.shuffle(y, {}, p, "merge"), "y");
        checkPass(m.g, passes::fuseAttention, true, kCheck);
        EXPECT_EQ(m.g.nodes.size(), 2u) << nodesOf(m.g);
        EXPECT_EQ(m.g.nodes[0]->op, &ops::attention::def());
    }
}

// where(isnan(p), 0, p): rows without a column give 0, but NaN where v is not finite.
TEST(FuseAttention, GuardAgainstRowsWithoutColumns)
{
    double const inf = std::numeric_limits<double>::infinity();
    for (bool packed : {false, true})
        for (bool inverted : {false, true})
            for (bool finite : {true, false}) {
                AttentionMaker m;
                ir::Value* x = m.input("x", ir::shapeOf({1, 3, packed ? 3 * kWidth : kWidth}));
                ir::Value* part[3] = {x, x, x};
                for (int i = 0; i < 3; ++i) {
                    std::string const name(1, "qkv"[i]);
                    ops::slice::Attrs a;
                    a.start = {0, 0, i * kWidth};
                    a.stride = {1, 1, 1};
                    a.size = {1, 3, kWidth};
                    if (packed)
                        part[i] = m.add(ops::slice::def(), a, {x}, name + ".part");
                    if (i == 2 && !finite)
                        part[i] =
                            m.apply(Operation::kSum, part[i], m.constant("bad", {1, 1, kWidth}, {0, inf}), "v.bad");
                    part[i] = m.split(part[i], i == 1 ? Permutation{0, 2, 3, 1} : Permutation{0, 2, 1, 3}, name);
                }
                ir::Value* mask = m.constant("mask", {1, 1, 3, 3}, {0, -inf, -inf, -inf, -inf, -inf, 0, 0, -inf});
                ir::Value* s = m.apply(Operation::kSum, m.multiply(part[0], part[1], "scores"), mask, "masked");
                ir::Value *p = m.softmax(s), *zero = m.number("zero", 0);
                ir::Value* test = m.apply(Operation::kEqual, p, p, "equal");
                if (inverted)
                    test = m.add(ops::unary::def(), ops::unary::Attrs(ops::unary::Operation::kNot), {test}, "isnan");
                p = m.add(ops::select::def(), {test, inverted ? zero : p, inverted ? p : zero}, "guarded");
                ir::Value* y = m.multiply(p, part[2], "result");
                m.output(m.shuffle(y, {0, 0, kWidth}, {}, "merge", {0, 2, 1, 3}), "y");
                checkPass(m.g, passes::fuseAttention, true);
                int attentions = 0;
                for (auto const& n : m.g.nodes) {
                    EXPECT_NE(n->op, &ops::softmax::def()) << nodesOf(m.g);
                    attentions += n->op == &ops::attention::def();
                }
                EXPECT_EQ(attentions, 1);
            }
}

// The same where queries share the heads of keys and values: each column of the result has the row of its own head.
TEST(FuseAttention, GuardWithSharedHeads)
{
    double const inf = std::numeric_limits<double>::infinity();
    for (bool apart : {false, true}) // [B, heads, S, size] at once
        for (bool finite : {true, false}) {
            AttentionMaker m;
            constexpr int64_t kKeys = 2, kAll = kKeys * kHeads;
            auto operand = [&](std::string const& name, int64_t own) {
                if (apart)
                    return m.input(name, ir::shapeOf({2, own, 5, kSize}));
                ir::Value* rows = m.input(name, ir::shapeOf({2, 5, own * kSize}));
                return m.shuffle(rows, {2, 5, own, kSize}, {0, 2, 1, 3}, name + "1");
            };
            auto repeated = [&](ir::Value* x, std::string const& name, Permutation const& turned) {
                ops::slice::Attrs a;
                a.start = {0, 0, 0, 0, 0};
                a.size = {2, kKeys, kHeads, 5, kSize};
                a.stride = {1, 1, 0, 1, 1};
                ir::Value* v = m.shuffle(x, {2, kKeys, 1, 5, kSize}, {}, name + "2");
                return m.shuffle(m.add(ops::slice::def(), a, {v}, name + "3"), {2, kAll, 5, kSize}, turned, name + "4");
            };
            ir::Value* v = operand("v", kKeys);
            if (!finite)
                v = m.apply(Operation::kSum, v, m.constant("bad", {1, kKeys, 1, 1}, {0, inf}), "v.bad");
            ir::Value* s = m.multiply(operand("q", kAll), repeated(operand("k", kKeys), "k", {0, 1, 3, 2}), "scores");
            std::vector<double> mask(25, 0);
            std::fill_n(mask.begin() + 5, 7, -inf); // a row, and a part of the next one
            s = m.apply(Operation::kSum, s, m.constant("mask", {1, 1, 5, 5}, mask), "masked");
            ir::Value* p = m.softmax(s);
            p = m.add(ops::select::def(), {m.apply(Operation::kEqual, p, p, "equal"), p, m.number("zero", 0)},
                      "guarded");
            ir::Value* y = m.multiply(p, repeated(v, "v", {}), "result");
            m.output(m.shuffle(y, {2, 5, kAll * kSize}, {}, "merge", {0, 2, 1, 3}), "y");
            checkPass(m.g, passes::fuseAttention, true);
            for (auto const& n : m.g.nodes)
                if (n->op == &ops::attention::def())
                    EXPECT_EQ(n->attrsAs<ops::attention::Attrs>().headsPerKey, kHeads);
                else
                    EXPECT_NE(n->op, &ops::softmax::def()) << nodesOf(m.g);
        }
}

TEST(FuseAttention, OthersReadKeys)
{
    AttentionMaker m;
    ir::Value* q = m.split(m.tokens("q"), {0, 2, 1, 3}, "q1");
    ir::Value* k = m.split(m.tokens("k"), {0, 2, 1, 3}, "k1");
    ir::Value* v = m.split(m.tokens("v"), {0, 2, 1, 3}, "v1");
    m.output(m.attend(m.multiply(q, k, "scores", MatrixOperation::kTranspose), v), "y");
    m.output(k, "keys");
    checkPass(m.g, passes::fuseAttention, true, kCheck);
    ASSERT_EQ(m.g.nodes.size(), 2u) << nodesOf(m.g);
    EXPECT_EQ(m.g.nodes[1]->inputs[1]->name, "k"); // not through the transposed keys
}

TEST(FuseAttention, ReasonsNotTo)
{
    auto with = [](auto change) {
        AttentionMaker m;
        ir::Value* q = m.split(m.tokens("q"), {0, 2, 1, 3}, "q1");
        ir::Value* k = m.split(m.tokens("k"), {0, 2, 3, 1}, "k1");
        ir::Value* v = m.split(m.tokens("v"), {0, 2, 1, 3}, "v1");
        change(m, m.multiply(q, k, "scores"), v);
        checkPass(m.g, passes::fuseAttention, false, kCheck);
    };
    with([](AttentionMaker& m, ir::Value* s, ir::Value* v) { // others read the scores
        m.output(m.attend(s, v), "y");
        m.output(s, "s");
    });
    with([](AttentionMaker& m, ir::Value* s, ir::Value* v) { // a mask for each query
        m.output(m.attend(m.apply(Operation::kSum, s, m.input("mask", {1, 1, m.length, 1}), "masked"), v), "y");
    });
    with([](AttentionMaker& m, ir::Value* s, ir::Value* v) { // factors of each head
        m.output(m.attend(m.apply(Operation::kProd, s, m.constant("f", {1, kHeads, 1, 1}), "factor"), v), "y");
    });
    with([](AttentionMaker& m, ir::Value* s, ir::Value* v) { // along another axis
        ops::softmax::Attrs a;
        a.axis = 2;
        ir::Value* y = m.multiply(m.add(ops::softmax::def(), a, {s}, "softmax"), v, "result");
        m.output(m.shuffle(y, {0, 0, kWidth}, {}, "merge", {0, 2, 1, 3}), "y");
    });
}

} // namespace tw::test
