// SPDX-License-Identifier: Apache-2.0
// move_quantization, fuse_quantization and quantize_ranges. Scales are powers of two and numbers few, so that sums in
// floats and in integers are the same to the last bit.
#include "nodes.h"
#include "ops/concatenation/op.h"
#include "ops/convolution/op.h"
#include "ops/dequantize/op.h"
#include "ops/gather/op.h"
#include "ops/padding/op.h"
#include "ops/pooling/op.h"
#include "ops/quantize/op.h"
#include "ops/scale/op.h"
#include "ops/slice/op.h"
#include "ops/softmax/op.h"
#include "quantized.h"

namespace tw::test {

namespace {

using ops::Epilogue;

ir::Node const* find(ir::Graph const& g, ir::OpDef const& op)
{
    for (auto const& n : g.nodes)
        if (n->op == &op)
            return n.get();
    return nullptr;
}

int count(ir::Graph const& g, ir::OpDef const& op)
{
    return int(std::count_if(g.nodes.begin(), g.nodes.end(), [&](auto const& n) { return n->op == &op; }));
}

ops::shuffle::Attrs transposition(std::vector<int64_t> const& order)
{
    ops::shuffle::Attrs a;
    a.firstTranspose = order;
    return a;
}

} // namespace

TEST(MoveQuantization, DequantizeGoesDownAndMeetsQuantize)
{
    GraphMaker m;
    ir::Value* x = faked(m, m.input("x", ir::shapeOf({2, 3, 6, 6})), 0.125, "a");
    ir::Value* p =
        m.add(ops::pooling::def(), ops::pooling::Attrs::plain(ops::pooling::Kind::kMax, {2, 2}), {x}, "pool");
    ir::Value* t = m.add(ops::shuffle::def(), transposition({0, 2, 3, 1}), {p}, "nhwc");
    ir::Value* y = faked(m, t, 0.125, "b");
    m.output(m.add(ops::activation::def(), ops::activation::Attrs(ops::activation::Kind::kRelu), {y}, "relu"), "y");
    checkPass(m.g, passes::moveQuantization, true);
    EXPECT_EQ(nodesOf(m.g), "a.q:quantize, pool:pooling, nhwc:shuffle, b.dq:dequantize, relu:activation");
}

TEST(MoveQuantization, QuantizeGoesUp)
{
    GraphMaker m;
    ir::Value* a = m.input("a", ir::shapeOf({2, 3, 4, 4}));
    ir::Value* b = m.input("b", ir::shapeOf({2, 5, 4, 4}));
    ops::concatenation::Attrs join;
    join.axis = 1;
    ir::Value* c = m.add(ops::concatenation::def(), join, {a, b, a}, "join");
    ops::padding::Attrs pad;
    pad.pre = {1, 1};
    ir::Value* p = m.add(ops::padding::def(), pad, {c}, "pad");
    m.output(dequantized(m, quantized(m, p, 0.5, "q"), 0.5, "dq"), "y");
    checkPass(m.g, passes::moveQuantization, true);
    EXPECT_EQ(nodesOf(m.g), "q:quantize, q:quantize, join:concatenation, pad:padding, dq:dequantize");
}

TEST(MoveQuantization, PartsGoUpTogetherOrNotAtAll)
{
    for (bool alike : {true, false}) {
        GraphMaker m;
        ir::Value* x = m.input("x", ir::shapeOf({2, 8}));
        for (int i = 0; i < 2; ++i) {
            ops::slice::Attrs part;
            part.start = {0, i * 4};
            part.size = {2, 4};
            part.stride = {1, 1};
            std::string const n = std::to_string(i);
            ir::Value* s = m.add(ops::slice::def(), part, {x}, "part" + n);
            double const scale = alike || i == 0 ? 0.25 : 0.5;
            m.output(dequantized(m, quantized(m, s, scale, "q" + n), scale, "dq" + n), "y" + n);
        }
        checkPass(m.g, passes::moveQuantization, alike);
        EXPECT_EQ(count(m.g, ops::quantize::def()), alike ? 1 : 2);
    }
}

// A transposition that a fusion left in front of another one, with Q behind both.
TEST(FuseQuantization, ShufflesThatMeetBecomeOne)
{
    GraphMaker m;
    ir::Value* x = m.add(ops::softmax::def(), ops::softmax::Attrs(), {m.input("x", ir::shapeOf({2, 3, 4}))}, "softmax");
    x = m.add(ops::shuffle::def(), transposition({0, 2, 1}), {x}, "there");
    x = faked(m, m.add(ops::shuffle::def(), transposition({0, 2, 1}), {x}, "back"), 0.125, "a");
    using enum ops::matrix_multiply::MatrixOperation;
    m.output(m.add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs(kNone, kNone),
                   {x, weights(m, {1, 4, 5}, 2, "w")}, "product"),
             "y");
    checkPass(m.g, passes::fuseQuantization, true);
    EXPECT_EQ(nodesOf(m.g), "softmax:softmax, a.q:quantize, product:matrix_multiply");
}

