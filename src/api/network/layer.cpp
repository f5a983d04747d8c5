// SPDX-License-Identifier: Apache-2.0
#include "api/network/setter.h"

using namespace tw;
using namespace tw::api;

namespace nvinfer1 {

TW_GETTER(ILayer, LayerType, getType, self.type)

void ILayer::setName(char const* name) noexcept
{
    change(objectOf(*this), [&](LayerState& l) -> Result<void> {
        TW_ASSIGN(std::string copy, checkName(name, "layer '" + l.name + "'"));
        // Outputs keep the names that they were made with, as in 8.5: "(Unnamed Layer* N) [Kind]_output".
        l.name = std::move(copy);
        return {};
    });
}
TW_GETTER(ILayer, char const*, getName, self.name.c_str())

TW_GETTER(ILayer, int32_t, getNbInputs, int32_t(self.inputs.size()))
ITensor* ILayer::getInput(int32_t index) const noexcept
{
    LayerState const& l = objectOf(*this);
    return index >= 0 && index < int32_t(l.inputs.size()) ? l.inputs[size_t(index)] : nullptr;
}
TW_GETTER(ILayer, int32_t, getNbOutputs, int32_t(self.outputs.size()))
ITensor* ILayer::getOutput(int32_t index) const noexcept
{
    LayerState const& l = objectOf(*this);
    return index >= 0 && index < int32_t(l.outputs.size()) ? l.outputs[size_t(index)].get() : nullptr;
}

void ILayer::setInput(int32_t index, ITensor& tensor) noexcept
{
    guardedVoid(objectOf(*this), [&](LayerState& l) -> Result<void> {
        TensorObject& t = objectOf(tensor);
        if (t.network != l.network)
            return l.error("input tensor '" + t.name + "' belongs to another network");
        if (index < 0 || index >= std::max(l.maxInputs(), int(l.inputs.size())))
            return l.error("input index {} is out of range (allowed: 0..{})", index,
                           std::max(l.maxInputs(), int(l.inputs.size())) - 1);
        TW_TRY(l.onSetInput(index, t));
        if (index >= int32_t(l.inputs.size()))
            l.inputs.resize(size_t(index) + 1, nullptr);
        if (!l.isBackEdge(index))
            l.changed();
        l.inputs[size_t(index)] = &t;
        return {};
    });
}

void ILayer::setPrecision(DataType dataType) noexcept
{
    change(objectOf(*this), [&](LayerState& l) -> Result<void> {
        int const number = static_cast<int>(dataType);
        if (!isPublished(number))
            return l.error("precision {} does not exist", number);
        l.precision = dataType;
        return {};
    });
}
TW_GETTER(ILayer, DataType, getPrecision,
          self.precision.value_or(self.type == LayerType::kDEQUANTIZE ? DataType::kINT8 : DataType::kFLOAT))
TW_GETTER(ILayer, bool, precisionIsSet, self.precision.has_value())
void ILayer::resetPrecision() noexcept
{
    setField(objectOf(*this), objectOf(*this).precision, {});
}

void ILayer::setOutputType(int32_t index, DataType dataType) noexcept
{
    change(objectOf(*this), [&](LayerState& l) -> Result<void> {
        int const number = static_cast<int>(dataType);
        if (!isPublished(number))
            return l.error("output type {} does not exist", number);
        if (index < 0 || index >= int32_t(l.outputs.size()))
            return l.error("output index {} is out of range (the layer has {} outputs)", index, l.outputs.size());
        bool const indices = l.type == LayerType::kTOPK && index == 1;
        if ((l.type == LayerType::kSHAPE || indices) && dataType != DataType::kINT32)
            return l.error("the type of output {} is kINT32 and cannot be set to another", index);
        l.outputTypes[size_t(index)] = dataType;
        return {};
    });
}
DataType ILayer::getOutputType(int32_t index) const noexcept
{
    LayerState const& l = objectOf(*this);
    if (index < 0 || index >= int32_t(l.outputs.size()))
        return DataType::kFLOAT;
    return l.outputTypes[size_t(index)].value_or(l.naturalOutputType(index));
}
bool ILayer::outputTypeIsSet(int32_t index) const noexcept
{
    LayerState const& l = objectOf(*this);
    return index >= 0 && index < int32_t(l.outputs.size()) && l.outputTypes[size_t(index)].has_value();
}
void ILayer::resetOutputType(int32_t index) noexcept
{
    LayerState& l = objectOf(*this);
    if (index >= 0 && index < int32_t(l.outputs.size()))
        setField(l, l.outputTypes[size_t(index)], {});
}

} // namespace nvinfer1
