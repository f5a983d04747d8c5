// SPDX-License-Identifier: Apache-2.0
// What a dimension may be, by what its symbols may be.
#include <algorithm>
#include <optional>

#include "ir/dim.h"

namespace tw::ir {

namespace {

Range mulRange(Range x, Range y)
{
    int64_t const c[4] = {mulSat(x.lo, y.lo), mulSat(x.lo, y.hi), mulSat(x.hi, y.lo), mulSat(x.hi, y.hi)};
    return Range{*std::min_element(c, c + 4), *std::max_element(c, c + 4)};
}

// An end that has left int64 stays there.
Range addRange(Range a, Range b)
{
    return Range{a.lo == INT64_MIN || b.lo == INT64_MIN ? INT64_MIN : addSat(a.lo, b.lo),
                 a.hi == INT64_MAX || b.hi == INT64_MAX ? INT64_MAX : addSat(a.hi, b.hi)};
}

Range divRange(Range a, Range b, bool ceil)
{
    if (b.lo <= 0) // sign of the divisor unknown: anything
        return Range{INT64_MIN, INT64_MAX};
    auto div = [&](int64_t p, int64_t q) { return ceil ? ceilDivInt(p, q) : floorDivInt(p, q); };
    int64_t const c[4] = {div(a.lo, b.lo), div(a.lo, b.hi), div(a.hi, b.lo), div(a.hi, b.hi)};
    return Range{*std::min_element(c, c + 4), *std::max_element(c, c + 4)};
}

} // namespace

Range Dim::range(SymbolTable const& symbols) const
{
    if (!expr_)
        return Range{value_, value_};
    Range sum{expr_->constant, expr_->constant};
    for (auto const& [key, t] : expr_->terms) {
        Range product{t.coefficient, t.coefficient};
        for (auto const& atom : t.atoms) {
            Range r;
            if (!atom->symbol.empty()) {
                auto it = symbols.find(atom->symbol);
                r = it == symbols.end() ? Range{} : it->second.range;
            } else {
                Range const a = atom->a.range(symbols), b = atom->b.range(symbols);
                switch (atom->op) {
                case DimOp::kMax:
                    r = Range{std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
                    break;
                case DimOp::kMin:
                    r = Range{std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
                    break;
                case DimOp::kFloorDiv:
                    r = divRange(a, b, false);
                    break;
                case DimOp::kCeilDiv:
                    r = divRange(a, b, true);
                    break;
                case DimOp::kEqual:
                case DimOp::kLess:
                    r = Range{0, 1};
                    break;
                }
            }
            product = mulRange(product, r);
        }
        sum = addRange(sum, product);
    }
    return sum;
}

namespace {

// An operation on two Dims of which the ranges say the result; else nothing.
std::optional<Dim> known(DimOp op, Dim const& a, Dim const& b, SymbolTable const& symbols)
{
    Range const d = (a - b).range(symbols);
    switch (op) {
    case DimOp::kMax:
        return d.lo >= 0 ? std::optional(a) : d.hi <= 0 ? std::optional(b) : std::nullopt;
    case DimOp::kMin:
        return d.lo >= 0 ? std::optional(b) : d.hi <= 0 ? std::optional(a) : std::nullopt;
    case DimOp::kEqual:
        return d.lo > 0 || d.hi < 0 ? std::optional(Dim(0)) : std::nullopt;
    case DimOp::kLess:
        return d.hi < 0 ? std::optional(Dim(1)) : d.lo >= 0 ? std::optional(Dim(0)) : std::nullopt;
    default:
        return std::nullopt;
    }
}

} // namespace

Dim Dim::within(SymbolTable const& symbols) const
{
    if (!expr_)
        return *this;
    if (Range const r = range(symbols); r.lo == r.hi)
        return Dim(r.lo);
    auto const isOperation = [](AtomPtr const& atom) { return atom->symbol.empty(); };
    if (std::ranges::none_of(expr_->terms,
                             [&](auto const& t) { return std::ranges::any_of(t.second.atoms, isOperation); }))
        return *this;
    Dim sum(expr_->constant);
    for (auto const& [key, t] : expr_->terms) {
        Dim product(t.coefficient);
        for (AtomPtr const& atom : t.atoms) {
            if (!isOperation(atom)) {
                product = product * symbol(atom->symbol);
                continue;
            }
            Dim const a = atom->a.within(symbols), b = atom->b.within(symbols);
            product = product * known(atom->op, a, b, symbols).value_or(make(atom->op, a, b));
        }
        sum = sum + product;
    }
    return sum;
}

} // namespace tw::ir
