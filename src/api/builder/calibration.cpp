// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "api/builder/calibration_batches.h"
#include "api/builder/parts.h"
#include "api/network/ranges.h"
#include "api/plugin/graph.h"
#include "calibrate/calibrate.h"
#include "calibrate/threshold.h"

using namespace tw;
using namespace tw::api;

namespace tw::api {

namespace {

using nvinfer1::BuilderFlag;
using nvinfer1::IInt8Calibrator;
using nvinfer1::IInt8LegacyCalibrator;

constexpr int kVersion = NV_TENSORRT_MAJOR * 1000 + NV_TENSORRT_MINOR * 100 + NV_TENSORRT_PATCH;

// "a, b, c", at most a screenful.
std::string listed(std::vector<std::string> const& names)
{
    constexpr size_t kMost = 50;
    std::string text;
    for (size_t i = 0; i < std::min(names.size(), kMost); ++i)
        text += (i ? ", " : "") + names[i];
    return text + (names.size() > kMost ? fmt::format(" and {} more", names.size() - kMost) : "");
}

std::string percent(double share)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.3g %%", 100 * share);
    return text;
}

std::string clippingText(std::vector<calibrate::Clipping> const& clipped)
{
    std::vector<std::string> names;
    names.reserve(clipped.size());
    for (calibrate::Clipping const& c : clipped)
        names.push_back(c.tensor + " (" + percent(c.share) + ")");
    return "calibration clamps tensors so far that more than " + percent(calibrate::kMostClipped) +
           " of their energy is lost: " + listed(names) +
           "; where results suffer, calibrate by IInt8MinMaxCalibrator, give these tensors ranges by "
           "ITensor::setDynamicRange(), or keep the layers that read them in FP32 (setPrecision(kFLOAT) with "
           "kOBEY_PRECISION_CONSTRAINTS)";
}

// Floating tensors of the network that depend on its inputs, by name.
std::set<std::string> floatingTensorsOf(NetworkObject const& n, ir::Graph const& g)
{
    std::set<std::string> known, out;
    for (auto const& t : n.inputs)
        known.insert(t->name);
    for (auto const& l : n.layers)
        for (auto const& t : l->outputs)
            known.insert(t->name);
    std::set<ir::Value const*> computed(g.inputs.begin(), g.inputs.end());
    auto add = [&](ir::Value const* v) {
        if (isFloating(v->type) && !v->host && known.contains(v->name))
            out.insert(v->name);
    };
    std::ranges::for_each(g.inputs, add);
    for (auto const& node : g.nodes) {
        if (std::ranges::none_of(node->inputs, [&](ir::Value const* v) { return v && computed.contains(v); }))
            continue;
        computed.insert(node->outputs.begin(), node->outputs.end());
        std::ranges::for_each(node->outputs, add);
    }
    return out;
}

Result<calibrate::Algorithm> algorithmOf(IInt8Calibrator& calibrator)
{
    int const number = static_cast<int>(calibrator.getAlgorithm());
    if (number < 0 || number >= calibrate::kAlgorithms)
        return invalidArgument("IInt8Calibrator::getAlgorithm(): value {} does not exist (allowed: 0..{})", number,
                               calibrate::kAlgorithms - 1);
    return static_cast<calibrate::Algorithm>(number);
}

Result<calibrate::Settings> settingsOf(IInt8Calibrator& calibrator, BuilderConfigObject const& c)
{
    calibrate::Settings s;
    s.version = kVersion;
    TW_ASSIGN(s.algorithm, algorithmOf(calibrator));
    bool const isOld = s.algorithm == calibrate::Algorithm::kEntropy || s.algorithm == calibrate::Algorithm::kLegacy;
    auto const flag = nvinfer1::QuantizationFlag::kCALIBRATE_BEFORE_FUSION;
    s.isFused = isOld && !(c.quantizationFlags >> int(flag) & 1);
    if (s.algorithm != calibrate::Algorithm::kLegacy)
        return s;
    auto const& legacy = static_cast<IInt8LegacyCalibrator const&>(calibrator);
    s.quantile = legacy.getQuantile();
    s.cutoff = legacy.getRegressionCutoff();
    if (!(s.quantile > 0 && s.quantile <= 1))
        return invalidArgument("IInt8LegacyCalibrator::getQuantile(): {} must be above 0 and at most 1", s.quantile);
    if (!(s.cutoff >= 0 && s.cutoff <= 1))
        return invalidArgument("IInt8LegacyCalibrator::getRegressionCutoff(): {} must be from 0 to 1", s.cutoff);
    return s;
}

// What the calibrator has kept of an earlier build; nothing: it has none.
Result<std::optional<calibrate::Table>> cachedTable(IInt8Calibrator& calibrator, calibrate::Settings const& s,
                                                    Reporter& log)
{
    size_t length = 0;
    void const* const bytes = calibrator.readCalibrationCache(length);
    if (!bytes || length == 0)
        return std::optional<calibrate::Table>();
    char const* const ours = calibrate::nameOf(s.algorithm);
    log.info("Reading Calibration Cache for calibrator: {}", ours);
    TW_ASSIGN(calibrate::Table table, calibrate::readTable({static_cast<char const*>(bytes), length}));
    if (table.algorithm != ours)
        return invalidArgument("calibration cache: it was written for {}, the calibrator is one of {}; delete the "
                               "cache to calibrate anew, or use the other calibrator",
                               table.algorithm, ours);
    if (table.version != kVersion)
        log.warning("calibration cache: it is of version {}, this is {}; its scales are used as they are",
                    table.version, kVersion);
    log.info(
        "Generated calibration scales using calibration cache. Make sure that calibration cache has latest scales.");
    log.info(
        "To regenerate calibration cache, please delete the existing one. TensorRT will generate a new calibration "
        "cache.");
    return std::optional(std::move(table));
}

Result<std::optional<calibrate::NamedHistograms>> cachedHistograms(IInt8Calibrator& calibrator,
                                                                   calibrate::Settings const& s)
{
    size_t length = 0;
    void const* const bytes = s.algorithm == calibrate::Algorithm::kLegacy
                                  ? static_cast<IInt8LegacyCalibrator&>(calibrator).readHistogramCache(length)
                                  : nullptr;
    if (!bytes || length == 0)
        return std::optional<calibrate::NamedHistograms>();
    TW_ASSIGN(auto list, calibrate::readHistograms({static_cast<char const*>(bytes), length}));
    return std::optional(std::move(list));
}

// The shapes of calibration, for batches of this size where the network has no dimension for it.
Result<plan::Profile> profileOf(NetworkObject const& n, BuilderConfigObject const& c, plan::Contents const& contents,
                                int32_t batchSize, Reporter& log)
{
    plan::Profile profile = contents.profiles[0];
    if (n.implicitBatch) {
        if (batchSize < 1)
            return invalidArgument("IInt8Calibrator::getBatchSize(): {} must be at least 1", batchSize);
        // The builder's maximum is the engine's; calibration has an arena of its own.
        for (auto const& t : n.inputs)
            if (!t->broadcastAcrossBatch) {
                plan::ProfileRange& range = profile.inputs[t->name];
                range.opt[0] = batchSize;
                range.max[0] = std::max<int64_t>(range.max[0], batchSize);
            }
        return profile;
    }
    if (c.calibrationProfile) {
        auto given = toProfile(n, *contents.graph, *c.calibrationProfile, 0);
        if (!given.ok())
            return std::move(given).error().in("calibration profile");
        profile = std::move(*given);
    }
    bool const isDynamic =
        std::ranges::any_of(contents.graph->inputs, [](ir::Value const* v) { return !ir::isStatic(v->shape); });
    if (isDynamic && batchSize != 1)
        log.warning("IInt8Calibrator::getBatchSize() is {}, and for networks with dynamic shapes it should be 1: "
                    "batches have the shapes of the calibration profile",
                    batchSize);
    return profile;
}

Result<calibrate::Table> calibrated(NetworkObject const& n, BuilderConfigObject const& c,
                                    plan::Contents const& contents, calibrate::NetworkOptions const& options,
                                    cuda::Target const* gpu, Reporter& log)
{
    IInt8Calibrator& calibrator = *c.int8Calibrator;
    TW_ASSIGN(calibrate::Settings const settings, settingsOf(calibrator, c));
    int32_t const batchSize = calibrator.getBatchSize();
    TW_ASSIGN(auto known, cachedTable(calibrator, settings, log));
    if (known)
        return std::move(*known);
    if (gpu && hasPlugins(*contents.graph))
        return unsupported(
            "calibration runs the network on the CPU, and this one has plugins for the GPU: calibrate with "
            "TENSORWRIGHT_DEVICE=cpu and give the cache, or use ITensor::setDynamicRange()");
    if (!n.openScalesOfPlugins.empty())
        return unsupported("calibration runs the network in floating point, and the plugin with tensor '{}' takes INT8 "
                           "alone: give a calibration cache, or use ITensor::setDynamicRange()",
                           *n.openScalesOfPlugins.begin());
    TW_ASSIGN(plan::Profile const profile, profileOf(n, c, contents, batchSize, log));
    TW_ASSIGN(auto histograms, cachedHistograms(calibrator, settings));
    CalibrationBatches batches(calibrator, gpu);
    auto const graph = contents.graph->clone();
    setPluginRanges(*graph, {profile}); // which plugins are configured for
    openInputsInFloats(*graph, n.openScales);
    TW_ASSIGN(calibrate::Calibrated out,
              calibrate::calibrate(*graph, profile, batches, settings, options, std::move(histograms)));
    if (settings.isFused)
        log.info("The calibration table is of fused layers: other devices and versions may fuse others "
                 "(QuantizationFlag::kCALIBRATE_BEFORE_FUSION makes it portable)");
    for (std::string const& name : out.zero)
        log.warning("Tensor {} is uniformly zero", name);
    if (!out.infinite.empty())
        log.warning("tensors with infinite values or NaN, which get no scale: {}", listed(out.infinite));
    if (!out.clipped.empty())
        log.warning(clippingText(out.clipped));
    for (auto& [name, scale] : out.table.scales)
        for (auto const& t : n.inputs)
            if (t->type == nvinfer1::DataType::kINT8 && name == inFloatsName(t->name))
                name = t->name;
    auto const end = std::remove_if(out.table.scales.begin(), out.table.scales.end(),
                                    [](auto const& s) { return !calibrate::isWritable(s.first); });
    out.table.scales.erase(end, out.table.scales.end());
    std::string const text = calibrate::writeTable(out.table);
    if (!out.histograms.empty())
        static_cast<IInt8LegacyCalibrator&>(calibrator)
            .writeHistogramCache(out.histograms.data(), out.histograms.size());
    log.info("Writing Calibration Cache for calibrator: {}", out.table.algorithm);
    calibrator.writeCalibrationCache(text.data(), text.size());
    return std::move(out.table);
}

// Of setDynamicRange().
Result<void> addDynamicRanges(passes::Ranges const& given, passes::Ranges& ranges)
{
    for (auto const& [name, scale] : given) {
        if (calibrate::scaleOf(scale * 127) == 0)
            return invalidArgument("tensor '{}': its dynamic range has the largest magnitude {}; divided by 127 it "
                                   "must be a normal FP32 number above 0",
                                   name, scale * 127);
        ranges[name] = scale;
    }
    return {};
}

} // namespace

