// SPDX-License-Identifier: Apache-2.0
// All standard plugins as a program uses them without a network: it asks for sizes and types, configures, and calls
// enqueue(). The same comes out as in a network, and nothing is written beside it.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include "NvInferPlugin.h"
#include "api/client.h"
#include "plugin/plugin_ptr.h"
#include "support/plugin_samples.h"

using namespace nvinfer1;
using namespace tw::test;

namespace {

// Memory of a tensor between guards.
class Memory
{
public:
    Memory(DataType type, Dims const& shape) : type_(type), shape_(shape), count_(1)
    {
        for (int32_t i = 0; i < shape.nbDims; ++i)
            count_ *= size_t(shape.d[i]);
        bytes_.assign(count_ * elementBytes() + 2 * kGuard, kMark);
    }
    DataType type() const { return type_; }
    Dims const& shape() const { return shape_; }
    size_t count() const { return count_; }
    void* data() { return bytes_.data() + kGuard; }
    void const* data() const { return bytes_.data() + kGuard; }
    double get(size_t i) const
    {
        return type_ == DataType::kFLOAT  ? double(static_cast<float const*>(data())[i])
               : type_ == DataType::kHALF ? double(float(static_cast<__half const*>(data())[i]))
                                          : double(static_cast<int32_t const*>(data())[i]);
    }
    void set(size_t i, double v)
    {
        if (type_ == DataType::kFLOAT)
            static_cast<float*>(data())[i] = float(v);
        else if (type_ == DataType::kHALF)
            static_cast<__half*>(data())[i] = __half(float(v));
        else
            static_cast<int32_t*>(data())[i] = int32_t(v);
    }
    bool isGuarded() const
    {
        auto const isMark = [](char c) { return c == kMark; };
        return std::all_of(bytes_.begin(), bytes_.begin() + kGuard, isMark) &&
               std::all_of(bytes_.end() - kGuard, bytes_.end(), isMark);
    }

private:
    static constexpr std::ptrdiff_t kGuard = 64;
    static constexpr char kMark = 0x5a;
    size_t elementBytes() const { return type_ == DataType::kHALF ? 2 : 4; }

