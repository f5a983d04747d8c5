// SPDX-License-Identifier: Apache-2.0
// The command line's rules, as a table: what is given, what comes of it.
#include "options.h"

#include <set>

#include <gtest/gtest.h>

#include "failure.h"
#include "flags.h"
#include "value_syntax.h"

namespace tw::trtexec {
namespace {

Options parse(std::vector<std::string> args)
{
    args.insert(args.begin(), "trtexec");
    std::vector<char const*> argv;
    for (std::string const& a : args)
        argv.push_back(a.c_str());
    return parseOptions(static_cast<int>(argv.size()), argv.data());
}

std::string echo(std::vector<std::string> args)
{
    std::string all;
    for (std::string const& line : echoLines(parse(std::move(args))))
        all += line + "\n";
    return all;
}

// Every published flag with a value that it takes, and a line of the echo that shows it (or nothing).
struct Accepted
{
    char const* flag;
    char const* echo;
};
Accepted const kWithOnnx[] = {
    {"--minShapes=x:1x3", "Input build shape: x=1x3+1x3+1x3"},
    {"--optShapes='x:0':2x3", "Input build shape: x:0=2x3+2x3+2x3"},
    {"--maxShapes=x:4,y:2x2", "Input build shape: y=2x2+2x2+2x2"},
    {"--optShapesCalib=x:2", "Input calibration shape: x=2+2+2"},
    {"--inputIOFormats=fp16:chw+chw2,int8:chw4", "Input(s): fp16:chw+chw2\nInput(s): int8:chw4"},
    {"--inputIOFormats=int32:hwc8+chw16+chw32+dhwc8+cdhw32+hwc+dla_linear+dla_hwc4", nullptr},
    {"--outputIOFormats=fp32:hwc", "Output(s): fp32:hwc"},
    {"--workspace=16.5", "workspace: 16.5 MiB, dlaSRAM: default"},
    {"--memPoolSize=workspace:1024.5,dlaSRAM:1,dlaLocalDRAM:2,dlaGlobalDRAM:3",
     "Memory Pools: workspace: 1024.5 MiB, dlaSRAM: 1 MiB, dlaLocalDRAM: 2 MiB, dlaGlobalDRAM: 3 MiB"},
    {"--profilingVerbosity=detailed", "Profiling verbosity: 2"},
    {"--profilingVerbosity=none", "NVTX verbosity: 1"},
    {"--nvtxMode=verbose", "Profiling verbosity: 2"},
    {"--minTiming=2", "minTiming: 2"},
    {"--avgTiming=4", "avgTiming: 4"},
    {"--refit", "Refit: Enabled"},
    {"--sparsity=enable", "Sparsity: Enabled"},
    {"--sparsity=force", "Sparsity: Forced"},
    {"--sparsity=disable", "Sparsity: Disabled"},
    {"--noTF32", nullptr},
    {"--fp16", "Precision: FP32+FP16\n"},
    {"--fp16=0", "Precision: FP32+FP16\n"},
    {"--int8", "Calibration: Dynamic"},
    {"--best", "Precision: FP32+FP16+INT8\n"},
    {"--directIO", "DirectIO mode: Enabled"},
    {"--precisionConstraints=obey", "Precision: FP32 (obey precision constraints)"},
    {"--precisionConstraints=prefer", "Precision: FP32 (prefer precision constraints)"},
    {"--precisionConstraints=none", "Precision: FP32\n"},
    {"--layerDeviceTypes=a:GPU,b:DLA", "LayerDeviceTypes: a:GPU,b:DLA"},
    {"--calib=c.cache", "Calibration: c.cache"},
    {"--safe", "Safe mode: Enabled"},
    {"--consistency", nullptr},
    {"--restricted", "Restricted mode: Enabled"},
    {"--buildOnly", "Build only: Enabled"},
    {"--saveEngine=e.plan", "Save engine: e.plan"},
    {"--loadEngine=e.plan", "Load engine: e.plan"},
    {"--tacticSources=+CUBLAS,-cudnn,+cublasLt", "Tactic sources: cublas [ON], cublasLt [ON], cudnn [OFF], "},
    {"--tacticSources=-CUBLAS_LT,+EDGE_MASK_CONVOLUTIONS,-JIT_CONVOLUTIONS",
     "cublasLt [OFF], edge mask convolutions [ON], JIT convolutions [OFF], "},
    {"--noBuilderCache", "timingCacheMode: disable"},
    {"--timingCacheFile=t.cache", "timingCacheMode: global\ntimingCacheFile: t.cache"},
    {"--heuristic", "Heuristic: Enabled"},
    {"--preview=+fasterDynamicShapes0805,-disableExternalTacticSourcesForCore0805",
     "Preview Features: kFASTER_DYNAMIC_SHAPES_0805 [ON], kDISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805 [OFF], "},
    {"--explicitBatch", nullptr},
    {"--explicitPrecision", nullptr},
    {"--shapes=x:1x-3", "Input inference shape: x=1x-3"},
    {"--loadInputs=x:1:a.bin,'y:0':b.bin", "Inputs:\nx:1<-a.bin\ny:0<-b.bin"},
    {"--loadInputsFrom=set", "*<-set"},
    {"--iterations=7", "Iterations: 7"},
    {"--warmUp=20", "(+ 20ms warm up)"},
    {"--duration=1.5", "Duration: 1.5s"},
    {"--sleepTime=2", "Sleep time: 2ms"},
    {"--idleTime=3", "Idle time: 3ms"},
    {"--streams=4", "Streams: 4"},
    {"--exposeDMA", "ExposeDMA: Enabled"},
    {"--noDataTransfers", "Data transfers: Disabled"},
    {"--useManagedMemory", nullptr},
    {"--useSpinWait", "Spin-wait: Enabled"},
    {"--threads", "Multithreading: Enabled"},
    {"--useCudaGraph", "CUDA Graph: Enabled"},
    {"--timeDeserialize", "Time Deserialize: Enabled"},
    {"--timeRefit", "Time Refit: Enabled"},
    {"--separateProfileRun", "Separate profiling: Enabled"},
    {"--persistentCacheRatio=0.5", "Persistent Cache Ratio: 0.5"},
    {"--verbose", "Verbose: Enabled"},
    {"--avgRuns=5", "Averages: 5 inferences"},
    {"--percentile=50,99.9", "Percentiles: 50,99.9"},
    {"--dumpRefit", "Dump refittable layers:Enabled"},
    {"--dumpOutput", "Dump output: Enabled"},
    {"--dumpProfile", "Profile: Enabled"},
    {"--dumpLayerInfo", nullptr},
    {"--exportTimes=t.json", "Export timing to JSON file: t.json"},
    {"--exportOutput=o.json", "Export output to JSON file: o.json"},
    {"--exportProfile=p.json", "Export profile to JSON file: p.json"},
    {"--exportLayerInfo=l.json", nullptr},
    {"--compare=refs", "Compare outputs with: refs"},
    {"--accuracyReport=a.json", "Export accuracy to JSON file: a.json"},
    {"--compareAtol=0.1", nullptr},
    {"--compareRtol=0", nullptr},
    {"--compareCosine=0.9", nullptr},
    {"--power", "Power: Enabled"},
    {"--exportPower=w.json", "Power: Enabled\nExport power to JSON file: w.json"},
    {"--device=2", "Device: 2"},
    {"--device=cpu", "Device: cpu"},
    {"--cpuThreads=3", nullptr},
    {"--noWinograd", nullptr},
    {"--cpuBf16", nullptr},
    {"--bf16Tensors", nullptr},
    {"--tuningSeconds=3", nullptr},
    {"--kvCapacity=64", nullptr},
    {"--strictPlan", nullptr},
    {"--useDLACore=1", "DLACore: 1\n"},
    {"--dlaModel=orin", nullptr},
    {"--allowGPUFallback", nullptr},
    {"--plugins=p.so", "Plugins: p.so"},
};

TEST(Options, EachFlagIsAcceptedAndEchoed)
{
    for (Accepted const& a : kWithOnnx) {
        SCOPED_TRACE(a.flag);
        Options const options = parse({"--onnx=m.onnx", a.flag});
        EXPECT_TRUE(options.unknown.empty());
        std::string const text = echo({"--onnx=m.onnx", a.flag});
        EXPECT_NE(text.find(a.echo ? a.echo : ""), std::string::npos) << text;
    }
}

TEST(Options, TableOfFlagsHasNoHole)
{
    // Flags that need another model or a second flag, and are tested below.
    std::set<std::string> tested = {"--onnx",
                                    "--uff",
                                    "--model",
                                    "--deploy",
                                    "--output",
                                    "--uffInput",
                                    "--uffNHWC",
                                    "--batch",
                                    "--maxBatch",
                                    "--minShapesCalib",
                                    "--maxShapesCalib",
                                    "--layerPrecisions",
                                    "--layerOutputTypes",
                                    "--maxLoss",
                                    "--kvPages",
                                    "--help",
                                    "-h"};
    for (Accepted const& a : kWithOnnx)
        tested.insert(std::string(a.flag).substr(0, std::string(a.flag).find('=')));
    for (Flag const& flag : allFlags())
        EXPECT_TRUE(tested.count(std::string(flag.name))) << flag.name << " is in the help but not tested";
    std::set<std::string> known;
    for (Flag const& flag : allFlags())
        EXPECT_TRUE(known.insert(std::string(flag.name)).second) << flag.name << " stands twice";
    for (std::string const& name : tested)
        EXPECT_TRUE(known.count(name)) << name << " is parsed but has no help line";
}

TEST(Options, HelpHasEveryHeadingAndFlag)
{
    std::string const text = helpText();
    for (char const* heading : {"=== Model Options ===", "=== Build Options ===", "=== Inference Options ===",
                                "=== Reporting Options ===", "=== System Options ===", "=== Help ==="})
        EXPECT_NE(text.find(heading), std::string::npos) << heading;
    std::set<std::string_view> const hidden = {"--nvtxMode", "--explicitBatch", "--explicitPrecision"};
    for (Flag const& flag : allFlags())
        EXPECT_EQ(text.find("  " + std::string(flag.name) + std::string(flag.syntax) + " ") != std::string::npos,
                  !hidden.count(flag.name))
            << flag.name;
    EXPECT_TRUE(parse({"--help"}).help);
    EXPECT_TRUE(parse({"-h", "--nonsense"}).help);
}

TEST(Options, PagesOfCaches)
{
    EXPECT_EQ(parse({"--onnx=m", "--kvCapacity=64", "--kvPages=8"}).system.kvPages, 8);
    EXPECT_EQ(parse({"--onnx=m", "--kvCapacity=64"}).system.kvPages, 0);
}

TEST(Options, LargestLoss)
{
    Options const options = parse({"--onnx=m", "--maxLoss=0.25", "--loadInputs=x:f"});
    ASSERT_TRUE(options.build.maxLoss.has_value());
    EXPECT_EQ(*options.build.maxLoss, 0.25);
    EXPECT_FALSE(parse({"--onnx=m"}).build.maxLoss.has_value());
    EXPECT_NE(echo({"--onnx=m", "--maxLoss=0.25", "--loadInputs=x:f"}).find("Largest loss: 0.25"), std::string::npos);
}

TEST(Options, CommandLinesThatAreRefused)
{
    std::vector<std::vector<std::string>> const refused = {
        {"--fp16"}, // no model
        {"--onnx"}, // no value; one after a space is not taken
        {"--onnx="},
        {"--onnx=m", "--output=y"},
        {"--uff=m", "--output=y"},
        {"--uff=m", "--uffInput=x,1,2,3"},
        {"--uff=m", "--uffInput=x,1,2", "--output=y"},
        {"--deploy=p"},
        {"--model=w", "--output=y"}, // no prototxt
        {"--onnx=m", "--batch=2"},
        {"--onnx=m", "--maxBatch=2"},
        {"--loadEngine=e", "--batch=2", "--shapes=x:1"},
        {"--deploy=p", "--output=y", "--batch=4", "--maxBatch=2"},
        {"--onnx=m", "--saveEngine=a", "--loadEngine=b"},
        {"--onnx=m", "--minShapesCalib=x:1"},
        {"--onnx=m", "--optShapesCalib=x:1", "--maxShapesCalib=x:1"},
        {"--onnx=m", "--layerPrecisions=*:fp16"},
        {"--onnx=m", "--layerOutputTypes=*:fp16", "--precisionConstraints=none"},
        {"--onnx=m", "--layerPrecisions=a:bf16", "--precisionConstraints=obey"},
        {"--onnx=m", "--precisionConstraints=maybe"},
        {"--onnx=m", "--sparsity=on"},
        {"--onnx=m", "--maxLoss=0.1"}, // random inputs say nothing
        {"--onnx=m", "--maxLoss=-1", "--loadInputsFrom=d"},
        {"--onnx=m", "--maxLoss=some", "--loadInputsFrom=d"},
        {"--onnx=m", "--maxLoss=0.1", "--loadInputsFrom=d", "--loadEngine=e"},
        {"--loadEngine=e", "--accuracyReport=a"}, // no model
        {"--onnx=m", "--accuracyReport=a", "--buildOnly"},
        {"--onnx=m", "--profilingVerbosity=all"},
        {"--onnx=m", "--memPoolSize=workspace:-1"},
        {"--onnx=m", "--memPoolSize=l2:1"},
        {"--onnx=m", "--memPoolSize=workspace"},
        {"--onnx=m", "--tacticSources=CUDNN"},
        {"--onnx=m", "--tacticSources=+MKL"},
        {"--onnx=m", "--preview=+FasterDynamicShapes0805"}, // letter case matters
        {"--onnx=m", "--inputIOFormats=fp32:hwc16"},        // printed, never taken
        {"--onnx=m", "--inputIOFormats=bool:chw"},
        {"--onnx=m", "--inputIOFormats=fp32"},
        {"--onnx=m", "--shapes=x"},
        {"--onnx=m", "--shapes=x:1x"},
        {"--onnx=m", "--shapes=x:1xa"},
        {"--onnx=m", "--shapes=x:1,"},
        {"--onnx=m", "--shapes=x:1,x:2"},
        {"--onnx=m", "--shapes='x:1"},
        {"--onnx=m", "--shapes=x:99999999999"},
        {"--onnx=m", "--minShapes=x:1", "--maxShapes=x:1x2"},
        {"--onnx=m", "--percentile=101"},
        {"--onnx=m", "--percentile=-1"},
        {"--onnx=m", "--percentile=a"},
        {"--onnx=m", "--percentile=nan"},
        {"--onnx=m", "--iterations=ten"},
        {"--onnx=m", "--iterations=1e3"},
        {"--onnx=m", "--streams=0"},
        {"--onnx=m", "--avgRuns=0"},
        {"--onnx=m", "--duration=-1"},
        {"--onnx=m", "--persistentCacheRatio=2"},
        {"--onnx=m", "--device=gpu"},
        {"--onnx=m", "--device=-1"},
        {"--onnx=m", "--cpuThreads=0"},
        {"--onnx=m", "--tuningSeconds=0"},
        {"--onnx=m", "--kvCapacity=0"},
        {"--onnx=m", "--kvPages=8"},
        {"--onnx=m", "--layerDeviceTypes=a:NPU"},
        {"--onnx=m", "--compareCosine=2"},
    };
    for (auto const& args : refused) {
        std::string line;
        for (std::string const& a : args)
            line += a + " ";
        EXPECT_THROW((void)parse(args), UsageError) << line;
    }
}

TEST(Options, UnknownArguments)
{
    using Lines = std::vector<std::string>;
    EXPECT_EQ(parse({"--onnx=m", "--speed=11"}).unknown, Lines{"--speed 11"});
    EXPECT_EQ(parse({"--onnx=m", "model.onnx"}).unknown, Lines{"model.onnx "});
    EXPECT_EQ(parse({"--onnx=m", "--fp16", "--fp16"}).unknown, Lines{"--fp16 "});
    EXPECT_EQ(parse({"--onnx=a", "--onnx=b"}).unknown, Lines{"--onnx b"});
    EXPECT_EQ(parse({"--onnx=a", "--uff=b"}).unknown, Lines{"--uff b"});
    EXPECT_EQ(parse({"--onnx=a", "--FP16"}).unknown, Lines{"--FP16 "});
    EXPECT_EQ(parse({"--onnx=m", "--saveEngine=a=b"}).build.saveEngine, "a=b"); // the first = splits
}

TEST(Options, RepeatableFlags)
{
    Options const uff = parse({"--uff=m", "--uffInput=x,3,2,1", "--uffInput=y,1,2,3", "--output=a,b", "--output=c",
                               "--uffNHWC", "--plugins=p", "--plugins=q"});
    EXPECT_TRUE(uff.unknown.empty());
    EXPECT_EQ(uff.model.uffInputs.size(), 2u);
    EXPECT_EQ(uff.model.uffInputs[0].dims[2], 1);
    EXPECT_EQ(uff.model.outputs, (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_EQ(uff.system.plugins, (std::vector<std::string>{"p", "q"}));
    EXPECT_TRUE(uff.model.uffNhwc);
}

TEST(Options, BatchFollowsTheModel)
{
    Options const onnx = parse({"--onnx=m"});
    EXPECT_TRUE(onnx.build.explicitBatch());
    EXPECT_EQ(onnx.inference.batch, 0);
    Options const caffe = parse({"--deploy=p", "--output=y"});
    EXPECT_EQ(caffe.build.maxBatch, 1);
    EXPECT_EQ(caffe.inference.batch, 1);
    EXPECT_EQ(parse({"--deploy=p", "--output=y", "--batch=8"}).build.maxBatch, 8);
    Options const larger = parse({"--deploy=p", "--output=y", "--batch=2", "--maxBatch=8"});
    EXPECT_EQ(larger.build.maxBatch, 8);
    EXPECT_EQ(larger.inference.batch, 2);
    EXPECT_TRUE(parse({"--loadEngine=e", "--shapes=x:2"}).build.explicitBatch());
}

TEST(Options, ShapesFillEachOther)
{
    auto const range = [](Options const& o) { return o.build.shapes.at("x"); };
    Options const alone = parse({"--onnx=m", "--shapes=x:2x3"});
    EXPECT_EQ(range(alone).min, (Shape{2, 3}));
    EXPECT_EQ(range(alone).max, (Shape{2, 3}));
    Options const opt = parse({"--onnx=m", "--optShapes=x:4"});
    EXPECT_EQ(opt.inference.shapes.at("x"), Shape{4});
    EXPECT_EQ(range(opt).min, Shape{4});
    Options const ends = parse({"--onnx=m", "--minShapes=x:1", "--maxShapes=x:8"});
    EXPECT_EQ(range(ends).opt, Shape{8});
    EXPECT_EQ(ends.inference.shapes.at("x"), Shape{8});
    Options const low = parse({"--onnx=m", "--minShapes=x:1"});
    EXPECT_EQ(range(low).max, Shape{1});
    Options const top = parse({"--onnx=m", "--maxShapes=x:8", "--optShapes=x:4", "--shapes=x:6"});
    EXPECT_EQ(range(top).min, Shape{4});
    EXPECT_EQ(top.inference.shapes.at("x"), Shape{6});
    Options const calib = parse({"--onnx=m", "--int8", "--calib=c", "--shapes=x:2"});
    EXPECT_TRUE(calib.build.calibShapes.empty()); // --shapes alone is no build shape when the calibration is settled
    EXPECT_EQ(parse({"--onnx=m", "--int8", "--calib=c", "--optShapes=x:2"}).build.calibShapes.at("x").opt, Shape{2});
}

TEST(Options, LayerConstraintsKeepTheirOrder)
{
    Options const o = parse({"--onnx=m", "--precisionConstraints=obey", "--layerPrecisions=*:fp16,a:0:fp32",
                             "--layerOutputTypes=a:fp32+int8,*:fp16"});
    EXPECT_EQ(o.build.layerPrecisions[0].first, "*");
    EXPECT_EQ(o.build.layerPrecisions[1].first, "a:0");
    EXPECT_EQ(o.build.layerOutputTypes[0].second, (std::vector<TensorType>{TensorType::kFloat, TensorType::kInt8}));
    EXPECT_NE(echo({"--onnx=m", "--precisionConstraints=obey", "--layerPrecisions=*:fp16,a:fp32"})
                  .find("LayerPrecisions: *:fp16,a:fp32\n"),
              std::string::npos);
}

TEST(Options, DeprecatedSpellingsWarn)
{
    EXPECT_TRUE(parse({"--onnx=m"}).warnings.empty());
    EXPECT_EQ(parse({"--onnx=m", "--explicitBatch", "--explicitPrecision"}).warnings.size(), 2u);
    EXPECT_NE(parse({"--onnx=m", "--workspace=64"}).warnings.at(0).find("--memPoolSize"), std::string::npos);
    EXPECT_NE(parse({"--onnx=m", "--nvtxMode=detailed"}).warnings.at(0).find("--profilingVerbosity"),
              std::string::npos);
    EXPECT_EQ(parse({"--onnx=m", "--profilingVerbosity=default"}).warnings.size(), 1u);
}

TEST(Options, PowerNeedsARun)
{
    EXPECT_TRUE(parse({"--onnx=m", "--power"}).warnings.empty());
    EXPECT_TRUE(parse({"--onnx=m", "--power", "--dumpProfile", "--separateProfileRun"}).warnings.empty());
    for (char const* flag : {"--buildOnly", "--timeDeserialize", "--dumpProfile", "--exportProfile=p"}) {
        EXPECT_EQ(parse({"--onnx=m", "--power", flag}).warnings.size(), 1u) << flag;
        EXPECT_EQ(parse({"--onnx=m", "--exportPower=f", flag}).warnings.size(), 1u) << flag;
        EXPECT_TRUE(parse({"--onnx=m", flag}).warnings.empty()) << flag;
    }
}

TEST(Options, EchoOfDefaults)
{
    std::string const text = echo({"--onnx=m.onnx"});
    for (char const* line :
         {"Format: ONNX\nModel: m.onnx\nOutput:\n=== Build Options ===\nMax batch: explicit batch\n"
          "Memory Pools: workspace: default, dlaSRAM: default, dlaLocalDRAM: default, dlaGlobalDRAM: default\n"
          "minTiming: 1\navgTiming: 8\nPrecision: FP32\nLayerPrecisions: \nCalibration: \nRefit: Disabled\n"
          "Sparsity: Disabled\nSafe mode: Disabled\nDirectIO mode: Disabled\nRestricted mode: Disabled\n"
          "Build only: Disabled\nSave engine: \nLoad engine: \nProfiling verbosity: 0\n"
          "Tactic sources: Using default tactic sources\ntimingCacheMode: local\ntimingCacheFile: \n"
          "Heuristic: Disabled\nPreview Features: Use default preview flags.\nInput(s)s format: fp32:CHW\n"
          "Output(s)s format: fp32:CHW\nInput build shapes: model\nInput calibration shapes: model\n"
          "=== System Options ===\nDevice: 0\nDLACore: \nPlugins:\n=== Inference Options ===\nBatch: Explicit\n"
          "Input inference shapes: model\nIterations: 10\nDuration: 3s (+ 200ms warm up)\nSleep time: 0ms\n"
          "Idle time: 0ms\nStreams: 1\nExposeDMA: Disabled\nData transfers: Enabled\nSpin-wait: Disabled\n"
          "Multithreading: Disabled\nCUDA Graph: Disabled\nSeparate profiling: Disabled\nTime Deserialize: Disabled\n"
          "Time Refit: Disabled\nNVTX verbosity: 0\nPersistent Cache Ratio: 0\nInputs:\n"
          "=== Reporting Options ===\nVerbose: Disabled\nAverages: 10 inferences\nPercentiles: 90,95,99\n"
          "Dump refittable layers:Disabled\nDump output: Disabled\nProfile: Disabled\n"
          "Export timing to JSON file: \nExport output to JSON file: \nExport profile to JSON file: \n"})
        EXPECT_NE(text.find(line), std::string::npos) << text;
}

} // namespace
} // namespace tw::trtexec
