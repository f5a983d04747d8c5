// SPDX-License-Identifier: Apache-2.0
// Empty tensors in every layer: a dimension that is 0 in the network, and one that is 0 in one run and not in the next.
#include <cmath>
#include <limits>

#include "engine/engines.h"

using namespace tw::test;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Values of constants; long enough for all of them.
struct Numbers
{
    std::vector<float> halves = std::vector<float>(256, 0.5F);
    std::vector<int32_t> zeros = std::vector<int32_t>(256, 0), ones = std::vector<int32_t>(256, 1);
};
Numbers const kNumbers;

Weights halves(int64_t count)
{
    return {DataType::kFLOAT, kNumbers.halves.data(), count};
}
ITensor* halves(Maker& m, Shape const& shape)
{
    return m.network->addConstant(dims(shape), halves(volume(shape)))->getOutput(0);
}
ITensor* integers(Maker& m, Shape const& shape, std::vector<int32_t> const& values)
{
    Weights const w{DataType::kINT32, volume(shape) ? values.data() : nullptr, volume(shape)};
    return m.network->addConstant(dims(shape), w)->getOutput(0);
}
ITensor* reduced(Maker& m, ITensor* x, ReduceOperation op, uint32_t axes)
{
    return m.network->addReduce(*x, op, axes, false)->getOutput(0);
}

// A layer of one input whose dimension -1 is 0 or 2 in the runs.
struct Case
{
    char const* name;
    Shape input;
    std::function<ITensor*(Maker&, ITensor*)> layer;
    Shape output;     // of an empty input
    double value = 0; // of each of its elements, if there are any
};

template <class Layer>
ITensor* first(Layer* layer)
{
    return layer->getOutput(0);
}

ITensor* lastOfLoop(Maker& m, ITensor* x, bool stacked)
{
    ILoop* loop = m.network->addLoop();
    ITensor* slice = first(loop->addIterator(*x));
    IRecurrenceLayer* sum = loop->addRecurrence(*halves(m, {3}));
    sum->setInput(1, *m.add(first(sum), slice));
    // As many trips as there are rows.
    ISliceLayer* count = m.network->addSlice(*first(m.network->addShape(*x)), dims({0}), dims({1}), dims({1}));
    IShuffleLayer* scalar = m.network->addShuffle(*first(count));
    scalar->setReshapeDimensions(Dims{});
    loop->addTripLimit(*first(scalar), TripLimit::kCOUNT);
    if (!stacked)
        return first(loop->addLoopOutput(*first(sum), LoopOutput::kLAST_VALUE));
    ILoopOutputLayer* all = loop->addLoopOutput(*slice, LoopOutput::kCONCATENATE);
    all->setInput(1, *first(scalar));
    return first(all);
}

ITensor* branch(Maker& m, ITensor* x)
{
    IIfConditional* c = m.network->addIfConditional();
    c->setCondition(*m.cast(integers(m, {}, kNumbers.ones), DataType::kBOOL));
    ITensor* in = first(c->addInput(*x));
    return first(c->addOutput(*m.relu(in), *in));
}

ITensor* recurrent(Maker& m, ITensor* x)
{
    IRNNv2Layer* l = m.network->addRNNv2(*x, 1, 4, 2, RNNOperation::kTANH);
    for (bool isInput : {true, false}) {
        l->setWeightsForGate(0, RNNGateType::kINPUT, isInput, halves(isInput ? 12 : 16));
        l->setBiasForGate(0, RNNGateType::kINPUT, isInput, halves(4));
    }
    return first(l);
}

