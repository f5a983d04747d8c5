// SPDX-License-Identifier: Apache-2.0
// Standard plugins from untrusted bytes: fields, serialized plugins, shapes, and numbers at run time. Each is refused with a
// reason, or says what its outputs are, becomes a part of an engine, and runs; what stands in its outputs is then decided by
// its inputs alone.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>

#include "api/plugin/exprs.h"
#include "api/standard_plugins/standard_plugin.h"
#include "fuzz/random_network.h"
#include "support/plugin_samples.h"

namespace tw::fuzz {

namespace {

using namespace nvinfer1;
using nvinfer1::DataType; // not tw::DataType
using test::SampleField;
using test::SampleInput;

class Logger final : public ILogger
{
public:
    void log(Severity severity, char const* message) noexcept override
    {
        if (severity > Severity::kERROR)
            return;
        ++errors;
        last = message;
    }
    [[noreturn]] void finding(std::string const& what) const
    {
        std::fprintf(stderr, "finding: %s; last error: %s\n", what.c_str(), last.c_str());
        std::abort();
    }
    void expectError(char const* what) const
    {
        if (errors == 0)
            finding(std::string(what) + ", and no error");
    }
    int errors = 0;
    std::string last;
};

struct Destroy
{
    void operator()(IPluginV2* p) const { p->destroy(); }
};
using PluginPtr = std::unique_ptr<IPluginV2, Destroy>;

double hostileNumber(Bytes& bytes, double old)
{
    constexpr double kInf = std::numeric_limits<double>::infinity();
    double const numbers[] = {old + 1, old - 1,      2 * old, 0,         -1,        1,   2,     3,     7,    31,
                              4096,    65536,        1 << 24, INT32_MAX, INT32_MIN, 0.5, 1e-30, -1e30, 3e38, kInf,
                              -kInf,   std::nan(""), -0.0};
    return numbers[bytes.upTo(int(std::size(numbers)) - 1)];
}

int32_t toInteger(double v)
{
    return std::isnan(v) ? 0 : int32_t(std::clamp(v, double(INT32_MIN), double(INT32_MAX)));
}

// Fields as a client may give them, however wrong: what they say is there is there.
class Fields
{
public:
    Fields(std::vector<SampleField> fields, Bytes& bytes) : fields_(std::move(fields))
    {
        std::vector<int> how(fields_.size(), 0), more(fields_.size(), 0);
        for (int n = bytes.upTo(3); n > 0 && !fields_.empty(); --n) {
            size_t const i = size_t(bytes.upTo(int(fields_.size()) - 1));
            how[i] = bytes.upTo(9);
            more[i] = bytes.upTo(255);
            change(fields_[i], how[i], bytes);
        }
        for (size_t i = 0; i < fields_.size(); ++i) {
            PluginField f = fields_[i].field();
            if (how[i] == 5)
                continue; // is not there
            if (how[i] == 6)
                f.data = nullptr;
            if (how[i] == 7) { // the data are long enough for any type
                f.length = std::min(f.length, 1);
                f.type = PluginFieldType(more[i] % 12);
                if (f.length > 0 && (f.type == PluginFieldType::kDIMS || f.type == PluginFieldType::kUNKNOWN))
                    f.data = nullptr;
            }
            if (how[i] == 8)
                f.length = more[i] % 2 ? -more[i] : 0;
            if (how[i] == 9 && more[i] % 4 == 0)
                f.name = nullptr;
            list_.push_back(f);
            if (how[i] == 9)
                list_.push_back(f); // twice
        }
    }
    PluginFieldCollection collection() { return {int32_t(list_.size()), list_.empty() ? nullptr : list_.data()}; }
    std::vector<SampleField> const& fields() const { return fields_; }

private:
    void change(SampleField& f, int how, Bytes& bytes)
    {
        bool const isInteger = f.type == PluginFieldType::kINT32;
        size_t const count = isInteger ? f.integers.size() : f.floats.size();
        if (how <= 3 && count > 0) {
            size_t const i = size_t(bytes.upTo(255)) % count;
            if (isInteger)
                f.integers[i] = toInteger(hostileNumber(bytes, f.integers[i]));
            else
                f.floats[i] = float(hostileNumber(bytes, f.floats[i]));
        } else if (how == 4) {
            size_t const size = size_t(bytes.upTo(20));
            isInteger ? f.integers.resize(size, 1) : f.floats.resize(size, 1);
        }
    }

