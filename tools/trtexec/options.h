// SPDX-License-Identifier: Apache-2.0
// What the command line asks for, in plain values: nothing here needs the library's headers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tw::trtexec {

using Shape = std::vector<int32_t>;

// Numbers equal those of nvinfer1::DataType; only these four can be named on the command line.
enum class TensorType : int32_t
{
    kFloat = 0,
    kHalf = 1,
    kInt8 = 2,
    kInt32 = 3
};

// One type with the memory formats that are allowed for it: bit i stands for nvinfer1::TensorFormat i.
struct IoFormat
{
    TensorType type = TensorType::kFloat;
    uint32_t formats = 1;
};

struct ShapeRange
{
    Shape min;
    Shape opt;
    Shape max;
};
using ShapeRanges = std::map<std::string, ShapeRange>;

enum class ModelFormat
{
    kAny,
    kOnnx,
    kCaffe,
    kUff
};

struct UffInput
{
    std::string name;
    int32_t dims[3] = {0, 0, 0};
};

struct ModelOptions
{
    ModelFormat format = ModelFormat::kAny;
    std::string model;    // path of the ONNX, UFF or Caffe weights file
    std::string prototxt; // Caffe only
    std::vector<std::string> outputs;
    std::vector<UffInput> uffInputs;
    bool uffNhwc = false;
};

enum class PrecisionConstraints
{
    kNone,
    kObey,
    kPrefer
};
enum class Sparsity
{
    kDisable,
    kEnable,
    kForce
};
// Numbers equal those of nvinfer1::ProfilingVerbosity.
enum class ProfilingDetail : int32_t
{
    kLayerNames = 0,
    kNone = 1,
    kDetailed = 2
};
enum class TimingCacheMode
{
    kLocal,
    kGlobal,
    kDisable
};
enum class LayerDevice : int32_t
{
    kGpu = 0,
    kDla = 1
}; // numbers of nvinfer1::DeviceType

struct BuildOptions
{
    int32_t maxBatch = 0; // 0: explicit batch
    // Memory pools in MiB; negative: the builder's default.
    double workspaceMiB = -1;
    double dlaSramMiB = -1;
    double dlaLocalDramMiB = -1;
    double dlaGlobalDramMiB = -1;
    int32_t minTiming = 1;
    int32_t avgTiming = 8;
    bool tf32 = true;
    bool fp16 = false;
    bool int8 = false;
    bool directIo = false;
    PrecisionConstraints constraints = PrecisionConstraints::kNone;
    // In the order of the command line: a later entry wins over an earlier one for the same layer.
    std::vector<std::pair<std::string, TensorType>> layerPrecisions;
    std::vector<std::pair<std::string, std::vector<TensorType>>> layerOutputTypes;
    std::vector<std::pair<std::string, LayerDevice>> layerDevices;
    std::string calibration;
    std::optional<double> maxLoss; // of the outputs: the builder searches which layers to compute in FP32
    bool safe = false;
    bool consistency = false;
    bool restricted = false;
    bool buildOnly = false;
    bool refit = false;
    Sparsity sparsity = Sparsity::kDisable;
    std::string saveEngine;
    std::string loadEngine;
    ProfilingDetail profiling = ProfilingDetail::kLayerNames;
    uint32_t tacticSourcesOn = 0;  // bit i: nvinfer1::TacticSource i was named with +
    uint32_t tacticSourcesOff = 0; // and with -
    TimingCacheMode timingCacheMode = TimingCacheMode::kLocal;
    std::string timingCacheFile;
    bool heuristic = false;
    std::map<int32_t, bool> previewFeatures; // nvinfer1::PreviewFeature -> on or off
    std::vector<IoFormat> inputFormats;      // empty: FP32 linear
    std::vector<IoFormat> outputFormats;
    ShapeRanges shapes;
    ShapeRanges calibShapes;

    bool explicitBatch() const { return maxBatch == 0; }
};

struct SystemOptions
{
    int32_t device = 0;
    bool cpu = false;                                           // --device=cpu
    bool deviceGiven = false;                                   // --device stood on the command line
    int32_t cpuThreads = 0;                                     // 0: the library decides
    int32_t tuningSeconds = 0;                                  // 0: no limit
    int32_t kvPages = 0;                                        // 0: each sequence has its rows of caches
    int32_t kvCapacity = 0;                                     // 0: caches stay as they are in the model
    std::vector<std::pair<char const*, char const*>> variables; // of the library's environment, that flags set
    int32_t dlaCore = -1;
    bool gpuFallback = false;
    std::vector<std::string> plugins;
};

struct InferenceOptions
{
    int32_t batch = 0; // 0: explicit batch
    bool batchGiven = false;
    std::map<std::string, Shape> shapes;
    std::map<std::string, std::string> inputFiles; // tensor name -> raw file
    std::string inputFolder;                       // --loadInputsFrom
    int32_t iterations = 10;
    double warmUpMs = 200;
    double durationSec = 3;
    double sleepMs = 0;
    double idleMs = 0;
    int32_t streams = 1;
    bool exposeDma = false;
    bool transfers = true;
    bool managedMemory = false;
    bool spinWait = false;
    bool threads = false;
    bool cudaGraph = false;
    bool timeDeserialize = false;
    bool timeRefit = false;
    bool separateProfileRun = false;
    double persistentCacheRatio = 0;
};

// An output matches when |out - ref| <= atol * max|ref| + rtol * |ref| for each element and
// cosine(out, ref) >= cosine. The defaults are those of the project's recorded models in FP32.
struct Tolerance
{
    double atol = 1e-5;
    double rtol = 1e-4;
    double cosine = 0.999999;
};

struct ReportingOptions
{
    bool verbose = false;
    int32_t avgRuns = 10;
    std::vector<double> percentiles = {90, 95, 99};
    bool dumpRefit = false;
    bool dumpOutput = false;
    bool dumpProfile = false;
    bool dumpLayerInfo = false;
    std::string exportTimes;
    std::string exportOutput;
    std::string exportProfile;
    std::string exportLayerInfo;
    std::string compare; // folder of output_K.pb[.gz], or an .npz file
    Tolerance tolerance;
    std::string accuracyReport;
    bool power = false;
    std::string exportPower;

    bool profiles() const { return dumpProfile || !exportProfile.empty(); }
};

struct Options
{
    ModelOptions model;
    BuildOptions build;
    SystemOptions system;
    InferenceOptions inference;
    ReportingOptions reporting;
    bool help = false;
    std::vector<std::string> warnings; // deprecated spellings that were used
    std::vector<std::string> unknown;  // "<name> <value>" of each argument that no option took
};

// Reads argv[1..argc). Throws UsageError on a value or a combination that cannot be used.
Options parseOptions(int argc, char const* const* argv);

std::string helpText();
// The lines that repeat the options before a run, in the published order; each goes through the logger.
std::vector<std::string> echoLines(Options const& options);

} // namespace tw::trtexec
