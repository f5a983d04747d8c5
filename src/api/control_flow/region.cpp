// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/control_flow/emit.h"

namespace tw::api::control_flow {

using ir::Dim;

namespace {

constexpr char const* kOuter = "$o.";

// $3.0 becomes $o.3.0: no node of the region binds that.
std::string innerName(std::string const& name)
{
    return name.starts_with('$') ? kOuter + name.substr(1) : name;
}

Result<Dim> innerDim(Dim const& d)
{
    std::string const text = d.str();
    if (d.isConst() || text.find('$') == std::string::npos)
        return d;
    std::string renamed;
    for (char c : text)
        renamed += c == '$' ? std::string(kOuter) : std::string(1, c);
    return Dim::parse(renamed);
}

void copySymbols(ir::Graph& region, ir::Graph const& around, Dim const& outer)
{
    std::vector<std::string> names;
    outer.collectSymbols(names);
    for (std::string const& name : names)
        if (auto const it = around.symbols.find(name); it != around.symbols.end())
            region.symbols[innerName(name)] = ir::Symbol{it->second.range, false};
}

} // namespace

ir::Value* addRegionInput(ir::Graph& region, ir::Graph const& around, ir::Value const& outer, int axis, bool same)
{
    auto bring = [&](Dim const& d) {
        copySymbols(region, around, d);
        auto inner = innerDim(d);
        return inner.ok() ? *inner : d;
    };
    ir::Shape shape;
    for (int d = 0; d < outer.rank(); ++d)
        if (d != axis)
            shape.push_back(bring(outer.shape[size_t(d)]));
    ir::Value* v = region.addInput(outer.name, outer.type, std::move(shape));
    if (same && outer.content) {
        auto content = mapped<Dim>(*outer.content, [&](Dim const& d) { return bring(d); });
        v->content = std::move(content);
    }
    return v;
}

bool isKnown(ir::Value const& v)
{
    return !v.isConstant() && v.content && ir::isStatic(v.shape) &&
           (v.type == DataType::kInt32 || v.type == DataType::kBool) &&
           std::ranges::all_of(*v.content, [](Dim const& d) {
               return d.isConst() && d.value() >= INT32_MIN && d.value() <= INT32_MAX;
           });
}

ir::Value* asConstant(ir::Graph& region, ir::Value const& outer)
{
    if (outer.isConstant())
        return region.addConstant(outer.name, outer.type, ir::extentsOf(outer.shape), outer.constant);
    if (!isKnown(outer))
        return nullptr;
    Tensor elements(outer.type, ir::extentsOf(outer.shape));
    for (size_t i = 0; i < outer.content->size(); ++i)
        elements.ref().set(int64_t(i), double((*outer.content)[i].value()));
    return region.addConstant(outer.name, outer.type, elements.dims(), elements.data());
}

} // namespace tw::api::control_flow
