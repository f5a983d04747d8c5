// SPDX-License-Identifier: Apache-2.0
#include "ops/plugin/op.h"

#include <algorithm>
#include <charconv>

#include "tactic/layer_facts.h"
#include "tactic/registry.h"

namespace tw::ops::plugin {

std::string symbolOf(size_t input, size_t dimension)
{
    return fmt::format("x{}.{}", input, dimension);
}

std::string textOf(std::vector<ir::Shape> const& shapes)
{
    std::string text;
    for (size_t i = 0; i < shapes.size(); ++i) {
        text += i ? ";[" : "[";
        for (size_t d = 0; d < shapes[i].size(); ++d)
            text += (d ? "|" : "") + shapes[i][d].str(); // no comma: functions have them
        text += "]";
    }
    return text;
}

std::string describe(ir::Node const& node)
{
    auto const& s = node.attrsAs<Attrs>().state;
    return "layer '" + node.name + "' (plugin '" + s.type + "' version '" + s.version + "'" +
           (s.nameSpace.empty() ? "" : " namespace '" + s.nameSpace + "'") + ")";
}

namespace {

using ir::Dim;
using ir::Shape;

bool isNameChar(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

// The dimension that a name stands for; null: none, such as a function.
Dim const* dimensionOf(ir::InferContext const& ctx, std::string_view name)
{
    size_t input = 0, dimension = 0;
    if (name.empty() || name[0] != 'x')
        return nullptr;
    char const* const end = name.data() + name.size();
    auto const first = std::from_chars(name.data() + 1, end, input);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.')
        return nullptr;
    auto const second = std::from_chars(first.ptr + 1, end, dimension);
    bool const isKnown = second.ec == std::errc() && second.ptr == end && input < size_t(ctx.inputCount()) &&
                         ctx.has(int(input)) && dimension < ctx.shape(int(input)).size();
    return isKnown ? &ctx.shape(int(input))[dimension] : nullptr;
}

// The text with the inputs' dimensions put in for their names.
std::string substituted(ir::InferContext const& ctx, std::string_view text)
{
    std::string out;
    for (size_t i = 0; i < text.size();) {
        size_t end = i;
        while (end < text.size() && isNameChar(text[end]))
            ++end;
        end = std::max(end, i + 1);
        std::string_view const word = text.substr(i, end - i);
        Dim const* const d = dimensionOf(ctx, word);
        out += d ? "(" + d->str() + ")" : std::string(word);
        i = end;
    }
    return out;
}

Result<Dim> dimOf(ir::InferContext& ctx, std::string_view text, int output)
{
    auto const d = Dim::parse(substituted(ctx, text));
    std::string const where = fmt::format("dimension '{}' of output {}", text, output);
    if (!d.ok())
        return ctx.error(where + ": " + d.error().message);
    if (ctx.concrete() && !d->isConst())
        return ctx.error(where + " cannot be computed from the inputs' dimensions");
    if (d->isConst() && (d->value() < 0 || d->value() > INT32_MAX))
        return ctx.error("{} is {}; it must be in 0..{}", where, d->value(), INT32_MAX);
    return *d;
}

std::vector<std::string_view> split(std::string_view text, char separator)
{
    std::vector<std::string_view> parts;
    while (true) {
        size_t const at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == text.npos)
            return parts;
        text.remove_prefix(at + 1);
    }
}

Result<Shape> shapeOf(ir::InferContext& ctx, std::string_view text, int output)
{
    if (text.size() < 2 || text.front() != '[' || text.back() != ']')
        return ctx.error("the shape of output {} is damaged", output);
    Shape shape;
    text = text.substr(1, text.size() - 2);
    if (text.empty())
        return shape;
    for (std::string_view part : split(text, '|')) {
        TW_ASSIGN(Dim d, dimOf(ctx, part, output));
        shape.push_back(std::move(d));
    }
    if (shape.size() > size_t(kMaxRank))
        return ctx.error("output {} has {} dimensions; the most is {}", output, shape.size(), kMaxRank);
    return shape;
}

bool isType(int64_t t)
{
    return t >= 0 && t < kDataTypeCount;
}

Result<void> checkInputs(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    size_t const inputs = size_t(ctx.inputCount());
    if (a.inputTypes.size() != inputs || a.inputRanks.size() != inputs)
        return ctx.error("it has {} inputs, its attributes are for {}", inputs, a.inputTypes.size());
    for (size_t i = 0; i < inputs; ++i) {
        int const at = int(i);
        if (!ctx.has(at))
            return ctx.error("input {} is missing", i);
        if (!isType(a.inputTypes[i]) || ctx.type(at) != DataType(a.inputTypes[i]) || ctx.rank(at) != a.inputRanks[i] ||
            (a.dropsBatch && ctx.rank(at) == 0))
            return ctx.error(ctx.describe(at) + " is not of the type and rank that the plugin was asked for");
    }
    return {};
}

Result<void> checkAttrs(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    size_t const tensors = a.inputTypes.size() + a.outputTypes.size();
    if (a.outputTypes.empty() || tensors > size_t(kMaxTensors))
        return ctx.error("a plugin has at least one output, and at most {} inputs and outputs", kMaxTensors);
    if (a.interface < Interface::kV2 || a.interface > Interface::kDynamicExt ||
        a.dropsBatch != (a.interface != Interface::kDynamicExt))
        return ctx.error("its interface {} does not exist", int(a.interface));
    if (a.broadcast.size() > tensors || a.workspaceBytes < 0 || a.workspaceBytes > int64_t(1) << 48)
        return ctx.error("its attributes are damaged");
    return {};
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TW_TRY(checkAttrs(ctx));
    TW_TRY(checkInputs(ctx));
    auto const shapes = split(a.shapes, ';');
    if (shapes.size() != a.outputTypes.size())
        return ctx.error("it has {} outputs and {} shapes", a.outputTypes.size(), shapes.size());
    for (size_t i = 0; i < shapes.size(); ++i) {
        if (!isType(a.outputTypes[i]))
            return ctx.error("output {} has an unknown type", i);
        TW_ASSIGN(Shape y, shapeOf(ctx, shapes[i], int(i)));
        if (a.dropsBatch && y.empty())
            return ctx.error("output {} has no batch dimension", i);
        ctx.output(int(i), DataType(a.outputTypes[i]), std::move(y));
    }
    return {};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "plugin",
    TW_OP_PARTS(Attrs),
    .inputs = {0, -1},
    .inspect = [](LayerFacts& facts) { facts.kind("PluginV2"); },
    .stateful = [](ir::Node const&) { return true; }, // what it does in a run is not known
};

} // namespace tw::ops::plugin
