// SPDX-License-Identifier: Apache-2.0
#include "module.h"

namespace tw::python {

namespace {

using nvinfer1::Dims;

// As tuples are written: (2, 3), (2,) and ().
std::string text(int32_t const* values, int32_t count)
{
    std::string result = "(";
    for (int32_t i = 0; i < count; ++i)
        result += (i ? ", " : "") + std::to_string(values[i]);
    return result + (count == 1 ? ",)" : ")");
}

size_t position(Py_ssize_t index, int32_t count)
{
    Py_ssize_t const at = index < 0 ? index + count : index;
    if (at < 0 || at >= count)
        throw nb::index_error(
            ("index " + std::to_string(index) + " is out of range for rank " + std::to_string(count)).c_str());
    return size_t(at);
}

nb::tuple asTuple(Dims const& self)
{
    nb::list values;
    for (int32_t i = 0; i < self.nbDims; ++i)
        values.append(self.d[i]);
    return nb::tuple(values);
}

nb::object equals(Dims const& self, nb::handle other)
{
    if (nb::isinstance<Dims>(other))
        return nb::bool_(asTuple(self).equal(asTuple(nb::cast<Dims const&>(other))));
    if (nb::isinstance<nb::list>(other) || nb::isinstance<nb::tuple>(other))
        return nb::bool_(self.nbDims >= 0 && asTuple(self).equal(nb::tuple(other)));
    return nb::borrow(Py_NotImplemented);
}

void assignSlice(Dims& self, nb::slice slice, Dims const& values)
{
    auto const [start, stop, step, count] = slice.compute(size_t(std::max(self.nbDims, 0)));
    (void)stop;
    if (count != size_t(values.nbDims))
        throw nb::value_error(
            ("a slice of " + std::to_string(count) + " dimensions cannot take " + std::to_string(values.nbDims))
                .c_str());
    for (size_t i = 0; i < count; ++i)
        self.d[Py_ssize_t(start) + Py_ssize_t(i) * step] = values.d[i];
}

// The constructors that all share: empty, and of a sequence.
template <class D, class Class>
Class& defSequence(Class& type)
{
    type.def(nb::init<>(), "All dimensions 0.");
    type.def(
        "__init__", [](D* self, D const& shape) { new (self) D(shape); }, nb::arg("shape"),
        "The numbers of a sequence.");
    return type;
}

} // namespace

void bindDims(nb::module_& m)
{
    nb::class_<Dims> dims(m, "Dims",
                          "Dimensions of a tensor, outermost first; -1 is a wildcard. Lists and tuples stand for it.");
    dims.def(
        "__init__", [](Dims* self) { new (self) Dims{}; }, "No dimensions.");
    dims.def(
        "__init__", [](Dims* self, Dims const& shape) { new (self) Dims(shape); }, nb::arg("shape"),
        "The numbers of a sequence.");
    dims.attr("__hash__") = nb::none(); // they can change
    dims.attr("MAX_DIMS") = nb::int_(Dims::MAX_DIMS);
    dims.def(
            "__str__", [](Dims const& self) { return text(self.d, self.nbDims); }, "The numbers as a tuple is written.")
        .def(
            "__repr__", [](Dims const& self) { return text(self.d, self.nbDims); },
            "The numbers as a tuple is written.")
        .def("__eq__", &equals, nb::arg().none(), "Whether a list, a tuple or dimensions hold the same numbers.")
        .def(
            "__len__", [](Dims const& self) { return Py_ssize_t(self.nbDims); },
            "Rank. Dimensions that could not be computed have none, and raise ValueError.")
        .def(
            "__getitem__", [](Dims const& self, Py_ssize_t index) { return self.d[position(index, self.nbDims)]; },
            nb::arg(), "One dimension.")
        .def(
            "__getitem__",
            [](Dims const& self, nb::slice slice) {
                return nb::steal(PyObject_GetItem(asTuple(self).ptr(), slice.ptr()));
            },
            nb::arg(), "A tuple of some dimensions.")
        .def(
            "__setitem__",
            [](Dims& self, Py_ssize_t index, int32_t value) { self.d[position(index, self.nbDims)] = value; },
            nb::arg(), nb::arg(), "Replaces one dimension.")
        .def("__setitem__", &assignSlice, nb::arg(), nb::arg(), "Replaces some dimensions by as many.");

    nb::class_<nvinfer1::Dims2, Dims> dims2(m, "Dims2", "Two dimensions.");
    defSequence<nvinfer1::Dims2>(dims2).def(nb::init<int32_t, int32_t>(), nb::arg("dim0"), nb::arg("dim1"),
                                            "The two numbers.");
    nb::class_<nvinfer1::DimsHW, nvinfer1::Dims2> dimsHw(m, "DimsHW", "Height and width.");
    defSequence<nvinfer1::DimsHW>(dimsHw)
        .def(nb::init<int32_t, int32_t>(), nb::arg("h"), nb::arg("w"), "The two numbers.")
        .def_prop_rw(
            "h", [](nvinfer1::DimsHW const& self) { return self.d[0]; },
            [](nvinfer1::DimsHW& self, int32_t value) { self.d[0] = value; }, "Height.")
        .def_prop_rw(
            "w", [](nvinfer1::DimsHW const& self) { return self.d[1]; },
            [](nvinfer1::DimsHW& self, int32_t value) { self.d[1] = value; }, "Width.");
    nb::class_<nvinfer1::Dims3, Dims> dims3(m, "Dims3", "Three dimensions.");
    defSequence<nvinfer1::Dims3>(dims3).def(nb::init<int32_t, int32_t, int32_t>(), nb::arg("dim0"), nb::arg("dim1"),
                                            nb::arg("dim2"), "The three numbers.");
    nb::class_<nvinfer1::Dims4, Dims> dims4(m, "Dims4", "Four dimensions.");
    defSequence<nvinfer1::Dims4>(dims4).def(nb::init<int32_t, int32_t, int32_t, int32_t>(), nb::arg("dim0"),
                                            nb::arg("dim1"), nb::arg("dim2"), nb::arg("dim3"), "The four numbers.");

    using nvinfer1::Permutation;
    nb::class_<Permutation>(
        m, "Permutation",
        "Order of dimensions: output dimension i is input dimension order[i]. Lists and tuples stand for it.")
        .def(
            "__init__", [](Permutation* self) { new (self) Permutation{}; }, "All zeros.")
        .def(
            "__init__", [](Permutation* self, Permutation const& order) { new (self) Permutation(order); }, nb::arg(),
            "The numbers of a sequence.")
        .def(
            "__str__", [](Permutation const& self) { return text(self.order, Dims::MAX_DIMS); },
            "The numbers as a tuple is written.")
        .def(
            "__repr__", [](Permutation const& self) { return text(self.order, Dims::MAX_DIMS); },
            "The numbers as a tuple is written.")
        .def(
            "__getitem__",
            [](Permutation const& self, Py_ssize_t index) { return self.order[position(index, Dims::MAX_DIMS)]; },
            nb::arg(), "One number.")
        .def(
            "__setitem__",
            [](Permutation& self, Py_ssize_t index, int32_t value) {
                self.order[position(index, Dims::MAX_DIMS)] = value;
            },
            nb::arg(), nb::arg(), "Replaces one number.")
        .def(
            "__len__", [](Permutation const&) { return int32_t(Dims::MAX_DIMS); }, "Always Dims.MAX_DIMS.");
}

} // namespace tw::python
