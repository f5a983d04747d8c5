// SPDX-License-Identifier: Apache-2.0
// Plugins that write down which of their methods are called: y = factor * x, in each of the four interfaces.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "cuda_runtime_api.h"
#include "engine/engines.h"

namespace tw::test {

// Calls in order, over all plugins, and how many live.
struct Record
{
    std::mutex mutex;
    std::vector<std::string> calls; // "method#object"
    std::vector<float> scales;      // that the last run was told, of the first input and output
    std::atomic<int> living{0}, next{0};

    void add(char const* method, int object)
    {
        std::lock_guard const lock(mutex);
        calls.push_back(std::string(method) + "#" + std::to_string(object));
    }
    void tell(std::vector<float> told)
    {
        std::lock_guard const lock(mutex);
        scales = std::move(told);
    }
    int count(std::string const& method) const
    {
        return int(std::count_if(calls.begin(), calls.end(), [&](std::string const& c) {
            return c.compare(0, method.size() + 1, method + "#") == 0;
        }));
    }
    // The methods of one object, each run of equal calls once.
    std::vector<std::string> of(int object) const
    {
        std::vector<std::string> out;
        std::string const end = "#" + std::to_string(object);
        for (std::string const& c : calls) {
            size_t const at = c.find('#');
            if (c.substr(at) == end && (out.empty() || out.back() != c.substr(0, at)))
                out.push_back(c.substr(0, at));
        }
        return out;
    }
};

// What a plugin does; shared by all that are cloned or deserialized from one.
struct Behaviour
{
    std::shared_ptr<Record> record = std::make_shared<Record>();
    int32_t initializeStatus = 0, enqueueStatus = 0;
    bool cloneIsNull = false;
    size_t workspace = 0;
    std::function<bool(DataType, TensorFormat)> takes = [](DataType t, TensorFormat f) {
        return (t == DataType::kFLOAT || t == DataType::kINT32) && f == TensorFormat::kLINEAR;
    };
    std::set<int> broadcastInputs; // that it can read once for the whole batch
    bool isOutputBroadcast = false;
    std::function<Dims(Dims const&)> outputDims; // of interfaces without expressions
    std::function<DimsExprs(DimsExprs const*, int32_t, IExprBuilder&)> outputExprs;
    std::function<void()> onCall; // of what the record holds
    std::function<int32_t(std::vector<Dims> const&, void const* const*, void* const*, void*, cudaStream_t)> run;
    int outputType = -1; // of the input
    int32_t outputs = 1;
};

template <class Interface>
class Recorded : public Interface
{
public:
    Recorded(Behaviour const& b, float factor) : b_(&b), id_(b.record->next++), factor_(factor) { ++b.record->living; }
    Recorded(Recorded const& o)
        : Interface(o), b_(o.b_), id_(b_->record->next++), factor_(o.factor_), volume_(o.volume_), format_(o.format_),
          type_(o.type_), space_(o.space_)
    {
        ++b_->record->living;
    }
    ~Recorded() noexcept override { --b_->record->living; }

    char const* getPluginType() const noexcept override { return "Recorded"; }
    char const* getPluginVersion() const noexcept override { return "1"; }
    int32_t getNbOutputs() const noexcept override { return b_->outputs; }
    int32_t initialize() noexcept override
    {
        say("initialize");
        return b_->initializeStatus;
    }
    void terminate() noexcept override { say("terminate"); }
    void destroy() noexcept override
    {
        say("destroy");
        delete this;
    }
    size_t getSerializationSize() const noexcept override { return sizeof factor_ + sizeof volume_; }
    void serialize(void* to) const noexcept override
    {
        say("serialize");
        std::memcpy(to, &factor_, sizeof factor_);
        std::memcpy(static_cast<char*>(to) + sizeof factor_, &volume_, sizeof volume_);
    }
    void setPluginNamespace(char const* n) noexcept override { space_ = n; }
    char const* getPluginNamespace() const noexcept override { return space_.c_str(); }
    int id() const { return id_; }

