// SPDX-License-Identifier: Apache-2.0
// What an engine tells of its tensors, by name and by binding index, with one profile and with several.
#include "engine/engines.h"

using namespace tw::test;

namespace {

// y = relu(a + b), a: [-1,3], b: [1,3]; s: a shape tensor, the size of z, a corner of y.
struct TwoProfiles : testing::Test
{
    Maker m;
    std::unique_ptr<ICudaEngine> engine;
    void SetUp() override
    {
        ITensor* a = m.input("a", {-1, 4});
        ITensor* b = m.input("b", {1, 4});
        ITensor* s = m.input("s", {2}, DataType::kINT32);
        ITensor* y = m.relu(m.add(a, b));
        m.output(y, "y");
        ISliceLayer* corner = m.network->addSlice(*y, Dims2(0, 0), Dims2(1, 1), Dims2(1, 1));
        corner->setInput(2, *s);
        m.output(corner->getOutput(0), "z");
        m.profile({{"a", {1, 4}, {2, 4}, {4, 4}}}, {{"s", {1, 1}, {2, 2}, {4, 4}}});
        m.profile({{"a", {3, 4}, {6, 4}, {8, 4}}}, {{"s", {2, 2}, {6, 3}, {8, 4}}});
        engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        ASSERT_EQ(m.errors(), "");
    }
};

TEST_F(TwoProfiles, ByName)
{
    ASSERT_EQ(engine->getNbIOTensors(), 5);
    std::vector<std::string> names;
    for (int i = 0; i < 5; ++i)
        names.emplace_back(engine->getIOTensorName(i));
    EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "s", "y", "z"}));
    EXPECT_EQ(list(engine->getTensorShape("a")), (std::vector<int32_t>{-1, 4}));
    EXPECT_EQ(list(engine->getTensorShape("b")), (std::vector<int32_t>{1, 4}));
    EXPECT_EQ(list(engine->getTensorShape("s")), (std::vector<int32_t>{2}));
    EXPECT_EQ(list(engine->getTensorShape("y")), (std::vector<int32_t>{-1, 4}));
    EXPECT_EQ(list(engine->getTensorShape("z")), (std::vector<int32_t>{-1, -1}));
    EXPECT_EQ(engine->getTensorDataType("a"), DataType::kFLOAT);
    EXPECT_EQ(engine->getTensorDataType("s"), DataType::kINT32);
    EXPECT_EQ(engine->getTensorLocation("a"), TensorLocation::kDEVICE);
    EXPECT_EQ(engine->getTensorLocation("s"), TensorLocation::kHOST);
    EXPECT_TRUE(engine->isShapeInferenceIO("s"));
    EXPECT_FALSE(engine->isShapeInferenceIO("a"));
    EXPECT_EQ(engine->getTensorIOMode("a"), TensorIOMode::kINPUT);
    EXPECT_EQ(engine->getTensorIOMode("z"), TensorIOMode::kOUTPUT);
    EXPECT_EQ(engine->getTensorBytesPerComponent("a"), 4);
    EXPECT_EQ(engine->getTensorComponentsPerElement("a"), -1);
    EXPECT_EQ(engine->getTensorVectorizedDim("a"), -1);
    EXPECT_EQ(engine->getTensorFormat("a"), TensorFormat::kLINEAR);
    EXPECT_TRUE(contains(engine->getTensorFormatDesc("a"), "FP32"));
    EXPECT_EQ(list(engine->getProfileShape("a", 0, OptProfileSelector::kMAX)), (std::vector<int32_t>{4, 4}));
    EXPECT_EQ(list(engine->getProfileShape("a", 1, OptProfileSelector::kMIN)), (std::vector<int32_t>{3, 4}));
    EXPECT_EQ(list(engine->getProfileShape("a", 1, OptProfileSelector::kOPT)), (std::vector<int32_t>{6, 4}));
    EXPECT_EQ(list(engine->getProfileShape("b", 1, OptProfileSelector::kMIN)), (std::vector<int32_t>{1, 4}));
    EXPECT_EQ(m.errors(), "");
}

