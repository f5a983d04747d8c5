// SPDX-License-Identifier: Apache-2.0
// Parameters of plugins, with what keeps their names and data alive.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <NvInfer.h>

#include "arguments.h"

namespace tw::python {

/// A str that may come as such or wrapped; the class of 8.5 for names.
struct FallbackString
{
    std::string text;
};

struct Field
{
    std::string name;
    nb::object owner; // a memoryview; invalid when the data belong to a creator
    void const* data = nullptr;
    nvinfer1::PluginFieldType type = nvinfer1::PluginFieldType::kUNKNOWN;
    int32_t size = 0; // elements
};

/// Shared: an element that Python holds outlives its list.
using Fields = std::vector<std::shared_ptr<Field>>;

/// What create_plugin() takes.
struct FieldCollection
{
    Fields fields;
};

/// Copies of the descriptions of a creator.
FieldCollection collectionOf(nvinfer1::PluginFieldCollection const* fields);

/// As the library reads it; the names and data belong to fields.
std::vector<nvinfer1::PluginField> descriptions(Fields const& fields);

void bindFields(nb::module_& m);

} // namespace tw::python

NB_MAKE_OPAQUE(tw::python::Fields)
