// SPDX-License-Identifier: Apache-2.0
// The safe runtime: the same numbers as the standard one, and its rules for arguments.
#include <limits>
#include <random>
#include <thread>

#include "safe/safe.h"

namespace tw::test {

namespace {

constexpr size_t kCount = 2 * 3 * 4 * 5;
using Counts = nvinfer1::safe::FloatingPointErrorInformation;

std::string planOf(EngineCapability capability, void (Maker::*make)() = &Maker::around)
{
    Maker m(capability);
    (m.*make)();
    std::string plan = m.plan();
    EXPECT_NE(plan, "") << m.errors();
    return plan;
}
std::string const& safePlan()
{
    static std::string const plan = planOf(EngineCapability::kSAFETY);
    return plan;
}

std::vector<float> numbers(unsigned seed)
{
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(0.5F, 2);
    std::vector<float> x(kCount);
    for (float& v : x)
        v = uniform(random);
    return x;
}

// An engine with a context, input and output memory.
struct Running : Safe
{
    std::unique_ptr<nvinfer1::safe::ICudaEngine> e = engine(safePlan());
    std::unique_ptr<nvinfer1::safe::IExecutionContext> context{e->createExecutionContext()};
    Memory x{kCount * sizeof(float)}, y{kCount * sizeof(float)};