TEST(MoveQuantization, ScalesOfWeightsFollowTheirAxis)
{
    GraphMaker m;
    ir::Value* x = faked(m, m.input("x", ir::shapeOf({3, 4})), 0.125, "a");
    ir::Value* w = weights(m, {5, 4}, 0, "w");
    ir::Value* t = m.add(ops::shuffle::def(), transposition({1, 0}), {w}, "t");
    using enum ops::matrix_multiply::MatrixOperation;
    m.output(m.add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs(kNone, kNone), {x, t}, "product"), "y");
    checkPass(m.g, passes::moveQuantization, true);
    checkPass(m.g, passes::foldConstants, true);
    ir::Node const* product = find(m.g, ops::matrix_multiply::def());
    ASSERT_TRUE(product && product->inputs[1]->producer);
    EXPECT_EQ(product->inputs[1]->producer->attrsAs<ops::dequantize::Attrs>().axis, 1);
    EXPECT_TRUE(product->inputs[1]->producer->inputs[0]->isConstant());
    checkPass(m.g, passes::fuseQuantization, true);
    EXPECT_EQ(nodesOf(m.g), "a.q:quantize, product:matrix_multiply");
}

TEST(MoveQuantization, ReasonsNotTo)
{
    { // other scales
        GraphMaker m;
        ir::Value* x = faked(m, m.input("x", ir::shapeOf({2, 3})), 0.125, "a");
        m.output(faked(m, x, 0.25, "b"), "y");
        checkPass(m.g, passes::moveQuantization, false);
    }
    { // an output in between
        GraphMaker m;
        ir::Value* x = m.input("x", ir::shapeOf({2, 3}));
        ir::Value* t = m.add(ops::shuffle::def(), transposition({1, 0}), {x}, "t");
        m.output(t, "t");
        m.output(dequantized(m, quantized(m, t, 0.5, "q"), 0.5, "dq"), "y");
        checkPass(m.g, passes::moveQuantization, false);
    }
    { // concatenation of other scales
        GraphMaker m;
        ops::concatenation::Attrs join;
        join.axis = 0;
        ir::Value* a = faked(m, m.input("a", ir::shapeOf({2, 3})), 0.5, "a");
        ir::Value* b = faked(m, m.input("b", ir::shapeOf({2, 3})), 0.25, "b");
        m.output(m.add(ops::concatenation::def(), join, {a, b}, "join"), "y");
        checkPass(m.g, passes::moveQuantization, false);
    }
}

