// SPDX-License-Identifier: Apache-2.0
// Detailed layer information under the names that 8.5 publishes: kinds of layers and kernels, and each kind's parameters.
#include <functional>
#include <set>

#include <nlohmann/json.hpp>

#include "engine/engines.h"

using namespace tw::test;

namespace {

using Json = nlohmann::json;

struct Inspected : testing::Test
{
    Maker m;
    std::vector<float> numbers = ramp(4096, -2000);

    Weights weights(int64_t count) const { return {DataType::kFLOAT, numbers.data(), count}; }
    static Weights none() { return {DataType::kFLOAT, nullptr, 0}; }
    // The engine's layers, each as every reader needs it.
    Json layers()
    {
        m.config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
        std::unique_ptr<ICudaEngine> const engine = m.engine();
        EXPECT_TRUE(engine) << m.errors();
        if (!engine)
            return Json::array();
        std::unique_ptr<IEngineInspector> const inspector(engine->createEngineInspector());
        Json const all = Json::parse(inspector->getEngineInformation(LayerInformationFormat::kJSON))["Layers"];
        for (Json const& l : all)
            readable(l);
        return all;
    }
    // What readers take for granted.
    static void readable(Json const& l)
    {
        EXPECT_TRUE(l["Name"].is_string() && l["LayerType"].is_string()) << l.dump(1);
        EXPECT_EQ(l["LayerType"] == "NoOp" || l["LayerType"] == "Myelin", !l.contains("ParameterType")) << l.dump(1);
        for (char const* side : {"Inputs", "Outputs"})
            for (Json const& t : l[side])
                for (char const* key : {"Name", "Location", "Dimensions", "Format/Datatype"})
                    EXPECT_TRUE(t.contains(key)) << key << ": " << l.dump(1);
        for (char const* key : {"Weights", "Bias"})
            if (l.contains(key)) {
                std::set<std::string> const types{"Float", "Half", "Int8", "Int32"};
                EXPECT_TRUE(types.count(l[key]["Type"])) << l.dump(1);
                EXPECT_GT(l[key]["Count"].get<int64_t>(), 0);
            }
        EXPECT_TRUE(l["Op"].is_string()) << l.dump(1);
    }
    // The only layer of its ParameterType; its entries must hold what is expected.
    Json only(char const* type, Json const& expected)
    {
        Json const all = layers();
        Json found;
        for (Json const& l : all)
            if (l.value("ParameterType", "") == type) {
                EXPECT_TRUE(found.is_null()) << "two of " << type << ": " << all.dump(1);
                found = l;
            }
        EXPECT_FALSE(found.is_null()) << "no " << type << ": " << all.dump(1);
        for (auto const& [key, value] : expected.items())
            EXPECT_EQ(found.value(key, Json()), value) << key << " of " << found.dump(1);
        return found;
    }
};

TEST_F(Inspected, Convolution)
{
    IConvolutionLayer* c =
        m.network->addConvolutionNd(*m.input("x", {1, 4, 9, 11}), 6, Dims2(3, 5), weights(6 * 4 * 15), weights(6));
    c->setStrideNd(Dims2(2, 1));
    c->setDilationNd(Dims2(1, 2));
    c->setPrePadding(Dims2(1, 2));
    c->setPostPadding(Dims2(0, 3));
    m.output(m.relu(c->getOutput(0)), "y");
    Json const l = only("Convolution", {{"Kernel", {3, 5}},
                                        {"Stride", {2, 1}},
                                        {"Dilation", {1, 2}},
                                        {"PrePadding", {1, 2}},
                                        {"PostPadding", {0, 3}},
                                        {"PaddingMode", "kEXPLICIT_ROUND_DOWN"},
                                        {"OutMaps", 6},
                                        {"Groups", 1},
                                        {"Weights", {{"Type", "Float"}, {"Count", 360}}},
                                        {"Bias", {{"Type", "Float"}, {"Count", 6}}},
                                        {"HasSparseWeights", 0},
                                        {"Activation", "RELU"},
                                        {"HasBias", 1},
                                        {"HasReLU", 1}});
    EXPECT_EQ(l["LayerType"], "CaskConvolution");
}

TEST_F(Inspected, ConvolutionWithAnotherActivation)
{
    IConvolutionLayer* c =
        m.network->addConvolutionNd(*m.input("x", {1, 4, 9, 11}), 6, Dims2(1, 1), weights(24), none());
    c->setPaddingMode(PaddingMode::kSAME_LOWER);
    m.output(m.network->addActivation(*c->getOutput(0), ActivationType::kTANH)->getOutput(0), "y");
    Json const l = only("Convolution", {{"PaddingMode", "kSAME_LOWER"}, {"HasBias", 0}, {"HasReLU", 0}});
    EXPECT_FALSE(l.contains("Bias"));
    EXPECT_EQ(l["Activation"], "GENERIC");
    EXPECT_EQ(l["ParameterSubType"], "PointWiseExpression");
    EXPECT_EQ(l["PointWiseExpressionOperations"], (Json{"const auto v0 = Tanh(arg0)"}));
}

TEST_F(Inspected, Deconvolution)
{
    IDeconvolutionLayer* d =
        m.network->addDeconvolutionNd(*m.input("x", {1, 4, 5, 5}), 6, Dims2(2, 3), weights(4 * 3 * 6), none());
    d->setNbGroups(2);
    d->setStrideNd(Dims2(2, 2));
    m.output(d->getOutput(0), "y");
    Json const l = only("Deconvolution", {{"Kernel", {2, 3}},
                                          {"Stride", {2, 2}},
                                          {"OutMaps", 6},
                                          {"Groups", 2},
                                          {"Activation", "NONE"},
                                          {"HasBias", 0}});
    EXPECT_EQ(l["LayerType"], "CaskDeconvolution");
}

TEST_F(Inspected, AnIdentityLayerSaysThatItIsOne)
{
    IIdentityLayer* l =
        m.network->addIdentity(*m.add(m.input("x", {2, 8}, DataType::kINT32), m.input("z", {2, 8}, DataType::kINT32)));
    l->setName("to_float");
    l->setOutputType(0, DataType::kFLOAT);
    m.output(m.network->addSoftMax(*l->getOutput(0))->getOutput(0), "y");
    Json const j = only("Reformat", {{"Name", "to_float"}, {"Origin", "IDENTITY"}});
    EXPECT_EQ(j["LayerType"], "Reformat");
}

TEST_F(Inspected, Pooling)
{
    IPoolingLayer* p = m.network->addPoolingNd(*m.input("x", {1, 4, 9, 9}), PoolingType::kAVERAGE, Dims2(3, 2));
    p->setStrideNd(Dims2(2, 2));
    p->setPaddingNd(Dims2(1, 0));
    p->setAverageCountExcludesPadding(false);
    m.output(p->getOutput(0), "y");
    only("Pooling", {{"PoolingType", "AVERAGE"},
                     {"WindowSize", {3, 2}},
                     {"Stride", {2, 2}},
                     {"PrePadding", {1, 0}},
                     {"PostPadding", {1, 0}},
                     {"PaddingMode", "kEXPLICIT_ROUND_DOWN"},
                     {"BlendFactor", 0.0},
                     {"AverageCountExcludesPadding", 0}});
}

TEST_F(Inspected, Shuffle)
{
    IShuffleLayer* s = m.network->addShuffle(*m.input("x", {2, 3, 4}));
    s->setFirstTranspose(Permutation{{2, 0, 1}});
    s->setReshapeDimensions(dims({4, 6}));
    m.output(s->getOutput(0), "y");
    Json const l = only("Shuffle", {{"FirstTranspose", {2, 0, 1}}, {"Reshape", {4, 6}}, {"SecondTranspose", {0, 1}}});
    EXPECT_EQ(l["LayerType"], "Shuffle");
    EXPECT_EQ(l["ZeroIsPlaceholder"], 1);
}

TEST_F(Inspected, TransposeAlone)
{
    IShuffleLayer* s = m.network->addShuffle(*m.input("x", {2, 3, 4}));
    s->setFirstTranspose(Permutation{{2, 0, 1}});
    m.output(s->getOutput(0), "y");
    only("Shuffle", {{"Reshape", "nbDims=-1"}});
}

TEST_F(Inspected, WhatNoKernelRunsForIsNoOp)
{
    IShuffleLayer* s = m.network->addShuffle(*m.relu(m.input("x", {2, 3, 4})));
    s->setReshapeDimensions(dims({6, 4}));
    ISoftMaxLayer* soft = m.network->addSoftMax(*s->getOutput(0));
    soft->setAxes(2);
    m.output(soft->getOutput(0), "y");
    Json const all = layers();
    int views = 0;
    for (Json const& l : all)
        if (l["Op"] == "shuffle") {
            ++views;
            EXPECT_EQ(l["LayerType"], "NoOp") << l.dump(1);
            EXPECT_FALSE(l.contains("Reshape"));
        }
    EXPECT_EQ(views, 1) << all.dump(1);
}

TEST_F(Inspected, Slice)
{
    ISliceLayer* s = m.network->addSlice(*m.input("x", {4, 9}), dims({1, 8}), dims({2, 3}), dims({1, -2}));
    m.output(s->getOutput(0), "y");
    only("Slice", {{"Start", {1, 8}},
                   {"Size", {2, 3}},
                   {"Stride", {1, -2}},
                   {"Mode", "kSTRICT_BOUNDS"},
                   {"negativeInfinityPadding", 0}});
}

TEST_F(Inspected, SoftMax)
{
    ISoftMaxLayer* s = m.network->addSoftMax(*m.input("x", {2, 5, 7}));
    s->setAxes(4);
    m.output(s->getOutput(0), "y");
    Json const l = only("SoftMax", {{"Axes", 4}, {"HasLog", 0}});
    EXPECT_EQ(l["LayerType"], "CudaSoftMax");
}

TEST_F(Inspected, Scale)
{
    IScaleLayer* s = m.network->addScale(*m.input("x", {1, 3, 4, 4}), ScaleMode::kCHANNEL, weights(3), weights(3),
                                         {DataType::kFLOAT, &numbers[2002], 3}); // 2, 3 and 4
    m.output(s->getOutput(0), "y");
    Json const three{{"Type", "Float"}, {"Count", 3}};
    only("Scale", {{"Mode", "CHANNEL"},
                   {"Shift", three},
                   {"Scale", three},
                   {"Power", three},
                   {"Activation", "NONE"},
                   {"ChannelAxis", 1}});
}

TEST_F(Inspected, Resize)
{
    IResizeLayer* r = m.network->addResize(*m.input("x", {1, 3, 4, 4}));
    float const scales[] = {1, 1, 2, 1.5F};
    r->setScales(scales, 4);
    r->setResizeMode(ResizeMode::kLINEAR);
    r->setCoordinateTransformation(ResizeCoordinateTransformation::kHALF_PIXEL);
    m.output(r->getOutput(0), "y");
    only("Resize", {{"ResizeMode", "kLINEAR"},
                    {"ResizeScales", {1.0, 1.0, 2.0, 1.5}},
                    {"NNRounding", "kFLOOR"},
                    {"CoordTransform", "kHALF_PIXEL"},
                    {"ResizeSelector", "kFORMULA"},
                    {"Start", {0, 0, 0, 0}}});
}

TEST_F(Inspected, PointWise)
{
    ITensor *a = m.input("a", {4, 9}), *b = m.input("b", {4, 9});
    ITensor* sum = m.add(a, m.network->addUnary(*b, UnaryOperation::kEXP)->getOutput(0));
    m.output(m.network->addActivation(*sum, ActivationType::kSIGMOID)->getOutput(0), "y");
    Json const l = only("PointWise", {{"NbInputArgs", 2}, {"NbOutputVars", 1}, {"NbOperations", 3}, {"NbLiterals", 0}});
    EXPECT_EQ(l["LayerType"], "PointWiseV2");
    std::string const all = l["Operations"].dump();
    for (char const* step : {"const auto v0 = Exp(arg", "Sum(arg", "const auto v2 = Sigmoid(v1)"})
        EXPECT_TRUE(contains(all, step)) << step << " in " << all;
    EXPECT_EQ(l["OutputVars"], (Json{"v2"}));
}

TEST_F(Inspected, ElementWise)
{
    m.output(m.add(m.input("a", {4, 9}, DataType::kINT32), m.input("b", {4, 9}, DataType::kINT32)), "y");
    only("ElementWise", {{"LayerType", "ElementWise"}, {"Operation", "Sum"}});
}

TEST_F(Inspected, MatrixMultiply)
{
    ITensor* x = m.network
                     ->addMatrixMultiply(*m.input("a", {4, 9}), MatrixOperation::kNONE, *m.input("b", {7, 9}),
                                         MatrixOperation::kTRANSPOSE)
                     ->getOutput(0);
    m.output(x, "y");
    Json const l = only("MatrixMultiply", {{"MatrixOpA", "kNONE"}, {"MatrixOpB", "kTRANSPOSE"}, {"HasBias", 0}});
    EXPECT_FALSE(l.contains("Weights"));
}

TEST_F(Inspected, ProductWithAConstant)
{
    ITensor* w = m.network->addConstant(dims({9, 7}), weights(63))->getOutput(0);
    ITensor* x = m.network->addMatrixMultiply(*m.input("a", {4, 9}), MatrixOperation::kNONE, *w, MatrixOperation::kNONE)
                     ->getOutput(0);
    m.output(m.relu(x), "y");
    only("MatrixMultiply", {{"Weights", {{"Type", "Float"}, {"Count", 63}}}, {"HasReLU", 1}});
}

// A convolution whose window is the whole input.
TEST_F(Inspected, FullyConnected)
{
    IFullyConnectedLayer* f = m.network->addFullyConnected(*m.input("x", {2, 3, 4, 5}), 7, weights(7 * 60), weights(7));
    m.output(f->getOutput(0), "y");
    Json const l = only("Convolution", {{"Kernel", {4, 5}},
                                        {"OutMaps", 7},
                                        {"Groups", 1},
                                        {"Weights", {{"Type", "Float"}, {"Count", 420}}},
                                        {"HasBias", 1}});
    EXPECT_EQ(l["Op"], "matrix_multiply");
}

TEST_F(Inspected, ReduceAndTopK)
{
    ITensor* x = m.input("x", {4, 9, 3});
    m.output(m.network->addReduce(*x, ReduceOperation::kAVG, 6, true)->getOutput(0), "y");
    m.output(m.network->addTopK(*x, TopKOperation::kMIN, 2, 2)->getOutput(0), "best");
    Json const all = layers();
    std::set<std::string> seen;
    for (Json const& l : all) {
        std::string const type = l.value("ParameterType", "");
        seen.insert(type);
        if (type == "Reduce") {
            EXPECT_TRUE(l["Operation"] == "kAVG" && l["Axes"] == 6 && l["KeepDimensions"] == 1) << l.dump(1);
        } else if (type == "TopK") {
            EXPECT_TRUE(l["Operation"] == "kMIN" && l["K"] == 2 && l["Axes"] == 2) << l.dump(1);
        }
    }
    EXPECT_TRUE(seen.count("Reduce") && seen.count("TopK")) << all.dump(1);
}

// Readers look the words up in a table.
TEST_F(Inspected, WordsForLinearTensors)
{
    struct Row
    {
        char const* name;
        DataType type;
        char const* words;
    };
    Row const table[] = {{"f", DataType::kFLOAT, "Row major linear FP32"},
                         {"i", DataType::kINT32, "Row major linear Int32"},
                         {"b", DataType::kBOOL, "Row major linear BOOL"}};
    for (auto const& row : table) {
        ITensor* x = m.input(row.name, {3, 5}, row.type);
        IShuffleLayer* s = m.network->addShuffle(*x);
        s->setFirstTranspose(Permutation{{1, 0}});
        m.output(s->getOutput(0), (std::string(row.name) + "_out").c_str());
    }
    Json const all = layers();
    for (auto const& row : table) {
        int found = 0;
        for (Json const& l : all)
            for (Json const& t : l["Inputs"])
                if (t["Name"] == row.name) {
                    ++found;
                    EXPECT_EQ(t["Format/Datatype"], row.words);
                }
        EXPECT_EQ(found, 1) << row.name;
    }
}

TEST_F(Inspected, OursFollowUnderOtherKeys)
{
    IConvolutionLayer* c =
        m.network->addConvolutionNd(*m.input("x", {1, 4, 9, 11}), 6, Dims2(3, 3), weights(6 * 36), none());
    c->setName("conv");
    m.output(c->getOutput(0), "y");
    Json const l = only("Convolution", Json::object());
    EXPECT_EQ(l["Op"], "convolution");
    EXPECT_EQ(l["Attributes"]["strides"], (Json{1, 1}));
    EXPECT_EQ(l["Constants"].size(), 1u);
    EXPECT_EQ(l["NetworkLayers"], (Json{"conv"}));
    EXPECT_FALSE(l.contains("Origin")) << "that is said of reformats";
}

} // namespace
