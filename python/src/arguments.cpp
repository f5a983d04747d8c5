// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"

#include <cstring>
#include <utility>

namespace tw::python {

namespace {

struct NumpyType
{
    char const* name;
    nvinfer1::DataType type;
};

constexpr NumpyType kNumpyTypes[] = {
    {"float32", nvinfer1::DataType::kFLOAT}, {"float16", nvinfer1::DataType::kHALF},
    {"int8", nvinfer1::DataType::kINT8},     {"int32", nvinfer1::DataType::kINT32},
    {"bool", nvinfer1::DataType::kBOOL},     {"uint8", nvinfer1::DataType::kUINT8},
};

char const* numpyName(nvinfer1::DataType type)
{
    for (NumpyType const& known : kNumpyTypes)
        if (known.type == type)
            return known.name;
    throw nb::value_error("weights: the data type is none of tensorrt.DataType");
}

std::string typeName(nb::handle object)
{
    return nb::cast<std::string>(nb::str(object.type().attr("__name__")));
}

} // namespace

Buffer::Buffer(Buffer&& other) noexcept : view_(std::exchange(other.view_, {})) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept
{
    std::swap(view_, other.view_);
    return *this;
}

Buffer::~Buffer()
{
    if (view_.obj)
        PyBuffer_Release(&view_);
}

bool Buffer::open(nb::handle object)
{
    return PyObject_GetBuffer(object.ptr(), &view_, PyBUF_ND | PyBUF_FORMAT) == 0;
}

bool isSequence(nb::handle object)
{
    return PySequence_Check(object.ptr()) && !PyUnicode_Check(object.ptr()) && !PyBytes_Check(object.ptr());
}

bool readIntegers(nb::handle sequence, int32_t* values, int32_t most, int32_t& count, std::string& error)
{
    count = 0;
    Py_ssize_t const size = PySequence_Size(sequence.ptr());
    if (size < 0 || size > most) {
        PyErr_Clear();
        error = size < 0
                    ? "dimensions: the sequence has no length"
                    : "dimensions: " + std::to_string(size) + " are too many, the limit is " + std::to_string(most);
        return false;
    }
    for (Py_ssize_t i = 0; i < size; ++i) {
        nb::object const item = nb::steal(PySequence_GetItem(sequence.ptr(), i));
        nb::object const index = item.is_valid() ? nb::steal(PyNumber_Index(item.ptr())) : nb::object();
        int overflow = 0;
        long const value = index.is_valid() ? PyLong_AsLongAndOverflow(index.ptr(), &overflow) : 0;
        PyErr_Clear();
        if (!index.is_valid() || overflow || value != int32_t(value)) {
            error = "dimensions: number " + std::to_string(i) + " is " +
                    (index.is_valid() ? "beyond 32 bits"
                                      : "no integer but " + (item.is_valid() ? typeName(item) : "nothing"));
            return false;
        }
        values[i] = int32_t(value);
    }
    count = int32_t(size);
    return true;
}

bool readAddress(nb::handle object, bool acceptsNone, void*& pointer)
{
    pointer = nullptr;
    if (object.is_none())
        return acceptsNone;
    if (PyCapsule_CheckExact(object.ptr())) {
        pointer = PyCapsule_GetPointer(object.ptr(), PyCapsule_GetName(object.ptr()));
        return pointer != nullptr;
    }
    if (PyFloat_Check(object.ptr()) || PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr()))
        return false;
    // Through __int__ alone only what is no array and no real number: those have it as well.
    nb::object number = nb::steal(PyNumber_Index(object.ptr()));
    if (!number.is_valid()) {
        PyErr_Clear();
        if (PySequence_Check(object.ptr()) || PyObject_HasAttrString(object.ptr(), "__float__"))
            return false;
        number = nb::steal(PyNumber_Long(object.ptr()));
    }
    if (number.is_valid())
        pointer = PyLong_AsVoidPtr(number.ptr());
    bool const isRead = number.is_valid() && !PyErr_Occurred();
    PyErr_Clear();
    return isRead;
}

