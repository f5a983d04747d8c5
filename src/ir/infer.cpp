// SPDX-License-Identifier: Apache-2.0
#include "ir/infer.h"

#include "base/check.h"
#include "ir/op_def.h"

namespace tw::ir {

Dim InferContext::freshSymbol(Range range)
{
    std::string const name = fmt::format("${}.{}", node_.id, fresh_.size());
    fresh_[name] = Symbol{range, true};
    return Dim::symbol(name);
}

void InferContext::output(int i, DataType type, Shape shape)
{
    if (int(outputs_.size()) <= i)
        outputs_.resize(i + 1);
    outputs_[i] = ValueInfo{type, std::move(shape), std::nullopt, true};
}

void InferContext::outputContent(int i, std::vector<Dim> content)
{
    TW_CHECK(i < int(outputs_.size()));
    if (int64_t(content.size()) <= kMaxContent)
        outputs_[i].content = std::move(content);
}

Error InferContext::error(std::string const& what) const
{
    return invalidArgument("{} '{}': {}", node_.op->name, node_.name, what);
}

std::string InferContext::describe(int i) const
{
    std::string s = "input ";
    s += i < int(node_.inputs.size()) && node_.inputs[i] ? "'" + node_.inputs[i]->name + "'" : std::to_string(i);
    if (has(i))
        s += " (" + std::string(nameOf(type(i))) + str(shape(i)) + ")";
    return s;
}

namespace {

std::optional<std::vector<Dim>> contentOfConstant(Value const& v)
{
    if (!v.isConstant() || (v.type != DataType::kInt32 && v.type != DataType::kBool) || !isStatic(v.shape))
        return std::nullopt;
    int64_t const count = extentsOf(v.shape).volume();
    if (count > kMaxContent || int64_t(v.constant->data->sizeBytes()) < count * sizeOf(v.type))
        return std::nullopt;
    std::vector<Dim> content;
    for (int64_t i = 0; i < count; ++i)
        content.emplace_back(v.type == DataType::kInt32 ? int64_t(v.constant->data->as<int32_t>()[i])
                                                        : int64_t(v.constant->data->as<uint8_t>()[i] != 0));
    return content;
}

} // namespace

ValueInfo infoOf(Value const& v)
{
    bool const isShape = v.type == DataType::kInt32 || v.type == DataType::kBool;
    if (isShape && isStatic(v.shape) && extentsOf(v.shape).volume() == 0) // whatever computes it
        return ValueInfo{v.type, v.shape, std::vector<Dim>(), true};
    return ValueInfo{v.type, v.shape, v.content ? v.content : contentOfConstant(v), true};
}

std::optional<Shape> broadcast(Shape const& a, Shape const& b, std::string& why)
{
    if (a.size() != b.size()) {
        why = "ranks differ: " + str(a) + " and " + str(b);
        return std::nullopt;
    }
    Shape out;
    for (size_t i = 0; i < a.size(); ++i) {
        if (a[i] == b[i] || b[i].is(1)) {
            out.push_back(a[i]);
        } else if (a[i].is(1)) {
            out.push_back(b[i]);
        } else if (a[i].isConst() && b[i].isConst()) {
            why = fmt::format("dimension {} of {} and {} must be equal or 1", i, str(a), str(b));
            return std::nullopt;
        } else if (a[i].isConst()) {
            out.push_back(a[i]); // the symbolic one can only be equal or 1
        } else if (b[i].isConst()) {
            out.push_back(b[i]);
        } else {
            out.push_back(max(a[i], b[i]));
        }
    }
    return out;
}

} // namespace tw::ir