TEST(FuseQuantization, ConvolutionsOfAllKinds)
{
    for (bool transposed : {false, true})
        for (int64_t groups : {1, 2})
            for (int axis : {-1, transposed ? 1 : 0})
                for (bool bias : {false, true})
                    for (bool toInt8 : {false, true}) {
                        GraphMaker m;
                        ir::Value* x = faked(m, m.input("x", ir::shapeOf({2, 4, 5, 5})), 0.125, "a");
                        auto a = ops::convolution::Attrs::plain(2, transposed);
                        a.groups = groups;
                        a.epilogue.activation =
                            ops::FusedActivation(ops::activation::Attrs(ops::activation::Kind::kRelu));
                        Extents const w = transposed ? Extents{4, 6 / groups, 3, 3} : Extents{6, 4 / groups, 3, 3};
                        std::vector<ir::Value*> in{x, weights(m, w, axis, "w")};
                        if (bias)
                            in.push_back(m.constant("b", {6}, {0.5, -0.25, 1, -1, 0.75, 2}));
                        ir::Value* y = m.add(ops::convolution::def(), a, in, "conv");
                        m.output(toInt8 ? faked(m, y, 0.25, "b") : y, "y");
                        bool const can = !(transposed && groups > 1 && axis >= 0);
                        checkPass(m.g, passes::fuseQuantization, true);
                        ir::Node const* conv = find(m.g, ops::convolution::def());
                        ASSERT_TRUE(conv);
                        EXPECT_EQ(conv->inputs[1]->type, can ? DataType::kInt8 : DataType::kFloat);
                        EXPECT_EQ(conv->outputs[0]->type, can && toInt8 ? DataType::kInt8 : DataType::kFloat);
                        EXPECT_EQ(conv->name, can && toInt8 ? "conv + b.q" : "conv");
                        EXPECT_EQ(count(m.g, ops::quantize::def()), can || !toInt8 ? 1 : 2);
                    }
}

TEST(FuseQuantization, ActivationsThatScalesDoNotPass)
{
    for (auto kind : {ops::activation::Kind::kSigmoid, ops::activation::Kind::kClip, ops::activation::Kind::kTanh}) {
        GraphMaker m;
        ir::Value* x = faked(m, m.input("x", ir::shapeOf({2, 4, 5, 5})), 0.125, "a");
        auto a = ops::convolution::Attrs::plain(2);
        ops::activation::Attrs f(kind);
        f.alpha = 0;
        f.beta = 6;
        a.epilogue.activation = ops::FusedActivation(f);
        ir::Value* y = m.add(ops::convolution::def(), a, {x, weights(m, {6, 4, 3, 3}, 0, "w")}, "conv");
        m.output(faked(m, y, 0.0625, "b"), "y");
        PassCheck check;
        check.tolerance = 0.0626; // of one step
        checkPass(m.g, passes::fuseQuantization, true, check);
        ir::Node const* conv = find(m.g, ops::convolution::def());
        ASSERT_TRUE(conv);
        EXPECT_TRUE(ops::hasInput(*conv, Epilogue::kOutputScale));
        EXPECT_EQ(conv->outputs[0]->type, DataType::kInt8);
    }
}

TEST(FuseQuantization, ResidualsDecideTheOutput)
{
    for (bool integers : {true, false}) {
        GraphMaker m;
        ir::Value* x = faked(m, m.input("x", ir::shapeOf({2, 4, 5, 5})), 0.125, "a");
        ir::Value* r = m.input("r", ir::shapeOf({2, 6, 3, 3}));
        if (integers)
            r = faked(m, r, 0.5, "r");
        auto a = ops::convolution::Attrs::plain(2);
        a.epilogue.activation = ops::FusedActivation(ops::activation::Attrs(ops::activation::Kind::kRelu));
        ir::Value* y =
            m.add(ops::convolution::def(), a,
                  {x, weights(m, {6, 4, 3, 3}, 0, "w"), m.constant("b", {6}, {1, 2, 3, -1, -2, 0}), r}, "conv");
        m.output(faked(m, y, 0.25, "b"), "y");
        checkPass(m.g, passes::fuseQuantization, true);
        ir::Node const* conv = find(m.g, ops::convolution::def());
        ASSERT_TRUE(conv);
        EXPECT_EQ(conv->outputs[0]->type, integers ? DataType::kInt8 : DataType::kFloat);
        EXPECT_EQ(ops::hasInput(*conv, Epilogue::kResidualScale), integers);
    }
}

