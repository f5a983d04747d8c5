// SPDX-License-Identifier: Apache-2.0
// FP16 between inputs and outputs: where conversions stand, what keeps FP32, and that the numbers stay close.
#include <cmath>
#include <limits>

#include "nodes.h"
#include "ops/convolution/op.h"
#include "ops/fill/op.h"
#include "ops/grid_sample/op.h"
#include "ops/layer_norm/op.h"
#include "ops/pointwise/op.h"
#include "ops/pooling/op.h"
#include "ops/proposals/op.h"
#include "ops/resize/op.h"
#include "ops/roi_align/op.h"
#include "ops/select/op.h"
#include "ops/softmax/op.h"
#include "transformer_block.h"

namespace tw::test {

namespace {

using ops::matrix_multiply::MatrixOperation;

PassCheck const kHalf{{}, false, 4e-3, {Permission::kHalf}, passes::PrecisionConstraints::kIgnore, kGpu};

class PrecisionMaker : public NodeMaker
{
public:
    ir::Value* relu(ir::Value* x, std::string const& name)
    {
        return add(ops::activation::def(), ops::activation::Attrs(Kind::kRelu), {x}, name);
    }
    ir::Value* conv(ir::Value* x, int64_t k, int64_t window, std::string const& name)
    {
        ops::convolution::Attrs a = ops::convolution::Attrs::plain(2);
        a.prePadding = a.postPadding = {window / 2, window / 2};
        int64_t const c = x->shape[1].value();
        return add(ops::convolution::def(), a,
                   {x, constant(name + ".w", {k, c, window, window}), constant(name + ".b", {k})}, name);
    }
    ir::Value* reduced(ir::Value* x, ops::reduce::Kind kind, int64_t axes, std::string const& name)
    {
        ops::reduce::Attrs a;
        a.kind = kind;
        a.axes = axes;
        a.keepDims = true;
        return add(ops::reduce::def(), a, {x}, name);
    }
    ir::Value* softmax(ir::Value* x, int64_t axis, std::string const& name)
    {
        ops::softmax::Attrs a;
        a.axis = axis;
        return add(ops::softmax::def(), a, {x}, name);
    }
    ir::Value* image() { return input("x", {ir::Dim::symbol("N"), 3, 8, 8}); }
};

DataType typeOf(ir::Graph const& g, std::string const& node)
{
    for (auto const& n : g.nodes)
        if (n->name == node)
            return n->outputs[0]->type;
    ADD_FAILURE() << "no node " << node << " in " << nodesOf(g);
    return DataType::kBool;
}

struct KeepingLog final : Log
{
    void write(Severity s, std::string const& m) override
    {
        if (s == Severity::kWarning)
            warnings.push_back(m);
    }
    std::vector<std::string> warnings;
};

// Every fused node's body, f16 outside, gives what the node's own parts give.
void checkBodies(ir::Graph const& g)
{
    for (auto const& n : g.nodes) {
        if (!n->body)
            continue;
        for (size_t i = 0; i < n->inputs.size(); ++i)
            EXPECT_EQ(n->body->inputs[i]->type, n->inputs[i]->type) << n->name;
        EXPECT_EQ(n->body->outputs[0]->type, n->outputs[0]->type) << n->name;
    }
}

} // namespace

TEST(LowerPrecision, NothingWithoutPermission)
{
    PrecisionMaker m;
    m.output(m.conv(m.image(), 4, 3, "conv"), "y");
    checkPass(m.g, passes::lowerPrecision, false);
    EXPECT_EQ(m.g.nodes[0]->inputs[1]->type, DataType::kFloat);
}

TEST(LowerPrecision, ConversionsStandAtTheEndsOnly)
{
    PrecisionMaker m;
    ir::Value* y = m.relu(m.conv(m.relu(m.conv(m.image(), 4, 3, "a"), "b"), 5, 1, "c"), "d");
    m.output(y, "y");
    checkPass(m.g, passes::lowerPrecision, true, kHalf);
    EXPECT_EQ(nodesOf(m.g), "x [f16]:identity, a:convolution, b:activation, c:convolution, d:activation, "
                            "y [f32]:identity");
    EXPECT_EQ(m.g.inputs[0]->type, DataType::kFloat);
    EXPECT_EQ(m.g.outputs[0]->name, "y");
    for (ir::Value const* v : m.g.nodes[1]->inputs)
        EXPECT_EQ(v->type, DataType::kHalf);
}

TEST(LowerPrecision, ConvolutionNetwork)
{
    PrecisionMaker m;
    ir::Value* stem = m.relu(m.conv(m.image(), 8, 3, "stem"), "stem.relu");
    ir::Value* y = m.relu(m.conv(stem, 8, 3, "one"), "one.relu");
    y = m.relu(m.apply(Operation::kSum, m.conv(y, 8, 3, "two"), stem, "sum"), "out");
    ir::Value* gate = m.reduced(y, ops::reduce::Kind::kAvg, 12, "squeeze");
    gate =
        m.add(ops::activation::def(), ops::activation::Attrs(Kind::kSigmoid), {m.conv(gate, 8, 1, "excite")}, "gate");
    y = m.apply(Operation::kProd, y, gate, "gated");
    y = m.reduced(y, ops::reduce::Kind::kAvg, 12, "pool");
    m.output(m.softmax(m.conv(y, 10, 1, "classes"), 1, "prob"), "y");
    checkPass(m.g, wholePipeline, true, kHalf);
    checkBodies(m.g);
    int casts = 0;
    for (auto const& n : m.g.nodes)
        casts += n->op == &ops::identity::def();
    EXPECT_EQ(casts, 2) << nodesOf(m.g);
}

TEST(LowerPrecision, TransformerBlock)
{
    TransformerBlock m;
    m.make();
    PassCheck check = kHalf;
    check.sizes = {{"N", 2}, {"S", 5}};
    check.tolerance = 1e-2;
    checkPass(m.g, wholePipeline, true, check);
    checkBodies(m.g);
    for (auto const& n : m.g.nodes)
        for (ir::Value const* out : n->outputs)
            EXPECT_TRUE(out->type != DataType::kFloat || m.g.isOutput(out)) << n->name << ":" << n->op->name;
}

TEST(LowerPrecision, ShortChainsThatLeaveTheRangeStayTogether)
{
    PrecisionMaker m; // x / sqrt(mean(x^2) + 1e-6) * g, with x large
    ir::Value* x = m.conv(m.image(), 4, 1, "conv");
    ir::Value* big = m.apply(Operation::kProd, x, m.constant("1000", {1, 1, 1, 1}, {1000}), "big");
    ir::Value* square = m.apply(Operation::kProd, big, big, "square");
    ir::Value* mean = m.reduced(square, ops::reduce::Kind::kAvg, 8, "mean");
    ir::Value* root =
        m.unary(Unary::kSqrt, m.apply(Operation::kSum, mean, m.constant("e", {1, 1, 1, 1}, {1e-6}), "sum"), "root");
    m.output(m.apply(Operation::kDiv, big, root, "y"), "y");
    checkPass(m.g, passes::lowerPrecision, true, kHalf);
    for (char const* name : {"square", "mean", "sum", "root"})
        EXPECT_EQ(typeOf(m.g, name), DataType::kFloat) << name;
    for (char const* name : {"conv", "big", "y"})
        EXPECT_EQ(typeOf(m.g, name), DataType::kHalf) << name;
}

TEST(LowerPrecision, WhatKeepsFloat)
{
    auto stays = [](auto make) {
        PrecisionMaker m;
        ir::Value* y = make(m, m.conv(m.image(), 4, 1, "conv"));
        std::string const name = y->producer->name;
        m.output(m.relu(y, "relu"), "y");
        checkPass(m.g, passes::lowerPrecision, true, kHalf);
        EXPECT_EQ(typeOf(m.g, name), DataType::kFloat) << name;
        EXPECT_EQ(typeOf(m.g, "conv"), DataType::kHalf) << name;
        EXPECT_EQ(typeOf(m.g, "relu"), DataType::kHalf) << name;
    };
    stays([](PrecisionMaker& m, ir::Value* x) { return m.unary(Unary::kExp, x, "exp"); });
    stays([](PrecisionMaker& m, ir::Value* x) { return m.reduced(x, ops::reduce::Kind::kProd, 8, "prod"); });
    stays([](PrecisionMaker& m, ir::Value* x) { return m.reduced(x, ops::reduce::Kind::kSum, 14, "long_sum"); });
    stays([](PrecisionMaker& m, ir::Value* x) {
        return m.apply(Operation::kSum, x, m.constant("tiny", {1, 1, 1, 1}, {1e-7}), "plus_tiny");
    });
    stays([](PrecisionMaker& m, ir::Value* x) { // the user's wish
        ir::Value* y = m.conv(x, 3, 1, "pinned");
        y->producer->precision = {DataType::kFloat, true};
        return y;
    });
    stays([](PrecisionMaker& m, ir::Value* x) {
        ir::Value* y = m.conv(x, 3, 1, "typed");
        y->producer->outputTypes[0] = {DataType::kFloat, true};
        return y;
    });
    PrecisionMaker m; // a wish for FP16 wins over the range
    ir::Value* y = m.unary(Unary::kExp, m.conv(m.image(), 4, 1, "conv"), "exp");
    y->producer->precision = {DataType::kHalf, true};
    m.output(m.relu(y, "relu"), "y");
    checkPass(m.g, passes::lowerPrecision, true, {{}, false, 1e-2, {Permission::kHalf}, {}, kGpu});
    EXPECT_EQ(typeOf(m.g, "exp"), DataType::kHalf);
}

TEST(LowerPrecision, AnglesAndIndicesStayExact)
{
    PrecisionMaker m; // sin(position / 10): positions up to 3000
    ops::fill::Attrs ramp;
    ramp.dims = {3000};
    ir::Value* at = m.add(ops::fill::def(), ramp, {}, "positions");
    at = m.apply(Operation::kProd, at, m.constant("tenth", {1}, {0.1}), "angles");
    ir::Value* sine = m.unary(Unary::kSin, at, "sine");
    m.output(m.apply(Operation::kProd, sine, m.input("x", {3000}), "y"), "y");
    checkPass(m.g, passes::lowerPrecision, true, kHalf);
    EXPECT_EQ(typeOf(m.g, "angles"), DataType::kFloat);

    PrecisionMaker n; // equal numbers beyond 2048
    ir::Value* ids = n.cast(n.input("ids", {7}, DataType::kInt32), DataType::kFloat, "floats");
    ids = n.apply(Operation::kSum, ids, n.constant("many", {1}, {4097}), "more");
    ir::Value* same =
        n.apply(Operation::kEqual, ids, n.constant("one", {7}, {4096, 4097, 4098, 4099, 1, 2, 3}), "same");
    ir::Value* x = n.input("x", {7});
    n.output(n.add(ops::select::def(), ir::NoAttrs{}, {same, x, n.relu(x, "relu")}, "chosen"), "y");
    checkPass(n.g, passes::lowerPrecision, true, kHalf);
    EXPECT_EQ(typeOf(n.g, "more"), DataType::kFloat);
    EXPECT_EQ(typeOf(n.g, "chosen"), DataType::kHalf);
}

// A grid in FP16 would move pixels of large images by more than half of one.
TEST(LowerPrecision, CoordinatesOfGridsStayInFloat)
{
    PrecisionMaker m;
    ir::Value* x = m.relu(m.conv(m.image(), 4, 3, "conv"), "relu");
    ir::Value* base = m.input("base", {ir::Dim::symbol("N"), 5, 6, 2});
    ir::Value* grid = m.apply(Operation::kSum, base, m.constant("shift", {1, 1, 1, 2}), "grid");
    m.output(m.add(ops::grid_sample::def(), ops::grid_sample::Attrs(), {x, grid}, "sample"), "y");
    checkPass(m.g, passes::lowerPrecision, true, kHalf);
    EXPECT_EQ(typeOf(m.g, "grid"), DataType::kFloat);
    EXPECT_EQ(typeOf(m.g, "sample"), DataType::kHalf);
}

// So would rois; what is proposed of boxes is FP32 whatever they are.
TEST(LowerPrecision, CoordinatesOfRegionsStayInFloat)
{
    PrecisionMaker m;
    ir::Value* x = m.relu(m.conv(m.image(), 4, 3, "conv"), "relu");
    ir::Value* boxes = m.input("boxes", {ir::Dim::symbol("N"), 9, 4});
    ir::Value* moved = m.apply(Operation::kSum, boxes, m.constant("shift", {1, 1, 4}), "moved");
    ir::Value* scores = m.input("scores", {ir::Dim::symbol("N"), 9});
    ir::Node* const best =
        *m.g.addNode(ops::proposals::def(), std::make_unique<ops::proposals::Attrs>(), {moved, scores}, "best");
    ir::Value* rois = m.apply(Operation::kProd, best->outputs[0], m.constant("scale", {1, 1, 4}), "rois");
    m.output(m.add(ops::roi_align::def(), ops::roi_align::Attrs(), {rois, nullptr, x}, "regions"), "y");
    checkPass(m.g, passes::lowerPrecision, true, kHalf);
    EXPECT_EQ(typeOf(m.g, "moved"), DataType::kFloat);
    EXPECT_EQ(typeOf(m.g, "rois"), DataType::kFloat);
    EXPECT_EQ(typeOf(m.g, "regions"), DataType::kHalf);
}

TEST(LowerPrecision, SharedWeightsAreConvertedOnceAndKeepTheirOrigin)
{
    PrecisionMaker m;
    auto c = std::make_shared<ir::Constant>();
    float const w[] = {1, 70000, -1e30f, 1e-6f, -std::numeric_limits<float>::infinity(), 0, 0.1f, 65504, 65519.996f};
    c->data = Blob::copy(w, sizeof w);
    c->layer = "conv1";
    c->role = ir::WeightsRole::kKernel;
    c->weightsName = "conv.weight";
    ir::Value* shared = m.g.addConstant("w", DataType::kFloat, {3, 3}, c);
    ir::Value* x = m.input("x", {4, 3});
    m.output(m.product(m.product(x, shared, "a"), shared, "b"), "y");
    KeepingLog log;
    auto changed = passes::lowerPrecision(m.g, passes::PassContext{{kGpu, {Permission::kHalf}}, log});
    ASSERT_TRUE(changed.ok() && *changed);
    ASSERT_TRUE(ir::verify(m.g).ok());
    ir::Value const* half = m.g.nodes[1]->inputs[1];
    EXPECT_EQ(half, m.g.nodes[2]->inputs[1]);
    EXPECT_EQ(half->type, DataType::kHalf);
    EXPECT_EQ(half->constant->layer, "conv1");
    EXPECT_EQ(half->constant->role, ir::WeightsRole::kKernel);
    EXPECT_EQ(half->constant->weightsName, "conv.weight");
    TensorRef const t{DataType::kHalf, {9}, const_cast<void*>(half->constant->data->data())};
    EXPECT_EQ(t.get(1), 65504);
    EXPECT_EQ(t.get(2), -65504);
    EXPECT_EQ(t.get(4), -std::numeric_limits<double>::infinity());
    EXPECT_EQ(t.get(8), 65504);
    ASSERT_EQ(log.warnings.size(), 1u);
    EXPECT_NE(log.warnings[0].find("'conv1': 3 finite values are beyond +-65504"), std::string::npos)
        << log.warnings[0];
    EXPECT_NE(log.warnings[0].find(", 1 are smaller than"), std::string::npos) << log.warnings[0];
}

TEST(LowerPrecision, HalfInputsAndOutputsNeedNoConversion)
{
    PrecisionMaker m;
    ir::Value* x = m.input("x", {2, 3, 8, 8}, DataType::kHalf);
    ir::Value* y = m.conv(m.cast(x, DataType::kFloat, "x [input]"), 4, 3, "conv");
    m.output(m.cast(y, DataType::kHalf, "y [output]"), "y");
    checkPass(m.g, passes::lowerPrecision, true, kHalf);
    EXPECT_EQ(nodesOf(m.g), "conv:convolution");
    EXPECT_EQ(m.g.outputs[0]->name, "y");
    EXPECT_EQ(m.g.outputs[0]->type, DataType::kHalf);
}

TEST(LowerPrecision, OutputsThatOthersReadKeepNameAndType)
{
    PrecisionMaker m;
    ir::Value* y = m.conv(m.image(), 4, 3, "conv");
    m.output(y, "first");
    m.output(m.relu(y, "relu"), "second");
    m.output(m.unary(Unary::kExp, y, "exp"), "third");
    checkPass(m.g, passes::lowerPrecision, true, kHalf);
    EXPECT_EQ(m.g.outputs[0]->name, "first");
    EXPECT_EQ(m.g.nodes.size(), 6u) << nodesOf(m.g); // one conversion to f32 serves the exp and the output
}

TEST(LowerPrecision, ShapeTensorsStayAsTheyAre)
{
    PrecisionMaker m;
    ir::Value* x = m.image();
    ir::Value* sizes = m.input("sizes", {4});
    sizes->host = true;
    ir::Value* dims =
        m.cast(m.apply(Operation::kProd, sizes, m.constant("2", {4}, {1, 1, 2, 2}), "twice"), DataType::kInt32, "dims");
    ops::resize::Attrs a;
    ir::Value* y = m.add(ops::resize::def(), a, {m.relu(x, "relu"), dims}, "resize");
    (void)y;
    m.output(y, "y");
    NullLog log;
    ASSERT_TRUE(passes::lowerPrecision(m.g, passes::PassContext{{kGpu, {Permission::kHalf}}, log}).ok());
    auto const verified = ir::verify(m.g);
    ASSERT_TRUE(verified.ok()) << verified.error().message;
    EXPECT_EQ(typeOf(m.g, "twice"), DataType::kFloat);
    EXPECT_EQ(typeOf(m.g, "resize"), DataType::kHalf);
}

TEST(LowerPrecision, DemandsThatCannotBeMet)
{
    using passes::PrecisionConstraints;
    for (auto constraints :
         {PrecisionConstraints::kIgnore, PrecisionConstraints::kPrefer, PrecisionConstraints::kObey}) {
        PrecisionMaker m;
        ops::fill::Attrs ramp;
        ramp.dims = {7};
        ir::Value* at = m.add(ops::fill::def(), ramp, {}, "ramp");
        at->producer->precision = {DataType::kHalf, true};
        m.output(m.relu(at, "relu"), "y");
        KeepingLog log;
        auto const done =
            passes::lowerPrecision(m.g, passes::PassContext{{kGpu, {Permission::kHalf}, constraints}, log});
        EXPECT_EQ(done.ok(), constraints != PrecisionConstraints::kObey);
        EXPECT_EQ(log.warnings.size(), size_t(constraints == PrecisionConstraints::kPrefer));
        if (!done.ok()) {
            EXPECT_NE(done.error().message.find("'ramp' asks for FP16"), std::string::npos) << done.error().message;
        }
    }
}

// A machine without FP16 has no kind that does not take it: results are rounded.
TEST(RoundToHalf, AllKindsAreObeyed)
{
    PrecisionMaker m;
    ops::fill::Attrs ramp;
    ramp.dims = {7};
    ir::Value* at = m.add(ops::fill::def(), ramp, {}, "ramp");
    at->producer->precision = {DataType::kHalf, true};
    m.output(m.relu(at, "relu"), "y");
    NullLog log;
    passes::PassContext const ctx{{{}, {Permission::kHalf}, passes::PrecisionConstraints::kObey}, log};
    auto const done = passes::roundToHalf(m.g, ctx);
    ASSERT_TRUE(done.ok()) << done.error().message;
    EXPECT_TRUE(*done);
    EXPECT_EQ(nodesOf(m.g), "ramp:fill, ramp [f16]:identity, ramp [f16] [f32]:identity, relu:activation");
}

TEST(LowerPrecision, WeightsThatLayersShareAreConvertedOnce)
{
    PrecisionMaker m;
    ir::Value* first = m.constant("w", {8, 8});
    first->constant = [&] { // too large for FP16 in one place
        Tensor t(DataType::kFloat, {8, 8});
        std::memcpy(t.data(), first->constant->data->data(), size_t(t.ref().sizeBytes()));
        t.ref().set(0, 1e6);
        auto c = std::make_shared<ir::Constant>();
        c->data = Blob::copy(t.data(), size_t(t.ref().sizeBytes()));
        c->layer = "one";
        return c;
    }();
    ir::Value* second = m.g.addConstant("v", DataType::kFloat, {8, 8}, first->constant);
    ir::Value* y = m.product(m.product(m.input("x", ir::shapeOf({4, 8})), first, "p"), second, "q");
    m.output(y, "y");
    KeepingLog log;
    ASSERT_TRUE(passes::lowerPrecision(m.g, passes::PassContext{{kGpu, {Permission::kHalf}}, log}).ok());
    ir::Value const *w = m.g.nodes[1]->inputs[1], *v = m.g.nodes[2]->inputs[1];
    ASSERT_EQ(nodesOf(m.g), "x [f16]:identity, p:matrix_multiply, q:matrix_multiply, y [f32]:identity");
    EXPECT_EQ(w->type, DataType::kHalf);
    EXPECT_NE(w, v);
    EXPECT_EQ(w->constant->data->data(), v->constant->data->data());
    ASSERT_EQ(log.warnings.size(), 1u);
    EXPECT_NE(log.warnings[0].find(": 1 finite values"), std::string::npos) << log.warnings[0];
}

} // namespace tw::test
