// SPDX-License-Identifier: Apache-2.0
// Functions of one number, alone or with what stands in front of them.
#include "api/standard_plugins/standard_plugin.h"

namespace tw::api {

using Function = PluginLowering::Function;
using enum nvinfer1::PluginFieldType;
using Interface = ops::plugin::Interface;

namespace {

void clip(PluginLowering& p)
{
    p.outputs = {
        p.activation(Function::kClip, p.in(0), float(p.fields.number("clipMin")), float(p.fields.number("clipMax")))};
}

// x > 0 ? x : negSlope x
void leakyRelu(PluginLowering& p)
{
    p.outputs = {p.activation(Function::kLeakyRelu, p.in(0), float(p.fields.number("negSlope")))};
}

// L gelu(R) of the halves L and R of the last dimension.
void splitGelu(PluginLowering& p)
{
    auto* const x = p.in(0);
    int const last = x->rank() - 1;
    p.check(last >= 0 && p.known(x, last) % 2 == 0, "the last dimension of its input must be even");
    int64_t const half = p.known(x, last) / 2;
    auto* const right = p.part(x, last, half, 2 * half);
    auto* const phi = p.sum(p.unary(PluginLowering::Unary::kErf, p.mul(right, p.scalar(M_SQRT1_2, x))), p.scalar(1, x));
    p.outputs = {p.mul(p.part(x, last, 0, half), p.mul(p.mul(right, p.scalar(0.5, x)), phi))};
}

// x (1/2 + tanh(x (0.0356774 x x + 0.797885)) / 2) of the input and its bias: [S, B, E(, 1, 1)].
void customGelu(PluginLowering& p)
{
    auto* x = p.in(0);
    if (auto const bias = p.fields.weights("bias"); bias.count > 0) {
        p.check(x->rank() >= 3, "its input " + str(x->shape) + " must be [S, B, E] or [S, B, E, 1, 1]");
        x = p.sum(x, p.along(p.weights(bias, {p.known(x, 2)}, x->type, ir::WeightsRole::kBias), 2, x->rank()));
    }
    auto* const cubic = p.mul(x, p.sum(p.mul(p.mul(x, x), p.scalar(0.0356774, x)), p.scalar(0.797885, x)));
    auto* const tanh = p.activation(Function::kTanh, cubic);
    p.outputs = {p.mul(x, p.sum(p.mul(tanh, p.scalar(0.5, x)), p.scalar(0.5, x)))};
}

std::string checkType(PluginFields const& f)
{
    int64_t const type = f.integer("type_id");
    return type == 0 || type == 1 ? "" : fmt::format("type_id is {}; it must be 0 (kFLOAT) or 1 (kHALF)", type);
}

} // namespace

void registerPlugins_activations(StandardPlugins& list)
{
    list.push_back({.name = "Clip_TRT",
                    .version = "1",
                    .interface = Interface::kV2,
                    .fields = {{"clipMin", kFLOAT32, kMust}, {"clipMax", kFLOAT32, kMust}},
                    .lower = clip});
    list.push_back({.name = "LReLU_TRT",
                    .version = "1",
                    .interface = Interface::kV2,
                    .fields = {{"negSlope", kFLOAT32}},
                    .lower = leakyRelu});
    list.push_back({.name = "SplitGeLU", .version = "1", .lower = splitGelu});
    list.push_back({.name = "CustomGeluPluginDynamic",
                    .version = "1",
                    .fields = {{"type_id", kINT32, kMust}, {"bias", kUNKNOWN}},
                    .lower = customGelu,
                    .check = checkType,
                    .checksTypes = false});
}

} // namespace tw::api
