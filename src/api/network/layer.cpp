// SPDX-License-Identifier: Apache-2.0
#include "api/network/network.h"

using namespace tw;
using namespace tw::api;

namespace nvinfer1 {

LayerType ILayer::getType() const noexcept
{
    return stateOf(*this).type;
}

void ILayer::setName(char const* name) noexcept
{
    LayerState& l = stateOf(*this);
    guardedVoid(l.reporter(), [&]() -> Result<void> {
        TW_ASSIGN(std::string copy, checkName(name, "layer '" + l.name + "'"));
        // Outputs keep the names that they were made with, as in 8.5: "(Unnamed Layer* N) [Kind]_output".
        l.name = std::move(copy);
        l.changed();
        return {};
    });
}
char const* ILayer::getName() const noexcept
{
    return stateOf(*this).name.c_str();
}

int32_t ILayer::getNbInputs() const noexcept
{
    return int32_t(stateOf(*this).inputs.size());
}
ITensor* ILayer::getInput(int32_t index) const noexcept
{
    LayerState const& l = stateOf(*this);
    return index >= 0 && index < int32_t(l.inputs.size()) ? l.inputs[size_t(index)] : nullptr;
}
int32_t ILayer::getNbOutputs() const noexcept
{
    return int32_t(stateOf(*this).outputs.size());
}
ITensor* ILayer::getOutput(int32_t index) const noexcept
{
    LayerState const& l = stateOf(*this);
    return index >= 0 && index < int32_t(l.outputs.size()) ? l.outputs[size_t(index)].get() : nullptr;
}

void ILayer::setInput(int32_t index, ITensor& tensor) noexcept
{
    LayerState& l = stateOf(*this);
    guardedVoid(l.reporter(), [&]() -> Result<void> {
        TensorObject& t = objectOf(tensor);
        if (t.network != l.network)
            return l.error("input tensor '" + t.name + "' belongs to another network");
        if (index < 0 || index >= std::max(l.maxInputs(), int(l.inputs.size())))
            return l.error("input index " + std::to_string(index) + " is out of range (allowed: 0.." +
                           std::to_string(std::max(l.maxInputs(), int(l.inputs.size())) - 1) + ")");
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
    LayerState& l = stateOf(*this);
    guardedVoid(l.reporter(), [&]() -> Result<void> {
        int const number = static_cast<int>(dataType);
        if (!isPublished(number))
            return l.error("precision " + std::to_string(number) + " does not exist");
        l.precision = dataType;
        l.changed();
        return {};
    });
}
DataType ILayer::getPrecision() const noexcept
{
    LayerState const& l = stateOf(*this);
    return l.precision.value_or(l.type == LayerType::kDEQUANTIZE ? DataType::kINT8 : DataType::kFLOAT);
}
bool ILayer::precisionIsSet() const noexcept
{
    return stateOf(*this).precision.has_value();
}
void ILayer::resetPrecision() noexcept
{
    LayerState& l = stateOf(*this);
    l.precision.reset();
    guardedVoid(l.reporter(), [&]() -> Result<void> {
        l.changed();
        return {};
    });
}

void ILayer::setOutputType(int32_t index, DataType dataType) noexcept
{
    LayerState& l = stateOf(*this);
    guardedVoid(l.reporter(), [&]() -> Result<void> {
        int const number = static_cast<int>(dataType);
        if (!isPublished(number))
            return l.error("output type " + std::to_string(number) + " does not exist");
        if (index < 0 || index >= int32_t(l.outputs.size()))
            return l.error("output index " + std::to_string(index) + " is out of range (the layer has " +
                           std::to_string(l.outputs.size()) + " outputs)");
        bool const indices = l.type == LayerType::kTOPK && index == 1;
        if ((l.type == LayerType::kSHAPE || indices) && dataType != DataType::kINT32)
            return l.error("the type of output " + std::to_string(index) + " is kINT32 and cannot be set to another");
        l.outputTypes[size_t(index)] = dataType;
        l.changed();
        return {};
    });
}
DataType ILayer::getOutputType(int32_t index) const noexcept
{
    LayerState const& l = stateOf(*this);
    if (index < 0 || index >= int32_t(l.outputs.size()))
        return DataType::kFLOAT;
    return l.outputTypes[size_t(index)].value_or(l.naturalOutputType(index));
}
bool ILayer::outputTypeIsSet(int32_t index) const noexcept
{
    LayerState const& l = stateOf(*this);
    return index >= 0 && index < int32_t(l.outputs.size()) && l.outputTypes[size_t(index)].has_value();
}
void ILayer::resetOutputType(int32_t index) noexcept
{
    LayerState& l = stateOf(*this);
    if (index < 0 || index >= int32_t(l.outputs.size()))
        return;
    l.outputTypes[size_t(index)].reset();
    guardedVoid(l.reporter(), [&]() -> Result<void> {
        l.changed();
        return {};
    });
}

} // namespace nvinfer1
