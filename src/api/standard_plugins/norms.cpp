// SPDX-License-Identifier: Apache-2.0
// Normalizations. They are written as the nodes that passes know as layer norms (passes/fusion/fuse_layer_norm.cpp).
#include <numeric>

#include "api/standard_plugins/standard_plugin.h"

namespace tw::api {

using Function = PluginLowering::Function;
using enum nvinfer1::PluginFieldType;
using Interface = ops::plugin::Interface;
using Value = ir::Value;

namespace {

std::vector<int> axesFrom(int first, int rank)
{
    std::vector<int> axes(size_t(std::max(rank - first, 0)));
    std::iota(axes.begin(), axes.end(), first);
    return axes;
}

// (x - mean) / sqrt(variance + epsilon) * scale + bias of each image and channel; below 0 times alpha where relu is set.
void instanceNorm(PluginLowering& p)
{
    Value* const x = p.in(0);
    p.check(x->rank() >= 3, fmt::format("its input has {} dimensions; it needs 3 to 5", x->rank()));
    int64_t const channels = p.known(x, 1);
    auto const numbers = [&](char const* field) {
        std::vector<double> const values = p.fields.numbers(field);
        p.check(int64_t(values.size()) == channels,
                fmt::format("field '{}' has {} numbers for {} channels", field, values.size(), channels));
        return p.along(p.constant(values, {channels}, x->type), 1, x->rank());
    };
    Value* y = p.normalized(x, axesFrom(2, x->rank()), p.fields.number("epsilon"));
    y = p.mul(y, numbers("scales"));
    y = p.sum(y, numbers("bias"));
    if (p.fields.flag("relu"))
        y = p.activation(Function::kLeakyRelu, y, float(p.fields.number("alpha")));
    p.outputs = {y};
}

// Of each image and each group of channels; then gamma and beta of channels, inputs 1 and 2 of any shape with so many.
Value* groupNorm(PluginLowering& p, int64_t groups, double epsilon)
{
    Value* const x = p.in(0);
    p.check(x->rank() >= 3, fmt::format("its input has {} dimensions; it needs 3 or more", x->rank()));
    int64_t const channels = p.known(x, 1);
    p.check(groups > 0 && channels % groups == 0, fmt::format("{} channels in {} groups", channels, groups));
    std::vector<int64_t> back{0};
    for (ir::Dim const& d : std::span(x->shape).subspan(1))
        back.push_back(d.isConst() ? d.value() : -1);
    Value* const grouped = p.reshape(x, {0, groups, -1});
    Value* const y = p.reshape(p.normalized(grouped, {2}, epsilon), back);
    auto const numbers = [&](size_t i) { return p.along(p.cast(p.in(i), x->type), 1, x->rank()); };
    return p.sum(p.mul(y, numbers(1)), numbers(2));
}

void groupNormalization(PluginLowering& p)
{
    p.outputs = {groupNorm(p, p.fields.integer("num_groups"), p.fields.number("eps"))};
}

void diffusionGroupNorm(PluginLowering& p)
{
    Value* const y = groupNorm(p, 32, p.fields.number("epsilon"));
    p.outputs = {p.fields.flag("bSwish") ? p.mul(y, p.activation(Function::kSigmoid, y)) : y};
}

void layerNorm(PluginLowering& p)
{
    Value* const x = p.in(0);
    int64_t const given = p.fields.integer("axis"), axis = given < 0 ? given + x->rank() : given;
    p.check(axis >= 0 && axis < x->rank(), fmt::format("axis {} of {} dimensions", given, x->rank()));
    Value* const y = p.normalized(x, axesFrom(int(axis), x->rank()), p.fields.number("epsilon"));
    p.outputs = {p.sum(p.mul(y, p.cast(p.in(1), x->type)), p.cast(p.in(2), x->type))};
}

// x / sqrt(sum of squares + eps) * weight: sums over channels at each pixel, or over a whole image.
void normalize(PluginLowering& p)
{
    Value* const x = p.in(0, 4);
    bool const isShared = p.fields.flag("channelShared");
    std::vector<double> const weights = p.fields.numbers("weights");
    int64_t const channels = p.known(x, 1), wanted = isShared ? 1 : channels;
    p.check(int64_t(weights.size()) == wanted, fmt::format("{} weights; {} are needed", weights.size(), wanted));
    std::vector<int> axes{1};
    if (p.fields.flag("acrossSpatial"))
        axes = {1, 2, 3};
    Value* const squares = p.reduce(PluginLowering::Join::kSum, p.mul(x, x), axes);
    Value* const root = p.unary(PluginLowering::Unary::kSqrt, p.sum(squares, p.scalar(p.fields.number("eps"), x)));
    p.outputs = {p.mul(p.div(x, root), p.constant(weights, {1, wanted, 1, 1}, x->type))};
}

std::string checkGroups(PluginFields const& f)
{
    int64_t const groups = f.integer("num_groups");
    return groups > 0 ? "" : fmt::format("num_groups is {}; it must be above 0", groups);
}

} // namespace

void registerPlugins_norms(StandardPlugins& list)
{
    using enum nvinfer1::TensorFormat;
    using nvinfer1::DataType::kHALF, nvinfer1::DataType::kINT8;
    for (char const* version : {"1", "2"})
        list.push_back({.name = "InstanceNormalization_TRT",
                        .version = version,
                        .fields = {{"epsilon", kFLOAT32, kMay, kOne, 1e-5},
                                   {"scales", kFLOAT32, kMay, kAny},
                                   {"bias", kFLOAT32, kMay, kAny},
                                   {"relu", kINT32},
                                   {"alpha", kFLOAT32}},
                        .lower = instanceNorm,
                        .formats = {{kHALF, kDHWC8, {0}, {0}}, {kINT8, kCDHW32, {0}, {0}}}});
    list.push_back({.name = "GroupNormalizationPlugin",
                    .version = "1",
                    .fields = {{"eps", kFLOAT32, kMay, kOne, 1e-5}, {"num_groups", kINT32, kMay, kOne, 1}},
                    .types = {"fff>f"},
                    .lower = groupNormalization,
                    .check = checkGroups,
                    .checksTypes = false});
    list.push_back({.name = "GroupNorm",
                    .version = "1",
                    .fields = {{"epsilon", kFLOAT32, kMay, kOne, 1e-5}, {"bSwish", kINT32}},
                    .types = {"Tff>T"},
                    .lower = diffusionGroupNorm,
                    .formats = {{kHALF, kHWC8, {0}, {0}}},
                    .checksTypes = false});
    list.push_back({.name = "LayerNorm",
                    .version = "1",
                    .fields = {{"epsilon", kFLOAT32, kMay, kOne, 1e-5}, {"axis", kINT32, kMay, kOne, -1}},
                    .types = {"TTT>T"},
                    .lower = layerNorm,
                    .formats = {{kINT8, kCHW4, {0}, {0}}, {kINT8, kCHW32, {0}, {0}}}});
    list.push_back({.name = "Normalize_TRT",
                    .version = "1",
                    .interface = Interface::kExt,
                    .fields = {{"weights", kFLOAT32, kMay, kAny},
                               {"acrossSpatial", kINT32},
                               {"channelShared", kINT32},
                               {"nbWeights", kINT32, kMay, kOne, 1},
                               {"eps", kFLOAT32, kMay, kOne, 1e-10}},
                    .lower = normalize});
}

} // namespace tw::api
