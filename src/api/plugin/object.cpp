// SPDX-License-Identifier: Apache-2.0
#include "api/plugin/object.h"

#include <algorithm>
#include <optional>

#include "api/network/network.h"

namespace tw::api {

using nvinfer1::Dims;
using nvinfer1::PluginTensorDesc;
using nvinfer1::TensorFormat;

std::recursive_mutex& pluginMutex()
{
    static std::recursive_mutex& mutex = *new std::recursive_mutex; // engines may end after statics are destroyed
    return mutex;
}

class PluginObject::Call
{
public:
    explicit Call(PluginObject const& o) : lock_(pluginMutex())
    {
        if (o.device_)
            current_.emplace(*o.device_);
    }

private:
    std::lock_guard<std::recursive_mutex> lock_;
    std::optional<cuda::Current> current_;
};

namespace {

std::string textOf(char const* text)
{
    constexpr size_t kMost = 1024; // a longer name is a missing terminator
    return text ? std::string(text, strnlen(text, kMost)) : std::string();
}

} // namespace

PluginObject::PluginObject(nvinfer1::IPluginV2* plugin, std::string const& layer,
                           std::shared_ptr<cuda::Device const> device)
    : plugin_(plugin), device_(std::move(device))
{
    setLayer(layer);
}

void PluginObject::setLayer(std::string const& name)
{
    layer_ = name;
    where_ = "layer '" + layer_ + "' (plugin '" + textOf(plugin_->getPluginType()) + "' version '" +
             textOf(plugin_->getPluginVersion()) + "')";
}

Result<std::shared_ptr<PluginObject>> PluginObject::own(nvinfer1::IPluginV2* plugin, std::string const& layer,
                                                        std::shared_ptr<cuda::Device const> device)
{
    if (!plugin)
        return failedAllocation("layer '" + layer + "': the plugin is a null pointer");
    std::shared_ptr<PluginObject> o(new PluginObject(plugin, layer, std::move(device)));
    int const number = int(static_cast<uint32_t>(plugin->getTensorRTVersion()) >> 24U);
    if (number > int(Interface::kDynamicExt))
        return unsupported("{}: its interface has the number {} (the first byte of getTensorRTVersion()); 0 to 3 "
                           "exist: IPluginV2, IPluginV2Ext, IPluginV2IOExt, IPluginV2DynamicExt",
                           o->where_, number);
    o->interface_ = Interface(number);
    return o;
}

PluginObject::~PluginObject()
{
    Call const call(*this);
    if (isInitialized_)
        plugin_->terminate();
    plugin_->destroy();
}

Result<std::shared_ptr<PluginObject>> PluginObject::clone(std::shared_ptr<cuda::Device const> device) const
{
    Call const call(*this);
    nvinfer1::IPluginV2* const copy = plugin_->clone();
    if (!copy)
        return failedAllocation(where_ + ": clone() gave a null pointer");
    if (copy == plugin_)
        return invalidState("{}: clone() gave the plugin itself; it must make a new one", where_);
    return own(copy, layer_, std::move(device));
}

// Types and formats of all tensors with a floating type are one; others are linear.
bool PluginObject::acceptsOneType(PluginTensors const& tensors) const
{
    PluginTensorDesc const* one = nullptr;
    for (PluginTensorDesc const& d : tensors.descs) {
        if (!isFloating(toCore(d.type))) {
            if (d.format != TensorFormat::kLINEAR)
                return false;
            continue;
        }
        if (one && (one->type != d.type || one->format != d.format))
            return false;
        one = &d;
    }
    if (!one)
        one = tensors.descs.empty() ? nullptr : &tensors.descs[0];
    return !one || plugin_->supportsFormat(one->type, one->format);
}

bool PluginObject::accepts(PluginTensors const& t, int32_t position) const
{
    Call const call(*this);
    switch (interface_) {
    case Interface::kIOExt:
        return ioExt().supportsFormatCombination(position, t.descs.data(), t.inputs, t.outputs());
    case Interface::kDynamicExt:
        return dynamicExt().supportsFormatCombination(position, t.descs.data(), t.inputs, t.outputs());
    default:
        return acceptsOneType(t);
    }
}

bool PluginObject::acceptsAll(PluginTensors const& t) const
{
    int32_t const positions = isAskedOneByOne() ? int32_t(t.descs.size()) : 1;
    for (int32_t i = 0; i < positions; ++i)
        if (!accepts(t, i))
            return false;
    return true;
}

namespace {

struct Split
{
    explicit Split(PluginTensors const& t)
    {
        for (size_t i = 0; i < t.descs.size(); ++i) {
            bool const isInput = int32_t(i) < t.inputs;
            (isInput ? inDims : outDims).push_back(t.descs[i].dims);
            (isInput ? inTypes : outTypes).push_back(t.descs[i].type);
            broadcast[broadcasts++] = t.isBroadcast[i];
            if (!one && isFloating(toCore(t.descs[i].type)))
                one = &t.descs[i];
        }
        if (!one && !t.descs.empty())
            one = &t.descs[0];
    }
    static constexpr size_t kMost = size_t(ops::plugin::kMaxTensors);
    std::vector<Dims> inDims, outDims;
    std::vector<nvinfer1::DataType> inTypes, outTypes;
    bool broadcast[kMost] = {}; // std::vector<bool> has no array
    size_t broadcasts = 0;
    PluginTensorDesc const* one = nullptr; // whose type and format stand for all
};

std::vector<nvinfer1::DynamicPluginTensorDesc> dynamicDescs(PluginTensors const& t)
{
    std::vector<nvinfer1::DynamicPluginTensorDesc> out;
    for (size_t i = 0; i < t.descs.size(); ++i)
        out.push_back({t.descs[i], t.least[i], t.most[i]});
    return out;
}

} // namespace

void PluginObject::configure(PluginTensors const& t) const
{
    Call const call(*this);
    int32_t const inputs = t.inputs, outputs = t.outputs();
    if (interface_ == Interface::kDynamicExt) {
        auto const descs = dynamicDescs(t);
        return dynamicExt().configurePlugin(descs.data(), inputs, descs.data() + inputs, outputs);
    }
    if (interface_ == Interface::kIOExt)
        return ioExt().configurePlugin(t.descs.data(), inputs, t.descs.data() + inputs, outputs);
    Split const s(t);
    nvinfer1::DataType const type = s.one ? s.one->type : nvinfer1::DataType::kFLOAT;
    TensorFormat const format = s.one ? s.one->format : TensorFormat::kLINEAR;
    if (interface_ == Interface::kExt)
        ext().configurePlugin(s.inDims.data(), inputs, s.outDims.data(), outputs, s.inTypes.data(), s.outTypes.data(),
                              s.broadcast, s.broadcast + inputs, format, t.maxBatch);
    else
        plugin_->configureWithFormat(s.inDims.data(), inputs, s.outDims.data(), outputs, type, format, t.maxBatch);
}

Result<int64_t> PluginObject::workspaceBytes(PluginTensors const& t) const
{
    constexpr uint64_t kMost = uint64_t(1) << 48; // no memory is so large
    Call const call(*this);
    std::vector<PluginTensorDesc> largest = t.descs;
    for (size_t i = 0; i < largest.size(); ++i)
        largest[i].dims = t.most[i];
    uint64_t const bytes =
        interface_ == Interface::kDynamicExt
            ? dynamicExt().getWorkspaceSize(largest.data(), t.inputs, largest.data() + t.inputs, t.outputs())
            : plugin_->getWorkspaceSize(t.maxBatch);
    if (bytes > kMost)
        return invalidArgument("{}: getWorkspaceSize() asks for {} bytes", where_, bytes);
    return int64_t(bytes);
}

Result<void> PluginObject::initialize()
{
    Call const call(*this);
    if (int32_t const status = plugin_->initialize())
        return failedInitialization("Custom layer {} returned non-zero initialization: {}: initialize() gave {}",
                                    layer_, where_, status);
    isInitialized_ = true;
    return {};
}

Result<std::string> PluginObject::serialize() const
{
    constexpr size_t kMost = size_t(1) << 31; // as much as a plan's tables hold
    Call const call(*this);
    size_t const size = plugin_->getSerializationSize();
    if (size >= kMost)
        return invalidArgument("{}: getSerializationSize() is {}; the limit is {}", where_, size, kMost - 1);
    // A plugin that writes more than it said shall not end the process, if it is not much more.
    constexpr size_t kSpare = 64;
    constexpr char kPattern = '\x5a';
    std::string bytes(size + kSpare, kPattern);
    plugin_->serialize(bytes.data());
    if (std::any_of(bytes.begin() + int64_t(size), bytes.end(), [&](char c) { return c != kPattern; }))
        return invalidState("{}: serialize() wrote more than the {} bytes of getSerializationSize()", where_, size);
    bytes.resize(size);
    return bytes;
}

void PluginObject::attach(cudnnContext* cudnn, cublasContext* cublas, nvinfer1::IGpuAllocator* allocator) const
{
    Call const call(*this);
    ext().attachToContext(cudnn, cublas, allocator);
}
void PluginObject::detach() const
{
    Call const call(*this);
    ext().detachFromContext();
}

Result<std::vector<DataType>> PluginObject::outputTypes(std::vector<DataType> const& inputs) const
{
    Call const call(*this);
    auto types = mapped<nvinfer1::DataType>(inputs, [&](DataType const t) { return toPublic(t); });
    std::vector<DataType> out;
    for (int32_t i = 0; i < plugin_->getNbOutputs(); ++i) {
        int type = static_cast<int>(!types.empty() && isFloating(inputs[0]) ? types[0] : nvinfer1::DataType::kFLOAT);
        if (interface_ != Interface::kV2)
            type = static_cast<int>(ext().getOutputDataType(i, types.data(), int32_t(types.size())));
        if (!isPublished(type))
            return invalidArgument("{}: getOutputDataType({}) gave {}, which is no data type", where_, i, type);
        out.push_back(DataType(type));
    }
    return out;
}

} // namespace tw::api
