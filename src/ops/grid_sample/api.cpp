// SPDX-License-Identifier: Apache-2.0
#include "api/network/setter.h"
#include "ops/grid_sample/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct GridSampleLayer final : LayerObject<nvinfer1::IGridSampleLayer>
{
    nvinfer1::InterpolationMode interpolation = nvinfer1::InterpolationMode::kLINEAR;
    nvinfer1::SampleMode outside = nvinfer1::SampleMode::kFILL;
    bool alignCorners = false;

    Result<void> lower(LowerContext& ctx) override
    {
        ops::grid_sample::Attrs a;
        a.interpolation = static_cast<ops::grid_sample::Interpolation>(interpolation);
        a.outside = static_cast<ops::grid_sample::Outside>(outside);
        a.alignCorners = alignCorners;
        std::vector<ir::Value*> in{ctx.in(0), ctx.in(1)};
        TW_TRY(ctx.shareBatch(in));
        return ctx.lowerTo(ops::grid_sample::def(), std::move(a), std::move(in));
    }
};

std::string checkOutside(nvinfer1::SampleMode mode)
{
    using nvinfer1::SampleMode;
    if (mode == SampleMode::kCLAMP || mode == SampleMode::kFILL || mode == SampleMode::kREFLECT)
        return {};
    return fmt::format("sample mode {} is not possible (allowed: kCLAMP, kFILL, kREFLECT)", static_cast<int>(mode));
}

TW_OBJECT(nvinfer1::IGridSampleLayer, GridSampleLayer)

} // namespace

namespace nvinfer1 {

IGridSampleLayer* INetworkDefinition::addGridSample(ITensor& input, ITensor& grid) noexcept
{
    return addLayer<GridSampleLayer>(*this, LayerType::kGRID_SAMPLE, "GridSample", {&input, &grid});
}

TW_PROPERTY(IGridSampleLayer, InterpolationMode, setInterpolationMode, getInterpolationMode, interpolation,
            checkEnum(value, "interpolation mode"))
TW_PROPERTY(IGridSampleLayer, bool, setAlignCorners, getAlignCorners, alignCorners)
bool IGridSampleLayer::setSampleMode(SampleMode mode) noexcept
{
    return change(objectOf(*this), [&](GridSampleLayer& l) -> Result<void> {
        TW_TRY(refusal(l, checkOutside(mode)));
        l.outside = mode;
        return {};
    });
}
TW_GETTER(IGridSampleLayer, SampleMode, getSampleMode, self.outside)

} // namespace nvinfer1