TEST_F(TwoProfiles, UnknownNames)
{
    for (char const* name : {"nobody", "a [profile 1]", "", static_cast<char const*>(nullptr)}) {
        EXPECT_EQ(engine->getTensorShape(name).nbDims, -1);
        EXPECT_TRUE(m.oneError("getTensorShape"));
        EXPECT_EQ(engine->getTensorDataType(name), DataType::kFLOAT);
        EXPECT_TRUE(m.oneError("getTensorDataType"));
        EXPECT_EQ(engine->getTensorLocation(name), TensorLocation::kDEVICE);
        EXPECT_TRUE(m.oneError("getTensorLocation"));
        EXPECT_FALSE(engine->isShapeInferenceIO(name));
        EXPECT_TRUE(m.oneError("isShapeInferenceIO"));
        EXPECT_EQ(engine->getTensorIOMode(name), TensorIOMode::kNONE);
        EXPECT_TRUE(m.oneError("getTensorIOMode"));
        EXPECT_EQ(engine->getTensorBytesPerComponent(name), -1);
        EXPECT_TRUE(m.oneError("getTensorBytesPerComponent"));
        EXPECT_EQ(engine->getTensorComponentsPerElement(name), -1);
        EXPECT_TRUE(m.oneError("getTensorComponentsPerElement"));
        EXPECT_EQ(engine->getTensorFormat(name), TensorFormat::kLINEAR);
        EXPECT_TRUE(m.oneError("getTensorFormat"));
        EXPECT_STREQ(engine->getTensorFormatDesc(name), "");
        EXPECT_TRUE(m.oneError("getTensorFormatDesc"));
        EXPECT_EQ(engine->getTensorVectorizedDim(name), -1);
        EXPECT_TRUE(m.oneError("getTensorVectorizedDim"));
        EXPECT_EQ(engine->getProfileShape(name, 0, OptProfileSelector::kMIN).nbDims, -1);
        EXPECT_TRUE(m.oneError("getProfileShape"));
    }
    EXPECT_EQ(engine->getIOTensorName(-1), nullptr);
    EXPECT_TRUE(m.oneError("-1"));
    EXPECT_EQ(engine->getIOTensorName(5), nullptr);
    EXPECT_TRUE(m.oneError("5"));
    EXPECT_EQ(engine->getProfileShape("a", 2, OptProfileSelector::kMIN).nbDims, -1);
    EXPECT_TRUE(m.oneError("profile 2"));
    EXPECT_EQ(engine->getProfileShape("a", -1, OptProfileSelector::kMIN).nbDims, -1);
    EXPECT_TRUE(m.oneError("profile -1"));
    EXPECT_EQ(engine->getProfileShape("y", 0, OptProfileSelector::kMIN).nbDims, -1);
    EXPECT_TRUE(m.oneError("'y' is no input"));
    EXPECT_EQ(engine->getProfileShape("a", 0, static_cast<OptProfileSelector>(3)).nbDims, -1);
    EXPECT_TRUE(m.oneError("selector 3"));
}

