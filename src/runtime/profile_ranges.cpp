// SPDX-License-Identifier: Apache-2.0
#include "runtime/profile_ranges.h"

#include <algorithm>

namespace tw::runtime {

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
