// SPDX-License-Identifier: Apache-2.0
#include "ir/dim.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/hash.h"

namespace tw::ir {

int64_t floorDivInt(int64_t a, int64_t b)
{
    if (b == -1)
        return a == INT64_MIN ? INT64_MAX : -a;
    int64_t const q = a / b;
    return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}
int64_t ceilDivInt(int64_t a, int64_t b)
{
    if (b == -1)
        return a == INT64_MIN ? INT64_MAX : -a;
    int64_t const q = a / b;
    return q + ((a % b != 0) && ((a < 0) == (b < 0)));
}
int64_t addSat(int64_t a, int64_t b)
{
    int64_t r;
    if (__builtin_add_overflow(a, b, &r))
        return a < 0 ? INT64_MIN : INT64_MAX;
    return r;
}
int64_t mulSat(int64_t a, int64_t b)
{
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
    return r;
}

// A symbol, or an operation on two Dims.
struct Dim::Atom
{
    std::string symbol; // empty for an operation
    DimOp op = DimOp::kMax;
    Dim a, b;
    std::string key; // canonical text; orders and identifies the atom
};
using AtomPtr = std::shared_ptr<Dim::Atom const>;

// constant + sum over terms of coefficient * product of atoms (sorted by key).
struct Term
{
    int64_t coefficient = 0;
    std::vector<AtomPtr> atoms;
};
struct Dim::Expr
{
    int64_t constant = 0;
    std::map<std::string, Term> terms; // keyed by the joined atom keys
};

namespace {

constexpr size_t kMaxNumberBytes = 24; // a coefficient of int64 with what stands round it

std::string keyOf(std::vector<AtomPtr> const& atoms)
{
    std::string key;
    for (auto const& a : atoms)
        key += (key.empty() ? "" : "*") + a->key;
    return key;
}

void addTerm(Dim::Expr& e, int64_t coefficient, std::vector<AtomPtr> const& atoms)
{
    if (coefficient == 0)
        return;
    auto [it, isNew] = e.terms.try_emplace(keyOf(atoms), Term{0, atoms});
    it->second.coefficient = addSat(it->second.coefficient, coefficient);
    if (it->second.coefficient == 0)
        e.terms.erase(it);
}

Result<int64_t> apply(DimOp op, int64_t a, int64_t b)
{
    switch (op) {
    case DimOp::kMax:
        return std::max(a, b);
    case DimOp::kMin:
        return std::min(a, b);
    case DimOp::kFloorDiv:
    case DimOp::kCeilDiv:
        if (b == 0)
            return invalidArgument("division by zero in a dimension expression");
        return op == DimOp::kFloorDiv ? floorDivInt(a, b) : ceilDivInt(a, b);
    case DimOp::kEqual:
        return int64_t(a == b);
    case DimOp::kLess:
        return int64_t(a < b);
    }
    return internalError("unknown dimension operation");
}

} // namespace

char const* nameOf(DimOp op)
{
    constexpr char const* kNames[] = {"max", "min", "floordiv", "ceildiv", "eq", "lt"};
    return kNames[int(op)];
}

Dim Dim::symbol(std::string const& name)
{
    auto atom = std::make_shared<Atom>();
    atom->symbol = name;
    atom->key = name;
    Expr e;
    addTerm(e, 1, {atom});
    return fromExpr(std::move(e));
}

namespace {

// Untrusted networks can combine expressions for ever, and each max() of two doubles the text: past a size the result is a
// symbol that nothing binds. What it stands for is in its name, so that two of them are equal where their texts are.
Dim tooComplex(std::string const& text)
{
    Hash128 const hash = hashBytes128(text.data(), text.size());
    char name[64];
    std::snprintf(name, sizeof name, "$too_complex.%016llx%016llx", static_cast<unsigned long long>(hash.high),
                  static_cast<unsigned long long>(hash.low));
    return Dim::symbol(name);
}

} // namespace

Dim Dim::fromExpr(Expr&& e)
{
    if (e.terms.empty())
        return Dim(e.constant);
    size_t textBytes = kMaxNumberBytes;
    for (auto const& [key, t] : e.terms)
        textBytes += key.size() + kMaxNumberBytes;
    if (textBytes > kMaxDimTextBytes) {
        std::string text = std::to_string(e.constant);
        for (auto const& [key, t] : e.terms)
            text += fmt::format(" + {}*{}", t.coefficient, key);
        return tooComplex(text);
    }
    Dim d;
    d.expr_ = std::make_shared<Expr const>(std::move(e));
    return d;
}

Dim::Expr Dim::toExpr() const
{
    if (expr_)
        return *expr_;
    Expr e;
    e.constant = value_;
    return e;
}

Dim operator+(Dim const& a, Dim const& b)
{
    if (a.isConst() && b.isConst())
        return Dim(addSat(a.value_, b.value_));
    Dim::Expr e = a.toExpr();
    Dim::Expr const f = b.toExpr();
    e.constant = addSat(e.constant, f.constant);
    for (auto const& [key, t] : f.terms)
        addTerm(e, t.coefficient, t.atoms);
    return Dim::fromExpr(std::move(e));
}

Dim operator-(Dim const& a, Dim const& b)
{
    return a + b * Dim(-1);
}

Dim operator*(Dim const& a, Dim const& b)
{
    if (a.isConst() && b.isConst())
        return Dim(mulSat(a.value_, b.value_));
    Dim::Expr const e = a.toExpr();
    Dim::Expr const f = b.toExpr();
    if (e.terms.size() * f.terms.size() > 256) {
        std::string const x = a.str(), y = b.str();
        return tooComplex(x < y ? x + " * " + y : y + " * " + x);
    }
    Dim::Expr out;
    out.constant = mulSat(e.constant, f.constant);
    for (auto const& [key, t] : e.terms)
        addTerm(out, mulSat(t.coefficient, f.constant), t.atoms);
    for (auto const& [key, t] : f.terms)
        addTerm(out, mulSat(t.coefficient, e.constant), t.atoms);
    for (auto const& [ka, ta] : e.terms) {
        for (auto const& [kb, tb] : f.terms) {
            std::vector<AtomPtr> atoms = ta.atoms;
            atoms.insert(atoms.end(), tb.atoms.begin(), tb.atoms.end());
            std::ranges::sort(atoms, [](AtomPtr const& x, AtomPtr const& y) { return x->key < y->key; });
            addTerm(out, mulSat(ta.coefficient, tb.coefficient), atoms);
        }
    }
    return Dim::fromExpr(std::move(out));
}

bool operator==(Dim const& a, Dim const& b)
{
    if (a.isConst() != b.isConst())
        return false;
    if (a.isConst())
        return a.value_ == b.value_;
    if (a.expr_ == b.expr_)
        return true;
    auto const &x = *a.expr_, &y = *b.expr_;
    if (x.constant != y.constant || x.terms.size() != y.terms.size())
        return false;
    for (auto i = x.terms.begin(), j = y.terms.begin(); i != x.terms.end(); ++i, ++j)
        if (i->first != j->first || i->second.coefficient != j->second.coefficient)
            return false;
    return true;
}

namespace {

// A term, or the constant without atoms.
using Product = std::pair<int64_t, std::vector<AtomPtr>>;

// The term that comes first: more atoms before fewer, then by the keys. Of two products of terms the first come of the first, so
// that what is divided step by step loses its first term each time.
Product leading(Dim::Expr const& e)
{
    Product first{e.constant, {}};
    auto keyLess = [](AtomPtr const& x, AtomPtr const& y) { return x->key < y->key; };
    for (auto const& [key, t] : e.terms)
        if (t.atoms.size() > first.second.size() ||
            (t.atoms.size() == first.second.size() &&
             std::ranges::lexicographical_compare(t.atoms, first.second, keyLess)))
            first = {t.coefficient, t.atoms};
    return first;
}

// a / b without a rest.
std::optional<Product> quotient(Product a, Product const& b)
{
    bool const isBeyond = b.first == -1 && a.first == INT64_MIN; // its opposite does not exist
    if (b.first == 0 || isBeyond || a.first % b.first != 0)
        return std::nullopt;
    for (AtomPtr const& d : b.second) {
        auto const it = std::ranges::find_if(a.second, [&](AtomPtr const& r) { return r->key == d->key; });
        if (it == a.second.end())
            return std::nullopt;
        a.second.erase(it);
    }
    a.first /= b.first;
    return a;
}

void addProduct(Dim::Expr& e, Product const& p)
{
    if (p.second.empty())
        e.constant = addSat(e.constant, p.first);
    else
        addTerm(e, p.first, p.second);
}

// Steps of a division beyond one for each term: (N^4 - 1) / (N - 1) has more terms than what is divided.
constexpr size_t kMaxFurtherSteps = 16;
// Coefficients of what is divided by several terms: products of two of them do not saturate.
constexpr int64_t kMaxDividedCoefficient = int64_t(1) << 31;

bool isSmall(Dim::Expr const& e)
{
    auto isSmallNumber = [](int64_t c) { return c > -kMaxDividedCoefficient && c < kMaxDividedCoefficient; };
    return isSmallNumber(e.constant) &&
           std::ranges::all_of(e.terms, [&](auto const& t) { return isSmallNumber(t.second.coefficient); });
}

// num / den where it has no rest whatever the symbols are: (8*N*P + 8*N*s) / (2*P + 2*s) is 4*N.
std::optional<Dim::Expr> quotient(Dim::Expr num, Dim::Expr const& den)
{
    Product const first = leading(den);
    bool const isOneTerm = den.terms.size() + (den.constant != 0) == 1;
    Dim::Expr q;
    for (size_t left = num.terms.size() + kMaxFurtherSteps; num.constant != 0 || !num.terms.empty(); --left) {
        auto const part = left > 0 && (isOneTerm || isSmall(num)) ? quotient(leading(num), first) : std::nullopt;
        if (!part)
            return std::nullopt;
        addProduct(q, *part);
        auto takeAway = [&](int64_t c, std::vector<AtomPtr> const& atoms) {
            Product p{mulSat(mulSat(part->first, c), -1), part->second};
            p.second.insert(p.second.end(), atoms.begin(), atoms.end());
            std::ranges::sort(p.second, [](AtomPtr const& x, AtomPtr const& y) { return x->key < y->key; });
            addProduct(num, p);
        };
        takeAway(den.constant, {});
        for (auto const& [key, t] : den.terms)
            takeAway(t.coefficient, t.atoms);
    }
    return q;
}

} // namespace

Dim Dim::make(DimOp op, Dim const& a, Dim const& b)
{
    if (a.isConst() && b.isConst()) {
        auto r = apply(op, a.value_, b.value_);
        if (r.ok())
            return Dim(*r);
    }
    if (a == b) {
        switch (op) {
        case DimOp::kMax:
        case DimOp::kMin:
            return a;
        case DimOp::kEqual:
            return Dim(1);
        case DimOp::kLess:
            return Dim(0);
        default:
            break;
        }
    }
    bool const isDiv = op == DimOp::kFloorDiv || op == DimOp::kCeilDiv;
    if (isDiv && b.is(1))
        return a;
    if (isDiv && !b.is(0))
        if (auto q = quotient(a.toExpr(), b.toExpr()))
            return fromExpr(std::move(*q));
    bool const commutes = op == DimOp::kMax || op == DimOp::kMin || op == DimOp::kEqual;
    std::string sa = a.str(), sb = b.str();
    bool const swap = commutes && sb < sa;
    auto atom = std::make_shared<Atom>();
    atom->op = op;
    atom->a = swap ? b : a;
    atom->b = swap ? a : b;
    atom->key = std::string(nameOf(op)) + "(" + (swap ? sb : sa) + ", " + (swap ? sa : sb) + ")";
    Expr e;
    addTerm(e, 1, {atom});
    return fromExpr(std::move(e));
}

Result<int64_t> Dim::eval(Bindings const& bindings) const
{
    if (!expr_)
        return value_;
    int64_t sum = expr_->constant;
    for (auto const& [key, t] : expr_->terms) {
        int64_t product = t.coefficient;
        for (auto const& atom : t.atoms) {
            if (!atom->symbol.empty()) {
                auto it = bindings.find(atom->symbol);
                if (it == bindings.end())
                    return invalidState("dimension symbol '{}' has no value yet", atom->symbol);
                product = mulSat(product, it->second);
            } else {
                TW_ASSIGN(int64_t const a, atom->a.eval(bindings));
                TW_ASSIGN(int64_t const b, atom->b.eval(bindings));
                TW_ASSIGN(int64_t const r, apply(atom->op, a, b));
                product = mulSat(product, r);
            }
        }
        sum = addSat(sum, product);
    }
    return sum;
}

std::string Dim::str() const
{
    if (!expr_)
        return std::to_string(value_);
    std::string s;
    for (auto const& [key, t] : expr_->terms) {
        s += s.empty() ? "" : " + ";
        s += t.coefficient == 1 ? key : fmt::format("{}*{}", t.coefficient, key);
    }
    if (expr_->constant != 0)
        s += fmt::format(" + {}", expr_->constant);
    bool const bare = expr_->constant == 0 && expr_->terms.size() == 1 &&
                      expr_->terms.begin()->second.coefficient == 1 && expr_->terms.begin()->second.atoms.size() == 1;
    return bare ? s : "(" + s + ")";
}

void Dim::collectSymbols(std::vector<std::string>& out) const
{
    if (!expr_)
        return;
    for (auto const& [key, t] : expr_->terms) {
        for (auto const& atom : t.atoms) {
            if (!atom->symbol.empty()) {
                if (!contains(out, atom->symbol))
                    out.push_back(atom->symbol);
            } else {
                atom->a.collectSymbols(out);
                atom->b.collectSymbols(out);
            }
        }
    }
}

} // namespace tw::ir
