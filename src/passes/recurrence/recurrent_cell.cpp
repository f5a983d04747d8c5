// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "passes/recurrence/recurrence.h"
#include "passes/rewrite.h"

namespace tw::passes {

namespace {

using FactorKind = CellFactor::Kind;
using ops::recurrence::Activation;
using ops::recurrence::Cell;
using ops::recurrence::Function;
using Attrs = ops::recurrence::Attrs;

std::optional<Activation> functionOf(ops::activation::Attrs const& a)
{
    using From = ops::activation::Kind;
    constexpr struct
    {
        From from;
        Function to;
        int parameters;
    } kFunctions[] = {{From::kSigmoid, Function::kSigmoid, 0},
                      {From::kTanh, Function::kTanh, 0},
                      {From::kRelu, Function::kRelu, 0},
                      {From::kLeakyRelu, Function::kLeakyRelu, 1},
                      {From::kElu, Function::kElu, 1},
                      {From::kSoftsign, Function::kSoftsign, 0},
                      {From::kHardSigmoid, Function::kHardSigmoid, 2},
                      {From::kScaledTanh, Function::kScaledTanh, 2},
                      {From::kSoftplus, Function::kSoftplus, 0},
                      {From::kThresholdedRelu, Function::kThresholdedRelu, 1}};
    for (auto const& [from, to, parameters] : kFunctions)
        if (from == a.kind && (from != From::kSoftplus || (a.alpha == 1 && a.beta == 1)))
            return Activation{to, parameters > 0 ? a.alpha : 0, parameters > 1 ? a.beta : 0};
    return {};
}

CellTerm without(CellTerm term, int factor)
{
    auto const at = std::ranges::find(term, factor);
    if (at != term.end())
        term.erase(at);
    return term;
}
double scaleIn(CellSum const& s, CellTerm term)
{
    std::ranges::sort(term);
    auto const at = s.find(term);
    return at == s.end() ? 0 : at->second;
}

class Matcher
{
public:
    Matcher(CellTerms& terms, CellState const& h, std::vector<CellState> const& others, int64_t hidden,
            ResolveColumns const& resolve)
        : terms_(terms), h_(h), others_(others), hidden_(hidden), resolve_(resolve), hColumns_(columnsOf(h.leaf))
    {
        found_.attrs.hidden = hidden;
    }
    std::optional<RecurrentCell> run()
    {
        bool const found = isLstm() || isGru() || isRnn();
        return found && readsInput() ? std::optional(std::move(found_)) : std::nullopt;
    }

private:
    int columnsOf(int leaf)
    {
        CellFactor f;
        f.leaf = leaf;
        f.count = hidden_;
        return terms_.factor(f);
    }
    CellFactor const& at(int f) const { return terms_.factorAt(f); }
    bool isFunction(int f) const { return f >= 0 && at(f).kind == FactorKind::kFunction; }
    bool readsInput() const
    {
        return std::ranges::any_of(found_.gates, [](CellGate const& g) { return !g.x.empty(); });
    }
    void start(Cell cell)
    {
        found_.attrs.cell = cell;
        found_.attrs.functions.assign(size_t(functionsOf(cell)), -1);
        found_.attrs.alpha.assign(size_t(functionsOf(cell)), 0);
        found_.attrs.beta.assign(size_t(functionsOf(cell)), 0);
        found_.attrs.clip = 0;
        found_.attrs.linearBeforeReset = found_.attrs.inputForget = false;
        found_.gates.assign(size_t(gatesOf(cell)), {});
        found_.hasPeepholes = isClipKnown_ = false;
    }
    // Function i of the cell is that of the factor; it must be one throughout the cell.
    bool setFunction(size_t i, int f)
    {
        auto const a = functionOf(at(f).function);
        Attrs& attrs = found_.attrs;
        if (!a || (attrs.functions[i] >= 0 && (attrs.functions[i] != int64_t(a->function) ||
                                               attrs.alpha[i] != a->alpha || attrs.beta[i] != a->beta)))
            return false;
        attrs.functions[i] = int64_t(a->function);
        attrs.alpha[i] = a->alpha;
        attrs.beta[i] = a->beta;
        return true;
    }
    // What the function of a gate is taken of, without the clip that all gates share.
    std::optional<int> argument(int f)
    {
        int sum = at(f).sum;
        int const clip = terms_.onlyFactor(sum);
        double limit = 0;
        if (clip >= 0 && at(clip).kind == FactorKind::kClip) {
            auto const& a = at(clip).function;
            if (a.alpha != -a.beta || a.beta <= 0)
                return {};
            limit = a.beta;
            sum = at(clip).sum;
        }
        if (isClipKnown_ && limit != found_.attrs.clip)
            return {};
        isClipKnown_ = true;
        found_.attrs.clip = limit;
        return sum;
    }