    DataType type_;
    Dims shape_;
    size_t count_;
    std::vector<char> bytes_;
};

std::vector<Memory> memoryOf(std::vector<SampleInput> const& inputs, DataType floating)
{
    std::vector<Memory> memory;
    for (SampleInput const& in : inputs) {
        DataType const type = in.letter == 't' ? floating : in.letter == 'f' ? DataType::kFLOAT : DataType::kINT32;
        memory.emplace_back(type, dims(in.shape));
        for (size_t i = 0; i < in.values.size(); ++i)
            memory.back().set(i, in.values[i]);
    }
    return memory;
}

// What a network of the plugin gives.
std::vector<Memory> runInNetwork(KeepingLogger& logger, IPluginV2& plugin, std::vector<Memory>& inputs)
{
    std::unique_ptr<IBuilder> const builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> const network(builder->createNetworkV2(1));
    std::unique_ptr<IBuilderConfig> const config(builder->createBuilderConfig());
    if (std::ranges::any_of(inputs, [](Memory const& m) { return m.type() == DataType::kHALF; }))
        config->setFlag(BuilderFlag::kFP16);
    std::vector<ITensor*> tensors;
    auto const nameOf = [](char letter, size_t i) { return letter + std::to_string(i); };
    for (size_t i = 0; i < inputs.size(); ++i)
        tensors.push_back(network->addInput(nameOf('x', i).c_str(), inputs[i].type(), inputs[i].shape()));
    IPluginV2Layer* const layer = network->addPluginV2(tensors.data(), int32_t(tensors.size()), plugin);
    std::vector<Memory> outputs;
    for (int32_t i = 0; i < layer->getNbOutputs(); ++i) {
        layer->getOutput(i)->setName(nameOf('y', size_t(i)).c_str());
        network->markOutput(*layer->getOutput(i));
    }
    std::unique_ptr<IHostMemory> const plan(builder->buildSerializedNetwork(*network, *config));
    if (!plan)
        return outputs;
    std::unique_ptr<IRuntime> const runtime(createInferRuntime(logger));
    std::unique_ptr<ICudaEngine> const engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    std::unique_ptr<IExecutionContext> const context(engine->createExecutionContext());
    for (size_t i = 0; i < inputs.size(); ++i)
        context->setTensorAddress(nameOf('x', i).c_str(), inputs[i].data());
    for (int32_t i = 0; i < plugin.getNbOutputs(); ++i) {
        std::string const name = nameOf('y', size_t(i));
        outputs.emplace_back(engine->getTensorDataType(name.c_str()), engine->getTensorShape(name.c_str()));
    }
    for (size_t i = 0; i < outputs.size(); ++i)
        context->setTensorAddress(nameOf('y', i).c_str(), outputs[i].data());
    EXPECT_TRUE(context->enqueueV3(nullptr));
    return outputs;
}

Dims withoutBatch(Dims const& d)
{
    return dims({d.d + 1, d.d + d.nbDims});
}

PluginTensorDesc descOf(Memory const& m, bool hasBatch)
{
    return {hasBatch ? m.shape() : withoutBatch(m.shape()), m.type(), PluginFormat::kLINEAR, 1};
}

// Runs the plugin as its interface has it; `like`: outputs as the network has them.
class Direct
{
public:
    Direct(IPluginV2& plugin, std::vector<Memory> const& inputs, std::vector<Memory> const& like)
        : plugin_(plugin), inputs_(inputs)
    {
        for (Memory const& m : like)
            outputs.emplace_back(m.type(), m.shape());
        for (Memory const& m : inputs) {
            from_.push_back(m.data());
            types_.push_back(m.type());
        }
        for (Memory& m : outputs)
            to_.push_back(m.data());
    }
    // The version of the interface stands above that of the API.
    void run(int32_t batch)
    {
        switch (plugin_.getTensorRTVersion() >> 24) {
        case 0: // V2
            for (Memory const& m : inputs_)
                EXPECT_TRUE(plugin_.supportsFormat(m.type(), PluginFormat::kLINEAR));
            checkSizes();
            plugin_.configureWithFormat(of(inputs_).data(), int32_t(inputs_.size()), of(outputs).data(),
                                        int32_t(outputs.size()), types_[0], PluginFormat::kLINEAR, batch);
            return enqueue(batch);
        case 1: { // Ext
            auto& p = static_cast<IPluginV2Ext&>(plugin_);
            for (Memory const& m : inputs_)
                EXPECT_TRUE(p.supportsFormat(m.type(), PluginFormat::kLINEAR));
            checkSizes();
            checkTypes(p);
            std::vector<DataType> types;
            for (Memory const& m : outputs)
                types.push_back(m.type());
            bool const isOne[16] = {};
            p.configurePlugin(of(inputs_).data(), int32_t(inputs_.size()), of(outputs).data(), int32_t(outputs.size()),
                              types_.data(), types.data(), isOne, isOne, PluginFormat::kLINEAR, batch);
            return enqueue(batch);
        }
        case 2: { // IOExt
            auto& p = static_cast<IPluginV2IOExt&>(plugin_);
            checkSizes();
            checkTypes(p);
            auto const all = descs(false);
            for (size_t i = 0; i < all.size(); ++i)
                EXPECT_TRUE(p.supportsFormatCombination(int32_t(i), all.data(), int32_t(inputs_.size()),
                                                        int32_t(outputs.size())))
                    << i;
            p.configurePlugin(all.data(), int32_t(inputs_.size()), all.data() + inputs_.size(),
                              int32_t(outputs.size()));
            return enqueue(batch);
        }
        default: { // DynamicExt
            auto& p = static_cast<IPluginV2DynamicExt&>(plugin_);
            checkTypes(p);
            auto const all = descs(true);
            std::vector<DynamicPluginTensorDesc> ranges;
            for (size_t i = 0; i < all.size(); ++i) {
                EXPECT_TRUE(p.supportsFormatCombination(int32_t(i), all.data(), int32_t(inputs_.size()),
                                                        int32_t(outputs.size())))
                    << i;
                ranges.push_back({all[i], all[i].dims, all[i].dims});
            }
            p.configurePlugin(ranges.data(), int32_t(inputs_.size()), ranges.data() + inputs_.size(),
                              int32_t(outputs.size()));
            EXPECT_EQ(p.getWorkspaceSize(all.data(), int32_t(inputs_.size()), all.data() + inputs_.size(),
                                         int32_t(outputs.size())),
                      0U);
            EXPECT_EQ(p.initialize(), 0);
            EXPECT_EQ(p.enqueue(all.data(), all.data() + inputs_.size(), from_.data(), to_.data(), nullptr, nullptr),
                      0);
            p.terminate();
        }
        }
    }
    std::vector<Memory> outputs;

private:
    static std::vector<Dims> of(std::vector<Memory> const& list)
    {
        std::vector<Dims> shapes;
        for (Memory const& m : list)
            shapes.push_back(withoutBatch(m.shape()));
        return shapes;
    }
    std::vector<PluginTensorDesc> descs(bool hasBatch) const
    {
        std::vector<PluginTensorDesc> all;
        for (auto const* list : {&inputs_, &outputs})
            for (Memory const& m : *list)
                all.push_back(descOf(m, hasBatch));
        return all;
    }
    void checkSizes()
    {
        auto const in = of(inputs_), out = of(outputs);
        ASSERT_EQ(plugin_.getNbOutputs(), int32_t(out.size()));
        for (size_t i = 0; i < out.size(); ++i) {
            Dims const d = plugin_.getOutputDimensions(int32_t(i), in.data(), int32_t(in.size()));
            EXPECT_EQ(std::vector<int32_t>(d.d, d.d + std::max(d.nbDims, 0)),
                      std::vector<int32_t>(out[i].d, out[i].d + out[i].nbDims));
        }
    }
    void checkTypes(IPluginV2Ext const& p)
    {
        for (size_t i = 0; i < outputs.size(); ++i)
            EXPECT_EQ(p.getOutputDataType(int32_t(i), types_.data(), int32_t(types_.size())), outputs[i].type()) << i;
    }
    void enqueue(int32_t batch)
    {
        EXPECT_EQ(plugin_.initialize(), 0);
        EXPECT_EQ(plugin_.getWorkspaceSize(batch), 0U);
        EXPECT_EQ(plugin_.enqueue(batch, from_.data(), to_.data(), nullptr, nullptr), 0);
        plugin_.terminate();
    }

