// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <NvInfer.h>

#include "module.h"

namespace tw::python {

/// set_input() of layer classes that say more of their inputs than ILayer does.
template <class C>
void setInput(C& self, int32_t index, nvinfer1::ITensor& tensor)
{
    self.setInput(index, tensor);
}

/// Several Python objects may stand for one object of the network: they are equal.
template <class T, class... Extra>
void defIdentity(nb::class_<T, Extra...>& type)
{
    type.def(
            "__eq__",
            [](T const& self, nb::handle other) {
                return nb::isinstance<T>(other) && nb::cast<T const*>(other) == &self;
            },
            nb::arg().none(), "Whether both stand for the same object of the network.")
        .def(
            "__hash__", [](T const& self) { return std::hash<T const*>()(&self); }, "Equal for equal objects.");
}

} // namespace tw::python
