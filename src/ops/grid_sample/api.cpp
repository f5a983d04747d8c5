// SPDX-License-Identifier: Apache-2.0
#include "api/network.h"
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
        TW_ASSIGN(ir::Node * node, ctx.add(ops::grid_sample::def(), std::move(a), std::move(in)));
        ctx.output(0, node->outputs[0]);
        return {};
    }
};

GridSampleLayer& self(nvinfer1::IGridSampleLayer* l)
{
    return static_cast<GridSampleLayer&>(*l);
}
GridSampleLayer const& self(nvinfer1::IGridSampleLayer const* l)
{
    return static_cast<GridSampleLayer const&>(*l);
}

bool isPossible(nvinfer1::SampleMode mode)
{
    using nvinfer1::SampleMode;
    return mode == SampleMode::kCLAMP || mode == SampleMode::kFILL || mode == SampleMode::kREFLECT;
}

} // namespace

namespace nvinfer1 {

IGridSampleLayer* INetworkDefinition::addGridSample(ITensor& input, ITensor& grid) noexcept
{
    return addLayer<GridSampleLayer>(*this, LayerType::kGRID_SAMPLE, "GridSample", {&input, &grid},
                                     [](GridSampleLayer&) { return Result<void>(); });
}

void IGridSampleLayer::setInterpolationMode(InterpolationMode mode) noexcept
{
    auto& l = self(this);
    guardedVoid(l.reporter(), [&]() -> Result<void> {
        int const number = static_cast<int>(mode);
        if (number < 0 || number >= EnumMax<InterpolationMode>())
            return l.error("interpolation mode " + std::to_string(number) + " does not exist");
        l.interpolation = mode;
        l.changed();
        return {};
    });
}
InterpolationMode IGridSampleLayer::getInterpolationMode() const noexcept
{
    return self(this).interpolation;
}
void IGridSampleLayer::setAlignCorners(bool alignCorners) noexcept
{
    self(this).alignCorners = alignCorners;
    self(this).changed();
}
bool IGridSampleLayer::getAlignCorners() const noexcept
{
    return self(this).alignCorners;
}
bool IGridSampleLayer::setSampleMode(SampleMode mode) noexcept
{
    auto& l = self(this);
    return guarded<bool>(l.reporter(), false, [&]() -> Result<bool> {
        if (!isPossible(mode))
            return l.error("sample mode " + std::to_string(static_cast<int>(mode)) +
                           " is not possible (allowed: kCLAMP, kFILL, kREFLECT)");
        l.outside = mode;
        l.changed();
        return true;
    });
}
SampleMode IGridSampleLayer::getSampleMode() const noexcept
{
    return self(this).outside;
}

} // namespace nvinfer1
