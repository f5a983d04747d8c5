// SPDX-License-Identifier: Apache-2.0
#include "kept.h"

#include <map>
#include <string>
#include <unordered_map>

#include "arguments.h"

namespace tw::python {

namespace {

using Places = std::map<std::string, nb::object, std::less<>>;

// By nurse; with the GIL. Never destroyed: objects of Python cannot be let go after its end.
std::unordered_map<PyObject*, Places>& places()
{
    static auto& all = *new std::unordered_map<PyObject*, Places>();
    return all;
}

void forget(void* nurse) noexcept
{
    // Out of the table first: what goes may free another nurse.
    auto const gone = places().extract(static_cast<PyObject*>(nurse));
}

} // namespace

void keepInstead(nb::handle nurse, char const* place, nb::handle patient)
{
    bool const isNothing = !patient.is_valid() || patient.is_none();
    auto found = places().find(nurse.ptr());
    if (found == places().end()) {
        if (isNothing)
            return;
        found = places().try_emplace(nurse.ptr()).first;
        keepAlive(nurse, nurse.ptr(), &forget);
    }
    nb::object before = isNothing ? nb::object() : nb::borrow(patient);
    std::swap(found->second[place], before); // which is let go when the table is whole again
}

nb::object keptIn(nb::handle nurse, char const* place)
{
    auto const found = places().find(nurse.ptr());
    if (found == places().end())
        return {};
    auto const kept = found->second.find(std::string_view(place));
    return kept == found->second.end() ? nb::object() : kept->second;
}

nb::object withAllocator(nvinfer1::ICudaEngine* engine, nb::handle owner)
{
    nb::object result = nb::cast(engine, nb::rv_policy::take_ownership);
    if (engine)
        keepInstead(result, "allocator", keptIn(owner, "allocator"));
    return result;
}

} // namespace tw::python
