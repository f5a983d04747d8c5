// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "api/network/network.h"

using namespace tw;
using namespace tw::api;

namespace nvinfer1 {

namespace {

TensorObject& self(ITensor* t)
{
    return objectOf(*t);
}
TensorObject& self(ITensor const* t)
{
    return const_cast<TensorObject&>(objectOf(*t)); // answers are computed on demand
}
bool isRead(TensorObject const& t)
{
    auto const& layers = t.network->layers;
    return std::ranges::any_of(layers, [&](auto const& l) { return contains(l->inputs, &t); });
}
// What depends on a network input's dimensions, names or type is lowered again.
void inputChanged(TensorObject& t)
{
    if (t.isInput)
        t.network->rollBack(nullptr);
}

} // namespace

void ITensor::setName(char const* name) noexcept
{
    guardedVoid(self(this), [&](TensorObject& t) -> Result<void> {
        TW_ASSIGN(t.name, checkName(name, "tensor '" + t.name + "'"));
        inputChanged(t);
        return {};
    });
}
TW_GETTER(ITensor, char const*, getName, self.name.c_str())

void ITensor::setDimensions(Dims dimensions) noexcept
{
    guardedVoid(self(this), [&](TensorObject& t) -> Result<void> {
        if (!t.isInput)
            return invalidArgument("tensor '{}': dimensions can be set for network inputs only", t.name);
        TW_TRY(checkDims(dimensions, t.network->implicitBatch ? 0 : -1, "tensor '" + t.name + "': dimensions"));
        t.dims = dimensions;
        inputChanged(t);
        return {};
    });
}

Dims ITensor::getDimensions() const noexcept
{
    return guarded<Dims>(self(this), noDims(), [&](TensorObject& t) -> Result<Dims> {
        if (t.isInput)
            return t.dims;
        TW_ASSIGN(ir::Value const* v, t.network->lowered(t));
        return toPublic(v->shape, t.network->implicitBatch ? 1 : 0);
    });
}

void ITensor::setType(DataType type) noexcept
{
    guardedVoid(self(this), [&](TensorObject& t) -> Result<void> {
        int const number = static_cast<int>(type);
        if (!isPublished(number))
            return invalidArgument("tensor '{}': data type {} does not exist", t.name, number);
        // Layers keep the floating type that a network input was defined with, also when it becomes INT8 under them; a
        // change to or from another kind of number defines it anew.
        DataType const defined = t.layerType.value_or(t.type);
        bool const converts = t.isInput && type != defined && isFloating(toCore(defined)) &&
                              (isFloating(toCore(type)) || (type == DataType::kINT8 && isRead(t)));
        t.layerType = converts ? std::optional(defined) : std::nullopt;
        t.type = type;
        t.typeIsSet = true;
        inputChanged(t);
        return {};
    });
}
DataType ITensor::getType() const noexcept
{
    TensorObject& t = self(this);
    if (t.isInput || (t.typeIsSet && t.isOutput))
        return t.type;
    return guarded<DataType>(t.network->reporter, DataType::kFLOAT, [&]() -> Result<DataType> {
        TW_ASSIGN(ir::Value const* v, t.network->lowered(t));
        return toPublic(t.typeOf(*v));
    });
}

bool ITensor::setDynamicRange(float min, float max) noexcept
{
    return guarded<bool>(self(this), false, [&](TensorObject& t) -> Result<bool> {
        if (!std::isfinite(min) || !std::isfinite(max) || min > max)
            return invalidArgument("tensor '{}': dynamic range {}, {} must be finite with min <= max", t.name, min,
                                   max);
        t.rangeMin = min;
        t.rangeMax = max;
        return true;
    });
}
TW_GETTER(ITensor, bool, dynamicRangeIsSet, self.rangeMin.has_value())
void ITensor::resetDynamicRange() noexcept
{
    self(this).rangeMin.reset();
    self(this).rangeMax.reset();
}
TW_GETTER(ITensor, float, getDynamicRangeMin, self.rangeMin.value_or(std::numeric_limits<float>::quiet_NaN()))
TW_GETTER(ITensor, float, getDynamicRangeMax, self.rangeMax.value_or(std::numeric_limits<float>::quiet_NaN()))

TW_GETTER(ITensor, bool, isNetworkInput, self.isInput)
TW_GETTER(ITensor, bool, isNetworkOutput, self.isOutput || self.isShapeOutput)

void ITensor::setBroadcastAcrossBatch(bool broadcastAcrossBatch) noexcept
{
    TensorObject& t = self(this);
    if (!t.network->implicitBatch || !t.isInput)
        return; // no effect, as documented
    t.broadcastAcrossBatch = broadcastAcrossBatch;
    inputChanged(t);
}
TW_GETTER(ITensor, bool, getBroadcastAcrossBatch, self.broadcastAcrossBatch)

TW_GETTER(ITensor, TensorLocation, getLocation, self.location)
void ITensor::setLocation(TensorLocation location) noexcept
{
    guardedVoid(self(this), [&](TensorObject& t) -> Result<void> {
        if (location != TensorLocation::kDEVICE && location != TensorLocation::kHOST)
            return invalidArgument("tensor '{}': location {} does not exist", t.name, static_cast<int>(location));
        t.location = location;
        return {};
    });
}

void ITensor::setAllowedFormats(TensorFormats formats) noexcept
{
    guardedVoid(self(this), [&](TensorObject& t) -> Result<void> {
        if ((formats & ((1u << EnumMax<TensorFormat>()) - 1)) == 0)
            return invalidArgument("tensor '{}': the format mask {} allows no format", t.name, formats);
        t.formats = formats;
        return {};
    });
}
TW_GETTER(ITensor, TensorFormats, getAllowedFormats, self.formats)

bool ITensor::isShapeTensor() const noexcept
{
    return guarded<bool>(self(this), false,
                         [&](TensorObject& t) -> Result<bool> { return t.network->isShapeTensor(t); });
}
bool ITensor::isExecutionTensor() const noexcept
{
    TensorObject& t = self(this);
    return t.isOutput || !isShapeTensor();
}

void ITensor::setDimensionName(int32_t index, char const* name) noexcept
{
    guardedVoid(self(this), [&](TensorObject& t) -> Result<void> {
        if (!t.isInput)
            return invalidArgument("tensor '{}': dimension names belong to network inputs", t.name);
        if (index < 0 || index >= t.dims.nbDims)
            return invalidArgument("tensor '{}': dimension {} is out of range (rank {})", t.name, index, t.dims.nbDims);
        if (!name) {
            t.dimensionNames.erase(index);
        } else {
            TW_ASSIGN(std::string copy, checkName(name, "tensor '" + t.name + "': dimension name"));
            if (copy.empty())
                t.dimensionNames.erase(index);
            else
                t.dimensionNames[index] = std::move(copy);
        }
        inputChanged(t);
        return {};
    });
}
char const* ITensor::getDimensionName(int32_t index) const noexcept
{
    auto const& names = self(this).dimensionNames;
    auto it = names.find(index);
    return it == names.end() ? nullptr : it->second.c_str();
}

} // namespace nvinfer1
