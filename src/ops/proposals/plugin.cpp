// SPDX-License-Identifier: Apache-2.0
// Plugins that propose regions, or tell detections, of scored boxes. Boxes are moved, sorted and kept by the op; what
// stands here is where they lie and which numbers each plugin has.
#include <cmath>

#include "api/standard_plugins/standard_plugin.h"
#include "ops/gather/op.h"
#include "ops/proposals/op.h"
#include "ops/roi_align/op.h"
#include "ops/topk/op.h"
#include "tactic/registry.h"

namespace tw::ops::proposals {

namespace {

using api::PluginFields, api::PluginLowering, ir::Value;

constexpr double kLeastScore = 0.01; // of Mask R-CNN

struct Size
{
    double h, w;
};

Size imageSize(PluginFields const& f, Size absent)
{
    std::vector<double> const size = f.numbers("image_size"); // channels, height, width
    return size.empty() ? absent : Size{size[1], size[2]};
}

ir::Node* propose(PluginLowering& p, Attrs a, PluginLowering::Values in)
{
    while (!in.back())
        in.pop_back();
    return p.node(proposals::def(), std::move(a), std::move(in));
}

// [n, a, 4, 1, ...] as [n, a, 4].
Value* table(PluginLowering& p, Value* x, int64_t columns)
{
    std::vector<int64_t> dims{0, 0};
    if (columns > 0)
        dims.push_back(columns);
    for (int d = 2; d < x->rank(); ++d)
        p.check(d == 2 || p.known(x, d) == 1,
                "'" + x->name + "' has the shape " + str(x->shape) + "; dimensions behind the third must be 1");
    return p.reshape(x, dims);
}

// Corners of boxes with these sides around (y, x).
void addBox(std::vector<double>& boxes, double y, double x, double h, double w)
{
    for (double v : {y - h / 2, x - w / 2, y + h / 2, x + w / 2})
        boxes.push_back(v);
}

Value* constantBoxes(PluginLowering& p, std::vector<double> const& boxes)
{
    return p.constant(boxes, {1, int64_t(boxes.size() / 4), 4});
}

void checkCount(PluginLowering& p, Value const* x, std::vector<double> const& boxes)
{
    p.check(p.known(x, 1) == int64_t(boxes.size() / 4),
            fmt::format("'{}' has the shape {}; images of this size have {} anchors", x->name, str(x->shape),
                        boxes.size() / 4));
}

// Five levels of strides 4 to 64 with anchors of 32 to 512 pixels.
void proposalLayer(PluginLowering& p)
{
    auto const [h, w] = imageSize(p.fields, {1024, 1024});
    p.checkNumbers({int64_t(h / 4) + 1, int64_t(w / 4) + 1, 4 * 2 * 3});
    std::vector<double> boxes;
    for (int level = 0; level < 5; ++level) {
        double const stride = 4 << level, side = 32 << level;
        int64_t const rows = int64_t(std::ceil(h / stride)), columns = int64_t(std::ceil(w / stride));
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j)
                for (double ratio : {0.5, 1.0, 2.0})
                    addBox(boxes, double(i) * stride, double(j) * stride, side / std::sqrt(ratio),
                           side * std::sqrt(ratio));
    }
    for (size_t i = 0; i < boxes.size(); i += 4) {
        boxes[i] /= h - 1;
        boxes[i + 1] /= w - 1;
        boxes[i + 2] = (boxes[i + 2] - 1) / (h - 1);
        boxes[i + 3] = (boxes[i + 3] - 1) / (w - 1);
    }
    Value* const scores = p.in(0);
    checkCount(p, scores, boxes);
    Attrs a;
    a.limit = p.fields.integer("prenms_topk");
    a.keep = p.fields.integer("keep_topk");
    a.overlap = p.fields.number("iou_threshold");
    a.above = kLeastScore;
    a.weights = {0.1, 0.1, 0.2, 0.2};
    a.limits = {1, 1};
    Value* const object = p.reshape(p.part(table(p, scores, 2), 2, 1, 2), {0, 0});
    Value* const rois = propose(p, a, {constantBoxes(p, boxes), object, table(p, p.in(1), 4)})->outputs[0];
    p.outputs = {p.cast(rois, scores->type)};
}

Attrs pixelsOf(Size image)
{
    Attrs a;
    a.plus = 1;
    a.limits = {image.h - 1, image.w - 1};
    a.mostGrowth = std::log(1000.0 / 16);
    return a;
}

// Of each level the best, then of all levels.
void multilevelPropose(PluginLowering& p)
{
    constexpr Size kShapes[] = {{1, 1}, {0.7, 1.4}, {1.4, 0.7}};
    auto const image = imageSize(p.fields, {832, 1344});
    p.checkNumbers({int64_t(image.h / 4) + 1, int64_t(image.w / 4) + 1, 4 * 2 * 3});
    PluginLowering::Values allBoxes, allScores;
    for (int level = 0; level < 5; ++level) {
        double const stride = 4 << level, side = 8 * stride;
        Value *const deltas = p.in(size_t(2 * level)), *const scores = p.in(size_t(2 * level + 1));
        std::vector<double> boxes;
        int64_t const rows = int64_t(std::ceil(image.h / stride)), columns = int64_t(std::ceil(image.w / stride));
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j)
                for (Size const& s : kShapes)
                    addBox(boxes, stride / 2 + double(i) * stride, stride / 2 + double(j) * stride, side * s.h,
                           side * s.w);
        checkCount(p, scores, boxes);
        Attrs a = pixelsOf(image);
        a.limit = p.fields.integer("prenms_topk");
        a.keep = p.fields.integer("keep_topk");
        a.overlap = p.fields.number("iou_threshold");
        a.least = p.fields.number("fg_threshold");
        ir::Node* const best = propose(p, a, {constantBoxes(p, boxes), table(p, scores, 0), table(p, deltas, 4)});
        allBoxes.push_back(best->outputs[0]);
        allScores.push_back(best->outputs[1]);
    }
    Attrs a;
    a.limit = a.keep = p.fields.integer("keep_topk");
    a.overlap = INFINITY;
    Value* const rois = propose(p, a, {p.concat(allBoxes, 1), p.concat(allScores, 1)})->outputs[0];
    p.outputs = {p.cast(rois, p.in(0)->type)};
}