std::vector<Case> const kCases{
    {"activation", {-1, 3}, [](Maker& m, ITensor* x) { return m.relu(x); }, {0, 3}},
    {"unary",
     {2, -1},
     [](Maker& m, ITensor* x) { return first(m.network->addUnary(*x, UnaryOperation::kEXP)); },
     {2, 0}},
    {"element-wise",
     {-1, 3},
     [](Maker& m, ITensor* x) {
         return m.add(x, halves(m, {1, 3}));
     },
     {0, 3}},
    {"element-wise, broadcast",
     {-1, 1},
     [](Maker& m, ITensor* x) {
         return m.add(x, halves(m, {1, 3}));
     },
     {0, 3}},
    {"identity", {-1, 3}, [](Maker& m, ITensor* x) { return m.cast(x, DataType::kINT32); }, {0, 3}},
    {"select",
     {-1, 3},
     [](Maker& m, ITensor* x) {
         ITensor* c = first(m.network->addElementWise(*x, *halves(m, {1, 3}), ElementWiseOperation::kLESS));
         return first(m.network->addSelect(*c, *x, *halves(m, {1, 3})));
     },
     {0, 3}},
    {"parametric relu",
     {-1, 3},
     [](Maker& m, ITensor* x) {
         return first(m.network->addParametricReLU(*x, *halves(m, {1, 3})));
     },
     {0, 3}},
    {"scale",
     {-1, 3, 2, 2},
     [](Maker& m, ITensor* x) {
         return first(m.network->addScale(*x, ScaleMode::kCHANNEL, halves(3), halves(3), halves(3)));
     },
     {0, 3, 2, 2}},
    {"convolution of no images",
     {-1, 3, 4, 4},
     [](Maker& m, ITensor* x) { return first(m.network->addConvolutionNd(*x, 2, Dims2(3, 3), halves(54), halves(2))); },
     {0, 2, 2, 2}},
    {"convolution of no rows",
     {1, 3, -1, 4},
     [](Maker& m, ITensor* x) {
         IConvolutionLayer* l = m.network->addConvolutionNd(*x, 2, Dims2(1, 3), halves(18), halves(2));
         return first(l);
     },
     {1, 2, 0, 2}},
    {"deconvolution",
     {-1, 3, 4, 4},
     [](Maker& m, ITensor* x) {
         return first(m.network->addDeconvolutionNd(*x, 2, Dims2(2, 2), halves(24), halves(2)));
     },
     {0, 2, 5, 5}},
    {"fully connected",
     {-1, 3, 1, 1},
     [](Maker& m, ITensor* x) { return first(m.network->addFullyConnected(*x, 2, halves(6), halves(2))); },
     {0, 2, 1, 1}},
    {"pooling",
     {-1, 3, 4, 4},
     [](Maker& m, ITensor* x) { return first(m.network->addPoolingNd(*x, PoolingType::kMAX, Dims2(2, 2))); },
     {0, 3, 3, 3}},
    {"lrn", {-1, 3, 2, 2}, [](Maker& m, ITensor* x) { return first(m.network->addLRN(*x, 3, 1, 1, 1)); }, {0, 3, 2, 2}},
    {"padding",
     {-1, 3, 2, 2},
     [](Maker& m, ITensor* x) { return first(m.network->addPaddingNd(*x, Dims2(1, 1), Dims2(1, 1))); },
     {0, 3, 4, 4}},
    {"padding around nothing",
     {1, 3, -1, 2},
     [](Maker& m, ITensor* x) { return first(m.network->addPaddingNd(*x, Dims2(1, 1), Dims2(1, 1))); },
     {1, 3, 2, 4}},
    {"softmax over nothing", {2, -1}, [](Maker& m, ITensor* x) { return first(m.network->addSoftMax(*x)); }, {2, 0}},
    {"softmax of no rows",
     {-1, 3},
     [](Maker& m, ITensor* x) {
         ISoftMaxLayer* l = m.network->addSoftMax(*x);
         l->setAxes(2);
         return first(l);
     },
     {0, 3}},
    {"ragged softmax",
     {-1, 4},
     [](Maker& m, ITensor* x) {
         ITensor* lengths = m.cast(first(m.network->addReduce(*x, ReduceOperation::kSUM, 2, true)), DataType::kINT32);
         return first(m.network->addRaggedSoftMax(*x, *lengths));
     },
     {0, 4}},
    {"sum of nothing", {-1, 3}, [](Maker& m, ITensor* x) { return reduced(m, x, ReduceOperation::kSUM, 1); }, {3}, 0},
    {"product of nothing",
     {-1, 3},
     [](Maker& m, ITensor* x) { return reduced(m, x, ReduceOperation::kPROD, 1); },
     {3},
     1},
    {"maximum of nothing",
     {-1, 3},
     [](Maker& m, ITensor* x) { return reduced(m, x, ReduceOperation::kMAX, 1); },
     {3},
     -kInfinity},
    {"minimum of nothing",
     {3, -1},
     [](Maker& m, ITensor* x) { return reduced(m, x, ReduceOperation::kMIN, 2); },
     {3},
     kInfinity},
    {"mean of nothing",
     {3, -1},
     [](Maker& m, ITensor* x) { return reduced(m, x, ReduceOperation::kAVG, 2); },
     {3},
     std::nan("")},
    {"sum beside nothing", {-1, 3}, [](Maker& m, ITensor* x) { return reduced(m, x, ReduceOperation::kSUM, 2); }, {0}},
    {"integers: maximum of nothing",
     {-1, 3},
     [](Maker& m, ITensor* x) { return reduced(m, m.cast(x, DataType::kINT32), ReduceOperation::kMAX, 1); },
     {3},
     double(INT32_MIN)},
    {"integers: minimum of nothing",
     {-1, 3},
     [](Maker& m, ITensor* x) { return reduced(m, m.cast(x, DataType::kINT32), ReduceOperation::kMIN, 3); },
     {},
     double(INT32_MAX)},
    {"integers: mean of nothing",
     {-1, 3},
     [](Maker& m, ITensor* x) { return reduced(m, m.cast(x, DataType::kINT32), ReduceOperation::kAVG, 1); },
     {3},
     0},
    {"topk of no rows",
     {-1, 3},
     [](Maker& m, ITensor* x) { return first(m.network->addTopK(*x, TopKOperation::kMAX, 2, 2)); },
     {0, 2}},
    {"gather with no indices",
     {-1},
     [](Maker& m, ITensor* x) {
         return first(m.network->addGather(*halves(m, {4, 3}), *m.cast(x, DataType::kINT32), 0));
     },
     {0, 3}},
    {"gather beside nothing",
     {3, -1},
     [](Maker& m, ITensor* x) { return first(m.network->addGather(*x, *integers(m, {2}, kNumbers.ones), 0)); },
     {2, 0}},
    {"gather of nothing gives zeros",
     {-1, 3},
     [](Maker& m, ITensor* x) { return first(m.network->addGather(*x, *integers(m, {2}, kNumbers.zeros), 0)); },
     {2, 3},
     0},
    {"gather, elements",
     {-1, 3},
     [](Maker& m, ITensor* x) {
         return first(m.network->addGatherV2(*halves(m, {4, 3}), *m.cast(x, DataType::kINT32), GatherMode::kELEMENT));
     },
     {0, 3}},
    {"gather, nd",
     {-1, 2},
     [](Maker& m, ITensor* x) {
         return first(m.network->addGatherV2(*halves(m, {4, 3, 5}), *m.cast(x, DataType::kINT32), GatherMode::kND));
     },
     {0, 5}},
    {"scatter of no updates",
     {-1, 3},
     [](Maker& m, ITensor* x) {
         ITensor* data = halves(m, {4, 3});
         IScatterLayer* l = m.network->addScatter(*data, *m.cast(x, DataType::kINT32), *x, ScatterMode::kELEMENT);
         return first(l);
     },
     {4, 3},
     0.5},
    {"scatter into nothing",
     {3, -1},
     [](Maker& m, ITensor* x) {
         ITensor* updates = first(m.network->addGather(*x, *integers(m, {2}, kNumbers.ones), 0));
         return first(m.network->addScatter(*x, *integers(m, {2, 1}, kNumbers.ones), *updates, ScatterMode::kND));
     },
     {3, 0}},
    {"matrix product over nothing",
     {3, -1},
     [](Maker& m, ITensor* x) {
         return first(m.network->addMatrixMultiply(*x, MatrixOperation::kNONE, *x, MatrixOperation::kTRANSPOSE));
     },
     {3, 3},
     0},
    {"matrix product of no rows",
     {-1, 3},
     [](Maker& m, ITensor* x) {
         return first(
             m.network->addMatrixMultiply(*x, MatrixOperation::kNONE, *halves(m, {3, 5}), MatrixOperation::kNONE));
     },
     {0, 5}},
    {"matrix product of no matrices",
     {-1, 2, 3},
     [](Maker& m, ITensor* x) {
         return first(
             m.network->addMatrixMultiply(*x, MatrixOperation::kNONE, *halves(m, {1, 3, 5}), MatrixOperation::kNONE));
     },
     {0, 2, 5}},
    {"einsum over nothing",
     {3, -1},
     [](Maker& m, ITensor* x) {
         ITensor* const both[] = {x, x};
         return first(m.network->addEinsum(both, 2, "ij,kj->ik"));
     },
     {3, 3},
     0},
    {"concatenation",
     {-1, 3},
     [](Maker& m, ITensor* x) {
         ITensor* const parts[] = {x, halves(m, {2, 3}), x};
         IConcatenationLayer* l = m.network->addConcatenation(parts, 3);
         l->setAxis(0);
         return first(l);
     },
     {2, 3},
     0.5},
    {"shuffle",
     {-1, 3},
     [](Maker& m, ITensor* x) {
         IShuffleLayer* l = m.network->addShuffle(*x);
         l->setFirstTranspose(Permutation{{1, 0}});
         l->setReshapeDimensions(Dims3(3, 0, 1));
         return first(l);
     },
     {3, 0, 1}},
    {"slice",
     {-1, 3},
     [](Maker& m, ITensor* x) {
         ISliceLayer* l = m.network->addSlice(*x, Dims2(0, 1), Dims2(0, 2), Dims2(1, 1));
         return first(l);
     },
     {0, 2}},
    {"slice filled beyond the end",
     {-1, 3},
     [](Maker& m, ITensor* x) {
         ISliceLayer* l = m.network->addSlice(*x, Dims2(0, 0), Dims2(2, 3), Dims2(1, 1));
         l->setMode(SliceMode::kFILL);
         return first(l);
     },
     {2, 3},
     0},
    {"shape",
     {-1},
     [](Maker& m, ITensor* x) { return first(m.network->addIdentity(*first(m.network->addShape(*x)))); },
     {1},
     0},
    {"resize",
     {-1, 3, 2, 2},
     [](Maker& m, ITensor* x) {
         IResizeLayer* l = m.network->addResize(*x);
         float const scales[] = {1, 1, 2, 2};
         l->setScales(scales, 4);
         return first(l);
     },
     {0, 3, 4, 4}},
    {"fill",
     {-1, 3},
     [](Maker& m, ITensor* x) {
         IFillLayer* l = m.network->addFill(Dims{}, FillOperation::kRANDOM_UNIFORM);
         l->setInput(0, *first(m.network->addShape(*x)));
         return first(l);
     },
     {0, 3}},
    {"one-hot",
     {-1},
     [](Maker& m, ITensor* x) {
         return first(
             m.network->addOneHot(*m.cast(x, DataType::kINT32), *halves(m, {2}), *integers(m, {}, kNumbers.ones), -1));
     },
     {0, 1}},
    {"non-zero", {-1, 3}, [](Maker& m, ITensor* x) { return first(m.network->addNonZero(*x)); }, {2, 0}},
    {"grid sample of no images",
     {-1, 1, 2, 2},
     [](Maker& m, ITensor* x) { return first(m.network->addGridSample(*x, *x)); },
     {0, 1, 1, 2}},
    {"nms of no boxes",
     {1, -1, 4},
     [](Maker& m, ITensor* x) {
         ITensor* scores = first(m.network->addReduce(*x, ReduceOperation::kSUM, 4, true));
         return first(m.network->addNMS(*x, *scores, *integers(m, {}, kNumbers.ones)));
     },
     {0, 3}},
    {"recurrence of no sequences", {-1, 2, 3}, [](Maker& m, ITensor* x) { return recurrent(m, x); }, {0, 2, 4}},
    {"loop without trips", {-1, 3}, [](Maker& m, ITensor* x) { return lastOfLoop(m, x, false); }, {3}, 0.5},
    {"stack of no trips", {-1, 3}, [](Maker& m, ITensor* x) { return lastOfLoop(m, x, true); }, {0, 3}},
    {"conditional", {-1, 3}, [](Maker& m, ITensor* x) { return branch(m, x); }, {0, 3}},
};