    void setAddresses()
    {
        EXPECT_TRUE(context->setInputTensorAddress("x", x.data()));
        EXPECT_TRUE(context->setOutputTensorAddress("y", y.data()));
    }
    std::vector<float> run(std::vector<float> const& given)
    {
        x.put(given);
        setAddresses();
        EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.lastError();
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        return y.get<float>();
    }
    std::string lastError() const { return recorder.entries.empty() ? "" : recorder.entries.back().text; }
    // The last call reported one error, which says this.
    void told(std::string const& words)
    {
        EXPECT_NE(lastError().find(words), std::string::npos) << lastError();
        EXPECT_EQ(logger.lastError().find(words) != std::string::npos, true) << logger.lastError();
        recorder.clear();
    }
};

std::vector<float> byStandard(std::vector<float> const& given)
{
    KeepingLogger logger;
    std::string const plan = planOf(EngineCapability::kSTANDARD);
    std::unique_ptr<nvinfer1::IRuntime> const runtime(nvinfer1::createInferRuntime(logger));
    std::unique_ptr<nvinfer1::ICudaEngine> const e(runtime->deserializeCudaEngine(plan.data(), plan.size()));
    std::unique_ptr<nvinfer1::IExecutionContext> const context(e->createExecutionContext());
    Memory x(kCount * sizeof(float)), y(kCount * sizeof(float));
    x.put(given);
    context->setTensorAddress("x", x.data());
    context->setTensorAddress("y", y.data());
    EXPECT_TRUE(context->enqueueV3(nullptr));
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return y.get<float>();
}

} // namespace

TEST(SafeRuntime, GivesWhatTheStandardOneGives)
{
    Running r;
    std::vector<float> const x = numbers(1);
    std::vector<float> const y = r.run(x);
    for (size_t i = 0; i < kCount; ++i)
        EXPECT_NEAR(y[i], x[i], 4e-3F);
    EXPECT_EQ(y, byStandard(x));
    void* bindings[] = {r.x.data(), r.y.data()};
    r.y.put(std::vector<float>(kCount, 0));
    EXPECT_TRUE(r.context->enqueueV2(bindings, nullptr, nullptr));
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(r.y.get<float>(), y);
    EXPECT_TRUE(r.recorder.entries.empty()) << r.lastError();
}

TEST(SafeRuntime, TellsOfTensors)
{
    Running r;
    nvinfer1::safe::ICudaEngine& e = *r.e;
    ASSERT_EQ(e.getNbIOTensors(), 2);
    EXPECT_STREQ(e.getIOTensorName(0), "x");
    EXPECT_STREQ(e.getIOTensorName(1), "y");
    EXPECT_EQ(e.getTensorIOMode("x"), nvinfer1::TensorIOMode::kINPUT);
    EXPECT_EQ(e.getTensorIOMode("y"), nvinfer1::TensorIOMode::kOUTPUT);
    EXPECT_EQ(e.getTensorShape("y").nbDims, 4);
    EXPECT_EQ(e.getTensorShape("y").d[3], 5);
    EXPECT_EQ(e.getTensorDataType("x"), DataType::kFLOAT);
    EXPECT_EQ(e.getTensorFormat("x"), nvinfer1::TensorFormat::kLINEAR);
    EXPECT_EQ(e.getTensorComponentsPerElement("x"), -1);
    EXPECT_EQ(e.getTensorVectorizedDim("x"), -1);
    EXPECT_EQ(e.getNbBindings(), 2);
    EXPECT_EQ(e.getBindingIndex("y"), 1);
    EXPECT_STREQ(e.getBindingName(1), "y");
    EXPECT_TRUE(e.bindingIsInput(0));
    EXPECT_FALSE(e.bindingIsInput(1));
    EXPECT_EQ(e.getBindingDimensions(0).d[1], 3);
    EXPECT_EQ(r.context->getTensorStrides("x").d[0], 60);
    EXPECT_EQ(r.context->getStrides(1).d[1], 20);
    EXPECT_EQ(&r.context->getEngine(), &e);
    r.context->setName("one");
    EXPECT_STREQ(r.context->getName(), "one");
    EXPECT_TRUE(r.recorder.entries.empty()) << r.lastError();
}

TEST(SafeRuntime, RefusesNames)
{
    Running r;
    std::string const longName(1024, 'x');
    for (char const* name :
         {static_cast<char const*>(nullptr), "z", "", longName.c_str(), "tensorwright.floating_point_errors"}) {
        EXPECT_EQ(r.e->getTensorShape(name).nbDims, -1);
        EXPECT_EQ(r.e->getTensorIOMode(name), nvinfer1::TensorIOMode::kNONE);
        EXPECT_EQ(r.e->getTensorBytesPerComponent(name), -1);
        EXPECT_EQ(r.e->getTensorDataType(name), DataType::kFLOAT);
        EXPECT_EQ(r.e->getTensorFormat(name), nvinfer1::TensorFormat::kLINEAR);
        EXPECT_EQ(r.context->getTensorStrides(name).nbDims, -1);
        EXPECT_FALSE(r.context->setInputTensorAddress(name, r.x.data()));
        EXPECT_FALSE(r.context->setOutputTensorAddress(name, r.y.data()));
        EXPECT_EQ(r.context->getInputTensorAddress(name), nullptr);
        EXPECT_EQ(r.e->getBindingIndex(name), -1);
        EXPECT_EQ(r.recorder.entries.size(), 10U);
        r.recorder.clear();
    }
    EXPECT_EQ(r.e->getIOTensorName(2), nullptr);
    EXPECT_EQ(r.e->getIOTensorName(-1), nullptr);
    EXPECT_EQ(r.e->getBindingDimensions(2).nbDims, -1);
    r.told("binding 2 must be in 0..1");
    r.context->setName(nullptr);
    r.told("setName");
    EXPECT_FALSE(r.context->setInputTensorAddress("y", r.y.data()));
    r.told("'y' is an output");
    EXPECT_FALSE(r.context->setOutputTensorAddress("x", r.x.data()));
    r.told("'x' is an input");
    EXPECT_EQ(r.e->getTensorShape("z").nbDims, -1);
    r.told("the engine has no tensor 'z'; it has 'x', 'y'");
}

TEST(SafeRuntime, RefusesAddresses)
{
    Running r;
    EXPECT_FALSE(r.context->setInputTensorAddress("x", nullptr));
    r.told("the address is a null pointer");
    EXPECT_FALSE(r.context->setInputTensorAddress("x", static_cast<char*>(r.x.data()) + 128));
    r.told("no multiple of 256");
    EXPECT_FALSE(r.context->enqueueV3(nullptr));
    r.told("tensor 'x' has no address; call setInputTensorAddress()");
    EXPECT_TRUE(r.context->setInputTensorAddress("x", r.x.data()));
    EXPECT_FALSE(r.context->enqueueV3(nullptr));
    r.told("tensor 'y' has no address; call setOutputTensorAddress()");
    EXPECT_EQ(r.context->getInputTensorAddress("x"), r.x.data());
    EXPECT_EQ(r.context->getOutputTensorAddress("y"), nullptr);
    EXPECT_FALSE(r.context->enqueueV2(nullptr, nullptr, nullptr));
    r.told("the bindings are a null pointer");
    void* bindings[] = {r.x.data(), static_cast<char*>(r.y.data()) + 4};
    EXPECT_FALSE(r.context->enqueueV2(bindings, nullptr, nullptr));
    r.told("binding 1 ('y')");
}

TEST(SafeRuntime, NeedsARecorderAndASafetyEngine)
{
    Safe s;
    s.runtime->setErrorRecorder(nullptr);
    EXPECT_EQ(s.recorder.references, 0);
    EXPECT_EQ(s.engine(safePlan()), nullptr);
    EXPECT_NE(s.logger.lastError().find("no error recorder"), std::string::npos);
    s.runtime->setErrorRecorder(&s.recorder);
    EXPECT_EQ(s.runtime->getErrorRecorder(), &s.recorder);
    EXPECT_EQ(s.runtime->deserializeCudaEngine(nullptr, 10), nullptr);
    EXPECT_EQ(s.engine(""), nullptr);
    EXPECT_EQ(s.engine(planOf(EngineCapability::kSTANDARD)), nullptr);
    EXPECT_NE(s.recorder.entries.back().text.find("the engine was built with engine capability 0"), std::string::npos);
    {
        auto const e = s.engine(safePlan());
        ASSERT_NE(e, nullptr);
        EXPECT_EQ(e->getErrorRecorder(), &s.recorder);
    }
    std::unique_ptr<nvinfer1::IRuntime> const standard(nvinfer1::createInferRuntime(s.logger));
    EXPECT_EQ(standard->deserializeCudaEngine(safePlan().data(), safePlan().size()), nullptr);
    EXPECT_NE(s.logger.lastError().find("load it with nvinfer1::safe::createInferRuntime()"), std::string::npos);
    s.runtime.reset();
    EXPECT_EQ(s.recorder.references, 0);
}

TEST(SafeRuntime, RefusesDamagedEngines)
{
    Safe s;
    std::string plan = safePlan();
    for (size_t at = 0; at < plan.size(); ++at) { // each byte
        plan[at] = char(plan[at] ^ 0x55);
        EXPECT_EQ(s.engine(plan), nullptr) << "byte " << at;
        plan[at] = char(plan[at] ^ 0x55);
    }
    for (size_t length = 0; length < plan.size(); length += plan.size() / 400 + 1)
        EXPECT_EQ(s.engine(plan.substr(0, length)), nullptr) << "the first " << length << " bytes";
}

TEST(SafeRuntime, CountsWhatIsNoNumber)
{
    Running r;
    Memory counts(sizeof(Counts));
    auto* const buffer = static_cast<Counts*>(counts.data());
    r.run(numbers(2)); // nobody asks
    r.context->setErrorBuffer(buffer);
    EXPECT_EQ(r.context->getErrorBuffer(), buffer);
    r.run(numbers(3));
    EXPECT_EQ(counts.get<int32_t>(), (std::vector<int32_t>{0, 0}));
    std::vector<float> x = numbers(4);
    float const inf = std::numeric_limits<float>::infinity();
    x[0] = 0;              // 0 / 0
    x[1] = inf;            // infinite / infinite
    x[7] = x[119] = -0.0F; // NaN again
    r.run(x);
    EXPECT_EQ(counts.get<int32_t>(), (std::vector<int32_t>{4, 0}));
    r.run(x); // the application clears
    EXPECT_EQ(counts.get<int32_t>(), (std::vector<int32_t>{8, 0}));
    counts.put(std::vector<int32_t>{0, 0});
    r.context->setErrorBuffer(nullptr);
    EXPECT_EQ(r.context->getErrorBuffer(), nullptr);
    r.run(x);
    EXPECT_EQ(counts.get<int32_t>(), (std::vector<int32_t>{0, 0}));
    r.context->setErrorBuffer(reinterpret_cast<Counts*>(static_cast<char*>(counts.data()) + 2));
    r.told("no multiple of 4");
}

TEST(SafeRuntime, CountsInfinitiesOfEveryOutput)
{
    Maker m;
    ITensor& x = m.input({2, 3, 4, 5});
    m.output(*m.network->addUnary(x, nvinfer1::UnaryOperation::kRECIP)->getOutput(0), "y");
    ITensor& half = *m.network->addUnary(x, nvinfer1::UnaryOperation::kNEG)->getOutput(0);
    half.setType(DataType::kHALF);
    m.output(half, "z");
    std::string const plan = m.plan();
    ASSERT_NE(plan, "") << m.errors();
    Safe s;
    auto const e = s.engine(plan);
    ASSERT_NE(e, nullptr);
    std::unique_ptr<nvinfer1::safe::IExecutionContext> const context(e->createExecutionContext());
    Memory in(kCount * sizeof(float)), y(kCount * sizeof(float)), z(kCount * 2), counts(sizeof(Counts));
    std::vector<float> values(kCount, 2);
    values[3] = 0;     // 1 / 0
    values[5] = 70000; // infinite as FP16
    values[9] = std::numeric_limits<float>::quiet_NaN();
    in.put(values);
    context->setInputTensorAddress("x", in.data());
    context->setOutputTensorAddress("y", y.data());
    context->setOutputTensorAddress("z", z.data());
    context->setErrorBuffer(static_cast<Counts*>(counts.data()));
    ASSERT_TRUE(context->enqueueV3(nullptr)) << s.logger.lastError();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(counts.get<int32_t>(), (std::vector<int32_t>{2, 2}));
}

TEST(SafeRuntime, ContextsWithMemoryOfTheClient)
{
    Running r;
    std::unique_ptr<nvinfer1::safe::IExecutionContext> const bare(r.e->createExecutionContextWithoutDeviceMemory());
    ASSERT_NE(bare, nullptr);
    size_t const need = r.e->getDeviceMemorySize();
    Memory memory(need);
    if (need > 0) {
        bare->setDeviceMemory(nullptr);
        r.told("setDeviceMemory");
        bare->setDeviceMemory(static_cast<char*>(memory.data()) + 8);
        r.told("setDeviceMemory");
    }
    bare->setDeviceMemory(memory.data());
    std::vector<float> const x = numbers(5), right = r.run(x);
    r.y.put(std::vector<float>(kCount, 0));
    bare->setInputTensorAddress("x", r.x.data());
    bare->setOutputTensorAddress("y", r.y.data());
    EXPECT_TRUE(bare->enqueueV3(nullptr)) << r.lastError();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(r.y.get<float>(), right);
}

TEST(SafeRuntime, ContextsFromSeveralThreads)
{
    Running r;
    std::vector<float> const x = numbers(6), right = r.run(x);
    std::vector<std::thread> threads;
    std::vector<std::vector<float>> results(4);
    for (size_t i = 0; i < results.size(); ++i)
        threads.emplace_back([&, i] {
            std::unique_ptr<nvinfer1::safe::IExecutionContext> const own(r.e->createExecutionContext());
            Memory in(kCount * sizeof(float)), out(kCount * sizeof(float));
            in.put(x);
            own->setInputTensorAddress("x", in.data());
            own->setOutputTensorAddress("y", out.data());
            EXPECT_TRUE(own->enqueueV3(nullptr));
            EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
            results[i] = out.get<float>();
        });
    for (std::thread& t : threads)
        t.join();
    for (auto const& y : results)
        EXPECT_EQ(y, right);
}

TEST(SafeRuntime, Events)
{
    Running r;
    r.run(numbers(7));
    cudaEvent_t event{};
    ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
    EXPECT_TRUE(r.context->setInputConsumedEvent(event));
    EXPECT_EQ(r.context->getInputConsumedEvent(), event);
    cudaStream_t stream{};
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    EXPECT_TRUE(r.context->enqueueV3(stream));
    EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_TRUE(r.context->setInputConsumedEvent(nullptr));
    cudaEventDestroy(event);
    cudaStreamDestroy(stream);
}

} // namespace tw::test