// The best class of each roi, and what it moves the roi by. Class 0 is the background: it is dropped where it is the
// best, or takes no part.
void detect(PluginLowering& p, Attrs a, bool hasBackground)
{
    Value *const deltas = p.in(0), *const given = p.in(1), *const rois = p.in(2, 3);
    int64_t const classes = p.fields.integer("num_classes"), first = hasBackground ? 0 : 1;
    Value* scores = table(p, given, classes);
    if (!hasBackground)
        scores = p.part(scores, 2, 1, classes);
    ops::topk::Attrs best;
    best.axis = 2;
    ir::Node* const found = p.node(ops::topk::def(), best, {scores});
    auto const flat = [&](Value* x) { return p.reshape(x, {0, 0}); };
    Value* kind = flat(found->outputs[1]);
    if (first > 0)
        kind = p.sum(kind, p.scalar(double(first), kind));
    Value* const byClass = p.reshape(table(p, deltas, 4 * classes), {0, 0, classes, 4});
    // [n * r, classes, 4] at [n * r, 1]
    ops::gather::Attrs rows;
    rows.axis = 1;
    rows.elementWiseDims = 1;
    Value* const chosen =
        p.value(ops::gather::def(), rows, {p.reshape(byClass, {-1, classes, 4}), p.reshape(kind, {-1, 1})});
    Value* score = flat(found->outputs[0]);
    if (hasBackground) {
        Value* const isThing = p.binary(PluginLowering::Binary::kGreater, kind, p.scalar(0, kind));
        score = p.select(isThing, score, p.scalar(-1, score));
    }
    a.limit = kMostBoxes;
    a.keep = p.fields.integer("keep_topk");
    a.overlap = p.fields.number("iou_threshold");
    a.least = p.fields.number("score_threshold");
    a.above = kLeastScore;
    Value* const moves = p.reshape(chosen, {-1, p.known(rois, 1), 4});
    p.outputs = {p.cast(propose(p, a, {rois, score, moves, kind})->outputs[0], rois->type)};
}