Result<passes::Ranges> rangesOf(NetworkObject const& n, BuilderConfigObject const& c, plan::Contents const& contents,
                                calibrate::NetworkOptions const& options, cuda::Target const* gpu, Reporter& log)
{
    passes::Ranges ranges;
    if (!c.has(BuilderFlag::kINT8))
        return ranges;
    if (isExplicit(n)) {
        if (c.int8Calibrator)
            log.warning(
                "Calibrator won't be used in explicit precision mode. Use quantization aware training to generate "
                "network with Quantize/Dequantize nodes.");
        return ranges;
    }
    if (c.int8Calibrator) {
        TW_ASSIGN(calibrate::Table const table, calibrated(n, c, contents, options, gpu, log));
        for (auto const& [name, scale] : table.scales)
            if (scale > 0)
                ranges[name] = double(scale);
    } else {
        log.warning(
            "Calibrator is not being used. Users must provide dynamic range for all tensors that are not Int32 or "
            "Bool.");
    }
    TW_TRY(addDynamicRanges(n.ranges, ranges));
    std::vector<std::string> missing;
    for (std::string const& name : floatingTensorsOf(n, *contents.graph))
        if (!ranges.contains(name))
            missing.push_back(name);
    if (!missing.empty())
        log.warning("Missing scale and zero-point for tensor {}, expect fall back to non-int8 implementation for any "
                    "layer consuming or producing given tensor",
                    listed(missing));
    return ranges;
}

} // namespace tw::api
