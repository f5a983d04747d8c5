// SPDX-License-Identifier: Apache-2.0
// Sizes that data decide, several in one network and as outputs with IOutputAllocator; assertions in engines.
#include <cstdlib>

#include "engine/engines.h"

using namespace tw::test;

namespace {

// a = places of x that are not zero, b = those of relu(x), s = 2 * x at the places of b, k = number of b.
struct DataSizes : testing::Test
{
    Maker m;
    std::unique_ptr<ICudaEngine> engine;
    Context c;
    Output a, b, s, k;
    void SetUp() override
    {
        ITensor* x = m.input("x", {-1});
        INetworkDefinition& n = *m.network;
        m.output(n.addNonZero(*x)->getOutput(0), "a");
        ITensor* positive = n.addNonZero(*m.relu(x))->getOutput(0);
        IShuffleLayer* flat = n.addShuffle(*positive);
        flat->setReshapeDimensions(dims({-1}));
        ITensor* taken = n.addGather(*x, *flat->getOutput(0), 0)->getOutput(0);
        m.output(m.add(taken, taken), "s");
        m.output(n.addIdentity(*n.addShape(*positive)->getOutput(0))->getOutput(0), "k");
        m.output(positive, "b");
        m.profile({{"x", {0}, {5}, {8}}});
        engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        c = contextOf(*engine);
        for (auto& [name, to] : {std::pair{"a", &a}, {"b", &b}, {"s", &s}, {"k", &k}})
            ASSERT_TRUE(c->setOutputAllocator(name, to)) << name;
    }
    bool run(std::vector<float> x)
    {
        x.reserve(8); // an empty tensor has an address, too
        c->setTensorAddress("x", x.data());
        return c->setInputShape("x", dims({int32_t(x.size())})) && c->enqueueV3(nullptr);
    }
};

TEST_F(DataSizes, SeveralInOneNetwork)
{
    ASSERT_TRUE(run({0, -1, 2, 0, 3})) << m.errors();
    EXPECT_EQ(a.shape, (std::vector<int32_t>{1, 3}));
    EXPECT_EQ(a.integers(), (std::vector<int32_t>{1, 2, 4}));
    EXPECT_EQ(b.shape, (std::vector<int32_t>{1, 2}));
    EXPECT_EQ(b.integers(), (std::vector<int32_t>{2, 4}));
    EXPECT_EQ(s.shape, (std::vector<int32_t>{2}));
    EXPECT_EQ(s.floats(), (std::vector<float>{4, 6}));
    EXPECT_EQ(k.integers(), (std::vector<int32_t>{1, 2}));
}

// Of large outputs the builder compares samples, whose places mean nothing where data decide the size.
TEST(DataSizesOfMany, AreBuiltAndRight)
{
    for (int32_t count : {2100, 5000, 70000}) {
        Maker m;
        m.output(m.network->addNonZero(*m.input("x", {count, 2}))->getOutput(0), "y");
        auto const engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        std::vector<float> x(size_t(count) * 2, 0);
        std::vector<int32_t> rows, columns;
        for (int32_t i = 0; i < 2 * count; i += 3) {
            x[size_t(i)] = 1;
            rows.push_back(i / 2);
            columns.push_back(i % 2);
        }
        Output y;
        Context const c = contextOf(*engine);
        ASSERT_TRUE(c->setTensorAddress("x", x.data()) && c->setOutputAllocator("y", &y) && c->enqueueV3(nullptr));
        EXPECT_EQ(y.shape, (Shape{2, int32_t(rows.size())}));
        rows.insert(rows.end(), columns.begin(), columns.end());
        EXPECT_EQ(y.integers(), rows);
    }
}

TEST_F(DataSizes, RunAfterRun)
{
    for (std::vector<float> const& x : {std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, {0, 0}, {}, {-3}, {0, 9, 0}}) {
        ASSERT_TRUE(run(x)) << m.errors();
        std::vector<float> want;
        int32_t nonZero = 0;
        for (float v : x) {
            nonZero += v != 0;
            if (v > 0)
                want.push_back(2 * v);
        }
        EXPECT_EQ(a.shape, (std::vector<int32_t>{1, nonZero}));
        EXPECT_EQ(s.floats(), want);
    }
}

// Boxes of the input, those that stay, and how many: two outputs of one layer.
TEST(DataSizesOfBoxes, SuppressedAndGathered)
{
    Maker m;
    INetworkDefinition& n = *m.network;
    ITensor *boxes = m.input("boxes", {1, -1, 4}), *scores = m.input("scores", {1, -1, 1});
    int32_t const most = 10;
    ITensor* limit = n.addConstant(Dims{0, {}}, Weights{DataType::kINT32, &most, 1})->getOutput(0);
    INMSLayer* nms = n.addNMS(*boxes, *scores, *limit);
    m.output(nms->getOutput(0), "rows");
    m.output(nms->getOutput(1), "count");
    m.profile({{"boxes", {1, 0, 4}, {1, 3, 4}, {1, 50, 4}}, {"scores", {1, 0, 1}, {1, 3, 1}, {1, 50, 1}}});
    std::unique_ptr<ICudaEngine> engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    EXPECT_EQ(list(engine->getTensorShape("rows")), (std::vector<int32_t>{-1, 3}));
    Context c = contextOf(*engine);
    Output rows;
    int32_t count = -1;
    std::vector<float> b{0, 0, 1, 1, 0, 0, 1, 1, 5, 5, 6, 6}, s{0.2F, 0.3F, 0.1F};
    ASSERT_TRUE(c->setOutputAllocator("rows", &rows));
    c->setTensorAddress("count", &count);
    c->setTensorAddress("boxes", b.data());
    c->setTensorAddress("scores", s.data());
    c->setInputShape("boxes", dims({1, 3, 4}));
    c->setInputShape("scores", dims({1, 3, 1}));
    ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
    EXPECT_EQ(count, 2);
    EXPECT_EQ(rows.integers(), (std::vector<int32_t>{0, 0, 1, 0, 0, 2}));
}

// An assertion is decided when shapes are set, and so is what it is computed of; constants behind a dequantize layer are not
// folded before.
TEST(DataSizesOfConstants, KnownWhenShapesAreSet)
{
    Maker m;
    INetworkDefinition& n = *m.network;
    float const numbers[] = {0.25F, 3, -5, 0.4F}, one = 1, most = 10;
    ITensor* x = n.addConstant(dims({4}), Weights{DataType::kFLOAT, numbers, 4})->getOutput(0);
    ITensor* scale = n.addConstant(Dims{0, {}}, Weights{DataType::kFLOAT, &one, 1})->getOutput(0);
    ITensor* limit = n.addConstant(Dims{0, {}}, Weights{DataType::kFLOAT, &most, 1})->getOutput(0);
    ITensor* rounded = n.addDequantize(*n.addQuantize(*x, *scale)->getOutput(0), *scale)->getOutput(0);
    IIdentityLayer* places = n.addIdentity(*n.addNonZero(*rounded)->getOutput(0));
    places->setOutputType(0, DataType::kFLOAT);
    ITensor* total = n.addReduce(*places->getOutput(0), ReduceOperation::kSUM, 3, false)->getOutput(0);
    ITensor* holds = n.addElementWise(*total, *limit, ElementWiseOperation::kLESS)->getOutput(0);
    ASSERT_TRUE(n.addAssertion(*holds, "the sum is small"));
    m.output(m.relu(places->getOutput(0)), "y");
    m.config->setFlag(BuilderFlag::kINT8);
    std::unique_ptr<ICudaEngine> engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Context c = contextOf(*engine);
    Output y;
    ASSERT_TRUE(c->setOutputAllocator("y", &y));
    ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
    EXPECT_EQ(y.shape, (std::vector<int32_t>{1, 2}));
    EXPECT_EQ(y.floats(), (std::vector<float>{1, 2}));
}

// An assertion that x has two rows; y = relu(x).
struct AssertionInEngine : testing::Test
{
    Maker m;
    void make(std::vector<int32_t> const& shape)
    {
        INetworkDefinition& n = *m.network;
        static int32_t const two = 2;
        ITensor* x = m.input("x", shape);
        ITensor* rows = n.addSlice(*n.addShape(*x)->getOutput(0), dims({0}), dims({1}), dims({1}))->getOutput(0);
        ITensor* number = n.addConstant(dims({1}), Weights{DataType::kINT32, &two, 1})->getOutput(0);
        ITensor* isTwo = n.addElementWise(*rows, *number, ElementWiseOperation::kEQUAL)->getOutput(0);
        n.addAssertion(*isTwo, "x has two rows")->setName("rows of x");
        m.output(m.relu(x), "y");
    }
};

TEST_F(AssertionInEngine, FailsTheRunAndNamesItself)
{
    make({-1, 3});
    m.profile({{"x", {1, 3}, {2, 3}, {2, 3}}});
    std::unique_ptr<ICudaEngine> engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Context c = contextOf(*engine);
    std::vector<float> x = ramp(9, -2), y(9);
    c->setTensorAddress("x", x.data());
    c->setTensorAddress("y", y.data());
    ASSERT_TRUE(c->setInputShape("x", dims({2, 3})));
    EXPECT_TRUE(c->enqueueV3(nullptr)) << m.errors();
    EXPECT_EQ(y[5], 3);
    EXPECT_EQ(m.takeErrors(), "");
    c->setInputShape("x", dims({1, 3}));
    EXPECT_FALSE(c->enqueueV3(nullptr));
    std::string const errors = m.takeErrors();
    EXPECT_TRUE(contains(errors, "rows of x")) << errors;
    EXPECT_TRUE(contains(errors, "'x has two rows' does not hold")) << errors;
    c->setInputShape("x", dims({2, 3}));
    EXPECT_TRUE(c->enqueueV3(nullptr)) << m.errors();
}

TEST_F(AssertionInEngine, HasALineInReports)
{
    make({-1, 3});
    m.profile({{"x", {1, 3}, {2, 3}, {2, 3}}});
    m.config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    std::unique_ptr<ICudaEngine> engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    std::unique_ptr<IEngineInspector> inspector(engine->createEngineInspector());
    std::string const all = inspector->getEngineInformation(LayerInformationFormat::kJSON);
    EXPECT_TRUE(contains(all, "rows of x")) << all;
}

TEST_F(AssertionInEngine, FailsTheBuildWhereItCannotHold)
{
    make({3, 3});
    EXPECT_FALSE(m.engine());
    std::string const errors = m.takeErrors();
    EXPECT_TRUE(contains(errors, "rows of x")) << errors;
    EXPECT_TRUE(contains(errors, "'x has two rows' does not hold")) << errors;
}

TEST_F(AssertionInEngine, OfAConditionThatDataDecide)
{
    INetworkDefinition& n = *m.network;
    static int32_t const three = 3;
    ITensor* x = m.input("x", {4});
    ITensor* found = n.addShape(*n.addNonZero(*x)->getOutput(0))->getOutput(0);
    ITensor* count = n.addSlice(*found, dims({1}), dims({1}), dims({1}))->getOutput(0);
    ITensor* number = n.addConstant(dims({1}), Weights{DataType::kINT32, &three, 1})->getOutput(0);
    n.addAssertion(*n.addElementWise(*count, *number, ElementWiseOperation::kLESS)->getOutput(0), "few")
        ->setName("at most two");
    m.output(m.relu(x), "y");
    std::unique_ptr<ICudaEngine> engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Context c = contextOf(*engine);
    std::vector<float> x0{0, 1, 2, 0}, x1{1, 1, 2, 0}, y(4);
    c->setTensorAddress("y", y.data());
    c->setTensorAddress("x", x0.data());
    EXPECT_TRUE(c->enqueueV3(nullptr)) << m.errors();
    c->setTensorAddress("x", x1.data());
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_TRUE(contains(m.takeErrors(), "at most two"));
}

} // namespace
