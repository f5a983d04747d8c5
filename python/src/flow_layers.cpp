// SPDX-License-Identifier: Apache-2.0
#include "layers.h"
#include "module.h"
#include "weights_of_layers.h"

namespace tw::python {

using namespace nvinfer1;

void bindFlowLayers(nb::module_& m)
{
    nb::class_<ILoopBoundaryLayer, ILayer>(m, "ILoopBoundaryLayer",
                                           "Base of the layers through which values enter, leave and control a loop.")
        .def_prop_ro("loop", &ILoopBoundaryLayer::getLoop, "The loop that the layer belongs to.");
    nb::class_<IRecurrenceLayer, ILoopBoundaryLayer>(m, "IRecurrenceLayer",
                                                     "A value carried from one iteration to the next.")
        .def("set_input", &setInput<IRecurrenceLayer>, nb::arg("index"), nb::arg("tensor"),
             "Replaces an input, or adds one that is optional.");
    nb::class_<ILoopOutputLayer, ILoopBoundaryLayer>(m, "ILoopOutputLayer", "A result of a loop.")
        .def_prop_rw("axis", &ILoopOutputLayer::getAxis, &ILoopOutputLayer::setAxis,
                     "Dimension that CONCATENATE and REVERSE insert. Default 0.")
        .def_prop_ro("kind", &ILoopOutputLayer::getLoopOutput, "What is collected.")
        .def("set_input", &setInput<ILoopOutputLayer>, nb::arg("index"), nb::arg("tensor"),
             "Replaces an input, or adds one that is optional.");
    nb::class_<ITripLimitLayer, ILoopBoundaryLayer>(m, "ITripLimitLayer",
                                                    "What ends a loop. One of each kind at most, one at least.")
        .def_prop_ro("kind", &ITripLimitLayer::getTripLimit, "What ends the loop.");
    nb::class_<IIteratorLayer, ILoopBoundaryLayer>(m, "IIteratorLayer",
                                                   "One slice of a tensor for each iteration, one dimension less.")
        .def_prop_rw("axis", &IIteratorLayer::getAxis, &IIteratorLayer::setAxis, "Dimension that is walked. Default 0.")
        .def_prop_rw("reverse", &IIteratorLayer::getReverse, &IIteratorLayer::setReverse,
                     "From last to first; needs a COUNT limit. Default false.");
    nb::class_<ILoop>(m, "ILoop", "A loop on layers. Owned by the network.")
        .def_prop_rw("name", &ILoop::getName, &ILoop::setName, "Name of the loop.")
        .def("add_recurrence", &ILoop::addRecurrence, nb::arg("initial_value"), nb::rv_policy::reference_internal,
             "A value carried from one iteration to the next; the next value is set by set_input(1, ...).")
        .def("add_trip_limit", &ILoop::addTripLimit, nb::arg("tensor"), nb::arg("kind"),
             nb::rv_policy::reference_internal, "What ends the loop.")
        .def("add_iterator", &ILoop::addIterator, nb::arg("tensor"), nb::arg("axis") = 0, nb::arg("reverse") = false,
             nb::rv_policy::reference_internal, "One slice of the tensor for each iteration.")
        .def("add_loop_output", &ILoop::addLoopOutput, nb::arg("tensor"), nb::arg("kind"), nb::arg("axis") = 0,
             nb::rv_policy::reference_internal, "A result of the loop.");
    nb::class_<IAssertionLayer, ILayer>(
        m, "IAssertionLayer",
        "Fails the build when the condition (BOOL shape tensor) is provably false, and the run when it is false.")
        .def_prop_rw("message", &IAssertionLayer::getMessage, &IAssertionLayer::setMessage,
                     "Text of the error; copied.");
    nb::class_<IIfConditionalBoundaryLayer, ILayer>(
        m, "IIfConditionalBoundaryLayer",
        "Base of the layers through which values enter, leave and control a conditional.")
        .def_prop_ro("conditional", &IIfConditionalBoundaryLayer::getConditional,
                     "The conditional that the layer belongs to.");
    nb::class_<IIfConditionalOutputLayer, IIfConditionalBoundaryLayer>(
        m, "IIfConditionalOutputLayer",
        "Selects between the values of both branches: input 0 when the condition holds, else input 1. Same type and "
        "shape.");
    nb::class_<IIfConditionalInputLayer, IIfConditionalBoundaryLayer>(m, "IIfConditionalInputLayer",
                                                                      "A value that enters a conditional.");
    nb::class_<IConditionLayer, IIfConditionalBoundaryLayer>(m, "IConditionLayer",
                                                             "The condition of a conditional: a BOOL scalar.");
    nb::class_<IIfConditional>(m, "IIfConditional",
                               "if / else on layers: what only one branch needs runs only when the condition selects "
                               "it. Owned by the network.")
        .def_prop_rw("name", &IIfConditional::getName, &IIfConditional::setName, "Name of the conditional.")
        .def("set_condition", &IIfConditional::setCondition, nb::arg("condition"), nb::rv_policy::reference_internal,
             "The BOOL scalar that decides; once for each conditional.")
        .def("add_output", &IIfConditional::addOutput, nb::arg("true_subgraph_output"),
             nb::arg("false_subgraph_output"), nb::rv_policy::reference_internal,
             "A result, from a value of each branch.")
        .def("add_input", &IIfConditional::addInput, nb::arg("input"), nb::rv_policy::reference_internal,
             "A value from outside for use in the branches.");
}

} // namespace tw::python
