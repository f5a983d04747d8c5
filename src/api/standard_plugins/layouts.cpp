// SPDX-License-Identifier: Apache-2.0
// Plugins that move elements, or add channels that no input has.
#include <cmath>
#include <numeric>

#include "api/standard_plugins/standard_plugin.h"
#include "ops/resize/op.h"
#include "ops/scatter/op.h"

namespace tw::api {

using Function = PluginLowering::Function;
using enum nvinfer1::PluginFieldType;
using Interface = ops::plugin::Interface;
using Value = ir::Value;

namespace {

void flattenConcat(PluginLowering& p)
{
    PluginLowering::Values flat;
    for (size_t i = 0; i < p.inputs.size(); ++i)
        flat.push_back(p.reshape(p.in(i, 4), {0, -1}));
    p.outputs = {p.reshape(p.concat(flat, 1), {0, -1, 1, 1})};
}

std::string checkFlattenConcat(PluginFields const& f)
{
    if (f.integer("axis") != 1)
        return fmt::format("axis is {}; it must be 1", f.integer("axis"));
    return f.flag("ignoreBatch") ? "ignoreBatch must be 0" : "";
}

// Darknet's order: x as [N, C / s / s, H, s, W, s], whatever its dimensions say, with s x s in front of the channels.
void reorg(PluginLowering& p)
{
    Value* const x = p.in(0, 4);
    int64_t const s = p.fields.integer("stride"), c = p.known(x, 1), h = p.known(x, 2), w = p.known(x, 3);
    p.check(c % (s * s) == 0 && h % s == 0 && w % s == 0,
            fmt::format("its input {} does not fit the stride {}", str(x->shape), s));
    Value* const cut = p.reshape(x, {0, c / s / s, h, s, w, s});
    p.outputs = {p.reshape(p.transpose(cut, {0, 3, 5, 1, 2, 4}), {0, c * s * s, h / s, w / s})};
}

std::string checkReorg(PluginFields const& f)
{
    int64_t const s = f.integer("stride");
    return s > 0 && s < 1 << 15 ? "" : fmt::format("stride is {}; it must be above 0", s);
}

void resizeNearest(PluginLowering& p)
{
    Value* const x = p.in(0, 4);
    double const scale = p.fields.number("scale");
    auto const sizeOf = [&](int d) { return int64_t(float(p.known(x, d)) * float(scale)); };
    p.check(sizeOf(2) > 0 && sizeOf(3) > 0, fmt::format("the scale {} leaves nothing of {}", scale, str(x->shape)));
    if (scale == std::floor(scale)) {
        ops::resize::Attrs a;
        a.scales = {1, 1, scale, scale};
        p.outputs = {p.value(ops::resize::def(), a, {x})};
        return;
    }
    Value* y = x;
    for (int d : {2, 3}) {
        p.checkNumbers({sizeOf(d)});
        std::vector<double> from(size_t(sizeOf(d)));
        for (size_t o = 0; o < from.size(); ++o)
            from[o] = std::min(std::floor(float(o) / float(scale)), float(p.known(x, d) - 1));
        y = p.gather(y, p.constant(from, {sizeOf(d)}, DataType::kInt32), d);
    }
    p.outputs = {y};
}

std::string checkScale(PluginFields const& f)
{
    double const scale = f.number("scale");
    return scale > 0 && scale < 65536 ? "" : fmt::format("scale is {}; it must be above 0", scale);
}

void batchTile(PluginLowering& p)
{
    Value* x = p.in(1);
    p.check(p.in(0)->rank() > 0, "its first input has no batch");
    if (x->rank() == 5 && x->shape[1].is(1)) // the interface of 8.5 has the 1 behind the batch
        x = p.reshape(x, {0, p.known(x, 2), p.known(x, 3), p.known(x, 4)});
    bool const isThere = x->rank() == 4 && x->shape[0] == p.in(0)->shape[0];
    p.check(isThere || (x->rank() > 0 && x->shape[0].is(1)),
            "its second input " + str(x->shape) + " must have one image");
    p.outputs = {isThere ? x : p.repeated(x, p.in(0))};
}

// Two more channels: rows and columns, from -1 to 1.
void coordConv(PluginLowering& p)
{
    Value* const x = p.in(0, 4);
    int64_t const h = p.known(x, 2), w = p.known(x, 3);
    p.checkNumbers({2, h, w});
    std::vector<double> numbers;
    for (bool isRow : {true, false})
        for (int64_t i = 0; i < h * w; ++i) {
            int64_t const at = isRow ? i / w : i % w, last = (isRow ? h : w) - 1;
            numbers.push_back(last == 0 ? -1 : -1 + 2.0 * double(at) / double(last));
        }
    p.outputs = {p.concat({x, p.repeated(p.constant(numbers, {1, 2, h, w}, x->type), x)}, 1)};
}

void scatterNd(PluginLowering& p)
{
    ops::scatter::Attrs a;
    a.mode = ops::scatter::Mode::kNd;
    p.outputs = {p.value(ops::scatter::def(), a, {p.in(0), p.in(1), p.in(2)})};
}

void split(PluginLowering& p)
{
    Value* const x = p.in(0);
    int64_t const axis = p.fields.integer("axis");
    p.check(axis >= 0 && axis < x->rank(), fmt::format("axis {} of {}", axis, str(x->shape)));
    int64_t begin = 0;
    for (double length : p.fields.numbers("lengths")) {
        p.check(length >= 0 && begin + int64_t(length) <= p.known(x, int(axis)),
                fmt::format("the lengths are more than dimension {} of {}", axis, str(x->shape)));
        p.outputs.push_back(p.part(x, int(axis), begin, begin + int64_t(length)));
        begin += int64_t(length);
    }
}

// Of each anchor: the sigmoid of x, y and of the objectness, the softmax of the classes or of each group of them.
void region(PluginLowering& p)
{
    Value* const x = p.in(0, 4);
    int64_t const anchors = p.fields.integer("num"), coords = p.fields.integer("coords"),
                  classes = p.fields.integer("classes"), each = coords + 1 + classes;
    p.check(p.known(x, 1) == anchors * each,
            fmt::format("its input {} has no {} channels", str(x->shape), anchors * each));
    Value* const cut = p.reshape(x, {0, anchors, each, -1});
    auto const part = [&](int64_t begin, int64_t end) { return p.part(cut, 2, begin, end); };
    PluginLowering::Values parts{p.activation(Function::kSigmoid, part(0, 2)), part(2, coords),
                                 p.activation(Function::kSigmoid, part(coords, coords + 1))};
    std::vector<double> groups = p.fields.numbers("smTree");
    if (groups.empty())
        groups = {double(classes)};
    int64_t begin = coords + 1;
    for (double size : groups) {
        p.check(size > 0 && begin + int64_t(size) <= each,
                fmt::format("the groups of smTree have more than {} classes", classes));
        parts.push_back(p.softmax(part(begin, begin + int64_t(size)), 2));
        begin += int64_t(size);
    }
    p.check(begin == each, fmt::format("the groups of smTree have less than {} classes", classes));
    p.outputs = {p.reshapeLike(p.concat(parts, 2), x)};
}

std::string checkRegion(PluginFields const& f)
{
    bool const fits = f.integer("num") > 0 && f.integer("num") <= 4096 && f.integer("coords") > 2 &&
                      f.integer("coords") <= 4096 && f.integer("classes") > 0 && f.integer("classes") <= 1 << 20;
    return fits ? "" : "num and classes must be above 0, coords above 2";
}

// (sequence + bias + residual) [B, H W, C] as an image [B, C, H, W].
void sequenceToImage(PluginLowering& p)
{
    Value* const x = p.in(0, 3);
    Value* const sum = p.sum(p.sum(x, p.in(1)), p.in(2));
    p.outputs = {p.reshapeLike(p.transpose(sum, {0, 2, 1}), p.in(3, 4))};
}

} // namespace

void registerPlugins_layouts(StandardPlugins& list)
{
    list.push_back({.name = "FlattenConcat_TRT",
                    .version = "1",
                    .interface = Interface::kExt,
                    .fields = {{"axis", kINT32, kMust}, {"ignoreBatch", kINT32, kMust}},
                    .types = {"TT*>T"},
                    .lower = flattenConcat,
                    .check = checkFlattenConcat});
    list.push_back({.name = "Reorg_TRT",
                    .version = "1",
                    .interface = Interface::kExt,
                    .fields = {{"stride", kINT32}},
                    .lower = reorg,
                    .check = checkReorg});
    list.push_back({.name = "ResizeNearest_TRT",
                    .version = "1",
                    .interface = Interface::kExt,
                    .fields = {{"scale", kFLOAT32, kMust}},
                    .lower = resizeNearest,
                    .check = checkScale});
    list.push_back({.name = "BatchTilePlugin_TRT",
                    .version = "1",
                    .interface = Interface::kExt,
                    .types = {"TT>T"},
                    .lower = batchTile,
                    .shared = 2});
    list.push_back({.name = "CoordConvAC", .version = "1", .interface = Interface::kExt, .lower = coordConv});
    list.push_back({.name = "ScatterND", .version = "1", .types = {"AiA>A"}, .lower = scatterNd});
    list.push_back({.name = "Split",
                    .version = "1",
                    .fields = {{"axis", kINT32, kMust}, {"lengths", kINT32, kMust, kAny}},
                    .types = {"A>A*"},
                    .lower = split,
                    .outputs = [](PluginFields const& f) { return int(f.numbers("lengths").size()); },
                    .isMade = false});
    list.push_back({.name = "Region_TRT",
                    .version = "1",
                    .interface = Interface::kExt,
                    .fields = {{"num", kINT32},
                               {"coords", kINT32, kMay, kOne, 4},
                               {"classes", kINT32},
                               {"smTree", kINT32, kMay, FieldSpec::Count::kTree}},
                    .lower = region,
                    .check = checkRegion});
    list.push_back({.name = "SeqLen2Spatial",
                    .version = "1",
                    .types = {"TTTf>T"},
                    .lower = sequenceToImage,
                    .formats = {{nvinfer1::DataType::kFLOAT, nvinfer1::PluginFormat::kHWC, {}, {0}},
                                {nvinfer1::DataType::kHALF, nvinfer1::PluginFormat::kHWC8, {}, {0}}}});
}

} // namespace tw::api
