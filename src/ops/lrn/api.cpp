// SPDX-License-Identifier: Apache-2.0
#include "api/setter.h"
#include "ops/lrn/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct LRNLayer final : LayerObject<nvinfer1::ILRNLayer>
{
    int32_t window = 1;
    float alpha = 0, beta = 1, k = 1;

    Result<void> lower(LowerContext& ctx) override
    {
        if (ctx.in(0)->rank() - ctx.axisShift() < 3)
            return error("input '" + inputs[0]->name + "' must have at least 3 dimensions");
        ops::lrn::Attrs a;
        a.window = window;
        a.alpha = alpha;
        a.beta = beta;
        a.k = k;
        TW_ASSIGN(ir::Node * node, ctx.add(ops::lrn::def(), std::move(a), {ctx.in(0)}));
        ctx.output(0, node->outputs[0]);
        return {};
    }
};

LRNLayer& self(nvinfer1::ILRNLayer* l)
{
    return static_cast<LRNLayer&>(*l);
}
LRNLayer const& self(nvinfer1::ILRNLayer const* l)
{
    return static_cast<LRNLayer const&>(*l);
}

std::string checkRange(char const* what, float v, float lo, float hi, char const* range)
{
    return v >= lo && v <= hi ? std::string() : std::string(what) + " " + std::to_string(v) + " must be in " + range;
}
std::string checkWindow(int32_t v)
{
    return v >= 1 && v <= 15 && v % 2 == 1 ? std::string()
                                           : "window " + std::to_string(v) + " must be odd and in 1..15";
}
std::string checkAlpha(float v)
{
    return checkRange("alpha", v, -1e20f, 1e20f, "[-1e20, 1e20]");
}
std::string checkBeta(float v)
{
    return checkRange("beta", v, 0.01f, 1e5f, "[0.01, 1e5]");
}
std::string checkK(float v)
{
    return checkRange("k", v, 1e-5f, 1e10f, "[1e-5, 1e10]");
}

} // namespace

namespace nvinfer1 {

ILRNLayer* INetworkDefinition::addLRN(ITensor& input, int32_t window, float alpha, float beta, float k) noexcept
{
    return addLayer<LRNLayer>(*this, LayerType::kLRN, "LRN", {&input}, [&](LRNLayer& l) -> Result<void> {
        for (std::string const& why : {checkWindow(window), checkAlpha(alpha), checkBeta(beta), checkK(k)})
            if (!why.empty())
                return invalidArgument("addLRN: " + why);
        l.window = window;
        l.alpha = alpha;
        l.beta = beta;
        l.k = k;
        return {};
    });
}

void ILRNLayer::setWindowSize(int32_t windowSize) noexcept
{
    setField(self(this), self(this).window, windowSize, checkWindow);
}
int32_t ILRNLayer::getWindowSize() const noexcept
{
    return self(this).window;
}
void ILRNLayer::setAlpha(float alpha) noexcept
{
    setField(self(this), self(this).alpha, alpha, checkAlpha);
}
float ILRNLayer::getAlpha() const noexcept
{
    return self(this).alpha;
}
void ILRNLayer::setBeta(float beta) noexcept
{
    setField(self(this), self(this).beta, beta, checkBeta);
}
float ILRNLayer::getBeta() const noexcept
{
    return self(this).beta;
}
void ILRNLayer::setK(float k) noexcept
{
    setField(self(this), self(this).k, k, checkK);
}
float ILRNLayer::getK() const noexcept
{
    return self(this).k;
}

} // namespace nvinfer1
