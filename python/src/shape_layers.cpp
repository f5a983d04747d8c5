// SPDX-License-Identifier: Apache-2.0
#include "layers.h"
#include "module.h"
#include "weights_of_layers.h"

namespace tw::python {

using namespace nvinfer1;

void bindShapeLayers(nb::module_& m)
{
    nb::class_<IConcatenationLayer, ILayer>(m, "IConcatenationLayer",
                                            "Joins tensors along one dimension; all others must be equal.")
        .def_prop_rw("axis", &IConcatenationLayer::getAxis, &IConcatenationLayer::setAxis,
                     "Default max(0, rank - 3), without the batch in implicit batch mode.");
    nb::class_<IScatterLayer, ILayer>(m, "IScatterLayer",
                                      "Copy of data (input 0) with updates (input 2) written at indices (input 1, "
                                      "INT32). Writing one element twice has no defined result.")
        .def_prop_rw("axis", &IScatterLayer::getAxis, &IScatterLayer::setAxis,
                     "Dimension that is indexed, ELEMENT only. Default 0.")
        .def_prop_rw("mode", &IScatterLayer::getMode, &IScatterLayer::setMode, "How indices address data.");
    nb::class_<IGatherLayer, ILayer>(
        m, "IGatherLayer",
        "Picks elements or slices of data (input 0) by indices (input 1, INT32). An index out of bounds gives 0.")
        .def_prop_rw("axis", &IGatherLayer::getGatherAxis, &IGatherLayer::setGatherAxis,
                     "Dimension that is indexed, for DEFAULT and ELEMENT. Default 0.")
        .def_prop_rw(
            "num_elementwise_dims", &IGatherLayer::getNbElementWiseDims, &IGatherLayer::setNbElementWiseDims,
            "Leading dimensions that data and indices share: 0 or 1 for DEFAULT, 0 to r - 1 for ND, 0 for ELEMENT.")
        .def_prop_rw("mode", &IGatherLayer::getMode, &IGatherLayer::setMode, "What indices select.");
    nb::class_<IShuffleLayer, ILayer>(m, "IShuffleLayer", "Transposes, reshapes, transposes again.")
        .def_prop_rw("first_transpose", &IShuffleLayer::getFirstTranspose, &IShuffleLayer::setFirstTranspose,
                     "Order before the reshape. Default identity.")
        .def_prop_rw("reshape_dims", &IShuffleLayer::getReshapeDimensions, &IShuffleLayer::setReshapeDimensions,
                     "New dimensions; one may be -1 and is computed. Takes away input 1. The getter gives no "
                     "dimensions while they are unset or come from input 1.")
        .def_prop_rw("second_transpose", &IShuffleLayer::getSecondTranspose, &IShuffleLayer::setSecondTranspose,
                     "Order after the reshape. Default identity.")
        .def_prop_rw("zero_is_placeholder", &IShuffleLayer::getZeroIsPlaceholder, &IShuffleLayer::setZeroIsPlaceholder,
                     "Whether 0 in the new dimensions means the input's dimension. Default true.")
        .def("set_input", &setInput<IShuffleLayer>, nb::arg("index"), nb::arg("tensor"),
             "Replaces an input, or adds one that is optional.");
    nb::class_<ISliceLayer, ILayer>(m, "ISliceLayer",
                                    "Output element j is input element start + j * stride, for j below size.")
        .def_prop_rw("start", &ISliceLayer::getStart, &ISliceLayer::setStart,
                     "Takes away input 1; the getter gives no dimensions while that input is set.")
        .def_prop_rw(
            "shape", &ISliceLayer::getSize, &ISliceLayer::setSize,
            "Dimensions of the output. Takes away input 2; the getter gives no dimensions while that input is set.")
        .def_prop_rw(
            "stride", &ISliceLayer::getStride, &ISliceLayer::setStride,
            "May be negative or 0. Takes away input 3; the getter gives no dimensions while that input is set.")
        .def_prop_rw("mode", &ISliceLayer::getMode, &ISliceLayer::setMode, "Default STRICT_BOUNDS.")
        .def("set_input", &setInput<ISliceLayer>, nb::arg("index"), nb::arg("tensor"),
             "Replaces an input, or adds one that is optional.");
    nb::class_<IShapeLayer, ILayer>(m, "IShapeLayer",
                                    "The dimensions of a tensor as a 1-D INT32 tensor. Explicit batch only.");
    nb::class_<IIdentityLayer, ILayer>(
        m, "IIdentityLayer",
        "Copies, and converts between types when the output type is set or the output is a network output.");
    nb::class_<IConstantLayer, ILayer>(m, "IConstantLayer", "A tensor of constants.")
        .def_prop_rw("weights", weightsGetter(&IConstantLayer::getWeights), weightsSetter(&IConstantLayer::setWeights),
                     "Values, as many as the dimensions say.")
        .def_prop_rw("shape", &IConstantLayer::getDimensions, &IConstantLayer::setDimensions,
                     "Dimensions of the output.");
    nb::class_<IFillLayer, ILayer>(m, "IFillLayer", "A tensor of generated values. Explicit batch only.")
        .def_prop_rw("shape", &IFillLayer::getDimensions, &IFillLayer::setDimensions,
                     "Dimensions of the output. Takes away input 0.")
        .def_prop_rw("operation", &IFillLayer::getOperation, &IFillLayer::setOperation, "What is written.")
        .def_prop_rw("alpha", &IFillLayer::getAlpha, &IFillLayer::setAlpha,
                     "Default 0. The getter gives -1 while input 1 is set.")
        .def_prop_rw("beta", &IFillLayer::getBeta, &IFillLayer::setBeta,
                     "Default 1. The getter gives -1 while input 2 is set.")
        .def("set_input", &setInput<IFillLayer>, nb::arg("index"), nb::arg("tensor"),
             "Replaces an input, or adds one that is optional.");
    nb::class_<IOneHotLayer, ILayer>(m, "IOneHotLayer",
                                     "values[1] where an index equals the position along the axis, else values[0]. "
                                     "Inputs: indices, values [off, on], depth (0-D INT32 shape tensor).")
        .def_prop_rw("axis", &IOneHotLayer::getAxis, &IOneHotLayer::setAxis,
                     "Where the new dimension goes, -rank - 1 to rank; -1 is last.");
    nb::class_<INonZeroLayer, ILayer>(
        m, "INonZeroLayer",
        "Indices of the elements that are not 0, as columns of an INT32 tensor [rank, n] in lexical order.");
    nb::class_<IPluginV2Layer, ILayer>(m, "IPluginV2Layer", "A layer whose work a plugin does.")
        .def_prop_ro("plugin", &IPluginV2Layer::getPlugin, "The network's own clone of the plugin.");
}

} // namespace tw::python