void detectionLayer(PluginLowering& p)
{
    Attrs a;
    a.weights = {0.1, 0.1, 0.2, 0.2};
    a.limits = {1, 1};
    detect(p, a, true);
}

void generateDetection(PluginLowering& p)
{
    Attrs a = pixelsOf(imageSize(p.fields, {832, 1344}));
    a.weights = {0.1, 0.1, 0.2, 0.2};
    detect(p, a, false);
}

void specialSlice(PluginLowering& p)
{
    p.outputs = {p.part(p.in(0, 3), 2, 0, 4)};
}

// [n, 4 a, h, w] as [n, a h w, 4].
Value* movesOfCells(PluginLowering& p, Value* x, int64_t anchors)
{
    int64_t const cells = p.known(x, 2) * p.known(x, 3);
    return p.reshape(p.transpose(p.reshape(x, {0, anchors, 4, cells}), {0, 1, 3, 2}), {0, anchors * cells, 4});
}

// Boxes x y x y of `shapes` at each cell of a feature map, all cells of the first shape first.
std::vector<double> boxesOfCells(PluginLowering& p, Value const* map, std::vector<Size> const& shapes, double stride,
                                 double first)
{
    p.checkNumbers({int64_t(shapes.size()), p.known(map, 2), p.known(map, 3), 4});
    std::vector<double> boxes;
    for (Size const& s : shapes)
        for (int64_t i = 0; i < p.known(map, 2); ++i)
            for (int64_t j = 0; j < p.known(map, 3); ++j)
                addBox(boxes, first + double(j) * stride, first + double(i) * stride, s.w, s.h);
    return boxes;
}

void proposal(PluginLowering& p)
{
    Value *const scores = p.in(0, 4), *const deltas = p.in(1, 4);
    std::vector<Size> shapes;
    for (double size : p.fields.numbers("anchor_sizes"))
        for (double ratio : p.fields.numbers("anchor_ratios"))
            shapes.push_back({size / ratio, size * ratio});
    int64_t const anchors = int64_t(shapes.size());
    p.check(p.known(scores, 1) == anchors && p.known(deltas, 1) == 4 * anchors,
            fmt::format("scores {} and deltas {} are not those of {} anchors", str(scores->shape), str(deltas->shape),
                        anchors));
    double const stride = p.fields.number("rpn_stride"), h = p.fields.number("input_height"),
                 w = p.fields.number("input_width");
    Attrs a;
    a.limit = p.fields.integer("pre_nms_top_n");
    a.keep = p.fields.integer("post_nms_top_n");
    a.overlap = p.fields.number("nms_iou_threshold");
    a.limits = {w - 1, h - 1};
    a.areaPlus = 1;
    a.minSide = p.fields.number("roi_min_size") + 1;
    a.isMinStrict = true;
    Value* const boxes = constantBoxes(p, boxesOfCells(p, scores, shapes, stride, stride / 2));
    Value* const rois =
        propose(p, a, {boxes, p.reshape(scores, {0, -1}), movesOfCells(p, deltas, anchors)})->outputs[0];
    Value* const byRows = p.gather(rois, p.constant({1, 0, 3, 2}, {4}, DataType::kInt32), 2);
    Value* const normal = p.div(byRows, p.constant({h - 1, w - 1, h - 1, w - 1}, {1, 1, 4}));
    p.outputs = {p.cast(p.reshape(normal, {0, 0, 4, 1}), scores->type)};
}

