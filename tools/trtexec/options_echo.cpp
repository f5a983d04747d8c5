// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "options.h"
#include "value_syntax.h"

namespace tw::trtexec {

namespace {

std::string enabled(bool on)
{
    return on ? "Enabled" : "Disabled";
}

std::string poolText(double mib)
{
    return mib < 0 ? "default" : numberText(mib) + " MiB";
}

std::string precisionText(BuildOptions const& build)
{
    std::string text = "FP32";
    if (build.fp16)
        text += "+FP16";
    if (build.int8)
        text += "+INT8";
    if (build.constraints == PrecisionConstraints::kObey)
        text += " (obey precision constraints)";
    if (build.constraints == PrecisionConstraints::kPrefer)
        text += " (prefer precision constraints)";
    return text;
}

std::string tacticSourcesText(BuildOptions const& build)
{
    // The position is the number in nvinfer1::TacticSource.
    constexpr char const* kNames[] = {"cublas", "cublasLt", "cudnn", "edge mask convolutions", "JIT convolutions"};
    if (build.tacticSourcesOn == 0 && build.tacticSourcesOff == 0)
        return "Using default tactic sources";
    std::string text;
    for (size_t i = 0; i < std::size(kNames); ++i) {
        if (build.tacticSourcesOn >> i & 1)
            text += std::string(kNames[i]) + " [ON], ";
        else if (build.tacticSourcesOff >> i & 1)
            text += std::string(kNames[i]) + " [OFF], ";
    }
    return text;
}

std::string previewText(BuildOptions const& build)
{
    constexpr char const* kNames[] = {"kFASTER_DYNAMIC_SHAPES_0805", "kDISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805"};
    if (build.previewFeatures.empty())
        return "Use default preview flags.";
    std::string text;
    for (auto const& [feature, on] : build.previewFeatures)
        text += std::string(kNames[feature]) + (on ? " [ON], " : " [OFF], ");
    return text;
}

class Lines
{
public:
    void add(std::string line) { lines.push_back(std::move(line)); }
    void add(char const* label, std::string const& value) { lines.push_back(label + value); }
    std::vector<std::string> lines;
};

void echoModel(Lines& out, ModelOptions const& model)
{
    out.add("=== Model Options ===");
    switch (model.format) {
    case ModelFormat::kOnnx:
        out.add("Format: ONNX");
        break;
    case ModelFormat::kCaffe:
        out.add("Format: Caffe");
        break;
    case ModelFormat::kUff:
        out.add("Format: UFF");
        break;
    case ModelFormat::kAny:
        out.add("Format: *");
        break;
    }
    out.add("Model: ", model.model);
    if (model.format == ModelFormat::kCaffe)
        out.add("Prototxt: ", model.prototxt);
    if (model.format == ModelFormat::kUff) {
        out.add("Uff Inputs Layout: ", model.uffNhwc ? "NHWC" : "NCHW");
        for (UffInput const& input : model.uffInputs)
            out.add("Input: ", fmt::format("{},{},{},{}", input.name, input.dims[0], input.dims[1], input.dims[2]));
    }
    std::string outputs = "Output:";
    for (std::string const& name : model.outputs)
        outputs += " " + name;
    out.add(outputs);
}

void echoIoFormats(Lines& out, std::string const& what, std::vector<IoFormat> const& formats)
{
    if (formats.empty())
        out.add(what + "s format: fp32:CHW");
    for (IoFormat const& io : formats)
        out.add(what + ": " + typeText(io.type) + ":" + formatsText(io.formats));
}

void echoRanges(Lines& out, std::string const& what, ShapeRanges const& ranges)
{
    if (ranges.empty())
        out.add(what + "s: model");
    for (auto const& [name, range] : ranges)
        out.add(what + ": " + name + "=" + shapeText(range.min) + "+" + shapeText(range.opt) + "+" +
                shapeText(range.max));
}

void echoBuild(Lines& out, BuildOptions const& build)
{
    out.add("=== Build Options ===");
    out.add("Max batch: ", build.explicitBatch() ? "explicit batch" : std::to_string(build.maxBatch));
    out.add("Memory Pools: workspace: " + poolText(build.workspaceMiB) + ", dlaSRAM: " + poolText(build.dlaSramMiB) +
            ", dlaLocalDRAM: " + poolText(build.dlaLocalDramMiB) +
            ", dlaGlobalDRAM: " + poolText(build.dlaGlobalDramMiB));
    out.add("minTiming: ", std::to_string(build.minTiming));
    out.add("avgTiming: ", std::to_string(build.avgTiming));
    out.add("Precision: ", precisionText(build));
    std::string layers;
    for (auto const& [layer, type] : build.layerPrecisions)
        layers += (layers.empty() ? "" : ",") + layer + ":" + typeText(type);
    out.add("LayerPrecisions: ", layers);
    if (!build.layerDevices.empty()) {
        std::string devices;
        for (auto const& [layer, device] : build.layerDevices)
            devices += (devices.empty() ? "" : ",") + layer + ":" + (device == LayerDevice::kDla ? "DLA" : "GPU");
        out.add("LayerDeviceTypes: ", devices);
    }
    if (build.maxLoss)
        out.add("Largest loss: ", numberText(*build.maxLoss));
    out.add("Calibration: ", build.int8 && build.calibration.empty() ? "Dynamic" : build.calibration);
    out.add("Refit: ", enabled(build.refit));
    out.add("Sparsity: ", build.sparsity == Sparsity::kForce    ? "Forced"
                          : build.sparsity == Sparsity::kEnable ? "Enabled"
                                                                : "Disabled");
    out.add("Safe mode: ", enabled(build.safe));
    out.add("DirectIO mode: ", enabled(build.directIo));
    out.add("Restricted mode: ", enabled(build.restricted));
    out.add("Build only: ", enabled(build.buildOnly));
    out.add("Save engine: ", build.saveEngine);
    out.add("Load engine: ", build.loadEngine);
    out.add("Profiling verbosity: ", std::to_string(static_cast<int32_t>(build.profiling)));
    out.add("Tactic sources: ", tacticSourcesText(build));
    out.add("timingCacheMode: ", build.timingCacheMode == TimingCacheMode::kGlobal    ? "global"
                                 : build.timingCacheMode == TimingCacheMode::kDisable ? "disable"
                                                                                      : "local");
    out.add("timingCacheFile: ", build.timingCacheFile);
    out.add("Heuristic: ", enabled(build.heuristic));
    out.add("Preview Features: ", previewText(build));
    echoIoFormats(out, "Input(s)", build.inputFormats);
    echoIoFormats(out, "Output(s)", build.outputFormats);
    echoRanges(out, "Input build shape", build.shapes);
    echoRanges(out, "Input calibration shape", build.calibShapes);
}

void echoSystem(Lines& out, SystemOptions const& system)
{
    out.add("=== System Options ===");
    out.add("Device: ", system.cpu ? "cpu" : std::to_string(system.device));
    out.add("DLACore: ", (system.dlaCore >= 0 ? std::to_string(system.dlaCore) : std::string()) +
                             (system.dlaCore >= 0 && system.gpuFallback ? "(With GPU fallback)" : ""));
    std::string plugins = "Plugins:";
    for (std::string const& plugin : system.plugins)
        plugins += " " + plugin;
    out.add(plugins);
}

void echoInference(Lines& out, InferenceOptions const& inference, BuildOptions const& build)
{
    out.add("=== Inference Options ===");
    out.add("Batch: ", inference.batch == 0 ? "Explicit" : std::to_string(inference.batch));
    if (inference.shapes.empty())
        out.add("Input inference shapes: model");
    for (auto const& [name, shape] : inference.shapes)
        out.add("Input inference shape: " + name + "=" + shapeText(shape));
    out.add("Iterations: ", std::to_string(inference.iterations));
    out.add("Duration: ", numberText(inference.durationSec) + "s (+ " + numberText(inference.warmUpMs) + "ms warm up)");
    out.add("Sleep time: ", numberText(inference.sleepMs) + "ms");
    out.add("Idle time: ", numberText(inference.idleMs) + "ms");
    out.add("Streams: ", std::to_string(inference.streams));
    out.add("ExposeDMA: ", enabled(inference.exposeDma));
    out.add("Data transfers: ", enabled(inference.transfers));
    out.add("Spin-wait: ", enabled(inference.spinWait));
    out.add("Multithreading: ", enabled(inference.threads));
    out.add("CUDA Graph: ", enabled(inference.cudaGraph));
    out.add("Separate profiling: ", enabled(inference.separateProfileRun));
    out.add("Time Deserialize: ", enabled(inference.timeDeserialize));
    out.add("Time Refit: ", enabled(inference.timeRefit));
    out.add("NVTX verbosity: ", std::to_string(static_cast<int32_t>(build.profiling)));
    out.add("Persistent Cache Ratio: ", numberText(inference.persistentCacheRatio));
    out.add("Inputs:");
    for (auto const& [name, file] : inference.inputFiles)
        out.add(name + "<-" + file);
    if (!inference.inputFolder.empty())
        out.add("*<-" + inference.inputFolder);
}

void echoReporting(Lines& out, ReportingOptions const& reporting)
{
    out.add("=== Reporting Options ===");
    out.add("Verbose: ", enabled(reporting.verbose));
    out.add("Averages: ", fmt::format("{} inferences", reporting.avgRuns));
    std::string percentiles;
    for (double const p : reporting.percentiles)
        percentiles += std::string(percentiles.empty() ? "" : ",") + numberText(p);
    out.add("Percentiles: ", percentiles);
    out.add("Dump refittable layers:", enabled(reporting.dumpRefit));
    out.add("Dump output: ", enabled(reporting.dumpOutput));
    out.add("Profile: ", enabled(reporting.dumpProfile));
    out.add("Export timing to JSON file: ", reporting.exportTimes);
    out.add("Export output to JSON file: ", reporting.exportOutput);
    out.add("Export profile to JSON file: ", reporting.exportProfile);
    if (!reporting.compare.empty())
        out.add("Compare outputs with: ", reporting.compare);
    if (!reporting.accuracyReport.empty())
        out.add("Export accuracy to JSON file: ", reporting.accuracyReport);
    if (reporting.power)
        out.add("Power: ", enabled(true));
    if (!reporting.exportPower.empty())
        out.add("Export power to JSON file: ", reporting.exportPower);
}

} // namespace

std::vector<std::string> echoLines(Options const& options)
{
    Lines out;
    echoModel(out, options.model);
    echoBuild(out, options.build);
    echoSystem(out, options.system);
    echoInference(out, options.inference, options.build);
    echoReporting(out, options.reporting);
    return std::move(out.lines);
}

} // namespace tw::trtexec
