// SPDX-License-Identifier: Apache-2.0
// The parts of the module, in the order in which they are made: defaults need their types.
#pragma once

#include "arguments.h"
#include "gil.h"
#include "kept.h"

namespace tw::python {

void bindRuntimeEnums(nb::module_& m);
void bindNetworkEnums(nb::module_& m);
void bindDims(nb::module_& m);
void bindWeights(nb::module_& m);
void bindLogger(nb::module_& m);
void bindRecorder(nb::module_& m);
void bindAllocators(nb::module_& m);
void bindPlugins(nb::module_& m);
void bindCalibrators(nb::module_& m);
void bindTensors(nb::module_& m);
void bindWindowLayers(nb::module_& m);
void bindArithmeticLayers(nb::module_& m);
void bindShapeLayers(nb::module_& m);
void bindFlowLayers(nb::module_& m);
void bindNetwork(nb::module_& m);
void bindAlgorithms(nb::module_& m);
void bindConfig(nb::module_& m);
void bindBuilder(nb::module_& m);
void bindEngine(nb::module_& m);
void bindContext(nb::module_& m);
void bindRuntime(nb::module_& m);
void bindRefitter(nb::module_& m);
void bindOnnxParser(nb::module_& m);
void bindOlderParsers(nb::module_& m);

/// `with object:`, which older programs say: it warns and does nothing.
template <class Class>
void defContextManager(Class& type)
{
    type.def(
            "__enter__", [](nb::handle self) { return warnContextManager(), nb::borrow(self); },
            "Deprecated: gives the object itself.")
        .def(
            "__exit__", [](nb::handle, nb::handle, nb::handle, nb::handle) {}, nb::arg("exc_type").none(),
            nb::arg("exc_value").none(), nb::arg("traceback").none(),
            "Deprecated: does nothing. The object is freed when nothing refers to it.");
}

/// The same, and __del__.
template <class Class>
void defDelete(Class& type)
{
    type.def(
        "__del__", [](nb::handle) { warnDeprecated("del obj"); },
        "Deprecated; objects are freed when nothing refers to them.");
    defContextManager(type);
}

/// A getter or setter that warns of its replacement.
template <class R, class C>
auto deprecatedGetter(R (C::*get)() const noexcept, char const* use)
{
    return [get, use](C& self) -> R {
        warnDeprecated(use);
        return (self.*get)();
    };
}

template <class R, class C, class A>
auto deprecatedSetter(R (C::*set)(A) noexcept, char const* use)
{
    return [set, use](C& self, std::remove_reference_t<A> value) {
        warnDeprecated(use);
        (self.*set)(value);
    };
}

/// A method that warns of its replacement.
template <class R, class C, class... A>
auto deprecated(R (C::*call)(A...) noexcept, char const* use)
{
    return [call, use](C& self, A... arguments) -> R {
        warnDeprecated(use);
        return (self.*call)(arguments...);
    };
}

template <class R, class C, class... A>
auto deprecated(R (C::*call)(A...) const noexcept, char const* use)
{
    return [call, use](C& self, A... arguments) -> R {
        warnDeprecated(use);
        return (self.*call)(arguments...);
    };
}

} // namespace tw::python