// As ONNX Runtime's quantizer places them: a pair between the convolution and the sum, too.
TEST(FuseQuantization, RoundedBeforeTheSum)
{
    for (bool toInt8 : {false, true})
        for (bool first : {false, true}) {
            GraphMaker m;
            ir::Value* x = faked(m, m.input("x", ir::shapeOf({2, 4, 5, 5})), 0.125, "a");
            ir::Value* r = faked(m, m.input("r", ir::shapeOf({2, 6, 3, 3})), 0.5, "r");
            ir::Value* y =
                m.add(ops::convolution::def(), ops::convolution::Attrs::plain(2),
                      {x, weights(m, {6, 4, 3, 3}, 0, "w"), m.constant("b", {6}, {1, 2, 3, -1, -2, 0})}, "conv");
            y = faked(m, y, 0.25, "p");
            y = m.add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kSum),
                      first ? std::vector<ir::Value*>{y, r} : std::vector<ir::Value*>{r, y}, "sum");
            y = m.add(ops::activation::def(), ops::activation::Attrs(ops::activation::Kind::kRelu), {y}, "relu");
            m.output(toInt8 ? faked(m, y, 0.5, "b") : y, "y");
            checkPass(m.g, passes::fuseQuantization, true);
            std::string const tail = toInt8 ? " + b.q:convolution, b.dq:dequantize" : ":convolution";
            EXPECT_EQ(nodesOf(m.g), "a.q:quantize, r.q:quantize, conv + p.q + p.dq + sum + relu" + tail);
            EXPECT_TRUE(ops::hasInput(*find(m.g, ops::convolution::def()), Epilogue::kInnerScale));
        }
}

// One dequantize has two readers in what is fused, and goes once.
TEST(FuseQuantization, TheInputIsTheResidual)
{
    for (bool isRounded : {false, true}) {
        GraphMaker m;
        ir::Value* x = faked(m, m.input("x", ir::shapeOf({2, 4, 5, 5})), 0.125, "a");
        std::vector<ir::Value*> inputs{x, weights(m, {4, 4, 1, 1}, 0, "w"), m.constant("b", {4}, {1, 2, 3, -1})};
        if (!isRounded)
            inputs.push_back(x);
        ir::Value* y = m.add(ops::convolution::def(), ops::convolution::Attrs::plain(2), inputs, "conv");
        if (isRounded)
            y = m.add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kSum), {x, faked(m, y, 0.25, "p")},
                      "sum");
        m.output(faked(m, y, 0.5, "b"), "y");
        checkPass(m.g, passes::fuseQuantization, true);
        EXPECT_EQ(nodesOf(m.g), std::string("a.q:quantize, conv") + (isRounded ? " + p.q + p.dq + sum" : "") +
                                    " + b.q:convolution, b.dq:dequantize");
        ir::Node const* conv = find(m.g, ops::convolution::def());
        EXPECT_EQ(std::count(conv->layers.begin(), conv->layers.end(), "a.dq"), 1);
    }
    GraphMaker m;
    ir::Value* x = faked(m, m.input("x", ir::shapeOf({2, 4, 4})), 0.125, "a");
    m.output(m.add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs(), {x, x}, "square"), "y");
    checkPass(m.g, passes::fuseQuantization, true);
    EXPECT_EQ(nodesOf(m.g), "a.q:quantize, square:matrix_multiply");
}

TEST(FuseByteTables, FunctionsOfOneNumber)
{
    PassCheck check;
    check.target = {passes::TargetInfo::Cpu{.isa = passes::TargetInfo::Isa::kAvx512}};
    for (auto kind : {ops::activation::Kind::kClip, ops::activation::Kind::kSigmoid}) {
        GraphMaker m;
        ir::Value* x = faked(m, m.input("x", ir::shapeOf({2, 4, 5, 5})), 0.125, "a");
        ir::Value* y = m.add(ops::convolution::def(), ops::convolution::Attrs::plain(2),
                             {x, weights(m, {6, 4, 3, 3}, 0, "w")}, "conv");
        y = faked(m, y, 0.25, "b");
        ops::activation::Attrs f(kind);
        f.alpha = 0;
        f.beta = 6;
        m.output(faked(m, m.add(ops::activation::def(), f, {y}, "f"), 0.125, "c"), "y");
        checkPass(m.g, passes::fuseQuantization, true);
        checkPass(m.g, passes::fusePointwise, true);
        checkPass(m.g, passes::fuseByteTables, true, check);
        EXPECT_EQ(nodesOf(m.g), "a.q:quantize, conv + b.q + b.dq + f + c.q:convolution, c.dq:dequantize");
    }
}