bool readAddresses(nb::handle object, std::vector<void*>& pointers)
{
    if (!isSequence(object))
        return false;
    Py_ssize_t const size = PySequence_Size(object.ptr());
    PyErr_Clear();
    for (Py_ssize_t i = 0; i < size; ++i) {
        nb::object const item = nb::steal(PySequence_GetItem(object.ptr(), i));
        void* pointer = nullptr;
        if (!item.is_valid() || !readAddress(item, true, pointer)) {
            PyErr_Clear();
            return false;
        }
        pointers.push_back(pointer);
    }
    return size >= 0;
}

Weights weightsOfArray(nb::handle array)
{
    nb::module_ const numpy = nb::module_::import_("numpy");
    if (!nb::isinstance(array, numpy.attr("ndarray")) && !nb::isinstance(array, numpy.attr("generic")))
        throw nb::type_error("weights: a NumPy array or tensorrt.Weights is expected here");
    Weights result;
    nb::object const dtype = array.attr("dtype");
    std::string const name = nb::cast<std::string>(nb::str(dtype.attr("name")));
    NumpyType const* found = nullptr;
    for (NumpyType const& known : kNumpyTypes)
        if (name == known.name)
            found = &known;
    if (!found || !nb::cast<bool>(dtype.attr("isnative"))) {
        std::string const message =
            "weights: arrays of NumPy type " + nb::cast<std::string>(nb::str(dtype.attr("str"))) + " (" + name +
            ") cannot be used; convert with astype() to float32, float16, int32, int8, bool or uint8";
        throw nb::type_error(message.c_str());
    }
    nb::object const contiguous = numpy.attr("ascontiguousarray")(array);
    result.description.type = found->type;
    result.description.count = nb::cast<int64_t>(contiguous.attr("size"));
    Address address;
    nb::object const data = contiguous.attr("ctypes").attr("data");
    readAddress(data, false, address.pointer);
    result.description.values = result.description.count ? address.pointer : nullptr;
    result.owner = contiguous;
    return result;
}

Array arrayOfWeights(nvinfer1::Weights weights, nb::handle owner)
{
    nb::module_ const numpy = nb::module_::import_("numpy");
    nb::object const dtype = numpy.attr("dtype")(numpyName(weights.type));
    if (!weights.values || weights.count <= 0)
        return nb::borrow<Array>(numpy.attr("empty")(0, dtype));
    // NumPy keeps the object that has __array_interface__, and that one keeps the owner.
    nb::object const holder = nb::module_::import_("types").attr("SimpleNamespace")();
    nb::dict interface;
    interface["version"] = 3;
    interface["typestr"] = dtype.attr("str");
    interface["shape"] = nb::make_tuple(weights.count);
    interface["data"] = nb::make_tuple(nb::steal(PyLong_FromVoidPtr(const_cast<void*>(weights.values))), false);
    holder.attr("__array_interface__") = interface;
    holder.attr("owner") = owner;
    return nb::borrow<Array>(numpy.attr("asarray")(holder));
}

void keepAlive(nb::handle nurse, nb::handle patient)
{
    nb::keep_alive_obj(nurse, patient);
}

void keepAlive(nb::handle nurse, void* payload, void (*free)(void*) noexcept)
{
    nb::keep_alive_cb(nurse, payload, free);
}

namespace {

void warn(std::string const& message)
{
    if (PyErr_WarnEx(PyExc_DeprecationWarning, message.c_str(), 1) != 0)
        throw nb::python_error();
}

} // namespace

void warnDeprecated(char const* use)
{
    warn(std::string("Use ") + use + " instead.");
}

void warnContextManager()
{
    warn("Context managers for TensorRT types are deprecated. Objects are freed when nothing refers to them.");
}

} // namespace tw::python
