// SPDX-License-Identifier: Apache-2.0
#include "api/network/setter.h"
#include "ops/padding/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct PaddingLayer final : LayerObject<nvinfer1::IPaddingLayer>
{
    nvinfer1::Dims pre{}, post{}; // two entries each

    Result<void> lower(LowerContext& ctx) override
    {
        ops::padding::Attrs a;
        a.pre = toVector(pre);
        a.post = toVector(post);
        return ctx.lowerTo(ops::padding::def(), std::move(a), {ctx.in(0)});
    }
};

std::string checkPadding(nvinfer1::Dims const& d)
{
    return d.nbDims == 2 ? "" : "the padding " + str(d) + " must have 2 entries, for the two innermost dimensions";
}

TW_OBJECT(nvinfer1::IPaddingLayer, PaddingLayer)

} // namespace

namespace nvinfer1 {

IPaddingLayer* INetworkDefinition::addPaddingNd(ITensor& input, Dims prePadding, Dims postPadding) noexcept
{
    return addLayer<PaddingLayer>(*this, LayerType::kPADDING, "Padding", {&input}, [&](PaddingLayer& l) {
        l.pre = prePadding;
        l.post = postPadding;
        return checkAll("addPaddingNd", {checkPadding(prePadding), checkPadding(postPadding)});
    });
}
IPaddingLayer* INetworkDefinition::addPadding(ITensor& input, DimsHW prePadding, DimsHW postPadding) noexcept
{
    return addPaddingNd(input, prePadding, postPadding);
}

TW_PROPERTY(IPaddingLayer, Dims, setPrePaddingNd, getPrePaddingNd, pre, checkPadding(value))
TW_PROPERTY(IPaddingLayer, Dims, setPostPaddingNd, getPostPaddingNd, post, checkPadding(value))
TW_SETTER(IPaddingLayer, DimsHW, setPrePadding, setPrePaddingNd(value))
TW_GETTER(IPaddingLayer, DimsHW, getPrePadding, toHW(self.pre))
TW_SETTER(IPaddingLayer, DimsHW, setPostPadding, setPostPaddingNd(value))
TW_GETTER(IPaddingLayer, DimsHW, getPostPadding, toHW(self.post))

} // namespace nvinfer1