Shape filled(Shape shape, int32_t unknown)
{
    for (int32_t& d : shape)
        d = d < 0 ? unknown : d;
    return shape;
}

void expectEmpty(Case const& c, ICudaEngine& engine, Output const& y)
{
    ASSERT_EQ(y.shape, c.output);
    for (size_t i = 0; i < size_t(volume(c.output)); ++i) {
        double const value =
            engine.getTensorDataType("y") == DataType::kINT32 ? double(y.integers()[i]) : y.floats()[i];
        ASSERT_TRUE(std::isnan(c.value) ? std::isnan(value) : value == c.value) << value << " at " << i;
    }
}

class Empty : public testing::TestWithParam<size_t>
{
protected:
    Case const& c = kCases[GetParam()];
    Maker m;
    std::vector<float> x = std::vector<float>(256, 1);
    Output y;

    testing::AssertionResult run(IExecutionContext& context, int32_t size)
    {
        context.setInputShape("x", dims(filled(c.input, size)));
        context.setTensorAddress("x", x.data());
        context.setOutputAllocator("y", &y);
        y.shape = {-7};
        if (context.enqueueV3(nullptr))
            return testing::AssertionSuccess();
        return testing::AssertionFailure() << m.errors();
    }
};

TEST_P(Empty, InTheNetwork)
{
    ITensor* out = c.layer(m, m.input("x", filled(c.input, 0)));
    m.output(out, "y");
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    EXPECT_EQ(list(engine->getTensorShape("x")), filled(c.input, 0));
    Context const context = contextOf(*engine);
    ASSERT_TRUE(run(*context, 0));
    expectEmpty(c, *engine, y);
}

TEST_P(Empty, InOneRunAndNotInTheNext)
{
    ITensor* out = c.layer(m, m.input("x", c.input));
    m.output(out, "y");
    m.profile({{"x", filled(c.input, 0), filled(c.input, 2), filled(c.input, 3)}});
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Context const context = contextOf(*engine);
    ASSERT_TRUE(run(*context, 0));
    expectEmpty(c, *engine, y);
    ASSERT_TRUE(run(*context, 2));
    EXPECT_GE(volume(y.shape), volume(c.output));
    for (float v : y.floats()) // what no kernel wrote has other bytes
        ASSERT_FALSE(engine->getTensorDataType("y") == DataType::kFLOAT && v < -1e30);
    ASSERT_TRUE(run(*context, 0));
    expectEmpty(c, *engine, y);
}

INSTANTIATE_TEST_SUITE_P(EveryLayer, Empty, testing::Range(size_t(0), kCases.size()), [](auto const& info) {
    std::string name = kCases[info.param].name;
    for (char& ch : name)
        ch = std::isalnum(static_cast<unsigned char>(ch)) ? ch : '_';
    return name;
});

} // namespace
