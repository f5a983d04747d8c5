// SPDX-License-Identifier: Apache-2.0
#include "passes/fusion/norm_sets.h"

#include <vector>

namespace tw::passes {

namespace {

// What dimension `inner` of the one shape and dimension `outer` of the other have in common.
struct Factor
{
    size_t outer, inner;
    ir::Dim size;
};

// Both shapes as products of the same factors, in order; dimensions of 1 have none.
std::optional<std::vector<Factor>> factorsOf(ir::Shape const& outer, ir::Shape const& inner)
{
    std::vector<Factor> list;
    size_t i = 0, j = 0;
    ir::Dim a = 1, b = 1; // what is left of the two
    auto next = [](ir::Shape const& s, size_t& at, ir::Dim& left) {
        while (left.is(1) && at < s.size())
            left = s[at++];
        return !left.is(1);
    };
    auto isLast = [](ir::Shape const& s, size_t at) {
        for (; at < s.size(); ++at)
            if (!s[at].is(1))
                return false;
        return true;
    };
    for (;;) {
        bool const more = next(outer, i, a), others = next(inner, j, b);
        if (!more || !others)
            return more == others ? std::optional(std::move(list)) : std::nullopt;
        bool const known = a.isConst() && b.isConst() && a.value() > 0 && b.value() > 0;
        auto take = [&](ir::Dim const& size) { list.push_back({i - 1, j - 1, size}); };
        if (a == b) {
            take(a);
            a = b = 1;
        } else if (known && a.value() % b.value() == 0) {
            take(b);
            a = a.value() / b.value();
            b = 1;
        } else if (known && b.value() % a.value() == 0) {
            take(a);
            b = b.value() / a.value();
            a = 1;
        } else if (!known && isLast(inner, j)) { // it holds what is left of the other shape
            for (take(a), a = 1; next(outer, i, a); a = 1)
                take(a);
            return list;
        } else if (!known && isLast(outer, i)) {
            for (take(b), b = 1; next(inner, j, b); b = 1)
                take(b);
            return list;
        } else {
            return std::nullopt;
        }
    }
}

bool has(int64_t mask, size_t dimension)
{
    return mask >> dimension & 1;
}

} // namespace

std::optional<NormSets> throughReshape(NormSets const& sets, ir::Shape const& outer, ir::Shape const& inner)
{
    auto const factors = factorsOf(outer, inner);
    if (!factors || sets.groups != 1)
        return std::nullopt;
    NormSets to;
    for (size_t d = 0; d < outer.size(); ++d) {
        ir::Dim kept = 1;
        bool any = false, normalized = false, weighted = false;
        for (Factor const& f : *factors) {
            if (f.outer != d)
                continue;
            bool const isWeighted = has(sets.weighted, f.inner);
            if (any && isWeighted != weighted)
                return std::nullopt;
            weighted = isWeighted;
            any = true;
            if (has(sets.normalized, f.inner))
                normalized = true;
            else if (normalized)
                return std::nullopt; // groups that are not neighbours
            else
                kept = kept * f.size;
        }
        if (weighted)
            to.weighted |= int64_t(1) << d;
        if (!normalized)
            continue;
        to.normalized |= int64_t(1) << d;
        if (kept.is(1))
            continue;
        if (to.groups != 1 || !kept.isConst())
            return std::nullopt;
        to.groups = kept.value();
        to.channel = int(d);
    }
    if (sets.weighted != 0 && to.weighted == 0)
        return std::nullopt;
    return to;
}

bool setAttributes(ops::layer_norm::Attrs& a, NormSets const& sets, ir::Shape const& x)
{
    int const rank = int(x.size());
    int64_t real = 0; // dimensions of 1 count as what suits
    for (int i = 0; i < rank; ++i)
        real |= x[size_t(i)].is(1) ? 0 : int64_t(1) << i;
    int64_t const weighted = sets.weighted, normalized = sets.normalized;
    if (normalized == 0)
        return false;
    a.axis = __builtin_ctzll(uint64_t(normalized));
    a.kept = ((int64_t(1) << rank) - 1) & ~normalized & ~((int64_t(2) << a.axis) - 1);
    a.groups = sets.groups;
    a.channel = sets.channel;
    if (weighted == 0 || (sets.groups == 1 && weighted == (normalized & real)))
        return true;
    if ((weighted & (weighted - 1)) != 0)
        return false;
    int const channel = __builtin_ctzll(uint64_t(weighted));
    a.channel = channel;
    return sets.groups == 1 || sets.channel == channel;
}

} // namespace tw::passes
