// SPDX-License-Identifier: Apache-2.0
#include "enums.h"
#include "module.h"

namespace tw::python {

using namespace nvinfer1;

void bindRuntimeEnums(nb::module_& m)
{
    plainEnum<DataType>(m, "DataType", "Element type of weights and tensors.")
        .value("FLOAT", DataType::kFLOAT, "32-bit IEEE float.")
        .value("HALF", DataType::kHALF, "16-bit IEEE float.")
        .value("INT8", DataType::kINT8, "Signed 8-bit integer; stands for a real number through a scale.")
        .value("INT32", DataType::kINT32, "Signed 32-bit integer.")
        .value("BOOL", DataType::kBOOL, "8 bits, 0 is false and 1 is true; other values have no meaning.")
        .value("UINT8", DataType::kUINT8,
               "Unsigned 8-bit integer; for network inputs and outputs, converted by an identity layer.")
        .def_prop_ro(
            "itemsize", [](DataType self) { return itemBytes(self); }, "Bytes of an element.");
    plainEnum<WeightsRole>(m, "WeightsRole", "What an array of weights is for its layer.")
        .value("KERNEL", WeightsRole::kKERNEL, "Kernel of a convolution, deconvolution or fully connected layer.")
        .value("BIAS", WeightsRole::kBIAS, "Bias of those.")
        .value("SHIFT", WeightsRole::kSHIFT, "Shift of a scale layer.")
        .value("SCALE", WeightsRole::kSCALE, "Scale of a scale layer.")
        .value("CONSTANT", WeightsRole::kCONSTANT, "Values of a constant layer.")
        .value("ANY", WeightsRole::kANY, "Any role, for weights that go by their own name.");
    plainEnum<PluginFieldType>(m, "PluginFieldType", "Type of the data behind a PluginField.")
        .value("FLOAT16", PluginFieldType::kFLOAT16, "16-bit float.")
        .value("FLOAT32", PluginFieldType::kFLOAT32, "32-bit float.")
        .value("FLOAT64", PluginFieldType::kFLOAT64, "64-bit float.")
        .value("INT8", PluginFieldType::kINT8, "Signed 8-bit integer.")
        .value("INT16", PluginFieldType::kINT16, "Signed 16-bit integer.")
        .value("INT32", PluginFieldType::kINT32, "Signed 32-bit integer.")
        .value("CHAR", PluginFieldType::kCHAR, "Character.")
        .value("DIMS", PluginFieldType::kDIMS, "Dims.")
        .value("UNKNOWN", PluginFieldType::kUNKNOWN, "Not said; the creator must know.");
    plainEnum<TensorLocation>(m, "TensorLocation", "Where the elements of a tensor are.")
        .value("DEVICE", TensorLocation::kDEVICE, "In device memory.")
        .value("HOST", TensorLocation::kHOST, "In host memory.");
    orderedEnum<TensorFormat>(m, "TensorFormat",
                              "Order of a tensor's elements in memory. In the names, the letters give the dimensions "
                              "from outermost to innermost and a number is the length of the innermost vector of "
                              "channels; the channel count is rounded up to it.")
        .value("LINEAR", TensorFormat::kLINEAR, "Row-major, no vectors; any type and rank.")
        .value("CHW2", TensorFormat::kCHW2, "Channels in pairs, [ceil(C/2)][H][W][2]; HALF.")
        .value("HWC8", TensorFormat::kHWC8, "Channels innermost, rounded up to 8; HALF.")
        .value("CHW4", TensorFormat::kCHW4, "[ceil(C/4)][H][W][4]; INT8, HALF.")
        .value("CHW16", TensorFormat::kCHW16, "[ceil(C/16)][H][W][16]; HALF.")
        .value("CHW32", TensorFormat::kCHW32, "[ceil(C/32)][H][W][32]; INT8, HALF, FLOAT.")
        .value("DHWC8", TensorFormat::kDHWC8, "As HWC8 for three spatial dimensions; HALF.")
        .value("CDHW32", TensorFormat::kCDHW32, "As CHW32 for three spatial dimensions; INT8, HALF.")
        .value("HWC", TensorFormat::kHWC, "Channels innermost, no padding; FLOAT, UINT8.")
        .value("DLA_LINEAR", TensorFormat::kDLA_LINEAR, "DLA planar: rows padded to a multiple of 64 bytes.")
        .value("DLA_HWC4", TensorFormat::kDLA_HWC4,
               "DLA image: channels innermost, C rounded to 1 or 4, rows padded to the device's alignment.")
        .value("HWC16", TensorFormat::kHWC16, "Channels innermost, rounded up to 16; HALF.");
    orderedEnum<ErrorCode>(m, "ErrorCodeTRT", "Kind of an error in an error recorder.")
        .value("SUCCESS", ErrorCode::kSUCCESS, "No error.")
        .value("UNSPECIFIED_ERROR", ErrorCode::kUNSPECIFIED_ERROR, "None of the kinds below.")
        .value("INTERNAL_ERROR", ErrorCode::kINTERNAL_ERROR, "A fault inside the library.")
        .value("INVALID_ARGUMENT", ErrorCode::kINVALID_ARGUMENT, "An argument outside its allowed values.")
        .value("INVALID_CONFIG", ErrorCode::kINVALID_CONFIG, "Settings that do not go together.")
        .value("FAILED_ALLOCATION", ErrorCode::kFAILED_ALLOCATION, "Host or device memory could not be had.")
        .value("FAILED_INITIALIZATION", ErrorCode::kFAILED_INITIALIZATION, "A component could not be started.")
        .value("FAILED_EXECUTION", ErrorCode::kFAILED_EXECUTION, "A failure while the engine ran.")
        .value("FAILED_COMPUTATION", ErrorCode::kFAILED_COMPUTATION,
               "The run ended but its numbers are wrong, for example by an overflow.")
        .value("INVALID_STATE", ErrorCode::kINVALID_STATE, "A call that the object's present state does not allow.")
        .value("UNSUPPORTED_STATE", ErrorCode::kUNSUPPORTED_STATE,
               "A request that this device or this release cannot fulfil.");
    orderedEnum<AllocatorFlag>(m, "AllocatorFlag", "Property asked of an allocation.")
        .value("RESIZABLE", AllocatorFlag::kRESIZABLE, "The memory may later be passed to reallocate().");
    orderedEnum<BuilderFlag>(m, "BuilderFlag", "Option of building.")
        .value("FP16", BuilderFlag::kFP16, "Allow HALF kernels.")
        .value("INT8", BuilderFlag::kINT8, "Allow INT8 kernels.")
        .value("DEBUG", BuilderFlag::kDEBUG, "Wait after each layer while building.")
        .value("GPU_FALLBACK", BuilderFlag::kGPU_FALLBACK, "Run on the main device what DLA cannot run.")
        .value("STRICT_TYPES", BuilderFlag::kSTRICT_TYPES,
               "Old request for wanted types, formats and no other algorithms.")
        .value("REFIT", BuilderFlag::kREFIT, "Keep weights replaceable.")
        .value("DISABLE_TIMING_CACHE", BuilderFlag::kDISABLE_TIMING_CACHE, "Time equal layers each time.")
        .value("TF32", BuilderFlag::kTF32,
               "Allow FLOAT inputs rounded to 10 mantissa bits in tensor cores. On by default.")
        .value("SPARSE_WEIGHTS", BuilderFlag::kSPARSE_WEIGHTS, "Use kernels for weights with 2 zeros in each 4.")
        .value("SAFETY_SCOPE", BuilderFlag::kSAFETY_SCOPE,
               "Allow only what EngineCapability::SAFETY allows, with a standard engine.")
        .value("OBEY_PRECISION_CONSTRAINTS", BuilderFlag::kOBEY_PRECISION_CONSTRAINTS,
               "Wanted types are demands: fail if they cannot be met.")
        .value("PREFER_PRECISION_CONSTRAINTS", BuilderFlag::kPREFER_PRECISION_CONSTRAINTS,
               "Wanted types are met where possible, with a warning where not.")
        .value("DIRECT_IO", BuilderFlag::kDIRECT_IO,
               "No conversion at network inputs and outputs: fail if that cannot be.")
        .value("REJECT_EMPTY_ALGORITHMS", BuilderFlag::kREJECT_EMPTY_ALGORITHMS,
               "Fail if the algorithm selector leaves no choice.")
        .value("ENABLE_TACTIC_HEURISTIC", BuilderFlag::kENABLE_TACTIC_HEURISTIC,
               "Time fewer candidates, chosen by estimates.");
    plainEnum<MemoryPoolType>(m, "MemoryPoolType", "A kind of memory that the builder may limit.")
        .value("WORKSPACE", MemoryPoolType::kWORKSPACE,
               "Scratch memory of layers. Default: all of the device's memory.")
        .value("DLA_MANAGED_SRAM", MemoryPoolType::kDLA_MANAGED_SRAM, "Fast memory of a DLA core. Default 1 MiB.")
        .value("DLA_LOCAL_DRAM", MemoryPoolType::kDLA_LOCAL_DRAM,
               "Memory for values inside a DLA loadable. Default 1 GiB.")
        .value("DLA_GLOBAL_DRAM", MemoryPoolType::kDLA_GLOBAL_DRAM,
               "Memory for weights and metadata of a DLA loadable. Default 512 MiB.");
    orderedEnum<QuantizationFlag>(m, "QuantizationFlag", "Option of INT8 building.")
        .value("CALIBRATE_BEFORE_FUSION", QuantizationFlag::kCALIBRATE_BEFORE_FUSION,
               "Calibrate the network as defined, before layers are fused.");
    plainEnum<PreviewFeature>(m, "PreviewFeature", "A feature that may be turned on before it becomes the default.")
        .value("FASTER_DYNAMIC_SHAPES_0805", PreviewFeature::kFASTER_DYNAMIC_SHAPES_0805,
               "Code generation that treats dynamic shapes better.")
        .value("DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805",
               PreviewFeature::kDISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805,
               "No cuBLAS, cuBLASLt and cuDNN for the library's own layers.");
    plainEnum<DeviceType>(m, "DeviceType", "Device that runs a layer.")
        .value("GPU", DeviceType::kGPU, "The main device: a GPU, or the CPU when that is the chosen device.")
        .value("DLA", DeviceType::kDLA, "A DLA core.");
    plainEnum<ProfilingVerbosity>(m, "ProfilingVerbosity",
                                  "How much an engine knows of its layers for profilers and the inspector.")
        .value("LAYER_NAMES_ONLY", ProfilingVerbosity::kLAYER_NAMES_ONLY, "Names of the layers.")
        .value("DETAILED", ProfilingVerbosity::kDETAILED, "Names, parameters, formats and tactics.")
        .value("NONE", ProfilingVerbosity::kNONE, "Nothing.");
    plainEnum<TensorIOMode>(m, "TensorIOMode", "Role of a named tensor in an engine.")
        .value("NONE", TensorIOMode::kNONE, "Neither input nor output.")
        .value("INPUT", TensorIOMode::kINPUT, "Input.")
        .value("OUTPUT", TensorIOMode::kOUTPUT, "Output.");
    orderedEnum<TacticSource>(m, "TacticSource", "Origin of kernels that the builder may choose from.")
        .value("CUBLAS", TacticSource::kCUBLAS, "cuBLAS.")
        .value("CUBLAS_LT", TacticSource::kCUBLAS_LT, "cuBLASLt.")
        .value("CUDNN", TacticSource::kCUDNN, "cuDNN.")
        .value("EDGE_MASK_CONVOLUTIONS", TacticSource::kEDGE_MASK_CONVOLUTIONS,
               "Convolutions that treat the image border with precomputed masks.")
        .value("JIT_CONVOLUTIONS", TacticSource::kJIT_CONVOLUTIONS, "Convolutions compiled while the engine is built.");
    orderedEnum<EngineCapability>(m, "EngineCapability", "What kind of system an engine is for.")
        .value("DEFAULT", EngineCapability::kDEFAULT, "No restriction; also STANDARD.")
        .value("SAFE_GPU", EngineCapability::kSAFE_GPU, "Only what the safe runtime can run; also SAFETY.")
        .value("SAFE_DLA", EngineCapability::kSAFE_DLA,
               "A DLA loadable that runs without this runtime; also DLA_STANDALONE.");
    plainEnum<LayerInformationFormat>(m, "LayerInformationFormat", "Form of the inspector's texts.")
        .value("ONELINE", LayerInformationFormat::kONELINE, "One line for each layer.")
        .value("JSON", LayerInformationFormat::kJSON, "JSON.");
    orderedEnum<NetworkDefinitionCreationFlag>(m, "NetworkDefinitionCreationFlag", "Property of a new network.")
        .value("EXPLICIT_BATCH", NetworkDefinitionCreationFlag::kEXPLICIT_BATCH,
               "The batch is an ordinary dimension, wildcards are allowed.")
        .value("EXPLICIT_PRECISION", NetworkDefinitionCreationFlag::kEXPLICIT_PRECISION,
               "Of older releases; no effect.");

    // Two names for one value; the first is the one that is shown.
    addAlias(m.attr("ProfilingVerbosity"), "DEFAULT", "LAYER_NAMES_ONLY");
    addAlias(m.attr("ProfilingVerbosity"), "VERBOSE", "DETAILED");
    addAlias(m.attr("EngineCapability"), "STANDARD", "DEFAULT");
    addAlias(m.attr("EngineCapability"), "SAFETY", "SAFE_GPU");
    addAlias(m.attr("EngineCapability"), "DLA_STANDALONE", "SAFE_DLA");

    m.attr("float32") = DataType::kFLOAT;
    m.attr("float16") = DataType::kHALF;
    m.attr("int8") = DataType::kINT8;
    m.attr("int32") = DataType::kINT32;
    m.attr("bool") = DataType::kBOOL;
    m.attr("uint8") = DataType::kUINT8;
}

} // namespace tw::python
