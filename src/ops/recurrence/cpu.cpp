// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/element.h"
#include "ops/recurrence/op.h"
#include "ops/recurrence/tactics.h"

namespace tw::ops::recurrence {

namespace {

float apply(Activation const& a, float x)
{
    float const alpha = float(a.alpha), beta = float(a.beta);
    switch (a.function) {
    case Function::kSigmoid:
        return 1 / (1 + std::exp(-x));
    case Function::kTanh:
        return std::tanh(x);
    case Function::kRelu:
        return x > 0 || x != x ? x : 0;
    case Function::kAffine:
        return alpha * x + beta;
    case Function::kLeakyRelu:
        return x >= 0 ? x : alpha * x;
    case Function::kThresholdedRelu:
        return x > alpha ? x : 0;
    case Function::kScaledTanh:
        return alpha * std::tanh(beta * x);
    case Function::kHardSigmoid:
        return std::min(std::max(alpha * x + beta, 0.0F), 1.0F);
    case Function::kElu:
        return x >= 0 ? x : alpha * std::expm1(x);
    case Function::kSoftsign:
        return x / (1 + std::abs(x));
    case Function::kSoftplus:
        return std::max(x, 0.0F) + std::log1p(std::exp(-std::abs(x)));
    }
    return 0;
}

// Rows of numbers of one sequence, in the workspace.
constexpr int kRowH = 0, kRowC = 1, kRowReset = 2, kRowP = 3; // what gates get of x, then of h: two for each gate
int64_t rowsOf(Attrs const& a)
{
    return kRowP + 2 * gatesOf(a.cell);
}

template <class T>
class Sequence
{
public:
    Sequence(Attrs const& a, RunArgs& args, int d, int64_t n)
        : a_(a), args_(args), s_(sizesOf(a, args.inputs[kX].dims)), d_(d), n_(n),
          rows_(static_cast<float*>(args.workspace))
    {}
    void run()
    {
        loadState(kH0, row(kRowH));
        loadState(kC0, row(kRowC));
        int64_t const length =
            has(kLengths) ? std::clamp<int64_t>(args_.inputs[kLengths].as<int32_t>()[n_], 0, s_.steps) : s_.steps;
        for (int64_t i = 0; i < length; ++i)
            step(s_.isReverse(a_, d_) ? length - 1 - i : i);
        for (int64_t t = length; t < s_.steps; ++t)
            std::fill_n(yAt(t), s_.hidden, T{});
        storeState(1, row(kRowH));
        if (a_.cell == Cell::kLstm)
            storeState(2, row(kRowC));
    }

private:
    bool has(int i) const { return i < int(args_.inputs.size()) && args_.inputs[size_t(i)].data; }
    T const* in(int i) const { return has(i) ? args_.inputs[size_t(i)].as<T>() : nullptr; }
    float* row(int i) const { return rows_ + i * s_.hidden; }
    float* ofX(int gate) const { return row(kRowP + gate); }
    float* ofH(int gate) const { return row(kRowP + s_.gates + gate); }
    T* yAt(int64_t t) const { return args_.outputs[0].as<T>() + t * s_.yStep + n_ * s_.yRow + d_ * s_.hidden; }
    int64_t stateAt() const { return d_ * s_.stateDir + n_ * s_.stateRow; }
    void loadState(int input, float* to) const
    {
        for (int64_t j = 0; j < s_.hidden; ++j)
            to[j] = has(input) ? loadElement(in(input)[stateAt() + j]) : 0;
    }
    void storeState(int output, float const* from) const
    {
        for (int64_t j = 0; j < s_.hidden; ++j)
            storeElement(args_.outputs[size_t(output)].as<T>()[stateAt() + j], from[j]);
    }
    float bias(int which, int gate, int64_t j) const
    {
        return has(kBias) ? loadElement(in(kBias)[((d_ * 2 + which) * s_.gates + gate) * s_.hidden + j]) : 0;
    }
    template <class V>
    static double dot(V const* v, T const* w, int64_t n, double sum)
    {
        for (int64_t k = 0; k < n; ++k)
            sum += double(loadElement(v[k])) * loadElement(w[k]);
        return sum;
    }
    // Products of the gate's matrices, each with its bias.
    void multiplyX(int64_t t, int gate) const
    {
        T const* const x = in(kX) + t * s_.xStep + n_ * s_.xRow;
        for (int64_t j = 0; j < s_.hidden; ++j) {
            double const b = bias(0, gate, j);
            ofX(gate)[j] = float(has(kW) ? dot(x, in(kW) + weightsRow(gate, j) * s_.inputs, s_.inputs, b)
                                         : b + double(loadElement(x[j])));
        }
    }
    void multiplyH(float const* h, int gate) const
    {
        for (int64_t j = 0; j < s_.hidden; ++j)
            ofH(gate)[j] = float(dot(h, in(kR) + weightsRow(gate, j) * s_.hidden, s_.hidden, bias(1, gate, j)));
    }
    int64_t weightsRow(int gate, int64_t j) const { return (d_ * s_.gates + gate) * s_.hidden + j; }
    float function(int i, float x) const
    {
        float const most = float(a_.clip);
        return apply(activationOf(a_, d_, i), most > 0 ? std::min(std::max(x, -most), most) : x);
    }
    float gate(int g, int64_t j) const { return ofX(g)[j] + ofH(g)[j]; }
    float peephole(int which, int64_t j, float c) const
    {
        return has(kPeepholes) ? loadElement(in(kPeepholes)[(d_ * 3 + which) * s_.hidden + j]) * c : 0;
    }

