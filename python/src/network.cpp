// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/vector.h>

#include "module.h"
#include "recorder.h"
#include "weights_of_layers.h"

namespace tw::python {

using namespace nvinfer1;

namespace {

using Network = nb::pointer_and_handle<INetworkDefinition>;

// The layer, once the module knows whose it is.
template <class Layer>
Layer* noted(Network const& self, Layer* layer)
{
    noteLayer(layer, self.h);
    return layer;
}

// A method that adds a layer; use names what replaces it, if anything does.
template <class Layer, class... A>
auto adds(Layer* (INetworkDefinition::*add)(A...) noexcept, char const* use = nullptr)
{
    return [add, use](Network self, A... arguments) {
        if (use)
            warnDeprecated(use);
        return noted(self, (self.p->*add)(arguments...));
    };
}

// Convolution and deconvolution, of either age.
template <class Layer, class Shape>
auto addsWindow(Layer* (INetworkDefinition::*add)(ITensor&, int32_t, Shape, nvinfer1::Weights,
                                                  nvinfer1::Weights) noexcept,
                char const* use = nullptr)
{
    return [add, use](Network self, ITensor& input, int32_t maps, Shape window, WeightsArgument kernel,
                      WeightsArgument bias) {
        if (use)
            warnDeprecated(use);
        return noted(self, (self.p->*add)(input, maps, window, keepWith(self.h, kernel), keepWith(self.h, bias)));
    };
}

std::vector<ITensor*> const& checked(std::vector<ITensor*> const& inputs)
{
    for (size_t i = 0; i < inputs.size(); ++i)
        if (!inputs[i])
            throw nb::value_error(("input " + std::to_string(i) + " is None").c_str());
    return inputs;
}

// As an ILayer, whatever other objects stand for it: programs tell layers apart by ILayer.type, which some classes replace.
nb::typed<nb::object, ILayer> asLayer(Network const& self, ILayer* layer)
{
    if (!layer)
        return nb::none();
    return nb::inst_reference(nb::type<ILayer>(), noted(self, layer), self.h);
}

nb::typed<nb::object, ILayer> layerAt(Network self, Py_ssize_t index)
{
    int32_t const count = self.p->getNbLayers();
    Py_ssize_t const at = index < 0 ? index + count : index;
    if (at < 0 || at >= count)
        throw nb::index_error(
            ("layer " + std::to_string(index) + " is out of range: the network has " + std::to_string(count)).c_str());
    return asLayer(self, self.p->getLayer(int32_t(at)));
}

constexpr auto kInside = nb::rv_policy::reference_internal;

void defInfo(nb::class_<INetworkDefinition>& type)
{
    using N = INetworkDefinition;
    type.def_prop_rw("name", &N::getName, &N::setName, "Name that the engine will have.")
        .def_prop_ro("num_layers", &N::getNbLayers, "Number of layers.")
        .def_prop_ro("num_inputs", &N::getNbInputs, "Number of inputs.")
        .def_prop_ro("num_outputs", &N::getNbOutputs, "Number of outputs.")
        .def_prop_ro("has_implicit_batch_dimension", &N::hasImplicitBatchDimension,
                     "Whether tensors have a batch dimension that shapes leave out.")
        .def_prop_ro("has_explicit_precision", &N::hasExplicitPrecision, "Of older releases: always False.")
        .def("mark_output", &N::markOutput, nb::arg("tensor"), "Makes a tensor an output of the network.")
        .def("add_input", &N::addInput, nb::arg("name"), nb::arg("dtype"), nb::arg("shape"), kInside,
             "An input; -1 in the shape is a wildcard. The name must be new.")
        .def("remove_tensor", &N::removeTensor, nb::arg("tensor"), "Takes a tensor out; no layer may use it.")
        .def("unmark_output", &N::unmarkOutput, nb::arg("tensor"), "Takes the mark of an output away.")
        .def("mark_output_for_shapes", &N::markOutputForShapes, nb::arg("tensor"),
             "Makes the values of an INT32 tensor of rank 0 or 1 with constant dimensions an output. False if that "
             "cannot be.")
        .def("unmark_output_for_shapes", &N::unmarkOutputForShapes, nb::arg("tensor"),
             "Takes that mark away; False if there is none.")
        .def(
            "set_weights_name",
            [](Network self, WeightsArgument weights, char const* name) {
                return self.p->setWeightsName(keepWith(self.h, weights), name);
            },
            nb::arg("weights"), nb::arg("name"),
            "Name of weights for the refitter. False for weights that no layer uses, or for a name in use.")
        .def(
            "get_layer", [](Network self, int32_t index) { return asLayer(self, self.p->getLayer(index)); },
            nb::arg("index"), "A layer in order of creation; None when out of range.")
        .def("get_input", &N::getInput, nb::arg("index"), kInside,
             "An input in order of creation; None when out of range.")
        .def("get_output", &N::getOutput, nb::arg("index"), kInside,
             "An output in order of marking; None when out of range.")
        .def("__len__", &N::getNbLayers, "Number of layers.")
        .def("__getitem__", &layerAt, nb::arg(), "A layer in order of creation; negative numbers count from the end.");
}

void defWeighted(nb::class_<INetworkDefinition>& type)
{
    using N = INetworkDefinition;
    type.def("add_convolution", addsWindow(&N::addConvolution, "add_convolution_nd"), nb::arg("input"),
             nb::arg("num_output_maps"), nb::arg("kernel_shape"), nb::arg("kernel"), nb::arg("bias") = nb::none(),
             kInside, "Replaced by add_convolution_nd().")
        .def("add_convolution_nd", addsWindow(&N::addConvolutionNd), nb::arg("input"), nb::arg("num_output_maps"),
             nb::arg("kernel_shape"), nb::arg("kernel"), nb::arg("bias") = nb::none(), kInside,
             "A convolution, 2D or 3D by kernel_shape.")
        .def("add_deconvolution", addsWindow(&N::addDeconvolution, "add_deconvolution_nd"), nb::arg("input"),
             nb::arg("num_output_maps"), nb::arg("kernel_shape"), nb::arg("kernel"), nb::arg("bias") = nb::none(),
             kInside, "Replaced by add_deconvolution_nd().")
        .def("add_deconvolution_nd", addsWindow(&N::addDeconvolutionNd), nb::arg("input"), nb::arg("num_output_maps"),
             nb::arg("kernel_shape"), nb::arg("kernel"), nb::arg("bias") = nb::none(), kInside,
             "A transposed convolution, 2D or 3D by kernel_shape.")
        .def(
            "add_fully_connected",
            [](Network self, ITensor& input, int32_t outputs, WeightsArgument kernel, WeightsArgument bias) {
                warnDeprecated("add_matrix_multiply");
                return noted(
                    self, self.p->addFullyConnected(input, outputs, keepWith(self.h, kernel), keepWith(self.h, bias)));
            },
            nb::arg("input"), nb::arg("num_outputs"), nb::arg("kernel"), nb::arg("bias") = nb::none(), kInside,
            "Replaced by add_matrix_multiply().")
        .def(
            "add_scale",
            [](Network self, ITensor& input, ScaleMode mode, WeightsArgument shift, WeightsArgument scale,
               WeightsArgument power) {
                return noted(self, self.p->addScale(input, mode, keepWith(self.h, shift), keepWith(self.h, scale),
                                                    keepWith(self.h, power)));
            },
            nb::arg("input"), nb::arg("mode"), nb::arg("shift") = nb::none(), nb::arg("scale") = nb::none(),
            nb::arg("power") = nb::none(), kInside,
            "(x * scale + shift)^power for each element; channels are dimension rank - 3.")
        .def(
            "add_scale_nd",
            [](Network self, ITensor& input, ScaleMode mode, WeightsArgument shift, WeightsArgument scale,
               WeightsArgument power, int32_t axis) {
                return noted(self, self.p->addScaleNd(input, mode, keepWith(self.h, shift), keepWith(self.h, scale),
                                                      keepWith(self.h, power), axis));
            },
            nb::arg("input"), nb::arg("mode"), nb::arg("shift") = nb::none(), nb::arg("scale") = nb::none(),
            nb::arg("power") = nb::none(), nb::arg("channel_axis"), kInside,
            "As add_scale(), with a choice of the channel dimension.",
            nb::sig("def add_scale_nd(self, input: ITensor, mode: ScaleMode, shift: Weights | numpy.ndarray | None = "
                    "None, scale: Weights | numpy.ndarray | None = None, power: Weights | numpy.ndarray | None = None, "
                    "channel_axis: int = ...) -> IScaleLayer"))
        .def(
            "add_constant",
            [](Network self, Dims shape, WeightsArgument weights) {
                return noted(self, self.p->addConstant(shape, keepWith(self.h, weights)));
            },
            nb::arg("shape"), nb::arg("weights"), kInside, "A tensor of constants.");
}

void defOneInput(nb::class_<INetworkDefinition>& type)
{
    using N = INetworkDefinition;
    type.def("add_activation", adds(&N::addActivation), nb::arg("input"), nb::arg("type"), kInside,
             "A function of each element.")
        .def("add_pooling", adds(&N::addPooling, "add_pooling_nd"), nb::arg("input"), nb::arg("type"),
             nb::arg("window_size"), kInside, "Replaced by add_pooling_nd().")
        .def("add_pooling_nd", adds(&N::addPoolingNd), nb::arg("input"), nb::arg("type"), nb::arg("window_size"),
             kInside, "Pooling, 2D or 3D by window_size.")
        .def("add_lrn", adds(&N::addLRN), nb::arg("input"), nb::arg("window"), nb::arg("alpha"), nb::arg("beta"),
             nb::arg("k"), kInside, "Local response normalization across channels.")
        .def("add_softmax", adds(&N::addSoftMax), nb::arg("input"), kInside,
             "exp(x) / sum of exp(x) along one dimension.")
        .def("add_unary", adds(&N::addUnary), nb::arg("input"), nb::arg("op"), kInside, "A function of each element.")
        .def("add_padding", adds(&N::addPadding, "add_padding_nd"), nb::arg("input"), nb::arg("pre_padding"),
             nb::arg("post_padding"), kInside, "Replaced by add_padding_nd().")
        .def("add_padding_nd", adds(&N::addPaddingNd), nb::arg("input"), nb::arg("pre_padding"),
             nb::arg("post_padding"), kInside, "Zeros around the two innermost dimensions. Use add_slice() instead.")
        .def("add_shuffle", adds(&N::addShuffle), nb::arg("input"), kInside, "Transposes, reshapes, transposes again.")
        .def("add_slice", adds(&N::addSlice), nb::arg("input"), nb::arg("start"), nb::arg("shape"), nb::arg("stride"),
             kInside, "Elements start + i * stride.")
        .def("add_reduce", adds(&N::addReduce), nb::arg("input"), nb::arg("op"), nb::arg("axes"), nb::arg("keep_dims"),
             kInside, "Combines the elements along the dimensions whose bits are set in axes.")
        .def("add_topk", adds(&N::addTopK), nb::arg("input"), nb::arg("op"), nb::arg("k"), nb::arg("axes"), kInside,
             "The k extreme elements along the dimension whose bit is set in axes.")
        .def("add_identity", adds(&N::addIdentity), nb::arg("input"), kInside, "Copies, and converts between types.")
        .def("add_resize", adds(&N::addResize), nb::arg("input"), kInside, "Resamples to other extents.")
        .def("add_shape", adds(&N::addShape), nb::arg("input"), kInside,
             "The dimensions of a tensor as a 1-D INT32 tensor.")
        .def("add_rnn_v2", adds(&N::addRNNv2, "addLoop"), nb::arg("input"), nb::arg("layer_count"),
             nb::arg("hidden_size"), nb::arg("max_seq_length"), nb::arg("op"), kInside, "Replaced by add_loop().")
        .def("add_non_zero", adds(&N::addNonZero), nb::arg("input"), kInside, "Indices of the elements that are not 0.")
        .def("add_fill", adds(&N::addFill), nb::arg("shape"), nb::arg("op"), kInside,
             "A tensor of generated values. For LINSPACE with a given shape the rank is 1.");
}

void defMoreInputs(nb::class_<INetworkDefinition>& type)
{
    using N = INetworkDefinition;
    type.def(
            "add_concatenation",
            [](Network self, std::vector<ITensor*> const& inputs) {
                return noted(self, self.p->addConcatenation(checked(inputs).data(), int32_t(inputs.size())));
            },
            nb::arg("inputs"), kInside, "Joins tensors along one dimension.")
        .def("add_elementwise", adds(&N::addElementWise), nb::arg("input1"), nb::arg("input2"), nb::arg("op"), kInside,
             "An operation on two tensors of one rank; extents of 1 repeat.")
        .def("add_gather", adds(&N::addGather), nb::arg("input"), nb::arg("indices"), nb::arg("axis"), kInside,
             "Slices of the input along the axis.")
        .def("add_gather_v2", adds(&N::addGatherV2), nb::arg("input"), nb::arg("indices"), nb::arg("mode"), kInside,
             "Elements or slices of the input, by indices.")
        .def("add_scatter", adds(&N::addScatter), nb::arg("data"), nb::arg("indices"), nb::arg("updates"),
             nb::arg("mode"), kInside, "A copy of data with updates written at indices.")
        .def("add_ragged_softmax", adds(&N::addRaggedSoftMax), nb::arg("input"), nb::arg("bounds"), kInside,
             "Softmax over the first elements of each row.")
        .def("add_matrix_multiply", adds(&N::addMatrixMultiply), nb::arg("input0"), nb::arg("op0"), nb::arg("input1"),
             nb::arg("op1"), kInside, "Matrix product; leading dimensions of 1 repeat.")
        .def(
            "add_plugin_v2",
            [](Network self, std::vector<ITensor*> const& inputs, IPluginV2& plugin) {
                return noted(self, self.p->addPluginV2(checked(inputs).data(), int32_t(inputs.size()), plugin));
            },
            nb::arg("inputs"), nb::arg("plugin"), kInside, "A layer whose work a plugin does; the plugin is cloned.")
        .def("add_parametric_relu", adds(&N::addParametricReLU), nb::arg("input"), nb::arg("slopes"), kInside,
             "x >= 0 ? x : slope * x.")
        .def("add_select", adds(&N::addSelect), nb::arg("condition"), nb::arg("then_input"), nb::arg("else_input"),
             kInside, "condition ? then : else for each element.")
        .def("add_assertion", adds(&N::addAssertion), nb::arg("condition"), nb::arg("message"), kInside,
             "Fails the build or the run with the message when the condition is false.")
        .def("add_grid_sample", adds(&N::addGridSample), nb::arg("input"), nb::arg("grid"), kInside,
             "Reads the input at the points of the grid.")
        .def("add_nms", adds(&N::addNMS), nb::arg("boxes"), nb::arg("scores"), nb::arg("max_output_boxes_per_class"),
             kInside, "Non-maximum suppression for each class.")
        .def("add_quantize", adds(&N::addQuantize), nb::arg("input"), nb::arg("scale"), kInside,
             "To INT8; the scale is a scalar or 1-D.")
        .def("add_dequantize", adds(&N::addDequantize), nb::arg("input"), nb::arg("scale"), kInside,
             "From INT8; the scale is a scalar or 1-D.")
        .def(
            "add_einsum",
            [](Network self, std::vector<ITensor*> const& inputs, char const* equation) {
                return noted(self, self.p->addEinsum(checked(inputs).data(), int32_t(inputs.size()), equation));
            },
            nb::arg("inputs"), nb::arg("equation"), kInside, "Sum of products by an equation such as \"bij,bjk->bik\".")
        .def("add_one_hot", adds(&N::addOneHot), nb::arg("indices"), nb::arg("values"), nb::arg("depth"),
             nb::arg("axis"), kInside, "values[1] where an index equals the position along the axis, else values[0].")
        .def("add_loop", &N::addLoop, kInside, "A new loop; None for an implicit batch network.")
        .def("add_if_conditional", &N::addIfConditional, kInside,
             "A new conditional; None for an implicit batch network.");
}

} // namespace

void bindNetwork(nb::module_& m)
{
    nb::class_<INetworkDefinition> type(
        m, "INetworkDefinition",
        "A network under construction. Its len() is the number of layers, and it iterates over them.");
    defInfo(type);
    defWeighted(type);
    defOneInput(type);
    defMoreInputs(type);
    defRecorder(type);
    defDelete(type);
}

} // namespace tw::python
