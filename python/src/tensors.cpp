// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <nanobind/stl/array.h>

#include "layers.h"
#include "module.h"

namespace tw::python {

using namespace nvinfer1;

namespace {

nb::object dynamicRange(ITensor const& self)
{
    if (!self.dynamicRangeIsSet())
        return nb::none();
    return nb::make_tuple(self.getDynamicRangeMin(), self.getDynamicRangeMax());
}

void setDynamicRange(ITensor& self, std::array<float, 2> const& range)
{
    if (!self.setDynamicRange(range[0], range[1]))
        throw std::runtime_error(std::string("tensor '") + self.getName() +
                                 "': the dynamic range is not finite, or its minimum is above its maximum");
}

} // namespace

void bindTensors(nb::module_& m)
{
    nb::class_<ITensor> tensor(m, "ITensor",
                               "A value of a network: an input, or an output of a layer. Owned by the network. Its "
                               "volume is below 2^31 elements.");
    defIdentity(tensor);
    tensor
        .def_prop_rw(
            "name", &ITensor::getName, &ITensor::setName,
            "Name of at most 4096 bytes with the terminator. Inputs and outputs of a network need different names.")
        .def_prop_rw("shape", &ITensor::getDimensions, &ITensor::setDimensions,
                     "Dimensions, -1 for wildcards. Setting them has an effect on network inputs only.")
        .def_prop_rw("dtype", &ITensor::getType, &ITensor::setType,
                     "Element type. Setting it has an effect on network inputs, outputs and shape outputs only.")
        .def_prop_rw("broadcast_across_batch", &ITensor::getBroadcastAcrossBatch, &ITensor::setBroadcastAcrossBatch,
                     "Whether an input of an implicit batch network is the same for every batch element. No effect "
                     "with explicit batch.")
        .def_prop_rw("location", &ITensor::getLocation, &ITensor::setLocation,
                     "Where the elements are at run time. HOST is allowed for the sequence lengths of an RNN only.")
        .def_prop_rw("allowed_formats", &ITensor::getAllowedFormats, &ITensor::setAllowedFormats,
                     "Bit mask of the TensorFormats that a network input or output may have. Default all; LINEAR only "
                     "for shape tensors.")
        .def_prop_ro("is_network_input", &ITensor::isNetworkInput, "Whether the tensor is an input of the network.")
        .def_prop_ro("is_network_output", &ITensor::isNetworkOutput, "Whether the tensor is an output of the network.")
        .def_prop_ro("is_shape_tensor", &ITensor::isShapeTensor,
                     "Whether the values are needed to compute shapes. Known for certain once the network is complete.")
        .def_prop_ro("is_execution_tensor", &ITensor::isExecutionTensor,
                     "Whether the values are needed on the device. A tensor may be both, or neither if it is not used.")
        .def_prop_rw("dynamic_range", &dynamicRange, &setDynamicRange,
                     "Range for INT8 as (min, max), or None. The scale is max(|min|, |max|) / 127.")
        .def("set_dynamic_range", &ITensor::setDynamicRange, nb::arg("min"), nb::arg("max"),
             "Sets the range for INT8. False unless both are finite and min <= max.")
        .def("reset_dynamic_range", &ITensor::resetDynamicRange, "Takes the range away.")
        .def("set_dimension_name", &ITensor::setDimensionName, nb::arg("index"), nb::arg("name"),
             "Names a dimension of a network input; dimensions of one name must be equal at run time. \"\" takes the "
             "name away.")
        .def("get_dimension_name", &ITensor::getDimensionName, nb::arg("index"), "The name of a dimension, or None.");

    nb::class_<ILayer> layer(m, "ILayer",
                             "A layer of a network, owned by the network. Assign the class that its type names to "
                             "__class__ for what that class adds.");
    defIdentity(layer);
    layer.def_prop_rw("name", &ILayer::getName, &ILayer::setName, "Name of at most 4096 bytes with the terminator.")
        .def_prop_ro("type", &ILayer::getType, "Kind of the layer; names the class.")
        .def_prop_ro("num_inputs", &ILayer::getNbInputs, "Number of inputs.")
        .def_prop_ro("num_outputs", &ILayer::getNbOutputs, "Number of outputs.")
        .def_prop_rw("precision", &ILayer::getPrecision, &ILayer::setPrecision,
                     "Wanted type of the computation. BuilderFlag.OBEY_PRECISION_CONSTRAINTS makes it a demand.")
        .def_prop_ro("precision_is_set", &ILayer::precisionIsSet, "Whether a type is wanted.")
        .def("set_input", &setInput<ILayer>, nb::arg("index"), nb::arg("tensor"),
             "Replaces an input, or adds one that is optional.")
        .def("get_input", &ILayer::getInput, nb::arg("index"), nb::rv_policy::reference_internal,
             "An input; None when out of range or optional and not set.")
        .def("get_output", &ILayer::getOutput, nb::arg("index"), nb::rv_policy::reference_internal,
             "An output; None when out of range.")
        .def("reset_precision", &ILayer::resetPrecision, "Takes the wanted type away.")
        .def("set_output_type", &ILayer::setOutputType, nb::arg("index"), nb::arg("dtype"),
             "Wanted type of an output as the kernel writes it.")
        .def("get_output_type", &ILayer::getOutputType, nb::arg("index"),
             "The wanted type; FLOAT while none is set, except for outputs that are INT32 by nature.")
        .def("output_type_is_set", &ILayer::outputTypeIsSet, nb::arg("index"), "Whether a type is wanted of an output.")
        .def("reset_output_type", &ILayer::resetOutputType, nb::arg("index"),
             "Takes the wanted type of an output away.");
}

} // namespace tw::python
