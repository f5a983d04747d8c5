// SPDX-License-Identifier: Apache-2.0
// Memory that Python classes give: for everything, and for outputs whose size is known only while the engine runs.
#include "callback.h"
#include "module.h"

namespace tw::python {

using namespace nvinfer1;

namespace {

nb::object number(void* address)
{
    return nb::steal(PyLong_FromVoidPtr(address));
}

void* addressOf(nb::object const& result)
{
    void* address = nullptr;
    if (!readAddress(result, true, address))
        throw nb::type_error("an address, as an integer, or None must be returned");
    return address;
}

class PythonAllocator final : public IGpuAllocator
{
public:
    void* allocate(uint64_t size, uint64_t alignment, AllocatorFlags flags) noexcept override
    {
        return callRequired<IGpuAllocator>(*this, "allocate", static_cast<void*>(nullptr), &addressOf, size, alignment,
                                           flags);
    }
    void free(void* memory) noexcept override
    {
        withPython("free", 0,
                   [&] { return callRequired<IGpuAllocator>(*this, "free", 0, &takeNothing, number(memory)); });
    }
    // Not every allocator can; the library knows what to do then.
    void* reallocate(void* memory, uint64_t alignment, uint64_t newSize) noexcept override
    {
        return withPython("reallocate", static_cast<void*>(nullptr), [&]() -> void* {
            nb::handle const self = nb::find(static_cast<IGpuAllocator const&>(*this));
            nb::object const found =
                self.is_valid() ? findOverride(self, nb::type<IGpuAllocator>(), "reallocate") : nb::object();
            return found.is_valid() ? addressOf(callPython(found, number(memory), alignment, newSize)) : nullptr;
        });
    }
    bool deallocate(void* memory) noexcept override
    {
        return withPython("deallocate", false, [&] {
            return callRequired<IGpuAllocator>(
                *this, "deallocate", false, [](nb::object const& isFreed) { return nb::cast<bool>(isFreed); },
                number(memory));
        });
    }
};

class PythonOutputAllocator final : public IOutputAllocator
{
public:
    void* reallocateOutput(char const* name, void* memory, uint64_t size, uint64_t alignment) noexcept override
    {
        return withPython("reallocate_output", static_cast<void*>(nullptr), [&] {
            return callRequired<IOutputAllocator>(*this, "reallocate_output", static_cast<void*>(nullptr), &addressOf,
                                                  name, number(memory), size, alignment);
        });
    }
    void notifyShape(char const* name, Dims const& dims) noexcept override
    {
        callRequired<IOutputAllocator>(*this, "notify_shape", 0, &takeNothing, name, dims);
    }
};

} // namespace

void bindAllocators(nb::module_& m)
{
    nb::class_<IGpuAllocator, PythonAllocator>(m, "IGpuAllocator",
                                               "Gives device memory. Derive from it, call its __init__ and define its "
                                               "methods; they are called from several threads.")
        .def(nb::init<>())
        .def(
            "allocate",
            [](IGpuAllocator&, uint64_t, uint64_t, uint32_t) -> Address { refuseAbstract("IGpuAllocator::allocate"); },
            nb::arg("size"), nb::arg("alignment"), nb::arg("flags"),
            "Memory of size bytes at a multiple of alignment, as an integer, or None. Bit i of flags is the "
            "AllocatorFlag of value i.")
        .def(
            "reallocate", [](IGpuAllocator&, Address, uint64_t, uint64_t) -> Address { return {}; }, nb::arg("address"),
            nb::arg("alignment"), nb::arg("new_size"),
            "Grows memory and keeps its contents; None where that cannot be, which is all the default gives.")
        .def(
            "free", [](IGpuAllocator&, Address) { refuseAbstract("IGpuAllocator::free"); }, nb::arg("memory"),
            "Replaced by deallocate().")
        .def(
            "deallocate", [](IGpuAllocator&, Address) -> bool { refuseAbstract("IGpuAllocator::deallocate"); },
            nb::arg("memory"), "Releases memory; False when it is not this allocator's.");

    nb::class_<IOutputAllocator, PythonOutputAllocator>(
        m, "IOutputAllocator",
        "Gives memory for an output whose size is known only while the engine runs. Derive from it, call its __init__ "
        "and define its methods.")
        .def(nb::init<>())
        .def_prop_ro("tensorrt_version", &IOutputAllocator::getInterfaceVersion, "Version of the interface.")
        .def(
            "reallocate_output",
            [](IOutputAllocator&, char const*, Address, uint64_t, uint64_t) -> Address {
                refuseAbstract("IOutputAllocator::reallocateOutput");
            },
            nb::arg("tensor_name"), nb::arg("memory"), nb::arg("size"), nb::arg("alignment"),
            "Memory of size bytes, as an integer. memory is what the output has now and may be given again if it is "
            "large enough; None fails the run.")
        .def(
            "notify_shape",
            [](IOutputAllocator&, char const*, Dims const&) { refuseAbstract("IOutputAllocator::notifyShape"); },
            nb::arg("tensor_name"), nb::arg("shape"), "Tells the output's actual dimensions.");
}

} // namespace tw::python
