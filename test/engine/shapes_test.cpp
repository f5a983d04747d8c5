// SPDX-License-Identifier: Apache-2.0
// Dynamic shapes: profiles, dimensions before and after they are set, shape tensors as inputs and outputs.
#include "engine/engines.h"

using namespace tw::test;

namespace {

// y = matmul(a, b): a [batch, length, 4], b [batch, 4, length]; batch and length are named, y is [batch, length,
// length].
struct BatchAndLength : testing::Test
{
    Maker m;
    std::unique_ptr<ICudaEngine> engine;
    void SetUp() override
    {
        ITensor* a = m.input("a", {-1, -1, 4});
        ITensor* b = m.input("b", {-1, 4, -1});
        a->setDimensionName(0, "batch");
        b->setDimensionName(0, "batch");
        a->setDimensionName(1, "length");
        b->setDimensionName(2, "length");
        m.output(m.network->addMatrixMultiply(*a, MatrixOperation::kNONE, *b, MatrixOperation::kNONE)->getOutput(0),
                 "y");
        for (int k : {0, 1})
            m.profile({{"a", {1, 1 + k, 4}, {2, 3, 4}, {4, 8 + k, 4}}, {"b", {1, 4, 1 + k}, {2, 4, 3}, {4, 4, 8 + k}}});
        engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
    }
};

TEST_F(BatchAndLength, ManyShapesInOneContext)
{
    Context c = contextOf(*engine);
    EXPECT_EQ(c->getOptimizationProfile(), 0);
    EXPECT_FALSE(c->allInputDimensionsSpecified());
    EXPECT_EQ(list(c->getTensorShape("a")), (Shape{-1, -1, 4}));
    EXPECT_EQ(list(c->getTensorShape("y")), (Shape{-1, -1, -1}));
    char const* missing[2] = {};
    EXPECT_EQ(c->inferShapes(2, missing), 2);
    EXPECT_STREQ(missing[0], "a");
    EXPECT_STREQ(missing[1], "b");
    missing[1] = nullptr;
    EXPECT_EQ(c->inferShapes(1, missing), 2);
    EXPECT_EQ(missing[1], nullptr);
    EXPECT_EQ(c->inferShapes(0, nullptr), 2);
    EXPECT_EQ(m.takeErrors(), "");
    EXPECT_EQ(c->inferShapes(1, nullptr), -1);
    EXPECT_TRUE(m.oneError("inferShapes"));
    EXPECT_EQ(c->inferShapes(-1, missing), -1);
    EXPECT_TRUE(m.oneError("inferShapes"));
    EXPECT_EQ(c->getMaxOutputSize("y"), -1);
    EXPECT_FALSE(c->enqueueV3(nullptr));
    m.takeErrors();
    for (int round = 0; round < 3; ++round) {
        for (int batch = 1; batch <= 4; ++batch) {
            for (int length = 1; length <= 8; ++length) {
                ASSERT_TRUE(c->setInputShape("a", Dims3(batch, length, 4)));
                ASSERT_TRUE(c->setInputShape("b", Dims3(batch, 4, length)));
                EXPECT_TRUE(c->allInputDimensionsSpecified());
                ASSERT_EQ(c->inferShapes(0, nullptr), 0);
                ASSERT_EQ(list(c->getTensorShape("y")), (Shape{batch, length, length}));
                EXPECT_EQ(list(c->getTensorStrides("y")), (Shape{length * length, length, 1}));
                size_t const n = size_t(batch * length), outputs = n * size_t(length);
                ASSERT_EQ(c->getMaxOutputSize("y"), int64_t(outputs) * 4);
                std::vector<float> a = ramp(n * 4), b = ramp(n * 4, 1), y(outputs + 1, -7);
                c->setTensorAddress("a", a.data());
                c->setTensorAddress("b", b.data());
                c->setTensorAddress("y", y.data());
                ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
                for (int i = 0; i < batch; ++i)
                    for (int r = 0; r < length; ++r)
                        for (int s = 0; s < length; ++s) {
                            double sum = 0;
                            for (int k = 0; k < 4; ++k)
                                sum += double(a[size_t((i * length + r) * 4 + k)]) *
                                       double(b[size_t((i * 4 + k) * length + s)]);
                            ASSERT_NEAR(y[size_t((i * length + r) * length + s)], sum, 1e-5 * sum);
                        }
                ASSERT_EQ(y.back(), -7);
            }
        }
    }
    EXPECT_EQ(m.errors(), "");
}

TEST_F(BatchAndLength, OutOfRange)
{
    Context c = contextOf(*engine);
    EXPECT_FALSE(c->setInputShape("a", Dims3(5, 3, 4)));
    EXPECT_TRUE(m.oneError("outside 1..4 of optimization profile 0"));
    EXPECT_FALSE(c->setInputShape("a", Dims3(1, 0, 4)));
    EXPECT_TRUE(m.oneError("dimension 1 (length) is 0"));
    EXPECT_FALSE(c->setInputShape("a", Dims3(1, 3, 5)));
    EXPECT_TRUE(m.oneError("dimension 2"));
    EXPECT_FALSE(c->setInputShape("a", Dims2(1, 3)));
    EXPECT_TRUE(m.oneError("2 dimensions"));
    EXPECT_FALSE(c->setInputShape("a", Dims3(1, -1, 4)));
    EXPECT_TRUE(m.oneError("must not be negative"));
    Dims bad{};
    bad.nbDims = 9;
    EXPECT_FALSE(c->setInputShape("a", bad));
    EXPECT_TRUE(m.oneError("nbDims 9"));
    bad.nbDims = -1;
    EXPECT_FALSE(c->setInputShape("a", bad));
    EXPECT_TRUE(m.oneError("nbDims -1"));
    EXPECT_FALSE(c->setInputShape("y", Dims3(1, 1, 1)));
    EXPECT_TRUE(m.oneError("'y' is no input"));
    EXPECT_FALSE(c->setInputShape("nobody", Dims3(1, 1, 1)));
    EXPECT_TRUE(m.oneError("nobody"));
    EXPECT_FALSE(c->setBindingDimensions(0, Dims3(9, 1, 4)));
    EXPECT_TRUE(m.oneError("dimension 0 (batch) is 9"));
    EXPECT_FALSE(c->setBindingDimensions(6, Dims3(1, 1, 4)));
    EXPECT_TRUE(m.oneError("binding index 6"));
    EXPECT_FALSE(c->setBindingDimensions(-1, Dims3(1, 1, 4)));
    EXPECT_TRUE(m.oneError("binding index -1"));
    // What was refused changed nothing.
    ASSERT_TRUE(c->setInputShape("a", Dims3(1, 2, 4)));
    EXPECT_FALSE(c->setInputShape("a", Dims3(1, 20, 4)));
    EXPECT_EQ(list(c->getTensorShape("a")), (Shape{1, 2, 4}));
}

TEST_F(BatchAndLength, EqualNamesAreEqualSizes)
{
    Context c = contextOf(*engine);
    ASSERT_TRUE(c->setInputShape("a", Dims3(1, 2, 4)));
    ASSERT_TRUE(c->setInputShape("b", Dims3(1, 4, 3)));
    m.takeErrors();
    EXPECT_EQ(c->getTensorShape("y").nbDims, -1);
    EXPECT_TRUE(m.oneError("'length' is 3"));
    EXPECT_EQ(c->getBindingDimensions(2).nbDims, -1);
    EXPECT_TRUE(m.oneError("'length' is 3"));
    EXPECT_EQ(c->inferShapes(0, nullptr), -1);
    EXPECT_TRUE(m.oneError("'length' is 3"));
    std::vector<float> v(1000);
    c->setTensorAddress("a", v.data());
    c->setTensorAddress("b", v.data());
    c->setTensorAddress("y", v.data() + 500);
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_TRUE(m.oneError("'length' is 3"));
    ASSERT_TRUE(c->setInputShape("b", Dims3(1, 4, 2)));
    EXPECT_TRUE(c->enqueueV3(nullptr)) << "usable again";
}

TEST_F(BatchAndLength, OneContextForEachProfile)
{
    Context first = contextOf(*engine), second = contextOf(*engine);
    EXPECT_EQ(first->getOptimizationProfile(), 0);
    EXPECT_EQ(second->getOptimizationProfile(), -1);
    EXPECT_FALSE(second->setInputShape("a", Dims3(1, 2, 4)));
    EXPECT_TRUE(m.oneError("optimization profile"));
    EXPECT_FALSE(second->setOptimizationProfileAsync(0, nullptr));
    EXPECT_TRUE(m.oneError("profile 0 is in use"));
    EXPECT_FALSE(second->setOptimizationProfileAsync(2, nullptr));
    EXPECT_TRUE(m.oneError("profile 2 does not exist"));
    EXPECT_FALSE(second->setOptimizationProfileAsync(-1, nullptr));
    EXPECT_TRUE(m.oneError("profile -1 does not exist"));
    EXPECT_TRUE(second->setOptimizationProfileAsync(1, nullptr));
    EXPECT_EQ(second->getOptimizationProfile(), 1);
    EXPECT_TRUE(second->setInputShape("a", Dims3(1, 9, 4)));
    EXPECT_FALSE(second->setInputShape("a", Dims3(1, 1, 4)));
    EXPECT_TRUE(m.oneError("optimization profile 1"));
    // A profile that its context left is free again, and the shapes of the old profile are forgotten.
    first.reset();
    EXPECT_TRUE(second->setOptimizationProfile(0));
    EXPECT_EQ(list(second->getTensorShape("a")), (Shape{-1, -1, 4}));
    Context third = contextOf(*engine);
    EXPECT_EQ(third->getOptimizationProfile(), -1);
    EXPECT_TRUE(third->setOptimizationProfileAsync(1, nullptr));
    second.reset();
    third.reset();
    Context again = contextOf(*engine);
    EXPECT_EQ(again->getOptimizationProfile(), 0) << "alone again";
}

TEST_F(BatchAndLength, BindingsOfOtherProfiles)
{
    Context first = contextOf(*engine), c = contextOf(*engine);
    ASSERT_TRUE(c->setOptimizationProfileAsync(1, nullptr));
    ASSERT_TRUE(c->setBindingDimensions(3, Dims3(1, 2, 4)));
    EXPECT_EQ(m.logger.warnings(), 0);
    m.logger.lines.clear();
    ASSERT_TRUE(c->setBindingDimensions(1, Dims3(1, 4, 2))) << "profile 0's index is corrected";
    EXPECT_EQ(m.logger.warnings(), 1);
    EXPECT_EQ(list(c->getBindingDimensions(4)), (Shape{1, 4, 2}));
    EXPECT_EQ(list(c->getBindingDimensions(5)), (Shape{1, 2, 2}));
    EXPECT_EQ(list(c->getStrides(5)), (Shape{4, 2, 1}));
    EXPECT_EQ(m.takeErrors(), "");
    EXPECT_FALSE(first->setBindingDimensions(3, Dims3(1, 2, 4)));
    EXPECT_TRUE(m.oneError("belongs to optimization profile 1"));
    std::vector<float> a = ramp(8), b = ramp(8), y(4, -1);
    void* bindings[] = {nullptr, nullptr, nullptr, a.data(), b.data(), y.data()};
    EXPECT_TRUE(c->executeV2(bindings)) << m.errors();
    EXPECT_EQ(y[0], 0 * 0 + 1 * 2 + 2 * 4 + 3 * 6);
    y.assign(4, -1);
    void* atZero[] = {a.data(), b.data(), y.data(), nullptr, nullptr, nullptr};
    m.logger.lines.clear();
    EXPECT_TRUE(c->executeV2(atZero)) << m.errors();
    EXPECT_GE(m.logger.warnings(), 1);
    EXPECT_EQ(y[0], 28);
}

// z = the corner of x of size s; n = twice the size of x's first dimension and sum = s + that size as shape outputs.
struct ShapeTensors : testing::Test
{
    Maker m;
    std::unique_ptr<ICudaEngine> engine;
    int32_t two = 2, zero = 0;
    void SetUp() override
    {
        ITensor* x = m.input("x", {-1, 6});
        ITensor* s = m.input("s", {2}, DataType::kINT32);
        ISliceLayer* corner = m.network->addSlice(*x, Dims2(0, 0), Dims2(1, 1), Dims2(1, 1));
        corner->setInput(2, *s);
        m.output(corner->getOutput(0), "z");
        ITensor* shape = m.network->addShape(*x)->getOutput(0);
        Dims one = dims({1});
        ITensor* twice = m.network->addConstant(one, {DataType::kINT32, &two, 1})->getOutput(0);
        ITensor* at = m.network->addConstant(one, {DataType::kINT32, &zero, 1})->getOutput(0);
        ITensor* first = m.network->addGather(*shape, *at, 0)->getOutput(0);
        ITensor* n = m.network->addElementWise(*first, *twice, ElementWiseOperation::kPROD)->getOutput(0);
        n->setName("n");
        EXPECT_TRUE(s->isShapeTensor());
        ASSERT_TRUE(m.network->markOutputForShapes(*n)) << m.errors();
        EXPECT_TRUE(n->isShapeTensor());
        EXPECT_TRUE(first->isShapeTensor()) << "a shape output is computed from it";
        ITensor* sum = m.network->addElementWise(*s, *first, ElementWiseOperation::kSUM)->getOutput(0);
        sum->setName("sum");
        ASSERT_TRUE(m.network->markOutputForShapes(*sum)) << m.errors();
        m.profile({{"x", {1, 6}, {2, 6}, {4, 6}}}, {{"s", {1, 1}, {2, 3}, {4, 6}}});
        engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
    }
};

TEST_F(ShapeTensors, ByName)
{
    EXPECT_TRUE(engine->isShapeInferenceIO("n"));
    EXPECT_EQ(engine->getTensorLocation("n"), TensorLocation::kHOST);
    Context c = contextOf(*engine);
    std::vector<float> x = ramp(24), z(24, -1);
    std::vector<int32_t> s{2, 4}, n{-1, -1}, sum{-1, -1};
    char const* missing[4] = {};
    EXPECT_EQ(c->inferShapes(4, missing), 2);
    EXPECT_STREQ(missing[0], "x");
    EXPECT_STREQ(missing[1], "s");
    ASSERT_TRUE(c->setInputShape("x", Dims2(2, 6)));
    EXPECT_TRUE(c->allInputDimensionsSpecified());
    EXPECT_FALSE(c->allInputShapesSpecified());
    EXPECT_EQ(c->inferShapes(4, missing), 1);
    EXPECT_STREQ(missing[0], "s");
    EXPECT_EQ(list(c->getTensorShape("z")), (Shape{-1, -1})) << "not known yet";
    EXPECT_EQ(m.takeErrors(), "");
    ASSERT_TRUE(c->setTensorAddress("s", s.data()));
    ASSERT_TRUE(c->setTensorAddress("n", n.data()));
    EXPECT_TRUE(c->allInputShapesSpecified());
    EXPECT_EQ(c->inferShapes(4, missing), 0) << m.errors();
    EXPECT_EQ(n, (std::vector<int32_t>{4, -1})) << "values of shape outputs with an address";
    EXPECT_EQ(list(c->getTensorShape("z")), (Shape{2, 4}));
    c->setTensorAddress("x", x.data());
    c->setTensorAddress("z", z.data());
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_TRUE(m.oneError("'sum'"));
    c->setTensorAddress("sum", sum.data());
    n[0] = -1;
    ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
    EXPECT_EQ(n[0], 4);
    EXPECT_EQ(sum, (std::vector<int32_t>{4, 6}));
    EXPECT_EQ(z[3], 3);
    EXPECT_EQ(z[4], 6);
    s = {1, 6}; // read again at every run
    EXPECT_EQ(list(c->getTensorShape("z")), (Shape{1, 6}));
    ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
    EXPECT_EQ(sum, (std::vector<int32_t>{3, 8}));
    s = {3, 3}; // more rows than x has
    EXPECT_EQ(c->getTensorShape("z").nbDims, -1);
    EXPECT_NE(m.takeErrors(), "");
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_NE(m.takeErrors(), "");
    s = {2, 7};
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_TRUE(m.oneError("value 7 at 1 is outside 1..6"));
    EXPECT_EQ(c->inferShapes(0, nullptr), -1);
    EXPECT_TRUE(m.oneError("value 7"));
}

TEST_F(ShapeTensors, ByBinding)
{
    Context c = contextOf(*engine);
    int const s = engine->getBindingIndex("s"), n = engine->getBindingIndex("n");
    EXPECT_TRUE(engine->isShapeBinding(n));
    EXPECT_FALSE(engine->isExecutionBinding(n));
    EXPECT_TRUE(engine->isExecutionBinding(engine->getBindingIndex("z")));
    int32_t values[4] = {-1, -1, -1, -1};
    EXPECT_FALSE(c->getShapeBinding(s, values));
    EXPECT_NE(m.takeErrors(), "");
    int32_t const given[] = {3, 5};
    EXPECT_FALSE(c->setInputShapeBinding(s, nullptr));
    EXPECT_TRUE(m.oneError("null"));
    EXPECT_FALSE(c->setInputShapeBinding(0, given));
    EXPECT_TRUE(m.oneError("'x' is"));
    EXPECT_FALSE(c->setInputShapeBinding(99, given));
    EXPECT_TRUE(m.oneError("99"));
    int32_t const wrong[] = {3, 120};
    EXPECT_FALSE(c->setInputShapeBinding(s, wrong));
    EXPECT_TRUE(m.oneError("120"));
    ASSERT_TRUE(c->setInputShapeBinding(s, given));
    ASSERT_TRUE(c->getShapeBinding(s, values));
    EXPECT_EQ(values[1], 5);
    ASSERT_TRUE(c->setBindingDimensions(0, Dims2(4, 6)));
    EXPECT_TRUE(c->allInputShapesSpecified());
    ASSERT_TRUE(c->getShapeBinding(n, values));
    EXPECT_EQ(values[0], 8);
    EXPECT_FALSE(c->getShapeBinding(n, nullptr));
    EXPECT_TRUE(m.oneError("null"));
    EXPECT_FALSE(c->getShapeBinding(engine->getBindingIndex("z"), values));
    EXPECT_TRUE(m.oneError("'z' is no shape tensor"));
    EXPECT_EQ(list(c->getBindingDimensions(engine->getBindingIndex("z"))), (Shape{3, 5}));
    // Bindings of pure shape tensors may be null.
    std::vector<float> x = ramp(24), z(24, -1);
    void* bindings[] = {x.data(), nullptr, z.data(), nullptr, nullptr};
    EXPECT_TRUE(c->executeV2(bindings)) << m.errors();
    EXPECT_EQ(z[4], 4);
    EXPECT_EQ(z[5], 6);
    EXPECT_EQ(z[15], -1);
    bindings[2] = nullptr;
    EXPECT_FALSE(c->executeV2(bindings));
    EXPECT_TRUE(m.oneError("'z'"));
}

TEST(ShapeInputs, AreSmallAndHaveValues)
{
    for (bool dynamic : {false, true}) {
        Maker m;
        ITensor* x = m.input("x", {4, 6});
        ITensor* s = m.input("s", {dynamic ? -1 : 2}, DataType::kINT32);
        ISliceLayer* corner = m.network->addSlice(*x, Dims2(0, 0), Dims2(1, 1), Dims2(1, 1));
        corner->setInput(2, *s);
        m.output(corner->getOutput(0), "z");
        m.takeErrors();
        EXPECT_FALSE(m.plan());
        EXPECT_TRUE(contains(m.takeErrors(), dynamic ? "'s'" : "no optimization profile"));
        m.profile({});
        EXPECT_FALSE(m.plan());
        EXPECT_TRUE(contains(m.takeErrors(), dynamic ? "'s'" : "setShapeValues"));
    }
}

// A scalar that counts, through a reshape, the elements of a fill.
TEST(ShapeInputs, ScalarThatFeedsAFill)
{
    int32_t const one = 1;
    for (bool asStart : {false, true}) {
        Maker m;
        ITensor* n = m.input("n", {}, DataType::kINT32);
        IFillLayer* fill = m.network->addFill(dims({4}), FillOperation::kLINSPACE);
        if (asStart) {
            fill->setInput(1, *n);
            fill->setInput(2, *m.network->addConstant(dims({1}), Weights{DataType::kINT32, &one, 1})->getOutput(0));
            m.output(fill->getOutput(0), "y");
        } else {
            IShuffleLayer* vector = m.network->addShuffle(*n);
            vector->setReshapeDimensions(dims({1}));
            fill->setInput(0, *vector->getOutput(0));
            fill->setAlpha(3);
            fill->setBeta(1);
            m.output(fill->getOutput(0), "y");
        }
        EXPECT_TRUE(n->isShapeTensor()) << asStart;
        m.profile({{"n", {}, {}, {}}}, {{"n", {1}, {4}, {9}}});
        auto const engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        EXPECT_TRUE(engine->isShapeInferenceIO("n"));
        EXPECT_EQ(engine->getTensorLocation("n"), TensorLocation::kHOST);
        Context c = contextOf(*engine);
        int32_t const five = 5;
        c->setTensorAddress("n", const_cast<int32_t*>(&five));
        EXPECT_EQ(list(c->getTensorShape("y")), (Shape{asStart ? 4 : 5}));
        std::vector<int32_t> start(6, -7);
        std::vector<float> counted(6, -7);
        c->setTensorAddress("y", asStart ? static_cast<void*>(start.data()) : counted.data());
        ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
        if (asStart)
            EXPECT_EQ(start, (std::vector<int32_t>{5, 6, 7, 8, -7, -7}));
        else
            EXPECT_EQ(counted, (std::vector<float>{3, 4, 5, 6, 7, -7}));
    }
}

// A matrix is data, however small: what it decides, the run decides.
TEST(ShapeInputs, AreNoMatrices)
{
    Maker m;
    ITensor* x = m.input("x", {2, 2}, DataType::kINT32);
    IReduceLayer* most = m.network->addReduce(*x, ReduceOperation::kMAX, 3, false);
    IShuffleLayer* vector = m.network->addShuffle(*most->getOutput(0));
    vector->setReshapeDimensions(dims({1}));
    IFillLayer* fill = m.network->addFill(dims({1}), FillOperation::kLINSPACE);
    fill->setInput(0, *vector->getOutput(0));
    fill->setAlpha(3);
    fill->setBeta(1);
    m.output(fill->getOutput(0), "y");
    EXPECT_FALSE(x->isShapeTensor());
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    EXPECT_FALSE(engine->isShapeInferenceIO("x"));
    Context c = contextOf(*engine);
    std::vector<int32_t> values{1, 4, 2, 3};
    std::vector<float> y(5, -7);
    c->setTensorAddress("x", values.data());
    c->setTensorAddress("y", y.data());
    EXPECT_EQ(list(c->getTensorShape("y")), (Shape{-1}));
    ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
    EXPECT_EQ(y, (std::vector<float>{3, 4, 5, 6, -7}));
}

// A shape tensor without elements says rank 0, and nothing of it is unknown, although it has no memory.
TEST(ShapeTensorsWithoutElements, SayRankZero)
{
    char const* const names[] = {"fill", "shuffle", "slice"};
    for (int which = 0; which < 3; ++which) {
        SCOPED_TRACE(names[which]);
        Maker m;
        ITensor* d = m.input("d", {0}, DataType::kINT32);
        ITensor* x = m.input("x", which == 1 ? Shape{1} : Shape{});
        ILayer* layer = which == 1 ? static_cast<ILayer*>(m.network->addShuffle(*x))
                                   : m.network->addSlice(*x, dims({}), dims({}), dims({}));
        layer->setInput(which == 1 ? 1 : 2, *d);
        ITensor* y = layer->getOutput(0);
        if (which == 0) {
            IFillLayer* fill = m.network->addFill(dims({}), FillOperation::kLINSPACE);
            fill->setInput(0, *d);
            fill->setInput(1, *x);
            fill->setInput(2, *m.network->addConstant(dims({0}), {DataType::kFLOAT, nullptr, 0})->getOutput(0));
            y = fill->getOutput(0);
        }
        EXPECT_EQ(list(y->getDimensions()), (Shape{}));
        m.output(y, "y");
        IOptimizationProfile* p = m.profile({});
        for (auto at : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX}) {
            int32_t const none = 0;
            EXPECT_TRUE(p->setShapeValues("d", at, &none, 0));
        }
        auto const engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        Context c = contextOf(*engine);
        float value = 3, result = -7;
        int32_t unused = 0;
        ASSERT_TRUE(c->setTensorAddress("d", &unused));
        ASSERT_TRUE(c->setTensorAddress("x", &value));
        ASSERT_TRUE(c->setTensorAddress("y", &result));
        ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
        EXPECT_EQ(result, 3);
    }
}

TEST(Profiles, AreNeededAndComplete)
{
    Maker m;
    m.output(m.relu(m.input("x", {-1, 6})), "y");
    EXPECT_FALSE(m.plan());
    EXPECT_TRUE(m.oneError("no optimization profile"));
    m.profile({{"z", {1, 6}, {2, 6}, {4, 6}}});
    m.logger.lines.clear();
    EXPECT_FALSE(m.plan());
    ASSERT_EQ(m.logger.warnings(), 1);
    EXPECT_TRUE(contains(m.logger.lines.front().text, "'z' is no input of the network")) << m.logger.lines.front().text;
    EXPECT_TRUE(m.oneError("'x'"));
}

} // namespace
