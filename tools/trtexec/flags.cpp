// SPDX-License-Identifier: Apache-2.0
#include "flags.h"

namespace tw::trtexec {

namespace {

using enum FlagGroup;

constexpr Flag kFlags[] = {
    {kModel, "--onnx", "=<file>", "ONNX model to build from"},
    {kModel, "--uff", "=<file>", "UFF model; name its ends with --uffInput and --output"},
    {kModel, "--model", "=<file>", "Caffe weights; without them --deploy runs on random weights"},
    {kModel, "--deploy", "=<file>", "Caffe network description (prototxt)"},
    {kModel, "--output", "=<name>[,<name>]*", "outputs of a Caffe or UFF model; may be repeated"},
    {kModel, "--uffInput", "=<name>,X,Y,Z", "an input of a UFF model with its C,H,W; may be repeated"},
    {kModel, "--uffNHWC", "", "the numbers of --uffInput are H,W,C"},

    {kBuild, "--maxBatch", "=<N>",
     "largest batch of an implicit batch engine (default: that of --batch);\nnot with ONNX or shapes"},
    {kBuild, "--minShapes", "=<spec>", "smallest input shapes of the optimization profile"},
    {kBuild, "--optShapes", "=<spec>", "input shapes to optimize for"},
    {kBuild, "--maxShapes", "=<spec>",
     "largest input shapes of the optimization profile\n"
     "  spec: name:shape[,spec], for example 'ids:0':1x128,mask:1x128\n"
     "  a missing minimum is the optimum, a missing maximum too; a missing optimum is the maximum"},
    {kBuild, "--minShapesCalib", "=<spec>", "smallest input shapes of the calibration profile"},
    {kBuild, "--optShapesCalib", "=<spec>", "input shapes to calibrate with; give this one alone, or all three"},
    {kBuild, "--maxShapesCalib", "=<spec>", "largest input shapes of the calibration profile"},
    {kBuild, "--inputIOFormats", "=<spec>", "types and memory formats of the inputs (default: fp32:chw for all)"},
    {kBuild, "--outputIOFormats", "=<spec>",
     "types and memory formats of the outputs (default: fp32:chw for all)\n"
     "  spec: type:fmt[+fmt]*[,spec]; one entry for all tensors, or one for each in network order\n"
     "  type: fp32 fp16 int8 int32\n"
     "  fmt:  chw chw2 chw4 hwc8 chw16 chw32 dhwc8 cdhw32 hwc dla_linear dla_hwc4"},
    {kBuild, "--workspace", "=<N>", "workspace limit in MiB; deprecated, use --memPoolSize"},
    {kBuild, "--memPoolSize", "=<spec>",
     "limits of the memory pools in MiB, decimals allowed\n"
     "  spec: pool:MiB[,spec]; pool: workspace dlaSRAM dlaLocalDRAM dlaGlobalDRAM"},
    {kBuild, "--profilingVerbosity", "=<mode>",
     "what the engine keeps of its layers: layer_names_only (default), detailed, none"},
    {kBuild, "--nvtxMode", "=<mode>", ""},
    {kBuild, "--minTiming", "=<M>", "fewest timing runs of a candidate kernel (default 1)"},
    {kBuild, "--avgTiming", "=<M>", "timing runs that are averaged for a candidate kernel (default 8)"},
    {kBuild, "--refit", "", "build an engine whose weights can be replaced later"},
    {kBuild, "--sparsity", "=<mode>",
     "2:4 structured sparsity: disable (default), enable (where weights have it),\nforce (weights are overwritten: "
     "results change)"},
    {kBuild, "--noTF32", "", "no TF32 arithmetic (allowed by default)"},
    {kBuild, "--fp16", "", "allow FP16 arithmetic besides FP32"},
    {kBuild, "--int8", "", "allow INT8 arithmetic besides FP32"},
    {kBuild, "--best", "", "allow every precision, as --fp16 --int8"},
    {kBuild, "--directIO", "", "fail rather than reformat at network inputs and outputs"},
    {kBuild, "--precisionConstraints", "=<mode>",
     "layer precisions: none (ignored, default), prefer (with a warning where\nimpossible), obey (else the build "
     "fails)"},
    {kBuild, "--layerPrecisions", "=<spec>",
     "precision of single layers, with --precisionConstraints=obey or prefer\n  spec: layer:type[,spec]; layer * "
     "stands for all others; later entries win"},
    {kBuild, "--layerOutputTypes", "=<spec>",
     "output types of single layers, with --precisionConstraints=obey or prefer\n  spec: layer:type[+type]*[,spec]; "
     "one type for each output, or one for all"},
    {kBuild, "--layerDeviceTypes", "=<spec>",
     "device of single layers\n  spec: layer:device[,spec]; device: GPU DLA; later entries win"},
    {kBuild, "--kvCapacity", "=<N>",
     "caches of a decoder that get longer with each run (past -> present) are rebuilt with\nroom for N rows, which "
     "stay where "
     "they are; the input kv_lengths says how many there are"},
    {kBuild, "--kvPages", "=<N>",
     "with --kvCapacity: caches are N blocks of 16 rows for all sequences together; the input\nkv_pages says which "
     "blocks "
     "a sequence has"},
    {kBuild, "--calib", "=<file>", "INT8 calibration cache to read"},
    {kBuild, "--maxLoss", "=<X>",
     "build the fastest engine found whose outputs differ from FP32 (or from what\n--compare names) by no more than X, "
     "the root of the error's energy by the output's;\nsearches which layers to compute in FP32 and needs --loadInputs "
     "or --loadInputsFrom"},
    {kBuild, "--safe", "", "build and run an engine of the safe subset; with --useDLACore a DLA loadable"},
    {kBuild, "--consistency", "", "check a safe engine for consistency (only with --safe)"},
    {kBuild, "--restricted", "", "refuse networks outside the safety scope"},
    {kBuild, "--buildOnly", "", "end after the build"},
    {kBuild, "--saveEngine", "=<file>", "write the built engine; not with --loadEngine"},
    {kBuild, "--loadEngine", "=<file>", "read an engine in place of building one"},
    {kBuild, "--tacticSources", "=<spec>",
     "kernel libraries to use (+) or to leave out (-)\n  spec: (+|-)name[,spec]; name: CUBLAS CUBLAS_LT CUDNN "
     "EDGE_MASK_CONVOLUTIONS JIT_CONVOLUTIONS"},
    {kBuild, "--noBuilderCache", "", "no timing cache during the build"},
    {kBuild, "--timingCacheFile", "=<file>", "timing cache that is read before the build and updated after it"},
    {kBuild, "--heuristic", "", "choose kernels by estimate more than by timing: faster builds"},
    {kBuild, "--preview", "=<spec>",
     "preview features on (+) or off (-)\n  spec: (+|-)name[,spec]; name: fasterDynamicShapes0805 "
     "disableExternalTacticSourcesForCore0805"},
    {kBuild, "--explicitBatch", "", ""},
    {kBuild, "--explicitPrecision", "", ""},

    {kInference, "--batch", "=<N>", "batch size of an implicit batch engine (default 1); not with ONNX or shapes"},
    {kInference, "--shapes", "=<spec>",
     "input shapes of this run (default: the optimum); for an input that is a\nshape tensor its values. Alone it also "
     "sets the build's profile"},
    {kInference, "--loadInputs", "=<spec>",
     "input values in place of random ones: raw binary files of exactly the\ntensor's size\n  spec: name:file[,spec]"},
    {kInference, "--loadInputsFrom", "=<folder>",
     "input values from input_<K>.pb[.gz] (ONNX TensorProto); dynamic inputs\ntake their shapes from the files when no "
     "shapes are given"},
    {kInference, "--iterations", "=<N>", "run at least N queries (default 10)"},
    {kInference, "--warmUp", "=<N>", "milliseconds of warm-up that is not measured (default 200)"},
    {kInference, "--duration", "=<N>", "measure for at least N seconds (default 3)"},
    {kInference, "--sleepTime", "=<N>", "milliseconds between launch and compute (default 0)"},
    {kInference, "--idleTime", "=<N>", "milliseconds of sleep between queries (default 0)"},
    {kInference, "--streams", "=<N>", "execution contexts that run at once (default 1)"},
    {kInference, "--exposeDMA", "", "copies do not overlap with the computation"},
    {kInference, "--noDataTransfers", "", "no copies in the measured loop"},
    {kInference, "--useManagedMemory", "", "buffers in managed memory"},
    {kInference, "--useSpinWait", "", "wait by spinning, not by blocking"},
    {kInference, "--threads", "", "a host thread for each stream; many threads for a timed refit"},
    {kInference, "--useCudaGraph", "",
     "capture a query in a CUDA graph and launch that; where the capture fails,\na warning, and it runs without"},
    {kInference, "--timeDeserialize", "", "measure how long loading the engine takes, and end"},
    {kInference, "--timeRefit", "", "measure how long a refit takes, before inference"},
    {kInference, "--separateProfileRun", "", "run once without the layer profiler and once with it"},
    {kInference, "--persistentCacheRatio", "=<R>",
     "share of the largest persisting L2 size to use, 0 to 1 (default 0)"},

    {kReporting, "--verbose", "", "print verbose messages too"},
    {kReporting, "--avgRuns", "=<N>", "queries that are averaged in a trace line (default 10)"},
    {kReporting, "--percentile", "=<P>[,<P>]*", "percentiles to report, each 0 to 100 (default 90,95,99)"},
    {kReporting, "--dumpRefit", "", "print the layers and weights that can be refitted"},
    {kReporting, "--dumpOutput", "", "print the outputs of the last query"},
    {kReporting, "--dumpProfile", "", "print the time of each layer"},
    {kReporting, "--dumpLayerInfo", "", "print the layers of the engine"},
    {kReporting, "--exportTimes", "=<file>", "write the times of every measured query as JSON"},
    {kReporting, "--exportOutput", "=<file>", "write the outputs of the last query as JSON"},
    {kReporting, "--exportProfile", "=<file>", "write the time of each layer as JSON"},
    {kReporting, "--exportLayerInfo", "=<file>", "write the layers of the engine as JSON"},
    {kReporting, "--compare", "=<path>",
     "check the outputs against recorded ones: a folder of output_<K>.pb[.gz]\n(ONNX TensorProto) or an .npz file; "
     "prints max absolute and max relative\ndifference and cosine of each output, and fails beyond the tolerance: then "
     "it names the\nfirst layers that differ from FP32, where the model is given"},
    {kReporting, "--accuracyReport", "=<file>",
     "write, for every tensor that the engine makes, how far it is from the model\nin FP32 as JSON; with --maxLoss the "
     "search, too"},
    {kReporting, "--compareAtol", "=<A>", "allowed difference as a share of the largest |reference| (default 1e-5)"},
    {kReporting, "--compareRtol", "=<R>", "allowed difference as a share of each |reference| (default 1e-4)"},
    {kReporting, "--compareCosine", "=<C>", "smallest allowed cosine (default 0.999999)"},
    {kReporting, "--power", "",
     "measure energy per inference and power beside idle, by NVML on a GPU and by RAPL on a\nCPU; where the machine "
     "hides them, print why"},
    {kReporting, "--exportPower", "=<file>", "the same, and write it as JSON"},

    {kSystem, "--device", "=<N>|cpu", "device to run on: CUDA device N (default 0), or the CPU"},
    {kSystem, "--tuningSeconds", "=<N>", "time that a build may spend on timing kernels, about (default: no limit)"},
    {kSystem, "--cpuThreads", "=<N>", "threads that the CPU device uses (default: one for each core)"},
    {kSystem, "--noWinograd", "",
     "build without Winograd's convolutions. With them (CPU, f32) 3x3 layers are faster and\nrounding errors reach "
     "4e-6 "
     "of a layer's largest output, in place of 2e-6",
     "TENSORWRIGHT_WINOGRAD", "0"},
    {kSystem, "--cpuBf16", "",
     "CPU: products may round their FP32 factors to BF16 (8 bits of mantissa) where that is\nfaster; sums stay in "
     "FP32",
     "TENSORWRIGHT_CPU_BF16", "1"},
    {kSystem, "--bf16Tensors", "",
     "FP32 layers may store their tensors in BF16 (8 bits of mantissa, FP32's range) and compute\nwith them where that "
     "is faster",
     "TENSORWRIGHT_BF16_TENSORS", "1"},
    {kSystem, "--strictPlan", "", "refuse a plan of another version or machine in place of re-targeting it",
     "TENSORWRIGHT_STRICT_PLAN", "1"},
    {kSystem, "--useDLACore", "=<N>", "DLA core to run on (default: none)"},
    {kSystem, "--dlaModel", "=orin|xavier",
     "model a DLA on the present device: its limits, its rounding, not its time"},
    {kSystem, "--allowGPUFallback", "", "layers that DLA cannot run go to the GPU"},
    {kSystem, "--plugins", "=<file>", "plugin library to load; may be repeated"},

    {kHelp, "--help", "", "print this text"},
    {kHelp, "-h", "", "the same"},
};

} // namespace

std::span<Flag const> allFlags()
{
    return kFlags;
}

} // namespace tw::trtexec