TEST_F(TwoProfiles, ByBinding)
{
    ASSERT_EQ(engine->getNbBindings(), 10);
    ASSERT_EQ(engine->getNbOptimizationProfiles(), 2);
    EXPECT_STREQ(engine->getBindingName(0), "a");
    EXPECT_STREQ(engine->getBindingName(5), "a [profile 1]");
    EXPECT_STREQ(engine->getBindingName(9), "z [profile 1]");
    EXPECT_EQ(engine->getBindingIndex("z"), 4);
    EXPECT_EQ(engine->getBindingIndex("z [profile 1]"), 9);
    EXPECT_EQ(engine->getBindingIndex("z [profile 0]"), -1);
    EXPECT_EQ(engine->getBindingIndex("z [profile 2]"), -1);
    EXPECT_EQ(engine->getBindingIndex(nullptr), -1);
    EXPECT_EQ(m.takeErrors(), "") << "programs look for names this way";
    for (int base : {0, 5}) {
        EXPECT_TRUE(engine->bindingIsInput(base));
        EXPECT_FALSE(engine->bindingIsInput(base + 3));
        EXPECT_EQ(list(engine->getBindingDimensions(base)), (std::vector<int32_t>{-1, 4}));
        EXPECT_EQ(engine->getBindingDataType(base + 2), DataType::kINT32);
        EXPECT_EQ(engine->getLocation(base + 2), TensorLocation::kHOST);
        EXPECT_EQ(engine->getBindingBytesPerComponent(base), 4);
        EXPECT_EQ(engine->getBindingComponentsPerElement(base), -1);
        EXPECT_EQ(engine->getBindingFormat(base), TensorFormat::kLINEAR);
        EXPECT_TRUE(contains(engine->getBindingFormatDesc(base + 2), "INT32"));
        EXPECT_EQ(engine->getBindingVectorizedDim(base), -1);
        EXPECT_TRUE(engine->isShapeBinding(base + 2));
        EXPECT_FALSE(engine->isShapeBinding(base));
        EXPECT_TRUE(engine->isExecutionBinding(base));
        EXPECT_FALSE(engine->isExecutionBinding(base + 2)) << "only shapes depend on it";
    }
    EXPECT_EQ(list(engine->getProfileDimensions(5, 1, OptProfileSelector::kMAX)), (std::vector<int32_t>{8, 4}));
    EXPECT_EQ(list(engine->getProfileDimensions(0, 1, OptProfileSelector::kMAX)), (std::vector<int32_t>{8, 4}));
    int32_t const* values = engine->getProfileShapeValues(1, 7, OptProfileSelector::kOPT);
    ASSERT_TRUE(values);
    EXPECT_EQ(values[0], 6);
    EXPECT_EQ(values[1], 3);
    EXPECT_EQ(m.takeErrors(), "");

    EXPECT_EQ(engine->getProfileDimensions(5, 0, OptProfileSelector::kMAX).nbDims, -1);
    EXPECT_TRUE(m.oneError("belongs to optimization profile 1"));
    EXPECT_EQ(engine->getProfileShapeValues(0, 0, OptProfileSelector::kMIN), nullptr);
    EXPECT_TRUE(m.oneError("'a' is no input shape tensor"));
    EXPECT_EQ(engine->getProfileShapeValues(3, 2, OptProfileSelector::kMIN), nullptr);
    EXPECT_TRUE(m.oneError("profile 3"));
    for (int bad : {-1, 10}) {
        std::string const text = "binding index " + std::to_string(bad);
        EXPECT_EQ(engine->getBindingName(bad), nullptr);
        EXPECT_TRUE(m.oneError(text.c_str()));
        EXPECT_FALSE(engine->bindingIsInput(bad));
        EXPECT_TRUE(m.oneError(text.c_str()));
        EXPECT_EQ(engine->getBindingDimensions(bad).nbDims, -1);
        EXPECT_TRUE(m.oneError(text.c_str()));
        EXPECT_EQ(engine->getBindingDataType(bad), DataType::kFLOAT);
        EXPECT_TRUE(m.oneError(text.c_str()));
        EXPECT_EQ(engine->getBindingBytesPerComponent(bad), -1);
        EXPECT_TRUE(m.oneError(text.c_str()));
        EXPECT_FALSE(engine->isShapeBinding(bad));
        EXPECT_TRUE(m.oneError(text.c_str()));
        EXPECT_EQ(engine->getProfileDimensions(bad, 0, OptProfileSelector::kMIN).nbDims, -1);
        EXPECT_TRUE(m.oneError(text.c_str()));
        EXPECT_EQ(engine->getProfileShapeValues(0, bad, OptProfileSelector::kMIN), nullptr);
        EXPECT_TRUE(m.oneError(text.c_str()));
    }
}

TEST_F(TwoProfiles, OfTheEngine)
{
    EXPECT_EQ(engine->getMaxBatchSize(), 1);
    EXPECT_FALSE(engine->hasImplicitBatchDimension());
    EXPECT_FALSE(engine->isRefittable());
    EXPECT_EQ(engine->getEngineCapability(), EngineCapability::kSTANDARD);
    EXPECT_EQ(engine->getProfilingVerbosity(), ProfilingVerbosity::kLAYER_NAMES_ONLY);
    EXPECT_GT(engine->getNbLayers(), 0);
    EXPECT_TRUE(engine->getName());
}

TEST(Serialize, GivesTheSameBytes)
{
    Maker m;
    m.output(m.relu(m.input("x", {2, 3})), "y");
    std::unique_ptr<IHostMemory> const plan = m.plan();
    ASSERT_TRUE(plan) << m.errors();
    std::unique_ptr<IRuntime> runtime(createInferRuntime(m.logger));
    // At an address that suits nothing.
    std::vector<char> odd(plan->size() + 1);
    std::memcpy(odd.data() + 1, plan->data(), plan->size());
    for (void const* at : {static_cast<void const*>(plan->data()), static_cast<void const*>(odd.data() + 1)}) {
        std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(at, plan->size()));
        ASSERT_TRUE(engine) << m.errors();
        std::unique_ptr<IHostMemory> again(engine->serialize());
        ASSERT_TRUE(again);
        ASSERT_EQ(again->size(), plan->size());
        EXPECT_EQ(std::memcmp(again->data(), plan->data(), plan->size()), 0);
    }
    std::unique_ptr<ICudaEngine> built(m.builder->buildEngineWithConfig(*m.network, *m.config));
    ASSERT_TRUE(built) << m.errors();
    std::unique_ptr<IHostMemory> third(built->serialize());
    ASSERT_TRUE(third);
    EXPECT_GT(third->size(), 0U);
}

} // namespace
