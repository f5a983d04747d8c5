// SPDX-License-Identifier: Apache-2.0
// Settings and rules of the public layers that move elements (shuffle, slice, gather, shape) and of the matrix
// products.
#include <vector>

#include <gtest/gtest.h>

#include "api/client.h"
#include "api/network/network.h"
#include "base/tensor.h"
#include "interp/interp.h"

using namespace nvinfer1;
using namespace tw::test;

namespace {

struct MovementLayers : testing::Test
{
    KeepingLogger logger;
    CountingRecorder recorder;
    tw::api::Reporter reporter{&logger, &recorder};
    tw::api::NetworkObject object{reporter};
    INetworkDefinition& net = object;
    std::vector<float> numbers = std::vector<float>(4096, 0.5F);
    std::vector<std::vector<int32_t>> kept; // values of constants
    Weights none{DataType::kFLOAT, nullptr, 0};

    Weights weights(int64_t n) { return {DataType::kFLOAT, numbers.data(), n}; }
    ITensor& input(Dims dims, DataType type = DataType::kFLOAT)
    {
        return *net.addInput(("x" + std::to_string(net.getNbInputs())).c_str(), type, dims);
    }
    ITensor& integers(std::vector<int32_t> v)
    {
        kept.reserve(64);
        kept.push_back(std::move(v));
        auto const n = int32_t(kept.back().size());
        return *net.addConstant(dims({n}), {DataType::kINT32, kept.back().data(), n})->getOutput(0);
    }
    static std::string str(Dims d) { return tw::api::str(d); }
    static std::string shapeOf(ILayer* l) { return l ? str(l->getOutput(0)->getDimensions()) : "no layer"; }
    static bool fails(ILayer* l) { return l->getOutput(0)->getDimensions().nbDims < 0; }
    // Output of the network for inputs counting up from 0, batch 2 in implicit batch mode.
    std::vector<double> run(ILayer* l)
    {
        net.markOutput(*l->getOutput(0));
        auto g = object.toGraph();
        EXPECT_TRUE(g.ok()) << g.error().message;
        std::vector<tw::Tensor> storage;
        std::vector<tw::TensorRef> in;
        for (tw::ir::Value const* v : (*g)->inputs) {
            tw::Extents e;
            for (auto const& d : v->shape)
                e.push(d.isConst() ? d.value() : 2);
            storage.emplace_back(v->type, e);
            in.push_back(storage.back().ref());
            for (int64_t i = 0; i < in.back().count(); ++i)
                in.back().set(i, double(i));
        }
        auto out = tw::interp::run(**g, in);
        EXPECT_TRUE(out.ok()) << out.error().message;
        std::vector<double> values;
        for (int64_t i = 0; out.ok() && i < (*out)[0].count(); ++i)
            values.push_back((*out)[0].ref().get(i));
        return values;
    }
};

TEST_F(MovementLayers, Shuffle)
{
    IShuffleLayer* l = net.addShuffle(input(dims({2, 3, 4})));
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(l->getType(), LayerType::kSHUFFLE);
    EXPECT_EQ(l->getReshapeDimensions().nbDims, -1);
    EXPECT_TRUE(l->getZeroIsPlaceholder());
    EXPECT_EQ(l->getFirstTranspose().order[7], 7);
    EXPECT_EQ(shapeOf(l), "[2,3,4]");
    l->setFirstTranspose({{2, 0, 1, -99, 99}}); // entries after the rank may hold anything
    EXPECT_EQ(shapeOf(l), "[4,2,3]");
    l->setReshapeDimensions(dims({0, -1}));
    EXPECT_EQ(shapeOf(l), "[4,6]");
    l->setSecondTranspose({{1, 0}});
    EXPECT_EQ(shapeOf(l), "[6,4]");
    EXPECT_EQ(l->getSecondTranspose().order[0], 1);
    EXPECT_EQ(logger.errors(), 0);
    l->setReshapeDimensions(dims({-1, -1}));
    l->setReshapeDimensions(dims({-2, 3}));
    EXPECT_EQ(logger.errors(), 2);
    EXPECT_EQ(str(l->getReshapeDimensions()), "[0,-1]");
    l->setZeroIsPlaceholder(false);
    EXPECT_TRUE(fails(l)) << "-1 beside a size of zero";
    EXPECT_TRUE(contains(logger.lastError(), "cannot be inferred")) << logger.lastError();
    l->setZeroIsPlaceholder(true);
    l->setFirstTranspose({{0, 0, 1}});
    EXPECT_TRUE(fails(l));
    EXPECT_TRUE(contains(logger.lastError(), "no permutation")) << logger.lastError();
}

TEST_F(MovementLayers, ShuffleByShapeTensor)
{
    IShuffleLayer* l = net.addShuffle(input(dims({2, 6})));
    l->setReshapeDimensions(dims({12}));
    l->setInput(1, integers({3, -1}));
    EXPECT_EQ(l->getReshapeDimensions().nbDims, -1);
    EXPECT_EQ(shapeOf(l), "[3,4]");
    l->setReshapeDimensions(dims({4, 3}));
    EXPECT_EQ(l->getNbInputs(), 1);
    EXPECT_EQ(shapeOf(l), "[4,3]");
    EXPECT_EQ(logger.errors(), 0);
    l->setInput(1, integers(std::vector<int32_t>(30, 1)));
    EXPECT_TRUE(fails(l));
    EXPECT_TRUE(contains(logger.lastError(), "limit 8")) << logger.lastError();
}

TEST_F(MovementLayers, Slice)
{
    ISliceLayer* l = net.addSlice(input(dims({4, 5})), dims({0, 1}), dims({2, 2}), dims({2, 1}));
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(l->getMode(), SliceMode::kSTRICT_BOUNDS);
    EXPECT_EQ(shapeOf(l), "[2,2]");
    l->setStride(dims({0, -1}));
    EXPECT_EQ(str(l->getStride()), "[0,-1]");
    EXPECT_EQ(shapeOf(l), "[2,2]");
    l->setSize(dims({2, 3}));
    EXPECT_TRUE(fails(l)) << "1, 0, -1";
    EXPECT_TRUE(contains(logger.lastError(), "out of the bounds")) << logger.lastError();
    l->setMode(SliceMode::kWRAP);
    EXPECT_EQ(shapeOf(l), "[2,3]");
    l->setInput(2, integers({1, 7}));
    EXPECT_EQ(l->getSize().nbDims, -1);
    EXPECT_EQ(shapeOf(l), "[1,7]");
    l->setSize(dims({3, 3}));
    EXPECT_EQ(l->getInput(2), nullptr);
    EXPECT_EQ(shapeOf(l), "[3,3]");
    int const before = logger.errors();
    l->setMode(static_cast<SliceMode>(5));
    l->setSize(dims({-1, 3}));
    EXPECT_EQ(logger.errors(), before + 2);
    l->setStart(dims({0}));
    EXPECT_TRUE(fails(l));
}

TEST_F(MovementLayers, SliceDynamic)
{
    ITensor& x = input(dims({-1, 6}));
    ISliceLayer* l = net.addSlice(x, dims({0, 0}), dims({0, 0}), dims({1, 2}));
    IShapeLayer* s = net.addShape(x);
    ITensor& half = *net.addElementWise(*s->getOutput(0), integers({1, 2}), ElementWiseOperation::kDIV)->getOutput(0);
    l->setInput(2, half);
    EXPECT_EQ(shapeOf(l), "[-1,3]");
    EXPECT_EQ(run(l), (std::vector<double>{0, 2, 4, 6, 8, 10}));
}

TEST_F(MovementLayers, Gather)
{
    ITensor &x = input(dims({3, 4, 5})), &j = input(dims({3, 2}), DataType::kINT32);
    IGatherLayer* l = net.addGather(x, j, 1);
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(l->getMode(), GatherMode::kDEFAULT);
    EXPECT_EQ(l->getGatherAxis(), 1);
    EXPECT_EQ(shapeOf(l), "[3,3,2,5]");
    l->setNbElementWiseDims(1);
    EXPECT_EQ(l->getNbElementWiseDims(), 1);
    EXPECT_EQ(shapeOf(l), "[3,2,5]");
    EXPECT_EQ(logger.errors(), 0);
    l->setGatherAxis(0);
    EXPECT_TRUE(fails(l)) << "element-wise dimensions above the axis";
    IGatherLayer* nd = net.addGatherV2(x, j, GatherMode::kND);
    EXPECT_EQ(shapeOf(nd), "[3,5]");
    nd->setMode(GatherMode::kELEMENT);
    EXPECT_TRUE(fails(nd)) << "ranks differ";
    int const before = logger.errors();
    EXPECT_EQ(net.addGatherV2(x, j, static_cast<GatherMode>(3)), nullptr);
    nd->setMode(static_cast<GatherMode>(-1));
    EXPECT_EQ(logger.errors(), before + 2);
    IGatherLayer* far = net.addGather(x, j, INT32_MAX);
    EXPECT_TRUE(far == nullptr || fails(far));
}

TEST_F(MovementLayers, Scatter)
{
    ITensor &x = input(dims({3, 4})), &j = input(dims({2, 1}), DataType::kINT32), &u = input(dims({2, 4}));
    IScatterLayer* l = net.addScatter(x, j, u, ScatterMode::kND);
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(l->getType(), LayerType::kSCATTER);
    EXPECT_EQ(l->getMode(), ScatterMode::kND);
    EXPECT_EQ(l->getAxis(), 0);
    EXPECT_EQ(shapeOf(l), "[3,4]");
    EXPECT_EQ(run(l), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
    l->setMode(ScatterMode::kELEMENT);
    EXPECT_TRUE(fails(l)) << "indices and updates differ in shape";
    int const before = logger.errors();
    EXPECT_EQ(net.addScatter(x, j, u, static_cast<ScatterMode>(2)), nullptr);
    l->setMode(static_cast<ScatterMode>(-1));
    EXPECT_EQ(logger.errors(), before + 2);
    EXPECT_EQ(l->getMode(), ScatterMode::kELEMENT);
    EXPECT_TRUE(fails(net.addScatter(x, j, j, ScatterMode::kND))) << "updates of another type";
    EXPECT_TRUE(fails(net.addScatter(x, u, u, ScatterMode::kND))) << "indices that are no integers";
}

TEST_F(MovementLayers, ScatterAlongAnAxis)
{
    ITensor &x = input(dims({2, 3})), &j = input(dims({2, 1}), DataType::kINT32), &u = input(dims({2, 1}));
    IScatterLayer* l = net.addScatter(x, j, u, ScatterMode::kELEMENT);
    l->setAxis(1);
    EXPECT_EQ(l->getAxis(), 1);
    EXPECT_EQ(run(l), (std::vector<double>{0, 1, 2, 3, 1, 5}));
    l->setAxis(2);
    EXPECT_TRUE(fails(l));
    l->setAxis(-1);
    EXPECT_TRUE(fails(l));
}

// Dimensions of a shape replaced by others, as exporters write it.
TEST_F(MovementLayers, ScatterIntoAShape)
{
    ITensor& x = input(dims({-1, 6}));
    ITensor& shape = *net.addShape(x)->getOutput(0);
    IScatterLayer* l = net.addScatter(shape, integers({1}), integers({3}), ScatterMode::kELEMENT);
    IShuffleLayer* reshape = net.addShuffle(x);
    ITensor& twice = *net.addElementWise(*l->getOutput(0), integers({2, 1}), ElementWiseOperation::kPROD)->getOutput(0);
    reshape->setInput(1, twice);
    EXPECT_EQ(shapeOf(reshape), "[-1,3]");
    EXPECT_EQ(run(reshape), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

TEST_F(MovementLayers, Shape)
{
    IShapeLayer* l = net.addShape(input(dims({-1, 4, 5})));
    EXPECT_EQ(shapeOf(l), "[3]");
    EXPECT_EQ(l->getOutput(0)->getType(), DataType::kINT32);
    EXPECT_EQ(l->getOutputType(0), DataType::kINT32);
    EXPECT_EQ(run(l), (std::vector<double>{2, 4, 5}));
}

TEST_F(MovementLayers, MatrixMultiply)
{
    ITensor &a = input(dims({1, 2, 3})), &b = input(dims({4, 3, 5}));
    IMatrixMultiplyLayer* l = net.addMatrixMultiply(a, MatrixOperation::kNONE, b, MatrixOperation::kNONE);
    EXPECT_EQ(shapeOf(l), "[4,2,5]");
    l->setOperation(0, MatrixOperation::kTRANSPOSE);
    EXPECT_EQ(l->getOperation(0), MatrixOperation::kTRANSPOSE);
    EXPECT_TRUE(fails(l));
    EXPECT_TRUE(contains(logger.lastError(), "cannot be multiplied")) << logger.lastError();
    int const before = logger.errors();
    l->setOperation(2, MatrixOperation::kNONE);
    l->setOperation(1, static_cast<MatrixOperation>(3));
    EXPECT_EQ(net.addMatrixMultiply(a, static_cast<MatrixOperation>(-1), b, MatrixOperation::kNONE), nullptr);
    EXPECT_EQ(logger.errors(), before + 3);
    EXPECT_EQ(shapeOf(net.addMatrixMultiply(input(dims({4, 3})), MatrixOperation::kVECTOR, b, MatrixOperation::kNONE)),
              "[4,5]");
}

TEST_F(MovementLayers, FullyConnected)
{
    IFullyConnectedLayer* l = net.addFullyConnected(input(dims({2, 3, 2, 2})), 5, weights(60), weights(5));
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(shapeOf(l), "[2,5,1,1]");
    EXPECT_EQ(l->getNbOutputChannels(), 5);
    EXPECT_EQ(l->getKernelWeights().count, 60);
    l->setBiasWeights(none);
    EXPECT_EQ(l->getBiasWeights().count, 0);
    EXPECT_EQ(logger.errors(), 0);
    EXPECT_EQ(run(l)[0], 0.5 * (11 * 12 / 2));
    l->setNbOutputChannels(0);
    EXPECT_EQ(net.addFullyConnected(input(dims({2, 3, 2, 2})), 0, weights(60), none), nullptr);
    EXPECT_EQ(logger.errors(), 2);
    l->setKernelWeights(weights(61));
    EXPECT_TRUE(fails(l));
    EXPECT_TRUE(fails(net.addFullyConnected(input(dims({2, 3})), 1, weights(6), none))) << "rank 2";
}

// Dimensions and axes count without the batch.
struct MovementLayersImplicitBatch : MovementLayers
{
    MovementLayersImplicitBatch() { object.implicitBatch = true; }
};

TEST_F(MovementLayersImplicitBatch, Shuffle)
{
    IShuffleLayer* l = net.addShuffle(input(dims({2, 3})));
    l->setFirstTranspose({{1, 0}});
    l->setReshapeDimensions(dims({-1}));
    EXPECT_EQ(shapeOf(l), "[6]");
    l->setZeroIsPlaceholder(false);
    EXPECT_EQ(shapeOf(l), "[6]");
    EXPECT_EQ(run(l), (std::vector<double>{0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}));
    l->setReshapeDimensions(dims({0}));
    EXPECT_TRUE(fails(l));
}

TEST_F(MovementLayersImplicitBatch, Slice)
{
    ISliceLayer* l = net.addSlice(input(dims({4})), dims({3}), dims({2}), dims({-2}));
    EXPECT_EQ(shapeOf(l), "[2]");
    EXPECT_EQ(run(l), (std::vector<double>{3, 1, 7, 5}));
}

TEST_F(MovementLayersImplicitBatch, Gather)
{
    IGatherLayer* l = net.addGather(input(dims({3, 2})), integers({2, 0}), 0);
    EXPECT_EQ(shapeOf(l), "[2,2]");
    EXPECT_EQ(run(l), (std::vector<double>{4, 5, 0, 1, 10, 11, 6, 7}));
    IGatherLayer* far = net.addGather(input(dims({3, 2})), integers({2, 0}), INT32_MAX);
    EXPECT_TRUE(far == nullptr || fails(far));
}

TEST_F(MovementLayersImplicitBatch, Scatter)
{
    ITensor &x = input(dims({3})), &j = input(dims({1}), DataType::kINT32), &u = input(dims({1}));
    IScatterLayer* l = net.addScatter(x, j, u, ScatterMode::kELEMENT);
    EXPECT_EQ(shapeOf(l), "[3]");
    EXPECT_EQ(run(l), (std::vector<double>{0, 1, 2, 3, 1, 5}));
    IScatterLayer* nd = net.addScatter(x, j, u, ScatterMode::kND);
    EXPECT_TRUE(nd == nullptr || fails(nd));
}

TEST_F(MovementLayersImplicitBatch, ProductsAndShape)
{
    EXPECT_EQ(net.addShape(input(dims({3}))), nullptr);
    IFullyConnectedLayer* l = net.addFullyConnected(input(dims({3, 1, 1})), 2, weights(6), none);
    EXPECT_EQ(shapeOf(l), "[2,1,1]");
    ITensor &a = input(dims({2, 3})), &b = input(dims({3, 4}));
    EXPECT_EQ(shapeOf(net.addMatrixMultiply(a, MatrixOperation::kNONE, b, MatrixOperation::kNONE)), "[2,4]");
}

} // namespace
