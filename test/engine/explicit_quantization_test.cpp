// SPDX-License-Identifier: Apache-2.0
// Networks with quantize and dequantize layers: what they compute, and the rules of where they may stand.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>

#include "engine/engines.h"

using namespace tw::test;

namespace {

struct ExplicitQuantization : testing::Test
{
    Maker m;
    std::deque<std::vector<float>> floats; // weights live until the build ends
    std::deque<std::vector<int8_t>> bytes;

    void SetUp() override { m.config->setFlag(BuilderFlag::kINT8); }

    ITensor& constant(std::vector<int32_t> const& shape, std::vector<float> values)
    {
        floats.push_back(std::move(values));
        Weights const w{DataType::kFLOAT, floats.back().data(), int64_t(floats.back().size())};
        return *m.network->addConstant(dims(shape), w)->getOutput(0);
    }
    ITensor& constant8(std::vector<int32_t> const& shape, std::vector<int8_t> values)
    {
        bytes.push_back(std::move(values));
        Weights const w{DataType::kINT8, bytes.back().data(), int64_t(bytes.back().size())};
        return *m.network->addConstant(dims(shape), w)->getOutput(0);
    }
    // One number without an axis, several along it.
    ITensor& scale(std::vector<float> const& s)
    {
        return constant(s.size() == 1 ? std::vector<int32_t>{} : std::vector<int32_t>{int32_t(s.size())}, s);
    }
    ITensor& quantize(ITensor& x, std::vector<float> const& s, int32_t axis = -1)
    {
        IQuantizeLayer* l = m.network->addQuantize(x, scale(s));
        l->setAxis(axis);
        return *l->getOutput(0);
    }
    ITensor& dequantize(ITensor& x, std::vector<float> const& s, int32_t axis = -1)
    {
        IDequantizeLayer* l = m.network->addDequantize(x, scale(s));
        l->setAxis(axis);
        return *l->getOutput(0);
    }
    ITensor& both(ITensor& x, std::vector<float> const& s, int32_t axis = -1)
    {
        return dequantize(quantize(x, s, axis), s, axis);
    }

