// SPDX-License-Identifier: Apache-2.0
// Types and formats that plugins take: conversions and reformats stand round them.
#include "engine/plugins.h"

namespace tw::test {

namespace {

// y = relu(plugin(x + x)) on [1, c, 2, 2].
template <class Plugin>
struct ImageNetwork : Maker
{
    ImageNetwork(Behaviour& b, int32_t channels, DataType type = DataType::kFLOAT)
    {
        ITensor* x = input("x", {1, channels, 2, 2}, type);
        ITensor* twice = add(x, x);
        Plugin plugin(b, 3);
        layer = network->addPluginV2(&twice, 1, plugin);
        layer->setName("custom");
        output(relu(layer->getOutput(0)), "y");
    }
    std::vector<float> results(int32_t channels)
    {
        std::unique_ptr<ICudaEngine> e(builder->buildEngineWithConfig(*network, *config));
        EXPECT_TRUE(e) << errors();
        if (!e)
            return {};
        Context const c = contextOf(*e);
        std::vector<float> x = ramp(size_t(channels) * 4), y(x.size());
        EXPECT_TRUE(c->setTensorAddress("x", x.data()) && c->setTensorAddress("y", y.data()) && c->enqueueV3(nullptr))
            << errors();
        return y;
    }
    IPluginV2Layer* layer = nullptr;
};

// What the plugin finds first in its memory, for a tensor of c channels and four pixels of 2 * (4 c + p) in the format.
std::vector<float> elementsIn(TensorFormat format, int channels)
{
    std::vector<float> out;
    auto value = [&](int c, int p) { return 2 * float(4 * c + p); };
    for (int i = 0; i < 4 * channels; ++i)
        if (format == TensorFormat::kHWC)
            out.push_back(value(i % channels, i / channels));
    for (int p = 0; p < 4 && format == TensorFormat::kCHW32; ++p)
        for (int c = 0; c < channels; ++c)
            out.push_back(value(c, p));
    return out;
}

template <class Plugin>
void expectFormat(TensorFormat format, int channels)
{
    Behaviour b;
    b.takes = [&](DataType t, TensorFormat f) { return t == DataType::kFLOAT && f == format; };
    int const stride = format == TensorFormat::kHWC ? channels : 32;
    std::vector<float> seen;
    b.run = [&](std::vector<Dims> const&, void const* const* in, void* const* out, void*, cudaStream_t) {
        seen.clear();
        for (int p = 0; p < 4; ++p)
            for (int c = 0; c < channels; ++c) {
                float const v = static_cast<float const*>(in[0])[p * stride + c];
                seen.push_back(v);
                static_cast<float*>(out[0])[p * stride + c] = v + 1;
            }
        return 0;
    };
    ImageNetwork<Plugin> m(b, channels);
    std::vector<float> const y = m.results(channels);
    EXPECT_EQ(seen, elementsIn(format, channels));
    for (size_t i = 0; i < y.size(); ++i)
        EXPECT_EQ(y[i], 2 * float(i) + 1);
}

TEST(PluginFormats, VectorFormatsStandBetweenReformats)
{
    for (TensorFormat const f : {TensorFormat::kHWC, TensorFormat::kCHW32})
        for (int const channels : {3, 32}) {
            SCOPED_TRACE(int(f) * 100 + channels);
            expectFormat<V2Plugin>(f, channels);
            expectFormat<ExtPlugin>(f, channels);
            expectFormat<IOExtPlugin>(f, channels);
            expectFormat<DynamicPlugin>(f, channels);
        }
}

TEST(PluginFormats, LinearIsTakenWhereItNeedsNoReformat)
{
    Behaviour b;
    b.takes = [&](DataType t, TensorFormat) { return t == DataType::kFLOAT; };
    ImageNetwork<DynamicPlugin> m(b, 5);
    std::vector<float> const y = m.results(5);
    ASSERT_EQ(y.size(), 20U);
    EXPECT_EQ(y[19], 114);
}

template <class Plugin>
void expectHalf()
{
    Behaviour b;
    b.takes = [](DataType t, TensorFormat f) { return t == DataType::kHALF && f == TensorFormat::kLINEAR; };
    b.run = [](std::vector<Dims> const&, void const* const* in, void* const* out, void*, cudaStream_t) {
        std::memcpy(out[0], in[0], 2 * 12); // halves
        return 0;
    };
    ImageNetwork<Plugin> m(b, 3);
    EXPECT_FALSE(m.plan());
    EXPECT_TRUE(contains(m.takeErrors(), "set BuilderFlag::kFP16"));
    m.config->setFlag(BuilderFlag::kFP16);
    std::vector<float> const y = m.results(3);
    for (size_t i = 0; i < y.size(); ++i)
        EXPECT_EQ(y[i], 2 * float(i));
}

TEST(PluginFormats, HalfNeedsPermission)
{
    expectHalf<V2Plugin>();
    expectHalf<ExtPlugin>();
    expectHalf<IOExtPlugin>();
    expectHalf<DynamicPlugin>();
}

TEST(PluginFormats, OutputsMayBeOfAnotherType)
{
    Behaviour b;
    b.outputType = int(DataType::kINT32);
    b.run = [](std::vector<Dims> const&, void const* const* in, void* const* out, void*, cudaStream_t) {
        for (int i = 0; i < 6; ++i)
            static_cast<int32_t*>(out[0])[i] = int32_t(static_cast<float const*>(in[0])[i]) + 1;
        return 0;
    };
    Maker m;
    ITensor* x = m.input("x", {2, 3});
    DynamicPlugin plugin(b, 1);
    IPluginV2Layer* layer = m.network->addPluginV2(&x, 1, plugin);
    EXPECT_EQ(layer->getOutput(0)->getType(), DataType::kINT32);
    m.output(layer->getOutput(0), "y");
    std::unique_ptr<ICudaEngine> e(m.builder->buildEngineWithConfig(*m.network, *m.config));
    ASSERT_TRUE(e) << m.errors();
    Context const c = contextOf(*e);
    std::vector<float> in = ramp(6);
    std::vector<int32_t> out(6);
    ASSERT_TRUE(c->setTensorAddress("x", in.data()) && c->setTensorAddress("y", out.data()) && c->enqueueV3(nullptr));
    EXPECT_EQ(out, (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
}

TEST(PluginFormats, WorkMayBePutOnTheStream)
{
    Behaviour b;
    b.run = [](std::vector<Dims> const&, void const* const* in, void* const* out, void*, cudaStream_t stream) {
        return int32_t(cudaMemcpyAsync(out[0], in[0], 12 * sizeof(float), cudaMemcpyDeviceToDevice, stream));
    };
    ImageNetwork<DynamicPlugin> m(b, 3);
    std::unique_ptr<ICudaEngine> e(m.builder->buildEngineWithConfig(*m.network, *m.config));
    ASSERT_TRUE(e) << m.errors();
    Context const c = contextOf(*e);
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    std::vector<float> x = ramp(12), y(12);
    ASSERT_TRUE(c->setTensorAddress("x", x.data()) && c->setTensorAddress("y", y.data()) && c->enqueueV3(stream));
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(y[11], 22);
    // Captured: at each launch of the graph.
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    ASSERT_TRUE(c->enqueueV3(stream)) << m.errors();
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    x[11] = 5;
    ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    EXPECT_EQ(y[11], 10);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
}

TEST(PluginFormats, OutputsAreNoShapeTensors)
{
    Behaviour b;
    b.outputType = int(DataType::kINT32);
    b.outputExprs = [](DimsExprs const*, int32_t, IExprBuilder& e) { return DimsExprs{1, {e.constant(2)}}; };
    Maker m;
    ITensor* x = m.input("x", {2, 3});
    DynamicPlugin plugin(b, 1);
    IPluginV2Layer* layer = m.network->addPluginV2(&x, 1, plugin);
    IShuffleLayer* shuffle = m.network->addShuffle(*x);
    shuffle->setInput(1, *layer->getOutput(0));
    m.output(shuffle->getOutput(0), "y");
    EXPECT_FALSE(m.plan());
    EXPECT_TRUE(contains(m.takeErrors(), "plugins cannot make shape tensors"));
}

} // namespace

} // namespace tw::test
