// SPDX-License-Identifier: Apache-2.0
#include "enums.h"
#include "module.h"

namespace tw::python {

using namespace nvinfer1;

void bindNetworkEnums(nb::module_& m)
{
    plainEnum<CalibrationAlgoType>(m, "CalibrationAlgoType", "How a calibrator's data become ranges for INT8.")
        .value("LEGACY_CALIBRATION", CalibrationAlgoType::kLEGACY_CALIBRATION, "By quantile and regression cutoff.")
        .value("ENTROPY_CALIBRATION", CalibrationAlgoType::kENTROPY_CALIBRATION,
               "By information content, for each layer.")
        .value("ENTROPY_CALIBRATION_2", CalibrationAlgoType::kENTROPY_CALIBRATION_2,
               "By information content, for each tensor.")
        .value("MINMAX_CALIBRATION", CalibrationAlgoType::kMINMAX_CALIBRATION, "By the largest absolute value.");
    plainEnum<LayerType>(m, "LayerType", "Kind of a layer; names the class to which an ILayer can be cast.")
        .value("CONVOLUTION", LayerType::kCONVOLUTION, "IConvolutionLayer.")
        .value("FULLY_CONNECTED", LayerType::kFULLY_CONNECTED, "IFullyConnectedLayer.")
        .value("GRID_SAMPLE", LayerType::kGRID_SAMPLE, "IGridSampleLayer.")
        .value("NMS", LayerType::kNMS, "INMSLayer.")
        .value("ACTIVATION", LayerType::kACTIVATION, "IActivationLayer.")
        .value("POOLING", LayerType::kPOOLING, "IPoolingLayer.")
        .value("LRN", LayerType::kLRN, "ILRNLayer.")
        .value("SCALE", LayerType::kSCALE, "IScaleLayer.")
        .value("SOFTMAX", LayerType::kSOFTMAX, "ISoftMaxLayer.")
        .value("DECONVOLUTION", LayerType::kDECONVOLUTION, "IDeconvolutionLayer.")
        .value("CONCATENATION", LayerType::kCONCATENATION, "IConcatenationLayer.")
        .value("ELEMENTWISE", LayerType::kELEMENTWISE, "IElementWiseLayer.")
        .value("PLUGIN", LayerType::kPLUGIN, "No class; plugins of older releases.")
        .value("UNARY", LayerType::kUNARY, "IUnaryLayer.")
        .value("PADDING", LayerType::kPADDING, "IPaddingLayer.")
        .value("SHUFFLE", LayerType::kSHUFFLE, "IShuffleLayer.")
        .value("REDUCE", LayerType::kREDUCE, "IReduceLayer.")
        .value("TOPK", LayerType::kTOPK, "ITopKLayer.")
        .value("GATHER", LayerType::kGATHER, "IGatherLayer.")
        .value("MATRIX_MULTIPLY", LayerType::kMATRIX_MULTIPLY, "IMatrixMultiplyLayer.")
        .value("RAGGED_SOFTMAX", LayerType::kRAGGED_SOFTMAX, "IRaggedSoftMaxLayer.")
        .value("CONSTANT", LayerType::kCONSTANT, "IConstantLayer.")
        .value("RNN_V2", LayerType::kRNN_V2, "IRNNv2Layer.")
        .value("IDENTITY", LayerType::kIDENTITY, "IIdentityLayer.")
        .value("PLUGIN_V2", LayerType::kPLUGIN_V2, "IPluginV2Layer.")
        .value("SLICE", LayerType::kSLICE, "ISliceLayer.")
        .value("SHAPE", LayerType::kSHAPE, "IShapeLayer.")
        .value("PARAMETRIC_RELU", LayerType::kPARAMETRIC_RELU, "IParametricReLULayer.")
        .value("RESIZE", LayerType::kRESIZE, "IResizeLayer.")
        .value("TRIP_LIMIT", LayerType::kTRIP_LIMIT, "ITripLimitLayer.")
        .value("RECURRENCE", LayerType::kRECURRENCE, "IRecurrenceLayer.")
        .value("ITERATOR", LayerType::kITERATOR, "IIteratorLayer.")
        .value("LOOP_OUTPUT", LayerType::kLOOP_OUTPUT, "ILoopOutputLayer.")
        .value("SELECT", LayerType::kSELECT, "ISelectLayer.")
        .value("ASSERTION", LayerType::kASSERTION, "IAssertionLayer.")
        .value("FILL", LayerType::kFILL, "IFillLayer.")
        .value("QUANTIZE", LayerType::kQUANTIZE, "IQuantizeLayer.")
        .value("DEQUANTIZE", LayerType::kDEQUANTIZE, "IDequantizeLayer.")
        .value("CONDITION", LayerType::kCONDITION, "IConditionLayer.")
        .value("CONDITIONAL_INPUT", LayerType::kCONDITIONAL_INPUT, "IIfConditionalInputLayer.")
        .value("CONDITIONAL_OUTPUT", LayerType::kCONDITIONAL_OUTPUT, "IIfConditionalOutputLayer.")
        .value("SCATTER", LayerType::kSCATTER, "IScatterLayer.")
        .value("EINSUM", LayerType::kEINSUM, "IEinsumLayer.")
        .value("ONE_HOT", LayerType::kONE_HOT, "IOneHotLayer.")
        .value("NON_ZERO", LayerType::kNON_ZERO, "INonZeroLayer.");
    plainEnum<PaddingMode>(
        m, "PaddingMode",
        "How padding and output extent of a window follow from the input extent I, the window extent DK (with "
        "dilation), the stride S and the paddings before and after B and A. Given for convolution and pooling.")
        .value("EXPLICIT_ROUND_DOWN", PaddingMode::kEXPLICIT_ROUND_DOWN, "O = floor((I + B + A - DK) / S) + 1.")
        .value("EXPLICIT_ROUND_UP", PaddingMode::kEXPLICIT_ROUND_UP, "O = ceil((I + B + A - DK) / S) + 1.")
        .value("SAME_UPPER", PaddingMode::kSAME_UPPER, "O = ceil(I / S); an odd padding element goes after.")
        .value("SAME_LOWER", PaddingMode::kSAME_LOWER, "O = ceil(I / S); an odd padding element goes before.")
        .value("CAFFE_ROUND_DOWN", PaddingMode::kCAFFE_ROUND_DOWN,
               "O = floor((I + 2 B - DK) / S) + 1, as Caffe does it.")
        .value("CAFFE_ROUND_UP", PaddingMode::kCAFFE_ROUND_UP, "O = ceil((I + 2 B - DK) / S) + 1, as Caffe does it.");
    plainEnum<ActivationType>(m, "ActivationType", "Function of an activation layer; a is alpha, b is beta.")
        .value("RELU", ActivationType::kRELU, "max(0, x).")
        .value("SIGMOID", ActivationType::kSIGMOID, "1 / (1 + exp(-x)).")
        .value("TANH", ActivationType::kTANH, "tanh(x).")
        .value("LEAKY_RELU", ActivationType::kLEAKY_RELU, "x >= 0 ? x : a x.")
        .value("ELU", ActivationType::kELU, "x >= 0 ? x : a (exp(x) - 1).")
        .value("SELU", ActivationType::kSELU, "x > 0 ? b x : b (a exp(x) - a).")
        .value("SOFTSIGN", ActivationType::kSOFTSIGN, "x / (1 + |x|).")
        .value("SOFTPLUS", ActivationType::kSOFTPLUS, "a log(exp(b x) + 1).")
        .value("CLIP", ActivationType::kCLIP, "max(a, min(b, x)).")
        .value("HARD_SIGMOID", ActivationType::kHARD_SIGMOID, "max(0, min(1, a x + b)).")
        .value("SCALED_TANH", ActivationType::kSCALED_TANH, "a tanh(b x).")
        .value("THRESHOLDED_RELU", ActivationType::kTHRESHOLDED_RELU, "x > a ? x : 0.");
    plainEnum<PoolingType>(m, "PoolingType", "What a pooling layer does in its window.")
        .value("MAX", PoolingType::kMAX, "Largest element.")
        .value("AVERAGE", PoolingType::kAVERAGE, "Mean.")
        .value("MAX_AVERAGE_BLEND", PoolingType::kMAX_AVERAGE_BLEND, "(1 - blend) maximum + blend mean.");
    plainEnum<ScaleMode>(m, "ScaleMode", "What shares one coefficient of a scale layer.")
        .value("UNIFORM", ScaleMode::kUNIFORM, "The whole tensor.")
        .value("CHANNEL", ScaleMode::kCHANNEL, "Each channel.")
        .value("ELEMENTWISE", ScaleMode::kELEMENTWISE,
               "Nothing: one coefficient for each element from the channel axis on.");
    plainEnum<ElementWiseOperation>(m, "ElementWiseOperation", "Operation on two elements a and b.")
        .value("SUM", ElementWiseOperation::kSUM, "a + b.")
        .value("PROD", ElementWiseOperation::kPROD, "a * b.")
        .value("MAX", ElementWiseOperation::kMAX, "Larger of both.")
        .value("MIN", ElementWiseOperation::kMIN, "Smaller of both.")
        .value("SUB", ElementWiseOperation::kSUB, "a - b.")
        .value("DIV", ElementWiseOperation::kDIV, "a / b.")
        .value("POW", ElementWiseOperation::kPOW, "a to the power of b; not for INT32.")
        .value("FLOOR_DIV", ElementWiseOperation::kFLOOR_DIV, "a / b, rounded down.")
        .value("AND", ElementWiseOperation::kAND, "a and b; BOOL.")
        .value("OR", ElementWiseOperation::kOR, "a or b; BOOL.")
        .value("XOR", ElementWiseOperation::kXOR, "a differs from b; BOOL.")
        .value("EQUAL", ElementWiseOperation::kEQUAL, "a == b; gives BOOL.")
        .value("GREATER", ElementWiseOperation::kGREATER, "a > b; gives BOOL.")
        .value("LESS", ElementWiseOperation::kLESS, "a < b; gives BOOL.");
    plainEnum<ScatterMode>(m, "ScatterMode", "How indices of a scatter layer address data.")
        .value("ELEMENT", ScatterMode::kELEMENT, "One element for each index along the axis, as ONNX ScatterElements.")
        .value("ND", ScatterMode::kND, "Slices by index vectors, as ONNX ScatterND.");
    plainEnum<GatherMode>(m, "GatherMode",
                          "What indices of a gather layer select. r is the rank of data, q that of indices.")
        .value("DEFAULT", GatherMode::kDEFAULT,
               "Slices of data along the axis, as ONNX Gather. Rank q + r - 1 - nbElementWiseDims.")
        .value("ELEMENT", GatherMode::kELEMENT, "One element for each index, as ONNX GatherElements. q = r.")
        .value("ND", GatherMode::kND, "Slices by index vectors, as ONNX GatherND.");
    plainEnum<RNNOperation>(m, "RNNOperation", "Cell of a recurrent layer.")
        .value("RELU", RNNOperation::kRELU, "One gate with max(0, x).")
        .value("TANH", RNNOperation::kTANH, "One gate with tanh(x).")
        .value("LSTM", RNNOperation::kLSTM, "Gates input, forget, output, cell; no peepholes.")
        .value("GRU", RNNOperation::kGRU,
               "Gates update, reset, hidden; the reset gate acts after the recurrent product and its bias.");
    plainEnum<RNNDirection>(m, "RNNDirection", "Order in which a recurrent layer reads the sequence.")
        .value("UNIDIRECTION", RNNDirection::kUNIDIRECTION, "First to last.")
        .value("BIDIRECTION", RNNDirection::kBIDIRECTION, "Both ways, the results joined.");
    plainEnum<RNNInputMode>(m, "RNNInputMode", "Input of a recurrent layer's first level.")
        .value("LINEAR", RNNInputMode::kLINEAR, "Goes through an input matrix.")
        .value("SKIP", RNNInputMode::kSKIP, "Is used as it is; the data length equals the hidden size.");
    plainEnum<RNNGateType>(m, "RNNGateType", "Gate of a recurrent cell.")
        .value("INPUT", RNNGateType::kINPUT, "Input gate.")
        .value("OUTPUT", RNNGateType::kOUTPUT, "Output gate.")
        .value("FORGET", RNNGateType::kFORGET, "Forget gate.")
        .value("UPDATE", RNNGateType::kUPDATE, "Update gate.")
        .value("RESET", RNNGateType::kRESET, "Reset gate.")
        .value("CELL", RNNGateType::kCELL, "Cell gate.")
        .value("HIDDEN", RNNGateType::kHIDDEN, "Hidden gate.");
    plainEnum<UnaryOperation>(m, "UnaryOperation", "Function of one element.")
        .value("EXP", UnaryOperation::kEXP, "e to the x.")
        .value("LOG", UnaryOperation::kLOG, "Natural logarithm.")
        .value("SQRT", UnaryOperation::kSQRT, "Square root.")
        .value("RECIP", UnaryOperation::kRECIP, "1 / x.")
        .value("ABS", UnaryOperation::kABS, "|x|.")
        .value("NEG", UnaryOperation::kNEG, "-x.")
        .value("SIN", UnaryOperation::kSIN, "Sine.")
        .value("COS", UnaryOperation::kCOS, "Cosine.")
        .value("TAN", UnaryOperation::kTAN, "Tangent.")
        .value("SINH", UnaryOperation::kSINH, "Hyperbolic sine.")
        .value("COSH", UnaryOperation::kCOSH, "Hyperbolic cosine.")
        .value("ASIN", UnaryOperation::kASIN, "Inverse sine.")
        .value("ACOS", UnaryOperation::kACOS, "Inverse cosine.")
        .value("ATAN", UnaryOperation::kATAN, "Inverse tangent.")
        .value("ASINH", UnaryOperation::kASINH, "Inverse hyperbolic sine.")
        .value("ACOSH", UnaryOperation::kACOSH, "Inverse hyperbolic cosine.")
        .value("ATANH", UnaryOperation::kATANH, "Inverse hyperbolic tangent.")
        .value("CEIL", UnaryOperation::kCEIL, "Rounds up.")
        .value("FLOOR", UnaryOperation::kFLOOR, "Rounds down.")
        .value("ERF", UnaryOperation::kERF, "Gauss error function.")
        .value("NOT", UnaryOperation::kNOT, "Not x; BOOL.")
        .value("SIGN", UnaryOperation::kSIGN, "1, -1 or 0; also for INT32.")
        .value("ROUND", UnaryOperation::kROUND, "To the nearest integer, halves to even.");
    plainEnum<ReduceOperation>(m, "ReduceOperation", "How a reduce layer combines elements.")
        .value("SUM", ReduceOperation::kSUM, "Sum; 0 of nothing.")
        .value("PROD", ReduceOperation::kPROD, "Product; 1 of nothing.")
        .value("MAX", ReduceOperation::kMAX, "Maximum; the lowest value of the type of nothing.")
        .value("MIN", ReduceOperation::kMIN, "Minimum; the highest value of the type of nothing.")
        .value("AVG", ReduceOperation::kAVG, "Mean; NaN of nothing.");
    plainEnum<InterpolationMode>(m, "InterpolationMode", "How values between elements are found.")
        .value("NEAREST", InterpolationMode::kNEAREST, "The nearest element.")
        .value("LINEAR", InterpolationMode::kLINEAR, "Linear in 1 to 3 dimensions.")
        .value("CUBIC", InterpolationMode::kCUBIC, "Cubic in 2 dimensions.");
    plainEnum<SampleMode>(m, "SampleMode", "What is read outside a tensor.")
        .value("STRICT_BOUNDS", SampleMode::kSTRICT_BOUNDS, "Nothing: an error.")
        .value("WRAP", SampleMode::kWRAP, "The tensor repeats.")
        .value("CLAMP", SampleMode::kCLAMP, "The nearest element.")
        .value("FILL", SampleMode::kFILL, "0, or the fill value.")
        .value("REFLECT", SampleMode::kREFLECT, "The tensor mirrored at the centre of its border elements.");
    plainEnum<TopKOperation>(m, "TopKOperation", "Which elements a top-k layer keeps.")
        .value("MAX", TopKOperation::kMAX, "The largest, largest first.")
        .value("MIN", TopKOperation::kMIN, "The smallest, smallest first.");
    plainEnum<MatrixOperation>(m, "MatrixOperation", "How an input of a matrix product is read.")
        .value("NONE", MatrixOperation::kNONE, "The last two dimensions are a matrix.")
        .value("TRANSPOSE", MatrixOperation::kTRANSPOSE, "The last two dimensions are a matrix that is transposed.")
        .value("VECTOR", MatrixOperation::kVECTOR,
               "The last dimension is a vector: a row for input 0, a column for input 1.");
    plainEnum<ResizeCoordinateTransformation>(m, "ResizeCoordinateTransformation",
                                              "From an output coordinate x to the input. Lin and Lout are the extents.")
        .value("ALIGN_CORNERS", ResizeCoordinateTransformation::kALIGN_CORNERS, "x (Lin - 1) / (Lout - 1).")
        .value("ASYMMETRIC", ResizeCoordinateTransformation::kASYMMETRIC, "x Lin / Lout.")
        .value("HALF_PIXEL", ResizeCoordinateTransformation::kHALF_PIXEL, "(x + 0.5) Lin / Lout - 0.5.");
    plainEnum<ResizeSelector>(m, "ResizeSelector", "Coordinate for an output extent of 1.")
        .value("FORMULA", ResizeSelector::kFORMULA, "By the transformation.")
        .value("UPPER", ResizeSelector::kUPPER, "The first element.");
    plainEnum<ResizeRoundMode>(m, "ResizeRoundMode", "Rounding of coordinates for NEAREST.")
        .value("HALF_UP", ResizeRoundMode::kHALF_UP, "Nearest, halves up.")
        .value("HALF_DOWN", ResizeRoundMode::kHALF_DOWN, "Nearest, halves down.")
        .value("FLOOR", ResizeRoundMode::kFLOOR, "Down.")
        .value("CEIL", ResizeRoundMode::kCEIL, "Up.");
    plainEnum<LoopOutput>(m, "LoopOutput", "What a loop output collects.")
        .value("LAST_VALUE", LoopOutput::kLAST_VALUE, "The value after the last iteration.")
        .value("CONCATENATE", LoopOutput::kCONCATENATE, "All values, joined in order along the axis.")
        .value("REVERSE", LoopOutput::kREVERSE, "All values, joined from last to first along the axis.");
    plainEnum<TripLimit>(m, "TripLimit", "What ends a loop.")
        .value("COUNT", TripLimit::kCOUNT, "A number of iterations, known before the loop (INT32 scalar).")
        .value("WHILE", TripLimit::kWHILE, "A condition computed in the loop (BOOL scalar), false ends it.");
    plainEnum<BoundingBoxFormat>(m, "BoundingBoxFormat", "Meaning of a box's four numbers.")
        .value("CORNER_PAIRS", BoundingBoxFormat::kCORNER_PAIRS, "Two diagonal corners, in any order: x1, y1, x2, y2.")
        .value("CENTER_SIZES", BoundingBoxFormat::kCENTER_SIZES, "Centre x, centre y, width, height.");
    plainEnum<FillOperation>(m, "FillOperation", "What a fill layer writes. a is alpha, b is beta.")
        .value("LINSPACE", FillOperation::kLINSPACE, "a + index * b.")
        .value("RANDOM_UNIFORM", FillOperation::kRANDOM_UNIFORM, "Uniform between a and b.")
        .value("RANDOM_NORMAL", FillOperation::kRANDOM_NORMAL, "Normal with mean a and standard deviation b.");

    // Names of older releases.
    addAlias(m.attr("SampleMode"), "DEFAULT", "STRICT_BOUNDS");
    m.attr("ResizeMode") = m.attr("InterpolationMode");
    m.attr("SliceMode") = m.attr("SampleMode");
}

} // namespace tw::python
