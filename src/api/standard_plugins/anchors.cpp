// SPDX-License-Identifier: Apache-2.0
// Anchors and priors of detectors. They follow from fields and sizes alone, so they are constants.
#include <algorithm>
#include <cmath>

#include "api/standard_plugins/standard_plugin.h"

namespace tw::api {

using enum nvinfer1::PluginFieldType;
using Interface = ops::plugin::Interface;
using Value = ir::Value;

namespace {

constexpr int64_t kMostNumbers = PluginLowering::kMostNumbers;

// Boxes and behind them the variances of each: [1, 2, 4 boxes, 1].
class Priors
{
public:
    explicit Priors(std::vector<double> variance) : variance_(std::move(variance)) {}
    void add(double left, double low, double right, double high)
    {
        for (double v : {left, low, right, high})
            boxes_.push_back(v);
    }
    Value* tensor(PluginLowering& p)
    {
        int64_t const count = int64_t(boxes_.size());
        std::vector<double> all = std::move(boxes_);
        for (int64_t i = 0; i < count; ++i)
            all.push_back(variance_[size_t(i % 4)]);
        return p.constant(all, {1, 2, count, 1});
    }

private:
    std::vector<double> boxes_, variance_;
};

std::string notFour(PluginFields const& f)
{
    size_t const count = f.numbers("variance").size();
    return count == 4 ? "" : fmt::format("variance has {} numbers; it must have 4", count);
}

// Sizes of the feature maps, height and width in turn.
std::vector<int64_t> mapSizes(PluginFields const& f, bool isRect)
{
    std::vector<int64_t> sizes;
    for (double size : f.numbers("featureMapShapes")) {
        sizes.push_back(int64_t(size));
        if (!isRect)
            sizes.push_back(int64_t(size));
    }
    return sizes;
}

// Layer k has priors of the scale s_k for each ratio, and a square between this scale and the next; layer 0 has three, the
// first a small one.
template <bool kIsRect>
void gridAnchors(PluginLowering& p)
{
    std::vector<double> const ratios = p.fields.numbers("aspectRatios");
    std::vector<int64_t> const sizes = mapSizes(p.fields, kIsRect);
    int64_t const layers = p.fields.integer("numLayers");
    double const least = p.fields.number("minSize"), most = p.fields.number("maxSize");
    auto scaleOf = [&](int64_t k) {
        return k >= layers && layers > 1 ? 1
                                         : least + (layers > 1 ? (most - least) * double(k) / double(layers - 1) : 0);
    };
    for (int64_t k = 0; k < layers; ++k) {
        struct Shape
        {
            double ratio, scale;
        };
        std::vector<Shape> shapes;
        if (k == 0) {
            shapes = {{ratios[0], 0.1}, {ratios[1], scaleOf(0)}, {ratios[2], scaleOf(0)}};
        } else {
            for (double ratio : ratios)
                shapes.push_back({ratio, scaleOf(k)});
            shapes.push_back({1, std::sqrt(scaleOf(k) * scaleOf(k + 1))});
        }
        Priors priors(p.fields.numbers("variance"));
        int64_t const h = sizes[size_t(2 * k)], w = sizes[size_t(2 * k + 1)];
        for (int64_t y = 0; y < h; ++y)
            for (int64_t x = 0; x < w; ++x)
                for (Shape const& s : shapes) {
                    double const cx = (double(x) + 0.5) / double(w), cy = (double(y) + 0.5) / double(h);
                    double const dx = s.scale * std::sqrt(s.ratio) / 2, dy = s.scale / std::sqrt(s.ratio) / 2;
                    priors.add(cx - dx, cy - dy, cx + dx, cy + dy);
                }
        p.outputs.push_back(priors.tensor(p));
    }
}

template <bool kIsRect>
std::string checkGrid(PluginFields const& f)
{
    int64_t const layers = f.integer("numLayers");
    size_t const each = kIsRect ? 2 : 1, given = f.numbers("featureMapShapes").size();
    if (layers < 1 || layers > ops::plugin::kMaxTensors)
        return fmt::format("numLayers is {}; it must be 1 to {}", layers, ops::plugin::kMaxTensors);
    if (given != each * size_t(layers))
        return fmt::format("featureMapShapes has {} numbers; {} layers need {}", given, layers, each * size_t(layers));
    auto const ratios = f.numbers("aspectRatios");
    if (ratios.size() < 3)
        return fmt::format("aspectRatios has {} numbers; layer 0 needs 3", ratios.size());
    if (std::any_of(ratios.begin(), ratios.end(), [](double r) { return !(r > 0); }))
        return "each of aspectRatios must be above 0";
    auto const sizes = mapSizes(f, kIsRect);
    int64_t left = kMostNumbers / (8 * int64_t(ratios.size() + 1)); // cells of all maps
    for (size_t i = 0; i < sizes.size(); i += 2) {
        if (sizes[i] < 1 || sizes[i + 1] < 1 || sizes[i] > left / sizes[i + 1])
            return fmt::format("a feature map of {} by {} is not possible", sizes[i], sizes[i + 1]);
        left -= sizes[i] * sizes[i + 1];
    }
    return notFour(f);
}

int layersOf(PluginFields const& f)
{
    return int(f.integer("numLayers"));
}

// Each ratio once, 1 first, with its reciprocal where `flip` is set.
std::vector<double> ratiosOf(PluginFields const& f)
{
    std::vector<double> ratios{1};
    for (double ratio : f.numbers("aspectRatios")) {
        if (std::any_of(ratios.begin(), ratios.end(), [&](double r) { return std::fabs(r - ratio) < 1e-6; }))
            continue;
        ratios.push_back(ratio);
        if (f.flag("flip"))
            ratios.push_back(1 / ratio);
    }
    return ratios;
}

void priorBox(PluginLowering& p)
{
    Value *const map = p.in(0, 4), *const data = p.in(1, 4);
    int64_t const h = p.known(map, 2), w = p.known(map, 3);
    auto const numberOr = [&](char const* field, double otherwise) {
        double const v = p.fields.number(field);
        return v != 0 ? v : otherwise;
    };
    p.check(h > 0 && w > 0, "its feature map is empty");
    double const imageH = numberOr("imgH", double(p.known(data, 2)));
    double const imageW = numberOr("imgW", double(p.known(data, 3)));
    p.check(imageH > 0 && imageW > 0, "its image is empty");
    double const stepH = numberOr("stepH", imageH / double(h)), stepW = numberOr("stepW", imageW / double(w));
    double const offset = p.fields.number("offset");
    bool const clips = p.fields.flag("clip");
    std::vector<double> const least = p.fields.numbers("minSize"), most = p.fields.numbers("maxSize");
    struct Shape
    {
        double w, h;
    };
    std::vector<Shape> shapes;
    std::vector<double> const ratios = ratiosOf(p.fields);
    for (size_t i = 0; i < least.size(); ++i) {
        shapes.push_back({least[i], least[i]});
        if (!most.empty()) {
            double const between = std::sqrt(least[i] * most[i]);
            shapes.push_back({between, between});
        }
        for (size_t r = 1; r < ratios.size(); ++r)
            shapes.push_back({least[i] * std::sqrt(ratios[r]), least[i] / std::sqrt(ratios[r])});
    }
    p.check(h <= kMostNumbers / (8 * w * int64_t(shapes.size())), "its feature map is too large");
    Priors priors(p.fields.numbers("variance"));
    auto const bounded = [&](double v) { return clips ? std::clamp(v, 0., 1.) : v; };
    for (int64_t y = 0; y < h; ++y)
        for (int64_t x = 0; x < w; ++x)
            for (Shape const& s : shapes) {
                double const cx = (double(x) + offset) * stepW, cy = (double(y) + offset) * stepH;
                priors.add(bounded((cx - s.w / 2) / imageW), bounded((cy - s.h / 2) / imageH),
                           bounded((cx + s.w / 2) / imageW), bounded((cy + s.h / 2) / imageH));
            }
    p.outputs = {p.repeated(priors.tensor(p), map)};
}

std::string checkPriorBox(PluginFields const& f)
{
    std::vector<double> const least = f.numbers("minSize"), most = f.numbers("maxSize");
    if (least.empty() || std::any_of(least.begin(), least.end(), [](double v) { return !(v > 0); }))
        return "minSize must have a number, each above 0";
    if (!most.empty() && most.size() != least.size())
        return fmt::format("maxSize has {} numbers and minSize {}", most.size(), least.size());
    for (size_t i = 0; i < most.size(); ++i)
        if (!(most[i] > least[i]))
            return "each of maxSize must be above its minSize";
    std::vector<double> const ratios = f.numbers("aspectRatios");
    if (std::any_of(ratios.begin(), ratios.end(), [](double v) { return !(v > 0); }))
        return "each of aspectRatios must be above 0";
    for (char const* name : {"imgH", "imgW", "stepH", "stepW"})
        if (!(f.number(name) >= 0))
            return fmt::format("{} is {}; it must be 0 or above", name, f.number(name));
    return notFour(f);
}

} // namespace

void registerPlugins_anchors(StandardPlugins& list)
{
    std::vector<FieldSpec> const grid{{"minSize", kFLOAT32, kMay, kOne, 0.2F}, {"maxSize", kFLOAT32, kMay, kOne, 0.95F},
                                      {"aspectRatios", kFLOAT32, kMay, kAny},  {"featureMapShapes", kINT32, kMay, kAny},
                                      {"variance", kFLOAT32, kMay, kAny},      {"numLayers", kINT32, kMay, kOne, 6}};
    list.push_back({.name = "GridAnchor_TRT",
                    .version = "1",
                    .interface = Interface::kExt,
                    .fields = grid,
                    .types = {">f*"},
                    .lower = gridAnchors<false>,
                    .check = checkGrid<false>,
                    .outputs = layersOf});
    list.push_back({.name = "GridAnchorRect_TRT",
                    .version = "1",
                    .interface = Interface::kExt,
                    .fields = grid,
                    .types = {">f*"},
                    .lower = gridAnchors<true>,
                    .check = checkGrid<true>,
                    .outputs = layersOf});
    list.push_back({.name = "PriorBox_TRT",
                    .version = "1",
                    .interface = Interface::kExt,
                    .fields = {{"minSize", kFLOAT32, kMay, kAny},
                               {"maxSize", kFLOAT32, kMay, kAny},
                               {"aspectRatios", kFLOAT32, kMay, kAny},
                               {"flip", kINT32},
                               {"clip", kINT32},
                               {"variance", kFLOAT32, kMay, kAny},
                               {"imgH", kINT32},
                               {"imgW", kINT32},
                               {"stepH", kFLOAT32},
                               {"stepW", kFLOAT32},
                               {"offset", kFLOAT32}},
                    .types = {"TT>f"},
                    .lower = priorBox,
                    .check = checkPriorBox});
}

} // namespace tw::api
