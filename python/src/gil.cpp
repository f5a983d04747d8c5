// SPDX-License-Identifier: Apache-2.0
#include "gil.h"

#include <cxxabi.h>
#include <unistd.h>

namespace tw::python {

namespace {

// Gives what function gives, or never returns: an exit of the thread ends here, as a handler that is not left.
template <class Function>
auto orStay(Function function) noexcept
{
    try {
        return function();
    } catch (abi::__forced_unwind&) {
        stayUntilTheEnd();
    }
}

} // namespace

void stayUntilTheEnd() noexcept
{
    for (;;)
        pause();
}

GilReleased::~GilReleased()
{
    orStay([this] { PyEval_RestoreThread(state_); });
}

GilAcquired::GilAcquired() noexcept : state_(orStay([] { return PyGILState_Ensure(); })) {}

} // namespace tw::python