    bool addProduct(CellGate& g, CellFactor const& f, double scale, int ofReset)
    {
        int const source = terms_.onlyFactor(f.sum);
        bool const isState = ofReset >= 0 ? f.sum == ofReset : source == hColumns_;
        if (isState && f.rows == hidden_) {
            g.h.push_back({f, scale});
            return true;
        }
        if (source < 0 || at(source).kind != FactorKind::kColumns || isStateLeaf(at(source).leaf))
            return false;
        CellFactor const& x = at(source);
        g.x.push_back({{x.leaf, x.begin, x.count}, {f, scale}});
        return true;
    }
    bool isStateLeaf(int leaf) const
    {
        return leaf == h_.leaf || std::ranges::any_of(others_, [&](CellState const& s) { return s.leaf == leaf; });
    }
    // `ofReset`: the sum that the product with the state is taken of, where that is not the state itself.
    bool addTerm(CellGate& g, CellTerm const& term, double scale, int ofReset, bool resolved = false)
    {
        if (term.empty()) {
            g.number += scale;
            return true;
        }
        if (term.size() == 2 && found_.c >= 0)
            return addPeephole(g, term, scale);
        if (term.size() != 1)
            return false;
        CellFactor const f = at(term[0]);
        if (f.kind == FactorKind::kVector) {
            g.bias.push_back({f, scale});
            return true;
        }
        if (f.kind == FactorKind::kProduct)
            return addProduct(g, f, scale, ofReset);
        if (f.kind != FactorKind::kColumns || resolved || isStateLeaf(f.leaf))
            return false;
        auto const sum = resolve_(f);
        if (!sum)
            return false;
        CellSum const inner = terms_.sumAt(*sum);
        return std::ranges::all_of(inner,
                                   [&](auto const& t) { return addTerm(g, t.first, scale * t.second, ofReset, true); });
    }
    bool addPeephole(CellGate& g, CellTerm const& term, double scale)
    {
        int const c = columnsOf(found_.c), v = term[0] == c ? term[1] : term[0];
        if (!contains(term, c) || at(v).kind != FactorKind::kVector)
            return false;
        g.peepholes.push_back({at(v), scale});
        return found_.hasPeepholes = true;
    }
    bool setGate(size_t i, CellSum const& sum, double sign = 1, int ofReset = -1)
    {
        CellGate g;
        for (auto const& [term, scale] : sum)
            if (!addTerm(g, term, sign * scale, ofReset))
                return false;
        found_.gates[i] = std::move(g);
        return true;
    }
    bool setGateOf(size_t i, size_t function, int factor, double sign = 1)
    {
        if (!isFunction(factor) || !setFunction(function, factor))
            return false;
        auto const sum = argument(factor);
        return sum && setGate(i, terms_.sumAt(*sum), sign);
    }

    bool isRnn()
    {
        start(Cell::kRnn);
        return setGateOf(0, 0, terms_.onlyFactor(h_.next));
    }

