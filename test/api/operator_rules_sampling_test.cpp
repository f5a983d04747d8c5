// SPDX-License-Identifier: Apache-2.0
// What the operator reference says of layers that sample, select and generate, and of IRNNv2Layer, by numbers that are
// worked by hand.
#include <numeric>

#include "operator_rules.h"

namespace operator_rules {

namespace {

struct SamplingRules : OperatorRules
{
    ITensor& scalar(int32_t v)
    {
        integers.push_back({v});
        return *net().addConstant(dims({}), {DataType::kINT32, integers.back().data(), 1})->getOutput(0);
    }
    ITensor& real(float v) { return *net().addConstant(dims({}), weights({v}))->getOutput(0); }
    IEinsumLayer* einsum(std::vector<ITensor*> const& in, char const* equation)
    {
        return net().addEinsum(in.data(), int32_t(in.size()), equation);
    }
    static void expectNear(Numbers const& got, Numbers const& want)
    {
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); ++i)
            EXPECT_NEAR(got[i], want[i], 1e-6) << i;
    }
};

TEST_F(SamplingRules, EinsumMultipliesAndSums)
{
    Numbers const a{1, 2, 3, 4, 5, 6}, b{7, 8, 9};
    EXPECT_EQ(run(einsum({&input({2, 3}, a), &input({3}, b)}, "ij,j->i")), (Numbers{50, 122}));
    EXPECT_EQ(run(einsum({&input({2, 3}, a)}, "ij->ji")), (Numbers{1, 4, 2, 5, 3, 6}));
    EXPECT_EQ(run(einsum({&input({2, 3}, a)}, "ij->")), Numbers{21});
    EXPECT_EQ(run(einsum({&input({2, 3}, a)}, " i j -> j ")), (Numbers{5, 7, 9})) << "spaces between elements";
    EXPECT_EQ(run(einsum({&input({2}, {2, 3}), &input({2}, {5, 7})}, "i,j->ij")), (Numbers{10, 14, 15, 21}));
    EXPECT_EQ(run(einsum({&input({2}, {2, 3}), &input({2}, {5, 7})}, "i,i->i")), (Numbers{10, 21}));
    // Without an arrow: letters that stand there once, in the order of the alphabet.
    EXPECT_EQ(run(einsum({&input({2, 3}, a)}, "ba")), (Numbers{1, 4, 2, 5, 3, 6}));
    EXPECT_EQ(run(einsum({&input({2, 3}, a), &input({3}, b)}, "ij,j")), (Numbers{50, 122}));
    // Nothing stands for a scalar.
    EXPECT_EQ(run(einsum({&input({}, {3}), &input({2}, {5, 7})}, ",i->i")), (Numbers{15, 21}));
    EXPECT_EQ(run(einsum({&input({}, {3}), &input({}, {4})}, ",->")), Numbers{12});
    // A sum over nothing.
    EXPECT_EQ(run(einsum({&input({2, 0}), &input({0})}, "ij,j->i")), (Numbers{0, 0}));
}

TEST_F(SamplingRules, EinsumTakesRealNumbers)
{
    for (DataType t : {DataType::kINT32, DataType::kINT8, DataType::kBOOL})
        EXPECT_TRUE(refused(einsum({&input({2}, {}, t)}, "i->i"), "allowed: f32, f16")) << int(t);
    EXPECT_EQ(shapeOf(einsum({&input({2}, {}, DataType::kHALF), &input({2}, {}, DataType::kHALF)}, "i,i->")), "[]");
}

