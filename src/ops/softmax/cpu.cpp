// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "kernels/jit/softmax_kernel.h"
#include "ops/element.h"
#include "ops/jit_support.h"
#include "ops/softmax/op.h"
#include "ops/tactic.h"

namespace tw::ops::softmax {

namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// Slices that are contiguous rows of n.
template <class T>
void rows(int64_t count, int64_t n, T const* x, T* y)
{
    for (int64_t r = 0; r < count; ++r, x += n, y += n) {
        float m = kLowest;
        for (int64_t j = 0; j < n; ++j)
            m = std::max(m, loadElement(x[j])); // passes over NaN: the sum below finds it
        double s = 0;
        for (int64_t j = 0; j < n; ++j) {
            float const e = std::exp(loadElement(x[j]) - m);
            s += double(e);
            if constexpr (std::is_same_v<T, float>)
                y[j] = e;
        }
        float const scale = float(1 / s);
        for (int64_t j = 0; j < n; ++j) {
            if constexpr (std::is_same_v<T, float>)
                y[j] *= scale;
            else // not from y: e would be rounded to half twice
                storeElement(y[j], std::exp(loadElement(x[j]) - m) * scale);
        }
    }
}

// Slices that run across `inner` columns: all columns at once, kBlock of them at a time.
template <class T>
void columns(int64_t outer, int64_t n, int64_t inner, T const* x, T* y)
{
    constexpr int64_t kBlock = 256;
    float m[kBlock];
    double s[kBlock];
    for (int64_t o = 0; o < outer; ++o, x += n * inner, y += n * inner)
        for (int64_t first = 0; first < inner; first += kBlock) {
            int64_t const width = std::min(kBlock, inner - first);
            std::fill(m, m + width, kLowest);
            std::fill(s, s + width, 0.0);
            for (int64_t j = 0; j < n; ++j) {
                T const* row = x + j * inner + first;
                for (int64_t i = 0; i < width; ++i)
                    m[i] = std::max(m[i], loadElement(row[i]));
            }
            for (int64_t j = 0; j < n; ++j) {
                T const* row = x + j * inner + first;
                for (int64_t i = 0; i < width; ++i)
                    s[i] += double(std::exp(loadElement(row[i]) - m[i]));
            }
            for (int64_t j = 0; j < n; ++j) {
                T const* row = x + j * inner + first;
                T* out = y + j * inner + first;
                for (int64_t i = 0; i < width; ++i)
                    storeElement(out[i], double(std::exp(loadElement(row[i]) - m[i])) / s[i]);
            }
        }
}

template <class T>
void softmaxAs(TensorRef const& x, TensorRef const& y, int axis)
{
    int64_t const outer = x.dims.volume(0, axis), n = x.dims[axis], inner = x.dims.volume(axis + 1, x.dims.rank);
    if (inner == 1)
        rows(outer, n, x.as<T>(), y.as<T>());
    else
        columns(outer, n, inner, x.as<T>(), y.as<T>());
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int const axis = int(node.attrsAs<Attrs>().axis);
    if (x.type == DataType::kFloat)
        softmaxAs<float>(x, y, axis);
    else
        softmaxAs<uint16_t>(x, y, axis);
    return {};
}

constexpr PlainTactic kPlain{"softmax_plain", 1, run};

class JitKernel final : public Kernel
{
public:
    JitKernel(int axis, kernels::jit::SoftmaxKernel kernel) : axis_(axis), kernel_(std::move(kernel)) {}
    Result<void> run(RunArgs& args) const override
    {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        int64_t const rows = x.dims.volume(0, axis_), n = x.dims.volume(axis_, x.dims.rank);
        if (rows == 0 || n == 0)
            return {};
        int64_t const parts = std::min<int64_t>(args.workers->count(), (rows * n + kPartElements - 1) / kPartElements);
        args.workers->run(parts, [&](int64_t part, int) {
            int64_t const begin = rows * part / parts, end = rows * (part + 1) / parts;
            kernels::jit::SoftmaxArgs a;
            a.x = x.as<float>() + begin * n;
            a.y = y.as<float>() + begin * n;
            a.xStrideBytes = a.yStrideBytes = n * 4;
            a.rows = end - begin;
            a.n = n;
            kernel_(a);
        });
        return {};
    }

private:
    // A part of the work takes a few microseconds: less is not worth waking a worker.
    static constexpr int64_t kPartElements = 8192;

    int axis_;
    kernels::jit::SoftmaxKernel kernel_;
};

// Rows: nothing but dimensions of 1 behind the axis.
class JitTactic final : public Tactic
{
public:
    constexpr JitTactic(char const* name, kernels::jit::Isa isa) : Tactic(name, 1, Backend::kCpu), isa_(isa) {}
    Support supports(Problem const& p) const override
    {
        Extents const& e = p.inputs[0].maxDims;
        if (p.inputs[0].type != DataType::kFloat)
            return Support::no("takes f32 only");
        if (e.volume(int(p.node->attrsAs<Attrs>().axis) + 1, e.rank) != 1)
            return Support::no("takes the last axis only");
        return supportsIsa(isa_);
    }
    Result<std::unique_ptr<Kernel>> load(Problem const& p, Config const&, std::string const&) const override
    {
        TW_ASSIGN(auto kernel, kernels::jit::SoftmaxKernel::emit(isa_, {}));
        return std::unique_ptr<Kernel>(
            std::make_unique<JitKernel>(int(p.node->attrsAs<Attrs>().axis), std::move(kernel)));
    }

private:
    kernels::jit::Isa isa_;
};

constexpr JitTactic kAvx512{"softmax_f32_jit_avx512", kernels::jit::Isa::kAvx512};
constexpr JitTactic kAvx2{"softmax_f32_jit_avx2", kernels::jit::Isa::kAvx2};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kAvx512, &kAvx2, &kPlain};
    return kList;
}

} // namespace tw::ops::softmax