    // h' = o * h(c')
    bool isLstm()
    {
        CellSum const next = terms_.sumAt(h_.next);
        if (next.size() != 1 || next.begin()->second != 1 || next.begin()->first.size() != 2)
            return false;
        CellTerm const both = next.begin()->first;
        for (size_t k = 0; k < 2; ++k)
            for (CellState const& c : others_)
                if (isFunction(both[0]) && isFunction(both[1]) && at(both[k]).sum == c.next &&
                    isLstm(c, both[k], both[1 - k]))
                    return true;
        found_.c = -1;
        return false;
    }
    // c' = f * c + i * g, or c' = (1 - i) * c + i * g
    bool isLstm(CellState const& c, int ofCell, int out)
    {
        CellSum const next = terms_.sumAt(c.next);
        int const cells = columnsOf(c.leaf);
        for (auto const& [term, scale] : next) {
            if (term.size() != 2 || scale != 1 || contains(term, cells))
                continue;
            for (size_t k = 0; k < 2; ++k) {
                start(Cell::kLstm);
                found_.c = c.leaf;
                if (isFunction(term[0]) && isFunction(term[1]) && setInputs(next, cells, term[k], term[1 - k]) &&
                    setFunction(2, ofCell) && setOut(next, out))
                    return true;
            }
        }
        return false;
    }
    bool setInputs(CellSum const& next, int c, int in, int value)
    {
        found_.attrs.inputForget = next.size() == 3;
        if (!setGateOf(0, 0, in) || !setGateOf(3, 1, value) || !found_.gates[3].peepholes.empty())
            return false;
        if (found_.attrs.inputForget)
            return scaleIn(next, {c}) == 1 && scaleIn(next, {in, c}) == -1;
        for (auto const& [term, scale] : next)
            if (term.size() == 2 && contains(term, c) && scale == 1)
                return next.size() == 2 && setGateOf(2, 0, without(term, c)[0]);
        return false;
    }
    // Its peephole sees c', which stands there as the sum that it is.
    bool setOut(CellSum const& next, int out)
    {
        if (!setFunction(0, out))
            return false;
        auto const sum = argument(out);
        if (!sum)
            return false;
        CellSum rest = terms_.sumAt(*sum);
        std::vector<CellBlock> peepholes;
        for (auto const& [term, scale] : CellSum(rest))
            for (int v : term)
                if (term.size() > 1 && at(v).kind == FactorKind::kVector && takePeephole(rest, v, term, next))
                    peepholes.push_back({at(v), scale / scaleIn(next, without(term, v))});
        if (!setGate(1, rest) || !found_.gates[1].peepholes.empty())
            return false;
        found_.hasPeepholes = found_.hasPeepholes || !peepholes.empty();
        found_.gates[1].peepholes = std::move(peepholes);
        return true;
    }
    bool takePeephole(CellSum& rest, int v, CellTerm const& term, CellSum const& next)
    {
        double const first = scaleIn(next, without(term, v));
        if (first == 0 || !rest.contains(term))
            return false;
        double const scale = rest.at(term) / first;
        CellSum left = rest;
        for (auto const& [t, s] : next) {
            CellTerm with = t;
            with.push_back(v);
            std::ranges::sort(with);
            if (scaleIn(left, with) != scale * s)
                return false;
            left.erase(with);
        }
        rest = std::move(left);
        return true;
    }