TEST_F(SamplingRules, FillCountsFromAlphaByBeta)
{
    auto filled = [&](std::vector<int32_t> const& size, double alpha, double beta) {
        IFillLayer* l = net().addFill(dims(size), FillOperation::kLINSPACE);
        l->setAlpha(alpha);
        l->setBeta(beta);
        return l;
    };
    EXPECT_EQ(run(net().addFill(dims({3}), FillOperation::kLINSPACE)), (Numbers{0, 1, 2}))
        << "0 and 1 are the defaults";
    EXPECT_EQ(run(filled({4}, 2, -0.5)), (Numbers{2, 1.5, 1, 0.5}));
    EXPECT_EQ(shapeOf(filled({0}, 2, 1)), "[0]");
    EXPECT_TRUE(refused(filled({2, 2}, 0, 1), "rank 2")) << "static dimensions are one";
    // One step for each dimension, of dimensions that an input gives.
    IFillLayer* l = net().addFill(dims({}), FillOperation::kLINSPACE);
    l->setInput(0, list({2, 3}));
    l->setInput(1, real(5));
    l->setInput(2, *net().addConstant(dims({2}), weights({10, 1}))->getOutput(0));
    EXPECT_EQ(shapeOf(l), "[2,3]");
    EXPECT_EQ(run(l), (Numbers{5, 6, 7, 15, 16, 17}));
    // Integers, where alpha and beta are such.
    l = net().addFill(dims({}), FillOperation::kLINSPACE);
    l->setInput(0, list({3}));
    l->setInput(1, scalar(7));
    l->setInput(2, list({-2}));
    EXPECT_EQ(l->getOutput(0)->getType(), DataType::kINT32);
    EXPECT_EQ(run(l), (Numbers{7, 5, 3}));
    // Both or neither, of one type.
    l = net().addFill(dims({}), FillOperation::kLINSPACE);
    l->setInput(0, list({3}));
    l->setInput(1, scalar(7));
    EXPECT_TRUE(refused(l, "together"));
    l = net().addFill(dims({}), FillOperation::kLINSPACE);
    l->setInput(0, list({3}));
    l->setInput(1, scalar(7));
    l->setInput(2, *net().addConstant(dims({1}), weights({1}))->getOutput(0));
    EXPECT_TRUE(refused(l, "type"));
}

TEST_F(SamplingRules, RandomNumbersStayInside)
{
    auto random = [&](FillOperation o, double alpha, double beta) {
        IFillLayer* l = net().addFill(dims({40, 50}), o);
        l->setAlpha(alpha);
        l->setBeta(beta);
        return run(l);
    };
    Numbers const uniform = random(FillOperation::kRANDOM_UNIFORM, -2, 6);
    EXPECT_TRUE(std::all_of(uniform.begin(), uniform.end(), [](double v) { return v >= -2 && v < 6; }));
    double const mean = std::accumulate(uniform.begin(), uniform.end(), 0.0) / 2000;
    EXPECT_NEAR(mean, 2, 0.3) << "deviation 8 / sqrt(12 * 2000) = 0.05";
    Numbers const normal = random(FillOperation::kRANDOM_NORMAL, 3, 2);
    double sum = 0, squares = 0;
    for (double v : normal) {
        sum += v;
        squares += (v - 3) * (v - 3);
    }
    EXPECT_NEAR(sum / 2000, 3, 0.3);
    EXPECT_NEAR(std::sqrt(squares / 2000), 2, 0.2);
    EXPECT_NE(uniform[0], uniform[1]);
}

TEST_F(SamplingRules, OneHotWritesOnWhereTheIndexIs)
{
    auto hot = [&](Numbers v, int32_t axis, int32_t depth = 3) {
        auto const n = int32_t(v.size());
        return net().addOneHot(input({n}, std::move(v), DataType::kINT32), input({2}, {5, 9}), scalar(depth), axis);
    };
    EXPECT_EQ(run(hot({2, 0}, -1)), (Numbers{5, 5, 9, 9, 5, 5}));
    EXPECT_EQ(run(hot({2, 0}, 1)), (Numbers{5, 5, 9, 9, 5, 5}));
    EXPECT_EQ(run(hot({2, 0}, 0)), (Numbers{5, 9, 5, 5, 9, 5}));
    EXPECT_EQ(run(hot({2, 0}, -2)), (Numbers{5, 9, 5, 5, 9, 5}));
    EXPECT_EQ(run(hot({3, -1}, -1)), (Numbers{5, 5, 5, 5, 5, 9})) << "past the end, and from the end";
    EXPECT_TRUE(refused(hot({0}, 2), "axis 2"));
    EXPECT_TRUE(refused(hot({0}, -3), "axis -3"));
    EXPECT_TRUE(refused(hot({0}, 0, 0), "must be positive"));
    EXPECT_TRUE(refused(hot({0}, 0, -4), "must be positive"));
    EXPECT_TRUE(refused(net().addOneHot(input({2}), input({2}), scalar(3), 0), "must be i32"));
    EXPECT_TRUE(refused(net().addOneHot(input({2}, {}, DataType::kINT32), input({3}), scalar(3), 0), "off, on"));
    EXPECT_TRUE(refused(net().addOneHot(input({2}, {}, DataType::kINT32), input({2}), real(3), 0), "must be i32"));
    EXPECT_TRUE(refused(net().addOneHot(input({2}, {}, DataType::kINT32), input({2}), list({3, 3}), 0), "scalar"));
    // Values of any type decide that of the result; no indices; one index of rank 0.
    ILayer* l = net().addOneHot(input({1}, {1}, DataType::kINT32), input({2}, {7, -7}, DataType::kINT32), scalar(2), 0);
    EXPECT_EQ(l->getOutput(0)->getType(), DataType::kINT32);
    EXPECT_EQ(run(l), (Numbers{7, -7}));
    EXPECT_EQ(shapeOf(net().addOneHot(input({0}, {}, DataType::kINT32), input({2}), scalar(3), -1)), "[0,3]");
    EXPECT_EQ(run(net().addOneHot(input({}, {1}, DataType::kINT32), input({2}, {0, 1}), scalar(3), -1)),
              (Numbers{0, 1, 0}));
}

