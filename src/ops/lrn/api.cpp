// SPDX-License-Identifier: Apache-2.0
#include "api/network/setter.h"
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
        return ctx.lowerTo(ops::lrn::def(), std::move(a), {ctx.in(0)});
    }
};

std::string checkWindow(int32_t v)
{
    return v >= 1 && v <= 15 && v % 2 == 1 ? "" : fmt::format("window {} must be odd and in 1..15", v);
}
std::string checkWithin(float v, float lo, float hi, char const* what, char const* range)
{
    return v >= lo && v <= hi ? "" : fmt::format("{} {} must be in {}", what, v, range);
}
std::string checkAlpha(float v)
{
    return checkWithin(v, -1e20f, 1e20f, "alpha", "[-1e20, 1e20]");
}
std::string checkBeta(float v)
{
    return checkWithin(v, 0.01f, 1e5f, "beta", "[0.01, 1e5]");
}
std::string checkK(float v)
{
    return checkWithin(v, 1e-5f, 1e10f, "k", "[1e-5, 1e10]");
}

TW_OBJECT(nvinfer1::ILRNLayer, LRNLayer)

} // namespace

namespace nvinfer1 {

ILRNLayer* INetworkDefinition::addLRN(ITensor& input, int32_t window, float alpha, float beta, float k) noexcept
{
    return addLayer<LRNLayer>(*this, LayerType::kLRN, "LRN", {&input}, [&](LRNLayer& l) {
        l.window = window;
        l.alpha = alpha;
        l.beta = beta;
        l.k = k;
        return checkAll("addLRN", {checkWindow(window), checkAlpha(alpha), checkBeta(beta), checkK(k)});
    });
}

TW_PROPERTY(ILRNLayer, int32_t, setWindowSize, getWindowSize, window, checkWindow(value))
TW_PROPERTY(ILRNLayer, float, setAlpha, getAlpha, alpha, checkAlpha(value))
TW_PROPERTY(ILRNLayer, float, setBeta, getBeta, beta, checkBeta(value))
TW_PROPERTY(ILRNLayer, float, setK, getK, k, checkK(value))

} // namespace nvinfer1
