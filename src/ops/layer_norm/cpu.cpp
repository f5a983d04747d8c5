// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/element.h"
#include "base/round.h"
#include "families/elementwise/jit_end.h"
#include "kernels/cpu/jit/layer_norm_kernel.h"
#include "ops/layer_norm/layout.h"
#include "ops/layer_norm/op.h"
#include "tactic/cpu_tactic.h"
#include "tactic/tactic.h"

namespace tw::ops::layer_norm {

namespace {

// What is stored of y: floats and integers in steps of `scale`; null: not there.
template <class T>
struct Results
{
    T* y = nullptr;
    int8_t* integers = nullptr;
    float scale = 1;

    void put(int64_t i, float v) const
    {
        T stored;
        storeElement(stored, v);
        if (y)
            y[i] = stored;
        if (integers)
            storeElement(integers[i], loadElement(stored) / scale);
    }
};

template <class T>
void normalize(Attrs const& a, Walk const& w, T const* x, T const* gamma, T const* beta, Results<T> const& to)
{
    int64_t const n = w.within.volume();
    for (Counter set(w.sets);;) {
        int64_t const at = set.offset(w.setStrides), weight = set.offset(w.setWeights);
        auto each = [&](auto const& f) {
            Counter c(w.within);
            do
                f(at + c.offset(w.withinStrides), weight + c.offset(w.withinWeights));
            while (c.next());
        };
        double sum = 0, squares = 0;
        if (!a.rms)
            each([&](int64_t i, int64_t) { sum += double(loadElement(x[i])); });
        float const mean = float(sum / double(n));
        each([&](int64_t i, int64_t) {
            double const d = double(loadElement(x[i]) - mean);
            squares += d * d;
        });
        float const factor = float(1 / std::sqrt(squares / double(n) + a.epsilon));
        each([&](int64_t i, int64_t k) {
            float v = (loadElement(x[i]) - mean) * factor * (gamma ? loadElement(gamma[k]) : 1) +
                      (beta ? loadElement(beta[k]) : 0);
            if (a.activation.any())
                activate(a.activation, &v, &v, 1);
            to.put(i, v);
        });
        if (!set.next())
            break;
    }
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], none{};
    TensorRef const& gamma = a.hasGamma ? args.inputs[size_t(a.gammaInput())] : none;
    TensorRef const& beta = a.hasBeta ? args.inputs[size_t(a.betaInput())] : none;
    if (x.count() == 0)
        return {};
    Walk const w = walkOf(a, x.dims);
    auto runAs = [&]<class T>(T) {
        Results<T> to;
        if (a.keepsFloats())
            to.y = args.outputs[0].as<T>();
        if (a.integers) {
            to.integers = args.outputs[size_t(a.integersOutput())].as<int8_t>();
            to.scale = *args.inputs[size_t(a.scaleInput())].as<float>();
        }
        normalize(a, w, x.as<T>(), gamma.as<T>(), beta.as<T>(), to);
    };
    withFloat(x.type, runAs);
    return {};
}

constexpr PlainTactic kPlain{"layer_norm_any_plain_cpu", 2, run};

class JitKernel final : public Kernel
{
public:
    JitKernel(Attrs const& attrs, Layout const& layout, kernels::jit::LayerNormKernel kernel)
        : attrs_(attrs), layout_(layout), kernel_(std::move(kernel))
    {}
    Result<void> run(RunArgs& args) const override
    {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        Layout::Sizes const s = layout_.sizes(x.dims);
        int64_t const rows = s.sets(), n = s.setSize();
        if (rows == 0 || n == 0)
            return {};
        bool const pixels = isByPixel(x.format);
        int64_t const xStride = pixels ? x.pixelStride() : n, yStride = pixels ? y.pixelStride() : n;
        // Sets of one position of x after the other have gamma and beta of their own.
        int64_t const own = layout_.weights() == Layout::Weights::kNone ? 1 : s.count / n;
        int64_t const parts = std::min<int64_t>(args.workers->count(), divideUp(rows * n, kPartElements));
        auto weights = [&](int i, int64_t row) {
            return i < 0 ? nullptr : args.inputs[size_t(i)].as<float>() + row % own * n;
        };
        args.workers->run(parts, [&](int64_t part, int) {
            int64_t const end = rows * (part + 1) / parts;
            for (int64_t at = rows * part / parts, some; at < end; at += some) {
                some = own > 1 ? 1 : end - at;
                kernel_({x.as<float>() + at * xStride, y.as<float>() + at * yStride, weights(attrs_.gammaInput(), at),
                         weights(attrs_.betaInput(), at), some, n, xStride * int64_t(sizeof(float)),
                         yStride * int64_t(sizeof(float)), float(1 / double(n)), float(attrs_.epsilon)});
            }
        });
        return {};
    }

private:
    // A part of the work takes a few microseconds: less is not worth waking a worker.
    static constexpr int64_t kPartElements = 16384;

    Attrs attrs_;
    Layout layout_;
    kernels::jit::LayerNormKernel kernel_;
};

Support supports(CpuTactic const&, Problem const& p)
{
    TW_SUPPORTS(takesOnly(DataType::kFloat, p));
    if (p.node->attrsAs<Attrs>().integers)
        return Support::no("makes no integers");
    Layout const layout = layoutOf(p);
    Layout::Sizes const s = layout.sizes(p.inputs[0].maxDims);
    if (!layout.isRows() || (layout.weights() != Layout::Weights::kNone &&
                             (s.tail > 1 || s.count % std::max<int64_t>(s.setSize(), 1) != 0)))
        return Support::no("takes sets of neighbours, gamma and beta with a number for each of them");
    return Support::yes();
}

std::vector<Formats> formats(CpuTactic const&, Problem const& p)
{
    std::vector<Formats> list{linearFormats(p)};
    // The channels of a pixel.
    Extents const& x = p.inputs[0].maxDims;
    auto const& a = p.node->attrsAs<Attrs>();
    if (x.rank >= 3 && a.axis == 1 && a.kept == (int64_t(1) << x.rank) - 4)
        list.push_back(channelsLastFormats(p));
    return list;
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& p, Config const&, PackedConstants&)
{
    auto const& a = p.node->attrsAs<Attrs>();
    TW_ASSIGN(auto kernel, kernels::jit::LayerNormKernel::emit(
                               t.isa(), {a.hasGamma, a.hasBeta, a.rms, jitActivation(a.activation)}));
    return makeKernel<JitKernel>(a, layoutOf(p), std::move(kernel));
}

constexpr CpuFunctions kJit{.supports = supports, .formats = formats, .load = load};
constexpr CpuTactic kAvx512{"layer_norm_f32_jit_avx512", 2, kernels::jit::Isa::kAvx512, kJit};
constexpr CpuTactic kAvx2{"layer_norm_f32_jit_avx2", 2, kernels::jit::Isa::kAvx2, kJit};

constexpr CpuTactic kColumnsAvx512{"layer_norm_f32_columns_jit_avx512", 1, kernels::jit::Isa::kAvx512, kColumnsCpu};
constexpr CpuTactic kColumnsAvx2{"layer_norm_f32_columns_jit_avx2", 1, kernels::jit::Isa::kAvx2, kColumnsCpu};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx512, kAvx2, kColumnsAvx512, kColumnsAvx2, kPlain>;

} // namespace tw::ops::layer_norm
