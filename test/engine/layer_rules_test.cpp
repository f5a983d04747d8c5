// SPDX-License-Identifier: Apache-2.0
// Formulas of the API through engines, on tensors of every rank: activations, products of vectors and matrices, cubic
// resizes, means of element-wise layers over two types; and which tensors may be inputs and outputs.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/engines.h"

using namespace tw::test;

namespace {

// What an engine of the network gives for its inputs, by name, in FP32; none after an error.
std::vector<float> runNetwork(Maker& m, std::vector<std::pair<char const*, std::vector<float>>> inputs,
                              Shape* shape = nullptr)
{
    auto const engine = m.engine();
    EXPECT_TRUE(engine) << m.errors();
    if (!engine)
        return {};
    Context const c = contextOf(*engine);
    for (auto& [name, values] : inputs) {
        values.reserve(1); // an empty tensor has an address, too
        c->setTensorAddress(name, values.data());
    }
    Shape const out = list(c->getTensorShape("y"));
    if (shape)
        *shape = out;
    std::vector<float> y(size_t(volume(out)) + 1, -777);
    c->setTensorAddress("y", y.data());
    EXPECT_TRUE(c->enqueueV3(nullptr)) << m.errors();
    EXPECT_EQ(y.back(), -777);
    y.pop_back();
    return y;
}

double activated(ActivationType type, double x, double alpha, double beta)
{
    switch (type) {
    case ActivationType::kRELU:
        return std::max(0.0, x);
    case ActivationType::kSIGMOID:
        return 1 / (1 + std::exp(-x));
    case ActivationType::kTANH:
        return std::tanh(x);
    case ActivationType::kLEAKY_RELU:
        return x >= 0 ? x : alpha * x;
    case ActivationType::kELU:
        return x >= 0 ? x : alpha * (std::exp(x) - 1);
    case ActivationType::kSELU:
        return x > 0 ? beta * x : beta * (alpha * std::exp(x) - alpha);
    case ActivationType::kSOFTSIGN:
        return x / (1 + std::abs(x));
    case ActivationType::kSOFTPLUS:
        return alpha * std::log(std::exp(beta * x) + 1);
    case ActivationType::kCLIP:
        return std::max(alpha, std::min(beta, x));
    case ActivationType::kHARD_SIGMOID:
        return std::max(0.0, std::min(1.0, alpha * x + beta));
    case ActivationType::kSCALED_TANH:
        return alpha * std::tanh(beta * x);
    case ActivationType::kTHRESHOLDED_RELU:
        return x > alpha ? x : 0;
    }
    return std::nan("");
}

TEST(LayerRules, ActivationsOfEveryKindAndRank)
{
    std::vector<Shape> const shapes{
        {}, {1}, {0}, {17}, {3, 5}, {2, 0, 3}, {1, 2, 3, 4}, {2, 1, 1, 3, 1, 2, 3}, {1, 1, 2, 1, 1, 2, 1, 9}};
    std::vector<std::pair<float, float>> const parameters{{0.25F, 2}, {-0.5F, 0.75F}, {1.5F, -0.5F}};
    size_t turn = 0;
    for (int kind = 0; kind < EnumMax<ActivationType>(); ++kind)
        for (auto const& [alpha, beta] : parameters) {
            Shape const& shape = shapes[turn++ % shapes.size()];
            auto const type = static_cast<ActivationType>(kind);
            SCOPED_TRACE("kind " + std::to_string(kind) + ", alpha " + std::to_string(alpha) + ", rank " +
                         std::to_string(shape.size()));
            Maker m;
            IActivationLayer* l = m.network->addActivation(*m.input("x", shape), type);
            l->setAlpha(alpha);
            l->setBeta(beta);
            m.output(l->getOutput(0), "y");
            std::vector<float> x(size_t(volume(shape)));
            for (size_t i = 0; i < x.size(); ++i)
                x[i] = i % 7 == 3 ? 0.0F : float(5 * std::sin(double(i) + 0.5));
            std::vector<float> const y = runNetwork(m, {{"x", x}});
            ASSERT_EQ(y.size(), x.size());
            for (size_t i = 0; i < x.size(); ++i)
                EXPECT_NEAR(y[i], activated(type, x[i], alpha, beta), 2e-5) << x[i];
        }
}

// Matrices, transposed ones and vectors on either side, with collections that are broadcast.
TEST(LayerRules, ProductsOfVectorsAndMatrices)
{
    using enum MatrixOperation;
    constexpr int32_t kM = 3, kN = 4, kK = 5;
    for (Shape const& left : std::vector<Shape>{{}, {2}, {1}, {2, 3}, {1, 3}})
        for (auto const of : {kNONE, kTRANSPOSE, kVECTOR})
            for (auto const with : {kNONE, kTRANSPOSE, kVECTOR}) {
                Shape right = left; // as many collection dimensions, some of them broadcast
                if (!right.empty())
                    right.front() = right.front() == 1 ? 2 : 1;
                Shape a = left, b = right, want;
                for (size_t d = 0; d < left.size(); ++d)
                    want.push_back(std::max(left[d], right[d]));
                int32_t const rows = of == kVECTOR ? 1 : kM, columns = with == kVECTOR ? 1 : kN;
                for (int32_t d : of == kVECTOR ? Shape{kK} : of == kNONE ? Shape{kM, kK} : Shape{kK, kM})
                    a.push_back(d);
                for (int32_t d : with == kVECTOR ? Shape{kK} : with == kNONE ? Shape{kK, kN} : Shape{kN, kK})
                    b.push_back(d);
                if (of != kVECTOR)
                    want.push_back(kM);
                if (with != kVECTOR)
                    want.push_back(kN);
                SCOPED_TRACE(std::to_string(int(of)) + " by " + std::to_string(int(with)) + ", rank " +
                             std::to_string(left.size()));
                Maker m;
                m.output(m.network->addMatrixMultiply(*m.input("a", a), of, *m.input("b", b), with)->getOutput(0), "y");
                std::vector<float> p = ramp(size_t(volume(a)), -7), q = ramp(size_t(volume(b)), -11);
                Shape shape;
                std::vector<float> const y = runNetwork(m, {{"a", p}, {"b", q}}, &shape);
                ASSERT_EQ(shape, want);
                int64_t const matrices = volume({want.begin(), want.begin() + ptrdiff_t(left.size())});
                auto place = [&](Shape const& collection, int64_t i, int64_t size) {
                    int64_t at = 0, step = 1;
                    for (size_t d = collection.size(); d-- > 0;) {
                        int64_t const here = i % want[d];
                        i /= want[d];
                        at += (collection[d] == 1 ? 0 : here) * step;
                        step *= collection[d];
                    }
                    return size_t(at * size);
                };
                for (int64_t i = 0; i < matrices; ++i)
                    for (int32_t r = 0; r < rows; ++r)
                        for (int32_t c = 0; c < columns; ++c) {
                            double sum = 0;
                            for (int32_t k = 0; k < kK; ++k)
                                sum += double(p[place(left, i, rows * kK) +
                                                size_t(of == kTRANSPOSE ? k * kM + r : r * kK + k)]) *
                                       q[place(right, i, kK * columns) +
                                         size_t(with == kTRANSPOSE ? c * kK + k : k * columns + c)];
                            EXPECT_NEAR(y[size_t((i * rows + r) * columns + c)], sum, 1e-3);
                        }
            }
}

double cubic(double x, double a)
{
    x = std::abs(x);
    if (x <= 1)
        return (a + 2) * x * x * x - (a + 3) * x * x + 1;
    return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

TEST(LayerRules, CubicResizes)
{
    constexpr int kIn = 5, kOut = 9;
    for (float a : {-0.75F, -0.5F, 0.25F})
        for (bool exclude : {false, true})
            for (auto where :
                 {ResizeCoordinateTransformation::kALIGN_CORNERS, ResizeCoordinateTransformation::kASYMMETRIC,
                  ResizeCoordinateTransformation::kHALF_PIXEL}) {
                Maker m;
                IResizeLayer* l = m.network->addResize(*m.input("x", {1, 1, 3, kIn}));
                l->setOutputDimensions(Dims4(1, 1, 3, kOut));
                l->setResizeMode(ResizeMode::kCUBIC);
                l->setCubicCoeff(a);
                l->setExcludeOutside(exclude);
                l->setCoordinateTransformation(where);
                m.output(l->getOutput(0), "y");
                std::vector<float> const x{3, -1, 4, 1, -5, 9, 2, 6, -5, 3, 5, 8, -9, 7, 9};
                std::vector<float> const y = runNetwork(m, {{"x", x}});
                ASSERT_EQ(y.size(), size_t(3 * kOut));
                for (int r = 0; r < 3; ++r)
                    for (int o = 0; o < kOut; ++o) {
                        double const at =
                            where == ResizeCoordinateTransformation::kALIGN_CORNERS ? double(o) * (kIn - 1) / (kOut - 1)
                            : where == ResizeCoordinateTransformation::kASYMMETRIC  ? double(o) * kIn / kOut
                                                                                    : (o + 0.5) * kIn / kOut - 0.5;
                        int const first = int(std::floor(at)) - 1;
                        double sum = 0, factors = 0;
                        for (int i = first; i < first + 4; ++i) {
                            double const f = exclude && (i < 0 || i >= kIn) ? 0 : cubic(at - i, a);
                            factors += f;
                            sum += f * x[size_t(r * kIn + std::clamp(i, 0, kIn - 1))];
                        }
                        EXPECT_NEAR(y[size_t(r * kOut + o)], sum / factors, 2e-4)
                            << "coefficient " << a << ", mode " << int(where) << ", place " << o;
                    }
            }
}

// FP32 and FP16 may meet in one element-wise layer.
TEST(LayerRules, ElementWiseOfTwoTypes)
{
    for (bool swapped : {false, true}) {
        Maker m;
        ITensor* x = m.input("x", {3});
        IIdentityLayer* half = m.network->addIdentity(*x);
        half->setOutputType(0, DataType::kHALF);
        ITensor *a = half->getOutput(0), *b = m.input("b", {3});
        if (swapped)
            std::swap(a, b);
        IIdentityLayer* y = m.network->addIdentity(*m.add(a, b));
        y->setOutputType(0, DataType::kFLOAT);
        m.output(y->getOutput(0), "y");
        EXPECT_EQ(runNetwork(m, {{"x", {1, -2, 0.5F}}, {"b", {4, 8, 16}}}), (std::vector<float>{5, 6, 16.5F}));
    }
}

// A constant with a wildcard takes what its weights leave; the network knows the size.
TEST(LayerRules, ConstantsWithAWildcard)
{
    Maker m;
    std::vector<float> const numbers = ramp(6, 1);
    IConstantLayer* c = m.network->addConstant(Dims2(-1, 3), {DataType::kFLOAT, numbers.data(), 6});
    ASSERT_TRUE(c) << m.errors();
    m.output(m.add(c->getOutput(0), m.input("x", {2, 3})), "y");
    EXPECT_EQ(runNetwork(m, {{"x", std::vector<float>(6, 10)}}), ramp(6, 11));
}

// The size of a tensor of the whole network may be what another engine's shape tensor says.
TEST(ComposedEngines, HandAShapeOn)
{
    Maker a, b;
    // a: twice the number of rows of x, and the other dimension; b: x in that shape.
    ITensor* x = a.input("x", {-1, 6});
    static int32_t const factors[] = {2, 1}, divisors[] = {1, 2};
    auto pair = [&](int32_t const* v) {
        return a.network->addConstant(dims({2}), {DataType::kINT32, v, 2})->getOutput(0);
    };
    ITensor* shape = a.network->addShape(*x)->getOutput(0);
    ITensor* more = a.network->addElementWise(*shape, *pair(factors), ElementWiseOperation::kPROD)->getOutput(0);
    ITensor* new_ = a.network->addElementWise(*more, *pair(divisors), ElementWiseOperation::kFLOOR_DIV)->getOutput(0);
    new_->setName("shape");
    ASSERT_TRUE(a.network->markOutputForShapes(*new_)) << a.errors();
    a.output(a.relu(x), "y");
    a.profile({{"x", {0, 6}, {2, 6}, {4, 6}}});
    IShuffleLayer* l = b.network->addShuffle(*b.input("x", {-1, 6}));
    l->setInput(1, *b.input("shape", {2}, DataType::kINT32));
    l->setZeroIsPlaceholder(false);
    b.output(l->getOutput(0), "z");
    b.profile({{"x", {0, 6}, {2, 6}, {4, 6}}}, {{"shape", {0, 3}, {4, 3}, {8, 3}}});
    auto const first = a.engine(), second = b.engine();
    ASSERT_TRUE(first && second) << a.errors() << b.errors();
    EXPECT_TRUE(first->isShapeInferenceIO("shape") && second->isShapeInferenceIO("shape"));
    Context const p = contextOf(*first), q = contextOf(*second);
    for (int32_t rows : {2, 4, 0, 1}) {
        std::vector<float> in = ramp(size_t(rows) * 6 + 1, -3), between(in.size(), -7), out(in.size(), -7);
        Shape sizes(2, -7);
        ASSERT_TRUE(p->setInputShape("x", Dims2(rows, 6)) && q->setInputShape("x", Dims2(rows, 6)));
        p->setTensorAddress("x", in.data());
        p->setTensorAddress("y", between.data());
        p->setTensorAddress("shape", sizes.data());
        q->setTensorAddress("x", between.data());
        q->setTensorAddress("shape", sizes.data());
        q->setTensorAddress("z", out.data());
        ASSERT_TRUE(p->enqueueV3(nullptr)) << a.errors();
        EXPECT_EQ(sizes, (Shape{2 * rows, 3}));
        EXPECT_EQ(list(q->getTensorShape("z")), (Shape{2 * rows, 3}));
        ASSERT_TRUE(q->enqueueV3(nullptr)) << b.errors();
        for (size_t i = 0; i + 1 < in.size(); ++i)
            EXPECT_EQ(out[i], std::max(in[i], 0.0F));
        EXPECT_EQ(out.back(), -7);
    }
}

// What markOutputForShapes takes: INT32, of one dimension at most, of a known size.
TEST(ShapeOutputs, AreSmallIntegers)
{
    Maker m;
    ITensor* x = m.input("x", {-1, 3});
    ITensor* shape = m.network->addShape(*x)->getOutput(0);
    EXPECT_FALSE(m.network->markOutputForShapes(*m.relu(x)));
    EXPECT_NE(m.takeErrors(), "");
    IShuffleLayer* matrix = m.network->addShuffle(*shape);
    matrix->setReshapeDimensions(Dims2(1, 2));
    EXPECT_FALSE(m.network->markOutputForShapes(*matrix->getOutput(0)));
    EXPECT_NE(m.takeErrors(), "");
    ASSERT_TRUE(m.network->markOutputForShapes(*shape)) << m.errors();
    EXPECT_TRUE(m.network->unmarkOutputForShapes(*shape));
    EXPECT_FALSE(m.network->unmarkOutputForShapes(*shape)) << "it is none";
    m.takeErrors();
    EXPECT_EQ(m.network->getNbOutputs(), 0);
    ASSERT_TRUE(m.network->markOutputForShapes(*shape));
    EXPECT_EQ(m.network->getNbOutputs(), 1);
}

} // namespace
