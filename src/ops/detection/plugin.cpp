// SPDX-License-Identifier: Apache-2.0
// The plugins of non-maximum suppression.
#include <algorithm>
#include <limits>
#include <numeric>

#include "api/standard_plugins/standard_plugin.h"
#include "ops/cumulative_sum/op.h"
#include "ops/detection/op.h"
#include "tactic/registry.h"

namespace tw::api {

using enum nvinfer1::PluginFieldType;
using ops::detection::Attrs;
using ops::detection::Coding;
using ops::detection::Pixels;
using Interface = ops::plugin::Interface;
using Value = ir::Value;

namespace {

constexpr int64_t kMostOfImage = 5000; // of an image, of the EfficientNMS family

// One number beyond its bounds, in words; empty: it is not.
template <class T>
std::string beyond(char const* name, T value, bool isRight, char const* bounds)
{
    return isRight ? "" : fmt::format("{} is {}; it must be {}", name, value, bounds);
}
std::string firstOf(std::initializer_list<std::string> all)
{
    for (std::string const& s : all)
        if (!s.empty())
            return s;
    return {};
}
std::string notFlag(PluginFields const& f, char const* name)
{
    return beyond(name, f.integer(name), f.integer(name) == 0 || f.integer(name) == 1, "0 or 1");
}
std::string notPositive(PluginFields const& f, char const* name)
{
    return beyond(name, f.integer(name), f.integer(name) > 0, "above 0");
}

ir::Node* detection(PluginLowering& p, Attrs const& a, PluginLowering::Values in)
{
    return p.node(ops::detection::def(), a, std::move(in));
}

// Scores [n, b, c, 1] are [n, b, c].
Value* scoresOf(PluginLowering& p)
{
    Value* const scores = p.in(1);
    if (scores->rank() != 4)
        return p.in(1, 3);
    p.check(scores->shape[3].is(1), "scores '" + scores->name + "' have the shape " + str(scores->shape) +
                                        "; the last of four dimensions must be 1");
    return p.reshape(scores, {0, 0, -1});
}

void efficient(PluginLowering& p, Attrs a)
{
    a.limit = kMostOfImage;
    a.least = p.fields.number("score_threshold");
    a.overlap = p.fields.number("iou_threshold");
    PluginLowering::Values in{p.in(0), scoresOf(p)};
    if (p.inputs.size() > 2)
        in.push_back(p.in(2, 3));
    p.outputs = detection(p, a, std::move(in))->outputs;
}

void efficientNms(PluginLowering& p)
{
    Attrs a;
    a.most = p.fields.integer("max_output_boxes");
    a.background = p.fields.integer("background_class");
    a.sigmoid = p.fields.flag("score_activation");
    a.coding = Coding(p.fields.integer("box_coding"));
    efficient(p, a);
}

std::string checkEfficient(PluginFields const& f)
{
    double const score = f.number("score_threshold"), overlap = f.number("iou_threshold");
    return firstOf({beyond("score_threshold", score, score >= 0, "0 or above"),
                    beyond("iou_threshold", overlap, overlap > 0, "above 0")});
}
std::string checkEfficientNms(PluginFields const& f)
{
    return firstOf({checkEfficient(f), notPositive(f, "max_output_boxes"), notFlag(f, "score_activation"),
                    notFlag(f, "box_coding")});
}

void efficientNmsOnnx(PluginLowering& p)
{
    Attrs a;
    a.rows = true;
    a.most = p.fields.integer("max_output_boxes_per_class");
    a.coding = Coding(p.fields.integer("center_point_box"));
    efficient(p, a);
}
std::string checkEfficientNmsOnnx(PluginFields const& f)
{
    return firstOf({checkEfficient(f), notPositive(f, "max_output_boxes_per_class"), notFlag(f, "center_point_box")});
}

void efficientNmsTf(PluginLowering& p)
{
    int64_t const all = p.fields.integer("max_total_size"), ofClass = p.fields.integer("max_output_size_per_class");
    Attrs a;
    a.most = all;
    if (p.fields.flag("pad_per_class") && ofClass > 0)
        a.most = std::min(all, ofClass * p.known(p.in(1), 2));
    p.check(a.most > 0, "its scores have no classes");
    a.mostOfClass = ofClass > 0 ? ofClass : 0;
    a.clips = p.fields.flag("clip_boxes");
    efficient(p, a);
}
// Of an implicit batch: the count is 0-D beside it.
void efficientNmsImplicitTf(PluginLowering& p)
{
    efficientNmsTf(p);
    p.outputs[0] = p.reshape(p.outputs[0], {-1});
}
std::string checkEfficientNmsTf(PluginFields const& f)
{
    return firstOf(
        {checkEfficient(f), notPositive(f, "max_total_size"), notFlag(f, "pad_per_class"), notFlag(f, "clip_boxes")});
}

// The BatchedNMS family. Scores that do not pass stand among the others as 0 and end their class: with a threshold below
// 0 they hide what is below 0, and zeros behind the first of them.
Value* unhidden(PluginLowering& p, Value* scores, double least)
{
    if (least >= 0)
        return scores;
    using enum ops::elementwise::Operation;
    int64_t const boxes = p.known(scores, 1);
    std::vector<double> places(static_cast<size_t>(boxes));
    std::iota(places.begin(), places.end(), 0.);
    Value* const place = p.constant(places, {1, boxes, 1});
    Value* const x = p.cast(scores, DataType::kFloat);
    Value *const none = p.scalar(double(boxes), x), *const zero = p.scalar(0, x);
    Value* const passes = p.binary(kGreater, x, p.scalar(least, x));
    Value* const firstOut = p.reduce(ops::reduce::Kind::kMin, p.select(passes, none, place), {1});
    Value* const behind = p.binary(kGreater, place, firstOut);
    Value* const isHidden = p.binary(kOr, p.binary(kLess, x, zero), p.binary(kAnd, p.binary(kEqual, x, zero), behind));
    Value* const isAny = p.binary(kLess, firstOut, none);
    return p.select(p.binary(kAnd, isAny, isHidden), p.scalar(-std::numeric_limits<double>::infinity(), x), x);
}

Attrs classical(PluginFields const& f, char const* least, char const* overlap)
{
    Attrs a;
    a.aboveLeast = a.aboveOverlap = a.classesFirst = true;
    a.noClass = -1;
    a.least = f.number(least);
    a.overlap = f.number(overlap);
    a.most = f.integer("keepTopK");
    a.limitOfClass = std::max<int64_t>(f.integer("topK"), 0);
    a.background = f.integer("backgroundLabelId");
    return a;
}

void batchedNms(PluginLowering& p)
{
    Attrs a = classical(p.fields, "scoreThreshold", "iouThreshold");
    a.clips = p.fields.flag("clipBoxes");
    if (!p.fields.flag("isNormalized"))
        a.pixels = p.fields.flag("caffeSemantics") ? Pixels::kAll : Pixels::kAreas;
    Value *const boxes = p.in(0, 4), *const scores = p.in(1, 3);
    int64_t const classes = p.fields.integer("numClasses"), own = p.fields.flag("shareLocation") ? 1 : classes;
    p.check(p.known(scores, 2) == classes,
            fmt::format("scores '{}' have the shape {}; numClasses is {}", scores->name, str(scores->shape), classes));
    p.check(p.known(boxes, 2) == own,
            fmt::format("boxes '{}' have the shape {}; shareLocation and numClasses need {} in dimension 2",
                        boxes->name, str(boxes->shape), own));
    auto const& y = detection(p, a, {boxes, unhidden(p, scores, a.least)})->outputs;
    p.outputs = {y[0], y[1], p.cast(y[2], scores->type), p.cast(y[3], scores->type)};
}

std::string checkBatchedNms(PluginFields const& f)
{
    int64_t const some = f.integer("topK");
    return firstOf({notPositive(f, "numClasses"), notPositive(f, "topK"),
                    beyond("topK", some, some <= 4096, "at most 4096"), notPositive(f, "keepTopK"),
                    notFlag(f, "shareLocation"), notFlag(f, "isNormalized"), notFlag(f, "clipBoxes"),
                    notFlag(f, "caffeSemantics")});
}

// Boxes [n, priors, location classes, 4] of SSD.
enum class Code
{
    kCorner = 0,
    kCenterSize = 1,
    kCornerSize = 2,
    kTfCenter = 3,
};

Value* picked(PluginLowering& p, Value* x, std::vector<double> const& of)
{
    return p.gather(x, p.constant(of, {int64_t(of.size())}, DataType::kInt32), 3);
}

Value* decoded(PluginLowering& p, Value* location, Value* priors, Value* variance, Code code)
{
    bool const isTf = code == Code::kTfCenter;
    bool const isEncoded = p.fields.flag("varianceEncodedInTarget") && !isTf;
    if (isTf) // y x h w
        location = picked(p, location, {1, 0, 3, 2});
    Value* const moved = isEncoded ? location : p.mul(location, variance);
    if (code == Code::kCorner)
        return p.sum(priors, moved);
    Value *const least = picked(p, priors, {0, 1}), *const most = picked(p, priors, {2, 3});
    Value* const size = p.sub(most, least);
    if (code == Code::kCornerSize)
        return p.sum(priors, p.mul(moved, p.concat({size, size}, 3)));
    Value* const half = p.scalar(0.5, priors);
    Value* const centre = p.sum(p.mul(picked(p, moved, {0, 1}), size), p.mul(p.sum(least, most), half));
    Value* const side = p.mul(p.mul(p.unary(PluginLowering::Unary::kExp, picked(p, moved, {2, 3})), size), half);
    return p.concat({p.sub(centre, side), p.sum(centre, side)}, 3);
}

// Numbers of images, [n, 1], beside a tensor [n, 1] of integers.
Value* imageNumbers(PluginLowering& p, Value* integers)
{
    Value* const one = p.sum(p.mul(integers, p.scalar(0, integers)), p.scalar(1, integers));
    ops::cumulative_sum::Attrs a;
    a.exclusive = true;
    return p.value(ops::cumulative_sum::def(), a, {one}, "images");
}

// With kIsDynamic, the first dimension of the priors alone says whether they are one set for the batch.
template <bool kIsDynamic>
void detectionOutput(PluginLowering& p)
{
    std::vector<double> order = p.fields.numbers("inputOrder");
    if (order.empty())
        order = {0, 2, 1};
    Value *location = p.in(size_t(order[0])), *confidence = p.in(size_t(order[1])), *priors = p.in(size_t(order[2]), 4);
    DataType const type = location->type;
    int64_t const classes = p.fields.integer("numClasses"), count = p.known(priors, 2) / 4;
    int64_t const own = p.fields.flag("shareLocation") ? 1 : classes;
    auto const named = [&](Value* v) { return "'" + v->name + "' " + str(v->shape); };
    p.check(p.known(priors, 1) == 2 && p.known(priors, 2) % 4 == 0 && p.known(priors, 3) == 1,
            "priors " + named(priors) + " must be [n or 1, 2, 4 priors, 1]");
    auto const elements = [&](Value* v) {
        int64_t n = 1;
        for (int d = 1; d < v->rank(); ++d)
            n *= p.known(v, d);
        return n;
    };
    p.check(location->rank() > 1 && elements(location) == count * own * 4,
            fmt::format("locations {} must have {} numbers of an image", named(location), count * own * 4));
    p.check(confidence->rank() > 1 && elements(confidence) == count * classes,
            fmt::format("confidences {} must have {} numbers of an image", named(confidence), count * classes));
    if (!kIsDynamic && !priors->shape[0].is(1) && p.fields.flag("isBatchAgnostic"))
        priors = p.part(priors, 0, 0, 1);
    auto const wide = [&](Value* v) { return p.cast(v, DataType::kFloat); };
    auto const half = [&](int64_t i) { return p.reshape(p.part(wide(priors), 1, i, i + 1), {0, count, 1, 4}); };
    Value* const boxes =
        decoded(p, p.reshape(wide(location), {0, count, own, 4}), half(0), half(1), Code(p.fields.integer("codeType")));

    Attrs a = classical(p.fields, "confidenceThreshold", "nmsThreshold");
    a.sigmoid = p.fields.flag("confSigmoid");
    a.clips = a.countBits = true;
    a.pixels = p.fields.flag("isNormalized") ? Pixels::kNone : Pixels::kAll;
    Value* scores = p.reshape(confidence, {0, count, classes});
    if (!a.sigmoid)
        scores = unhidden(p, scores, a.least);
    auto const& y = detection(p, a, {boxes, scores})->outputs;
    auto const column = [&](Value* v) { return wide(p.reshape(v, {0, 1, a.most, 1})); };
    Value* const labels = column(y[3]);
    Value* const image = wide(imageNumbers(p, p.reduce(ops::reduce::Kind::kMax, y[3], {1})));
    Value* const images = p.sum(p.mul(labels, p.scalar(0, labels)), p.reshape(image, {0, 1, 1, 1}));
    Value* const rows = p.concat({images, labels, column(y[2]), p.reshape(y[1], {0, 1, a.most, 4})}, 3);
    p.outputs = {p.cast(rows, type), y[0]};
}

std::string checkDetectionOutput(PluginFields const& f)
{
    std::vector<double> order = f.numbers("inputOrder");
    std::sort(order.begin(), order.end());
    if (!order.empty() && order != std::vector<double>{0, 1, 2})
        return "inputOrder must have 0, 1 and 2 once each";
    int64_t const code = f.integer("codeType");
    return firstOf({notPositive(f, "numClasses"), notPositive(f, "keepTopK"), notFlag(f, "shareLocation"),
                    notFlag(f, "varianceEncodedInTarget"), notFlag(f, "confSigmoid"), notFlag(f, "isNormalized"),
                    beyond("codeType", code, code >= 0 && code <= 3, "0 to 3")});
}

} // namespace

void registerPlugins_detection(StandardPlugins& list)
{
    std::vector<FieldSpec> const tf{
        {"max_output_size_per_class", kINT32}, {"max_total_size", kINT32}, {"iou_threshold", kFLOAT32},
        {"score_threshold", kFLOAT32},         {"pad_per_class", kINT32},  {"clip_boxes", kINT32}};
    list.push_back({.name = "EfficientNMS_TRT",
                    .version = "1",
                    .fields = {{"score_threshold", kFLOAT32, kMust},
                               {"iou_threshold", kFLOAT32, kMust},
                               {"max_output_boxes", kINT32, kMust},
                               {"background_class", kINT32, kMust},
                               {"score_activation", kINT32, kMust},
                               {"box_coding", kINT32, kMust}},
                    .types = {"TTT?>iTTi"},
                    .lower = efficientNms,
                    .check = checkEfficientNms});
    list.push_back({.name = "EfficientNMS_ONNX_TRT",
                    .version = "1",
                    .fields = {{"score_threshold", kFLOAT32},
                               {"iou_threshold", kFLOAT32},
                               {"max_output_boxes_per_class", kINT32},
                               {"center_point_box", kINT32}},
                    .types = {"TT>i"},
                    .lower = efficientNmsOnnx,
                    .check = checkEfficientNmsOnnx});
    list.push_back({.name = "EfficientNMS_Explicit_TF_TRT",
                    .version = "1",
                    .fields = tf,
                    .types = {"TT>iTTi"},
                    .lower = efficientNmsTf,
                    .check = checkEfficientNmsTf});
    list.push_back({.name = "EfficientNMS_Implicit_TF_TRT",
                    .version = "1",
                    .interface = Interface::kIOExt,
                    .fields = tf,
                    .types = {"TT>iTTi"},
                    .lower = efficientNmsImplicitTf,
                    .check = checkEfficientNmsTf});
    for (auto [name, interface] :
         {std::pair{"BatchedNMS_TRT", Interface::kExt}, std::pair{"BatchedNMSDynamic_TRT", Interface::kDynamicExt}})
        list.push_back({.name = name,
                        .version = "1",
                        .interface = interface,
                        .fields = {{"shareLocation", kINT32, kMust},
                                   {"backgroundLabelId", kINT32, kMust},
                                   {"numClasses", kINT32, kMust},
                                   {"topK", kINT32, kMust},
                                   {"keepTopK", kINT32, kMust},
                                   {"scoreThreshold", kFLOAT32, kMust},
                                   {"iouThreshold", kFLOAT32, kMust},
                                   {"isNormalized", kINT32, kMay, kOne, 1},
                                   {"clipBoxes", kINT32, kMay, kOne, 1},
                                   {"scoreBits", kINT32, kMay, kOne, 16},
                                   {"caffeSemantics", kINT32, kMay, kOne, 1}},
                        .types = {"TT>iTTT"},
                        .lower = batchedNms,
                        .check = checkBatchedNms});
    for (auto [name, interface] :
         {std::pair{"NMS_TRT", Interface::kExt}, std::pair{"NMSDynamic_TRT", Interface::kDynamicExt}})
        list.push_back({.name = name,
                        .version = "1",
                        .interface = interface,
                        .fields = {{"shareLocation", kINT32},
                                   {"varianceEncodedInTarget", kINT32},
                                   {"backgroundLabelId", kINT32},
                                   {"numClasses", kINT32},
                                   {"topK", kINT32},
                                   {"keepTopK", kINT32},
                                   {"confidenceThreshold", kFLOAT32},
                                   {"nmsThreshold", kFLOAT32},
                                   {"inputOrder", kINT32, kMay, kAny},
                                   {"confSigmoid", kINT32},
                                   {"isNormalized", kINT32},
                                   {"codeType", kINT32, kMay, kOne, 3},
                                   {"scoreBits", kINT32, kMay, kOne, 16},
                                   {"isBatchAgnostic", kINT32, kMay, kOne, 1}},
                        .types = {"TTT>Tf"},
                        .lower = interface == Interface::kExt ? detectionOutput<false> : detectionOutput<true>,
                        .check = checkDetectionOutput});
}

} // namespace tw::api