    // h' = n - z * n + z * h, or with 1 - z for z.
    bool isGru()
    {
        CellSum const next = terms_.sumAt(h_.next);
        if (next.size() != 3)
            return false;
        for (auto const& [term, scale] : next) {
            if (term.size() != 2 || !contains(term, hColumns_))
                continue;
            int const z = without(term, hColumns_)[0];
            for (auto const& [other, otherScale] : next)
                if (other.size() == 2 && other != term && contains(other, z) && scale == -otherScale &&
                    isGru(next, z, without(other, z)[0], scale))
                    return true;
        }
        return false;
    }
    bool isGru(CellSum const& next, int z, int n, double sign)
    {
        if ((sign != 1 && sign != -1) || scaleIn(next, {sign > 0 ? n : hColumns_}) != 1 || !isFunction(z) ||
            !isFunction(n))
            return false;
        for (int r : functionsIn(at(n).sum))
            for (bool before : {false, true}) {
                start(Cell::kGru);
                if (setGateOf(0, 0, z, sign) && (sign > 0 || isOdd()) && setGateOf(1, 0, r) && setFunction(1, n) &&
                    setReset(n, r, before))
                    return true;
            }
        return false;
    }
    // 1 - f(x) = f(-x)
    bool isOdd() const
    {
        Attrs const& a = found_.attrs;
        return a.functions[0] == int64_t(Function::kSigmoid) ||
               (a.functions[0] == int64_t(Function::kHardSigmoid) && a.beta[0] == 0.5);
    }
    // Functions that are multiplied with something in the argument, or in what its products are taken of.
    std::vector<int> functionsIn(int sum)
    {
        std::vector<int> list;
        int const clip = terms_.onlyFactor(sum);
        CellSum const terms = terms_.sumAt(clip >= 0 && at(clip).kind == FactorKind::kClip ? at(clip).sum : sum);
        auto const add = [&](CellTerm const& term) {
            for (int f : term)
                if (isFunction(f) && !contains(list, f))
                    list.push_back(f);
        };
        for (auto const& [term, scale] : terms) {
            add(term);
            for (int f : term)
                if (at(f).kind == FactorKind::kProduct)
                    for (auto const& inner : terms_.sumAt(at(f).sum))
                        add(inner.first);
        }
        return list;
    }
    // n of W x + R (r * h) (before), or of W x + r * (R h).
    bool setReset(int n, int r, bool before)
    {
        auto const sum = argument(n);
        if (!sum)
            return false;
        CellSum rest = terms_.sumAt(*sum);
        if (before) {
            CellTerm product{r, hColumns_};
            std::ranges::sort(product);
            return setGate(2, rest, 1, terms_.sum({{product, 1}})) && !found_.gates[2].h.empty();
        }
        CellGate ofState;
        for (auto const& [term, scale] : CellSum(rest))
            if (contains(term, r)) {
                if (!addTerm(ofState, without(term, r), scale, -1))
                    return false;
                rest.erase(term);
            }
        if (!ofState.x.empty() || ofState.h.empty() || !setGate(2, rest) || !found_.gates[2].h.empty())
            return false;
        found_.gates[2].h = ofState.h;
        found_.gates[2].stateBias = ofState.bias;
        found_.gates[2].stateNumber = ofState.number;
        return found_.attrs.linearBeforeReset = true;
    }

    CellTerms& terms_;
    CellState const h_;
    std::vector<CellState> const& others_;
    int64_t const hidden_;
    ResolveColumns const& resolve_;
    int const hColumns_;
    bool isClipKnown_ = false;
    RecurrentCell found_;
};

} // namespace

std::optional<RecurrentCell> matchCell(CellTerms& terms, CellState const& h, std::vector<CellState> const& others,
                                       int64_t hidden, ResolveColumns const& resolve)
{
    return Matcher(terms, h, others, hidden, resolve).run();
}

bool isRefitted(RecurrentCell const& cell, recipe::Recipes const* refit)
{
    auto const isReached = [&](CellBlock const& b) { return refitReaches(*b.factor.value, refit); };
    auto const any = [&](std::vector<CellBlock> const& list) { return std::ranges::any_of(list, isReached); };
    return std::ranges::any_of(cell.gates, [&](CellGate const& g) {
        return any(g.h) || any(g.bias) || any(g.stateBias) || any(g.peepholes) ||
               std::ranges::any_of(g.x, [&](auto const& x) { return isReached(x.second); });
    });
}

} // namespace tw::passes