    std::vector<SampleField> fields_;
    std::vector<PluginField> list_;
};

// Bytes of a plugin, some of them others; what can be read is written the same.
PluginPtr readDamaged(Logger& logger, IPluginCreator& creator, IPluginV2 const& plugin, Bytes& bytes)
{
    std::string data(plugin.getSerializationSize(), '\0');
    plugin.serialize(data.data());
    PluginPtr whole(creator.deserializePlugin("layer", data.data(), data.size()));
    if (!whole)
        logger.finding("a plugin is not read from its own bytes");
    for (int n = bytes.upTo(4); n > 0 && !data.empty(); --n) {
        size_t const at = size_t(bytes.upTo(255) * 256 + bytes.upTo(255)) % data.size();
        data[at] = char(bytes.upTo(255));
    }
    if (bytes.upTo(7) == 1)
        data.resize(size_t(bytes.upTo(255)) % (data.size() + 9));
    logger.errors = 0;
    std::vector<char> const exact(data.begin(), data.end()); // nothing lies behind it
    PluginPtr read(creator.deserializePlugin("layer", exact.data(), exact.size()));
    if (!read) {
        logger.expectError("damaged bytes are refused");
        return whole;
    }
    std::string again(read->getSerializationSize(), '\0');
    read->serialize(again.data());
    PluginPtr const twice(creator.deserializePlugin("layer", again.data(), again.size()));
    if (!twice)
        logger.finding("a plugin that was read is not read again");
    return read;
}

void changeShapes(std::vector<SampleInput>& inputs, Bytes& bytes)
{
    for (int n = bytes.upTo(2); n > 0 && !inputs.empty(); --n) {
        size_t const i = size_t(bytes.upTo(int(inputs.size()) - 1));
        auto& shape = inputs[i].shape;
        int const how = bytes.upTo(9);
        size_t const d = shape.empty() ? 0 : size_t(bytes.upTo(7)) % shape.size();
        if (how <= 5 && !shape.empty())
            shape[d] = toInteger(hostileNumber(bytes, shape[d]));
        else if (how == 6 && shape.size() < 8)
            shape.insert(shape.begin() + std::ptrdiff_t(d), bytes.upTo(3));
        else if (how == 7 && !shape.empty())
            shape.erase(shape.begin() + std::ptrdiff_t(d));
        else if (how == 8)
            inputs.erase(inputs.begin() + std::ptrdiff_t(i));
        else if (how == 9)
            inputs.push_back(inputs[i]);
    }
    if (bytes.upTo(7) == 1) // another batch for all of them
        for (int const batch = bytes.upTo(4); SampleInput & in : inputs)
            if (!in.shape.empty())
                in.shape[0] = batch;
}

Dims dimsOf(std::vector<int32_t> const& shape, size_t from)
{
    Dims d{};
    for (size_t i = from; i < shape.size() && d.nbDims < Dims::MAX_DIMS; ++i)
        d.d[d.nbDims++] = shape[i];
    return d;
}

// -1: it has none.
int64_t volumeOf(Dims const& d)
{
    int64_t volume = d.nbDims < 0 ? -1 : 1;
    for (int32_t i = 0; i < d.nbDims; ++i) {
        if (d.d[i] < 0 || (d.d[i] > 0 && volume > (int64_t(1) << 40) / d.d[i]))
            return -1;
        volume *= d.d[i];
    }
    return volume;
}

struct Memory
{
    DataType type{};
    Dims shape{};
    std::vector<char> bytes;
    Memory(DataType t, Dims const& s) : type(t), shape(s), bytes(size_t(volumeOf(s)) * (t == DataType::kHALF ? 2 : 4))
    {}
};

// Numbers as they come, near those of the sample; or any bits; or whatever harms.
Memory numbersOf(SampleInput const& in, DataType type, Bytes& bytes)
{
    Memory m(type, dimsOf(in.shape, 0));
    int const how = bytes.upTo(3);
    std::mt19937 random(unsigned(bytes.upTo(255)));
    size_t const count = size_t(volumeOf(m.shape));
    for (size_t i = 0; i < count; ++i) {
        double v = in.values.empty() ? 0 : in.values[i % in.values.size()];
        if (how >= 2 && random() % (how == 2 ? 16 : 2) == 0) {
            constexpr double kHarm[] = {0, -1, INT32_MAX, INT32_MIN, 1e30, -1e30, HUGE_VAL, -HUGE_VAL, NAN, 1e-40};
            v = kHarm[random() % std::size(kHarm)];
        }
        auto const put = [&](auto value) { std::memcpy(m.bytes.data() + i * sizeof value, &value, sizeof value); };
        if (type == DataType::kINT32)
            put(how == 1 ? int32_t(random()) : toInteger(v));
        else if (type == DataType::kFLOAT)
            put(how == 1 ? uint32_t(random()) : std::bit_cast<uint32_t>(float(v)));
        else
            put(how == 1 ? uint16_t(random()) : floatToHalf(float(v)));
    }
    return m;
}

// What a client may ask a plugin before there is a network.
void ask(IPluginV2& plugin, api::StandardPlugin const& kind, std::vector<SampleInput> const& inputs, Bytes& bytes)
{
    using Interface = ops::plugin::Interface;
    int32_t const count = int32_t(inputs.size()), outputs = plugin.getNbOutputs(), number = bytes.upTo(3) - 1;
    std::vector<PluginTensorDesc> descs;
    std::vector<DataType> types;
    for (int32_t i = 0; i < count + outputs; ++i) {
        PluginTensorDesc d{};
        d.type = DataType(bytes.upTo(9) < 8 ? bytes.upTo(1) : bytes.upTo(5));
        d.format = TensorFormat(bytes.upTo(9) < 8 ? 0 : bytes.upTo(11));
        d.dims = i < count ? dimsOf(inputs[size_t(i)].shape, 0) : Dims{};
        descs.push_back(d);
        types.push_back(d.type);
    }
    std::vector<Dims> shapes;
    for (SampleInput const& in : inputs)
        shapes.push_back(dimsOf(in.shape, 1));
    if (kind.interface == Interface::kDynamicExt) {
        auto& p = static_cast<IPluginV2DynamicExt&>(plugin);
        api::ExprBuilder builder;
        std::vector<DimsExprs> exprs;
        for (SampleInput const& in : inputs) {
            DimsExprs e{};
            Dims const d = dimsOf(in.shape, 0);
            e.nbDims = d.nbDims;
            for (int32_t k = 0; k < d.nbDims; ++k)
                e.d[k] = builder.make(d.d[k] < 0 ? ir::Dim::symbol("N") : ir::Dim(d.d[k]));
            exprs.push_back(e);
        }
        p.getOutputDimensions(number, exprs.data(), count, builder);
        for (int32_t i = 0; i < count + outputs; ++i)
            p.supportsFormatCombination(i, descs.data(), count, outputs);
        p.getOutputDataType(number, types.data(), count);
        return;
    }
    plugin.getOutputDimensions(number, shapes.data(), count);
    if (kind.interface == Interface::kIOExt)
        for (int32_t i = 0; i < count + outputs; ++i)
            static_cast<IPluginV2IOExt&>(plugin).supportsFormatCombination(i, descs.data(), count, outputs);
    else
        for (PluginTensorDesc const& d : descs)
            plugin.supportsFormat(d.type, d.format);
    if (kind.interface != Interface::kV2)
        static_cast<IPluginV2Ext&>(plugin).getOutputDataType(number, types.data(), count);
}

constexpr int64_t kMostElements = 1 << 16; // of all inputs and outputs together; what is in between may be their square

// A network of the plugin, on inputs whose first dimension may be open; an engine of it is run twice.
class Network
{
public:
    Network(Logger& logger, IBuilder& builder, IPluginV2& plugin, std::vector<SampleInput> const& inputs, Bytes& bytes)
        : logger_(logger), builder_(builder), isHalf_(bytes.flip()), isOpen_(bytes.upTo(3) == 1),
          isImplicit_(bytes.upTo(3) == 1), network_(builder.createNetworkV2(isImplicit_ ? 0 : 1)), inputs_(inputs)
    {
        if (isImplicit_) // all have the batch of the first
            for (SampleInput& in : inputs_) {
                if (in.shape.empty() || inputs_[0].shape[0] < 1 || inputs_[0].shape[0] > 64)
                    return;
                in.shape[0] = inputs_[0].shape[0];
            }
        std::vector<ITensor*> tensors;
        for (size_t i = 0; i < inputs_.size(); ++i) {
            ITensor* const t =
                network_->addInput(nameOf('x', i).c_str(), typeOf(inputs_[i]), shapeOf(inputs_[i], isOpen_));
            if (!t)
                return;
            tensors.push_back(t);
        }
        layer_ = network_->addPluginV2(tensors.data(), int32_t(tensors.size()), plugin);
        if (!layer_) {
            logger_.expectError("a layer is refused");
            return;
        }
        for (int32_t i = 0; i < layer_->getNbOutputs(); ++i) {
            layer_->getOutput(i)->setName(nameOf('y', size_t(i)).c_str());
            network_->markOutput(*layer_->getOutput(i));
        }
    }
    void run(Bytes& bytes)
    {
        if (!layer_ || !isSmall())
            return;
        std::unique_ptr<IBuilderConfig> const config(builder_.createBuilderConfig());
        config->setFlag(BuilderFlag::kENABLE_TACTIC_HEURISTIC);
        if (isHalf_)
            config->setFlag(BuilderFlag::kFP16);
        if (isOpen_ && !isImplicit_)
            addProfile(*config);
        int32_t batch = 1;
        for (SampleInput const& in : inputs_)
            batch = in.shape.empty() ? batch : std::max(batch, in.shape[0]);
        builder_.setMaxBatchSize(batch);
        logger_.errors = 0;
        std::unique_ptr<IHostMemory> const plan(builder_.buildSerializedNetwork(*network_, *config));
        if (!plan)
            return logger_.expectError("no plan");
        std::unique_ptr<IRuntime> const runtime(createInferRuntime(logger_));
        std::unique_ptr<ICudaEngine> const engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
        if (!engine)
            logger_.finding("the plan cannot be loaded");
        std::vector<Memory> inputs;
        for (SampleInput const& in : inputs_)
            inputs.push_back(numbersOf(in, typeOf(in), bytes));
        auto const first = outputsOf(*engine, inputs, batch, 0x11), second = outputsOf(*engine, inputs, batch, 0x77);
        for (size_t i = 0; i < std::min(first.size(), second.size()); ++i)
            if (first[i].bytes != second[i].bytes)
                logger_.finding("output " + std::to_string(i) + " is not decided by the inputs, " + describe());
    }

private:
    static std::string nameOf(char letter, size_t i) { return letter + std::to_string(i); }
    std::string describe() const
    {
        std::string text = isHalf_ ? "FP16" : "FP32";
        text += isImplicit_ ? ", implicit" : isOpen_ ? ", open" : "";
        for (SampleInput const& in : inputs_) {
            text += ", ";
            for (int32_t d : in.shape)
                text += std::to_string(d) + ' ';
        }
        return text;
    }
    DataType typeOf(SampleInput const& in) const
    {
        return in.letter == 'i' ? DataType::kINT32 : isHalf_ && in.letter == 't' ? DataType::kHALF : DataType::kFLOAT;
    }
    Dims shapeOf(SampleInput const& in, bool isOpen) const
    {
        Dims d = dimsOf(in.shape, isImplicit_ ? 1 : 0);
        if (isOpen && !isImplicit_ && d.nbDims > 0)
            d.d[0] = -1;
        return d;
    }
    void addProfile(IBuilderConfig& config)
    {
        IOptimizationProfile* const p = builder_.createOptimizationProfile();
        for (size_t i = 0; i < inputs_.size(); ++i) {
            Dims const d = shapeOf(inputs_[i], false);
            Dims least = d;
            least.d[0] = std::min(least.d[0], 1);
            p->setDimensions(nameOf('x', i).c_str(), OptProfileSelector::kMIN, d.nbDims > 0 ? least : d);
            p->setDimensions(nameOf('x', i).c_str(), OptProfileSelector::kOPT, d);
            p->setDimensions(nameOf('x', i).c_str(), OptProfileSelector::kMAX, d);
        }
        config.addOptimizationProfile(p);
    }
    bool isSmall() const
    {
        int64_t all = 0;
        for (SampleInput const& in : inputs_) {
            int64_t const volume = volumeOf(dimsOf(in.shape, 0));
            if (volume < 0 || volume > kMostElements)
                return false;
            all += volume;
        }
        for (int32_t i = 0; i < layer_->getNbOutputs(); ++i) {
            Dims d = layer_->getOutput(i)->getDimensions();
            if (d.nbDims > 0 && d.d[0] == -1)
                d.d[0] = 4;
            int64_t const volume = volumeOf(d);
            if (volume < 0 || volume > kMostElements)
                return false;
            all += volume;
        }
        return all < kMostElements;
    }
    std::vector<Memory> outputsOf(ICudaEngine& engine, std::vector<Memory>& inputs, int32_t batch, char before) const
    {
        std::unique_ptr<IExecutionContext> const context(engine.createExecutionContext());
        if (!context)
            logger_.finding("no context");
        std::vector<void*> bindings(size_t(engine.getNbBindings()));
        for (size_t i = 0; i < inputs.size(); ++i) {
            int32_t const at = engine.getBindingIndex(nameOf('x', i).c_str());
            if (at < 0)
                continue; // nothing reads it
            if (!isImplicit_ && !context->setBindingDimensions(at, inputs[i].shape))
                return {};
            bindings[size_t(at)] = inputs[i].bytes.data();
        }
        std::vector<Memory> outputs;
        for (int32_t i = 0; i < layer_->getNbOutputs(); ++i) {
            int32_t const at = engine.getBindingIndex(nameOf('y', size_t(i)).c_str());
            Dims d = context->getBindingDimensions(at);
            if (isImplicit_) {
                std::copy_backward(d.d, d.d + d.nbDims, d.d + d.nbDims + 1);
                d.d[0] = batch;
                ++d.nbDims;
            }
            if (volumeOf(d) < 0 || volumeOf(d) > 8 * kMostElements)
                return {};
            outputs.emplace_back(engine.getBindingDataType(at), d);
            std::fill(outputs.back().bytes.begin(), outputs.back().bytes.end(), before);
        }
        for (size_t i = 0; i < outputs.size(); ++i)
            bindings[size_t(engine.getBindingIndex(nameOf('y', i).c_str()))] = outputs[i].bytes.data();
        logger_.errors = 0;
        bool const isDone =
            isImplicit_ ? context->execute(batch, bindings.data()) : context->executeV2(bindings.data());
        if (isDone)
            return outputs;
        logger_.expectError("a run failed");
        return {};
    }

