// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include <fmt/core.h>

#include "arguments.h"
#include "failure.h"
#include "flags.h"
#include "options.h"
#include "value_syntax.h"

namespace tw::trtexec {

namespace {

template <class T>
void assign(T& target, std::optional<T> const& value)
{
    if (value)
        target = *value;
}

std::string upper(std::string text)
{
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
    return text;
}

void parseModel(Arguments& args, ModelOptions& model)
{
    if (auto file = args.takeText("--onnx")) {
        model.format = ModelFormat::kOnnx;
        model.model = *file;
    } else if (auto uff = args.takeText("--uff")) {
        model.format = ModelFormat::kUff;
        model.model = *uff;
    } else {
        if (auto weights = args.takeText("--model")) {
            model.format = ModelFormat::kCaffe;
            model.model = *weights;
        }
        if (auto deploy = args.takeText("--deploy")) {
            model.format = ModelFormat::kCaffe;
            model.prototxt = *deploy;
        }
    }
    for (std::string const& names : args.takeEach("--output"))
        for (std::string const& name : splitList("--output", names, ','))
            model.outputs.push_back(name);

    if (model.format == ModelFormat::kUff) {
        model.uffNhwc = args.takeFlag("--uffNHWC");
        for (std::string const& text : args.takeEach("--uffInput")) {
            std::vector<std::string> const parts = splitList("--uffInput", text, ',');
            if (parts.size() != 4)
                throw UsageError("--uffInput: '" + text + "' is not of the form <name>,X,Y,Z");
            UffInput input{parts[0], {}};
            for (int i = 0; i < 3; ++i)
                input.dims[i] = parseInteger("--uffInput", parts[i + 1], 1, std::numeric_limits<int32_t>::max());
            model.uffInputs.push_back(input);
        }
        if (model.uffInputs.empty())
            throw UsageError("a UFF model needs at least one --uffInput=<name>,X,Y,Z");
    }
    if (model.format == ModelFormat::kCaffe && model.prototxt.empty())
        throw UsageError("a Caffe model needs --deploy=<prototxt>");
    bool const namesOutputs = model.format == ModelFormat::kCaffe || model.format == ModelFormat::kUff;
    if (namesOutputs && model.outputs.empty())
        throw UsageError("a Caffe or UFF model needs --output=<name>[,<name>]*");
    if (model.format == ModelFormat::kOnnx && !model.outputs.empty())
        throw UsageError("--output is for Caffe and UFF models; an ONNX model names its outputs itself");
}

// A missing minimum or maximum is the optimum (else the other end), a missing optimum is the maximum, else the minimum.
ShapeRanges joinRanges(std::map<std::string, Shape> const& min, std::map<std::string, Shape> const& opt,
                       std::map<std::string, Shape> const& max)
{
    ShapeRanges ranges;
    for (auto const& [name, shape] : min)
        ranges[name].min = shape;
    for (auto const& [name, shape] : opt)
        ranges[name].opt = shape;
    for (auto const& [name, shape] : max)
        ranges[name].max = shape;
    for (auto& [name, range] : ranges) {
        if (range.opt.empty())
            range.opt = !range.max.empty() ? range.max : range.min;
        if (range.min.empty())
            range.min = range.opt;
        if (range.max.empty())
            range.max = range.opt;
        if (range.min.size() != range.opt.size() || range.opt.size() != range.max.size())
            throw UsageError("input '" + name + "': minimum " + shapeText(range.min) + ", optimum " +
                             shapeText(range.opt) + " and maximum " + shapeText(range.max) + " differ in rank");
    }
    return ranges;
}

std::map<std::string, Shape> takeShapes(Arguments& args, char const* name)
{
    auto const text = args.takeText(name);
    return text ? parseShapes(name, *text) : std::map<std::string, Shape>();
}

void parseBuildShapes(Arguments& args, BuildOptions& build)
{
    auto const min = takeShapes(args, "--minShapes");
    auto const opt = takeShapes(args, "--optShapes");
    auto const max = takeShapes(args, "--maxShapes");
    build.shapes = joinRanges(min, opt, max);

    auto const minCalib = takeShapes(args, "--minShapesCalib");
    auto const optCalib = takeShapes(args, "--optShapesCalib");
    auto const maxCalib = takeShapes(args, "--maxShapesCalib");
    bool const any = !minCalib.empty() || !optCalib.empty() || !maxCalib.empty();
    bool const optOnly = minCalib.empty() && !optCalib.empty() && maxCalib.empty();
    bool const all = !minCalib.empty() && !optCalib.empty() && !maxCalib.empty();
    if (any && !optOnly && !all)
        throw UsageError("calibration shapes: give --optShapesCalib alone, or all of --minShapesCalib, "
                         "--optShapesCalib and --maxShapesCalib");
    build.calibShapes = joinRanges(minCalib, optCalib, maxCalib);
}

void parsePools(Arguments& args, BuildOptions& build, std::vector<std::string>& warnings)
{
    if (auto const mib = args.takeNumber("--workspace", 0)) {
        build.workspaceMiB = *mib;
        warnings.push_back("--workspace is deprecated; use --memPoolSize=workspace:<MiB>");
    }
    auto const pools = args.takeText("--memPoolSize");
    if (!pools)
        return;
    for (std::string const& entry : splitList("--memPoolSize", *pools, ',')) {
        auto const [pool, size] = splitPair("--memPoolSize", entry);
        // 2^43 MiB is the first size that no longer fits 63 bits in bytes.
        double const mib = parseNumber("--memPoolSize", size, 0, 8.7e12);
        if (pool == "workspace")
            build.workspaceMiB = mib;
        else if (pool == "dlaSRAM")
            build.dlaSramMiB = mib;
        else if (pool == "dlaLocalDRAM")
            build.dlaLocalDramMiB = mib;
        else if (pool == "dlaGlobalDRAM")
            build.dlaGlobalDramMiB = mib;
        else
            throw UsageError("--memPoolSize: unknown pool '" + pool +
                             "' (known: workspace, dlaSRAM, dlaLocalDRAM, dlaGlobalDRAM)");
    }
}

ProfilingDetail parseProfiling(char const* option, std::string const& mode, std::vector<std::string>& warnings)
{
    if (mode == "layer_names_only")
        return ProfilingDetail::kLayerNames;
    if (mode == "none")
        return ProfilingDetail::kNone;
    if (mode == "detailed")
        return ProfilingDetail::kDetailed;
    if (mode == "default" || mode == "verbose") {
        bool const detailed = mode == "verbose";
        warnings.push_back("profiling verbosity '" + mode + "' is deprecated; write " +
                           (detailed ? "detailed" : "layer_names_only"));
        return detailed ? ProfilingDetail::kDetailed : ProfilingDetail::kLayerNames;
    }
    throw UsageError(std::string(option) + ": unknown mode '" + mode + "' (known: layer_names_only, detailed, none)");
}

void parseLayerConstraints(Arguments& args, BuildOptions& build)
{
    if (auto const mode = args.takeText("--precisionConstraints")) {
        if (*mode == "obey")
            build.constraints = PrecisionConstraints::kObey;
        else if (*mode == "prefer")
            build.constraints = PrecisionConstraints::kPrefer;
        else if (*mode != "none")
            throw UsageError("--precisionConstraints: unknown mode '" + *mode + "' (known: none, obey, prefer)");
    }
    if (auto const spec = args.takeText("--layerPrecisions"))
        for (std::string const& entry : splitList("--layerPrecisions", *spec, ',')) {
            auto const [layer, type] = splitPair("--layerPrecisions", entry);
            build.layerPrecisions.emplace_back(layer, parseTensorType("--layerPrecisions", type));
        }
    if (auto const spec = args.takeText("--layerOutputTypes"))
        for (std::string const& entry : splitList("--layerOutputTypes", *spec, ',')) {
            auto const [layer, list] = splitPair("--layerOutputTypes", entry);
            std::vector<TensorType> types;
            for (std::string const& type : splitList("--layerOutputTypes", list, '+'))
                types.push_back(parseTensorType("--layerOutputTypes", type));
            build.layerOutputTypes.emplace_back(layer, std::move(types));
        }
    bool const constrained = build.constraints != PrecisionConstraints::kNone;
    if (!constrained && (!build.layerPrecisions.empty() || !build.layerOutputTypes.empty()))
        throw UsageError("--layerPrecisions and --layerOutputTypes need --precisionConstraints=obey or prefer");
    if (auto const spec = args.takeText("--layerDeviceTypes"))
        for (std::string const& entry : splitList("--layerDeviceTypes", *spec, ',')) {
            auto const [layer, device] = splitPair("--layerDeviceTypes", entry);
            std::string const name = upper(device);
            if (name != "GPU" && name != "DLA")
                throw UsageError("--layerDeviceTypes: unknown device '" + device + "' (known: GPU, DLA)");
            build.layerDevices.emplace_back(layer, name == "DLA" ? LayerDevice::kDla : LayerDevice::kGpu);
        }
}

// +name or -name: the sign and the rest.
std::pair<bool, std::string> signedName(char const* option, std::string const& entry)
{
    if (entry.size() < 2 || (entry[0] != '+' && entry[0] != '-'))
        throw UsageError(std::string(option) + ": '" + entry + "' must begin with + or -");
    return {entry[0] == '+', entry.substr(1)};
}

void parseTacticSources(Arguments& args, BuildOptions& build)
{
    auto const spec = args.takeText("--tacticSources");
    if (!spec)
        return;
    constexpr std::pair<char const*, uint32_t> kSources[] = {
        {"CUBLAS", 0},          {"CUBLAS_LT", 1}, {"CUBLASLT", 1}, {"CUDNN", 2}, {"EDGE_MASK_CONVOLUTIONS", 3},
        {"JIT_CONVOLUTIONS", 4}};
    for (std::string const& entry : splitList("--tacticSources", *spec, ',')) {
        auto const [on, name] = signedName("--tacticSources", entry);
        auto const it = std::find_if(std::begin(kSources), std::end(kSources),
                                     [wanted = upper(name)](auto const& source) { return wanted == source.first; });
        if (it == std::end(kSources))
            throw UsageError("--tacticSources: unknown source '" + name +
                             "' (known: CUBLAS, CUBLAS_LT, CUDNN, EDGE_MASK_CONVOLUTIONS, JIT_CONVOLUTIONS)");
        uint32_t const bit = 1u << it->second;
        build.tacticSourcesOn = on ? build.tacticSourcesOn | bit : build.tacticSourcesOn & ~bit;
        build.tacticSourcesOff = on ? build.tacticSourcesOff & ~bit : build.tacticSourcesOff | bit;
    }
}

void parsePreview(Arguments& args, BuildOptions& build)
{
    auto const spec = args.takeText("--preview");
    if (!spec)
        return;
    constexpr char const* kNames[] = {"fasterDynamicShapes0805", "disableExternalTacticSourcesForCore0805"};
    for (std::string const& entry : splitList("--preview", *spec, ',')) {
        auto const [on, name] = signedName("--preview", entry);
        auto const it = std::find(std::begin(kNames), std::end(kNames), name);
        if (it == std::end(kNames))
            throw UsageError("--preview: unknown feature '" + name +
                             "' (known: fasterDynamicShapes0805, disableExternalTacticSourcesForCore0805)");
        build.previewFeatures[static_cast<int32_t>(it - std::begin(kNames))] = on;
    }
}

void parseBuild(Arguments& args, BuildOptions& build, std::vector<std::string>& warnings)
{
    assign(build.maxBatch, args.takeInteger("--maxBatch", 1));
    parseBuildShapes(args, build);
    if (auto const spec = args.takeText("--inputIOFormats"))
        build.inputFormats = parseIoFormats("--inputIOFormats", *spec);
    if (auto const spec = args.takeText("--outputIOFormats"))
        build.outputFormats = parseIoFormats("--outputIOFormats", *spec);
    parsePools(args, build, warnings);
    if (auto const mode = args.takeText("--nvtxMode")) {
        build.profiling = parseProfiling("--nvtxMode", *mode, warnings);
        warnings.push_back("--nvtxMode is deprecated; use --profilingVerbosity");
    }
    if (auto const mode = args.takeText("--profilingVerbosity"))
        build.profiling = parseProfiling("--profilingVerbosity", *mode, warnings);
    for (char const* name : {"--explicitBatch", "--explicitPrecision"})
        if (args.takeFlag(name))
            warnings.push_back(std::string(name) + " is deprecated and has no effect");
    assign(build.minTiming, args.takeInteger("--minTiming", 1));
    assign(build.avgTiming, args.takeInteger("--avgTiming", 1));
    build.refit = args.takeFlag("--refit");
    if (auto const mode = args.takeText("--sparsity")) {
        if (*mode == "enable")
            build.sparsity = Sparsity::kEnable;
        else if (*mode == "force")
            build.sparsity = Sparsity::kForce;
        else if (*mode != "disable")
            throw UsageError("--sparsity: unknown mode '" + *mode + "' (known: disable, enable, force)");
    }
    build.tf32 = !args.takeFlag("--noTF32");
    bool const best = args.takeFlag("--best");
    build.fp16 = args.takeFlag("--fp16") || best;
    build.int8 = args.takeFlag("--int8") || best;
    build.directIo = args.takeFlag("--directIO");
    parseLayerConstraints(args, build);
    assign(build.calibration, args.takeText("--calib"));
    if (!build.calibration.empty() && !build.int8)
        warnings.push_back("--calib has no effect without --int8");
    if (build.calibShapes.empty() && build.int8 && !build.calibration.empty())
        build.calibShapes = build.shapes;
    build.maxLoss = args.takeNumber("--maxLoss", 0);
    build.safe = args.takeFlag("--safe");
    build.consistency = args.takeFlag("--consistency");
    build.restricted = args.takeFlag("--restricted");
    build.buildOnly = args.takeFlag("--buildOnly");
    assign(build.saveEngine, args.takeText("--saveEngine"));
    assign(build.loadEngine, args.takeText("--loadEngine"));
    if (!build.saveEngine.empty() && !build.loadEngine.empty())
        throw UsageError("--saveEngine and --loadEngine exclude each other");
    parseTacticSources(args, build);
    assign(build.timingCacheFile, args.takeText("--timingCacheFile"));
    if (!build.timingCacheFile.empty())
        build.timingCacheMode = TimingCacheMode::kGlobal;
    if (args.takeFlag("--noBuilderCache"))
        build.timingCacheMode = TimingCacheMode::kDisable;
    build.heuristic = args.takeFlag("--heuristic");
    parsePreview(args, build);
}

void parseInference(Arguments& args, InferenceOptions& inference)
{
    if (auto const batch = args.takeInteger("--batch", 1)) {
        inference.batch = *batch;
        inference.batchGiven = true;
    }
    inference.shapes = takeShapes(args, "--shapes");
    if (auto const spec = args.takeText("--loadInputs"))
        for (std::string const& entry : splitList("--loadInputs", *spec, ',')) {
            auto const [name, file] = splitPair("--loadInputs", entry);
            if (!inference.inputFiles.emplace(name, file).second)
                throw UsageError("--loadInputs: input '" + name + "' stands there twice");
        }
    assign(inference.inputFolder, args.takeText("--loadInputsFrom"));
    assign(inference.iterations, args.takeInteger("--iterations", 0));
    constexpr double kYearMs = 3.2e10; // keeps every sum of times far from overflow
    assign(inference.warmUpMs, args.takeNumber("--warmUp", 0, kYearMs));
    assign(inference.durationSec, args.takeNumber("--duration", 0, kYearMs / 1000));
    assign(inference.sleepMs, args.takeNumber("--sleepTime", 0, kYearMs));
    assign(inference.idleMs, args.takeNumber("--idleTime", 0, kYearMs));
    assign(inference.streams, args.takeInteger("--streams", 1, 1024));
    inference.exposeDma = args.takeFlag("--exposeDMA");
    inference.transfers = !args.takeFlag("--noDataTransfers");
    inference.managedMemory = args.takeFlag("--useManagedMemory");
    inference.spinWait = args.takeFlag("--useSpinWait");
    inference.threads = args.takeFlag("--threads");
    inference.cudaGraph = args.takeFlag("--useCudaGraph");
    inference.timeDeserialize = args.takeFlag("--timeDeserialize");
    inference.timeRefit = args.takeFlag("--timeRefit");
    inference.separateProfileRun = args.takeFlag("--separateProfileRun");
    assign(inference.persistentCacheRatio, args.takeNumber("--persistentCacheRatio", 0, 1));
}

void parseReporting(Arguments& args, ReportingOptions& reporting)
{
    reporting.verbose = args.takeFlag("--verbose");
    assign(reporting.avgRuns, args.takeInteger("--avgRuns", 1));
    if (auto const spec = args.takeText("--percentile")) {
        reporting.percentiles.clear();
        for (std::string const& p : splitList("--percentile", *spec, ','))
            reporting.percentiles.push_back(parseNumber("--percentile", p, 0, 100));
    }
    reporting.dumpRefit = args.takeFlag("--dumpRefit");
    reporting.dumpOutput = args.takeFlag("--dumpOutput");
    reporting.dumpProfile = args.takeFlag("--dumpProfile");
    reporting.dumpLayerInfo = args.takeFlag("--dumpLayerInfo");
    assign(reporting.exportTimes, args.takeText("--exportTimes"));
    assign(reporting.exportOutput, args.takeText("--exportOutput"));
    assign(reporting.exportProfile, args.takeText("--exportProfile"));
    assign(reporting.exportLayerInfo, args.takeText("--exportLayerInfo"));
    assign(reporting.compare, args.takeText("--compare"));
    assign(reporting.accuracyReport, args.takeText("--accuracyReport"));
    assign(reporting.exportPower, args.takeText("--exportPower"));
    reporting.power = args.takeFlag("--power") || !reporting.exportPower.empty();
    assign(reporting.tolerance.atol, args.takeNumber("--compareAtol", 0));
    assign(reporting.tolerance.rtol, args.takeNumber("--compareRtol", 0));
    assign(reporting.tolerance.cosine, args.takeNumber("--compareCosine", -1, 1));
}

void parseSystem(Arguments& args, SystemOptions& system)
{
    if (auto const device = args.takeText("--device")) {
        system.deviceGiven = true;
        system.cpu = *device == "cpu";
        if (!system.cpu)
            system.device = parseInteger("--device", *device, 0, std::numeric_limits<int32_t>::max());
    }
    assign(system.cpuThreads, args.takeInteger("--cpuThreads", 1, 4096));
    assign(system.tuningSeconds, args.takeInteger("--tuningSeconds", 1, 86400));
    assign(system.kvCapacity, args.takeInteger("--kvCapacity", 1, 1 << 24));
    assign(system.kvPages, args.takeInteger("--kvPages", 1, 1 << 24));
    if (system.kvPages > 0 && system.kvCapacity == 0)
        throw UsageError("--kvPages is beside --kvCapacity, the rows of a sequence");
    for (Flag const& f : allFlags())
        if (f.variable && args.takeFlag(f.name))
            system.variables.emplace_back(f.variable, f.value);
    if (auto const model = args.takeText("--dlaModel")) {
        bool const isOrin = *model == "orin";
        if (!isOrin && *model != "xavier")
            throw UsageError("--dlaModel: there is no model of '" + *model + "' (known: orin, xavier)");
        system.variables.emplace_back("TENSORWRIGHT_DLA_MODEL", isOrin ? "orin" : "xavier");
    }
    assign(system.dlaCore, args.takeInteger("--useDLACore", -1));
    system.gpuFallback = args.takeFlag("--allowGPUFallback");
    system.plugins = args.takeEach("--plugins");
}

// What one group of options says about another.
void settleBatchAndShapes(Options& options)
{
    BuildOptions& build = options.build;
    InferenceOptions& inference = options.inference;
    bool const explicitBatch =
        options.model.format == ModelFormat::kOnnx || !build.shapes.empty() || !inference.shapes.empty();
    if (explicitBatch && (build.maxBatch != 0 || inference.batchGiven))
        throw UsageError("--batch and --maxBatch are for implicit batch; with an ONNX model or with shapes the batch "
                         "size is a dimension of --shapes, --minShapes, --optShapes and --maxShapes");
    if (build.shapes.empty()) {
        for (auto const& [name, shape] : inference.shapes)
            build.shapes[name] = {shape, shape, shape};
    } else if (inference.shapes.empty()) {
        for (auto const& [name, range] : build.shapes)
            inference.shapes[name] = range.opt;
    }
    if (explicitBatch)
        return;
    if (inference.batch == 0)
        inference.batch = 1;
    if (build.maxBatch == 0)
        build.maxBatch = inference.batch;
    if (build.maxBatch < inference.batch)
        throw UsageError(fmt::format("--batch={} is above --maxBatch={}", inference.batch, build.maxBatch));
}

// Both look at an engine beside the model in FP32.
void checkAccuracy(Options const& options)
{
    BuildOptions const& build = options.build;
    bool const hasInputs = !options.inference.inputFiles.empty() || !options.inference.inputFolder.empty();
    if (!options.reporting.accuracyReport.empty() && options.model.format == ModelFormat::kAny)
        throw UsageError("--accuracyReport needs the model beside --loadEngine, to build it in FP32");
    if (!options.reporting.accuracyReport.empty() && build.buildOnly && !build.maxLoss)
        throw UsageError("--accuracyReport looks at a run: leave --buildOnly out");
    if (!build.maxLoss)
        return;
    if (!build.loadEngine.empty())
        throw UsageError("--maxLoss searches what to build: leave --loadEngine out");
    if (!hasInputs)
        throw UsageError("--maxLoss judges engines by recorded inputs: give --loadInputs or --loadInputsFrom");
}

void checkPower(Options& options)
{
    ReportingOptions const& reporting = options.reporting;
    if (!reporting.power)
        return;
    char const* why = options.build.buildOnly             ? "there is no run with --buildOnly"
                      : options.inference.timeDeserialize ? "there is no run with --timeDeserialize"
                      : reporting.profiles() && !options.inference.separateProfileRun
                          ? "the layer profiler changes it; --separateProfileRun measures both"
                          : nullptr;
    if (why)
        options.warnings.push_back(fmt::format("--power: the power of a run is not measured: {}", why));
}

} // namespace

Options parseOptions(int argc, char const* const* argv)
{
    Options options;
    Arguments args(argc, argv);
    bool const longHelp = args.takeFlag("--help");
    bool const shortHelp = args.takeFlag("-h");
    options.help = longHelp || shortHelp;
    if (options.help)
        return options;
    parseModel(args, options.model);
    parseBuild(args, options.build, options.warnings);
    parseInference(args, options.inference);
    parseReporting(args, options.reporting);
    parseSystem(args, options.system);
    for (Argument const& arg : args.rest())
        options.unknown.push_back(arg.name + " " + arg.value);
    if (!options.unknown.empty())
        return options;
    if (options.model.format == ModelFormat::kAny && options.build.loadEngine.empty())
        throw UsageError("Model missing or format not recognized");
    settleBatchAndShapes(options);
    checkAccuracy(options);
    checkPower(options);
    return options;
}

} // namespace tw::trtexec
