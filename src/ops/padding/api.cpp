// SPDX-License-Identifier: Apache-2.0
#include "api/setter.h"
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
        TW_ASSIGN(ir::Node * node, ctx.add(ops::padding::def(), std::move(a), {ctx.in(0)}));
        ctx.output(0, node->outputs[0]);
        return {};
    }
};

PaddingLayer& self(nvinfer1::IPaddingLayer* l)
{
    return static_cast<PaddingLayer&>(*l);
}
PaddingLayer const& self(nvinfer1::IPaddingLayer const* l)
{
    return static_cast<PaddingLayer const&>(*l);
}
std::string checkPadding(nvinfer1::Dims const& d)
{
    return d.nbDims == 2 ? std::string()
                         : "the padding " + str(d) + " must have 2 entries, for the two innermost dimensions";
}

} // namespace

namespace nvinfer1 {

IPaddingLayer* INetworkDefinition::addPaddingNd(ITensor& input, Dims prePadding, Dims postPadding) noexcept
{
    return addLayer<PaddingLayer>(
        *this, LayerType::kPADDING, "Padding", {&input}, [&](PaddingLayer& l) -> Result<void> {
            for (std::string const& why : {checkPadding(prePadding), checkPadding(postPadding)})
                if (!why.empty())
                    return invalidArgument("addPaddingNd: " + why);
            l.pre = prePadding;
            l.post = postPadding;
            return {};
        });
}
IPaddingLayer* INetworkDefinition::addPadding(ITensor& input, DimsHW prePadding, DimsHW postPadding) noexcept
{
    return addPaddingNd(input, prePadding, postPadding);
}

void IPaddingLayer::setPrePaddingNd(Dims padding) noexcept
{
    setField(self(this), self(this).pre, padding, checkPadding);
}
Dims IPaddingLayer::getPrePaddingNd() const noexcept
{
    return self(this).pre;
}
void IPaddingLayer::setPostPaddingNd(Dims padding) noexcept
{
    setField(self(this), self(this).post, padding, checkPadding);
}
Dims IPaddingLayer::getPostPaddingNd() const noexcept
{
    return self(this).post;
}

void IPaddingLayer::setPrePadding(DimsHW padding) noexcept
{
    setPrePaddingNd(padding);
}
DimsHW IPaddingLayer::getPrePadding() const noexcept
{
    return DimsHW(self(this).pre.d[0], self(this).pre.d[1]);
}
void IPaddingLayer::setPostPadding(DimsHW padding) noexcept
{
    setPostPaddingNd(padding);
}
DimsHW IPaddingLayer::getPostPadding() const noexcept
{
    return DimsHW(self(this).post.d[0], self(this).post.d[1]);
}

} // namespace nvinfer1
