// SPDX-License-Identifier: Apache-2.0
// A client's plugin for networks with an implicit batch, as UFF models have them: CustomClipPlugin, min(max(x, clipMin), clipMax).
#include <algorithm>
#include <cstring>
#include <string>

#include <NvInfer.h>

namespace {

using namespace nvinfer1;

struct Limits
{
    float low = 0, high = 0;
};

class Clip final : public IPluginV2Ext
{
public:
    explicit Clip(Limits limits) : limits_(limits) {}
    IPluginV2Ext* clone() const noexcept override { return new Clip(*this); }
    AsciiChar const* getPluginType() const noexcept override { return "CustomClipPlugin"; }
    AsciiChar const* getPluginVersion() const noexcept override { return "1"; }
    int32_t getNbOutputs() const noexcept override { return 1; }
    Dims getOutputDimensions(int32_t, Dims const* inputs, int32_t) noexcept override { return inputs[0]; }
    int32_t initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    size_t getWorkspaceSize(int32_t) const noexcept override { return 0; }
    int32_t enqueue(int32_t batch, void const* const* in, void* const* out, void*, cudaStream_t) noexcept override
    {
        auto const* x = static_cast<float const*>(in[0]);
        std::transform(x, x + batch * count_, static_cast<float*>(out[0]),
                       [this](float v) { return std::clamp(v, limits_.low, limits_.high); });
        return 0;
    }
    size_t getSerializationSize() const noexcept override { return sizeof limits_ + sizeof count_; }
    void serialize(void* bytes) const noexcept override
    {
        std::memcpy(bytes, &limits_, sizeof limits_);
        std::memcpy(static_cast<char*>(bytes) + sizeof limits_, &count_, sizeof count_);
    }
    void restore(void const* bytes)
    {
        std::memcpy(&limits_, bytes, sizeof limits_);
        std::memcpy(&count_, static_cast<char const*>(bytes) + sizeof limits_, sizeof count_);
    }
    void destroy() noexcept override { delete this; }
    void setPluginNamespace(AsciiChar const*) noexcept override {}
    AsciiChar const* getPluginNamespace() const noexcept override { return ""; }
    DataType getOutputDataType(int32_t, DataType const*, int32_t) const noexcept override { return DataType::kFLOAT; }
    bool isOutputBroadcastAcrossBatch(int32_t, bool const*, int32_t) const noexcept override { return false; }
    bool canBroadcastInputAcrossBatch(int32_t) const noexcept override { return false; }
    bool supportsFormat(DataType type, PluginFormat format) const noexcept override
    {
        return type == DataType::kFLOAT && format == PluginFormat::kLINEAR;
    }
    void configurePlugin(Dims const* inputs, int32_t, Dims const*, int32_t, DataType const*, DataType const*,
                         bool const*, bool const*, PluginFormat, int32_t) noexcept override
    {
        count_ = 1;
        for (int32_t i = 0; i < inputs[0].nbDims; ++i)
            count_ *= inputs[0].d[i];
    }

private:
    Limits limits_;
    int64_t count_ = 0; // of one element of the batch
};

class ClipCreator final : public IPluginCreator
{
public:
    AsciiChar const* getPluginName() const noexcept override { return "CustomClipPlugin"; }
    AsciiChar const* getPluginVersion() const noexcept override { return "1"; }
    PluginFieldCollection const* getFieldNames() noexcept override { return &names_; }
    IPluginV2* createPlugin(AsciiChar const*, PluginFieldCollection const* fields) noexcept override
    {
        Limits limits;
        for (int32_t i = 0; i < fields->nbFields; ++i)
            (std::string(fields->fields[i].name) == "clipMin" ? limits.low : limits.high) =
                *static_cast<float const*>(fields->fields[i].data);
        return fields->nbFields == 2 ? new Clip(limits) : nullptr;
    }
    IPluginV2* deserializePlugin(AsciiChar const*, void const* bytes, size_t) noexcept override
    {
        auto* plugin = new Clip(Limits());
        plugin->restore(bytes);
        return plugin;
    }
    void setPluginNamespace(AsciiChar const* space) noexcept override { namespace_ = space; }
    AsciiChar const* getPluginNamespace() const noexcept override { return namespace_.c_str(); }

private:
    PluginField fields_[2] = {{"clipMin", nullptr, PluginFieldType::kFLOAT32, 1},
                              {"clipMax", nullptr, PluginFieldType::kFLOAT32, 1}};
    PluginFieldCollection names_{2, fields_};
    std::string namespace_;
};

REGISTER_TENSORRT_PLUGIN(ClipCreator);

} // namespace