void regionsOfInterest(PluginLowering& p)
{
    Value *const scores = p.in(0, 4), *const deltas = p.in(1, 4), *const map = p.in(2, 4);
    double const stride = p.fields.number("featureStride");
    std::vector<Size> shapes;
    for (double ratio : p.fields.numbers("anchorsRatios"))
        for (double scale : p.fields.numbers("anchorsScales")) {
            double const w = std::round(std::sqrt(stride * stride / ratio)), h = std::round(w * ratio);
            shapes.push_back({h * scale, w * scale});
        }
    int64_t const anchors = int64_t(shapes.size()), keep = p.fields.integer("nmsMaxOut");
    p.check(p.known(scores, 1) == 2 * anchors && p.known(deltas, 1) == 4 * anchors,
            fmt::format("scores {} and deltas {} are not those of {} anchors", str(scores->shape), str(deltas->shape),
                        anchors));
    Attrs a;
    a.limit = p.fields.integer("preNmsTop");
    a.keep = keep;
    a.overlap = p.fields.number("iouThreshold");
    a.areaPlus = 1;
    a.minSide = p.fields.number("minBoxSize");
    Value* const boxes = constantBoxes(p, boxesOfCells(p, scores, shapes, stride, (stride - 1) / 2));
    Value* const object = p.reshape(p.part(scores, 1, anchors, 2 * anchors), {0, -1});
    Value* const rois =
        propose(p, a, {boxes, object, movesOfCells(p, deltas, anchors), nullptr, p.reshape(p.in(3), {0, 3})})
            ->outputs[0];
    roi_align::Attrs pool;
    pool.mode = roi_align::Mode::kMax;
    pool.grid = roi_align::Grid::kPooled;
    pool.height = p.fields.integer("poolingH");
    pool.width = p.fields.integer("poolingW");
    pool.scale = p.fields.number("spatialScale");
    p.outputs = {p.cast(p.reshape(rois, {0, 1, keep, 4}), scores->type),
                 p.value(roi_align::def(), pool, {rois, nullptr, map})};
}

std::string outOf(PluginFields const& f, std::initializer_list<char const*> fields, int64_t least, int64_t most)
{
    for (char const* field : fields)
        if (int64_t const v = f.integer(field); v < least || v > most)
            return fmt::format("{} is {}; it must be {} to {}", field, v, least, most);
    return "";
}

// A list of so many numbers above 0.
std::string listOutOf(PluginFields const& f, char const* field, int64_t count)
{
    std::vector<double> const values = f.numbers(field);
    if (int64_t(values.size()) != count || count < 1)
        return fmt::format("{} has {} numbers{}", field, values.size(),
                           count < 1 ? "; one at least is needed" : fmt::format(", not {}", count));
    for (double v : values)
        if (!(v > 0))
            return fmt::format("{} has the number {}; all must be above 0", field, v);
    return "";
}

std::string firstOf(std::initializer_list<std::string> sentences)
{
    for (std::string const& s : sentences)
        if (!s.empty())
            return s;
    return "";
}

std::string checkImage(PluginFields const& f)
{
    return f.numbers("image_size").empty() ? "" : listOutOf(f, "image_size", 3);
}

std::string checkProposals(PluginFields const& f)
{
    return firstOf({outOf(f, {"prenms_topk", "keep_topk"}, 1, kMostBoxes), checkImage(f)});
}

std::string checkDetectionLayer(PluginFields const& f)
{
    return firstOf({outOf(f, {"num_classes"}, 2, INT32_MAX / 4), outOf(f, {"keep_topk"}, 1, kMostBoxes)});
}

std::string checkGenerateDetection(PluginFields const& f)
{
    return firstOf({checkDetectionLayer(f), checkImage(f)});
}

std::string checkProposal(PluginFields const& f)
{
    return firstOf({outOf(f, {"pre_nms_top_n", "post_nms_top_n"}, 1, kMostBoxes),
                    outOf(f, {"input_height", "input_width"}, 2, INT32_MAX), outOf(f, {"rpn_stride"}, 1, INT32_MAX),
                    listOutOf(f, "anchor_sizes", int64_t(f.numbers("anchor_sizes").size())),
                    listOutOf(f, "anchor_ratios", int64_t(f.numbers("anchor_ratios").size()))});
}

std::string checkRegions(PluginFields const& f)
{
    return firstOf({outOf(f, {"poolingH", "poolingW"}, 1, roi_align::kMostBins),
                    outOf(f, {"preNmsTop", "nmsMaxOut"}, 1, kMostBoxes), outOf(f, {"featureStride"}, 1, INT32_MAX),
                    listOutOf(f, "anchorsRatios", f.integer("anchorsRatioCount")),
                    listOutOf(f, "anchorsScales", f.integer("anchorsScaleCount")),
                    f.number("spatialScale") > 0 ? "" : "spatialScale must be above 0"});
}

} // namespace

} // namespace tw::ops::proposals

