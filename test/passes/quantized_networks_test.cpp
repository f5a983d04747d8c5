// SPDX-License-Identifier: Apache-2.0
// Whole networks with Q and DQ through the whole list of passes, for a GPU with FP16 beside INT8: what INT8 can be is INT8,
// the rest FP16; FP32 is left at inputs and outputs alone.
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

void runAll(ir::Graph& g)
{
    NullLog log;
    passes::PassContext ctx{log, kGpu};
    ctx.half = ctx.int8 = true;
    auto done = passes::run(g, ctx, {.verifyEach = true});
    ASSERT_TRUE(done.ok()) << done.error().message;
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
    ir::Graph& g = m.g;
    runAll(g);
    EXPECT_EQ(floats(g), Names{}) << ir::print(g);
    Names wanted(7, "i8 to i8");
    wanted.push_back("i8 to f16");
    EXPECT_EQ(sums(g), wanted) << ir::print(g);
    EXPECT_EQ(nodesOf(g), "in.q:quantize") << ir::print(g);
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
    ir::Graph& g = m.g;
    runAll(g);
    EXPECT_EQ(floats(g), Names{}) << ir::print(g);
    EXPECT_EQ(sums(g), Names{}) << ir::print(g);
    EXPECT_EQ(nodesOf(g), "") << ir::print(g);
}

} // namespace tw::test