TEST_F(SamplingRules, SuppressionKeepsTheBestOfWhatOverlaps)
{
    // Box 1 covers three quarters of box 0 and itself: 3 / 5 of both together. Box 2 stands apart.
    Numbers const corners{0, 0, 4, 4, 1, 0, 5, 4, 10, 10, 12, 12};
    Numbers const centers{2, 2, 4, 4, 3, 2, 4, 4, 11, 11, 2, 2};
    auto kept = [&](Numbers const& boxes, BoundingBoxFormat format, float overlap, int32_t most, int output = 0) {
        INMSLayer* l = net().addNMS(input({1, 3, 4}, boxes), input({1, 3, 1}, {0.5, 0.75, 0.25}), scalar(most));
        l->setInput(3, real(overlap));
        l->setBoundingBoxFormat(format);
        return run(l, output);
    };
    for (auto format : {BoundingBoxFormat::kCORNER_PAIRS, BoundingBoxFormat::kCENTER_SIZES}) {
        Numbers const& boxes = format == BoundingBoxFormat::kCORNER_PAIRS ? corners : centers;
        EXPECT_EQ(kept(boxes, format, 0.5F, 9), (Numbers{0, 0, 1, 0, 0, 2})) << int(format);
        EXPECT_EQ(kept(boxes, format, 0.625F, 9), (Numbers{0, 0, 1, 0, 0, 0, 0, 0, 2})) << int(format);
        EXPECT_EQ(kept(boxes, format, 0.625F, 2, 1), Numbers{2}) << "how many there are";
        EXPECT_EQ(kept(boxes, format, 0.625F, 0), Numbers{}) << "none of a class";
    }
    // Two classes and two batch items: by batch item, then by score; boxes of their own for each class.
    INMSLayer* l = net().addNMS(input({2, 1, 2, 4}, {0, 0, 1, 1, 0, 0, 1, 1, 5, 5, 6, 6, 5, 5, 6, 6}),
                                input({2, 1, 2}, {0.25, 0.5, 0.75, 0.5}), scalar(1));
    EXPECT_EQ(run(l), (Numbers{0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 1, 0}));
    // Scores up to the threshold are none.
    l = net().addNMS(input({1, 2, 4}, {0, 0, 1, 1, 5, 5, 6, 6}), input({1, 2, 1}, {0.5, 0.75}), scalar(9));
    l->setInput(3, real(0));
    l->setInput(4, real(0.5F));
    EXPECT_EQ(run(l), (Numbers{0, 0, 1}));
    // No boxes.
    EXPECT_EQ(run(net().addNMS(input({1, 0, 4}), input({1, 0, 2}), scalar(9))), Numbers{});
}

TEST_F(SamplingRules, NonZeroListsPlacesByColumns)
{
    EXPECT_EQ(run(net().addNonZero(input({2, 3}, {0, 5, 0, -1, 0, 2}))), (Numbers{0, 1, 1, 1, 0, 2}));
    EXPECT_EQ(run(net().addNonZero(input({3}, {0, 1, 1}, DataType::kBOOL))), (Numbers{1, 2}));
    EXPECT_EQ(run(net().addNonZero(input({2}, {0, 0}))), Numbers{});
    EXPECT_EQ(run(net().addNonZero(input({0, 2}))), Numbers{});
    EXPECT_EQ(run(net().addNonZero(input({2}, {-0.0, std::nan("")}))), Numbers{1}) << "NaN is not zero";
}

