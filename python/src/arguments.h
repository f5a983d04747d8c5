// SPDX-License-Identifier: Apache-2.0
// How Python arguments become C++ ones where nanobind's own ways do not do what users of 8.5 expect.
#pragma once

#include <string>
#include <vector>

#include <NvInfer.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

namespace tw::python {

namespace nb = nanobind;

/// An address, a stream or an event: an int, anything with __index__ or __int__ (streams of cuda-python, allocations of
/// PyCUDA), or a capsule.
struct Address
{
    void* pointer = nullptr;
};

/// As above; None is null.
struct OptionalAddress : Address
{};

/// Addresses for bindings: any sequence of what Address takes.
struct Addresses
{
    std::vector<void*> pointers;
};

/// Bytes of any object with the buffer protocol, held while this lives. Freed with the GIL.
class Buffer
{
public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept;
    Buffer& operator=(Buffer&& other) noexcept;
    ~Buffer();

    /// Leaves a Python error behind when it is false.
    bool open(nb::handle object);

    void const* data() const { return view_.buf; }
    size_t size() const { return view_.obj ? size_t(view_.len) : 0; }
    Py_buffer const& view() const { return view_; }

private:
    Py_buffer view_{};
};

/// What the Python class Weights is: the description and what keeps the memory alive.
struct Weights
{
    nvinfer1::Weights description{nvinfer1::DataType::kFLOAT, nullptr, 0};
    nb::object owner;
};

/// A parameter of type Weights: an instance of it, a NumPy array, or None for empty weights.
struct WeightsArgument
{
    Weights weights;
};

/// Bytes of an element.
int64_t itemBytes(nvinfer1::DataType type);

/// The weights of a NumPy array; throws what a caller of Python can read. Copies only what is not contiguous.
Weights weightsOfArray(nb::handle array);

/// The elements of a sequence of integers. False with a reason in error.
bool readIntegers(nb::handle sequence, int32_t* values, int32_t most, int32_t& count, std::string& error);

/// True for what stands for dimensions without being one of the classes: lists, tuples, other sequences of integers.
bool isSequence(nb::handle object);

/// False when the object stands for no address.
bool readAddress(nb::handle object, bool acceptsNone, void*& pointer);
bool readAddresses(nb::handle object, std::vector<void*>& pointers);

/// A numpy.ndarray, by this name in signatures.
class Array : public nb::object
{
public:
    static bool check(nb::handle) { return true; } // made here, never an argument
    NB_OBJECT(Array, nb::object, "numpy.ndarray", check)
};

/// Gives a NumPy view of weights; owner keeps their memory alive.
Array arrayOfWeights(nvinfer1::Weights weights, nb::handle owner);

/// Keeps patient alive until nurse is freed.
void keepAlive(nb::handle nurse, nb::handle patient);

/// Calls free with payload when nurse is freed: after its C++ object, before what is kept by Python reference.
void keepAlive(nb::handle nurse, void* payload, void (*free)(void*) noexcept);

/// DeprecationWarning: "Use X instead.". Throws where warnings are errors.
void warnDeprecated(char const* use);

/// DeprecationWarning of `with`.
void warnContextManager();

} // namespace tw::python

namespace nanobind::detail {

/// Dimensions are also lists and tuples. kRank -1: any up to eight.
template <class D, int kRank>
struct dims_caster : type_caster_base<D>
{
    using Base = type_caster_base<D>;
    template <typename T>
    using Cast = precise_cast_t<T>;

    bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept
    {
        if (Base::from_python(source, flags & ~uint32_t(cast_flags::convert), cleanup)) {
            pointer_ = Base::operator D*();
            return true;
        }
        PyErr_Clear();
        if (source.is_none() || !tw::python::isSequence(source))
            return false;
        int32_t count = 0;
        if (tw::python::readIntegers(source, local_.d, D::MAX_DIMS, count, error_) && kRank >= 0 && count != kRank)
            error_ = "dimensions: " + std::to_string(kRank) + " are expected here, not " + std::to_string(count);
        local_.nbDims = count;
        pointer_ = &local_;
        return true;
    }

    template <typename T>
    bool can_cast() const noexcept
    {
        return true;
    }

    operator D*() { return checked(); }
    operator D&() { return *checked(); }
    operator D&&() { return (D &&) * checked(); }

private:
    D* checked()
    {
        if (!error_.empty())
            throw value_error(error_.c_str());
        return pointer_;
    }

