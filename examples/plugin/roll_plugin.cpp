// SPDX-License-Identifier: Apache-2.0
// A plugin as a library of its own: y[..., (i + shift) mod n] = x[..., i]. It moves memory with calls of the CUDA runtime
// alone, so that the same code works on GPUs and, with the stand-in, on CPUs.
//
// ONNX models have it as the operator Roll with the attribute shift; trtexec loads it with --plugins=libroll_plugin.so.
#include <cstring>
#include <string>

#include "NvInfer.h"
#include "cuda_runtime_api.h"

namespace {

using namespace nvinfer1;

class RollPlugin final : public IPluginV2DynamicExt
{
public:
    explicit RollPlugin(int32_t shift) : shift_(shift) {}

    // Who it is.
    char const* getPluginType() const noexcept override { return "Roll"; }
    char const* getPluginVersion() const noexcept override { return "1"; }
    void setPluginNamespace(char const* n) noexcept override { namespace_ = n; }
    char const* getPluginNamespace() const noexcept override { return namespace_.c_str(); }
    IPluginV2DynamicExt* clone() const noexcept override { return new RollPlugin(*this); }
    void destroy() noexcept override { delete this; }

    // What it takes and gives.
    int32_t getNbOutputs() const noexcept override { return 1; }
    DimsExprs getOutputDimensions(int32_t, DimsExprs const* inputs, int32_t, IExprBuilder&) noexcept override
    {
        return inputs[0];
    }
    DataType getOutputDataType(int32_t, DataType const* types, int32_t) const noexcept override { return types[0]; }
    bool supportsFormatCombination(int32_t pos, PluginTensorDesc const* inOut, int32_t, int32_t) noexcept override
    {
        return inOut[pos].format == TensorFormat::kLINEAR && inOut[pos].type == inOut[0].type &&
               sizeOf(inOut[pos].type) > 0;
    }
    void configurePlugin(DynamicPluginTensorDesc const*, int32_t, DynamicPluginTensorDesc const*,
                         int32_t) noexcept override
    {}

    // What it does.
    int32_t initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    size_t getWorkspaceSize(PluginTensorDesc const*, int32_t, PluginTensorDesc const*, int32_t) const noexcept override
    {
        return 0;
    }
    int32_t enqueue(PluginTensorDesc const* in, PluginTensorDesc const*, void const* const* inputs,
                    void* const* outputs, void*, cudaStream_t stream) noexcept override
    {
        Dims const& d = in[0].dims;
        size_t rows = 1;
        for (int32_t i = 0; i + 1 < d.nbDims; ++i)
            rows *= size_t(d.d[i]);
        size_t const n = d.nbDims > 0 ? size_t(d.d[d.nbDims - 1]) : 1, element = sizeOf(in[0].type), row = n * element;
        if (rows * n == 0)
            return 0;
        // The last `wrapped` elements of each row come first.
        int64_t const length = int64_t(n);
        size_t const wrapped = size_t((shift_ % length + length) % length) * element;
        auto const* x = static_cast<char const*>(inputs[0]);
        auto* y = static_cast<char*>(outputs[0]);
        cudaError_t status =
            cudaMemcpy2DAsync(y + wrapped, row, x, row, row - wrapped, rows, cudaMemcpyDeviceToDevice, stream);
        if (status == cudaSuccess && wrapped > 0)
            status =
                cudaMemcpy2DAsync(y, row, x + (row - wrapped), row, wrapped, rows, cudaMemcpyDeviceToDevice, stream);
        return status == cudaSuccess ? 0 : 1;
    }

    // What an engine's plan keeps.
    size_t getSerializationSize() const noexcept override { return sizeof shift_; }
    void serialize(void* buffer) const noexcept override { std::memcpy(buffer, &shift_, sizeof shift_); }

private:
    static size_t sizeOf(DataType t)
    {
        return t == DataType::kFLOAT || t == DataType::kINT32 ? 4 : t == DataType::kHALF ? 2 : 0;
    }
    int32_t shift_;
    std::string namespace_;
};

class RollCreator final : public IPluginCreator
{
public:
    char const* getPluginName() const noexcept override { return "Roll"; }
    char const* getPluginVersion() const noexcept override { return "1"; }
    void setPluginNamespace(char const* n) noexcept override { namespace_ = n; }
    char const* getPluginNamespace() const noexcept override { return namespace_.c_str(); }
    PluginFieldCollection const* getFieldNames() noexcept override { return &fields_; }
    // Null for what makes no sense: the library reports it with the layer's name.
    IPluginV2* createPlugin(char const*, PluginFieldCollection const* given) noexcept override
    {
        int32_t shift = 1;
        for (int32_t i = 0; i < given->nbFields; ++i) {
            PluginField const& f = given->fields[i];
            if (std::strcmp(f.name, "shift") != 0)
                continue;
            if (f.type != PluginFieldType::kINT32 || f.length != 1 || !f.data)
                return nullptr;
            shift = *static_cast<int32_t const*>(f.data);
        }
        return make(shift);
    }
    IPluginV2* deserializePlugin(char const*, void const* data, size_t length) noexcept override
    {
        int32_t shift = 0;
        if (length != sizeof shift)
            return nullptr;
        std::memcpy(&shift, data, sizeof shift);
        return make(shift);
    }

private:
    IPluginV2* make(int32_t shift) const
    {
        auto* plugin = new RollPlugin(shift);
        plugin->setPluginNamespace(namespace_.c_str());
        return plugin;
    }
    PluginField field_{"shift", nullptr, PluginFieldType::kINT32, 1};
    PluginFieldCollection fields_{1, &field_};
    std::string namespace_;
};

REGISTER_TENSORRT_PLUGIN(RollCreator);

} // namespace