TEST(FuseQuantization, ReadersThatWantNumbersKeepThem)
{
    GraphMaker m;
    ir::Value* x = faked(m, m.input("x", ir::shapeOf({2, 4})), 0.125, "a");
    using enum ops::matrix_multiply::MatrixOperation;
    ir::Value* y = m.add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs(kNone, kTranspose),
                         {x, weights(m, {6, 4}, 0, "w")}, "product");
    m.output(faked(m, y, 0.25, "b"), "y");
    m.output(m.add(ops::softmax::def(), ops::softmax::Attrs(), {y}, "softmax"), "z");
    checkPass(m.g, passes::fuseQuantization, true);
    ir::Node const* product = find(m.g, ops::matrix_multiply::def());
    ASSERT_TRUE(product);
    EXPECT_EQ(product->outputs[0]->type, DataType::kFloat);
    EXPECT_EQ(product->inputs[0]->type, DataType::kInt8);
}

TEST(FuseQuantization, OneBehindTheOther)
{
    GraphMaker m;
    ir::Value* x = faked(m, m.input("x", ir::shapeOf({1, 4, 5, 5})), 0.125, "a");
    for (int i = 0; i < 4; ++i) {
        std::string const n = std::to_string(i);
        x = m.add(ops::convolution::def(), ops::convolution::Attrs::plain(2), {x, weights(m, {4, 4, 1, 1}, 0, "w" + n)},
                  "conv" + n);
        x = faked(m, x, 0.125, "b" + n);
    }
    m.output(x, "y");
    checkPass(m.g, passes::fuseQuantization, true);
    EXPECT_EQ(count(m.g, ops::dequantize::def()), 1);
}

// What merge_convolutions leaves: the parts of a result, each with a scale of its own.
TEST(FuseQuantization, PartsOfAResult)
{
    for (int axis : {-1, 0}) {
        GraphMaker m;
        ir::Value* x = faked(m, m.input("x", ir::shapeOf({2, 4, 5, 5})), 0.5, "x.q");
        ir::Value* y =
            m.add(ops::convolution::def(), ops::convolution::Attrs::plain(2),
                  {x, weights(m, {6, 4, 1, 1}, axis, "w"), m.constant("b", {6}, {1, -2, 3, -4, 5, -6})}, "conv");
        auto part = [&](int64_t begin, int64_t count, double scale, std::string const& name) {
            ops::slice::Attrs a;
            a.start = {0, begin, 0, 0};
            a.size = {2, count, 5, 5};
            a.stride = {1, 1, 1, 1};
            m.output(faked(m, m.add(ops::slice::def(), a, {y}, name), scale, name + ".q"), name + ".out");
        };
        part(2, 4, 0.25, "second");
        part(0, 2, 1, "first");
        checkPass(m.g, passes::fuseQuantization, true);
        ir::Node const& conv = *find(m.g, ops::convolution::def());
        EXPECT_EQ(conv.outputs[0]->type, DataType::kInt8);
        ASSERT_EQ(conv.inputs[Epilogue::kScale]->shape, ir::shapeOf({6}));
        EXPECT_EQ(count(m.g, ops::quantize::def()), 1) << nodesOf(m.g);
    }
    // A part that is read as numbers.
    GraphMaker m;
    ir::Value* x = faked(m, m.input("x", ir::shapeOf({2, 4, 5, 5})), 0.5, "x.q");
    ir::Value* y = m.add(ops::convolution::def(), ops::convolution::Attrs::plain(2),
                         {x, weights(m, {6, 4, 1, 1}, 0, "w")}, "conv");
    for (int64_t i : {0, 1}) {
        ops::slice::Attrs a;
        a.start = {0, 3 * i, 0, 0};
        a.size = {2, 3, 5, 5};
        a.stride = {1, 1, 1, 1};
        ir::Value* const part = m.add(ops::slice::def(), a, {y}, "part" + std::to_string(i));
        m.output(i ? part : faked(m, part, 0.5, "q"), "out" + std::to_string(i));
    }
    checkPass(m.g, passes::fuseQuantization, true);
    EXPECT_EQ(find(m.g, ops::convolution::def())->outputs[0]->type, DataType::kFloat);
}

