// SPDX-License-Identifier: Apache-2.0
// ImportContext: the node's attributes, inputs, outputs and errors. Network building is in build.cpp, sizes in
// sizes.cpp.
#include <algorithm>
#include <cstring>

#include "onnx/importer.h"
#include "onnx/model.h"
#include "tw_onnx.pb.h"

namespace tw::onnx {

using nvonnxparser::ErrorCode;
using tw_onnx::AttributeProto;

namespace {

// Models decide how many elements a constant has; the importer knows how many it needs.
void checkElement(Constant const& c, int64_t i)
{
    if (i < 0 || i >= c.count)
        throw ImportError{ErrorCode::kINVALID_NODE,
                          (c.name.empty() ? std::string("a computed constant") : "constant '" + c.name + "'") +
                              " has " + std::to_string(c.count) + " elements; element " + std::to_string(i) +
                              " is needed",
                          SourceLocation::current()};
}

} // namespace

int64_t Constant::intAt(int64_t i) const
{
    checkElement(*this, i);
    switch (type) {
    case DataType::kINT32:
        return static_cast<int32_t const*>(values)[i];
    case DataType::kINT8:
        return static_cast<int8_t const*>(values)[i];
    case DataType::kBOOL:
    case DataType::kUINT8:
        return static_cast<uint8_t const*>(values)[i];
    default: {
        // Conversion of a float outside int64 would be undefined.
        double const v = floatAt(i);
        return v >= 9.2e18 ? INT64_MAX : v <= -9.2e18 ? INT64_MIN : v != v ? 0 : int64_t(v);
    }
    }
}

double Constant::floatAt(int64_t i) const
{
    checkElement(*this, i);
    switch (type) {
    case DataType::kFLOAT:
        return static_cast<float const*>(values)[i];
    case DataType::kHALF:
        return halfToFloat(static_cast<uint16_t const*>(values)[i]);
    default:
        return double(intAt(i));
    }
}

std::vector<int64_t> Constant::ints() const
{
    std::vector<int64_t> v(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
        v[i] = intAt(i);
    return v;
}

std::vector<float> Constant::floats() const
{
    std::vector<float> v(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
        v[i] = float(floatAt(i));
    return v;
}

Dims makeDims(std::vector<int64_t> const& values)
{
    Dims d{int32_t(std::min<size_t>(values.size(), Dims::MAX_DIMS)), {}};
    for (int i = 0; i < d.nbDims; ++i)
        d.d[i] = int32_t(values[i]);
    return d;
}

std::vector<int64_t> toVector(Dims const& dims)
{
    return {dims.d, dims.d + std::max(dims.nbDims, 0)};
}

int64_t volume(Dims const& dims)
{
    int64_t v = 1;
    if (!isStatic(dims))
        return -1;
    for (int i = 0; i < dims.nbDims; ++i)
        if (__builtin_mul_overflow(v, int64_t(dims.d[i]), &v))
            return INT64_MAX;
    return v;
}

bool isStatic(Dims const& dims)
{
    return dims.nbDims >= 0 && std::all_of(dims.d, dims.d + dims.nbDims, [](int32_t d) { return d >= 0; });
}

std::string describe(Dims const& dims)
{
    std::string s = "[";
    for (int i = 0; i < dims.nbDims; ++i)
        s += (i ? ", " : "") + std::to_string(dims.d[i]);
    return s + "]";
}

char const* typeName(DataType type)
{
    switch (type) {
    case DataType::kFLOAT:
        return "FLOAT";
    case DataType::kHALF:
        return "HALF";
    case DataType::kINT8:
        return "INT8";
    case DataType::kINT32:
        return "INT32";
    case DataType::kBOOL:
        return "BOOL";
    case DataType::kUINT8:
        return "UINT8";
    }
    return "unknown type";
}

bool isFloating(DataType type)
{
    return type == DataType::kFLOAT || type == DataType::kHALF;
}

std::vector<int> allAxes(int rank)
{
    std::vector<int> v(static_cast<size_t>(std::max(rank, 0)));
    for (int i = 0; i < rank; ++i)
        v[i] = i;
    return v;
}

ImportContext::ImportContext(ModelImporter& model, tw_onnx::NodeProto const& node, int nodeIndex,
                             std::vector<Value> inputs, int opset)
    : model_(model), node_(node), nodeIndex_(nodeIndex), opset_(opset), inputs_(std::move(inputs))
{
    name_ = !node.name().empty()     ? node.name()
            : node.output_size() > 0 ? "node_of_" + node.output(0)
                                     : node.op_type() + "_" + std::to_string(nodeIndex);
    outputs_.resize(size_t(node.output_size()));
}

std::string const& ImportContext::opType() const
{
    return node_.op_type();
}

nvinfer1::INetworkDefinition& ImportContext::network() const
{
    return model_.network();
}

void ImportContext::fail(std::string const& why, Where where) const
{
    throw ImportError{ErrorCode::kUNSUPPORTED_NODE, why, where};
}

void ImportContext::refused(std::string const& what, Where where) const
{
    std::string const& reason = model_.reason();
    fail(what + ": " + (reason.empty() ? "the network gave no reason" : reason), where);
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
    model_.log(nvinfer1::ILogger::Severity::kWARNING, "node '" + name_ + "' (" + opType() + "): " + message);
}

// ---- attributes

AttributeProto const* ImportContext::findAttr(char const* attr) const
{
    for (AttributeProto const& a : node_.attribute())
        if (a.name() == attr)
            return &a;
    return nullptr;
}

bool ImportContext::hasAttr(char const* attr) const
{
    return findAttr(attr) != nullptr;
}

namespace {

// The type field is missing in files of the first IR versions; then the content decides.
bool isA(AttributeProto const& a, AttributeProto::AttributeType type, bool present)
{
    return a.has_type() && a.type() != AttributeProto::UNDEFINED ? a.type() == type : present;
}

} // namespace

int64_t ImportContext::attrInt(char const* attr, int64_t absent, Where where) const
{
    auto const* a = findAttr(attr);
    if (!a)
        return absent;
    if (!isA(*a, AttributeProto::INT, a->has_i()))
        invalid("attribute '" + std::string(attr) + "' must be an integer", where);
    return a->i();
}

float ImportContext::attrFloat(char const* attr, float absent, Where where) const
{
    auto const* a = findAttr(attr);
    if (!a)
        return absent;
    if (!isA(*a, AttributeProto::FLOAT, a->has_f()))
        invalid("attribute '" + std::string(attr) + "' must be a number", where);
    return a->f();
}

std::string ImportContext::attrString(char const* attr, std::string const& absent, Where where) const
{
    auto const* a = findAttr(attr);
    if (!a)
        return absent;
    if (!isA(*a, AttributeProto::STRING, a->has_s()))
        invalid("attribute '" + std::string(attr) + "' must be a string", where);
    return a->s();
}

std::vector<int64_t> ImportContext::attrInts(char const* attr, std::vector<int64_t> const& absent, Where where) const
{
    auto const* a = findAttr(attr);
    if (!a)
        return absent;
    if (!isA(*a, AttributeProto::INTS, true))
        invalid("attribute '" + std::string(attr) + "' must be a list of integers", where);
    return {a->ints().begin(), a->ints().end()};
}

std::vector<float> ImportContext::attrFloats(char const* attr, std::vector<float> const& absent, Where where) const
{
    auto const* a = findAttr(attr);
    if (!a)
        return absent;
    if (!isA(*a, AttributeProto::FLOATS, true))
        invalid("attribute '" + std::string(attr) + "' must be a list of numbers", where);
    return {a->floats().begin(), a->floats().end()};
}

std::vector<std::string> ImportContext::attrStrings(char const* attr, Where where) const
{
    auto const* a = findAttr(attr);
    if (!a)
        return {};
    if (!isA(*a, AttributeProto::STRINGS, true))
        invalid("attribute '" + std::string(attr) + "' must be a list of strings", where);
    return {a->strings().begin(), a->strings().end()};
}

Constant ImportContext::attrTensor(char const* attr, Where where) const
{
    auto const* a = findAttr(attr);
    if (!a || !a->has_t())
        invalid("attribute '" + std::string(attr) + "' must be a tensor", where);
    return model_.weights().read(a->t(), "attribute '" + std::string(attr) + "'");
}

int64_t ImportContext::requireInt(char const* attr, Where where) const
{
    if (!hasAttr(attr))
        invalid("attribute '" + std::string(attr) + "' is missing", where);
    return attrInt(attr, 0, where);
}

std::vector<int64_t> ImportContext::requireInts(char const* attr, Where where) const
{
    if (!hasAttr(attr))
        invalid("attribute '" + std::string(attr) + "' is missing", where);
    return attrInts(attr, {}, where);
}

// ---- inputs and outputs

Value const& ImportContext::input(int i, Where where) const
{
    if (!hasInput(i))
        invalid("input " + std::to_string(i) + " is missing", where);
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
        fail(std::string(what) + " must be an initializer!", where);
    return v.constant();
}

std::vector<int64_t> ImportContext::constantInts(int i, char const* what, Where where) const
{
    Constant const& c = constant(i, what, where);
    if (isFloating(c.type))
        invalid(std::string(what) + " must hold integers", where);
    return c.ints();
}

std::vector<float> ImportContext::constantFloats(int i, char const* what, Where where) const
{
    decideBy(input(i, where));
    return constant(i, what, where).floats();
}

int ImportContext::nbOutputs() const
{
    return node_.output_size();
}

bool ImportContext::wantsOutput(int i) const
{
    return i < nbOutputs() && !node_.output(i).empty();
}

std::string ImportContext::outputName(int i) const
{
    return wantsOutput(i) ? node_.output(i) : std::string();
}

void ImportContext::setOutput(int i, Value value, Where where)
{
    if (i >= nbOutputs())
        return; // the model does not use it
    if (value.isTensor() && value.dims().nbDims < 0)
        refused("the network found no dimensions for output " + std::to_string(i) + " ('" + outputName(i) + "')",
                where);
    outputs_[i] = std::move(value);
}

int ImportContext::axis(int64_t axis, int rank, char const* what, Where where) const
{
    if (axis < -rank || axis >= rank)
        invalid(std::string(what) + " " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank) +
                    " (allowed: " + std::to_string(-rank) + ".." + std::to_string(rank - 1) + ")",
                where);
    return int(axis < 0 ? axis + rank : axis);
}

std::vector<int> ImportContext::axes(std::vector<int64_t> const& axes, int rank, char const* what, Where where) const
{
    std::vector<int> result;
    for (int64_t a : axes) {
        int const checked = axis(a, rank, what, where);
        if (std::find(result.begin(), result.end(), checked) != result.end())
            invalid(std::string(what) + " names dimension " + std::to_string(checked) + " twice", where);
        result.push_back(checked);
    }
    return result;
}

} // namespace tw::onnx
