// SPDX-License-Identifier: Apache-2.0
#include "callback.h"

#include <string>

#include <nanobind/stl/string.h>

namespace tw::python {

bool isPythonAlive() noexcept
{
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsInitialized() && !Py_IsFinalizing();
#else
    return Py_IsInitialized() && !_Py_IsFinalizing();
#endif
}

namespace {

void report(char const* method)
{
    try {
        throw;
    } catch (nb::python_error& error) {
        bool const isInterrupt = error.matches(PyExc_KeyboardInterrupt);
        error.restore();
        PyObject* const where = PyUnicode_FromString(method);
        PyErr_WriteUnraisable(where);
        Py_XDECREF(where);
        if (isInterrupt)
            PyErr_SetInterrupt();
    } catch (std::exception const& error) {
        PySys_FormatStderr("[TRT] %s(): %s\n", method, error.what());
    } catch (...) {
        PySys_FormatStderr("[TRT] %s(): an exception of unknown type\n", method);
    }
    PyErr_Clear();
}

} // namespace

void reportException(char const* method) noexcept
{
    try {
        report(method);
    } catch (abi::__forced_unwind&) { // the hook gave the GIL up for a while, and Python ended
        stayUntilTheEnd();
    }
}

nb::object findOverride(nb::handle self, nb::handle interface, char const* method)
{
    nb::handle const type = self.type();
    if (type.is(interface))
        return {};
    nb::object const own = nb::getattr(type, method, nb::none());
    if (own.is_none() || own.is(nb::getattr(interface, method, nb::none())))
        return {};
    return self.attr(method);
}

void reportMissing(nb::handle self, char const* method)
{
    std::string const type = self.is_valid() ? nb::cast<std::string>(nb::str(self.type().attr("__qualname__")))
                                             : std::string("a deleted object");
    PySys_FormatStderr("[TRT] %s does not define %s(), which the library needs\n", type.c_str(), method);
}

} // namespace tw::python
