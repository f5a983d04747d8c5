// SPDX-License-Identifier: Apache-2.0
#include "runtime/profile_shapes.h"

#include <algorithm>
#include <map>

namespace tw::runtime {

namespace {

Result<TensorRef> contentsAt(ir::Value const& v, plan::ProfileRange const* range, Select select,
                             std::vector<Tensor>& storage, Extents const& dims)
{
    if (!range || range->optValues.empty())
        return TensorRef{};
    auto const& values = select == Select::kMin   ? range->minValues
                         : select == Select::kOpt ? range->optValues
                                                  : range->maxValues;
    if (int64_t(values.size()) != dims.volume())
        return invalidArgument("shape tensor '{}' has {} elements, its profile gives {} values", v.name, dims.volume(),
                               values.size());
    storage.emplace_back(v.type, dims);
    for (size_t k = 0; k < values.size(); ++k)
        storage.back().ref().setInt(int64_t(k), values[k]);
    return storage.back().ref();
}

// `known`: see resolve().
Result<std::unique_ptr<Instance>> resolveAt(plan::Contents const& contents, LoadedBlock const& block, size_t profile,
                                            Select select, Instance const* known = nullptr)
{
    std::vector<Tensor> storage;
    TW_ASSIGN(auto inputs, profileInputs(contents, profile, select, storage));
    if (!known)
        TW_TRY(checkEqualDims(*contents.graph, inputs));
    return resolve(block, inputs, known);
}

Result<ProfileShapes> resolveProfile(plan::Contents const& contents, LoadedBlock const& block, size_t p,
                                     ResolveOptions const& options)
{
    ProfileShapes shapes;
    auto opt = resolveAt(contents, block, p, Select::kOpt);
    if (!opt.ok())
        return Error{opt.error().code, violation(Select::kOpt, p, opt.error())};
    shapes.opt = std::move(*opt);
    auto warn = [&](Select point, Error const& error) {
        if (options.log)
            options.log->warning(violation(point, p, error));
    };
    if (options.withMinimum) {
        if (auto min = resolveAt(contents, block, p, Select::kMin); min.ok())
            shapes.min = std::move(*min);
        else
            warn(Select::kMin, min.error());
    }
    auto max = resolveAt(contents, block, p, Select::kMax);
    if (!max.ok()) {
        warn(Select::kMax, max.error());
        shapes.isMaximumValid = false;
        max = resolveAt(contents, block, p, Select::kMax, shapes.opt.get());
        if (!max.ok())
            return std::move(max).error().in(fmt::format("maximum shapes of optimization profile {}", p));
    }
    shapes.max = std::move(*max);
    return shapes;
}

void enlarge(Instance& most, Instance const& other)
{
    for (size_t v = 0; v < most.values.size(); ++v) {
        ValueState& a = most.values[v];
        ValueState const& b = other.values[v];
        if (!a.known || !b.known || a.dims.rank != b.dims.rank)
            continue;
        for (int d = 0; d < a.dims.rank; ++d)
            a.dims[d] = std::max(a.dims[d], b.dims[d]);
    }
    for (size_t i = 0; i < most.regions.size(); ++i)
        for (size_t r = 0; r < std::min(most.regions[i].size(), other.regions[i].size()); ++r)
            enlarge(*most.regions[i][r], *other.regions[i][r]);
}

} // namespace

std::string violation(Select point, size_t profile, Error const& error)
{
    char const* const name = point == Select::kMin ? "kMIN" : point == Select::kOpt ? "kOPT" : "kMAX";
    char const* const then = point == Select::kOpt ? "" : "; runs in these shapes will fail";
    return fmt::format("{} values for profile {} violate shape constraints: {}{}", name, profile, error.message, then);
}

Result<void> checkEqualDims(ir::Graph const& graph, std::vector<InputState> const& inputs)
{
    std::map<std::string, std::pair<int64_t, ir::Value const*>> sizes;
    for (size_t i = 0; i < inputs.size(); ++i) {
        ir::Value const* const v = graph.inputs[i];
        for (int d = 0; d < inputs[i].dims.rank; ++d) {
            ir::Dim const& dim = v->shape[size_t(d)];
            std::vector<std::string> names;
            dim.collectSymbols(names);
            if (names.size() != 1 || !(dim == ir::Dim::symbol(names[0])))
                continue;
            auto const [known, isNew] = sizes.try_emplace(names[0], inputs[i].dims[d], v);
            if (!isNew && known->second.first != inputs[i].dims[d])
                return invalidArgument(
                    "dimension '{}' is {} in input '{}' and {} in '{}'; equal names mean equal sizes", names[0],
                    inputs[i].dims[d], v->name, known->second.first, known->second.second->name);
        }
    }
    return {};
}

Result<std::vector<InputState>> profileInputs(plan::Contents const& contents, size_t profile, Select select,
                                              std::vector<Tensor>& storage)
{
    std::vector<InputState> states;
    storage.reserve(storage.size() + contents.graph->inputs.size());
    for (ir::Value const* v : contents.graph->inputs) {
        plan::ProfileRange const* range = nullptr;
        if (profile < contents.profiles.size())
            if (auto it = contents.profiles[profile].inputs.find(v->name);
                it != contents.profiles[profile].inputs.end())
                range = &it->second;
        InputState s;
        if (range && range->hasShape)
            s.dims = select == Select::kMin ? range->min : select == Select::kOpt ? range->opt : range->max;
        else if (ir::isStatic(v->shape))
            s.dims = ir::extentsOf(v->shape);
        else
            return invalidArgument("input '{}' with shape {} has no dimensions in optimization profile {}", v->name,
                                   str(v->shape), profile);
        if (s.dims.rank != v->rank())
            return invalidArgument("input '{}' has rank {}, optimization profile {} gives it {}", v->name, v->rank(),
                                   profile, s.dims.str());
        TW_ASSIGN(s.contents, contentsAt(*v, range, select, storage, s.dims));
        states.push_back(std::move(s));
    }
    return states;
}

Result<NetworkShapes> resolveProfiles(plan::Contents const& contents, LoadedBlock const& block,
                                      ResolveOptions const& options)
{
    NetworkShapes all;
    size_t const count = std::max<size_t>(contents.profiles.size(), 1);
    for (size_t p = 0; p < count; ++p) {
        TW_ASSIGN(ProfileShapes shapes, resolveProfile(contents, block, p, options));
        all.profiles.push_back(std::move(shapes));
    }
    if (count > 1) {
        TW_ASSIGN(all.most, resolveAt(contents, block, 0, Select::kMax, all.profiles[0].opt.get()));
        for (size_t p = 1; p < count; ++p)
            enlarge(*all.most, *all.profiles[p].max);
    }
    return all;
}

namespace {

ir::Range hull(ir::Range const& a, ir::Range const& b)
{
    return ir::Range{std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}
ir::Range common(ir::Range const& a, ir::Range const& b)
{
    ir::Range const both{std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
    return both.lo <= both.hi ? both : hull(a, b);
}

void narrow(ir::SymbolTable& ranges, ir::Dim const& d, ir::Range const& range)
{
    std::vector<std::string> names;
    d.collectSymbols(names);
    if (names.size() != 1 || !(d == ir::Dim::symbol(names[0])))
        return;
    auto [at, isNew] = ranges.try_emplace(names[0], ir::Symbol{range, false});
    at->second.range = common(at->second.range, range);
}

} // namespace

ir::SymbolTable symbolRanges(ir::Graph const& g, plan::Profile const& profile)
{
    ir::SymbolTable ranges;
    for (ir::Value const* v : g.inputs) {
        auto const it = profile.inputs.find(v->name);
        if (it == profile.inputs.end())
            continue;
        plan::ProfileRange const& r = it->second;
        if (r.hasShape && r.min.rank == v->rank() && r.max.rank == v->rank())
            for (int d = 0; d < v->rank(); ++d)
                narrow(ranges, v->shape[size_t(d)], {r.min[d], r.max[d]});
        if (v->content && r.minValues.size() == v->content->size() && r.maxValues.size() == v->content->size())
            for (size_t k = 0; k < v->content->size(); ++k)
                narrow(ranges, (*v->content)[k],
                       {std::min(r.minValues[k], r.maxValues[k]), std::max(r.minValues[k], r.maxValues[k])});
    }
    ranges.insert(g.symbols.begin(), g.symbols.end()); // those that no profile speaks of
    return ranges;
}

ir::SymbolTable symbolRanges(ir::Graph const& g, std::vector<plan::Profile> const& profiles)
{
    ir::SymbolTable all;
    for (plan::Profile const& p : profiles)
        for (auto const& [name, symbol] : symbolRanges(g, p)) {
            auto [at, isNew] = all.try_emplace(name, symbol);
            at->second.range = hull(at->second.range, symbol.range);
        }
    return all;
}

ir::Dim fixedDim(ir::Dim const& d, ir::SymbolTable const& ranges)
{
    ir::Range const range = d.range(ranges);
    return range.lo == range.hi ? ir::Dim(range.lo) : d;
}

} // namespace tw::runtime
