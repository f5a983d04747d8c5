// SPDX-License-Identifier: Apache-2.0
// Calls from the library into methods that a Python class overrides. They come from any thread, must not throw, and may come
// while Python is ending.
#pragma once

#include <stdexcept>
#include <string>

#include <cxxabi.h>
#include <nanobind/nanobind.h>

#include "gil.h"

namespace tw::python {

namespace nb = nanobind;

/// False once the interpreter is ending: nothing of it may be called then.
bool isPythonAlive() noexcept;

/// Writes the exception that is being handled with the method's name to sys.unraisablehook: the library cannot carry it.
/// Ctrl-C comes again in the main thread.
void reportException(char const* method) noexcept;

/// The method that the class of self has instead of the binding of the interface; invalid when it has none. With the GIL.
nb::object findOverride(nb::handle self, nb::handle interface, char const* method);

/// Says on stderr that the class lacks a method that the library needs.
void reportMissing(nb::handle self, char const* method);

/// Of a binding of an interface's method that a Python class must define.
[[noreturn]] inline void refuseAbstract(std::string const& method)
{
    throw std::runtime_error("Tried to call pure virtual function \"" + method + "\"");
}

/// What callRequired() takes of a method that gives nothing.
inline int takeNothing(nb::object const&)
{
    return 0;
}

/// Runs body with the GIL and gives fallback when it throws or when Python is ending.
template <class Result, class Body>
Result withPython(char const* method, Result fallback, Body body) noexcept
{
    if (!isPythonAlive())
        return fallback;
    GilAcquired const gil;
    // The library may run destructors while an exception is on its way.
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    Result result = fallback;
    try {
        result = body();
    } catch (abi::__forced_unwind&) { // the method gave the GIL up for a while, and Python ended
        stayUntilTheEnd();
    } catch (...) {
        reportException(method);
    }
    PyErr_Restore(type, value, traceback);
    return result;
}

/// Calls a Python function. A thread that is made to exit in it stays there: destructors of objects on the way would count
/// references without the GIL.
template <class... Args>
nb::object callPython(nb::handle function, Args const&... args)
{
    nb::object const objects[] = {nb::object(), nb::cast(args)...};
    PyObject* list[sizeof...(args) + 1] = {};
    for (size_t i = 0; i < sizeof...(args); ++i)
        list[i] = objects[i + 1].ptr();
    PyObject* result = nullptr;
    try {
        result = PyObject_Vectorcall(function.ptr(), list, sizeof...(args), nullptr);
    } catch (abi::__forced_unwind&) {
        stayUntilTheEnd();
    }
    if (!result)
        throw nb::python_error();
    return nb::steal(result);
}

/// Calls the override of a required method and converts what it gives by take.
template <class Interface, class Result, class Take, class... Args>
Result callRequired(Interface const& object, char const* method, Result fallback, Take take,
                    Args const&... args) noexcept
{
    return withPython(method, fallback, [&]() -> Result {
        nb::handle const self = nb::find(object);
        nb::object const found = self.is_valid() ? findOverride(self, nb::type<Interface>(), method) : nb::object();
        if (!found.is_valid()) {
            reportMissing(self, method);
            return fallback;
        }
        return take(callPython(found, args...));
    });
}

} // namespace tw::python
