// SPDX-License-Identifier: Apache-2.0
// Networks whose layers are fused, with a dimension that is 0 in some runs: each run gives what an engine of that size
// alone gives.
#include <cmath>
#include <limits>

#include "engine/engines.h"

using namespace tw::test;

namespace {

// A network of one input, whose dimension -1 is of any size.
struct FusedCase
{
    char const* name;
    Shape input;
    std::function<ITensor*(Maker&, ITensor*)> network;
};

// Numbers of constants, between -0.5 and 0.5.
std::vector<float> const kWave = [] {
    std::vector<float> v(1 << 14);
    for (size_t i = 0; i < v.size(); ++i)
        v[i] = float(0.5 * std::sin(double(i) * 1.7 + 0.3));
    return v;
}();
std::vector<int32_t> const kIntegers{0, 1, 2, 3, 4, 5, 6, 7, 1, 0, 3, 2};

Weights weights(int64_t count, int64_t from = 0)
{
    return {DataType::kFLOAT, kWave.data() + from, count};
}
Weights const kNone{DataType::kFLOAT, nullptr, 0};

ITensor* floats(Maker& m, Shape const& shape, int64_t from = 0)
{
    return m.network->addConstant(dims(shape), weights(volume(shape), from))->getOutput(0);
}
ITensor* number(Maker& m, Shape const& shape, float const& value)
{
    return m.network->addConstant(dims(shape), {DataType::kFLOAT, &value, 1})->getOutput(0);
}
ITensor* integers(Maker& m, Shape const& shape, int64_t from = 0)
{
    int64_t const count = volume(shape);
    return m.network->addConstant(dims(shape), {DataType::kINT32, count ? kIntegers.data() + from : nullptr, count})
        ->getOutput(0);
}
ITensor* op(Maker& m, ElementWiseOperation o, ITensor* a, ITensor* b)
{
    return m.network->addElementWise(*a, *b, o)->getOutput(0);
}
ITensor* product(Maker& m, ITensor* a, ITensor* b)
{
    return op(m, ElementWiseOperation::kPROD, a, b);
}
ITensor* unary(Maker& m, UnaryOperation o, ITensor* x)
{
    return m.network->addUnary(*x, o)->getOutput(0);
}
ITensor* reduced(Maker& m, ReduceOperation o, ITensor* x, uint32_t axes, bool keep = true)
{
    return m.network->addReduce(*x, o, axes, keep)->getOutput(0);
}
ITensor* softMax(Maker& m, ITensor* x, uint32_t axes)
{
    ISoftMaxLayer* l = m.network->addSoftMax(*x);
    l->setAxes(axes);
    return l->getOutput(0);
}
ITensor* matmul(Maker& m, ITensor* a, ITensor* b, MatrixOperation of = MatrixOperation::kNONE)
{
    return m.network->addMatrixMultiply(*a, MatrixOperation::kNONE, *b, of)->getOutput(0);
}
ITensor* convolved(Maker& m, ITensor* x, int32_t maps, int32_t channels, int32_t window, int32_t groups = 1,
                   int64_t from = 0)
{
    IConvolutionLayer* l =
        m.network->addConvolutionNd(*x, maps, Dims2(window, window),
                                    weights(int64_t(maps) * channels / groups * window * window, from), weights(maps));
    l->setPaddingNd(Dims2(window / 2, window / 2));
    l->setNbGroups(groups);
    return l->getOutput(0);
}
ITensor* slice(Maker& m, ITensor* x, Shape const& start, Shape const& size)
{
    return m.network->addSlice(*x, dims(start), dims(size), dims(Shape(start.size(), 1)))->getOutput(0);
}
// The size of x along an axis: one element.
ITensor* sizeOf(Maker& m, ITensor* x, int32_t axis)
{
    return slice(m, m.network->addShape(*x)->getOutput(0), {axis}, {1});
}

ITensor* layerNorm(Maker& m, ITensor* x, int32_t width, uint32_t axis)
{
    static float const two = 2, epsilon = 1e-5F;
    ITensor* centred = op(m, ElementWiseOperation::kSUB, x, reduced(m, ReduceOperation::kAVG, x, axis));
    Shape const one(size_t(x->getDimensions().nbDims), 1);
    ITensor* squares = op(m, ElementWiseOperation::kPOW, centred, number(m, one, two));
    ITensor* variance = m.add(reduced(m, ReduceOperation::kAVG, squares, axis), number(m, one, epsilon));
    ITensor* norm = op(m, ElementWiseOperation::kDIV, centred, unary(m, UnaryOperation::kSQRT, variance));
    Shape last = one;
    last.back() = width;
    return m.add(product(m, norm, floats(m, last)), floats(m, last, 50));
}

ITensor* attention(Maker& m, ITensor* x, int32_t width)
{
    auto projected = [&](int64_t from) { return matmul(m, x, floats(m, {1, width, width}, from)); };
    static float const scale = 0.25F;
    ITensor* scores = matmul(m, projected(0), projected(300), MatrixOperation::kTRANSPOSE);
    ITensor* kept = softMax(m, product(m, scores, number(m, {1, 1, 1}, scale)), 4);
    return m.add(x, matmul(m, matmul(m, kept, projected(600)), floats(m, {1, width, width}, 900)));
}

ITensor* gelu(Maker& m, ITensor* x)
{
    static float const root = 0.70710678F, one = 1, half = 0.5F;
    Shape const ones(size_t(x->getDimensions().nbDims), 1);
    ITensor* e = unary(m, UnaryOperation::kERF, product(m, x, number(m, ones, root)));
    return product(m, product(m, x, number(m, ones, half)), m.add(e, number(m, ones, one)));
}

ITensor* recurrent(Maker& m, ITensor* x, RNNOperation o, bool both)
{
    using enum RNNGateType;
    constexpr int32_t kHidden = 8, kData = 6, kSteps = 4;
    IRNNv2Layer* l = m.network->addRNNv2(*x, 1, kHidden, kSteps, o);
    if (both)
        l->setDirection(RNNDirection::kBIDIRECTION);
    std::vector<RNNGateType> const gates =
        o == RNNOperation::kLSTM ? std::vector{kINPUT, kFORGET, kOUTPUT, kCELL} : std::vector{kUPDATE, kRESET, kHIDDEN};
    for (int32_t level = 0; level < 1 + int32_t(both); ++level)
        for (size_t g = 0; g < gates.size(); ++g) {
            l->setWeightsForGate(level, gates[g], true, weights(kHidden * kData, int64_t(g) * 50));
            l->setWeightsForGate(level, gates[g], false, weights(kHidden * kHidden, int64_t(g) * 70));
            l->setBiasForGate(level, gates[g], true, weights(kHidden, int64_t(g)));
            l->setBiasForGate(level, gates[g], false, weights(kHidden, int64_t(g) + 9));
        }
    return l->getOutput(0);
}

// Both ends of a step through INT8.
ITensor* stepped(Maker& m, ITensor* x)
{
    static float const step = 0.01F;
    ITensor* scale = number(m, {}, step);
    return m.network->addDequantize(*m.network->addQuantize(*x, *scale)->getOutput(0), *scale)->getOutput(0);
}

// Rows of x, added up and multiplied in a loop.
ITensor* loopOverRows(Maker& m, ITensor* x, LoopOutput kind)
{
    ILoop* loop = m.network->addLoop();
    IShuffleLayer* count = m.network->addShuffle(*sizeOf(m, x, 0));
    count->setReshapeDimensions(Dims{});
    loop->addTripLimit(*count->getOutput(0), TripLimit::kCOUNT);
    IRecurrenceLayer* state = loop->addRecurrence(*floats(m, {1, 4}));
    IShuffleLayer* row = m.network->addShuffle(*loop->addIterator(*x)->getOutput(0));
    row->setReshapeDimensions(Dims2(1, 4));
    ITensor* next =
        unary(m, UnaryOperation::kATAN, matmul(m, m.add(state->getOutput(0), row->getOutput(0)), floats(m, {4, 4})));
    state->setInput(1, *next);
    ILoopOutputLayer* out = loop->addLoopOutput(kind == LoopOutput::kLAST_VALUE ? *state->getOutput(0) : *next, kind);
    if (kind != LoopOutput::kLAST_VALUE)
        out->setInput(1, *count->getOutput(0));
    return out->getOutput(0);
}

std::vector<FusedCase> const kFusedCases{
    {"residual block of images",
     {-1, 8, 6, 6},
     [](Maker& m, ITensor* x) {
         ITensor* t = convolved(m, x, 8, 8, 3);
         t = m.relu(m.network->addScale(*t, ScaleMode::kCHANNEL, weights(8), weights(8, 9), kNone)->getOutput(0));
         t = m.relu(m.add(convolved(m, t, 8, 8, 3, 1, 700), x));
         t = reduced(m, ReduceOperation::kAVG, t, 12);
         return softMax(m, m.network->addFullyConnected(*t, 5, weights(40), weights(5))->getOutput(0), 2);
     }},
    {"images of no columns",
     {1, 8, 4, -1},
     [](Maker& m, ITensor* x) {
         ITensor* t = m.relu(convolved(m, x, 8, 8, 1));
         t = m.network->addPoolingNd(*t, PoolingType::kMAX, Dims2(2, 1))->getOutput(0);
         return reduced(m, ReduceOperation::kSUM, t, 8);
     }},
    {"large windows",
     {-1, 32, 12, 12},
     [](Maker& m, ITensor* x) { return m.relu(convolved(m, m.relu(convolved(m, x, 32, 32, 3)), 16, 32, 3)); }},
    {"depthwise",
     {-1, 8, 5, 5},
     [](Maker& m, ITensor* x) {
         return convolved(m, m.relu(convolved(m, m.relu(convolved(m, x, 8, 8, 3, 8)), 16, 8, 1)), 4, 16, 3, 2);
     }},
    {"three dimensions",
     {-1, 2, 3, 4, 4},
     [](Maker& m, ITensor* x) {
         ITensor* t = m.network->addConvolutionNd(*x, 3, Dims3(2, 3, 3), weights(108), weights(3))->getOutput(0);
         return m.network->addPoolingNd(*m.relu(t), PoolingType::kAVERAGE, Dims3(2, 2, 2))->getOutput(0);
     }},
    {"deconvolution and crop",
     {-1, 4, 3, 3},
     [](Maker& m, ITensor* x) {
         IDeconvolutionLayer* l = m.network->addDeconvolutionNd(*x, 4, Dims2(2, 2), weights(64), weights(4));
         l->setStrideNd(Dims2(2, 2));
         ITensor* t = m.relu(l->getOutput(0));
         return m.network->addPaddingNd(*t, Dims2(-1, 1), Dims2(0, -2))->getOutput(0);
     }},
    {"upsampling and concatenation",
     {-1, 4, 3, 3},
     [](Maker& m, ITensor* x) {
         IResizeLayer* l = m.network->addResize(*m.relu(x));
         float const scales[] = {1, 1, 2, 2};
         l->setScales(scales, 4);
         l->setResizeMode(ResizeMode::kLINEAR);
         IResizeLayer* near = m.network->addResize(*x);
         near->setScales(scales, 4);
         ITensor* parts[] = {l->getOutput(0), near->getOutput(0)};
         return convolved(m, m.network->addConcatenation(parts, 2)->getOutput(0), 4, 8, 3);
     }},
    {"norms of channels",
     {-1, 5, 4, 4},
     [](Maker& m, ITensor* x) {
         ITensor* t = m.network->addLRN(*x, 3, 1, 0.75F, 1)->getOutput(0);
         t = m.network->addParametricReLU(*t, *floats(m, {1, 5, 1, 1}))->getOutput(0);
         IPoolingLayer* l = m.network->addPoolingNd(*t, PoolingType::kAVERAGE, Dims2(3, 3));
         l->setPaddingNd(Dims2(1, 1));
         l->setStrideNd(Dims2(2, 2));
         return l->getOutput(0);
     }},
    {"sampled places",
     {-1, 3, 4, 4},
     [](Maker& m, ITensor* x) {
         ISliceLayer* two = m.network->addSlice(*x, Dims4(0, 0, 0, 0), Dims4(1, 1, 1, 1), Dims4(1, 1, 1, 1));
         ITensor* size[] = {sizeOf(m, x, 0), integers(m, {1}, 2), integers(m, {1}, 4), integers(m, {1}, 4)};
         two->setInput(2, *m.network->addConcatenation(size, 4)->getOutput(0));
         IShuffleLayer* places = m.network->addShuffle(*two->getOutput(0));
         places->setFirstTranspose(Permutation{{0, 2, 3, 1}});
         return convolved(m, m.network->addGridSample(*x, *places->getOutput(0))->getOutput(0), 2, 3, 1);
     }},
    {"attention of no sequences", {-1, 5, 16}, [](Maker& m, ITensor* x) { return attention(m, x, 16); }},
    {"attention of no tokens", {2, -1, 16}, [](Maker& m, ITensor* x) { return attention(m, x, 16); }},
    {"layer normalization of no rows", {-1, 16}, [](Maker& m, ITensor* x) { return layerNorm(m, x, 16, 2); }},
    {"layer normalization of no tokens",
     {2, -1, 16},
     [](Maker& m, ITensor* x) {
         return matmul(m, layerNorm(m, x, 16, 4), floats(m, {1, 16, 8}));
     }},
    {"two products",
     {-1, 16},
     [](Maker& m, ITensor* x) {
         ITensor* t = gelu(m, m.add(matmul(m, x, floats(m, {16, 32})), floats(m, {1, 32}, 77)));
         return m.add(m.add(matmul(m, t, floats(m, {32, 16}, 99)), floats(m, {1, 16})), x);
     }},
    {"products over nothing",
     {3, -1},
     [](Maker& m, ITensor* x) {
         ITensor* t = matmul(m, m.relu(x), x, MatrixOperation::kTRANSPOSE);
         return gelu(m, m.add(matmul(m, t, floats(m, {3, 4})), floats(m, {1, 4}, 5)));
     }},
    {"einsum",
     {-1, 3, 4},
     [](Maker& m, ITensor* x) {
         ITensor* both[] = {x, m.relu(x)};
         return softMax(m, m.network->addEinsum(both, 2, "bij,bkj->ikb")->getOutput(0), 2);
     }},
    {"lstm of no sequences",
     {-1, 4, 6},
     [](Maker& m, ITensor* x) { return m.relu(recurrent(m, x, RNNOperation::kLSTM, true)); }},
    {"gru of no sequences",
     {-1, 4, 6},
     [](Maker& m, ITensor* x) {
         return matmul(m, recurrent(m, x, RNNOperation::kGRU, false), floats(m, {1, 8, 3}));
     }},
    {"int8 convolutions",
     {-1, 8, 6, 6},
     [](Maker& m, ITensor* x) {
         m.config->setFlag(BuilderFlag::kINT8);
         ITensor* t = stepped(m, x);
         for (int i : {0, 1}) {
             IConvolutionLayer* l = m.network->addConvolutionNd(*t, 8, Dims2(3, 3), kNone, weights(8));
             l->setInput(1, *stepped(m, floats(m, {8, 8, 3, 3}, i * 900)));
             t = stepped(m, m.relu(l->getOutput(0)));
         }
         return reduced(m, ReduceOperation::kAVG, m.relu(t), 12);
     }},
    {"int8 products",
     {-1, 16},
     [](Maker& m, ITensor* x) {
         m.config->setFlag(BuilderFlag::kINT8);
         ITensor* t = matmul(m, stepped(m, x), stepped(m, floats(m, {16, 16})));
         return m.add(stepped(m, m.relu(t)), floats(m, {1, 16}));
     }},
    {"reductions of everything",
     {-1, 4},
     [](Maker& m, ITensor* x) {
         ITensor* rows[] = {reduced(m, ReduceOperation::kMAX, unary(m, UnaryOperation::kEXP, x), 1),
                            m.relu(reduced(m, ReduceOperation::kMIN, m.relu(x), 1)),
                            unary(m, UnaryOperation::kEXP, reduced(m, ReduceOperation::kSUM, x, 1)),
                            reduced(m, ReduceOperation::kPROD, m.add(x, x), 1),
                            m.add(x, reduced(m, ReduceOperation::kAVG, x, 1))};
         IConcatenationLayer* l = m.network->addConcatenation(rows, 5);
         l->setAxis(0);
         return l->getOutput(0);
     }},
    {"norms of columns",
     {-1, 4},
     [](Maker& m, ITensor* x) {
         ITensor* length = unary(m, UnaryOperation::kSQRT, reduced(m, ReduceOperation::kSUM, product(m, x, x), 1));
         ITensor* logs =
             unary(m, UnaryOperation::kLOG, reduced(m, ReduceOperation::kSUM, unary(m, UnaryOperation::kEXP, x), 1));
         return m.add(length, logs);
     }},
    {"transposed parts",
     {3, -1, 4},
     [](Maker& m, ITensor* x) {
         IShuffleLayer* turned = m.network->addShuffle(*m.relu(x));
         turned->setFirstTranspose(Permutation{{2, 1, 0}});
         ITensor* parts[] = {turned->getOutput(0), floats(m, {4, 2, 3}),
                             unary(m, UnaryOperation::kNEG, turned->getOutput(0))};
         IConcatenationLayer* l = m.network->addConcatenation(parts, 3);
         l->setAxis(1);
         IShuffleLayer* back = m.network->addShuffle(*l->getOutput(0));
         back->setFirstTranspose(Permutation{{1, 0, 2}});
         return softMax(m, back->getOutput(0), 1);
     }},
    {"the largest ones",
     {-1, 6},
     [](Maker& m, ITensor* x) {
         ITopKLayer* most = m.network->addTopK(*softMax(m, x, 2), TopKOperation::kMAX, 2, 2);
         IGatherLayer* l = m.network->addGatherV2(*m.relu(x), *most->getOutput(1), GatherMode::kELEMENT);
         l->setGatherAxis(1);
         return m.add(l->getOutput(0), most->getOutput(0));
     }},
    {"embeddings",
     {-1, 3},
     [](Maker& m, ITensor* x) {
         ITensor* places = m.cast(m.relu(x), DataType::kINT32);
         return layerNorm(m, m.network->addGather(*floats(m, {6, 16}), *places, 0)->getOutput(0), 16, 4);
     }},
    {"rows that are not zero",
     {-1},
     [](Maker& m, ITensor* x) {
         IShuffleLayer* places = m.network->addShuffle(*m.network->addNonZero(*m.relu(x))->getOutput(0));
         places->setFirstTranspose(Permutation{{1, 0}});
         ITensor* kept = m.network->addGatherV2(*x, *places->getOutput(0), GatherMode::kND)->getOutput(0);
         return reduced(m, ReduceOperation::kSUM, product(m, kept, kept), 1);
     }},
    {"scattered rows",
     {-1, 4},
     [](Maker& m, ITensor* x) {
         ITensor* places = integers(m, {0, 1});
         ITensor* nothing = slice(m, floats(m, {2, 4}), {0, 0}, {0, 4});
         return matmul(m, m.network->addScatter(*m.relu(x), *places, *nothing, ScatterMode::kND)->getOutput(0),
                       floats(m, {4, 3}));
     }},
    {"integers",
     {-1, 3},
     [](Maker& m, ITensor* x) {
         ITensor* t = m.cast(product(m, x, floats(m, {1, 3})), DataType::kINT32);
         ITensor* u = op(m, ElementWiseOperation::kFLOOR_DIV, m.add(t, integers(m, {1, 3})), integers(m, {1, 3}, 1));
         ITensor* c = op(m, ElementWiseOperation::kGREATER, u, t);
         ITensor* s = m.network->addSelect(*c, *u, *op(m, ElementWiseOperation::kMAX, t, u))->getOutput(0);
         return m.cast(reduced(m, ReduceOperation::kSUM, s, 2), DataType::kFLOAT);
     }},
    {"loop to its last value",
     {-1, 4},
     [](Maker& m, ITensor* x) { return loopOverRows(m, x, LoopOutput::kLAST_VALUE); }},
    {"loop to a stack", {-1, 4}, [](Maker& m, ITensor* x) { return loopOverRows(m, x, LoopOutput::kCONCATENATE); }},
    {"loop backwards", {-1, 4}, [](Maker& m, ITensor* x) { return loopOverRows(m, x, LoopOutput::kREVERSE); }},
    {"halves",
     {-1, 8},
     [](Maker& m, ITensor* x) {
         ITensor* h = m.cast(x, DataType::kHALF);
         ITensor* w = m.cast(floats(m, {8, 8}), DataType::kHALF);
         return m.cast(m.relu(matmul(m, h, w)), DataType::kFLOAT);
     }},
};

struct Result
{
    Shape shape;
    std::vector<float> values;
};

class EmptyNetworks : public testing::TestWithParam<size_t>
{
protected:
    FusedCase const& c = kFusedCases[GetParam()];