    void step(int64_t t)
    {
        for (int g = 0; g < s_.gates; ++g) {
            multiplyX(t, g);
            multiplyH(row(kRowH), g);
        }
        if (a_.cell == Cell::kGru && !a_.linearBeforeReset) {
            for (int64_t j = 0; j < s_.hidden; ++j)
                row(kRowReset)[j] = function(0, gate(1, j)) * row(kRowH)[j];
            multiplyH(row(kRowReset), 2);
        }
        for (int64_t j = 0; j < s_.hidden; ++j) {
            float& h = row(kRowH)[j];
            h = a_.cell == Cell::kLstm ? lstm(j) : a_.cell == Cell::kGru ? gru(j, h) : function(0, gate(0, j));
            storeElement(yAt(t)[j], h);
        }
    }
    float lstm(int64_t j) const
    {
        float& c = row(kRowC)[j];
        float const i = function(0, gate(0, j) + peephole(0, j, c));
        float const f = a_.inputForget ? 1 - i : function(0, gate(2, j) + peephole(2, j, c));
        c = f * c + i * function(1, gate(3, j));
        return function(0, gate(1, j) + peephole(1, j, c)) * apply(activationOf(a_, d_, 2), c);
    }
    float gru(int64_t j, float h) const
    {
        float const z = function(0, gate(0, j)), r = a_.linearBeforeReset ? function(0, gate(1, j)) : 1;
        return (1 - z) * function(1, ofX(2)[j] + r * ofH(2)[j]) + z * h;
    }

    Attrs const& a_;
    RunArgs& args_;
    Sizes const s_;
    int const d_;
    int64_t const n_;
    float* const rows_;
};

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    Sizes const s = sizesOf(a, args.inputs[kX].dims);
    for (int d = 0; d < s.directions; ++d)
        for (int64_t n = 0; n < s.batch; ++n)
            withFloat(args.inputs[kX].type, [&](auto element) { Sequence<decltype(element)>(a, args, d, n).run(); });
    return {};
}

int64_t workspace(ir::Node const& node, std::span<TensorRef const>, std::span<TensorRef const>)
{
    auto const& a = node.attrsAs<Attrs>();
    return rowsOf(a) * a.hidden * int64_t(sizeof(float));
}

constexpr PlainTactic kPlain{"recurrence_any_plain_cpu", 1, run, workspace};

constexpr CpuTactic kProductsAvx512{"recurrence_f32_products_avx512", 1, kernels::jit::Isa::kAvx512, kProducts};
constexpr CpuTactic kProductsAvx2{"recurrence_f32_products_avx2", 1, kernels::jit::Isa::kAvx2, kProducts};
constexpr CpuTactic kAvx512{"recurrence_f32_steps_avx512", 2, kernels::jit::Isa::kAvx512, kSteps};
constexpr CpuTactic kAvx2{"recurrence_f32_steps_avx2", 2, kernels::jit::Isa::kAvx2, kSteps};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kProductsAvx512, kAvx512, kProductsAvx2, kAvx2, kPlain>;

} // namespace tw::ops::recurrence