    D local_{};
    D* pointer_ = nullptr;
    std::string error_;
};

template <>
struct type_caster<nvinfer1::Dims32> : dims_caster<nvinfer1::Dims32, -1>
{};
template <>
struct type_caster<nvinfer1::Dims2> : dims_caster<nvinfer1::Dims2, 2>
{};
template <>
struct type_caster<nvinfer1::DimsHW> : dims_caster<nvinfer1::DimsHW, 2>
{};
template <>
struct type_caster<nvinfer1::Dims3> : dims_caster<nvinfer1::Dims3, 3>
{};
template <>
struct type_caster<nvinfer1::Dims4> : dims_caster<nvinfer1::Dims4, 4>
{};

/// A permutation is also a list or tuple.
template <>
struct type_caster<nvinfer1::Permutation> : type_caster_base<nvinfer1::Permutation>
{
    using Base = type_caster_base<nvinfer1::Permutation>;
    template <typename T>
    using Cast = precise_cast_t<T>;

    bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept
    {
        if (Base::from_python(source, flags & ~uint32_t(cast_flags::convert), cleanup)) {
            pointer_ = Base::operator nvinfer1::Permutation*();
            return true;
        }
        PyErr_Clear();
        if (source.is_none() || !tw::python::isSequence(source))
            return false;
        int32_t count = 0;
        tw::python::readIntegers(source, local_.order, nvinfer1::Dims::MAX_DIMS, count, error_);
        pointer_ = &local_;
        return true;
    }

    template <typename T>
    bool can_cast() const noexcept
    {
        return true;
    }

    operator nvinfer1::Permutation*() { return checked(); }
    operator nvinfer1::Permutation&() { return *checked(); }
    operator nvinfer1::Permutation&&() { return (nvinfer1::Permutation &&) * checked(); }

private:
    nvinfer1::Permutation* checked()
    {
        if (!error_.empty())
            throw value_error(error_.c_str());
        return pointer_;
    }

    nvinfer1::Permutation local_{};
    nvinfer1::Permutation* pointer_ = nullptr;
    std::string error_;
};

template <>
struct type_caster<tw::python::Address>
{
    NB_TYPE_CASTER(tw::python::Address, const_name("int"))

    bool from_python(handle source, uint32_t, cleanup_list*) noexcept
    {
        return tw::python::readAddress(source, false, value.pointer);
    }
    static handle from_cpp(tw::python::Address const& address, rv_policy, cleanup_list*) noexcept
    {
        return PyLong_FromVoidPtr(address.pointer);
    }
};

template <>
struct type_caster<tw::python::OptionalAddress>
{
    NB_TYPE_CASTER(tw::python::OptionalAddress, const_name("int | None"))

    bool from_python(handle source, uint32_t, cleanup_list*) noexcept
    {
        return tw::python::readAddress(source, true, value.pointer);
    }
};

template <>
struct type_caster<tw::python::Addresses>
{
    NB_TYPE_CASTER(tw::python::Addresses, const_name("collections.abc.Sequence[int]"))

    bool from_python(handle source, uint32_t, cleanup_list*) noexcept
    {
        return tw::python::readAddresses(source, value.pointers);
    }
};

template <>
struct type_caster<tw::python::Buffer>
{
    NB_TYPE_CASTER(tw::python::Buffer, const_name("collections.abc.Buffer"))

    bool from_python(handle source, uint32_t, cleanup_list*) noexcept
    {
        if (value.open(source))
            return true;
        PyErr_Clear();
        return false;
    }
};

/// Reads the array when the function asks for it, so that what is wrong with it is said in the exception.
template <>
struct type_caster<tw::python::WeightsArgument>
{
    using Value = tw::python::WeightsArgument;
    static constexpr auto Name = make_caster<tw::python::Weights>::Name + const_name(" | numpy.ndarray");
    template <typename T>
    using Cast = Value;
    template <typename T>
    static constexpr bool can_cast()
    {
        return true;
    }

    bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept
    {
        source_ = source;
        if (source.is_none())
            return (flags & cast_flags::accepts_none) != 0;
        make_caster<tw::python::Weights> weights;
        if (!weights.from_python(source, flags & ~uint32_t(cast_flags::convert), cleanup)) {
            PyErr_Clear();
            return PyObject_HasAttrString(source.ptr(), "__array_interface__") != 0;
        }
        weights_ = weights.operator tw::python::Weights*();
        return true;
    }

    explicit operator Value()
    {
        if (weights_)
            return {*weights_};
        if (source_.is_none())
            return {};
        return {tw::python::weightsOfArray(source_)};
    }

private:
    handle source_;
    tw::python::Weights const* weights_ = nullptr;
};

} // namespace nanobind::detail