namespace tw::api {

void registerPlugins_proposals(StandardPlugins& list)
{
    using enum nvinfer1::PluginFieldType;
    using Interface = ops::plugin::Interface;
    namespace own = ops::proposals;
    FieldSpec const image{"image_size", kINT32, kMay, kAny};
    list.push_back({.name = "ProposalLayer_TRT",
                    .version = "1",
                    .interface = Interface::kExt,
                    .fields = {{"prenms_topk", kINT32, kMust},
                               {"keep_topk", kINT32, kMust},
                               {"iou_threshold", kFLOAT32, kMust},
                               image},
                    .types = {"TT>T"},
                    .lower = own::proposalLayer,
                    .check = own::checkProposals});
    list.push_back({.name = "MultilevelProposeROI_TRT",
                    .version = "1",
                    .interface = Interface::kExt,
                    .fields = {{"prenms_topk", kINT32, kMust},
                               {"keep_topk", kINT32, kMust},
                               {"fg_threshold", kFLOAT32, kMust},
                               {"iou_threshold", kFLOAT32, kMust},
                               image},
                    .types = {"TTTTTTTTTT>T"},
                    .lower = own::multilevelPropose,
                    .check = own::checkProposals});
    std::vector<FieldSpec> detection{{"num_classes", kINT32, kMust},
                                     {"keep_topk", kINT32, kMust},
                                     {"score_threshold", kFLOAT32, kMust},
                                     {"iou_threshold", kFLOAT32, kMust}};
    list.push_back({.name = "DetectionLayer_TRT",
                    .version = "1",
                    .interface = Interface::kExt,
                    .fields = detection,
                    .types = {"TTT>T"},
                    .lower = own::detectionLayer,
                    .check = own::checkDetectionLayer});
    detection.push_back(image);
    list.push_back({.name = "GenerateDetection_TRT",
                    .version = "1",
                    .interface = Interface::kExt,
                    .fields = detection,
                    .types = {"TTT>T"},
                    .lower = own::generateDetection,
                    .check = own::checkGenerateDetection});
    list.push_back(
        {.name = "SpecialSlice_TRT", .version = "1", .interface = Interface::kExt, .lower = own::specialSlice});
    for (auto const& [name, interface] :
         {std::pair{"Proposal", Interface::kExt}, std::pair{"ProposalDynamic", Interface::kDynamicExt}})
        list.push_back({.name = name,
                        .version = "1",
                        .interface = interface,
                        .fields = {{"input_height", kINT32},
                                   {"input_width", kINT32},
                                   {"rpn_stride", kINT32},
                                   {"roi_min_size", kFLOAT32},
                                   {"nms_iou_threshold", kFLOAT32},
                                   {"pre_nms_top_n", kINT32},
                                   {"post_nms_top_n", kINT32},
                                   {"anchor_sizes", kFLOAT32, kMay, kAny},
                                   {"anchor_ratios", kFLOAT32, kMay, kAny}},
                        .types = {"TT>T"},
                        .lower = own::proposal,
                        .check = own::checkProposal});
    list.push_back({.name = "RPROI_TRT",
                    .version = "1",
                    .interface = Interface::kIOExt,
                    .fields = {{"poolingH", kINT32},
                               {"poolingW", kINT32},
                               {"featureStride", kINT32},
                               {"preNmsTop", kINT32},
                               {"nmsMaxOut", kINT32},
                               {"anchorsRatioCount", kINT32},
                               {"anchorsScaleCount", kINT32},
                               {"iouThreshold", kFLOAT32},
                               {"minBoxSize", kFLOAT32},
                               {"spatialScale", kFLOAT32},
                               {"anchorsRatios", kFLOAT32, kMay, kAny},
                               {"anchorsScales", kFLOAT32, kMay, kAny}},
                    .types = {"TTTT>TT"},
                    .lower = own::regionsOfInterest,
                    .check = own::checkRegions,
                    .formats = {{nvinfer1::DataType::kINT8, nvinfer1::PluginFormat::kLINEAR, {2}, {1}},
                                {nvinfer1::DataType::kINT8, nvinfer1::PluginFormat::kCHW4, {2}, {1}},
                                {nvinfer1::DataType::kINT8, nvinfer1::PluginFormat::kCHW32, {2}, {1}}}});
}

} // namespace tw::api
