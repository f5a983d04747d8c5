// SPDX-License-Identifier: Apache-2.0
// Plugins of networks on clouds of points.
#include <cmath>

#include "api/standard_plugins/standard_plugin.h"
#include "ops/scatter/op.h"
#include "ops/slice/op.h"
#include "ops/topk/op.h"

namespace tw::api {

using enum nvinfer1::PluginFieldType;
using Binary = PluginLowering::Binary;
using Unary = PluginLowering::Unary;
using Function = PluginLowering::Function;
using Value = ir::Value;

namespace {

// Zeros [N, rows, columns], and row i of image n of `values` [N, P, columns] at row places[n, i]; nothing where that is
// outside.
Value* placed(PluginLowering& p, Value* values, Value* places, int64_t rows)
{
    Value* const image = p.positions(places, 0);
    Value* const at = p.concat({p.reshape(image, {0, 0, 1}), p.reshape(places, {0, 0, 1})}, 2);
    ops::scatter::Attrs a;
    a.mode = ops::scatter::Mode::kNd;
    return p.value(ops::scatter::def(), a, {p.zeros(values, {rows, p.known(values, 2)}), at, values});
}

// features [N, P, C] of the first counts[n] pillars as images [N, C, h, w], at y and x of coordinates [N, P, 4].
void pillarScatter(PluginLowering& p)
{
    Value *const features = p.in(0, 3), *const coordinates = p.in(1, 3), *const counts = p.in(2, 1);
    std::vector<double> const shape = p.fields.numbers("dense_shape");
    auto const h = int64_t(shape[0]), w = int64_t(shape[1]);
    p.check(p.known(coordinates, 2) == 4, "its coordinates " + str(coordinates->shape) + " must be [N, P, 4]");
    Value* const y = p.reshape(p.part(coordinates, 2, 2, 3), {0, -1});
    Value* const x = p.reshape(p.part(coordinates, 2, 3, 4), {0, -1});
    auto const isIn = [&](Value* v, int64_t size) {
        return p.binary(Binary::kAnd, p.binary(Binary::kGreater, v, p.scalar(-1, v)),
                        p.binary(Binary::kLess, v, p.scalar(double(size), v)));
    };
    Value* const isPillar = p.binary(Binary::kLess, p.positions(y, 1), p.reshape(counts, {-1, 1}));
    Value* const isThere = p.binary(Binary::kAnd, isPillar, p.binary(Binary::kAnd, isIn(y, h), isIn(x, w)));
    Value* const at = p.select(isThere, p.sum(p.mul(y, p.scalar(double(w), y)), x), p.scalar(double(h * w), y));
    Value* const image = p.transpose(placed(p, features, at, h * w), {0, 2, 1});
    p.outputs = {p.reshape(image, {0, p.known(features, 2), h, w})};
}

std::string checkPillars(PluginFields const& f)
{
    std::vector<double> const shape = f.numbers("dense_shape");
    bool const fits = shape.size() == 2 && shape[0] > 0 && shape[1] > 0 && shape[0] * shape[1] < 1 << 28;
    return fits ? "" : "dense_shape needs a height and a width above 0";
}

// Index of the largest along the last dimension, i32 [..., 1], and the largest itself.
std::pair<Value*, Value*> largest(PluginLowering& p, Value* x)
{
    ops::topk::Attrs a;
    a.k = 1;
    a.axis = x->rank() - 1;
    ir::Node const* const n = p.node(ops::topk::def(), a, {x});
    return {n->outputs[1], n->outputs[0]};
}

// Boxes of anchors at the points of a grid: [N, H W A, 9], those whose score is high enough, in order.
void decodeBoxes(PluginLowering& p)
{
    Value *const scores = p.in(0, 4), *const boxes = p.in(1, 4), *const directions = p.in(2, 4);
    std::vector<double> const range = p.fields.numbers("point_cloud_range"), anchors = p.fields.numbers("anchors"),
                              bottoms = p.fields.numbers("anchor_bottom_height");
    auto const count = int64_t(anchors.size() / 4), bins = p.fields.integer("num_dir_bins");
    int64_t const h = p.known(boxes, 1), w = p.known(boxes, 2);
    p.checkNumbers({h, w, count, 9});
    int64_t const all = h * w * count;
    p.check(p.known(boxes, 3) == 7 * count && p.known(scores, 3) % count == 0 && p.known(directions, 3) == count * bins,
            fmt::format("its inputs {}, {} and {} do not fit {} anchors in {} directions", str(scores->shape),
                        str(boxes->shape), str(directions->shape), count, bins));
    // What anchors say: x, y, z; diagonal, diagonal, height; sizes; yaw.
    std::vector<double> places, scales, sizes, yaws;
    auto const step = [&](size_t axis, int64_t i, int64_t n) {
        return range[axis] + (n > 1 ? double(i) * (range[axis + 3] - range[axis]) / double(n - 1) : 0);
    };
    for (int64_t i = 0; i < all; ++i) {
        double const* const a = &anchors[size_t(i % count) * 4];
        double const diagonal = std::hypot(a[0], a[1]);
        double const bottom = bottoms[size_t(i % count) * bottoms.size() / size_t(count)];
        places.insert(places.end(), {step(0, i / count % w, w), step(1, i / count / w, h), a[2] / 2 + bottom});
        scales.insert(scales.end(), {diagonal, diagonal, a[2]});
        sizes.insert(sizes.end(), a, a + 3);
        yaws.push_back(a[3]);
    }
    Value* const e = p.reshape(boxes, {0, all, 7});
    auto const of = [&](std::vector<double> const& v, int64_t columns) {
        return p.constant(v, {1, all, columns}, e->type);
    };
    Value* const place = p.sum(p.mul(p.part(e, 2, 0, 3), of(scales, 3)), of(places, 3));
    Value* const size = p.mul(p.unary(Unary::kExp, p.part(e, 2, 3, 6)), of(sizes, 3));
    double const offset = p.fields.number("dir_offset"), period = 2 * M_PI / double(bins);
    Value* const direction = p.cast(largest(p, p.reshape(directions, {0, all, bins})).first, e->type);
    Value* const angle = p.sub(p.sum(p.part(e, 2, 6, 7), of(yaws, 1)), p.scalar(offset, e));
    Value* const turns = p.unary(
        Unary::kFloor, p.sum(p.div(angle, p.scalar(period, e)), p.scalar(p.fields.number("dir_limit_offset"), e)));
    Value* const yaw = p.sum(p.sum(p.sub(angle, p.mul(turns, p.scalar(period, e))), p.scalar(offset, e)),
                             p.mul(direction, p.scalar(period, e)));
    auto const [kind, best] = largest(p, p.reshape(scores, {0, all, -1}));
    Value* const score = p.activation(Function::kSigmoid, best);
    Value* const row = p.concat({place, size, yaw, p.cast(kind, e->type), score}, 2);
    Value* const threshold = p.scalar(p.fields.number("score_thresh"), score);
    Value* const isKept = p.reshape(p.unary(Unary::kNot, p.binary(Binary::kLess, score, threshold)), {0, -1});
    Value* const one = p.cast(isKept, DataType::kInt32);
    Value* const at = p.select(isKept, p.runningSum(one, 1, true), p.scalar(double(all), one));
    p.outputs = {placed(p, row, at, all), p.reduce(PluginLowering::Join::kSum, one, {1}, false)};
}

std::string checkDecoding(PluginFields const& f)
{
    size_t const anchors = f.numbers("anchors").size(), bottoms = f.numbers("anchor_bottom_height").size();
    if (anchors == 0 || anchors % 4 != 0 || bottoms == 0 || anchors / 4 % bottoms != 0)
        return fmt::format("anchors have {} numbers, anchor_bottom_height {}; an anchor has four, and each height as "
                           "many anchors as the others",
                           anchors, bottoms);
    if (f.numbers("point_cloud_range").size() != 6)
        return "point_cloud_range needs six numbers";
    return f.integer("num_dir_bins") > 0 && f.integer("num_dir_bins") < 1024 ? "" : "num_dir_bins must be above 0";
}

} // namespace

void registerPlugins_points(StandardPlugins& list)
{
    list.push_back({.name = "PillarScatterPlugin",
                    .version = "1",
                    .fields = {{"dense_shape", kINT32, kMust, kAny}},
                    .types = {"Tii>T"},
                    .lower = pillarScatter,
                    .check = checkPillars,
                    .formats = {{nvinfer1::DataType::kHALF, nvinfer1::PluginFormat::kHWC8, {}, {0}}},
                    .checksTypes = false});
    list.push_back({.name = "DecodeBbox3DPlugin",
                    .version = "1",
                    .fields = {{"point_cloud_range", kFLOAT32, kMay, kAny},
                               {"anchors", kFLOAT32, kMay, kAny},
                               {"anchor_bottom_height", kFLOAT32, kMay, kAny},
                               {"dir_offset", kFLOAT32},
                               {"dir_limit_offset", kFLOAT32},
                               {"num_dir_bins", kINT32},
                               {"score_thresh", kFLOAT32}},
                    .types = {"fff>fi"},
                    .lower = decodeBoxes,
                    .check = checkDecoding,
                    .checksTypes = false});
}

} // namespace tw::api