TEST_F(SamplingRules, GridSampleLooksUpPlaces)
{
    // One row of pixels 1, 2, 4, 8. Without aligned corners -1 and 1 are the edges: pixel i is at (2 i + 1) / 4 - 1.
    auto sampled = [&](std::vector<double> const& horizontal, InterpolationMode mode, SampleMode outside,
                       bool align = false) {
        Numbers grid;
        for (double h : horizontal) {
            grid.push_back(h);
            grid.push_back(0);
        }
        auto const n = int32_t(horizontal.size());
        IGridSampleLayer* l = net().addGridSample(input({1, 1, 1, 4}, {1, 2, 4, 8}), input({1, 1, n, 2}, grid));
        l->setInterpolationMode(mode);
        EXPECT_TRUE(l->setSampleMode(outside));
        l->setAlignCorners(align);
        return run(l);
    };
    using enum SampleMode;
    auto const linear = InterpolationMode::kLINEAR, nearest = InterpolationMode::kNEAREST;
    EXPECT_EQ(sampled({-0.75, -0.5, 0, 0.75}, linear, kFILL), (Numbers{1, 1.5, 3, 8}));
    EXPECT_EQ(sampled({-1, 1, 1.25, -3}, linear, kFILL), (Numbers{0.5, 4, 0, 0})) << "half of the pixel at the edge";
    EXPECT_EQ(sampled({-1, 1, 9, -9}, linear, kCLAMP), (Numbers{1, 8, 8, 1}));
    EXPECT_EQ(sampled({-1.25, 1.5}, linear, kREFLECT), (Numbers{1, 6})) << "at the edges";
    EXPECT_EQ(sampled({-0.75, 0.2, 0.6, 3}, nearest, kFILL), (Numbers{1, 4, 8, 0}));
    // With aligned corners -1 and 1 are the first and the last pixel: i is at 2 i / 3 - 1.
    EXPECT_EQ(sampled({-1, 0, 1}, linear, kFILL, true), (Numbers{1, 3, 8}));
    expectNear(sampled({5.0 / 3, -5.0 / 3}, linear, kREFLECT, true), {4, 2}); // at the centres of pixels 3 and 0
    // Cubic: weights -3/32, 19/32, 19/32, -3/32 in the middle of pixels 1 and 2.
    expectNear(sampled({0}, InterpolationMode::kCUBIC, kFILL), {(19 * (2 + 4) - 3 * (1 + 8)) / 32.0});
    expectNear(sampled({-0.25}, InterpolationMode::kCUBIC, kFILL), {2});
}

TEST_F(SamplingRules, RaggedSoftMaxSeesTheLengthAlone)
{
    double const e = std::exp(1);
    expectNear(
        run(net().addRaggedSoftMax(input({3, 2}, {0, 1, 2, 90, 5, 5}), input({3, 1}, {2, 1, 0}, DataType::kINT32))),
        {1 / (1 + e), e / (1 + e), 1, 0, 0, 0});
    expectNear(run(net().addRaggedSoftMax(input({2, 2}, {0, 1, 1, 1}), input({2, 1}, {7, -1}, DataType::kINT32))),
               {1 / (1 + e), e / (1 + e), 0, 0});
}

TEST_F(SamplingRules, AssertionsHoldForAllElements)
{
    // Every element must be true; which of them are known decides when that is seen.
    auto failed = [&](std::vector<int32_t> const& sizes) {
        ITensor& shape = *net().addShape(input({2, 3}))->getOutput(0);
        ITensor& equal = *net().addElementWise(shape, list(sizes), ElementWiseOperation::kEQUAL)->getOutput(0);
        net().addAssertion(equal, "it is [2,3]");
        net().markOutput(shape);
        auto const g = object->toGraph();
        std::string const message = g.ok() ? "" : g.error().message;
        another();
        return message;
    };
    EXPECT_EQ(failed({2, 3}), "");
    EXPECT_TRUE(contains(failed({2, 4}), "it is [2,3]"));
    EXPECT_TRUE(contains(failed({1, 3}), "it is [2,3]"));
}

