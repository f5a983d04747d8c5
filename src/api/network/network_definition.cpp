// SPDX-License-Identifier: Apache-2.0
// INetworkDefinition but for the addX methods, which live in the op folders.
#include <algorithm>

#include "api/network/network.h"

using namespace tw;
using namespace tw::api;

namespace nvinfer1 {

ITensor* INetworkDefinition::addInput(char const* name, DataType type, Dims dimensions) noexcept
{
    return guarded<ITensor*>(objectOf(*this), nullptr, [&](NetworkObject& n) -> Result<ITensor*> {
        TW_ASSIGN(std::string copy, checkName(name, "network input"));
        int const number = static_cast<int>(type);
        if (!isPublished(number))
            return invalidArgument("network input '{}': data type {} does not exist", copy, number);
        TW_TRY(checkDims(dimensions, n.implicitBatch ? 0 : -1, "network input '" + copy + "': dimensions"));
        if (n.implicitBatch && dimensions.nbDims >= Dims::MAX_DIMS)
            return invalidArgument("network input '{}': rank {} and the implicit batch are more than {} dimensions",
                                   copy, dimensions.nbDims, int(Dims::MAX_DIMS));
        int64_t volume = 1;
        for (int i = 0; i < dimensions.nbDims; ++i)
            volume = ir::mulSat(volume, std::max(dimensions.d[i], 1));
        if (volume > INT32_MAX)
            return invalidArgument("network input '{}': {} has 2^31 elements or more; the limit is 2^31 - 1", copy,
                                   str(dimensions));
        for (auto const& t : n.inputs)
            if (t->name == copy)
                return invalidArgument("network input '{}' exists already; inputs need different names", copy);
        auto t = std::make_unique<TensorObject>();
        t->network = &n;
        t->name = std::move(copy);
        t->type = type;
        t->dims = dimensions;
        t->isInput = true;
        n.inputs.push_back(std::move(t));
        n.rollBack(nullptr);
        return n.inputs.back().get();
    });
}

void INetworkDefinition::markOutput(ITensor& tensor) noexcept
{
    guardedVoid(objectOf(*this), [&](NetworkObject& n) -> Result<void> {
        TensorObject& t = objectOf(tensor);
        if (t.network != &n)
            return invalidArgument("markOutput: tensor '{}' belongs to another network", t.name);
        if (t.isOutput)
            return invalidArgument("markOutput: tensor '{}' is an output already", t.name);
        t.isOutput = true;
        n.outputs.push_back(&t);
        return {};
    });
}
void INetworkDefinition::unmarkOutput(ITensor& tensor) noexcept
{
    guardedVoid(objectOf(*this), [&](NetworkObject& n) -> Result<void> {
        TensorObject& t = objectOf(tensor);
        if (t.network != &n || !t.isOutput)
            return invalidArgument("unmarkOutput: tensor '{}' is no output of this network", t.name);
        t.isOutput = false;
        std::erase(n.outputs, &t);
        return {};
    });
}
bool INetworkDefinition::markOutputForShapes(ITensor& tensor) noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](NetworkObject& n) -> Result<bool> {
        TensorObject& t = objectOf(tensor);
        if (t.network != &n)
            return invalidArgument("markOutputForShapes: tensor '{}' belongs to another network", t.name);
        if (t.isShapeOutput)
            return invalidArgument("markOutputForShapes: tensor '{}' is marked already", t.name);
        TW_ASSIGN(ir::Value const* v, n.lowered(t));
        if (v->type != tw::DataType::kInt32 || v->rank() > 1 || !isStatic(v->shape))
            return invalidArgument("markOutputForShapes: tensor '{}' is {}{}; it must be kINT32, have at most one "
                                   "dimension, and a constant one",
                                   t.name, nameOf(v->type), str(v->shape));
        t.isShapeOutput = true;
        n.shapeOutputs.push_back(&t);
        return true;
    });
}
bool INetworkDefinition::unmarkOutputForShapes(ITensor& tensor) noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](NetworkObject& n) -> Result<bool> {
        TensorObject& t = objectOf(tensor);
        if (t.network != &n || !t.isShapeOutput)
            return invalidArgument(
                "unmarkOutputForShapes: tensor '{}' is not marked as an output for shapes of this network", t.name);
        t.isShapeOutput = false;
        std::erase(n.shapeOutputs, &t);
        return true;
    });
}