    Logger& logger_;
    IBuilder& builder_;
    bool const isHalf_, isOpen_, isImplicit_;
    std::unique_ptr<INetworkDefinition> const network_;
    std::vector<SampleInput> inputs_;
    IPluginV2Layer* layer_ = nullptr;
};

void fuzz(Bytes& bytes)
{
    Logger logger;
    std::unique_ptr<IBuilder> const builder(createInferBuilder(logger));
    auto const samples = test::pluginSamples();
    test::PluginSample const& sample = samples[size_t(bytes.upTo(255)) % samples.size()];
    IPluginCreator& creator = *api::standardCreator(sample.name, sample.version);
    Fields fields(test::fieldsOf(sample), bytes);
    PluginFieldCollection const collection = fields.collection();
    PluginPtr plugin(std::string_view(sample.name) == "Split" ? test::makePlugin(creator, fields.fields())
                                                              : creator.createPlugin("layer", &collection));
    if (!plugin)
        return logger.expectError("a plugin is refused");
    plugin = readDamaged(logger, creator, *plugin, bytes);
    plugin.reset(plugin->clone());
    std::vector<SampleInput> inputs = test::inputsOf(sample, unsigned(bytes.upTo(3)));
    changeShapes(inputs, bytes);
    ask(*plugin, *api::standardInstanceOf(*plugin)->plugin, inputs, bytes);
    for (SampleInput const& in : inputs)
        if (in.shape.size() > Dims::MAX_DIMS)
            return;
    logger.errors = 0;
    Network(logger, *builder, *plugin, inputs, bytes).run(bytes);
}

} // namespace

} // namespace tw::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***)
{
    setenv("TENSORWRIGHT_MAX_MEMORY_MB", "256", 1);
    setenv("TENSORWRIGHT_DEVICE", "cpu", 1);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(uint8_t const* data, size_t size)
{
    tw::fuzz::Bytes bytes(data, size);
    tw::fuzz::fuzz(bytes);
    return 0;
}