    IPluginV2& plugin_;
    std::vector<Memory> const& inputs_;
    std::vector<void const*> from_;
    std::vector<void*> to_;
    std::vector<DataType> types_;
};

// Of the first `images` of them the numbers are the same, and nothing stands beside them.
void expectSame(Memory const& got, Memory const& wanted, int32_t images, double tolerance)
{
    EXPECT_TRUE(got.isGuarded());
    size_t const count = wanted.count() / size_t(wanted.shape().d[0]) * size_t(images);
    int wrong = 0;
    std::string first;
    for (size_t i = 0; i < count; ++i) {
        double const a = got.get(i), b = wanted.get(i);
        if (a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(b)))
            continue;
        if (wrong++ == 0)
            first = "element " + std::to_string(i) + ": " + std::to_string(a) + ", not " + std::to_string(b);
    }
    EXPECT_EQ(wrong, 0) << "of " << count << "; " << first;
}

struct EnqueueOfAll : testing::TestWithParam<size_t>
{
    EnqueueOfAll() { EXPECT_TRUE(initLibNvInferPlugins(&logger, "")); }
    ~EnqueueOfAll() override { initLibNvInferPlugins(nullptr, ""); }
    KeepingLogger logger;
};

TEST_P(EnqueueOfAll, GivesWhatANetworkGives)
{
    PluginSample const& sample = pluginSamples()[GetParam()];
    IPluginCreator* const creator = getPluginRegistry()->getPluginCreator(sample.name, sample.version, "");
    ASSERT_NE(creator, nullptr);
    PluginPtr const plugin(makePlugin(*creator, fieldsOf(sample)));
    ASSERT_NE(plugin, nullptr) << logger.lastError();
    // As a plan would bring it.
    std::string bytes(plugin->getSerializationSize(), '\0');
    plugin->serialize(bytes.data());
    PluginPtr const read(creator->deserializePlugin("layer", bytes.data(), bytes.size())), copy(read->clone());
    bool const hasBatch = plugin->getTensorRTVersion() >> 24 < 3;
    auto const samples = inputsOf(sample, 3);
    for (DataType floating : {DataType::kFLOAT, DataType::kHALF}) {
        auto inputs = memoryOf(samples, floating);
        if (floating == DataType::kHALF &&
            std::none_of(samples.begin(), samples.end(), [](SampleInput const& in) { return in.letter == 't'; }))
            continue;
        auto const wanted = runInNetwork(logger, *plugin, inputs);
        ASSERT_FALSE(wanted.empty()) << logger.lastError();
        int32_t const batch = hasBatch ? wanted[0].shape().d[0] : 1;
        std::set<double> numbers;
        for (Memory const& m : wanted)
            for (size_t i = 0; i < m.count(); ++i)
                numbers.insert(m.get(i));
        EXPECT_GT(numbers.size(), 4U) << "a sample that gives nothing proves nothing";
        for (int32_t images : std::set<int32_t>{1, batch}) {
            Direct direct(*copy, inputs, wanted);
            direct.run(images);
            for (size_t i = 0; i < wanted.size(); ++i) {
                SCOPED_TRACE("output " + std::to_string(i) + ", batch " + std::to_string(images));
                int32_t const rows = hasBatch ? images : wanted[i].shape().d[0];
                expectSame(direct.outputs[i], wanted[i], rows, floating == DataType::kHALF ? 1e-2 : 1e-5);
            }
        }
    }
    EXPECT_EQ(logger.errors(), 0) << logger.lastError();
}