    Behaviour const* b_;
    int id_;
    float factor_;
    int64_t volume_ = -1; // of input 0 without the batch: set by configuration
    TensorFormat format_ = TensorFormat::kLINEAR;
    DataType type_ = DataType::kFLOAT;
    std::string space_;

protected:
    void say(char const* method) const
    {
        b_->record->add(method, id_);
        if (b_->onCall)
            b_->onCall();
    }
    Dims dimsOut(Dims const& x) const { return b_->outputDims ? b_->outputDims(x) : x; }
    static int64_t volumeOf(Dims const& d)
    {
        int64_t v = 1;
        for (int i = 0; i < d.nbDims; ++i)
            v *= d.d[i];
        return v;
    }
    int32_t enqueueAll(int64_t count, void const* const* in, void* const* out, void* workspace, cudaStream_t stream,
                       std::vector<Dims> const& dims)
    {
        say("enqueue");
        if (b_->run)
            return b_->run(dims, in, out, workspace, stream);
        if (b_->workspace)
            std::memset(workspace, 1, b_->workspace);
        for (int64_t i = 0; i < count; ++i)
            static_cast<float*>(out[0])[i] = factor_ * static_cast<float const*>(in[0])[i];
        return b_->enqueueStatus;
    }
};

class V2Plugin final : public Recorded<IPluginV2>
{
public:
    using Recorded::Recorded;
    Dims getOutputDimensions(int32_t, Dims const* in, int32_t) noexcept override { return dimsOut(in[0]); }
    bool supportsFormat(DataType t, PluginFormat f) const noexcept override { return b_->takes(t, f); }
    void configureWithFormat(Dims const* in, int32_t, Dims const*, int32_t, DataType, PluginFormat,
                             int32_t) noexcept override
    {
        say("configure");
        volume_ = volumeOf(in[0]);
    }
    size_t getWorkspaceSize(int32_t) const noexcept override { return b_->workspace; }
    int32_t enqueue(int32_t batch, void const* const* in, void* const* out, void* w, cudaStream_t s) noexcept override
    {
        return enqueueAll(batch * volume_, in, out, w, s, {});
    }
    IPluginV2* clone() const noexcept override
    {
        say("clone");
        return b_->cloneIsNull ? nullptr : new V2Plugin(*this);
    }
};

template <class Interface>
class WithContext : public Recorded<Interface>
{
public:
    using Recorded<Interface>::Recorded;
    DataType getOutputDataType(int32_t, DataType const* types, int32_t) const noexcept override
    {
        return this->b_->outputType >= 0 ? DataType(this->b_->outputType) : types[0];
    }
    void attachToContext(cudnnContext*, cublasContext*, IGpuAllocator* a) noexcept override
    {
        this->say("attach");
        memory_ = a->allocate(100, 0, 0);
        a->deallocate(memory_);
    }
    void detachFromContext() noexcept override { this->say("detach"); }
    void* memory_ = nullptr;
};

template <class Interface>
class WithBatch : public WithContext<Interface>
{
public:
    using WithContext<Interface>::WithContext;
    Dims getOutputDimensions(int32_t, Dims const* in, int32_t n) noexcept override
    {
        return this->dimsOut(n > 0 ? in[0] : Dims{1, {1}});
    }
    bool isOutputBroadcastAcrossBatch(int32_t, bool const*, int32_t) const noexcept override
    {
        return this->b_->isOutputBroadcast;
    }
    bool canBroadcastInputAcrossBatch(int32_t i) const noexcept override
    {
        return this->b_->broadcastInputs.count(i) > 0;
    }
    size_t getWorkspaceSize(int32_t) const noexcept override { return this->b_->workspace; }
    int32_t enqueue(int32_t batch, void const* const* in, void* const* out, void* w, cudaStream_t s) noexcept override
    {
        return this->enqueueAll(batch * this->volume_, in, out, w, s, {Dims{1, {batch}}});
    }
};

class ExtPlugin final : public WithBatch<IPluginV2Ext>
{
public:
    using WithBatch::WithBatch;
    bool supportsFormat(DataType t, PluginFormat f) const noexcept override { return b_->takes(t, f); }
    void configurePlugin(Dims const* in, int32_t n, Dims const*, int32_t, DataType const* types, DataType const*,
                         bool const*, bool const*, PluginFormat f, int32_t) noexcept override
    {
        say("configure");
        volume_ = n > 0 ? volumeOf(in[0]) : 1;
        format_ = f;
        type_ = n > 0 ? types[0] : DataType::kFLOAT;
    }
    IPluginV2Ext* clone() const noexcept override
    {
        say("clone");
        return b_->cloneIsNull ? nullptr : new ExtPlugin(*this);
    }
};

class IOExtPlugin final : public WithBatch<IPluginV2IOExt>
{
public:
    using WithBatch::WithBatch;
    bool supportsFormatCombination(int32_t pos, PluginTensorDesc const* d, int32_t, int32_t) const noexcept override
    {
        return b_->takes(d[pos].type, d[pos].format) && d[pos].format == d[0].format;
    }
    void configurePlugin(PluginTensorDesc const* in, int32_t n, PluginTensorDesc const*, int32_t) noexcept override
    {
        say("configure");
        volume_ = n > 0 ? volumeOf(in[0].dims) : 1;
        format_ = n > 0 ? in[0].format : TensorFormat::kLINEAR;
    }
    IPluginV2IOExt* clone() const noexcept override
    {
        say("clone");
        return b_->cloneIsNull ? nullptr : new IOExtPlugin(*this);
    }
};

class DynamicPlugin final : public WithContext<IPluginV2DynamicExt>
{
public:
    using WithContext::WithContext;
    DimsExprs getOutputDimensions(int32_t, DimsExprs const* in, int32_t n, IExprBuilder& e) noexcept override
    {
        return b_->outputExprs ? b_->outputExprs(in, n, e) : in[0];
    }
    bool supportsFormatCombination(int32_t pos, PluginTensorDesc const* d, int32_t, int32_t) noexcept override
    {
        return b_->takes(d[pos].type, d[pos].format) && d[pos].format == d[0].format;
    }
    void configurePlugin(DynamicPluginTensorDesc const* in, int32_t n, DynamicPluginTensorDesc const*,
                         int32_t) noexcept override
    {
        say("configure");
        last_.assign(in, in + n);
    }
    size_t getWorkspaceSize(PluginTensorDesc const*, int32_t, PluginTensorDesc const*, int32_t) const noexcept override
    {
        return b_->workspace;
    }
    int32_t enqueue(PluginTensorDesc const* in, PluginTensorDesc const* y, void const* const* x, void* const* out,
                    void* w, cudaStream_t s) noexcept override
    {
        b_->record->tell({in[0].scale, y[0].scale});
        Dims const first = last_.empty() ? Dims{} : in[0].dims;
        return enqueueAll(volumeOf(first), x, out, w, s, {first, y[0].dims});
    }
    IPluginV2DynamicExt* clone() const noexcept override
    {
        say("clone");
        return b_->cloneIsNull ? nullptr : new DynamicPlugin(*this);
    }
    std::vector<DynamicPluginTensorDesc> last_;
};

template <class Plugin>
class RecordedCreator final : public IPluginCreator
{
public:
    explicit RecordedCreator(Behaviour const& b) : b_(b) { getPluginRegistry()->registerCreator(*this, ""); }
    ~RecordedCreator() noexcept override { getPluginRegistry()->deregisterCreator(*this); }
    char const* getPluginName() const noexcept override { return "Recorded"; }
    char const* getPluginVersion() const noexcept override { return "1"; }
    PluginFieldCollection const* getFieldNames() noexcept override { return nullptr; }
    IPluginV2* createPlugin(char const*, PluginFieldCollection const*) noexcept override { return new Plugin(b_, 2); }
    IPluginV2* deserializePlugin(char const*, void const* data, size_t length) noexcept override
    {
        ++deserialized;
        if (length != sizeof(float) + sizeof(int64_t))
            return nullptr;
        auto* p = new Plugin(b_, 0);
        std::memcpy(&p->factor_, data, sizeof p->factor_);
        std::memcpy(&p->volume_, static_cast<char const*>(data) + sizeof p->factor_, sizeof p->volume_);
        b_.record->add("deserialized", p->id());
        return p;
    }
    void setPluginNamespace(char const* n) noexcept override { space_ = n; }
    char const* getPluginNamespace() const noexcept override { return space_.c_str(); }
    int deserialized = 0;

private:
    Behaviour const& b_;
    std::string space_;
};

// A network of one plugin between two other layers: y = relu(factor * (x + x)).
template <class Plugin>
struct OnePlugin : Maker
{
    explicit OnePlugin(Behaviour& b, std::vector<int32_t> const& shape = {2, 3}, uint32_t flags = 1) : Maker(flags)
    {
        ITensor* x = input("x", shape);
        ITensor* twice = add(x, x);
        Plugin plugin(b, 3); // on the stack: the network has a clone
        layer = network->addPluginV2(&twice, 1, plugin);
        if (layer) {
            layer->setName("custom");
            output(relu(layer->getOutput(0)), "y");
        }
    }
    IPluginV2Layer* layer = nullptr;
};

inline bool run(IExecutionContext& c, std::vector<float>& x, std::vector<float>& y, cudaStream_t stream = nullptr)
{
    return c.setTensorAddress("x", x.data()) && c.setTensorAddress("y", y.data()) && c.enqueueV3(stream) &&
           cudaStreamSynchronize(stream) == cudaSuccess;
}

} // namespace tw::test