TEST(FuseQuantization, ProductsOfActivations)
{
    GraphMaker m;
    ir::Value* a = faked(m, m.input("a", ir::shapeOf({2, 3, 4})), 0.125, "a");
    ir::Value* b = faked(m, m.input("b", ir::shapeOf({2, 5, 4})), 0.25, "b");
    using enum ops::matrix_multiply::MatrixOperation;
    ir::Value* y =
        m.add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs(kNone, kTranspose), {a, b}, "product");
    m.output(faked(m, y, 0.25, "c"), "y");
    checkPass(m.g, passes::fuseQuantization, true);
    EXPECT_EQ(nodesOf(m.g), "a.q:quantize, b.q:quantize, product + c.q:matrix_multiply, c.dq:dequantize");
}

TEST(FuseQuantization, WeightsThatStayNumbersAreFolded)
{
    GraphMaker m; // only the weights are quantized
    auto a = ops::convolution::Attrs::plain(2);
    ir::Value* y = m.add(ops::convolution::def(), a,
                         {m.input("x", ir::shapeOf({2, 4, 5, 5})), weights(m, {6, 4, 3, 3}, 0, "w")}, "conv");
    m.output(y, "y");
    checkPass(m.g, passes::fuseQuantization, true);
    EXPECT_EQ(nodesOf(m.g), "conv:convolution");
    EXPECT_EQ(m.g.nodes[0]->inputs[1]->type, DataType::kFloat);
}

TEST(FuseQuantization, SumsOfMoreThan32Bits)
{
    for (int64_t k : {131071, 131072}) {
        GraphMaker m;
        ir::Value* x = faked(m, m.input("x", ir::shapeOf({1, k})), 0.125, "a");
        using enum ops::matrix_multiply::MatrixOperation;
        m.output(m.add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs(kNone, kNone),
                       {x, weights(m, {k, 1}, -1, "w")}, "product"),
                 "y");
        checkPass(m.g, passes::fuseQuantization, true);
        EXPECT_EQ(find(m.g, ops::matrix_multiply::def())->inputs[0]->type,
                  k == 131071 ? DataType::kInt8 : DataType::kFloat);
    }
}

TEST(FuseQuantization, BatchNormalizationGoesIntoScales)
{
    for (int axis : {-1, 0}) {
        GraphMaker m;
        ir::Value* x = faked(m, m.input("x", ir::shapeOf({2, 4, 5, 5})), 0.125, "a");
        ir::Value* y =
            m.add(ops::convolution::def(), ops::convolution::Attrs::plain(2),
                  {x, weights(m, {6, 4, 3, 3}, axis, "w"), m.constant("b", {6}, {1, 2, 3, -1, -2, 0})}, "conv");
        y = m.add(ops::scale::def(), ops::scale::Attrs(ops::scale::Mode::kChannel),
                  {y, m.constant("s", {6}, {0.5, -2, 1, 0.25, 4, 1}), m.constant("t", {6}, {1, 2, 3, 4, 5, 6})}, "bn");
        m.output(faked(m, y, 0.25, "b"), "y");
        checkPass(m.g, passes::foldScaleIntoConvolution, true);
        checkPass(m.g, passes::fuseQuantization, true);
        EXPECT_EQ(nodesOf(m.g), "a.q:quantize, conv + bn + b.q:convolution, b.dq:dequantize");
    }
}

TEST(FuseQuantization, AveragesOfOneScale)
{
    for (double scale : {0.125, 0.25}) {
        GraphMaker m;
        ir::Value* x = faked(m, m.input("x", ir::shapeOf({2, 4, 6, 6})), 0.125, "a");
        ir::Value* p =
            m.add(ops::pooling::def(), ops::pooling::Attrs::plain(ops::pooling::Kind::kAverage, {2, 2}), {x}, "pool");
        m.output(faked(m, p, scale, "b"), "y");
        checkPass(m.g, passes::fuseQuantization, scale == 0.125);
        EXPECT_EQ(count(m.g, ops::quantize::def()), scale == 0.125 ? 1 : 2);
    }
}