INSTANTIATE_TEST_SUITE_P(StandardPlugins, EnqueueOfAll, testing::Range<size_t>(0, pluginSamples().size()),
                         [](auto const& info) {
                             PluginSample const& s = pluginSamples()[info.param];
                             return std::string(s.name) + "_" + s.version;
                         });

// Rows of docs/plugins.md: plugin, versions, interface.
TEST(StandardPluginSamples, HaveTheInterfacesThatTheirTableSays)
{
    constexpr char const* kInterfaces[] = {"V2", "Ext", "IOExt", "DynamicExt"};
    EXPECT_TRUE(initLibNvInferPlugins(nullptr, ""));
    std::ifstream page(std::getenv("TW_PLUGIN_TABLE"));
    std::map<std::string, std::string> rows;
    for (std::string line; std::getline(page, line);) {
        std::istringstream in(line);
        std::string bar, name, cell, interface;
        in >> bar >> name >> bar;
        std::getline(in, cell, '|');
        if (in >> interface)
            rows[name] = interface;
    }
    for (PluginSample const& s : pluginSamples()) {
        IPluginCreator* const creator = getPluginRegistry()->getPluginCreator(s.name, s.version, "");
        PluginPtr const plugin(makePlugin(*creator, fieldsOf(s)));
        EXPECT_EQ(rows[s.name], kInterfaces[std::min(plugin->getTensorRTVersion() >> 24, 3)]) << s.name;
    }
}

TEST(StandardPluginSamples, AreAllOfThem)
{
    std::set<std::string> names;
    for (PluginSample const& s : pluginSamples())
        names.insert(std::string(s.name) + ' ' + s.version);
    EXPECT_EQ(names.size(), 61U + 5);
}

} // namespace
