// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/vector.h>

#include "module.h"
#include "recorder.h"

namespace tw::python {

using namespace nvinfer1;

namespace {

using E = ICudaEngine;

constexpr OptProfileSelector kPoints[] = {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX};

char const* bindingName(E const& self, Py_ssize_t index)
{
    int32_t const count = self.getNbBindings();
    Py_ssize_t const at = index < 0 ? index + count : index;
    if (at < 0 || at >= count)
        throw nb::index_error(
            ("binding " + std::to_string(index) + " is out of range: the engine has " + std::to_string(count)).c_str());
    return self.getBindingName(int32_t(at));
}

// A method of a binding index as one of a binding's name.
template <class R>
auto byName(R (E::*call)(int32_t) const noexcept, char const* use)
{
    return [call, use](E const& self, char const* name) -> R {
        warnDeprecated(use);
        return (self.*call)(self.getBindingIndex(name));
    };
}

std::vector<Dims> profileShape(E const& self, char const* name, int32_t profile)
{
    std::vector<Dims> shapes;
    for (OptProfileSelector point : kPoints)
        shapes.push_back(self.getProfileShape(name, profile, point));
    return shapes[0].nbDims < 0 ? std::vector<Dims>() : shapes;
}

std::vector<Dims> profileDimensions(E const& self, int32_t profile, int32_t binding)
{
    warnDeprecated("get_tensor_profile_shape");
    std::vector<Dims> shapes;
    for (OptProfileSelector point : kPoints)
        shapes.push_back(self.getProfileDimensions(binding, profile, point));
    return shapes[0].nbDims < 0 ? std::vector<Dims>() : shapes;
}

std::vector<std::vector<int32_t>> profileValues(E const& self, int32_t profile, int32_t binding)
{
    warnDeprecated("get_tensor_profile_shape");
    Dims const dims = self.getBindingDimensions(binding);
    int64_t count = dims.nbDims < 0 ? 0 : 1;
    for (int32_t i = 0; i < dims.nbDims; ++i)
        count *= dims.d[i];
    std::vector<std::vector<int32_t>> points;
    for (OptProfileSelector point : kPoints)
        if (int32_t const* values = self.getProfileShapeValues(binding, profile, point); values && count >= 0)
            points.emplace_back(values, values + count);
    return points;
}

void defBindings(nb::class_<E>& type)
{
    auto const name = nb::arg("name");
    auto const index = nb::arg("index");
    type.def_prop_ro("num_bindings", &E::getNbBindings, "Number of bindings over all profiles.")
        .def("__len__", &E::getNbBindings, "Number of bindings over all profiles.")
        .def(
            "__getitem__", [](E const& self, char const* name) { return self.getBindingIndex(name); }, nb::arg(),
            "Binding of a name, or -1.")
        .def("__getitem__", &bindingName, nb::arg(), "Name of a binding.")
        .def("get_binding_name", deprecated(&E::getBindingName, "get_tensor_name"), index,
             "Name of a binding, or None.")
        .def("get_binding_index", deprecated(&E::getBindingIndex, "get_tensor_name"), name,
             "Binding of a name in the first profile, or -1.")
        .def("binding_is_input", deprecated(&E::bindingIsInput, "get_tensor_mode"), index,
             "Whether a binding is an input.")
        .def("binding_is_input", byName(&E::bindingIsInput, "get_tensor_mode"), name, "Whether a binding is an input.")
        .def("get_binding_shape", deprecated(&E::getBindingDimensions, "get_tensor_shape"), index,
             "Dimensions of a binding, -1 for those that vary.")
        .def("get_binding_shape", byName(&E::getBindingDimensions, "get_tensor_shape"), name,
             "Dimensions of a binding, -1 for those that vary.")
        .def("get_binding_dtype", deprecated(&E::getBindingDataType, "get_tensor_dtype"), index,
             "Element type of a binding.")
        .def("get_binding_dtype", byName(&E::getBindingDataType, "get_tensor_dtype"), name,
             "Element type of a binding.")
        .def("get_location", deprecated(&E::getLocation, "get_tensor_location"), index,
             "Whether a binding is read from the host or the device.")
        .def("get_location", byName(&E::getLocation, "get_tensor_location"), name,
             "Whether a binding is read from the host or the device.")
        .def("get_profile_shape", &profileDimensions, nb::arg("profile_index"), nb::arg("binding"),
             "[min, opt, max] of an input binding.")
        .def(
            "get_profile_shape",
            [](E const& self, int32_t profile, char const* binding) {
                return profileDimensions(self, profile, self.getBindingIndex(binding));
            },
            nb::arg("profile_index"), nb::arg("binding"), "[min, opt, max] of an input binding.")
        .def("get_profile_shape_input", &profileValues, nb::arg("profile_index"), nb::arg("binding"),
             "[min, opt, max] of an input shape tensor's values.")
        .def(
            "get_profile_shape_input",
            [](E const& self, int32_t profile, char const* binding) {
                return profileValues(self, profile, self.getBindingIndex(binding));
            },
            nb::arg("profile_index"), nb::arg("binding"), "[min, opt, max] of an input shape tensor's values.")
        .def("is_shape_binding", deprecated(&E::isShapeBinding, "get_tensor_location"), nb::arg("binding"),
             "Whether the binding's values determine shapes.")
        .def("is_execution_binding", deprecated(&E::isExecutionBinding, "get_tensor_location"), nb::arg("binding"),
             "Whether the binding's elements are needed on the device.")
        .def("get_binding_bytes_per_component",
             deprecated(&E::getBindingBytesPerComponent, "get_tensor_bytes_per_component"), index,
             "Bytes of one component of a vectorized format.")
        .def("get_binding_components_per_element",
             deprecated(&E::getBindingComponentsPerElement, "get_tensor_components_per_element"), index,
             "Vector length of the format; 1 without vectors.")
        .def("get_binding_format", deprecated(&E::getBindingFormat, "get_tensor_format"), index, "Memory format.")
        .def("get_binding_format_desc", deprecated(&E::getBindingFormatDesc, "get_tensor_format_desc"), index,
             "Type and format as text for people.")
        .def("get_binding_vectorized_dim", deprecated(&E::getBindingVectorizedDim, "get_tensor_vectorized_dim"), index,
             "Dimension that the format splits into vectors, or -1.");
}

void defTensors(nb::class_<E>& type)
{
    auto const name = nb::arg("name");
    type.def_prop_ro("num_io_tensors", &E::getNbIOTensors, "Number of inputs and outputs.")
        .def("get_tensor_name", &E::getIOTensorName, nb::arg("index"), "Name of an input or output; None out of range.")
        .def("get_tensor_mode", &E::getTensorIOMode, name, "Input, output, or NONE for an unknown name.")
        .def("is_shape_inference_io", &E::isShapeInferenceIO, name,
             "Whether the values are needed for, or come from, the computation of shapes.")
        .def("get_tensor_shape", &E::getTensorShape, name, "Dimensions, -1 for those that vary.")
        .def("get_tensor_dtype", &E::getTensorDataType, name, "Element type.")
        .def("get_tensor_location", &E::getTensorLocation, name,
             "HOST for tensors whose values determine shapes, else DEVICE.")
        .def("get_tensor_bytes_per_component", &E::getTensorBytesPerComponent, name,
             "Bytes of one component of a vectorized format; -1 for an unknown name.")
        .def("get_tensor_components_per_element", &E::getTensorComponentsPerElement, name,
             "Vector length of the format, 1 without vectors; -1 for an unknown name.")
        .def("get_tensor_format", &E::getTensorFormat, name, "Memory format.")
        .def("get_tensor_format_desc", &E::getTensorFormatDesc, name, "Type and format as text for people.")
        .def("get_tensor_vectorized_dim", &E::getTensorVectorizedDim, name,
             "Dimension that the format splits into vectors, or -1.")
        .def("get_tensor_profile_shape", &profileShape, name, nb::arg("profile_index"),
             "[min, opt, max] of an input, or [].");
}

// Contexts are made without the GIL: their memory may come from an allocator of Python that another thread uses.
template <IExecutionContext* (E::*make)() noexcept>
IExecutionContext* makeContext(E& self)
{
    GilReleased const release;
    return (self.*make)();
}

} // namespace

void bindEngine(nb::module_& m)
{
    nb::class_<E> type(m, "ICudaEngine", "A built network, shared by any number of execution contexts.");
    defBindings(type);
    type.def_prop_ro("has_implicit_batch_dimension", &E::hasImplicitBatchDimension,
                     "Whether every tensor has a batch dimension that its shape leaves out.")
        .def_prop_ro("max_batch_size", deprecatedGetter(&E::getMaxBatchSize, "EXPLICIT_BATCH"),
                     "Largest batch of an implicit batch engine; 1 with explicit batch.")
        .def_prop_ro("num_layers", &E::getNbLayers, "Layers after optimization.")
        .def("serialize", &E::serialize, nb::call_guard<GilReleased>(),
             "The engine as bytes for Runtime.deserialize_cuda_engine().")
        .def("create_execution_context", &makeContext<&E::createExecutionContext>, nb::keep_alive<0, 1>(),
             "A context with its own device memory; None on failure.")
        .def("create_execution_context_without_device_memory",
             &makeContext<&E::createExecutionContextWithoutDeviceMemory>, nb::keep_alive<0, 1>(),
             "A context that needs device_memory before it runs.")
        .def_prop_ro("device_memory_size", &E::getDeviceMemorySize,
                     "Bytes of device memory that a context needs, for all profiles.")
        .def_prop_ro("refittable", &E::isRefittable, "Whether a Refitter can replace weights.")
        .def_prop_ro("name", &E::getName, "Name of the network that the engine was built from.")
        .def_prop_ro("num_optimization_profiles", &E::getNbOptimizationProfiles,
                     "Number of optimization profiles, at least 1.")
        .def_prop_ro("engine_capability", &E::getEngineCapability, "What kind of system the engine is for.")
        .def_prop_ro("tactic_sources", &E::getTacticSources, "Sources that were allowed when the engine was built.")
        .def_prop_ro("profiling_verbosity", &E::getProfilingVerbosity, "What the engine knows of its layers.")
        .def("create_engine_inspector", &E::createEngineInspector, nb::keep_alive<0, 1>(),
             "Describes the engine's layers.");
    defTensors(type);
    defRecorder(type);
    defDelete(type);
}

} // namespace tw::python
