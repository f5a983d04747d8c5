// SPDX-License-Identifier: Apache-2.0
#include "plugin_fields.h"

#include <nanobind/stl/shared_ptr.h>

#include "vector.h"

namespace tw::python {

using namespace nvinfer1;

namespace {

void setData(Field& self, nb::handle data)
{
    nb::object view = nb::steal(PyMemoryView_FromObject(data.ptr()));
    if (!view.is_valid())
        throw nb::python_error();
    Py_buffer const& buffer = *PyMemoryView_GET_BUFFER(view.ptr());
    if (!PyBuffer_IsContiguous(&buffer, 'C'))
        throw nb::value_error(("field '" + self.name + "': the data are not contiguous").c_str());
    self.data = buffer.buf;
    self.size = int32_t(buffer.itemsize ? buffer.len / buffer.itemsize : 0);
    self.owner = std::move(view);
}

} // namespace

FieldCollection collectionOf(PluginFieldCollection const* collection)
{
    FieldCollection result;
    for (int32_t i = 0; collection && i < collection->nbFields; ++i) {
        PluginField const& field = collection->fields[i];
        result.fields.push_back(
            std::make_shared<Field>(Field{field.name ? field.name : "", {}, field.data, field.type, field.length}));
    }
    return result;
}

std::vector<PluginField> descriptions(Fields const& fields)
{
    std::vector<PluginField> result;
    for (std::shared_ptr<Field> const& field : fields)
        result.emplace_back(field->name.c_str(), field->data, field->type, field->size);
    return result;
}

void bindFields(nb::module_& m)
{
    nb::class_<FallbackString>(m, "FallbackString", "A string; str stands for it.")
        .def(nb::init<std::string>(), nb::arg(), "The text.");
    nb::implicitly_convertible<nb::str, FallbackString>();

    nb::class_<Field>(m, "PluginField", "One named parameter of a plugin.")
        .def(
            "__init__", [](Field* self, FallbackString const& name) { new (self) Field{name.text}; },
            nb::arg("name") = FallbackString{}, "A parameter without data.")
        .def(
            "__init__",
            [](Field* self, FallbackString const& name, nb::object data, PluginFieldType type) {
                Field field{name.text};
                setData(field, data);
                field.type = type;
                new (self) Field(std::move(field));
            },
            nb::arg("name"), nb::arg("data"), nb::arg("type") = PluginFieldType::kUNKNOWN,
            "A parameter with the elements of a buffer, which is kept alive.")
        .def_prop_rw(
            "name", [](Field const& self) { return self.name; },
            [](Field& self, FallbackString const& name) { self.name = name.text; }, "Name of the parameter.")
        .def_prop_rw(
            "data", [](Field const& self) { return const_cast<void*>(self.data); }, &setData,
            "First element; set by a buffer.")
        .def_rw("type", &Field::type, "Type of an element.")
        .def_rw("size", &Field::size, "Number of elements.");

    bindVector<Fields, false>(m, "PluginFieldCollection", "Parameters for a plugin.");
    nb::class_<FieldCollection>(m, "PluginFieldCollection_", "Parameters as a creator takes and describes them.")
        .def(
            "__init__", [](FieldCollection* self, Fields const& fields) { new (self) FieldCollection{fields}; },
            nb::arg(), "The same parameters.")
        .def(
            "__len__", [](FieldCollection const& self) { return self.fields.size(); }, "Number of parameters.")
        .def(
            "__getitem__",
            [](FieldCollection const& self, Py_ssize_t index) { return self.fields[elementAt(self.fields, index)]; },
            nb::arg(), "One parameter.");
    nb::implicitly_convertible<Fields, FieldCollection>();
}

} // namespace tw::python