    template <class Out = float>
    std::vector<Out> run(std::vector<float> in, size_t count)
    {
        auto const engine = m.engine();
        EXPECT_TRUE(engine) << m.errors();
        std::vector<Out> out(count);
        if (!engine)
            return out;
        Context c = contextOf(*engine);
        void* bindings[] = {in.data(), out.data()};
        EXPECT_TRUE(c->executeV2(bindings)) << m.errors();
        return out;
    }
    void anotherNetwork() { m.network.reset(m.builder->createNetworkV2(1)); }
    testing::AssertionResult refuses(char const* part)
    {
        if (m.plan())
            return testing::AssertionFailure() << "the network was built";
        return m.oneError(part);
    }
};

float rounded(float x, float scale)
{
    return std::clamp(std::nearbyintf(x / scale), -128.F, 127.F) * scale;
}

TEST_F(ExplicitQuantization, RoundsToSteps)
{
    std::vector<float> const in{0.24F, 0.25F, 0.75F, -0.75F, 100, -100};
    m.output(&both(*m.input("x", {2, 3}), {0.5F}), "y");
    EXPECT_EQ(run(in, 6), (std::vector<float>{0, 0, 1, -1, 63.5F, -64}));
}

TEST_F(ExplicitQuantization, OutputOfTheNetworkInInt8)
{
    ITensor& y = quantize(*m.input("x", {4}), {0.1F});
    m.output(&y, "y");
    EXPECT_EQ(y.getType(), DataType::kINT8);
    EXPECT_EQ(run<int8_t>({0.1F, -0.26F, 50, -50}, 4), (std::vector<int8_t>{1, -3, 127, -128}));
}

// Weights with scales for each channel, whose pair stands outside of the body that reads them, since nothing in it depends
// on the body.
TEST_F(ExplicitQuantization, ScalesOfChannelsWithinBodies)
{
    std::vector<float> const in{1, 2, 3, -4};
    std::vector<float> const weights{1, 2, -1, 4}; // [2, 2]: y = x w, columns have scales
    for (bool isLoop : {false, true}) {
        anotherNetwork();
        ITensor* const x = m.input("x", {2, 2});
        ITensor& w = both(constant({2, 2}, weights), {0.25F, 0.5F}, 1);
        auto product = [&](ITensor& a) {
            return m.network->addMatrixMultiply(both(a, {0.5F}), MatrixOperation::kNONE, w, MatrixOperation::kNONE)
                ->getOutput(0);
        };
        int32_t const two = 2;
        if (isLoop) {
            ILoop* loop = m.network->addLoop();
            loop->addTripLimit(*m.network->addConstant(Dims{0, {}}, {DataType::kINT32, &two, 1})->getOutput(0),
                               TripLimit::kCOUNT);
            IRecurrenceLayer* state = loop->addRecurrence(*x);
            state->setInput(1, *product(*state->getOutput(0)));
            m.output(loop->addLoopOutput(*state->getOutput(0), LoopOutput::kLAST_VALUE)->getOutput(0), "y");
        } else {
            ITensor* const sum = m.network->addReduce(*x, ReduceOperation::kSUM, 3, false)->getOutput(0);
            ITensor* const isMore =
                m.network->addElementWise(*sum, constant({}, {1}), ElementWiseOperation::kGREATER)->getOutput(0);
            IIfConditional* c = m.network->addIfConditional();
            c->setCondition(*isMore);
            ITensor* const inside = c->addInput(*x)->getOutput(0);
            m.output(c->addOutput(*product(*inside), *inside)->getOutput(0), "y");
        }
        // x w = [[-1, 10], [7, -10]], and times w again
        std::vector<float> const want =
            isLoop ? std::vector<float>{-11, 38, 17, -26} : std::vector<float>{-1, 10, 7, -10};
        EXPECT_EQ(run(in, 4), want) << isLoop;
    }
}

TEST_F(ExplicitQuantization, NamesWeightsThatIntegersCannotHold)
{
    ITensor& w = both(constant({2, 2}, {1, NAN, 2, 3}), {0.5F});
    m.output(
        m.network
            ->addMatrixMultiply(both(*m.input("x", {2, 2}), {0.5F}), MatrixOperation::kNONE, w, MatrixOperation::kNONE)
            ->getOutput(0),
        "y");
    EXPECT_TRUE(refuses("element 1 of "));
}

TEST_F(ExplicitQuantization, PrecisionsOfTheLayers)
{
    IQuantizeLayer* q = m.network->addQuantize(*m.input("x", {2}), scale({0.5F}));
    IDequantizeLayer* d = m.network->addDequantize(*q->getOutput(0), scale({0.5F}));
    EXPECT_EQ(q->getPrecision(), DataType::kFLOAT);
    EXPECT_EQ(d->getPrecision(), DataType::kINT8);
    EXPECT_FALSE(d->precisionIsSet());
}

// One sum, which two layers quantize by one scale, both for the client.
TEST_F(ExplicitQuantization, TwoOutputsOfTheSameIntegers)
{
    for (bool isPool : {false, true}) {
        anotherNetwork();
        ITensor& x = both(*m.input("x", {1, 2, 2, 2}), {0.5F});
        ILayer* sum = nullptr;
        if (isPool) {
            sum = m.network->addPoolingNd(x, PoolingType::kAVERAGE, Dims2(1, 1));
        } else {
            IConvolutionLayer* conv = m.network->addConvolutionNd(x, 2, Dims2(1, 1), Weights{}, Weights{});
            conv->setInput(1, both(constant({2, 2, 1, 1}, {1, 0, 0, -1}), {0.25F}));
            sum = conv;
        }
        m.output(&quantize(*sum->getOutput(0), {0.5F}), "y");
        m.output(&quantize(*sum->getOutput(0), {0.5F}), "z");
        auto const engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        std::vector<float> in{1, 2, 3, -4, 5, 6, -7, 8};
        std::vector<int8_t> y(8), z(8), want{2, 4, 6, -8, -10, -12, 14, -16};
        for (int i = 4; isPool && i < 8; ++i)
            want[size_t(i)] = int8_t(-want[size_t(i)]);
        void* bindings[] = {in.data(), y.data(), z.data()};
        ASSERT_TRUE(contextOf(*engine)->executeV2(bindings)) << m.errors();
        EXPECT_EQ(y, want);
        EXPECT_EQ(z, want);
    }
}

TEST_F(ExplicitQuantization, InputOfTheNetworkInInt8)
{
    m.output(&dequantize(*m.input("x", {4}, DataType::kINT8), {0.5F}), "y");
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    std::vector<int8_t> in{1, -128, 127, 0};
    std::vector<float> out(4);
    void* bindings[] = {in.data(), out.data()};
    EXPECT_TRUE(contextOf(*engine)->executeV2(bindings));
    EXPECT_EQ(out, (std::vector<float>{0.5F, -64, 63.5F, 0}));
}

TEST_F(ExplicitQuantization, HalfOutOfADequantizeLayer)
{
    IDequantizeLayer* l = m.network->addDequantize(quantize(*m.input("x", {2}), {0.5F}), scale({0.25F}));
    l->setOutputType(0, DataType::kHALF);
    EXPECT_EQ(l->getOutput(0)->getType(), DataType::kHALF);
    m.output(l->getOutput(0), "y");
    EXPECT_EQ(run<uint16_t>({1, -2}, 2), (std::vector<uint16_t>{0x3800, 0xbc00})); // 0.5, -1
}

TEST_F(ExplicitQuantization, GettersAndSetters)
{
    ITensor* x = m.input("x", {2, 3});
    IQuantizeLayer* q = m.network->addQuantize(*x, scale({1}));
    IDequantizeLayer* dq = m.network->addDequantize(*q->getOutput(0), scale({1}));
    EXPECT_EQ(q->getType(), LayerType::kQUANTIZE);
    EXPECT_EQ(dq->getType(), LayerType::kDEQUANTIZE);
    EXPECT_EQ(q->getAxis(), -1);
    EXPECT_EQ(dq->getAxis(), -1);
    EXPECT_EQ(q->getOutputType(0), DataType::kINT8);
    q->setAxis(1);
    dq->setAxis(0);
    EXPECT_EQ(q->getAxis(), 1);
    EXPECT_EQ(dq->getAxis(), 0);
    EXPECT_EQ(q->getOutput(0)->getType(), DataType::kINT8);
    EXPECT_EQ(list(dq->getOutput(0)->getDimensions()), (std::vector<int32_t>{2, 3}));
    EXPECT_EQ(m.errors(), "");
    q->setAxis(-2);
    EXPECT_TRUE(m.oneError("axis -2 is out of range"));
    EXPECT_EQ(q->getAxis(), 1);
}

TEST_F(ExplicitQuantization, ZeroPointsAreZeros)
{
    ITensor* x = m.input("x", {2});
    IQuantizeLayer* q = m.network->addQuantize(*x, scale({0.5F}));
    q->setInput(2, constant8({}, {0}));
    IDequantizeLayer* dq = m.network->addDequantize(*q->getOutput(0), scale({0.5F}));
    dq->setInput(2, constant8({}, {0}));
    m.output(dq->getOutput(0), "y");
    EXPECT_EQ(run({1, 2}, 2), (std::vector<float>{1, 2}));
    dq->setInput(2, constant8({}, {3}));
    m.takeErrors();
    EXPECT_TRUE(refuses("is 3; zero points must be 0"));
}

TEST_F(ExplicitQuantization, ScalesArePositiveConstants)
{
    for (float bad : {0.F, -1.F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
        anotherNetwork();
        m.output(&both(*m.input("x", {2}), {bad}), "y");
        EXPECT_FALSE(m.plan()) << bad;
        EXPECT_TRUE(contains(m.takeErrors(), "scales must be positive and finite")) << bad;
    }
    anotherNetwork();
    ITensor* x = m.input("x", {2});
    ITensor* s = m.input("s", {1});
    m.output(m.network->addQuantize(*x, *s)->getOutput(0), "y");
    EXPECT_FALSE(m.plan());
    EXPECT_TRUE(contains(m.takeErrors(), "the scale 's' must be a build-time constant"));
}

TEST_F(ExplicitQuantization, CountsOfScales)
{
    ITensor& w = constant({3, 2}, {1, 2, 3, 4, 5, 6});
    IQuantizeLayer* q = m.network->addQuantize(w, scale({1, 2}));
    m.output(q->getOutput(0), "y");
    EXPECT_FALSE(m.plan());
    EXPECT_TRUE(contains(m.takeErrors(), "has 2 elements, so setAxis() must say which dimension"));
    q->setAxis(0);
    EXPECT_FALSE(m.plan());
    EXPECT_TRUE(contains(m.takeErrors(), "has 2 elements; axis 0 of"));
    q->setAxis(2);
    EXPECT_FALSE(m.plan());
    EXPECT_TRUE(contains(m.takeErrors(), "axis 2 is out of range"));
}

TEST_F(ExplicitQuantization, NeedsTheFlag)
{
    m.config->clearFlag(BuilderFlag::kINT8);
    m.output(&both(*m.input("x", {2}), {1}), "y");
    EXPECT_TRUE(refuses("needs BuilderFlag::kINT8"));
}

TEST_F(ExplicitQuantization, RefusesInt8AsAPrecision)
{
    ITensor& x = both(*m.input("x", {2}), {1});
    IActivationLayer* relu = m.network->addActivation(x, ActivationType::kRELU);
    m.output(relu->getOutput(0), "y");
    relu->setPrecision(DataType::kINT8);
    EXPECT_TRUE(refuses("precision kINT8 is not possible in a network with quantize and dequantize layers"));
    relu->resetPrecision();
    relu->setOutputType(0, DataType::kINT8);
    EXPECT_TRUE(refuses("output type kINT8 is not possible"));
    relu->resetOutputType(0);
    EXPECT_TRUE(m.plan()) << m.errors();
}

TEST_F(ExplicitQuantization, RefusesInt8WhereItHasNoMeaning)
{
    ITensor& x = quantize(*m.input("x", {2}), {1});
    m.output(m.network->addSoftMax(x)->getOutput(0), "y");
    EXPECT_FALSE(m.plan());
    m.takeErrors();
    anotherNetwork();
    ITensor& q = quantize(*m.input("x", {2}), {1});
    m.output(m.add(&q, &q), "y");
    EXPECT_TRUE(refuses("which has no meaning for a layer of this kind; put a dequantize layer before it"));
}

TEST_F(ExplicitQuantization, ChannelsOfActivationsAreRefused)
{
    m.output(&both(*m.input("x", {2, 3}), {1, 2, 3}, 1), "y");
    EXPECT_TRUE(refuses("is computed from the network's inputs, so it takes one scale for all elements"));
}

// ---- Convolutions and products on weights behind a dequantize layer, against the same on weights that are rounded here.

struct Convolved
{
    bool transposed = false;
    int32_t groups = 1;
    int32_t axis = -1;
};

void convolutionCase(Convolved const& c)
{
    constexpr int32_t kMaps = 4, kChannels = 4;
    int32_t const perGroup = kMaps / c.groups;
    std::vector<int32_t> const shape = c.transposed ? std::vector<int32_t>{kChannels, perGroup, 3, 3}
                                                    : std::vector<int32_t>{kMaps, kChannels / c.groups, 3, 3};
    size_t const count = size_t(shape[0]) * size_t(shape[1]) * 9;
    std::vector<float> w(count), x(kChannels * 25);
    for (size_t i = 0; i < count; ++i)
        w[i] = std::sin(float(i));
    for (size_t i = 0; i < x.size(); ++i)
        x[i] = std::cos(float(i) * 0.7F);
    std::vector<float> s{0.02F};
    if (c.axis >= 0)
        for (int32_t i = 1; i < shape[size_t(c.axis)]; ++i)
            s.push_back(0.01F * float(i + 1));
    std::vector<float> results[2];
    for (int way = 0; way < 2; ++way) {
        struct Now : ExplicitQuantization
        {
            void TestBody() override {}
        } t;
        t.SetUp();
        Maker& m = t.m;
        ITensor* in = m.input("x", {1, kChannels, 5, 5});
        std::vector<float> kernel = w;
        if (way == 1)
            for (size_t i = 0; i < count; ++i) {
                size_t const inner = c.axis == 0 ? count / size_t(shape[0]) : 9;
                size_t const k = c.axis < 0 ? 0 : i / inner % size_t(shape[size_t(c.axis)]);
                kernel[i] = rounded(w[i], s[k]);
            }
        ITensor& k = way == 0 ? t.both(t.constant(shape, kernel), s, c.axis) : t.constant(shape, kernel);
        Weights const none{DataType::kFLOAT, nullptr, 0};
        ILayer* layer = nullptr;
        if (c.transposed) {
            auto* l = m.network->addDeconvolutionNd(*in, kMaps, dims({3, 3}), none, none);
            l->setNbGroups(c.groups);
            layer = l;
        } else {
            auto* l = m.network->addConvolutionNd(*in, kMaps, dims({3, 3}), none, none);
            l->setNbGroups(c.groups);
            layer = l;
        }
        layer->setInput(1, k);
        m.output(layer->getOutput(0), "y");
        results[way] = t.run(x, size_t(kMaps) * (c.transposed ? 49 : 9));
    }
    for (size_t i = 0; i < results[0].size(); ++i)
        ASSERT_NEAR(results[0][i], results[1][i], 1e-5) << i;
}

TEST_F(ExplicitQuantization, ConvolutionWithWeightsBehindADequantizeLayer)
{
    convolutionCase({false, 1, -1});
    convolutionCase({false, 1, 0});
    convolutionCase({false, 2, 0});
}

TEST_F(ExplicitQuantization, DeconvolutionWithWeightsBehindADequantizeLayer)
{
    convolutionCase({true, 1, -1});
    convolutionCase({true, 1, 1});
    convolutionCase({true, 2, 1});
}

// Batch normalization: it becomes a part of the weights' scales, and a bias.
TEST_F(ExplicitQuantization, ScaleBehindAConvolutionWithQuantizedWeights)
{
    ITensor& x = both(*m.input("x", {1, 2, 1, 1}), {0.5F});
    Weights const none{DataType::kFLOAT, nullptr, 0};
    auto* conv = m.network->addConvolutionNd(x, 2, dims({1, 1}), none, none);
    conv->setInput(1, both(constant({2, 2, 1, 1}, {1, 2, 3, 4}), {1, 0.5F}, 0));
    std::vector<float> const factor{2, 3}, shift{-1, 10};
    auto weights = [](std::vector<float> const& v) { return Weights{DataType::kFLOAT, v.data(), int64_t(v.size())}; };
    m.output(m.network->addScale(*conv->getOutput(0), ScaleMode::kCHANNEL, weights(shift), weights(factor), none)
                 ->getOutput(0),
             "y");
    EXPECT_EQ(run({1, -0.5F}, 2), (std::vector<float>{-1, 13}));
}

TEST_F(ExplicitQuantization, OtherChannelsOfConvolutionsAreRefused)
{
    ITensor* x = m.input("x", {1, 2, 5, 5});
    Weights const none{DataType::kFLOAT, nullptr, 0};
    auto* l = m.network->addConvolutionNd(*x, 2, dims({3, 3}), none, none);
    l->setInput(1, both(constant({2, 2, 3, 3}, std::vector<float>(36, 1)), {1, 2}, 1));
    m.output(l->getOutput(0), "y");
    EXPECT_TRUE(refuses("are dimension 0 of"));
}

TEST_F(ExplicitQuantization, FullyConnectedWithWeightsBehindADequantizeLayer)
{
    ITensor* x = m.input("x", {1, 3, 1, 1});
    auto* l = m.network->addFullyConnected(*x, 2, {DataType::kFLOAT, nullptr, 0}, {DataType::kFLOAT, nullptr, 0});
    l->setInput(1, both(constant({2, 3}, {1, 2, 3, 1, 2, 3}), {1, 2}, 0));
    m.output(l->getOutput(0), "y");
    EXPECT_EQ(run({1, 1, 1}, 2), (std::vector<float>{6, 6})); // 0.5, 1, 1.5 are 0, 1, 2 steps of 2
}

// PyTorch keeps [n, k] and transposes, TensorFlow keeps [k, n].
TEST_F(ExplicitQuantization, ProductsWithScalesForEachColumn)
{
    for (int way = 0; way < 4; ++way) {
        anotherNetwork();
        ITensor* x = m.input("x", {1, 3});
        bool const isRows = way != 0;
        ITensor* w = isRows ? &both(constant({2, 3}, {1, 2, 3, 1, 2, 3}), {1, 2}, 0)
                            : &both(constant({3, 2}, {1, 1, 2, 2, 3, 3}), {1, 2}, 1);
        MatrixOperation b = way == 1 ? MatrixOperation::kTRANSPOSE : MatrixOperation::kNONE;
        if (way >= 2) {
            IShuffleLayer* s = m.network->addShuffle(*w);
            s->setFirstTranspose({1, 0});
            if (way == 3)
                s->setReshapeDimensions(dims({3, 2}));
            w = s->getOutput(0);
        }
        m.output(m.network->addMatrixMultiply(*x, MatrixOperation::kNONE, *w, b)->getOutput(0), "y");
        EXPECT_EQ(run({1, 1, 1}, 2), (std::vector<float>{6, 6})) << way;
    }
    anotherNetwork();
    ITensor* x = m.input("x", {1, 2});
    ITensor& w = both(constant({2, 2}, {1, 2, 3, 4}), {1, 2}, 0);
    m.output(m.network->addMatrixMultiply(*x, MatrixOperation::kNONE, w, MatrixOperation::kNONE)->getOutput(0), "y");
    EXPECT_TRUE(refuses("are dimension 1 of"));
}

TEST_F(ExplicitQuantization, WeightsThatAreInt8Already)
{
    ITensor* x = m.input("x", {1, 2});
    ITensor& w = dequantize(constant8({2, 2}, {1, 2, 3, 4}), {1, 0.5F}, 1);
    m.output(m.network->addMatrixMultiply(*x, MatrixOperation::kNONE, w, MatrixOperation::kNONE)->getOutput(0), "y");
    EXPECT_EQ(run({1, 1}, 2), (std::vector<float>{4, 3}));
}

// ---- What moves elements takes INT8.

TEST_F(ExplicitQuantization, MovementsTakeInt8)
{
    ITensor& q = quantize(*m.input("x", {1, 2, 2, 4}), {0.5F});
    IShuffleLayer* shuffle = m.network->addShuffle(q);
    shuffle->setFirstTranspose({0, 2, 1, 3});
    ITensor* pair[] = {shuffle->getOutput(0), shuffle->getOutput(0)};
    IConcatenationLayer* joined = m.network->addConcatenation(pair, 2);
    joined->setAxis(3);
    ISliceLayer* slice =
        m.network->addSlice(*joined->getOutput(0), dims({0, 0, 0, 2}), dims({1, 2, 2, 4}), dims({1, 1, 1, 1}));
    IPaddingLayer* padded = m.network->addPaddingNd(*slice->getOutput(0), dims({0, 1}), dims({0, 1}));
    IPoolingLayer* pool = m.network->addPoolingNd(*padded->getOutput(0), PoolingType::kMAX, dims({1, 2}));
    pool->setStrideNd(dims({1, 2}));
    IResizeLayer* resize = m.network->addResize(*pool->getOutput(0));
    resize->setOutputDimensions(dims({1, 2, 2, 6}));
    resize->setResizeMode(ResizeMode::kNEAREST);
    m.output(&dequantize(*resize->getOutput(0), {0.5F}), "y");
    // Rows c0h0, c0h1, c1h0, c1h1 of 4; transposed c0h0, c1h0, c0h1, c1h1; columns 2 3 0 1 with 0 around, maxima of pairs.
    std::vector<float> in = ramp(16, -4), want;
    for (int row : {0, 2, 1, 3}) {
        float const* r = in.data() + 4 * row;
        for (float v : {std::max(0.F, r[2]), std::max(r[3], r[0]), std::max(r[1], 0.F)})
            want.insert(want.end(), {v, v});
    }
    EXPECT_EQ(run(in, 24), want);
}

TEST_F(ExplicitQuantization, InsideALoop)
{
    ITensor* x = m.input("x", {4});
    static int32_t const kTrips = 3;
    ITensor& trips = *m.network->addConstant(dims({}), {DataType::kINT32, &kTrips, 1})->getOutput(0);
    ILoop* loop = m.network->addLoop();
    loop->addTripLimit(trips, TripLimit::kCOUNT);
    IRecurrenceLayer* state = loop->addRecurrence(*x);
    ITensor& next = both(*m.add(state->getOutput(0), state->getOutput(0)), {0.5F});
    state->setInput(1, next);
    m.output(loop->addLoopOutput(*state->getOutput(0), LoopOutput::kLAST_VALUE)->getOutput(0), "y");
    EXPECT_EQ(run({0.2F, 1, -3, 50}, 4), (std::vector<float>{2, 8, -24, 63.5F}));
}

} // namespace
