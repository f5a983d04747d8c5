// SPDX-License-Identifier: Apache-2.0
// Whole networks with Q and DQ through the whole list of passes, for a GPU with FP16 beside INT8: what INT8 can be is INT8,
// the rest FP16; FP32 is left at inputs and outputs alone.
#include "ir/text.h"
#include "ops/activation/op.h"
#include "ops/convolution/op.h"
#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "ops/layer_norm/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/pooling/op.h"
#include "ops/shuffle/op.h"
#include "ops/softmax/op.h"
#include "pass_test.h"
#include "quantized.h"

namespace tw::test {

namespace {

using ops::activation::Kind;

class NetworkMaker : public GraphMaker
{
public:
    ir::Value* convolution(ir::Value* x, int64_t channels, int64_t window, int64_t stride, std::string const& name)
    {
        ops::convolution::Attrs a = ops::convolution::Attrs::plain(2);
        a.strides = {stride, stride};
        a.prePadding = a.postPadding = {window / 2, window / 2};
        ir::Value* const w = weights(*this, {channels, x->shape[1].value(), window, window}, 0, name + ".w");
        return add(ops::convolution::def(), a, {x, w, constant(name + ".b", {channels})}, name);
    }
    ir::Value* product(ir::Value* x, int64_t columns, std::string const& name)
    {
        ir::Value* const w = weights(*this, {columns, x->shape.back().value()}, 0, name + ".w");
        ops::matrix_multiply::Attrs a;
        a.b = ops::matrix_multiply::MatrixOperation::kTranspose;
        ir::Value* const y = add(ops::matrix_multiply::def(), a, {x, spread(w, x->rank(), name)}, name);
        return sum(y, constant(name + ".b", row(y)), name + ".bias");
    }
    ir::Value* activation(ir::Value* x, Kind kind, std::string const& name)
    {
        return add(ops::activation::def(), ops::activation::Attrs(kind), {x}, name);
    }
    ir::Value* sum(ir::Value* a, ir::Value* b, std::string const& name)
    {
        return add(ops::elementwise::def(), ops::elementwise::Attrs(ops::elementwise::Operation::kSum), {a, b}, name);
    }
    ir::Value* pool(ir::Value* x, ops::pooling::Kind kind, int64_t window, int64_t stride, std::string const& name)
    {
        ops::pooling::Attrs a;
        a.kind = kind;
        a.window = {window, window};
        a.strides = {stride, stride};
        a.prePadding = a.postPadding = {0, 0};
        return add(ops::pooling::def(), a, {x}, name);
    }
    ir::Value* norm(ir::Value* x, std::string const& name)
    {
        ops::layer_norm::Attrs a;
        a.axis = x->rank() - 1;
        a.hasGamma = a.hasBeta = true;
        Extents const n{x->shape.back().value()};
        return add(ops::layer_norm::def(), a, {x, constant(name + ".gamma", n), constant(name + ".beta", n)}, name);
    }

private:
    static Extents row(ir::Value const* y)
    {
        Extents e;
        for (int d = 0; d < y->rank(); ++d)
            e.push(d + 1 < y->rank() ? 1 : y->shape[size_t(d)].value());
        return e;
    }
    // As a matrix of so many dimensions.
    ir::Value* spread(ir::Value* w, int rank, std::string const& name)
    {
        if (rank == 2)
            return w;
        ops::shuffle::Attrs a;
        a.reshape = {1, w->shape[0].value(), w->shape[1].value()};
        a.hasReshape = true;
        return add(ops::shuffle::def(), a, {w}, name + ".spread");
    }
};

void runAll(ir::Graph& g, double tolerance)
{
    NullLog log;
    auto const inputs = randomInputs(g);
    auto const before = interp::run(g, refsOf(inputs));
    ASSERT_TRUE(before.ok()) << before.error().message;
    passes::PassContext ctx{{kGpu}, log};
    ctx.permits = {Permission::kHalf, Permission::kInt8};
    auto done = passes::run(g, ctx, {.verifyEach = true});
    ASSERT_TRUE(done.ok()) << done.error().message;
    auto const after = interp::run(g, refsOf(inputs));
    ASSERT_TRUE(after.ok()) << after.error().message;
    expectSame(refsOf(*after), *before, tolerance);
}

// What makes f32, besides the conversions at outputs.
std::vector<std::string> floats(ir::Graph const& g)
{
    std::vector<std::string> list;
    for (auto const& n : g.nodes)
        if (n->outputs[0]->type == DataType::kFloat && !g.isOutput(n->outputs[0]))
            list.push_back(n->name);
    return list;
}

// "i8 to f16": of the nodes of sums.
std::vector<std::string> sums(ir::Graph const& g)
{
    std::vector<std::string> list;
    for (auto const& n : g.nodes)
        if (n->op == &ops::convolution::def() || n->op == &ops::matrix_multiply::def())
            list.push_back(std::string(nameOf(n->inputs[0]->type)) + " to " + nameOf(n->outputs[0]->type));
    return list;
}

using Names = std::vector<std::string>;

} // namespace

TEST(QuantizedNetworks, ResidualBlocks)
{
    NetworkMaker m;
    ir::Value* x = faked(m, m.input("x", ir::shapeOf({2, 3, 16, 16})), 0.03125, "in");
    x = m.activation(m.convolution(x, 16, 3, 2, "stem"), Kind::kRelu, "stem.relu");
    x = m.pool(faked(m, x, 0.25, "stem.q"), ops::pooling::Kind::kMax, 2, 2, "pool");
    for (int i = 0; i < 2; ++i) {
        std::string const name = "block" + std::to_string(i);
        ir::Value* y = m.activation(m.convolution(x, 8, 1, 1, name + ".a"), Kind::kRelu, name + ".a.relu");
        y = m.convolution(faked(m, y, 0.5, name + ".a.q"), 8, 3, 1, name + ".b");
        y = m.activation(y, Kind::kRelu, name + ".b.relu");
        y = m.convolution(faked(m, y, 0.5, name + ".b.q"), 16, 1, 1, name + ".c");
        y = m.activation(m.sum(y, x, name + ".sum"), Kind::kRelu, name + ".relu");
        x = faked(m, y, 0.5, name + ".q");
    }
    x = faked(m, m.pool(x, ops::pooling::Kind::kAverage, 4, 1, "average"), 0.5, "average.q");
    m.output(m.convolution(x, 10, 1, 1, "classes"), "y");
    runAll(m.g, 0.01);
    EXPECT_EQ(floats(m.g), Names{}) << ir::print(m.g);
    Names wanted(7, "i8 to i8");
    wanted.push_back("i8 to f16");
    EXPECT_EQ(sums(m.g), wanted) << ir::print(m.g);
    EXPECT_EQ(
        nodesOf(m.g),
        "in.q:quantize, stem + stem.relu + stem.q.q:convolution, pool:pooling, "
        "block0.a + block0.a.relu + block0.a.q.q:convolution, block0.b + block0.b.relu + block0.b.q.q:convolution, "
        "block0.c + block0.sum + block0.relu + block0.q.q:convolution, "
        "block1.a + block1.a.relu + block1.a.q.q:convolution, block1.b + block1.b.relu + block1.b.q.q:convolution, "
        "block1.c + block1.sum + block1.relu + block1.q.q:convolution, average + average.q.q:pooling, "
        "classes:convolution, y [f32]:identity");
}

TEST(QuantizedNetworks, EncoderLayer)
{
    NetworkMaker m;
    constexpr int64_t kHidden = 8;
    ir::Value* const x = m.input("x", ir::shapeOf({2, 4, kHidden}));
    ir::Value* const integers = faked(m, x, 0.03125, "in");
    ir::Value* const q = m.product(integers, kHidden, "query");
    ir::Value* const k = m.product(integers, kHidden, "key");
    ir::Value* const v = m.product(integers, kHidden, "value");
    ops::matrix_multiply::Attrs scores;
    scores.b = ops::matrix_multiply::MatrixOperation::kTranspose;
    ir::Value* y = m.add(ops::matrix_multiply::def(), scores, {q, k}, "scores");
    ops::softmax::Attrs rows;
    rows.axis = 2;
    y = m.add(ops::softmax::def(), rows, {y}, "softmax");
    y = m.add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs(), {y, v}, "context");
    y = m.product(faked(m, y, 0.25, "context.q"), kHidden, "out");
    ir::Value* const a = m.norm(m.sum(y, x, "out.sum"), "norm1");
    y = m.activation(m.product(faked(m, a, 0.0625, "norm1.q"), 4 * kHidden, "up"), Kind::kRelu, "relu");
    y = m.product(faked(m, y, 0.25, "up.q"), kHidden, "down");
    m.output(m.norm(m.sum(y, a, "down.sum"), "norm2"), "y");
    runAll(m.g, 0.05);
    EXPECT_EQ(floats(m.g), Names{}) << ir::print(m.g);
    EXPECT_EQ(sums(m.g), (Names{"i8 to f16", "i8 to f16", "i8 to i8", "i8 to f16"}));
    EXPECT_EQ(nodesOf(m.g),
              "in.q:quantize, query + key + value + query.bias + key.bias + value.bias:matrix_multiply, "
              "scores + softmax + context + context.q.q:attention, "
              "x [f16]:identity, out + out.bias + out.sum:matrix_multiply, norm1 + norm1.q.q:layer_norm, "
              "up + up.bias + relu + up.q.q:matrix_multiply, down + down.bias + down.sum:matrix_multiply, "
              "norm2:layer_norm, y [f32]:identity");
}

} // namespace tw::test
