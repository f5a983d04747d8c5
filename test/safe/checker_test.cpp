// SPDX-License-Identifier: Apache-2.0
// Plugins of safety engines, their registry, and the consistency checker.
#include <atomic>

#include "safe/safe.h"

namespace tw::test {

namespace {

using nvinfer1::AsciiChar;
using nvinfer1::Dims;
using nvinfer1::PluginTensorDesc;

// y = x: an IPluginV2IOExt. Its state is a number of its creator's and how many bytes it copies.
class Copy final : public nvinfer1::IPluginV2IOExt
{
public:
    explicit Copy(int32_t state, size_t bytes = 0) : state_(state), bytes_(bytes) {}
    AsciiChar const* getPluginType() const noexcept override { return "SafeCopy"; }
    AsciiChar const* getPluginVersion() const noexcept override { return "1"; }
    int32_t getNbOutputs() const noexcept override { return 1; }
    Dims getOutputDimensions(int32_t, Dims const* in, int32_t) noexcept override { return *in; }
    int32_t initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    size_t getWorkspaceSize(int32_t) const noexcept override { return 0; }
    int32_t enqueue(int32_t batch, void const* const* in, void* const* out, void*,
                    cudaStream_t stream) noexcept override
    {
        return cudaMemcpyAsync(out[0], in[0], size_t(batch) * bytes_, cudaMemcpyDefault, stream) == cudaSuccess ? 0 : 1;
    }
    size_t getSerializationSize() const noexcept override { return sizeof state_ + sizeof bytes_; }
    void serialize(void* to) const noexcept override
    {
        std::memcpy(to, &state_, sizeof state_);
        std::memcpy(static_cast<char*>(to) + sizeof state_, &bytes_, sizeof bytes_);
    }
    void destroy() noexcept override { delete this; }
    nvinfer1::IPluginV2Ext* clone() const noexcept override { return new Copy(state_, bytes_); }
    void setPluginNamespace(AsciiChar const*) noexcept override {}
    AsciiChar const* getPluginNamespace() const noexcept override { return ""; }
    DataType getOutputDataType(int32_t, DataType const* types, int32_t) const noexcept override { return types[0]; }
    bool isOutputBroadcastAcrossBatch(int32_t, bool const*, int32_t) const noexcept override { return false; }
    bool canBroadcastInputAcrossBatch(int32_t) const noexcept override { return false; }
    void attachToContext(cudnnContext*, cublasContext*, nvinfer1::IGpuAllocator*) noexcept override {}
    void detachFromContext() noexcept override {}
    void configurePlugin(PluginTensorDesc const* in, int32_t, PluginTensorDesc const*, int32_t) noexcept override
    {
        bytes_ = sizeof(float);
        for (int32_t i = 0; i < in->dims.nbDims; ++i)
            bytes_ *= size_t(in->dims.d[i]);
    }
    bool supportsFormatCombination(int32_t at, PluginTensorDesc const* t, int32_t, int32_t) const noexcept override
    {
        return t[at].type == DataType::kFLOAT && t[at].format == nvinfer1::TensorFormat::kLINEAR;
    }

private:
    int32_t state_;
    size_t bytes_;
};

// A creator, of Checker's kind or not.
template <class Base>
class Creator : public Base
{
public:
    AsciiChar const* getPluginName() const noexcept override { return "SafeCopy"; }
    AsciiChar const* getPluginVersion() const noexcept override { return "1"; }
    nvinfer1::PluginFieldCollection const* getFieldNames() noexcept override { return &fields_; }
    nvinfer1::IPluginV2* createPlugin(AsciiChar const*, nvinfer1::PluginFieldCollection const*) noexcept override
    {
        return new Copy(7);
    }
    nvinfer1::IPluginV2* deserializePlugin(AsciiChar const*, void const* data, size_t size) noexcept override
    {
        int32_t state = 0;
        size_t bytes = 0;
        if (size != sizeof state + sizeof bytes)
            return nullptr;
        std::memcpy(&state, data, sizeof state);
        std::memcpy(&bytes, static_cast<char const*>(data) + sizeof state, sizeof bytes);
        return new Copy(state, bytes);
    }
    void setPluginNamespace(AsciiChar const*) noexcept override {}
    AsciiChar const* getPluginNamespace() const noexcept override { return ""; }

private:
    nvinfer1::PluginFieldCollection fields_{0, nullptr};
};

class PluginChecker final : public Creator<nvinfer1::consistency::IPluginChecker>
{
public:
    bool validate(char const* name, void const* data, size_t size, PluginTensorDesc const* in, size_t nbIn,
                  PluginTensorDesc const* out, size_t nbOut, int64_t workspace) const noexcept override
    {
        int32_t state = 0;
        std::memcpy(&state, data, std::min(size, sizeof state));
        ++asked;
        isAsItWas = std::string(name) == "copy" && size == 12 && state == 7 && nbIn == 1 && nbOut == 1 &&
                    workspace == 0 && in->type == DataType::kFLOAT && out->dims.nbDims == in->dims.nbDims &&
                    in->dims.d[in->dims.nbDims - 1] == 5;
        return answer;
    }
    bool answer = true;
    mutable std::atomic<int> asked{0};
    mutable std::atomic<bool> isAsItWas{false};
};

// Registered while it lives.
template <class T>
struct Registered
{
    Registered() { EXPECT_TRUE(nvinfer1::safe::getSafePluginRegistry()->registerCreator(creator, "")); }
    ~Registered() { nvinfer1::safe::getSafePluginRegistry()->deregisterCreator(creator); }
    T creator;
};

std::string planWithPlugin()
{
    Maker m;
    ITensor* x = &m.input({2, 3, 4, 5});
    Copy plugin(7);
    nvinfer1::IPluginV2Layer* layer = m.network->addPluginV2(&x, 1, plugin);
    layer->setName("copy");
    m.output(*layer->getOutput(0));
    std::string plan = m.plan();
    EXPECT_NE(plan, "") << m.errors();
    return plan;
}

std::string planWithout(EngineCapability capability)
{
    Maker m(capability);
    m.around();
    return m.plan();
}

bool isConsistent(std::string const& plan, KeepingLogger& logger)
{
    std::unique_ptr<nvinfer1::consistency::IConsistencyChecker> const checker(
        nvinfer1::consistency::createConsistencyChecker(logger, plan.data(), plan.size()));
    return checker && checker->validate();
}

} // namespace

TEST(SafePlugins, RunWhenTheyAreRegisteredThere)
{
    std::string const plan = planWithPlugin();
    Safe s;
    EXPECT_EQ(s.engine(plan), nullptr);
    EXPECT_NE(
        s.logger.lastError().find("Plugin SafeCopy version 1 for layer 'copy' of the engine: register its creator with "
                                  "nvinfer1::safe::getSafePluginRegistry()"),
        std::string::npos)
        << s.logger.lastError();
    Creator<nvinfer1::IPluginCreator> elsewhere;
    ASSERT_TRUE(getPluginRegistry()->registerCreator(elsewhere, ""));
    EXPECT_EQ(s.engine(plan), nullptr); // that of standard engines
    getPluginRegistry()->deregisterCreator(elsewhere);

    Registered<Creator<nvinfer1::IPluginCreator>> const here;
    EXPECT_EQ(nvinfer1::getBuilderPluginRegistry(EngineCapability::kSAFETY), nvinfer1::safe::getSafePluginRegistry());
    EXPECT_EQ(getPluginRegistry()->getPluginCreator("SafeCopy", "1", ""), nullptr);
    auto const e = s.engine(plan);
    ASSERT_NE(e, nullptr) << s.logger.lastError();
    std::unique_ptr<nvinfer1::safe::IExecutionContext> const context(e->createExecutionContext());
    Memory x(480), y(480);
    std::vector<float> values(120);
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = float(i) - 50;
    x.put(values);
    context->setInputTensorAddress("x", x.data());
    context->setOutputTensorAddress("y", y.data());
    EXPECT_TRUE(context->enqueueV3(nullptr)) << s.logger.lastError();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(y.get<float>(), values);
}

TEST(ConsistencyChecker, TakesSafetyEnginesAlone)
{
    KeepingLogger logger;
    EXPECT_TRUE(isConsistent(planWithout(EngineCapability::kSAFETY), logger)) << logger.lastError();
    EXPECT_EQ(logger.errors(), 0);
    EXPECT_FALSE(isConsistent(planWithout(EngineCapability::kSTANDARD), logger));
    EXPECT_NE(logger.lastError().find("EngineCapability::kSAFETY alone"), std::string::npos);
    EXPECT_FALSE(isConsistent("", logger));
    EXPECT_FALSE(isConsistent("an engine it is not", logger));
    std::string const plan = planWithout(EngineCapability::kSAFETY);
    EXPECT_EQ(createConsistencyChecker_INTERNAL(&logger, plan.data(), plan.size(), 8400), nullptr);
    EXPECT_NE(logger.lastError().find("headers of version 8400"), std::string::npos);
    EXPECT_EQ(createConsistencyChecker_INTERNAL(nullptr, plan.data(), plan.size(), NV_TENSORRT_VERSION), nullptr);
}

TEST(ConsistencyChecker, FindsDamage)
{
    KeepingLogger logger;
    std::string plan = planWithout(EngineCapability::kSAFETY);
    size_t const step = std::max<size_t>(plan.size() / 300, 1);
    for (size_t at = 1; at < plan.size(); at += step) {
        plan[at] = char(plan[at] ^ 0x10);
        EXPECT_FALSE(isConsistent(plan, logger)) << "byte " << at;
        plan[at] = char(plan[at] ^ 0x10);
    }
    EXPECT_TRUE(isConsistent(plan, logger));
}

TEST(ConsistencyChecker, AsksTheCheckersOfPlugins)
{
    std::string const plan = planWithPlugin();
    KeepingLogger logger;
    EXPECT_FALSE(isConsistent(plan, logger)); // nobody knows the plugin
    {
        Registered<Creator<nvinfer1::IPluginCreator>> const plain;
        EXPECT_FALSE(isConsistent(plan, logger));
        EXPECT_NE(logger.lastError().find("is no IPluginChecker"), std::string::npos) << logger.lastError();
    }
    Registered<PluginChecker> checker;
    EXPECT_TRUE(isConsistent(plan, logger)) << logger.lastError();
    EXPECT_EQ(checker.creator.asked, 1);
    EXPECT_TRUE(checker.creator.isAsItWas);
    checker.creator.answer = false;
    EXPECT_FALSE(isConsistent(plan, logger));
    EXPECT_NE(logger.lastError().find("IPluginChecker::validate() says no"), std::string::npos);
    Safe s; // running asks nobody
    EXPECT_NE(s.engine(plan), nullptr);
}

TEST(SafePlugins, OfOtherInterfacesAreRefused)
{
    // One that stands for its kind: the standard plugins are layers here, whatever their interface is.
    class OfExt final : public nvinfer1::IPluginV2Ext
    {
    public:
        AsciiChar const* getPluginType() const noexcept override { return "OfExt"; }
        AsciiChar const* getPluginVersion() const noexcept override { return "1"; }
        int32_t getNbOutputs() const noexcept override { return 1; }
        Dims getOutputDimensions(int32_t, Dims const* in, int32_t) noexcept override { return *in; }
        int32_t initialize() noexcept override { return 0; }
        void terminate() noexcept override {}
        size_t getWorkspaceSize(int32_t) const noexcept override { return 0; }
        int32_t enqueue(int32_t, void const* const*, void* const*, void*, cudaStream_t) noexcept override { return 1; }
        size_t getSerializationSize() const noexcept override { return 0; }
        void serialize(void*) const noexcept override {}
        void destroy() noexcept override { delete this; }
        nvinfer1::IPluginV2Ext* clone() const noexcept override { return new OfExt; }
        void setPluginNamespace(AsciiChar const*) noexcept override {}
        AsciiChar const* getPluginNamespace() const noexcept override { return ""; }
        DataType getOutputDataType(int32_t, DataType const* types, int32_t) const noexcept override { return types[0]; }
        bool isOutputBroadcastAcrossBatch(int32_t, bool const*, int32_t) const noexcept override { return false; }
        bool canBroadcastInputAcrossBatch(int32_t) const noexcept override { return false; }
        bool supportsFormat(DataType, nvinfer1::PluginFormat) const noexcept override { return true; }
        void configurePlugin(Dims const*, int32_t, Dims const*, int32_t, DataType const*, DataType const*, bool const*,
                             bool const*, nvinfer1::PluginFormat, int32_t) noexcept override
        {}
    } plugin;
    Maker m;
    ITensor* x = &m.input({2, 3, 4, 5});
    nvinfer1::IPluginV2Layer* layer = m.network->addPluginV2(&x, 1, plugin);
    layer->setName("ext");
    m.output(*layer->getOutput(0));
    EXPECT_EQ(m.plan(), "");
    EXPECT_NE(
        m.errors().find(
            "layer 'ext' (PluginV2) is not supported in safety restricted mode: its plugin must be an IPluginV2IOExt"),
        std::string::npos)
        << m.errors();
}

} // namespace tw::test
