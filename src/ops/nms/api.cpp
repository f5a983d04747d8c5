// SPDX-License-Identifier: Apache-2.0
#include "api/network/setter.h"
#include "ops/nms/op.h"

using namespace tw;
using namespace tw::api;

namespace {

constexpr int32_t kMostCandidates = 5000; // 8.5's limit, and the default

struct NMSLayer final : LayerObject<nvinfer1::INMSLayer>
{
    nvinfer1::BoundingBoxFormat format = nvinfer1::BoundingBoxFormat::kCORNER_PAIRS;
    int32_t limit = kMostCandidates;

    int outputCount() const override { return 2; }
    int maxInputs() const override { return 5; } // the last two: IoU threshold, score threshold
    nvinfer1::DataType naturalOutputType(int) const override { return nvinfer1::DataType::kINT32; }

    Result<void> lower(LowerContext& ctx) override
    {
        if (ctx.implicitBatch())
            return error("non-maximum suppression needs an explicit batch network: its rows name the batch");
        ir::Value const &boxes = *ctx.in(0), &scores = *ctx.in(1);
        if (boxes.type != scores.type)
            return error("boxes '" + inputs[0]->name + "' are " + nameOf(boxes.type) + " and scores '" +
                         inputs[1]->name + "' " + nameOf(scores.type) + "; they must have one type");
        TW_TRY(checkOverlap(ctx.in(3)));
        ops::nms::Attrs a;
        a.format = static_cast<ops::nms::BoxFormat>(format);
        a.limit = limit;
        std::vector<ir::Value*> in;
        for (int i = 0; i < 5; ++i)
            in.push_back(ctx.in(i));
        while (!in.back())
            in.pop_back();
        return ctx.lowerTo(ops::nms::def(), std::move(a), std::move(in));
    }

private:
    // A constant threshold is looked at here; the elements of others are the client's matter.
    Result<void> checkOverlap(ir::Value const* v) const
    {
        if (!v || !v->isConstant() || !isFullFloat(v->type) || v->rank() != 0)
            return {};
        float const threshold = *static_cast<float const*>(v->constant->data->data());
        if (!(threshold >= 0 && threshold <= 1))
            return error("the IoU threshold '{}' is {} (allowed: 0 to 1)", inputs[3]->name, threshold);
        return {};
    }
};

TW_OBJECT(nvinfer1::INMSLayer, NMSLayer)

} // namespace

namespace nvinfer1 {

INMSLayer* INetworkDefinition::addNMS(ITensor& boxes, ITensor& scores, ITensor& maxOutputBoxesPerClass) noexcept
{
    return addLayer<NMSLayer>(*this, LayerType::kNMS, "NMS", {&boxes, &scores, &maxOutputBoxesPerClass});
}

TW_PROPERTY(INMSLayer, BoundingBoxFormat, setBoundingBoxFormat, getBoundingBoxFormat, format,
            checkEnum(value, "bounding box format"))
TW_PROPERTY(INMSLayer, int32_t, setTopKBoxLimit, getTopKBoxLimit, limit,
            checkRange(value, 1, kMostCandidates, "the limit of boxes"))

} // namespace nvinfer1
