// SPDX-License-Identifier: Apache-2.0
// What looks into a built engine and changes it.
#include <array>

#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include "module.h"
#include "owner.h"
#include "recorder.h"
#include "weights_of_layers.h"

namespace tw::python {

using namespace nvinfer1;

namespace {

using Self = nb::pointer_and_handle<Refitter>;

// The names that a method writes: it gives their number, and as many as there is room for.
template <class Ask>
std::vector<std::string> names(Ask ask)
{
    std::vector<char const*> list(size_t(std::max(0, ask(0, nullptr))));
    ask(int32_t(list.size()), list.data());
    return {list.begin(), list.end()};
}

template <int32_t (IRefitter::*ask)(int32_t, char const**, WeightsRole*) noexcept>
nb::tuple layersAndRoles(Refitter& self)
{
    std::vector<char const*> layers(size_t(std::max(0, ((*self).*ask)(0, nullptr, nullptr))));
    std::vector<WeightsRole> roles(layers.size());
    ((*self).*ask)(int32_t(layers.size()), layers.data(), roles.data());
    return nb::make_tuple(std::vector<std::string>(layers.begin(), layers.end()), roles);
}

void defInspector(nb::module_& m)
{
    using I = IEngineInspector;
    nb::class_<I> type(m, "EngineInspector", "Describes an engine's layers.");
    type.def_prop_rw("execution_context", &I::getExecutionContext, replacing("context", &I::setExecutionContext),
                     nb::for_getter(nb::rv_policy::reference), nb::for_setter(nb::arg("value").none()),
                     "Context whose actual shapes are described, or None.")
        .def("get_layer_information", &I::getLayerInformation, nb::arg("layer_index"), nb::arg("format"),
             "Description of one layer, 0 to ICudaEngine.num_layers - 1.")
        .def("get_engine_information", &I::getEngineInformation, nb::arg("format"),
             "Description of all layers and of the inputs and outputs.");
    defRecorder(type);
}

} // namespace

void bindRefitter(nb::module_& m)
{
    defInspector(m);
    nb::class_<Refitter> type(m, "Refitter", "Replaces weights of an engine that was built with BuilderFlag.REFIT.");
    type.def(nb::init<ICudaEngine&, ILogger&>(), nb::arg("engine"), nb::arg("logger"), nb::keep_alive<1, 2>(),
             nb::keep_alive<1, 3>(), "A refitter of the engine.")
        .def(
            "set_weights",
            [](Self self, char const* layer, WeightsRole role, WeightsArgument weights) {
                return (*self.p)->setWeights(layer, role, keepWith(self.h, weights));
            },
            nb::arg("layer_name"), nb::arg("role"), nb::arg("weights"),
            "New weights for a layer and role: same count and type as before. False when there are none or the count "
            "differs.")
        .def(
            "set_named_weights",
            [](Self self, char const* name, WeightsArgument weights) {
                return (*self.p)->setNamedWeights(name, keepWith(self.h, weights));
            },
            nb::arg("name"), nb::arg("weights"), "As set_weights(), for weights that have a name of their own.")
        .def(
            "refit_cuda_engine",
            [](Refitter& self) {
                GilReleased const release;
                return self->refitCudaEngine();
            },
            "Applies what was set. False while get_missing() is not empty.")
        .def("get_missing", &layersAndRoles<&IRefitter::getMissing>,
             "(layers, roles) of weights that must also be set, because they were combined with weights that are set.")
        .def(
            "get_missing_weights",
            [](Refitter& self) {
                return names([&](int32_t size, char const** list) { return self->getMissingWeights(size, list); });
            },
            "As get_missing(), names of weights.")
        .def("get_all", &layersAndRoles<&IRefitter::getAll>, "(layers, roles) of all weights that can be replaced.")
        .def(
            "get_all_weights",
            [](Refitter& self) {
                return names([&](int32_t size, char const** list) { return self->getAllWeights(size, list); });
            },
            "As get_all(), names of weights.")
        .def(
            "get_dynamic_range",
            [](Refitter& self, char const* tensor) {
                return nb::make_tuple(self->getDynamicRangeMin(tensor), self->getDynamicRangeMax(tensor));
            },
            nb::arg("tensor_name"), "(min, max) of a tensor; NaN for an unknown one.")
        .def(
            "set_dynamic_range",
            [](Refitter& self, char const* tensor, std::array<float, 2> const& range) {
                return self->setDynamicRange(tensor, range[0], range[1]);
            },
            nb::arg("tensor_name"), nb::arg("range"),
            "New range of an INT8 tensor; False when it had none or the numbers are no range.")
        .def(
            "get_tensors_with_dynamic_range",
            [](Refitter& self) {
                return names(
                    [&](int32_t size, char const** list) { return self->getTensorsWithDynamicRange(size, list); });
            },
            "Names of all tensors whose range can be replaced.")
        .def_prop_ro(
            "logger", [](Refitter& self) { return self->getLogger(); }, "The logger that was given.")
        .def_prop_rw(
            "max_threads", [](Refitter& self) { return self->getMaxThreads(); },
            [](Refitter& self, int32_t count) { self->setMaxThreads(count); },
            "Most threads that refitting may use, the calling one included. Default 1.");
    defRecorder(type);
    defDelete(type);
}

} // namespace tw::python
