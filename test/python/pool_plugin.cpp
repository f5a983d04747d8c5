// SPDX-License-Identifier: Apache-2.0
// A library of plugins as users write them, for ctypes: PoolOfPairs [n, 2 c] -> [n, c], the larger of each pair times a factor.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <NvInfer.h>

namespace {

using namespace nvinfer1;

int32_t alive = 0; // plugins that were made and not destroyed

class PoolOfPairs final : public IPluginV2DynamicExt
{
public:
    explicit PoolOfPairs(float factor) : factor_(factor) { ++alive; }
    ~PoolOfPairs() noexcept override { --alive; }

    IPluginV2DynamicExt* clone() const noexcept override
    {
        auto* copy = new PoolOfPairs(factor_);
        copy->namespace_ = namespace_;
        return copy;
    }
    DimsExprs getOutputDimensions(int32_t, DimsExprs const* inputs, int32_t, IExprBuilder& builder) noexcept override
    {
        DimsExprs out = inputs[0];
        out.d[1] = builder.operation(DimensionOperation::kFLOOR_DIV, *inputs[0].d[1], *builder.constant(2));
        return out;
    }
    bool supportsFormatCombination(int32_t at, PluginTensorDesc const* inOut, int32_t, int32_t) noexcept override
    {
        return inOut[at].type == DataType::kFLOAT && inOut[at].format == TensorFormat::kLINEAR;
    }
    void configurePlugin(DynamicPluginTensorDesc const*, int32_t, DynamicPluginTensorDesc const*,
                         int32_t) noexcept override
    {}
    size_t getWorkspaceSize(PluginTensorDesc const*, int32_t, PluginTensorDesc const*, int32_t) const noexcept override
    {
        return 0;
    }
    int32_t enqueue(PluginTensorDesc const*, PluginTensorDesc const* outputs, void const* const* in, void* const* out,
                    void*, cudaStream_t) noexcept override
    {
        auto const* x = static_cast<float const*>(in[0]);
        auto* y = static_cast<float*>(out[0]);
        for (int64_t i = 0; i < int64_t(outputs[0].dims.d[0]) * outputs[0].dims.d[1]; ++i)
            y[i] = factor_ * std::max(x[2 * i], x[2 * i + 1]);
        return 0;
    }
    DataType getOutputDataType(int32_t, DataType const* types, int32_t) const noexcept override { return types[0]; }
    AsciiChar const* getPluginType() const noexcept override { return "PoolOfPairs"; }
    AsciiChar const* getPluginVersion() const noexcept override { return "1"; }
    int32_t getNbOutputs() const noexcept override { return 1; }
    int32_t initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    size_t getSerializationSize() const noexcept override { return sizeof factor_; }
    void serialize(void* buffer) const noexcept override { std::memcpy(buffer, &factor_, sizeof factor_); }
    void destroy() noexcept override { delete this; }
    void setPluginNamespace(AsciiChar const* space) noexcept override { namespace_ = space; }
    AsciiChar const* getPluginNamespace() const noexcept override { return namespace_.c_str(); }

private:
    float factor_;
    std::string namespace_;
};

class Creator final : public IPluginCreator
{
public:
    AsciiChar const* getPluginName() const noexcept override { return "PoolOfPairs"; }
    AsciiChar const* getPluginVersion() const noexcept override { return "1"; }
    PluginFieldCollection const* getFieldNames() noexcept override { return &names_; }
    IPluginV2* createPlugin(AsciiChar const*, PluginFieldCollection const* fields) noexcept override
    {
        float factor = 1;
        for (int32_t i = 0; i < fields->nbFields; ++i)
            if (std::string(fields->fields[i].name) == "factor" &&
                fields->fields[i].type == PluginFieldType::kFLOAT32 && fields->fields[i].length == 1)
                factor = *static_cast<float const*>(fields->fields[i].data);
        return factor == 0 ? nullptr : new PoolOfPairs(factor);
    }
    IPluginV2* deserializePlugin(AsciiChar const*, void const* bytes, size_t length) noexcept override
    {
        float factor = 0;
        if (length != sizeof factor)
            return nullptr;
        std::memcpy(&factor, bytes, sizeof factor);
        return new PoolOfPairs(factor);
    }
    void setPluginNamespace(AsciiChar const* space) noexcept override { namespace_ = space; }
    AsciiChar const* getPluginNamespace() const noexcept override { return namespace_.c_str(); }

private:
    PluginField field_{"factor", nullptr, PluginFieldType::kFLOAT32, 1};
    PluginFieldCollection names_{1, &field_};
    std::string namespace_;
};

REGISTER_TENSORRT_PLUGIN(Creator);

} // namespace

extern "C" __attribute__((visibility("default"))) int32_t alivePlugins()
{
    return alive;
}
