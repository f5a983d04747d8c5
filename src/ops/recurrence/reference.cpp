// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include <cmath>
#include <numeric>

#include "ops/recurrence/op.h"

namespace tw::ops::recurrence {

namespace {

double apply(Activation const& a, double x)
{
    switch (a.function) {
    case Function::kSigmoid:
        return 1 / (1 + std::exp(-x));
    case Function::kTanh:
        return std::tanh(x);
    case Function::kRelu:
        return std::max(x, 0.0);
    case Function::kAffine:
        return a.alpha * x + a.beta;
    case Function::kLeakyRelu:
        return x >= 0 ? x : a.alpha * x;
    case Function::kThresholdedRelu:
        return x > a.alpha ? x : 0;
    case Function::kScaledTanh:
        return a.alpha * std::tanh(a.beta * x);
    case Function::kHardSigmoid:
        return std::min(std::max(a.alpha * x + a.beta, 0.0), 1.0);
    case Function::kElu:
        return x >= 0 ? x : a.alpha * std::expm1(x);
    case Function::kSoftsign:
        return x / (1 + std::abs(x));
    case Function::kSoftplus:
        return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    }
    return 0;
}

// Of v and as many elements of a matrix. Sums side by side: a layer has 10^9 products and more.
double dot(std::vector<double> const& v, Numbers const& matrix, int64_t at)
{
    constexpr size_t kSums = 8;
    double sums[kSums] = {};
    size_t k = 0;
    if (!matrix.read().empty()) {
        double const* const row = matrix.read().data() + at;
        for (; k + kSums <= v.size(); k += kSums)
            for (size_t i = 0; i < kSums; ++i)
                sums[i] += v[k + i] * row[k + i];
    }
    for (; k < v.size(); ++k)
        sums[k % kSums] += v[k] * matrix[at + int64_t(k)];
    return std::accumulate(sums, sums + kSums, 0.0);
}

// One sequence in one direction.
class ReferenceSequence
{
public:
    // w, r: the weights of x and of the state.
    ReferenceSequence(RefContext& ctx, Numbers const& w, Numbers const& r, int d, int64_t n)
        : ctx_(ctx), w_(w), r_(r), a_(ctx.attrs<Attrs>()), s_(sizesOf(a_, ctx.in(kX).dims)), d_(d), n_(n),
          x_(size_t(s_.inputs)), h_(state(kH0)), c_(state(kC0))
    {}
    void run()
    {
        int64_t const length =
            ctx_.has(kLengths) ? std::clamp<int64_t>(ctx_.in(kLengths).getInt(n_), 0, s_.steps) : s_.steps;
        for (int64_t t = 0; t < length; ++t)
            step(s_.isReverse(a_, d_) ? length - 1 - t : t);
        for (int64_t t = length; t < s_.steps; ++t)
            for (int64_t j = 0; j < s_.hidden; ++j)
                ctx_.out(0).set(yAt(t, j), 0);
        for (int64_t j = 0; j < s_.hidden; ++j) {
            ctx_.out(1).set(stateAt(j), h_[size_t(j)]);
            if (a_.cell == Cell::kLstm)
                ctx_.out(2).set(stateAt(j), c_[size_t(j)]);
        }
    }

private:
    int64_t stateAt(int64_t j) const { return d_ * s_.stateDir + n_ * s_.stateRow + j; }
    int64_t yAt(int64_t t, int64_t j) const { return t * s_.yStep + n_ * s_.yRow + d_ * s_.hidden + j; }
    std::vector<double> state(int input) const
    {
        std::vector<double> v(size_t(s_.hidden), 0.0);
        for (int64_t j = 0; ctx_.has(input) && j < s_.hidden; ++j)
            v[size_t(j)] = ctx_.in(input).get(stateAt(j));
        return v;
    }
    double bias(int gate, int64_t j, bool recurrent) const
    {
        int64_t const at = (int64_t(d_ * 2 + recurrent) * s_.gates + gate) * s_.hidden + j;
        return ctx_.has(kBias) ? ctx_.in(kBias).get(at) : 0;
    }
    double ofInput(int64_t t, int gate, int64_t j) const // with its bias
    {
        int64_t const x = t * s_.xStep + n_ * s_.xRow, w = ((d_ * s_.gates + gate) * s_.hidden + j) * s_.inputs;
        double const sum = bias(gate, j, false);
        if (!ctx_.has(kW))
            return sum + ctx_.in(kX).get(x + j);
        return sum + dot(x_, w_, w);
    }
    double ofState(std::vector<double> const& h, int gate, int64_t j) const // with its bias
    {
        int64_t const r = ((d_ * s_.gates + gate) * s_.hidden + j) * s_.hidden;
        return bias(gate, j, true) + dot(h, r_, r);
    }
    double peephole(int which, int64_t j, double c) const
    {
        return ctx_.has(kPeepholes) ? ctx_.in(kPeepholes).get((d_ * 3 + which) * s_.hidden + j) * c : 0;
    }
    double function(int i, double x) const
    {
        return apply(activationOf(a_, d_, i), a_.clip > 0 ? std::min(std::max(x, -a_.clip), a_.clip) : x);
    }

