// SPDX-License-Identifier: Apache-2.0
// Each limit of layers without a window just inside and just outside.
#include "dla/dla_maker.h"

using namespace tw::test;

namespace {

testing::AssertionResult runs(DlaMaker& m, ILayer* l)
{
    if (!l)
        return testing::AssertionFailure() << "no layer: " << m.errors();
    return m.canRun(l) ? testing::AssertionSuccess() : testing::AssertionFailure() << m.reason();
}
// Whether it cannot run, for a reason with this text.
testing::AssertionResult refuses(DlaMaker& m, ILayer* l, char const* part)
{
    if (!l)
        return testing::AssertionFailure() << "no layer: " << m.errors();
    if (m.canRun(l))
        return testing::AssertionFailure() << "it runs";
    return contains(m.reason(), part) ? testing::AssertionSuccess() : testing::AssertionFailure() << m.reason();
}

void toInt8(DlaMaker& m)
{
    m.config->clearFlag(BuilderFlag::kFP16);
    m.config->setFlag(BuilderFlag::kINT8);
}
void setRange(ITensor* t, float range)
{
    t->setDynamicRange(-range, range);
}

TEST(DlaLayerLimits, Activation)
{
    using enum ActivationType;
    for (int type = 0; type < EnumMax<ActivationType>(); ++type) {
        DlaMaker m;
        auto* l = m.network->addActivation(*m.input("x", {1, 2, 3, 4}), static_cast<ActivationType>(type));
        auto const t = static_cast<ActivationType>(type);
        l->setAlpha(t == kCLIP ? 0 : 0.1F);
        l->setBeta(6);
        if (t == kRELU || t == kSIGMOID || t == kTANH || t == kCLIP || t == kLEAKY_RELU)
            EXPECT_TRUE(runs(m, l)) << type;
        else
            EXPECT_TRUE(refuses(m, l, "not supported on DLA")) << type;
    }
    DlaMaker m;
    auto* l = m.network->addActivation(*m.input("x", {1, 2, 3, 4}), kCLIP);
    l->setAlpha(0);
    for (float upper : {1.F, 6.F, 127.F}) {
        l->setBeta(upper);
        EXPECT_TRUE(runs(m, l)) << upper;
    }
    for (float upper : {0.99F, 127.5F}) {
        l->setBeta(upper);
        EXPECT_TRUE(refuses(m, l, "allowed are 1 to 127")) << upper;
    }
    l->setBeta(6);
    l->setAlpha(-1);
    EXPECT_TRUE(refuses(m, l, "lower value -1"));
}

TEST(DlaLayerLimits, ParametricRelu)
{
    DlaMaker m;
    ITensor* x = m.input("x", {1, 2, 3, 4});
    ITensor* slopes = m.network->addConstant(dims({1, 2, 1, 1}), m.weights(2))->getOutput(0);
    EXPECT_TRUE(runs(m, m.network->addParametricReLU(*x, *slopes)));
    EXPECT_TRUE(refuses(m, m.network->addParametricReLU(*x, *m.input("s", {1, 2, 1, 1})), "computed at run time"));
}

TEST(DlaLayerLimits, ElementWise)
{
    using enum ElementWiseOperation;
    for (int o = 0; o < EnumMax<ElementWiseOperation>(); ++o) {
        auto const op = static_cast<ElementWiseOperation>(o);
        if (op == kAND || op == kOR || op == kXOR)
            continue; // of booleans
        DlaMaker m;
        auto* l = m.network->addElementWise(*m.input("a", {1, 2, 3, 4}), *m.input("b", {1, 2, 3, 4}), op);
        if (op == kSUM || op == kSUB || op == kPROD || op == kMAX || op == kMIN)
            EXPECT_TRUE(runs(m, l)) << o;
        else
            EXPECT_FALSE(m.canRun(l)) << o;
    }
    DlaMaker m; // a constant is part of the layer
    ITensor* c = m.network->addConstant(dims({1, 2, 1, 1}), m.weights(2))->getOutput(0);
    EXPECT_TRUE(runs(m, m.network->addElementWise(*m.input("a", {1, 2, 3, 4}), *c, kSUM)));
    DlaMaker i;
    toInt8(i);
    ITensor *a = i.input("a", {1, 2, 3, 4}), *b = i.input("b", {1, 2, 3, 4});
    auto* l = i.network->addElementWise(*a, *b, kSUM);
    setRange(a, 2);
    setRange(b, 2);
    setRange(l->getOutput(0), 5);
    EXPECT_TRUE(runs(i, l));
    setRange(b, 2.5F);
    EXPECT_TRUE(refuses(i, l, "equal ranges of 'a' (2) and 'b' (2.5)"));
    i.config->setFlag(BuilderFlag::kFP16);
    EXPECT_TRUE(runs(i, l)); // in FP16
}

TEST(DlaLayerLimits, EqualAndItsCast)
{
    auto make = [](DlaMaker& m, bool cast = true) {
        m.config->setFlag(BuilderFlag::kINT8);
        ITensor *a = m.input("a", {1, 2, 3, 4}), *b = m.input("b", {1, 2, 3, 4});
        setRange(a, 1);
        setRange(b, 1);
        auto* l = m.network->addElementWise(*a, *b, ElementWiseOperation::kEQUAL);
        ILayer* follower = nullptr;
        if (cast) {
            follower = m.network->addIdentity(*l->getOutput(0));
            follower->setOutputType(0, DataType::kHALF);
            setRange(follower->getOutput(0), 1);
        }
        for (ILayer* one : {static_cast<ILayer*>(l), follower})
            if (one) {
                m.config->setDeviceType(one, DeviceType::kDLA);
                one->setPrecision(DataType::kINT8);
            }
        return std::pair<ILayer*, ILayer*>(l, follower);
    };
    {
        DlaMaker m;
        auto const [equal, cast] = make(m);
        EXPECT_TRUE(runs(m, equal));
        EXPECT_TRUE(runs(m, cast));
        m.config->clearFlag(BuilderFlag::kINT8);
        EXPECT_TRUE(refuses(m, equal, "INT8 alone"));
    }
    {
        DlaMaker m;
        auto const [equal, cast] = make(m);
        m.config->resetDeviceType(equal);
        EXPECT_TRUE(refuses(m, equal, "set for it alone"));
        EXPECT_TRUE(refuses(m, cast, "behind a kEQUAL on DLA alone"));
    }
    {
        DlaMaker m;
        auto const [equal, cast] = make(m);
        cast->resetPrecision();
        EXPECT_TRUE(refuses(m, equal, "precision INT8"));
    }
    {
        DlaMaker m;
        auto const [equal, cast] = make(m);
        cast->setOutputType(0, DataType::kFLOAT);
        EXPECT_TRUE(refuses(m, equal, "must make FP16 or INT8"));
    }
    {
        DlaMaker m;
        EXPECT_TRUE(refuses(m, make(m, false).first, "0 readers"));
    }
    {
        DlaMaker m;
        auto const [equal, cast] = make(m);
        m.network->addIdentity(*equal->getOutput(0));
        EXPECT_TRUE(refuses(m, equal, "2 readers"));
    }
    {
        DlaMaker m;
        auto const [equal, cast] = make(m);
        m.output(equal->getOutput(0), "y");
        EXPECT_TRUE(refuses(m, equal, "an output of the network"));
    }
    DlaMaker m;
    EXPECT_TRUE(refuses(m, m.network->addIdentity(*m.input("x", {1, 2, 3, 4})), "not supported on DLA"));
}

TEST(DlaLayerLimits, Scale)
{
    for (auto const& [mode, count] :
         {std::pair(ScaleMode::kUNIFORM, 1), {ScaleMode::kCHANNEL, 2}, {ScaleMode::kELEMENTWISE, 24}}) {
        DlaMaker m;
        ITensor* x = m.input("x", {1, 2, 3, 4});
        EXPECT_TRUE(
            runs(m, m.network->addScale(*x, mode, m.weights(count), m.weights(count), {DataType::kFLOAT, nullptr, 0})));
        std::vector<float> power(size_t(count), 1);
        auto* l =
            m.network->addScale(*x, mode, m.weights(count), m.weights(count), {DataType::kFLOAT, power.data(), count});
        EXPECT_TRUE(runs(m, l));
        power.back() = 2;
        EXPECT_TRUE(refuses(m, l, "is not 1"));
    }
    DlaMaker m;
    ITensor* x = m.input("x", {1, 2, 3, 4, 5});
    Weights const none{DataType::kFLOAT, nullptr, 0};
    EXPECT_TRUE(runs(m, m.network->addScaleNd(*x, ScaleMode::kCHANNEL, m.weights(3), m.weights(3), none, 2)));
    EXPECT_TRUE(refuses(m, m.network->addScaleNd(*x, ScaleMode::kCHANNEL, m.weights(2), m.weights(2), none, 1),
                        "channel axis 1"));
}

TEST(DlaLayerLimits, Lrn)
{
    for (int window = 1; window <= 15; window += 2) {
        DlaMaker m;
        auto* l = m.network->addLRN(*m.input("x", {1, 20, 3, 4}), window, 1, 0.75F, 1);
        if (window >= 3 && window <= 9)
            EXPECT_TRUE(runs(m, l)) << window;
        else
            EXPECT_TRUE(refuses(m, l, "allowed are 3, 5, 7 and 9")) << window;
    }
}

TEST(DlaLayerLimits, Concatenation)
{
    auto make = [](DlaMaker& m, int inputs, int axis, std::vector<int> const& shape = {1, 2, 3, 4}) {
        std::vector<ITensor*> list;
        for (int i = 0; i < inputs; ++i)
            list.push_back(m.input(("x" + std::to_string(i)).c_str(), shape));
        auto* l = m.network->addConcatenation(list.data(), inputs);
        l->setAxis(axis);
        return l;
    };
    DlaMaker two, one, three, volume;
    EXPECT_TRUE(runs(two, make(two, 2, 1)));
    EXPECT_TRUE(refuses(one, make(one, 1, 1), "number of inputs 1"));
    EXPECT_TRUE(runs(three, make(three, 3, 1)));
    EXPECT_TRUE(runs(volume, make(volume, 2, 2, {1, 2, 3, 4, 5})));
    for (int axis : {0, 2, 3}) {
        DlaMaker m;
        EXPECT_TRUE(refuses(m, make(m, 2, axis), "allowed is that of the channels, 1")) << axis;
    }
    DlaMaker m;
    toInt8(m);
    auto* l = make(m, 2, 1);
    setRange(l->getInput(0), 3);
    setRange(l->getInput(1), 3);
    setRange(l->getOutput(0), 3);
    EXPECT_TRUE(runs(m, l));
    setRange(l->getInput(1), 4);
    EXPECT_TRUE(refuses(m, l, "equal ranges"));
    setRange(l->getInput(1), 3);
    setRange(l->getOutput(0), 4);
    EXPECT_TRUE(refuses(m, l, "equal ranges"));
}

TEST(DlaLayerLimits, PoolingRanges)
{
    DlaMaker m;
    toInt8(m);
    auto* l = m.network->addPoolingNd(*m.input("x", {1, 2, 6, 6}), PoolingType::kMAX, DimsHW(2, 2));
    setRange(l->getInput(0), 3);
    setRange(l->getOutput(0), 3);
    EXPECT_TRUE(runs(m, l));
    setRange(l->getOutput(0), 2);
    EXPECT_TRUE(refuses(m, l, "equal ranges of 'x' (3)"));
}

IResizeLayer* resize(DlaMaker& m, ResizeMode mode, std::vector<float> const& scales)
{
    auto* l = m.network->addResize(*m.input("x", {1, 2, 3, 4}));
    l->setResizeMode(mode);
    l->setScales(scales.data(), int(scales.size()));
    using T = ResizeCoordinateTransformation;
    l->setCoordinateTransformation(mode == ResizeMode::kNEAREST ? T::kASYMMETRIC : T::kHALF_PIXEL);
    l->setNearestRounding(ResizeRoundMode::kFLOOR);
    return l;
}

TEST(DlaLayerLimits, Resize)
{
    for (auto const& [mode, most] : {std::pair(ResizeMode::kNEAREST, 32.F), {ResizeMode::kLINEAR, 4.F}})
        for (float s : {1.F, 2.F, 3.5F, most, most + 1}) {
            DlaMaker m;
            auto* l = resize(m, mode, {1, 1, s, 2});
            if (s == 3.5F || s > most)
                EXPECT_TRUE(refuses(m, l, "whole numbers from 1 to")) << s;
            else
                EXPECT_TRUE(runs(m, l)) << s;
        }
    DlaMaker batch, channels, sizes;
    EXPECT_TRUE(refuses(batch, resize(batch, ResizeMode::kNEAREST, {2, 1, 2, 2}), "scale 2 of dimension 0"));
    EXPECT_TRUE(refuses(channels, resize(channels, ResizeMode::kNEAREST, {1, 2, 2, 2}), "scale 2 of dimension 1"));
    auto* l = sizes.network->addResize(*sizes.input("x", {1, 2, 3, 4}));
    l->setOutputDimensions(dims({1, 2, 6, 8}));
    EXPECT_TRUE(refuses(sizes, l, "4 scales"));
    using T = ResizeCoordinateTransformation;
    using R = ResizeRoundMode;
    for (T t : {T::kALIGN_CORNERS, T::kASYMMETRIC, T::kHALF_PIXEL})
        for (R r : {R::kHALF_UP, R::kHALF_DOWN, R::kFLOOR, R::kCEIL})
            for (auto s : {ResizeSelector::kFORMULA, ResizeSelector::kUPPER})
                for (auto mode : {ResizeMode::kNEAREST, ResizeMode::kLINEAR}) {
                    DlaMaker m;
                    auto* one = resize(m, mode, {1, 1, 2, 2});
                    one->setCoordinateTransformation(t);
                    one->setNearestRounding(r);
                    one->setSelectorForSinglePixel(s);
                    bool const halves = r == R::kHALF_UP || r == R::kHALF_DOWN;
                    bool const good = mode == ResizeMode::kLINEAR
                                          ? t == T::kHALF_PIXEL
                                          : s == ResizeSelector::kFORMULA && ((t == T::kASYMMETRIC && r == R::kFLOOR) ||
                                                                              (t == T::kHALF_PIXEL && halves));
                    EXPECT_EQ(m.canRun(one), good) << int(t) << int(r) << int(s) << int(mode) << m.reason();
                }
}

TEST(DlaLayerLimits, Unary)
{
    for (int o = 0; o < EnumMax<UnaryOperation>(); ++o) {
        auto const op = static_cast<UnaryOperation>(o);
        if (op == UnaryOperation::kNOT)
            continue;
        DlaMaker m;
        EXPECT_EQ(m.canRun(m.network->addUnary(*m.input("x", {1, 2, 3, 4}), op)), op == UnaryOperation::kABS) << o;
    }
}

ISliceLayer* slice(DlaMaker& m, std::vector<int> const& start, std::vector<int> const& size,
                   std::vector<int> const& stride)
{
    return m.network->addSlice(*m.input("x", std::vector<int>(start.size(), 8)), dims(start), dims(size), dims(stride));
}

TEST(DlaLayerLimits, Slice)
{
    DlaMaker whole, batch, size, stride, rank, mode, int8;
    EXPECT_TRUE(runs(whole, slice(whole, {0, 1, 2, 3}, {8, 2, 3, 4}, {1, 1, 1, 1})));
    EXPECT_TRUE(refuses(batch, slice(batch, {1, 0, 0, 0}, {7, 8, 8, 8}, {1, 1, 1, 1}), "first dimension"));
    EXPECT_TRUE(refuses(size, slice(size, {0, 0, 0, 0}, {7, 8, 8, 8}, {1, 1, 1, 1}), "first dimension"));
    EXPECT_TRUE(refuses(stride, slice(stride, {0, 0, 0, 0}, {8, 8, 8, 4}, {1, 1, 1, 2}), "stride 1x1x1x2"));
    EXPECT_TRUE(refuses(rank, slice(rank, {0, 0, 0, 0, 0}, {8, 8, 8, 8, 4}, {1, 1, 1, 1, 1}), "rank 5"));
    auto* l = slice(mode, {0, 0, 0, 0}, {8, 8, 8, 8}, {1, 1, 1, 1});
    l->setMode(SliceMode::kCLAMP);
    EXPECT_TRUE(refuses(mode, l, "another mode"));
    toInt8(int8);
    l = slice(int8, {0, 0, 0, 0}, {8, 8, 8, 4}, {1, 1, 1, 1});
    setRange(l->getInput(0), 1);
    setRange(l->getOutput(0), 1);
    EXPECT_TRUE(refuses(int8, l, "FP16 alone"));
    // Constants as inputs say the same; what is computed does not.
    static int32_t const starts[] = {0, 1, 0, 0}, wrong[] = {1, 0, 0, 0};
    for (int32_t const* values : {starts, wrong}) {
        DlaMaker m;
        l = slice(m, {0, 0, 0, 0}, {7, 7, 8, 4}, {1, 1, 1, 1});
        if (values == starts)
            l->setSize(dims({8, 7, 8, 4}));
        l->setInput(1, *m.network->addConstant(dims({4}), {DataType::kINT32, values, 4})->getOutput(0));
        EXPECT_EQ(m.canRun(l), values == starts) << m.reason();
    }
}

TEST(DlaLayerLimits, SoftMax)
{
    auto make = [](DlaMaker& m, std::vector<int> const& shape, uint32_t axes) {
        auto* l = m.network->addSoftMax(*m.input("x", shape));
        l->setAxes(axes);
        return l;
    };
    for (uint32_t axes : {2U, 4U, 8U}) {
        DlaMaker orin, xavier("xavier");
        EXPECT_TRUE(runs(orin, make(orin, {2, 3, 4, 5}, axes)));
        EXPECT_TRUE(refuses(xavier, make(xavier, {2, 3, 4, 5}, axes), "Xavier's DLA has no SoftMax"));
    }
    DlaMaker batch, exact, most, more, int8;
    EXPECT_TRUE(refuses(batch, make(batch, {2, 3, 4, 5}, 1), "axes 0x1"));
    EXPECT_TRUE(runs(exact, make(exact, {2, 8192, 1, 1}, 2)));
    EXPECT_TRUE(runs(most, make(most, {2, 1024, 2, 1}, 2)));
    EXPECT_TRUE(refuses(more, make(more, {2, 1025, 2, 1}, 2), "an axis of 1025"));
    toInt8(int8);
    auto* l = make(int8, {2, 3, 4, 5}, 2);
    setRange(l->getInput(0), 1);
    setRange(l->getOutput(0), 1);
    EXPECT_TRUE(refuses(int8, l, "FP16 alone"));
}

TEST(DlaLayerLimits, Shuffle)
{
    auto make = [](DlaMaker& m, std::vector<int> const& shape, std::vector<int> const& to,
                   Permutation first = {{0, 1, 2, 3}}, Permutation second = {{0, 1, 2, 3}}) {
        auto* l = m.network->addShuffle(*m.input("x", shape));
        l->setFirstTranspose(first);
        if (!to.empty())
            l->setReshapeDimensions(dims(to));
        l->setSecondTranspose(second);
        return l;
    };
    DlaMaker reshape, turn, first, second, batch, rank, large;
    EXPECT_TRUE(runs(reshape, make(reshape, {2, 3, 4, 5}, {2, 5, 12, 1})));
    EXPECT_TRUE(runs(turn, make(turn, {2, 3, 4, 5}, {}, {{0, 3, 1, 2}})));
    EXPECT_TRUE(refuses(first, make(first, {2, 3, 4, 5}, {}, {{1, 0, 2, 3}}), "the batch takes part"));
    EXPECT_TRUE(
        refuses(second, make(second, {2, 3, 4, 5}, {}, {{0, 1, 2, 3}}, {{1, 0, 2, 3}}), "the batch takes part"));
    EXPECT_TRUE(refuses(batch, make(batch, {2, 3, 4, 5}, {1, 6, 4, 5}), "the batch takes part"));
    EXPECT_TRUE(refuses(rank, make(rank, {2, 3, 4, 5}, {2, 12, 5}), "an output of rank 3"));
    EXPECT_TRUE(refuses(large, make(large, {1, 3, 4096, 1}, {1, 1, 12288, 1}), "height 12288"));
}

TEST(DlaLayerLimits, EverythingElse)
{
    DlaMaker m;
    ITensor* x = m.input("x", {1, 2, 4, 4});
    EXPECT_TRUE(refuses(m, m.network->addMatrixMultiply(*x, MatrixOperation::kNONE, *x, MatrixOperation::kNONE),
                        "no layers of type MatrixMultiply"));
    EXPECT_TRUE(refuses(m, m.network->addReduce(*x, ReduceOperation::kSUM, 2, true), "no layers of type Reduce"));
    EXPECT_TRUE(refuses(m, m.network->addPaddingNd(*x, DimsHW(1, 1), DimsHW(1, 1)), "no layers of type Padding"));
    // Constants are in nobody's way, and run nowhere.
    ILayer* c = m.network->addConstant(dims({1, 2, 1, 1}), m.weights(2));
    EXPECT_FALSE(m.canRun(c));
    EXPECT_EQ(m.reason(), "");
    ILayer* computed = m.network->addUnary(*c->getOutput(0), UnaryOperation::kEXP);
    EXPECT_FALSE(m.canRun(computed));
    EXPECT_EQ(m.reason(), "");
    EXPECT_TRUE(runs(m, m.network->addElementWise(*x, *computed->getOutput(0), ElementWiseOperation::kPROD)));
}

} // namespace
