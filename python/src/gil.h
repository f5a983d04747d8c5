// SPDX-License-Identifier: Apache-2.0
// Leaving the interpreter and coming back to it, while it may end. Before CPython 3.14 a thread that wants back when Python has
// ended is made to exit, which unwinds its stack: through the library, and through destructors that may not throw, where the
// process would be aborted. Such a thread stays where it is instead, until the process is gone.
#pragma once

#include <nanobind/nanobind.h>

namespace tw::python {

/// For a handler of abi::__forced_unwind, by which a thread is made to exit: the handler is never left.
[[noreturn]] void stayUntilTheEnd() noexcept;

/// Without the GIL while it lives.
class GilReleased
{
public:
    GilReleased() noexcept : state_(PyEval_SaveThread()) {}
    ~GilReleased();
    GilReleased(GilReleased const&) = delete;
    GilReleased& operator=(GilReleased const&) = delete;

private:
    PyThreadState* const state_;
};

/// With the GIL while it lives, in any thread.
class GilAcquired
{
public:
    GilAcquired() noexcept;
    ~GilAcquired() { PyGILState_Release(state_); }
    GilAcquired(GilAcquired const&) = delete;
    GilAcquired& operator=(GilAcquired const&) = delete;

private:
    PyGILState_STATE state_;
};

} // namespace tw::python