// One unit, one input, steps 1, 2, 3: weights of the input w, of the state r, no biases but those given.
struct RecurrentRules : SamplingRules
{
    IRNNv2Layer* layer(RNNOperation op, std::vector<float> const& w, std::vector<float> const& r, Numbers const& x,
                       int levels = 1)
    {
        auto const steps = int32_t(x.size());
        IRNNv2Layer* l = net().addRNNv2(input({1, steps, 1}, x), levels, 1, steps, op);
        set(*l, 0, w, r);
        return l;
    }
    void set(IRNNv2Layer& l, int index, std::vector<float> const& w, std::vector<float> const& r)
    {
        using enum RNNGateType;
        std::vector<RNNGateType> const gates =
            l.getOperation() == RNNOperation::kLSTM  ? std::vector{kINPUT, kFORGET, kOUTPUT, kCELL}
            : l.getOperation() == RNNOperation::kGRU ? std::vector{kUPDATE, kRESET, kHIDDEN}
                                                     : std::vector{kINPUT};
        for (size_t g = 0; g < gates.size(); ++g) {
            if (!w.empty())
                l.setWeightsForGate(index, gates[g], true, weights({w[g]}));
            l.setWeightsForGate(index, gates[g], false, weights({r[g]}));
        }
    }
};

TEST_F(RecurrentRules, StatesGoFromStepToStep)
{
    auto relu = [&] { return layer(RNNOperation::kRELU, {2}, {0.5}, {1, -4, 3}); };
    EXPECT_EQ(run(relu()), (Numbers{2, 0, 6})) << "max(2 x + h / 2, 0)";
    EXPECT_EQ(run(relu(), 1), Numbers{6}) << "the last state";
    IRNNv2Layer* l = relu();
    l->setBiasForGate(0, RNNGateType::kINPUT, true, weights({1}));
    l->setBiasForGate(0, RNNGateType::kINPUT, false, weights({0.5}));
    EXPECT_EQ(run(l), (Numbers{3.5, 0, 7.5})) << "both biases";
    l = relu();
    l->setHiddenState(input({1, 1, 1}, {8}));
    EXPECT_EQ(run(l), (Numbers{6, 0, 6})) << "the initial state";
    expectNear(run(layer(RNNOperation::kTANH, {2}, {0.5}, {1, -4})),
               {std::tanh(2.0), std::tanh(-8 + 0.5 * std::tanh(2.0))});
}

TEST_F(RecurrentRules, LengthsEndSequences)
{
    IRNNv2Layer* l = layer(RNNOperation::kRELU, {2}, {0.5}, {1, 2, 3});
    l->setSequenceLengths(input({1}, {2}, DataType::kINT32));
    EXPECT_EQ(run(l), (Numbers{2, 5, 0})) << "steps past it are filled";
    l = layer(RNNOperation::kRELU, {2}, {0.5}, {1, 2, 3});
    l->setSequenceLengths(input({1}, {2}, DataType::kINT32));
    EXPECT_EQ(run(l, 1), Numbers{5}) << "the state after its last step";
}

TEST_F(RecurrentRules, BothDirectionsStandSideBySide)
{
    auto both = [&] {
        IRNNv2Layer* l = layer(RNNOperation::kRELU, {1}, {1}, {1, 2, 4});
        l->setDirection(RNNDirection::kBIDIRECTION);
        set(*l, 1, {10}, {1}); // index 2 i + 1 is the backward one of level i
        return l;
    };
    EXPECT_EQ(run(both()), (Numbers{1, 70, 3, 60, 7, 40}));
    EXPECT_EQ(run(both(), 1), (Numbers{7, 70}));
    IRNNv2Layer* l = both();
    l->setSequenceLengths(input({1}, {2}, DataType::kINT32));
    EXPECT_EQ(run(l), (Numbers{1, 30, 3, 20, 0, 0})) << "backwards from its own end";
}

TEST_F(RecurrentRules, LevelsReadTheLevelBelow)
{
    IRNNv2Layer* l = layer(RNNOperation::kRELU, {2}, {0}, {1, 2}, 2);
    set(*l, 1, {3}, {1});
    EXPECT_EQ(run(l), (Numbers{6, 18})) << "3 * 2 x + h";
    l = layer(RNNOperation::kRELU, {2}, {0}, {1, 2}, 2);
    set(*l, 1, {3}, {1});
    EXPECT_EQ(run(l, 1), (Numbers{4, 18})) << "a state for each level";
}