    Shape filled(int32_t size) const
    {
        Shape shape = c.input;
        for (int32_t& d : shape)
            d = d < 0 ? size : d;
        return shape;
    }
    // An engine of one size, or of any with -1.
    std::unique_ptr<ICudaEngine> engineOf(Maker& m, int32_t size)
    {
        m.output(c.network(m, m.input("x", filled(size))), "y");
        if (size < 0)
            m.profile({{"x", filled(0), filled(2), filled(3)}});
        return m.engine();
    }
    void run(Maker& m, IExecutionContext& context, int32_t size, Result& result)
    {
        std::vector<float> x(size_t(volume(filled(size))) + 1);
        for (size_t i = 0; i < x.size(); ++i)
            x[i] = float(3 * std::sin(double(i) * 0.37));
        Output y;
        ASSERT_TRUE(context.setInputShape("x", dims(filled(size)))) << m.errors();
        context.setTensorAddress("x", x.data());
        context.setOutputAllocator("y", &y);
        ASSERT_TRUE(context.enqueueV3(nullptr)) << m.errors();
        ASSERT_GE(y.memory.size(), size_t(volume(y.shape)));
        result = {y.shape, y.floats()};
    }
    static void expectEqual(Result const& got, Result const& want)
    {
        ASSERT_EQ(got.shape, want.shape);
        for (size_t i = 0; i < want.values.size(); ++i) {
            float const a = got.values[i], b = want.values[i];
            bool const same = std::isfinite(b) ? std::abs(a - b) <= 1e-4F * (1 + std::abs(b))
                                               : (std::isnan(b) ? std::isnan(a) : a == b);
            ASSERT_TRUE(same) << a << " for " << b << " at " << i;
        }
    }
};

TEST_P(EmptyNetworks, AgreeWithThoseOfOneSize)
{
    Maker dynamic;
    auto const engine = engineOf(dynamic, -1);
    ASSERT_TRUE(engine) << dynamic.errors();
    Context const context = contextOf(*engine);
    std::vector<Result> want(4);
    for (int32_t size : {0, 3}) {
        Maker m;
        auto const fixed = engineOf(m, size);
        ASSERT_TRUE(fixed) << size << ": " << m.errors();
        Context const own = contextOf(*fixed);
        run(m, *own, size, want[size_t(size)]);
        if (HasFatalFailure())
            return;
    }
    for (int32_t size : {0, 3, 0, 2, 0, 3}) {
        Result got;
        run(dynamic, *context, size, got);
        if (HasFatalFailure())
            return;
        SCOPED_TRACE(size);
        if (size != 2)
            expectEqual(got, want[size_t(size)]);
    }
    EXPECT_EQ(dynamic.errors(), "");
}

INSTANTIATE_TEST_SUITE_P(Fused, EmptyNetworks, testing::Range(size_t(0), kFusedCases.size()), [](auto const& info) {
    std::string name = kFusedCases[info.param].name;
    for (char& ch : name)
        ch = std::isalnum(static_cast<unsigned char>(ch)) ? ch : '_';
    return name;
});

} // namespace
