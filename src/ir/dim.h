// SPDX-License-Identifier: Apache-2.0
// Dim: a dimension as an integer expression over named symbols. A constant is the case without symbols.
//
// Expressions are kept in canonical form (a sum of products of atoms with integer coefficients; an atom is a symbol or
// a max, min, floor or ceiling division, or comparison of two Dims), so that equal() of two Dims is a structural
// comparison: it never claims equality that does not hold, and finds the equalities that shape arithmetic of networks
// produces.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/extents.h"
#include "base/result.h"

namespace tw::ir {

enum class DimOp : int
{
    kMax,
    kMin,
    kFloorDiv,
    kCeilDiv,
    kEqual, // 1 when equal, else 0
    kLess,
};

// Inclusive range of a symbol; hi is what memory is planned for.
struct Range
{
    int64_t lo = 0;
    int64_t hi = INT64_MAX;
    bool operator==(Range const&) const = default;
};

struct Symbol
{
    Range range;
    bool boundByNode =
        false; // true: a node of the graph sets it at run time (data-dependent size); hi is then its bound
    bool operator==(Symbol const&) const = default;
};
using SymbolTable = std::map<std::string, Symbol>;
using Bindings = std::map<std::string, int64_t>;

class Dim
{
public:
    Dim(int64_t value = 0) : value_(value) {}
    static Dim symbol(std::string const& name);
    static Dim make(DimOp op, Dim const& a, Dim const& b);

    bool isConst() const { return !expr_; }
    // The value of a constant; -1 for an expression (as the public API shows it).
    int64_t value() const { return expr_ ? -1 : value_; }
    bool is(int64_t v) const { return !expr_ && value_ == v; }

    friend Dim operator+(Dim const& a, Dim const& b);
    friend Dim operator-(Dim const& a, Dim const& b);
    friend Dim operator*(Dim const& a, Dim const& b);
    // Structural equality of canonical forms.
    friend bool operator==(Dim const& a, Dim const& b);

    // Value under `bindings`; an error names the symbol that is not bound, or a division by zero.
    Result<int64_t> eval(Bindings const& bindings) const;
    // Interval that holds for every binding within the symbols' ranges (saturating arithmetic).
    Range range(SymbolTable const& symbols) const;
    // The same number for every binding within the ranges, in fewer words where they say more: max(0, n) is n where n is
    // never below 0, min(n, 64) is n where it is at most 64.
    Dim within(SymbolTable const& symbols) const;
    // "N", "4", "(2*N + 1)", "floordiv(N, 2)"; Dim::parse reads it back.
    std::string str() const;
    static Result<Dim> parse(std::string const& text);
    void collectSymbols(std::vector<std::string>& out) const;

    struct Expr; // canonical sum
    struct Atom;

private:
    static Dim fromExpr(Expr&& e);
    Expr toExpr() const;
    int64_t value_ = 0;
    std::shared_ptr<Expr const> expr_;
};

inline Dim max(Dim const& a, Dim const& b)
{
    return Dim::make(DimOp::kMax, a, b);
}
inline Dim min(Dim const& a, Dim const& b)
{
    return Dim::make(DimOp::kMin, a, b);
}
inline Dim floorDiv(Dim const& a, Dim const& b)
{
    return Dim::make(DimOp::kFloorDiv, a, b);
}
inline Dim ceilDiv(Dim const& a, Dim const& b)
{
    return Dim::make(DimOp::kCeilDiv, a, b);
}

using Shape = std::vector<Dim>;

Dim volume(Shape const& s);
bool isStatic(Shape const& s);
// Only for static shapes of rank <= kMaxRank.
Extents extentsOf(Shape const& s);
Shape shapeOf(Extents const& e);
std::string str(Shape const& s); // "[N,3,224,224]"

// Integer division and modulo as shape arithmetic means them (b != 0).
int64_t floorDivInt(int64_t a, int64_t b);
int64_t ceilDivInt(int64_t a, int64_t b);
// Saturate at the ends of int64 instead of wrapping.
int64_t addSat(int64_t a, int64_t b);
int64_t mulSat(int64_t a, int64_t b);

constexpr size_t kMaxDimTextBytes = 4096; // of Dim::str(); Dim::parse() reads no more either

char const* nameOf(DimOp op);

} // namespace tw::ir
