// SPDX-License-Identifier: Apache-2.0
// The layers through which values enter, leave and control loops and conditionals. In the flat graph, which answers for
// dimensions while a network is under construction, they are values without a producer; emit.h makes regions of them.
#pragma once

#include "api/network/network.h"

namespace tw::api::control_flow {

struct LoopObject final : nvinfer1::ILoop, Construct
{};

struct ConditionalObject final : nvinfer1::IIfConditional, Construct
{
    LayerState const* condition() const;
};
TW_OBJECT(nvinfer1::ILoop, LoopObject)
TW_OBJECT(nvinfer1::IIfConditional, ConditionalObject)

struct RecurrenceLayer final : LayerObject<nvinfer1::IRecurrenceLayer>
{
    int maxInputs() const override { return 2; }
    bool isBackEdge(int index) const override { return index == 1; }
    Result<void> lower(LowerContext& ctx) override;
    nvinfer1::DataType naturalOutputType(int) const override;
};

struct IteratorLayer final : LayerObject<nvinfer1::IIteratorLayer>
{
    int32_t axis = 0;
    bool reverse = false;
    Result<void> lower(LowerContext& ctx) override;
};

struct TripLimitLayer final : LayerObject<nvinfer1::ITripLimitLayer>
{
    nvinfer1::TripLimit limit{};
    int outputCount() const override { return 0; }
    // Outputs of the loop may have the count as a dimension.
    Result<void> onSetInput(int, TensorObject&) override { return network->rollBack(nullptr), Result<void>(); }
    Result<void> lower(LowerContext&) override { return {}; }
};

struct LoopOutputLayer final : LayerObject<nvinfer1::ILoopOutputLayer>
{
    nvinfer1::LoopOutput kind{};
    int32_t axis = 0;
    bool stacks() const { return kind != nvinfer1::LoopOutput::kLAST_VALUE; }
    TensorObject* length() const { return inputs.size() > 1 ? inputs[1] : nullptr; }
    int maxInputs() const override { return 2; }
    Result<void> onSetInput(int index, TensorObject& tensor) override;
    Result<void> lower(LowerContext& ctx) override;
};

struct ConditionLayer final : LayerObject<nvinfer1::IConditionLayer>
{
    int outputCount() const override { return 0; }
    Result<void> lower(LowerContext&) override { return {}; }
};

struct ConditionalInputLayer final : LayerObject<nvinfer1::IIfConditionalInputLayer>
{
    Result<void> lower(LowerContext& ctx) override;
};

struct ConditionalOutputLayer final : LayerObject<nvinfer1::IIfConditionalOutputLayer>
{
    Result<void> lower(LowerContext& ctx) override;
};

TW_OBJECT(nvinfer1::IIteratorLayer, IteratorLayer)
TW_OBJECT(nvinfer1::ITripLimitLayer, TripLimitLayer)
TW_OBJECT(nvinfer1::ILoopOutputLayer, LoopOutputLayer)

// A loop or conditional on its own, when the network is built: limits, conditions, next values, types. One without any
// boundary layer does nothing and is left alone.
Result<void> checkComplete(Construct const& c);

// The loop's limit of this kind; null: it has none.
TripLimitLayer const* limitOf(Construct const& loop, nvinfer1::TripLimit kind);

// The layers of one class among a construct's.
template <class Layer>
std::vector<Layer*> layersOf(Construct const& c, nvinfer1::LayerType type)
{
    std::vector<Layer*> out;
    for (LayerState* l : c.layers)
        if (l->type == type)
            out.push_back(static_cast<Layer*>(l));
    return out;
}

// addLayer for a boundary layer of `construct`.
template <class Layer, class Init>
Layer* addBoundary(Construct& construct, nvinfer1::LayerType type, char const* typeName,
                   std::vector<nvinfer1::ITensor*> const& inputs, Init&& init) noexcept
{
    Layer* made = addLayer<Layer>(*construct.network, type, typeName, inputs, [&](Layer& l) -> Result<void> {
        l.construct = &construct;
        return init(l);
    });
    if (made)
        construct.layers.push_back(made);
    return made;
}
template <class Layer>
Layer* addBoundary(Construct& construct, nvinfer1::LayerType type, char const* typeName,
                   std::vector<nvinfer1::ITensor*> const& inputs) noexcept
{
    return addBoundary<Layer>(construct, type, typeName, inputs, [](Layer&) { return Result<void>(); });
}

// Makes a loop or conditional with its default name.
template <class Object>
Object* addConstruct(NetworkObject& network, bool isLoop)
{
    auto made = std::make_unique<Object>();
    Object* raw = made.get();
    raw->network = &network;
    raw->isLoop = isLoop;
    raw->index = int(network.constructs.size());
    raw->name = fmt::format("(Unnamed {}* {})", isLoop ? "Loop" : "IfConditional", raw->index);
    network.constructs.push_back(std::move(made));
    return raw;
}

} // namespace tw::api::control_flow
