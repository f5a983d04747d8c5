// SPDX-License-Identifier: Apache-2.0
#include "layers.h"
#include "module.h"
#include "weights_of_layers.h"

namespace tw::python {

using namespace nvinfer1;

void bindArithmeticLayers(nb::module_& m)
{
    nb::class_<IFullyConnectedLayer, ILayer>(
        m, "IFullyConnectedLayer",
        "Output [..., K, 1, 1] = kernel [K, V] times input, where V is the product of the last three dimensions. "
        "Deprecated: use IMatrixMultiplyLayer.")
        .def_prop_rw("num_output_channels", &IFullyConnectedLayer::getNbOutputChannels,
                     &IFullyConnectedLayer::setNbOutputChannels, "K, the channels of the output.")
        .def_prop_rw("kernel", weightsGetter(&IFullyConnectedLayer::getKernelWeights),
                     weightsSetter(&IFullyConnectedLayer::setKernelWeights), "K * V values, row-major.")
        .def_prop_rw("bias", weightsGetter(&IFullyConnectedLayer::getBiasWeights),
                     weightsSetter(&IFullyConnectedLayer::setBiasWeights), "K values, or empty.");
    nb::class_<IActivationLayer, ILayer>(m, "IActivationLayer",
                                         "Applies a function to each element. Output has the input's shape.")
        .def_prop_rw("type", &IActivationLayer::getActivationType, &IActivationLayer::setActivationType,
                     "The function.")
        .def_prop_rw("alpha", &IActivationLayer::getAlpha, &IActivationLayer::setAlpha,
                     "First parameter of those functions that have one; finite. Not set: 0, for SOFTPLUS 1.")
        .def_prop_rw("beta", &IActivationLayer::getBeta, &IActivationLayer::setBeta,
                     "Second parameter of those functions that have two; finite. Not set: 0, for SOFTPLUS 1.");
    nb::class_<IScaleLayer, ILayer>(
        m, "IScaleLayer", "(x * scale + shift)^power for each element. Empty weights mean scale 1, shift 0, power 1.")
        .def_prop_rw("mode", &IScaleLayer::getMode, &IScaleLayer::setMode, "What shares one coefficient.")
        .def_prop_rw("shift", weightsGetter(&IScaleLayer::getShift), weightsSetter(&IScaleLayer::setShift),
                     "What is added; empty for 0.")
        .def_prop_rw("scale", weightsGetter(&IScaleLayer::getScale), weightsSetter(&IScaleLayer::setScale),
                     "What is multiplied; empty for 1.")
        .def_prop_rw("power", weightsGetter(&IScaleLayer::getPower), weightsSetter(&IScaleLayer::setPower),
                     "The exponent; empty for 1.")
        .def_prop_rw("channel_axis", &IScaleLayer::getChannelAxis, &IScaleLayer::setChannelAxis,
                     "Dimension of the channels for ScaleMode.CHANNEL and ELEMENTWISE.");
    nb::class_<IQuantizeLayer, ILayer>(m, "IQuantizeLayer",
                                       "clamp(round(x / scale) + zero point, -128, 127), halves to even. Input 1 is "
                                       "the scale, optional input 2 the zero point, which must be 0.")
        .def_prop_rw("axis", &IQuantizeLayer::getAxis, &IQuantizeLayer::setAxis,
                     "Dimension that the elements of the scale belong to; -1, the default, for one scale for all.");
    nb::class_<IDequantizeLayer, ILayer>(m, "IDequantizeLayer",
                                         "(x - zero point) * scale. Inputs as for IQuantizeLayer.")
        .def_prop_rw("axis", &IDequantizeLayer::getAxis, &IDequantizeLayer::setAxis,
                     "Dimension that the elements of the scale belong to; -1, the default, for one scale for all.");
    nb::class_<ISoftMaxLayer, ILayer>(m, "ISoftMaxLayer",
                                      "exp(x) / sum of exp(x) along one dimension. Output has the input's shape.")
        .def_prop_rw("axes", &ISoftMaxLayer::getAxes, &ISoftMaxLayer::setAxes,
                     "Mask with one bit: the dimension. Default bit max(0, rank - 3), without the batch in implicit "
                     "batch mode.");
    nb::class_<IElementWiseLayer, ILayer>(
        m, "IElementWiseLayer",
        "Combines two tensors of one rank; each dimension is equal in both or 1, which repeats.")
        .def_prop_rw("op", &IElementWiseLayer::getOperation, &IElementWiseLayer::setOperation, "The operation.");
    nb::class_<IUnaryLayer, ILayer>(m, "IUnaryLayer",
                                    "Applies a function to each element. Output has the input's shape.")
        .def_prop_rw("op", &IUnaryLayer::getOperation, &IUnaryLayer::setOperation, "The function.");
    nb::class_<IReduceLayer, ILayer>(m, "IReduceLayer", "Combines the elements along some dimensions.")
        .def_prop_rw("op", &IReduceLayer::getOperation, &IReduceLayer::setOperation, "How elements are combined.")
        .def_prop_rw("axes", &IReduceLayer::getReduceAxes, &IReduceLayer::setReduceAxes,
                     "Bit i is dimension i, without the batch in implicit batch mode.")
        .def_prop_rw("keep_dims", &IReduceLayer::getKeepDimensions, &IReduceLayer::setKeepDimensions,
                     "Whether reduced dimensions stay as 1.");
    nb::class_<ITopKLayer, ILayer>(
        m, "ITopKLayer",
        "The k extreme elements along one dimension. Output 0 are the values, output 1 their indices (INT32).")
        .def_prop_rw("op", &ITopKLayer::getOperation, &ITopKLayer::setOperation, "Which elements are kept.")
        .def_prop_rw("k", &ITopKLayer::getK, &ITopKLayer::setK, "At most 3840.")
        .def_prop_rw("axes", &ITopKLayer::getReduceAxes, &ITopKLayer::setReduceAxes,
                     "Mask with one bit: one of the last four dimensions.");
    nb::class_<IMatrixMultiplyLayer, ILayer>(
        m, "IMatrixMultiplyLayer", "Matrix product of two tensors. Leading dimensions are equal or 1, which repeats.")
        .def_prop_rw(
            "op0", [](IMatrixMultiplyLayer const& self) { return self.getOperation(0); },
            [](IMatrixMultiplyLayer& self, MatrixOperation op) { self.setOperation(0, op); }, "How input 0 is read.")
        .def_prop_rw(
            "op1", [](IMatrixMultiplyLayer const& self) { return self.getOperation(1); },
            [](IMatrixMultiplyLayer& self, MatrixOperation op) { self.setOperation(1, op); }, "How input 1 is read.");
    nb::class_<IRaggedSoftMaxLayer, ILayer>(
        m, "IRaggedSoftMaxLayer",
        "Softmax over the first bounds[z] elements of each row; the rest becomes 0. Data [Z, S], bounds [Z, 1].");
    nb::class_<IParametricReLULayer, ILayer>(m, "IParametricReLULayer",
                                             "x >= 0 ? x : slope * x. Input 1 is the slope, broadcast to the data.");
    nb::class_<ISelectLayer, ILayer>(
        m, "ISelectLayer",
        "condition ? then : else for each element. Same rank; each dimension equal or 1, which repeats.");
    nb::class_<IEinsumLayer, ILayer>(m, "IEinsumLayer",
                                     "Sum of products by an equation with one letter for each dimension, such as "
                                     "\"bij,bjk->bik\". At most two inputs.")
        .def_prop_rw("equation", &IEinsumLayer::getEquation, &IEinsumLayer::setEquation,
                     "Lower-case letters, commas, optional \"->\"; no ellipsis, no letter twice in one input. False "
                     "when it cannot be read.");
    nb::class_<IRNNv2Layer, ILayer>(
        m, "IRNNv2Layer",
        "Recurrent network of several levels, implicit batch only. Deprecated: use ILoop. L levels, H hidden size, S "
        "longest sequence, E data length. Input [N..., S, E]; outputs [N..., S, H], last hidden state [N..., L, H], "
        "for LSTM also last cell state. Both directions double H of output 0 and L.")
        .def_prop_ro("num_layers", &IRNNv2Layer::getLayerCount, "L.")
        .def_prop_ro("hidden_size", &IRNNv2Layer::getHiddenSize, "H.")
        .def_prop_ro("max_seq_length", &IRNNv2Layer::getMaxSeqLength, "S.")
        .def_prop_ro("data_length", &IRNNv2Layer::getDataLength, "E.")
        .def_prop_rw("seq_lengths", &IRNNv2Layer::getSequenceLengths, &IRNNv2Layer::setSequenceLengths,
                     "Length of each sequence, INT32 of shape [N...], 1 to S. All are S while it is not set.")
        .def_prop_rw("op", &IRNNv2Layer::getOperation, &IRNNv2Layer::setOperation, "The cell.")
        .def_prop_rw("input_mode", &IRNNv2Layer::getInputMode, &IRNNv2Layer::setInputMode, "Default LINEAR.")
        .def_prop_rw("direction", &IRNNv2Layer::getDirection, &IRNNv2Layer::setDirection, "Default UNIDIRECTION.")
        .def_prop_rw("hidden_state", &IRNNv2Layer::getHiddenState, &IRNNv2Layer::setHiddenState,
                     "State before the first step, [N..., L, H]; 0 while it is not set.")
        .def_prop_rw("cell_state", &IRNNv2Layer::getCellState, &IRNNv2Layer::setCellState,
                     "Cell state before the first step, [N..., L, H], LSTM only; 0 while it is not set.")
        .def(
            "set_weights_for_gate",
            [](IRNNv2Layer& self, int32_t layer, RNNGateType gate, bool isW, WeightsArgument weights) {
                self.setWeightsForGate(layer, gate, isW, keepWithNetworkOf(self, weights));
            },
            nb::arg("layer_index"), nb::arg("gate"), nb::arg("is_w"), nb::arg("weights"),
            "Matrix of a gate: of the input if is_w, else of the recurrence. With both directions, level 2 i is "
            "forward and 2 i + 1 backward.")
        .def(
            "get_weights_for_gate",
            [](nb::pointer_and_handle<IRNNv2Layer> self, int32_t layer, RNNGateType gate, bool isW) {
                return arrayOfWeights(self.p->getWeightsForGate(layer, gate, isW), self.h);
            },
            nb::arg("layer_index"), nb::arg("gate"), nb::arg("is_w"), "The matrix that was set.")
        .def(
            "set_bias_for_gate",
            [](IRNNv2Layer& self, int32_t layer, RNNGateType gate, bool isW, WeightsArgument bias) {
                self.setBiasForGate(layer, gate, isW, keepWithNetworkOf(self, bias));
            },
            nb::arg("layer_index"), nb::arg("gate"), nb::arg("is_w"), nb::arg("bias"),
            "Values for a gate, of the input if is_w, else of the recurrence.")
        .def(
            "get_bias_for_gate",
            [](nb::pointer_and_handle<IRNNv2Layer> self, int32_t layer, RNNGateType gate, bool isW) {
                return arrayOfWeights(self.p->getBiasForGate(layer, gate, isW), self.h);
            },
            nb::arg("layer_index"), nb::arg("gate"), nb::arg("is_w"), "The values that were set.");
}

} // namespace tw::python
