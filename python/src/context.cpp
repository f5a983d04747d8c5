// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/vector.h>

#include "module.h"
#include "recorder.h"

namespace tw::python {

using namespace nvinfer1;

namespace {

using X = IExecutionContext;

// Enough addresses: those of the chosen profile at least, or the library reads past the list.
void** checked(X const& self, Addresses& bindings)
{
    ICudaEngine const& engine = self.getEngine();
    int32_t const perProfile = engine.getNbBindings() / std::max(1, engine.getNbOptimizationProfiles());
    size_t const needed = size_t(perProfile) * size_t(std::max(0, self.getOptimizationProfile()) + 1);
    if (bindings.pointers.size() < needed)
        throw nb::value_error(("bindings: " + std::to_string(bindings.pointers.size()) +
                               " addresses were given, the engine has " + std::to_string(needed) +
                               " bindings up to the chosen profile")
                                  .c_str());
    bindings.pointers.resize(size_t(engine.getNbBindings()));
    return bindings.pointers.data();
}

cudaStream_t streamOf(Address const& address)
{
    return static_cast<cudaStream_t>(address.pointer);
}

// A capsule holds the place of an event; a number is the event itself.
struct Consumed
{
    explicit Consumed(nb::handle given)
    {
        if (given.is_none())
            return;
        void* pointer = nullptr;
        if (!readAddress(given, false, pointer))
            throw nb::type_error("input_consumed: an event, as a number or a capsule, or None is expected");
        bool const isPlace = PyCapsule_CheckExact(given.ptr());
        event = isPlace ? nullptr : static_cast<cudaEvent_t>(pointer);
        place = isPlace ? static_cast<cudaEvent_t*>(pointer) : &event;
    }
    cudaEvent_t event = nullptr;
    cudaEvent_t* place = nullptr;
};

bool execute(X& self, int32_t batch, Addresses bindings)
{
    warnDeprecated("execute_v2");
    void** const addresses = checked(self, bindings);
    GilReleased const release;
    return self.execute(batch, addresses);
}

bool executeAsync(X& self, int32_t batch, Addresses bindings, Address stream, nb::object consumed)
{
    warnDeprecated("execute_async_v2");
    void** const addresses = checked(self, bindings);
    Consumed const event(consumed);
    GilReleased const release;
    return self.enqueue(batch, addresses, streamOf(stream), event.place);
}

bool executeV2(X& self, Addresses bindings)
{
    void** const addresses = checked(self, bindings);
    GilReleased const release;
    return self.executeV2(addresses);
}

bool executeAsyncV2(X& self, Addresses bindings, Address stream, nb::object consumed)
{
    void** const addresses = checked(self, bindings);
    Consumed const event(consumed);
    GilReleased const release;
    return self.enqueueV2(addresses, streamOf(stream), event.place);
}

bool executeAsyncV3(X& self, Address stream)
{
    GilReleased const release;
    return self.enqueueV3(streamOf(stream));
}

std::vector<std::string> inferShapes(X& self)
{
    std::vector<char const*> names(size_t(std::max(0, self.getEngine().getNbIOTensors())));
    Reason const reason(self);
    int32_t const missing = self.inferShapes(int32_t(names.size()), names.data());
    if (missing < 0)
        throw std::runtime_error("infer_shapes() failed: " + reason.text());
    return {names.begin(), names.begin() + std::min(ptrdiff_t(missing), ptrdiff_t(names.size()))};
}

// Number of elements of a shape binding.
size_t elements(X const& self, int32_t binding)
{
    Dims const dims = self.getBindingDimensions(binding);
    int64_t count = dims.nbDims < 0 ? -1 : 1;
    for (int32_t i = 0; i < dims.nbDims; ++i)
        count = dims.d[i] < 0 ? -1 : count * dims.d[i];
    if (count < 0)
        throw nb::value_error(("binding " + std::to_string(binding) + " has no known number of elements").c_str());
    return size_t(count);
}

std::vector<int32_t> shapeValues(X& self, int32_t binding)
{
    warnDeprecated("get_tensor_address");
    std::vector<int32_t> values(elements(self, binding));
    Reason const reason(self);
    if (!self.getShapeBinding(binding, values.data()))
        throw std::runtime_error("binding " + std::to_string(binding) +
                                 ": its values are not determined: " + reason.text());
    return values;
}

bool setShapeValues(X& self, int32_t binding, std::vector<int32_t> const& values)
{
    warnDeprecated("set_tensor_address");
    size_t const needed = elements(self, binding);
    if (values.size() != needed)
        throw nb::value_error(("binding " + std::to_string(binding) + " has " + std::to_string(needed) + " elements, " +
                               std::to_string(values.size()) + " values were given")
                                  .c_str());
    return self.setInputShapeBinding(binding, values.data());
}

void setProfile(X& self, int32_t profile)
{
    warnDeprecated("set_optimization_profile_async");
    Reason const reason(self);
    if (!self.setOptimizationProfile(profile))
        throw std::runtime_error("optimization profile " + std::to_string(profile) +
                                 " cannot be chosen: " + reason.text());
}

bool setOutputAllocator(nb::handle self, char const* name, IOutputAllocator* allocator)
{
    bool const isSet = nb::cast<X&>(self).setOutputAllocator(name, allocator);
    if (isSet)
        keepInstead(self, (std::string("output ") + name).c_str(), objectOf(allocator));
    return isSet;
}

void defRuns(nb::class_<X>& type)
{
    type.def("execute", &execute, nb::arg("batch_size") = 1, nb::arg("bindings"),
             "Runs an implicit batch engine and waits.",
             nb::sig("def execute(self, batch_size: int = 1, bindings: collections.abc.Sequence[int] = ...) -> bool"))
        .def("execute_async", &executeAsync, nb::arg("batch_size") = 1, nb::arg("bindings"), nb::arg("stream_handle"),
             nb::arg("input_consumed") = nb::none(), "Puts a run of an implicit batch engine on the stream.",
             nb::sig("def execute_async(self, batch_size: int = 1, bindings: collections.abc.Sequence[int] = ..., "
                     "stream_handle: int = ..., input_consumed: object | None = None) -> bool"))
        .def("execute_v2", &executeV2, nb::arg("bindings"),
             "Runs an explicit batch engine and waits. bindings holds one address for each binding.")
        .def("execute_async_v2", &executeAsyncV2, nb::arg("bindings"), nb::arg("stream_handle"),
             nb::arg("input_consumed") = nb::none(), "Puts a run of an explicit batch engine on the stream.")
        .def("execute_async_v3", &executeAsyncV3, nb::arg("stream_handle"),
             "Puts a run on the stream with the tensor addresses that are set. False when a shape or address is "
             "missing.")
        .def_prop_rw("debug_sync", &X::getDebugSync, &X::setDebugSync,
                     "Whether to wait for the stream after each layer.")
        .def_prop_rw("profiler", &X::getProfiler, replacing("profiler", &X::setProfiler),
                     nb::for_getter(nb::rv_policy::reference), nb::for_setter(nb::arg("value").none()),
                     "Receives layer times, or None.")
        .def_prop_rw("enqueue_emits_profile", &X::getEnqueueEmitsProfile, &X::setEnqueueEmitsProfile,
                     "Whether each run reports to the profiler, which makes it wait. Default True.")
        .def("report_to_profiler", &X::reportToProfiler, nb::call_guard<GilReleased>(),
             "Waits for the last run and reports its layer times. False without a profiler or a run.")
        .def_prop_rw("nvtx_verbosity", &X::getNvtxVerbosity, &X::setNvtxVerbosity,
                     "Detail of the ranges shown to tracing tools.")
        .def_prop_rw("persistent_cache_limit", &X::getPersistentCacheLimit, &X::setPersistentCacheLimit,
                     "Bytes of persistent L2 cache that a run may use. Default 0.");
}

void defShapes(nb::class_<X>& type)
{
    type.def("get_strides", deprecated(&X::getStrides, "get_tensor_strides"), nb::arg("binding"),
             "Strides of a binding.")
        .def("set_binding_shape", deprecated(&X::setBindingDimensions, "set_input_shape"), nb::arg("binding"),
             nb::arg("shape"), "Shape of an input binding; False outside the profile's range.")
        .def("get_binding_shape", deprecated(&X::getBindingDimensions, "get_tensor_shape"), nb::arg("binding"),
             "Shape of a binding under the present input shapes.")
        .def("set_shape_input", &setShapeValues, nb::arg("binding"), nb::arg("shape"),
             "Values of an input shape tensor.")
        .def("get_shape", &shapeValues, nb::arg("binding"), "Values of a shape tensor.")
        .def("get_tensor_strides", &X::getTensorStrides, nb::arg("name"),
             "Strides in elements, or in vectors for vectorized formats.")
        .def("set_input_shape", &X::setInputShape, nb::arg("name"), nb::arg("shape"),
             "Shape of an input; False outside the profile's range or for an unknown name.")
        .def("get_tensor_shape", &X::getTensorShape, nb::arg("name"),
             "Shape under the present input shapes; -1 for what is not determined.")
        .def("infer_shapes", &inferShapes,
             "Computes what follows from the present inputs. Names of inputs that are not yet set.")
        .def_prop_ro("all_binding_shapes_specified", &X::allInputDimensionsSpecified,
                     "Whether every dynamic input has a shape.")
        .def_prop_ro("all_shape_inputs_specified", &X::allInputShapesSpecified,
                     "Whether every input shape tensor has values.")
        .def_prop_rw("active_optimization_profile", &X::getOptimizationProfile, &setProfile, "Chosen profile, or -1.")
        .def(
            "set_optimization_profile_async",
            [](X& self, int32_t profile, Address stream) {
                return self.setOptimizationProfileAsync(profile, streamOf(stream));
            },
            nb::arg("profile_index"), nb::arg("stream_handle"), "Chooses the profile; copies go on the stream.");
}

void defMemory(nb::class_<X>& type)
{
    type.def_prop_rw(
            "device_memory", nullptr, [](X& self, Address memory) { self.setDeviceMemory(memory.pointer); },
            "Memory for a context made without, at a multiple of 256 bytes. Write-only.")
        .def(
            "set_tensor_address",
            [](X& self, char const* name, Address memory) { return self.setTensorAddress(name, memory.pointer); },
            nb::arg("name"), nb::arg("memory"), "Address of an input or output; False for an unknown name.")
        .def(
            "get_tensor_address",
            [](X const& self, char const* name) { return Address{const_cast<void*>(self.getTensorAddress(name))}; },
            nb::arg("name"), "Address that was set, or 0.")
        .def(
            "set_input_consumed_event",
            [](X& self, Address event) { return self.setInputConsumedEvent(static_cast<cudaEvent_t>(event.pointer)); },
            nb::arg("event"), "Event that a run records when its inputs may be overwritten; 0 for none.")
        .def(
            "get_input_consumed_event", [](X const& self) { return Address{self.getInputConsumedEvent()}; },
            "That event, or 0.")
        .def("set_output_allocator", &setOutputAllocator, nb::arg("name"), nb::arg("output_allocator").none(),
             "Allocator of one output, used instead of its address. False if not an output.",
             nb::sig("def set_output_allocator(self, name: str, output_allocator: IOutputAllocator | None) -> bool"))
        .def("get_output_allocator", &X::getOutputAllocator, nb::arg("name"), nb::rv_policy::reference,
             "Allocator of one output, or None.")
        .def("get_max_output_size", &X::getMaxOutputSize, nb::arg("name"),
             "Upper bound in bytes of an output under the present input shapes; negative when unknown.")
        .def_prop_rw("temporary_allocator", &X::getTemporaryStorageAllocator,
                     replacing("temporary", &X::setTemporaryStorageAllocator), nb::for_getter(nb::rv_policy::reference),
                     nb::for_setter(nb::arg("value").none()), "Source of scratch memory during a run, or None.");
}

} // namespace

void bindContext(nb::module_& m)
{
    nb::class_<X> type(
        m, "IExecutionContext",
        "One running instance of an engine: shapes, addresses and device memory. Used by one thread at a time.");
    defRuns(type);
    defShapes(type);
    defMemory(type);
    type.def_prop_ro("engine", &X::getEngine, "The engine that the context belongs to.")
        .def_prop_rw("name", &X::getName, &X::setName, "Name of the context for tools.");
    defRecorder(type);
    defDelete(type);
}

} // namespace tw::python