void INetworkDefinition::removeTensor(ITensor& tensor) noexcept
{
    guardedVoid(objectOf(*this), [&](NetworkObject& n) -> Result<void> {
        TensorObject& t = objectOf(tensor);
        if (t.network != &n)
            return invalidArgument("removeTensor: tensor '{}' belongs to another network", t.name);
        for (auto const& l : n.layers)
            if (contains(l->inputs, &t))
                return invalidState("removeTensor: tensor '{}' is still an input of layer '{}'", t.name, l->name);
        std::erase(n.outputs, &t);
        std::erase(n.shapeOutputs, &t);
        t.isOutput = t.isShapeOutput = false;
        if (t.isInput) {
            n.rollBack(nullptr);
            std::erase_if(n.inputs, [&](auto const& p) { return p.get() == &t; });
        }
        return {};
    });
}

TW_GETTER(INetworkDefinition, int32_t, getNbLayers, int32_t(self.layers.size()))
ILayer* INetworkDefinition::getLayer(int32_t index) const noexcept
{
    auto const& layers = objectOf(*this).layers;
    return index >= 0 && index < int32_t(layers.size()) ? layers[size_t(index)]->asLayer() : nullptr;
}
TW_GETTER(INetworkDefinition, int32_t, getNbInputs, int32_t(self.inputs.size()))
ITensor* INetworkDefinition::getInput(int32_t index) const noexcept
{
    auto const& inputs = objectOf(*this).inputs;
    return index >= 0 && index < int32_t(inputs.size()) ? inputs[size_t(index)].get() : nullptr;
}
TW_GETTER(INetworkDefinition, int32_t, getNbOutputs, int32_t(self.allOutputs().size()))
ITensor* INetworkDefinition::getOutput(int32_t index) const noexcept
{
    auto const outputs = objectOf(*this).allOutputs();
    return index >= 0 && index < int32_t(outputs.size()) ? outputs[size_t(index)] : nullptr;
}

void INetworkDefinition::setName(char const* name) noexcept
{
    guardedVoid(objectOf(*this), [&](NetworkObject& n) -> Result<void> {
        TW_ASSIGN(n.name, checkName(name, "network"));
        return {};
    });
}
TW_GETTER(INetworkDefinition, char const*, getName, self.name.c_str())
TW_GETTER(INetworkDefinition, bool, hasImplicitBatchDimension, self.implicitBatch)
TW_GETTER(INetworkDefinition, bool, hasExplicitPrecision, self.explicitPrecision)

bool INetworkDefinition::setWeightsName(Weights weights, char const* name) noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](NetworkObject& n) -> Result<bool> {
        auto isIt = [&](Weights const& w) {
            return w.values == weights.values && w.count == weights.count && w.type == weights.type;
        };
        auto same = [&](auto const& entry) { return isIt(entry.first); };
        if (!name || !*name) {
            std::erase_if(n.weightsNames, same);
            return true;
        }
        TW_ASSIGN(std::string copy, checkName(name, "weights"));
        bool const isHeld = std::ranges::any_of(n.layers, [&](auto const& l) {
            auto const held = l->heldWeights();
            return std::ranges::any_of(held, isIt);
        });
        if (weights.count == 0 || !isHeld)
            return false; // no layer has them
        for (auto const& entry : n.weightsNames)
            if (entry.second == copy && !same(entry))
                return false; // in use for other weights
        std::erase_if(n.weightsNames, same);
        n.weightsNames.emplace_back(weights, std::move(copy));
        n.rollBack(nullptr);
        return true;
    });
}

TW_RECORDER_METHODS(INetworkDefinition)

} // namespace nvinfer1