    void step(int64_t t)
    {
        for (int64_t e = 0; e < s_.inputs; ++e)
            x_[size_t(e)] = ctx_.in(kX).get(t * s_.xStep + n_ * s_.xRow + e);
        std::vector<double> next(h_.size());
        std::vector<double> const reset = a_.cell == Cell::kGru ? resetState(t) : h_;
        for (int64_t j = 0; j < s_.hidden; ++j)
            next[size_t(j)] = a_.cell == Cell::kLstm  ? lstm(t, j)
                              : a_.cell == Cell::kGru ? gru(t, j, reset)
                                                      : function(0, ofInput(t, 0, j) + ofState(h_, 0, j));
        h_ = next;
        for (int64_t j = 0; j < s_.hidden; ++j)
            ctx_.out(0).set(yAt(t, j), h_[size_t(j)]);
    }
    double lstm(int64_t t, int64_t j)
    {
        auto const gate = [&](int g) { return ofInput(t, g, j) + ofState(h_, g, j); };
        double const c = c_[size_t(j)], in = function(0, gate(0) + peephole(0, j, c));
        double const forget = a_.inputForget ? 1 - in : function(0, gate(2) + peephole(2, j, c));
        double const next = forget * c + in * function(1, gate(3));
        c_[size_t(j)] = next;
        return function(0, gate(1) + peephole(1, j, next)) * apply(activationOf(a_, d_, 2), next);
    }
    double reset(int64_t t, int64_t j) const { return function(0, ofInput(t, 1, j) + ofState(h_, 1, j)); }
    std::vector<double> resetState(int64_t t) const
    {
        std::vector<double> v(h_.size());
        for (int64_t j = 0; j < s_.hidden && !a_.linearBeforeReset; ++j)
            v[size_t(j)] = reset(t, j) * h_[size_t(j)];
        return v;
    }
    double gru(int64_t t, int64_t j, std::vector<double> const& resetState) const
    {
        double const z = function(0, ofInput(t, 0, j) + ofState(h_, 0, j));
        double const fromState = a_.linearBeforeReset ? reset(t, j) * ofState(h_, 2, j) : ofState(resetState, 2, j);
        return (1 - z) * function(1, ofInput(t, 2, j) + fromState) + z * h_[size_t(j)];
    }

    RefContext& ctx_;
    Numbers const &w_, &r_;
    Attrs const& a_;
    Sizes const s_;
    int const d_;
    int64_t const n_;
    std::vector<double> x_, h_, c_; // of the step; before it
};

} // namespace

Result<void> reference(RefContext& ctx)
{
    Sizes const s = sizesOf(ctx.attrs<Attrs>(), ctx.in(kX).dims);
    Numbers const w(ctx, kW), r(ctx, kR);
    for (int d = 0; d < s.directions; ++d)
        for (int64_t n = 0; n < s.batch; ++n)
            ReferenceSequence(ctx, w, r, d, n).run();
    return {};
}

} // namespace tw::ops::recurrence
