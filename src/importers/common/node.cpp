// SPDX-License-Identifier: Apache-2.0
// ImportContext: the node's attributes, inputs, outputs and errors. Network building is in layers.cpp, sizes in sizes.cpp.
#include "importers/common/node.h"

#include <algorithm>

namespace tw::importers {

using nvonnxparser::ErrorCode;

ImportContext::ImportContext(ImportedNetwork& to, std::string name, std::string opType, int opset,
                             std::vector<Value> inputs, std::vector<std::string> outputNames)
    : inputs_(std::move(inputs)), outputs_(outputNames.size()), to_(to), name_(std::move(name)),
      opType_(std::move(opType)), opset_(opset), outputNames_(std::move(outputNames))
{}

void ImportContext::fail(std::string const& why, Where where) const
{
    throw ImportError{ErrorCode::kUNSUPPORTED_NODE, why, where};
}

void ImportContext::refused(std::string const& what, Where where) const
{
    std::string const& reason = to_.reason();
    fail(fmt::format("{}: {}", what, reason.empty() ? "the network gave no reason" : reason), where);
}

void ImportContext::invalid(std::string const& why, Where where) const
{
    throw ImportError{ErrorCode::kINVALID_NODE, why, where};
}

void ImportContext::check(bool condition, std::string const& why, Where where) const
{
    if (!condition)
        fail(why, where);
}

void ImportContext::warn(std::string const& message) const
{
    to_.log(nvinfer1::ILogger::Severity::kWARNING, "node '" + name_ + "' (" + opType() + "): " + message);
}

// ---- attributes

template <class T>
T ImportContext::typed(char const* attr, T absent, char const* kind, Where where) const
{
    std::optional<Attribute> a = attribute(attr);
    if (!a)
        return absent;
    if (T* const value = std::get_if<T>(&*a))
        return std::move(*value);
    // A list of nothing may have no type.
    auto const* const none = std::get_if<std::vector<int64_t>>(&*a);
    if constexpr (requires { absent.at(0); } && !std::is_same_v<T, std::string>)
        if (none && none->empty())
            return {};
    invalid(fmt::format("attribute '{}' must be {}", attr, kind), where);
}

int64_t ImportContext::attrInt(char const* attr, int64_t absent, Where where) const
{
    return typed(attr, absent, "an integer", where);
}

float ImportContext::attrFloat(char const* attr, float absent, Where where) const
{
    return typed(attr, absent, "a number", where);
}

std::string ImportContext::attrString(char const* attr, std::string const& absent, Where where) const
{
    return typed(attr, absent, "a string", where);
}

std::vector<int64_t> ImportContext::attrInts(char const* attr, std::vector<int64_t> const& absent, Where where) const
{
    return typed(attr, absent, "a list of integers", where);
}

std::vector<float> ImportContext::attrFloats(char const* attr, std::vector<float> const& absent, Where where) const
{
    return typed(attr, absent, "a list of numbers", where);
}

std::vector<std::string> ImportContext::attrStrings(char const* attr, Where where) const
{
    return typed(attr, std::vector<std::string>(), "a list of strings", where);
}

Constant ImportContext::attrTensor(char const* attr, Where where) const
{
    std::optional<Attribute> a = attribute(attr);
    if (Constant* const value = a ? std::get_if<Constant>(&*a) : nullptr)
        return std::move(*value);
    invalid(fmt::format("attribute '{}' must be a tensor", attr), where);
}

int64_t ImportContext::requireInt(char const* attr, Where where) const
{
    if (!hasAttr(attr))
        invalid(fmt::format("attribute '{}' is missing", attr), where);
    return attrInt(attr, 0, where);
}

std::vector<int64_t> ImportContext::requireInts(char const* attr, Where where) const
{
    if (!hasAttr(attr))
        invalid(fmt::format("attribute '{}' is missing", attr), where);
    return attrInts(attr, {}, where);
}

// ---- inputs and outputs

Value const& ImportContext::input(int i, Where where) const
{
    if (!hasInput(i))
        invalid(fmt::format("input {} is missing", i), where);
    return inputs_[i];
}

Value ImportContext::optionalInput(int i) const
{
    return hasInput(i) ? inputs_[i] : Value();
}

ITensor& ImportContext::tensor(int i, Where where)
{
    return asTensor(input(i, where), where);
}

Constant const& ImportContext::constant(int i, char const* what, Where where) const
{
    Value const& v = input(i, where);
    if (!v.isConstant())
        fail(fmt::format("{} must be an initializer!", what), where);
    return v.constant();
}

std::vector<int64_t> ImportContext::constantInts(int i, char const* what, Where where) const
{
    Constant const& c = constant(i, what, where);
    if (isFloating(c.type))
        invalid(fmt::format("{} must hold integers", what), where);
    return c.ints();
}

std::vector<float> ImportContext::constantFloats(int i, char const* what, Where where) const
{
    decideBy(input(i, where));
    return constant(i, what, where).floats();
}

void ImportContext::withValues(int i)
{
    if (Value& v = inputs_[size_t(i)]; v.isConstant() && v.constant().later)
        v = Value(Constant(v.constant().later->values()));
}

void ImportContext::setOutput(int i, Value value, Where where)
{
    if (i >= nbOutputs())
        return; // the model does not use it
    if (value.isTensor() && value.dims().nbDims < 0)
        refused(fmt::format("the network found no dimensions for output {} ('{}')", i, outputName(i)), where);
    outputs_[i] = std::move(value);
}

int ImportContext::axis(int64_t axis, int rank, char const* what, Where where) const
{
    if (axis < -rank || axis >= rank)
        invalid(fmt::format("{} {} is out of range for rank {} (allowed: {}..{})", what, axis, rank, -rank, rank - 1),
                where);
    return int(axis < 0 ? axis + rank : axis);
}

std::vector<int> ImportContext::axes(std::vector<int64_t> const& axes, int rank, char const* what, Where where) const
{
    std::vector<int> result;
    for (int64_t a : axes) {
        int const checked = axis(a, rank, what, where);
        if (contains(result, checked))
            invalid(fmt::format("{} names dimension {} twice", what, checked), where);
        result.push_back(checked);
    }
    return result;
}

} // namespace tw::importers
