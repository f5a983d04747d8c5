// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace tw::python {

namespace nb = nanobind;

/// An enumeration whose members are no integers but become some by int(), as those of 8.5.
template <class E>
nb::enum_<E> plainEnum(nb::handle scope, char const* name, char const* doc)
{
    nb::enum_<E> type(scope, name, doc);
    type.def("__repr__", [](nb::handle self) { return nb::str("<{}: {}>").format(nb::str(self), self.attr("value")); });
    type.def("__int__", [](E self) { return int64_t(self); }).def("__index__", [](E self) { return int64_t(self); });
    return type;
}

/// One whose members are also ordered among themselves.
template <class E>
nb::enum_<E> orderedEnum(nb::handle scope, char const* name, char const* doc)
{
    nb::enum_<E> type = plainEnum<E>(scope, name, doc);
    type.def(
            "__lt__", [](E a, E b) { return a < b; }, nb::is_operator())
        .def(
            "__gt__", [](E a, E b) { return a > b; }, nb::is_operator())
        .def(
            "__le__", [](E a, E b) { return a <= b; }, nb::is_operator())
        .def(
            "__ge__", [](E a, E b) { return a >= b; }, nb::is_operator());
    return type;
}

/// A second name for a member.
inline void addAlias(nb::handle type, char const* alias, char const* member)
{
    nb::object const existing = type.attr(member);
    type.attr(alias) = existing;
    type.attr("_member_map_")[alias] = existing; // which forbids the line above
}

} // namespace tw::python
