// SPDX-License-Identifier: Apache-2.0
// Implicit batch: dimensions without the batch, batches below the maximum, what is broadcast over the batch.
#include <cuda_runtime_api.h>

#include "engine/engines.h"

using namespace tw::test;

namespace {

struct Implicit : testing::Test
{
    Maker m{0};
    std::unique_ptr<ICudaEngine> engine;
    void make(int maxBatch)
    {
        m.builder->setMaxBatchSize(maxBatch);
        engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        ASSERT_EQ(m.errors(), "");
    }
    ITensor* constant(Dims const& d, std::vector<float> const& values)
    {
        kept.push_back(values);
        return m.network->addConstant(d, {DataType::kFLOAT, kept.back().data(), int64_t(values.size())})->getOutput(0);
    }
    std::vector<std::vector<float>> kept = [] {
        std::vector<std::vector<float>> v;
        v.reserve(16);
        return v;
    }();
};

TEST_F(Implicit, BatchesUpToTheMaximum)
{
    ITensor* x = m.input("x", {2, 3});
    ITensor* y = m.relu(x);
    EXPECT_EQ(list(y->getDimensions()), (Shape{2, 3}));
    m.output(y, "y");
    EXPECT_TRUE(m.network->hasImplicitBatchDimension());
    make(4);
    EXPECT_TRUE(engine->hasImplicitBatchDimension());
    EXPECT_EQ(engine->getMaxBatchSize(), 4);
    EXPECT_EQ(list(engine->getBindingDimensions(0)), (Shape{2, 3}));
    EXPECT_EQ(list(engine->getTensorShape("y")), (Shape{2, 3}));
    EXPECT_EQ(engine->getNbOptimizationProfiles(), 1);
    Context c = contextOf(*engine);
    for (int batch = 1; batch <= 4; ++batch) {
        std::vector<float> in = ramp(size_t(batch) * 6, -4), out(size_t(batch) * 6 + 1, -1);
        void* bindings[] = {in.data(), out.data()};
        ASSERT_TRUE(c->execute(batch, bindings)) << m.errors();
        for (size_t i = 0; i < in.size(); ++i)
            ASSERT_EQ(out[i], std::max(in[i], 0.0F));
        EXPECT_EQ(out.back(), -1);
        cudaEvent_t event{};
        cudaEventCreate(&event);
        EXPECT_TRUE(c->enqueue(batch, bindings, nullptr, &event));
        EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
        cudaEventDestroy(event);
        EXPECT_EQ(list(c->getBindingDimensions(1)), (Shape{2, 3}));
    }
    std::vector<float> v(100);
    void* bindings[] = {v.data(), v.data() + 50};
    for (int batch : {0, -1, 5}) {
        EXPECT_FALSE(c->execute(batch, bindings));
        EXPECT_TRUE(m.oneError("outside 1..4"));
    }
    EXPECT_FALSE(c->executeV2(bindings));
    EXPECT_TRUE(m.oneError("implicit batch"));
    EXPECT_FALSE(c->enqueueV2(bindings, nullptr, nullptr));
    EXPECT_TRUE(m.oneError("implicit batch"));
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_TRUE(m.oneError("implicit batch"));
    EXPECT_FALSE(c->setBindingDimensions(0, Dims2(2, 3)));
    EXPECT_TRUE(m.oneError("implicit batch"));
    EXPECT_FALSE(c->execute(1, nullptr));
    EXPECT_TRUE(m.oneError("bindings"));
    bindings[1] = nullptr;
    EXPECT_FALSE(c->execute(1, bindings));
    EXPECT_TRUE(m.oneError("'y'"));
    EXPECT_TRUE(c->allInputDimensionsSpecified());
}

TEST_F(Implicit, ConstantsAndBroadcastInputs)
{
    ITensor* x = m.input("x", {3});
    ITensor* b = m.input("b", {3});
    b->setBroadcastAcrossBatch(true);
    EXPECT_TRUE(b->getBroadcastAcrossBatch());
    ITensor* k = constant(dims({3}), {100, 200, 300});
    m.output(m.add(m.add(x, b), k), "y");
    m.output(m.relu(k), "only_constant");
    m.output(m.relu(b), "only_broadcast");
    make(3);
    Context c = contextOf(*engine);
    std::vector<float> x1 = ramp(9), b1{10, 20, 30}, y(9, -1), oc(9, -1), ob(9, -1);
    void* bindings[] = {x1.data(), b1.data(), y.data(), oc.data(), ob.data()};
    ASSERT_TRUE(c->execute(3, bindings)) << m.errors();
    EXPECT_EQ(y, (std::vector<float>{110, 221, 332, 113, 224, 335, 116, 227, 338}));
    // Outputs have the batch like any other.
    EXPECT_EQ(oc, (std::vector<float>{100, 200, 300, 100, 200, 300, 100, 200, 300}));
    EXPECT_EQ(ob, (std::vector<float>{10, 20, 30, 10, 20, 30, 10, 20, 30}));
}

TEST_F(Implicit, ConcatenationWithAConstant)
{
    ITensor* x = m.input("x", {1, 2});
    ITensor* k = constant(Dims2(2, 2), {7, 8, 9, 10});
    ITensor* list2[] = {k, x};
    IConcatenationLayer* concat = m.network->addConcatenation(list2, 2);
    concat->setAxis(0);
    EXPECT_EQ(list(concat->getOutput(0)->getDimensions()), (Shape{3, 2}));
    m.output(concat->getOutput(0), "y");
    make(2);
    Context c = contextOf(*engine);
    std::vector<float> in{1, 2, 3, 4}, out(12, -1);
    void* bindings[] = {in.data(), out.data()};
    ASSERT_TRUE(c->execute(2, bindings)) << m.errors();
    EXPECT_EQ(out, (std::vector<float>{7, 8, 9, 10, 1, 2, 7, 8, 9, 10, 3, 4}));
    out.assign(12, -1);
    ASSERT_TRUE(c->execute(1, bindings)) << m.errors();
    EXPECT_EQ(out, (std::vector<float>{7, 8, 9, 10, 1, 2, -1, -1, -1, -1, -1, -1}));
}

TEST_F(Implicit, AxesCountWithoutTheBatch)
{
    ITensor* x = m.input("x", {2, 3});
    IReduceLayer* reduce = m.network->addReduce(*x, ReduceOperation::kSUM, 1U << 1, false);
    EXPECT_EQ(list(reduce->getOutput(0)->getDimensions()), (Shape{2}));
    m.output(reduce->getOutput(0), "sums");
    IShuffleLayer* shuffle = m.network->addShuffle(*x);
    shuffle->setFirstTranspose(Permutation{{1, 0}});
    shuffle->setReshapeDimensions(dims({6}));
    EXPECT_EQ(list(shuffle->getOutput(0)->getDimensions()), (Shape{6}));
    m.output(shuffle->getOutput(0), "transposed");
    ISliceLayer* slice = m.network->addSlice(*x, Dims2(0, 1), Dims2(2, 2), Dims2(1, 1));
    EXPECT_EQ(list(slice->getOutput(0)->getDimensions()), (Shape{2, 2}));
    m.output(slice->getOutput(0), "slice");
    ISoftMaxLayer* softmax = m.network->addSoftMax(*x);
    softmax->setAxes(1U << 1);
    m.output(softmax->getOutput(0), "softmax");
    ITopKLayer* top = m.network->addTopK(*x, TopKOperation::kMAX, 1, 1U << 1);
    m.output(top->getOutput(0), "top");
    make(2);
    Context c = contextOf(*engine);
    std::vector<float> in{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, sums(4), transposed(12), sliced(8), soft(12), best(4);
    std::vector<void*> bindings(size_t(engine->getNbBindings()));
    auto bind = [&](char const* name, std::vector<float>& v) {
        bindings[size_t(engine->getBindingIndex(name))] = v.data();
    };
    bind("x", in);
    bind("sums", sums);
    bind("transposed", transposed);
    bind("slice", sliced);
    bind("softmax", soft);
    bind("top", best);
    ASSERT_TRUE(c->execute(2, bindings.data())) << m.errors();
    EXPECT_EQ(sums, (std::vector<float>{6, 15, 24, 33}));
    EXPECT_EQ(transposed, (std::vector<float>{1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12}));
    EXPECT_EQ(sliced, (std::vector<float>{2, 3, 5, 6, 8, 9, 11, 12}));
    for (int row = 0; row < 4; ++row)
        EXPECT_NEAR(soft[size_t(row * 3)] + soft[size_t(row * 3 + 1)] + soft[size_t(row * 3 + 2)], 1, 1e-6);
    EXPECT_EQ(best, (std::vector<float>{3, 6, 9, 12}));
}

TEST_F(Implicit, GatherInEachBatchItem)
{
    ITensor* x = m.input("x", {3, 2});
    ITensor* at = m.input("at", {2}, DataType::kINT32);
    IGatherLayer* gather = m.network->addGather(*x, *at, 0);
    EXPECT_EQ(list(gather->getOutput(0)->getDimensions()), (Shape{2, 2}));
    m.output(gather->getOutput(0), "y");
    make(2);
    Context c = contextOf(*engine);
    std::vector<float> in = ramp(12), out(8, -1);
    std::vector<int32_t> indices{2, 0, 1, 1};
    void* bindings[] = {in.data(), indices.data(), out.data()};
    ASSERT_TRUE(c->execute(2, bindings)) << m.errors();
    EXPECT_EQ(out, (std::vector<float>{4, 5, 0, 1, 8, 9, 8, 9}));
}

TEST_F(Implicit, ConvolutionPoolingFullyConnected)
{
    std::vector<float> k(9, 1), f(4 * 2, 0.5F);
    ITensor* x = m.input("x", {1, 4, 4});
    ITensor* conv =
        m.network->addConvolutionNd(*x, 1, Dims2(3, 3), {DataType::kFLOAT, k.data(), 9}, {DataType::kFLOAT, nullptr, 0})
            ->getOutput(0);
    EXPECT_EQ(list(conv->getDimensions()), (Shape{1, 2, 2}));
    m.output(m.network->addPoolingNd(*conv, PoolingType::kMAX, Dims2(2, 2))->getOutput(0), "pool");
    ITensor* fc =
        m.network->addFullyConnected(*conv, 2, {DataType::kFLOAT, f.data(), 8}, {DataType::kFLOAT, nullptr, 0})
            ->getOutput(0);
    EXPECT_EQ(list(fc->getDimensions()), (Shape{2, 1, 1}));
    m.output(fc, "fc");
    make(3);
    Context c = contextOf(*engine);
    std::vector<float> in = ramp(32), pool(2, -1), out(4, -1);
    void* bindings[] = {in.data(), pool.data(), out.data()};
    ASSERT_TRUE(c->execute(2, bindings)) << m.errors();
    EXPECT_EQ(pool, (std::vector<float>{90, 90 + 16 * 9}));
    EXPECT_EQ(out, (std::vector<float>{135, 135, 135 + 288, 135 + 288}));
}

TEST(Windows, MustFit)
{
    std::vector<float> k(9, 1);
    Weights const kernel{DataType::kFLOAT, k.data(), 9}, none{DataType::kFLOAT, nullptr, 0};
    for (int kind = 0; kind < 3; ++kind) {
        for (bool dynamic : {false, true}) {
            Maker m;
            int32_t const size = dynamic ? -1 : 2;
            ITensor* x = m.input("x", {1, 1, size, size});
            ITensor* y = nullptr;
            if (kind == 0) {
                y = m.network->addConvolutionNd(*x, 1, Dims2(3, 3), kernel, none)->getOutput(0);
            } else if (kind == 1) {
                y = m.network->addPoolingNd(*x, PoolingType::kMAX, Dims2(3, 3))->getOutput(0);
            } else {
                IDeconvolutionLayer* d = m.network->addDeconvolutionNd(*x, 1, Dims2(3, 3), kernel, none);
                d->setPaddingNd(Dims2(3, 3)); // 2 - 1 + 3 - 6 < 0
                y = d->getOutput(0);
            }
            if (!dynamic) {
                EXPECT_EQ(y->getDimensions().nbDims, -1);
                EXPECT_TRUE(m.oneError("the window does not fit"));
            }
            m.output(y, "y");
            m.takeErrors();
            if (dynamic)
                m.profile({{"x", {1, 1, 2, 2}, {1, 1, 2, 2}, {1, 1, 6, 6}}});
            EXPECT_FALSE(m.plan());
            EXPECT_TRUE(contains(m.takeErrors(), "the window does not fit")) << kind << dynamic;
        }
    }
}

} // namespace
