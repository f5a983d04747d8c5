// SPDX-License-Identifier: Apache-2.0
#include "api/network/setter.h"
#include "ops/resize/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct ResizeLayer final : LayerObject<nvinfer1::IResizeLayer>
{
    nvinfer1::Dims outputDims{-1, {}}; // nbDims -1: not set
    std::vector<float> scales;         // of the two, the one set last counts
    nvinfer1::ResizeMode mode = nvinfer1::ResizeMode::kNEAREST;
    nvinfer1::ResizeCoordinateTransformation coordinates = nvinfer1::ResizeCoordinateTransformation::kASYMMETRIC;
    nvinfer1::ResizeSelector selector = nvinfer1::ResizeSelector::kFORMULA;
    nvinfer1::ResizeRoundMode rounding = nvinfer1::ResizeRoundMode::kFLOOR;
    float cubicCoeff = -0.75f;
    bool excludeOutside = false;

    int maxInputs() const override { return 2; } // data, output dimensions
    Result<void> onSetInput(int index, TensorObject&) override
    {
        if (index == 1) {
            outputDims = nvinfer1::Dims{-1, {}};
            scales.clear();
        }
        return {};
    }
    Result<void> lower(LowerContext& ctx) override
    {
        ir::Value* x = ctx.in(0);
        ops::resize::Attrs a;
        a.mode = static_cast<ops::resize::Mode>(mode);
        a.coordinates = static_cast<ops::resize::Coordinates>(coordinates);
        a.selector = static_cast<ops::resize::Selector>(selector);
        a.rounding = static_cast<ops::resize::Rounding>(rounding);
        a.cubicCoeff = cubicCoeff;
        a.excludeOutside = excludeOutside;
        int const shift = ctx.axisShift(), rank = x->rank() - shift;
        if (ctx.in(1) && ctx.implicitBatch())
            return error("output dimensions cannot be a tensor in a network with implicit batch");
        if (!ctx.in(1) && outputDims.nbDims < 0 && scales.empty())
            return error("needs output dimensions or scales: call setOutputDimensions or setScales, or set input 1");
        if (outputDims.nbDims >= 0) {
            if (outputDims.nbDims != rank)
                return error("output dimensions {} must have {} entries, as input '{}' has", str(outputDims), rank,
                             inputs[0]->name);
            a.outputDims.assign(size_t(shift), -1); // the batch stays
            for (int64_t d : toVector(outputDims))
                a.outputDims.push_back(d);
        }
        if (!scales.empty()) {
            if (int(scales.size()) != rank)
                return error("got {} scales, input '{}' has {} dimensions", scales.size(), inputs[0]->name, rank);
            a.scales.assign(size_t(shift), 1.0);
            a.scales.insert(a.scales.end(), scales.begin(), scales.end());
        }
        std::vector<ir::Value*> in{x};
        if (ctx.in(1))
            in.push_back(ctx.in(1));
        return ctx.lowerTo(ops::resize::def(), std::move(a), std::move(in));
    }
};

TW_OBJECT(nvinfer1::IResizeLayer, ResizeLayer)

} // namespace

namespace nvinfer1 {

IResizeLayer* INetworkDefinition::addResize(ITensor& input) noexcept
{
    return addLayer<ResizeLayer>(*this, LayerType::kRESIZE, "Resize", {&input});
}

void IResizeLayer::setOutputDimensions(Dims dimensions) noexcept
{
    change(objectOf(*this), [&](ResizeLayer& l) -> Result<void> {
        if (l.hasInput(1))
            return l.error("the output dimensions come from input 1, they cannot be set");
        TW_TRY(checkDims(dimensions, 0, l.where("output dimensions")));
        l.outputDims = dimensions;
        l.scales.clear();
        return {};
    });
}
TW_GETTER(IResizeLayer, Dims, getOutputDimensions, self.outputDims)
void IResizeLayer::setScales(float const* scales, int32_t nbScales) noexcept
{
    change(objectOf(*this), [&](ResizeLayer& l) -> Result<void> {
        if (l.hasInput(1))
            return l.error("the output dimensions come from input 1, scales cannot be set");
        if (!scales || nbScales < 1 || nbScales > Dims::MAX_DIMS)
            return l.error("setScales needs 1..{} scales, got {}", int(Dims::MAX_DIMS),
                           scales ? std::to_string(nbScales) : "a null pointer");
        for (int i = 0; i < nbScales; ++i)
            if (ops::resize::Fraction f; !ops::resize::fractionOf(scales[i], f))
                return l.error("scale {} of dimension {} must be positive, and neither too small nor too large (about "
                               "2^-24 to 2^24)",
                               scales[i], i);
        l.scales.assign(scales, scales + nbScales);
        l.outputDims = Dims{-1, {}};
        return {};
    });
}
int32_t IResizeLayer::getScales(int32_t size, float* scales) const noexcept
{
    std::vector<float> const& own = objectOf(*this).scales;
    if (own.empty())
        return -1;
    for (int32_t i = 0; scales && i < size && i < int32_t(own.size()); ++i)
        scales[i] = own[size_t(i)];
    return int32_t(own.size());
}
void IResizeLayer::setAlignCorners(bool alignCorners) noexcept
{
    using Transformation = ResizeCoordinateTransformation;
    if (alignCorners)
        setCoordinateTransformation(Transformation::kALIGN_CORNERS);
    else if (getAlignCorners())
        setCoordinateTransformation(Transformation::kASYMMETRIC);
}
TW_GETTER(IResizeLayer, bool, getAlignCorners, self.coordinates == ResizeCoordinateTransformation::kALIGN_CORNERS)

TW_PROPERTY(IResizeLayer, ResizeMode, setResizeMode, getResizeMode, mode, checkEnum(value, "resize mode"))
TW_PROPERTY(IResizeLayer, ResizeCoordinateTransformation, setCoordinateTransformation, getCoordinateTransformation,
            coordinates, checkEnum(value, "coordinate transformation"))
TW_PROPERTY(IResizeLayer, ResizeSelector, setSelectorForSinglePixel, getSelectorForSinglePixel, selector,
            checkEnum(value, "selector for a single pixel"))
TW_PROPERTY(IResizeLayer, ResizeRoundMode, setNearestRounding, getNearestRounding, rounding,
            checkEnum(value, "nearest rounding"))
TW_PROPERTY(IResizeLayer, float, setCubicCoeff, getCubicCoeff, cubicCoeff, checkFinite(value, "the cubic coefficient"))
TW_PROPERTY(IResizeLayer, bool, setExcludeOutside, getExcludeOutside, excludeOutside)

} // namespace nvinfer1