TEST(FusePointwise, TakesScalesOfBothSides)
{
    GraphMaker m;
    ir::Value* a = faked(m, m.input("a", ir::shapeOf({2, 4, 6})), 0.125, "a");
    ir::Value* b = faked(m, m.input("b", ir::shapeOf({2, 4, 6})), 0.25, "b");
    ir::Value* s = m.add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kSum), {a, b}, "sum");
    ir::Value* r = m.add(ops::activation::def(), ops::activation::Attrs(ops::activation::Kind::kRelu), {s}, "relu");
    m.output(faked(m, r, 0.5, "c"), "y");
    checkPass(m.g, passes::fusePointwise, true);
    EXPECT_EQ(nodesOf(m.g), "a.q:quantize, b.q:quantize, a.dq + b.dq + sum + relu + c.q:pointwise, c.dq:dequantize");
    checkBody(*find(m.g, ops::pointwise::def()));
}

// --- ranges ---

namespace {

struct Ranged
{
    GraphMaker m;
    passes::Ranges ranges;

    ir::Value* convolution(ir::Value* x, std::string const& name, ir::Value* residual = nullptr)
    {
        std::vector<ir::Value*> in{x, m.constant(name + ".w", {4, 4, 1, 1}), m.constant(name + ".b", {4})};
        if (residual)
            in.push_back(residual);
        ir::Value* y = m.add(ops::convolution::def(), ops::convolution::Attrs::plain(2), in, name);
        y->name = name;
        ranges[name] = 4.0 / 127;
        return y;
    }
    passes::PassContext context(Log& log)
    {
        passes::PassContext ctx{{}, log};
        ctx.permits = {Permission::kInt8};
        ctx.ranges = &ranges;
        return ctx;
    }
    void run()
    {
        NullLog log;
        auto const ctx = context(log);
        auto done = passes::quantizeRanges(m.g, ctx);
        ASSERT_TRUE(done.ok()) << done.error().message;
        auto fused = passes::fuseQuantization(m.g, ctx);
        ASSERT_TRUE(fused.ok()) << fused.error().message;
        auto verified = ir::verify(m.g);
        ASSERT_TRUE(verified.ok()) << verified.error().message;
    }
    std::vector<std::string> typesOfConvolutions()
    {
        std::vector<std::string> types;
        for (auto const& n : m.g.nodes)
            if (n->op == &ops::convolution::def())
                types.push_back(std::string(nameOf(n->inputs[0]->type)) + " to " + nameOf(n->outputs[0]->type));
        return types;
    }
};

using Types = std::vector<std::string>;

} // namespace

TEST(QuantizeRanges, ChainsStayIntegers)
{
    Ranged r;
    ir::Value* x = r.m.input("x", ir::shapeOf({2, 4, 5, 5}));
    r.ranges["x"] = 1.0 / 127;
    ir::Value* a = r.convolution(x, "a");
    ir::Value* b = r.convolution(a, "b");
    ir::Value* c = r.convolution(b, "c", a);
    ir::Value* d = r.convolution(c, "d");
    r.m.output(r.m.add(ops::softmax::def(), ops::softmax::Attrs(), {d}, "softmax"), "y");
    auto const inputs = randomInputs(r.m.g);
    auto before = interp::run(r.m.g, refsOf(inputs));
    ASSERT_TRUE(before.ok());
    r.run();
    // The last one before the output stays FP32, and what it reads.
    EXPECT_EQ(r.typesOfConvolutions(), (Types{"i8 to i8", "i8 to i8", "i8 to f32", "f32 to f32"}));
    EXPECT_EQ(count(r.m.g, ops::dequantize::def()), 0);
    auto after = interp::run(r.m.g, refsOf(inputs));
    ASSERT_TRUE(after.ok()) << after.error().message;
    expectSame(refsOf(*after), *before, 0.1);
}

