// SPDX-License-Identifier: Apache-2.0
// Objects of Python that an object of the library uses until it is given another: replaced ones are let go.
#pragma once

#include <NvInfer.h>
#include <nanobind/nanobind.h>

namespace tw::python {

namespace nb = nanobind;

/// Keeps patient in the place of nurse, instead of what was there; an invalid handle or None keeps nothing. What is there when nurse is
/// freed lives a little longer than its C++ object.
void keepInstead(nb::handle nurse, char const* place, nb::handle patient);

/// What is kept in the place, or nothing.
nb::object keptIn(nb::handle nurse, char const* place);

/// The Python object of a pointer that came from Python; invalid for null.
template <class P>
nb::handle objectOf(P* pointer)
{
    return pointer ? nb::find(*pointer) : nb::handle();
}

/// The Python object of a new engine. It uses the allocator that owner has now, whichever that gets later.
nb::object withAllocator(nvinfer1::ICudaEngine* engine, nb::handle owner);

/// A setter that calls set(object, value) and keeps value instead of the one before.
template <class T, class P, class Set>
auto replacing(char const* place, Set set)
{
    return [place, set](nb::handle self, P* value) {
        set(nb::cast<T&>(self), value);
        keepInstead(self, place, objectOf(value));
    };
}

/// The same of a method.
template <class T, class P>
auto replacing(char const* place, void (T::*set)(P*) noexcept)
{
    return replacing<T, P>(place, [set](T& self, P* value) { (self.*set)(value); });
}

template <class T, class P>
auto replacing(char const* place, bool (T::*set)(P*) noexcept)
{
    return replacing<T, P>(place, [set](T& self, P* value) { (self.*set)(value); });
}

} // namespace tw::python