TEST_F(RecurrentRules, SkipModeHasNoInputWeights)
{
    IRNNv2Layer* l = layer(RNNOperation::kRELU, {}, {0.5}, {4, 2});
    l->setInputMode(RNNInputMode::kSKIP);
    EXPECT_EQ(run(l), (Numbers{4, 4})) << "max(x + h / 2, 0)";
}

TEST_F(RecurrentRules, LstmAndGruByTheirFormulas)
{
    auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
    // Gates i, f, o, c.
    std::vector<float> const w{0.5, -1, 2, 1.5}, r{1, 0.25, -0.5, 2};
    auto lstm = [&] {
        IRNNv2Layer* l = layer(RNNOperation::kLSTM, w, r, {1, -2});
        l->setHiddenState(input({1, 1, 1}, {0.5}));
        l->setCellState(input({1, 1, 1}, {-0.25}));
        return l;
    };
    double h = 0.5, c = -0.25;
    Numbers ys;
    for (double x : {1.0, -2.0}) {
        double const i = sigmoid(w[0] * x + r[0] * h), f = sigmoid(w[1] * x + r[1] * h),
                     o = sigmoid(w[2] * x + r[2] * h), g = std::tanh(w[3] * x + r[3] * h);
        c = f * c + i * g;
        h = o * std::tanh(c);
        ys.push_back(h);
    }
    expectNear(run(lstm()), ys);
    expectNear(run(lstm(), 1), {h});
    expectNear(run(lstm(), 2), {c});
    // Gates z, r, h; the reset gate is multiplied with the product of the state and its bias.
    IRNNv2Layer* l = layer(RNNOperation::kGRU, {0.5, -1, 2}, {1, 0.25, -0.5}, {1, -2});
    l->setBiasForGate(0, RNNGateType::kHIDDEN, false, weights({0.75}));
    h = 0;
    ys.clear();
    for (double x : {1.0, -2.0}) {
        double const z = sigmoid(0.5 * x + h), reset = sigmoid(-x + 0.25 * h),
                     n = std::tanh(2 * x + reset * (-0.5 * h + 0.75));
        h = (1 - z) * n + z * h;
        ys.push_back(h);
    }
    expectNear(run(l), ys);
}

TEST_F(RecurrentRules, TypesAndSizes)
{
    IRNNv2Layer* l = net().addRNNv2(input({1, 2, 1}, {}, DataType::kINT32), 1, 1, 2, RNNOperation::kRELU);
    set(*l, 0, {1}, {1});
    EXPECT_TRUE(refused(l, "i32"));
    l = layer(RNNOperation::kRELU, {1}, {1}, {1, 2});
    l->setSequenceLengths(input({1}));
    EXPECT_TRUE(refused(l, "i32"));
    l = layer(RNNOperation::kRELU, {1}, {1}, {1, 2});
    l->setHiddenState(input({1, 2, 1}));
    EXPECT_TRUE(refused(l, "hidden state"));
    l = layer(RNNOperation::kLSTM, {1, 1, 1, 1}, {1, 1, 1, 1}, {1, 2});
    l->setCellState(input({1, 1, 2}));
    EXPECT_TRUE(refused(l, "cell state"));
    // Leading dimensions are batch dimensions; no steps, no sequences.
    l = net().addRNNv2(input({2, 3, 5, 1}), 1, 1, 5, RNNOperation::kRELU);
    set(*l, 0, {1}, {1});
    EXPECT_EQ(shapeOf(l), "[2,3,5,1]");
    EXPECT_EQ(shapeOf(l, 1), "[2,3,1,1]");
    EXPECT_EQ(net().addRNNv2(input({1, 0, 1}), 1, 1, 0, RNNOperation::kRELU), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "sequence length 0"));
    l = net().addRNNv2(input({0, 3, 1}), 1, 1, 3, RNNOperation::kRELU);
    set(*l, 0, {1}, {1});
    EXPECT_EQ(shapeOf(l), "[0,3,1]") << "no sequences";
}

} // namespace

} // namespace operator_rules