TEST(QuantizeRanges, WithoutARangeNothingHappens)
{
    Ranged r;
    ir::Value* a = r.convolution(r.m.input("x", ir::shapeOf({2, 4, 5, 5})), "a");
    r.ranges.erase("a");
    r.m.output(r.convolution(a, "b"), "y");
    r.run();
    EXPECT_EQ(r.typesOfConvolutions(), (Types{"f32 to f32", "f32 to f32"}));
}

TEST(QuantizeRanges, WishesCountWithTheFlagsOfConstraints)
{
    for (bool heard : {false, true}) {
        Ranged r;
        r.ranges["x"] = 1.0 / 127;
        ir::Value* a = r.convolution(r.m.input("x", ir::shapeOf({2, 4, 5, 5})), "a");
        a->producer->precision = {DataType::kFloat, true};
        r.m.output(r.convolution(r.convolution(a, "b"), "c"), "y");
        NullLog log;
        auto ctx = r.context(log);
        ctx.constraints = heard ? passes::PrecisionConstraints::kObey : passes::PrecisionConstraints::kIgnore;
        ASSERT_TRUE(passes::quantizeRanges(r.m.g, ctx).ok());
        ASSERT_TRUE(passes::fuseQuantization(r.m.g, ctx).ok());
        EXPECT_EQ(r.typesOfConvolutions()[0], heard ? "f32 to f32" : "i8 to i8");
    }
}

// The guide's four exceptions to its rule about the last layer.
TEST(QuantizeRanges, LastLayers)
{
    { // a wish for INT8 on the way
        Ranged r;
        r.ranges["x"] = 1.0 / 127;
        ir::Value* a = r.convolution(r.m.input("x", ir::shapeOf({2, 4, 5, 5})), "a");
        a->producer->precision = {DataType::kInt8, true};
        r.m.output(a, "a");
        r.run();
        EXPECT_EQ(r.typesOfConvolutions(), (Types{"i8 to f32"}));
    }
    { // an INT8 output
        Ranged r;
        r.ranges["x"] = 1.0 / 127;
        ir::Value* a = r.convolution(r.m.input("x", ir::shapeOf({2, 4, 5, 5})), "a");
        r.m.output(quantized(r.m, a, 0.125, "q"), "y");
        r.run();
        EXPECT_EQ(r.typesOfConvolutions(), (Types{"i8 to i8"}));
    }
}

// By the guide: the largest magnitude of a channel is 127 steps, ties go up.
TEST(QuantizeRanges, WeightsByTheRuleOfRanges)
{
    Ranged r;
    r.ranges["x"] = r.ranges["a"] = 1.0 / 127;
    std::vector<double> w(16, 0);
    w[0] = 127, w[1] = -127, w[2] = 0.5, w[3] = -0.5;        // steps of 1: 127, -127, 1, 0
    w[4] = -254, w[5] = 3, w[6] = -3, w[7] = 253;            // steps of 2: -127, 2, -1, 127
    w[8] = 0;                                                // a channel of zeros
    w[12] = 63.5, w[13] = 0.25, w[14] = 0.75, w[15] = -0.75; // steps of 0.5: 127, 1, 2, -1
    ir::Value* x = r.m.input("x", ir::shapeOf({1, 4, 2, 2}));
    ir::Value* a = r.m.add(ops::convolution::def(), ops::convolution::Attrs::plain(2),
                           {x, r.m.constant("w", {4, 4, 1, 1}, w)}, "a");
    a->name = "a";
    r.m.output(r.convolution(a, "b"), "y");
    r.run();
    ir::Node const* conv = find(r.m.g, ops::convolution::def());
    ASSERT_TRUE(conv);
    auto const q = conv->inputs[1]->constant;
    auto const* integers = static_cast<int8_t const*>(q->data->data());
    EXPECT_EQ((std::vector<int>(integers, integers + 16)),
              (std::vector<int>{127, -127, 1, 0, -127, 2, -1, 127, 0, 0, 0, 0, 127, 1, 2, -1}));
}

} // namespace tw::test
