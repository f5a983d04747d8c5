// SPDX-License-Identifier: Apache-2.0
// Memory that crosses the API: weights, and the bytes that the library gives away.
#include "module.h"

namespace tw::python {

namespace {

using nvinfer1::IHostMemory;

int getBuffer(PyObject* object, Py_buffer* view, int flags)
{
    auto* const memory = nb::inst_ptr<IHostMemory>(object);
    return PyBuffer_FillInfo(view, object, memory->data(), Py_ssize_t(memory->size()), 0, flags);
}

PyType_Slot const kHostMemorySlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&getBuffer)}, {0, nullptr}};

} // namespace

int64_t itemBytes(nvinfer1::DataType type)
{
    switch (type) {
    case nvinfer1::DataType::kFLOAT:
    case nvinfer1::DataType::kINT32:
        return 4;
    case nvinfer1::DataType::kHALF:
        return 2;
    default:
        return 1;
    }
}

void bindWeights(nb::module_& m)
{
    nb::class_<Weights>(m, "Weights",
                        "An array of constants. NumPy arrays stand for it; their memory is used as it is, not copied.")
        .def(
            "__init__",
            [](Weights* self, nvinfer1::DataType type) {
                new (self) Weights{{type, nullptr, 0}, {}};
            },
            nb::arg("type") = nvinfer1::DataType::kFLOAT, "Empty weights.")
        .def(
            "__init__", [](Weights* self, WeightsArgument array) { new (self) Weights(array.weights); }, nb::arg("a"),
            "The elements of a NumPy array.")
        .def_prop_ro(
            "dtype", [](Weights const& self) { return self.description.type; }, "Element type.")
        .def_prop_ro(
            "size", [](Weights const& self) { return self.description.count; }, "Number of elements.")
        .def_prop_ro(
            "nbytes", [](Weights const& self) { return self.description.count * itemBytes(self.description.type); },
            "Size in bytes.")
        .def(
            "numpy", [](nb::handle self) { return arrayOfWeights(nb::cast<Weights&>(self).description, self); },
            "A one-dimensional NumPy array on the same memory.")
        .def(
            "__len__", [](Weights const& self) { return self.description.count; }, "Number of elements.");

    nb::class_<IHostMemory> memory(m, "IHostMemory", nb::type_slots(kHostMemorySlots),
                                   "Bytes owned by the library, such as a serialized engine. Has the buffer protocol.");
    memory.def_prop_ro("dtype", &IHostMemory::type, "Element type; INT8 for bytes without meaning to the client.")
        .def_prop_ro("nbytes", &IHostMemory::size, "Size in bytes.");
    defDelete(memory);
}

} // namespace tw::python
