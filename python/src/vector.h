// SPDX-License-Identifier: Apache-2.0
// Lists of C++ values as Python classes, with the names that 8.5 gives their parameters.
#pragma once

#include <algorithm>
#include <string>

#include <nanobind/nanobind.h>

namespace tw::python {

namespace nb = nanobind;

/// A position that exists; negative numbers count from the end.
template <class Vector>
size_t elementAt(Vector const& vector, Py_ssize_t index)
{
    Py_ssize_t const count = Py_ssize_t(vector.size());
    Py_ssize_t const at = index < 0 ? index + count : index;
    if (at < 0 || at >= count)
        throw nb::index_error(
            ("index " + std::to_string(index) + " is out of range: there are " + std::to_string(count)).c_str());
    return size_t(at);
}

template <class Vector>
void extendBy(Vector& self, nb::iterable const& values)
{
    for (nb::handle value : values)
        self.push_back(nb::cast<typename Vector::value_type>(value));
}

template <class Vector>
nb::list listOf(Vector const& self)
{
    nb::list list;
    for (auto const& value : self)
        list.append(nb::cast(value));
    return list;
}

/// list defines the class; elements that can be compared bring what needs comparing.
template <class Vector, bool kComparable>
nb::class_<Vector> bindVector(nb::module_& m, char const* name, char const* doc)
{
    using T = typename Vector::value_type;
    nb::class_<Vector> type(m, name, doc);
    type.def(nb::init<>(), "An empty list.")
        .def(nb::init<Vector const&>(), nb::arg(), "A copy.")
        .def(
            "__init__",
            [](Vector* self, nb::iterable values) {
                Vector list;
                extendBy(list, values);
                new (self) Vector(std::move(list));
            },
            nb::arg(), "The elements of an iterable.")
        .def(
            "append", [](Vector& self, T x) { self.push_back(std::move(x)); }, nb::arg("x"),
            "Adds an element at the end.")
        .def(
            "clear", [](Vector& self) { self.clear(); }, "Takes all elements out.")
        .def(
            "extend",
            [](Vector& self, Vector const& other) {
                self = [&] {
                    Vector both(self);
                    both.insert(both.end(), other.begin(), other.end());
                    return both;
                }();
            },
            nb::arg("L"), "Adds the elements of another list.")
        .def(
            "extend",
            [](Vector& self, nb::iterable values) {
                Vector longer(self);
                extendBy(longer, values);
                self.swap(longer);
            },
            nb::arg("L"), "Adds the elements of an iterable.")
        .def(
            "insert",
            [](Vector& self, Py_ssize_t i, T x) {
                Py_ssize_t const at = i < 0 ? i + Py_ssize_t(self.size()) : i;
                if (at < 0 || size_t(at) > self.size())
                    throw nb::index_error(
                        ("index " + std::to_string(i) + " is out of range: there are " + std::to_string(self.size()))
                            .c_str());
                self.insert(self.begin() + at, std::move(x));
            },
            nb::arg("i"), nb::arg("x"), "Adds an element before position i.")
        .def(
            "pop",
            [](Vector& self) {
                T last = self[elementAt(self, -1)];
                self.pop_back();
                return last;
            },
            "Takes the last element out and gives it.")
        .def(
            "pop",
            [](Vector& self, Py_ssize_t i) {
                size_t const at = elementAt(self, i);
                T taken = self[at];
                self.erase(self.begin() + Py_ssize_t(at));
                return taken;
            },
            nb::arg("i"), "Takes the element at position i out and gives it.")
        .def(
            "__setitem__", [](Vector& self, Py_ssize_t i, T x) { self[elementAt(self, i)] = std::move(x); }, nb::arg(),
            nb::arg(), "Replaces an element.")
        .def(
            "__setitem__",
            [](Vector& self, nb::slice slice, Vector const& given) {
                Vector const values(given); // it may be self
                auto const [start, stop, step, count] = slice.compute(self.size());
                (void)stop;
                if (count != values.size())
                    throw nb::value_error(("a slice of " + std::to_string(count) + " elements cannot take " +
                                           std::to_string(values.size()))
                                              .c_str());
                for (size_t i = 0; i < count; ++i)
                    self[size_t(Py_ssize_t(start) + Py_ssize_t(i) * step)] = values[i];
            },
            nb::arg(), nb::arg(), "Replaces some elements by as many.")
        .def(
            "__getitem__",
            [](Vector const& self, nb::slice slice) {
                auto const [start, stop, step, count] = slice.compute(self.size());
                (void)stop;
                Vector some;
                for (size_t i = 0; i < count; ++i)
                    some.push_back(self[size_t(Py_ssize_t(start) + Py_ssize_t(i) * step)]);
                return some;
            },
            nb::arg("s"), "Some elements, as a list of its own.")
        .def(
            "__getitem__", [](Vector const& self, Py_ssize_t i) -> T { return self[elementAt(self, i)]; }, nb::arg(),
            "One element.")
        .def(
            "__delitem__",
            [](Vector& self, Py_ssize_t i) { self.erase(self.begin() + Py_ssize_t(elementAt(self, i))); }, nb::arg(),
            "Takes an element out.")
        .def(
            "__delitem__",
            [](Vector& self, nb::slice slice) {
                auto const [start, stop, step, count] = slice.compute(self.size());
                (void)stop;
                std::vector<bool> isOut(self.size());
                for (size_t i = 0; i < count; ++i)
                    isOut[size_t(Py_ssize_t(start) + Py_ssize_t(i) * step)] = true;
                Vector kept;
                for (size_t i = 0; i < self.size(); ++i)
                    if (!isOut[i])
                        kept.push_back(self[i]);
                self.swap(kept);
            },
            nb::arg(), "Takes some elements out.")
        // Over a copy: the list may change meanwhile.
        .def(
            "__iter__", [](Vector const& self) { return nb::iter(listOf(self)); }, "Iterates over the elements.")
        .def(
            "__bool__", [](Vector const& self) { return !self.empty(); }, "Whether there are elements.")
        .def(
            "__len__", [](Vector const& self) { return self.size(); }, "Number of elements.");
    if constexpr (kComparable)
        type.def(
                "__eq__", [](Vector const& self, Vector const& other) { return self == other; }, nb::arg(),
                nb::is_operator(), "Whether both hold the same elements.")
            .def(
                "__ne__", [](Vector const& self, Vector const& other) { return !(self == other); }, nb::arg(),
                nb::is_operator(), "Whether they differ.")
            .def(
                "count", [](Vector const& self, T x) { return std::count(self.begin(), self.end(), x); }, nb::arg("x"),
                "How often an element is there.")
            .def(
                "remove",
                [](Vector& self, T x) {
                    auto const found = std::find(self.begin(), self.end(), x);
                    if (found == self.end())
                        throw nb::value_error("remove: the element is not there");
                    self.erase(found);
                },
                nb::arg("x"), "Takes the first such element out.")
            .def(
                "__contains__",
                [](Vector const& self, T x) { return std::find(self.begin(), self.end(), x) != self.end(); },
                nb::arg("x"), "Whether an element is there.");
    return type;
}

} // namespace tw::python
