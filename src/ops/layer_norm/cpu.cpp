// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "kernels/cpu/jit/layer_norm_kernel.h"
#include "ops/layer_norm/op.h"
#include "tactic/cpu_isa.h"
#include "tactic/element.h"
#include "tactic/tactic.h"

namespace tw::ops::layer_norm {

namespace {

template <class T>
void normalize(T const* x, T const* gamma, T const* beta, T* y, int64_t rows, int64_t n, double epsilon)
{
    for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < n; ++i)
            sum += double(loadElement(x[i]));
        float const mean = float(sum / double(n));
        for (int64_t i = 0; i < n; ++i) {
            double const d = double(loadElement(x[i]) - mean);
            squares += d * d;
        }
        float const factor = float(1 / std::sqrt(squares / double(n) + epsilon));
        for (int64_t i = 0; i < n; ++i)
            storeElement(y[i], (loadElement(x[i]) - mean) * factor * (gamma ? loadElement(gamma[i]) : 1) +
                                   (beta ? loadElement(beta[i]) : 0));
    }
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0], none{};
    TensorRef const& gamma = a.hasGamma ? args.inputs[size_t(a.gammaInput())] : none;
    TensorRef const& beta = a.hasBeta ? args.inputs[size_t(a.betaInput())] : none;
    int64_t const rows = x.dims.volume(0, int(a.axis)), n = x.dims.volume(int(a.axis), x.dims.rank);
    if (x.type == DataType::kFloat)
        normalize(x.as<float>(), gamma.as<float>(), beta.as<float>(), y.as<float>(), rows, n, a.epsilon);
    else
        normalize(x.as<uint16_t>(), gamma.as<uint16_t>(), beta.as<uint16_t>(), y.as<uint16_t>(), rows, n, a.epsilon);
    return {};
}

constexpr PlainTactic kPlain{"layer_norm_plain", 1, run};

class JitKernel final : public Kernel
{
public:
    JitKernel(Attrs const& attrs, kernels::jit::LayerNormKernel kernel) : attrs_(attrs), kernel_(std::move(kernel)) {}
    Result<void> run(RunArgs& args) const override
    {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        int64_t const rows = x.dims.volume(0, int(attrs_.axis)), n = x.dims.volume(int(attrs_.axis), x.dims.rank);
        if (rows == 0 || n == 0)
            return {};
        int64_t const parts = std::min<int64_t>(args.workers->count(), (rows * n + kPartElements - 1) / kPartElements);
        auto row = [&](int i) { return i < 0 ? nullptr : args.inputs[size_t(i)].as<float>(); };
        args.workers->run(parts, [&](int64_t part, int) {
            int64_t const begin = rows * part / parts, end = rows * (part + 1) / parts;
            kernel_({x.as<float>() + begin * n, y.as<float>() + begin * n, row(attrs_.gammaInput()),
                     row(attrs_.betaInput()), end - begin, n, float(1 / double(n)), float(attrs_.epsilon)});
        });
        return {};
    }

private:
    // A part of the work takes a few microseconds: less is not worth waking a worker.
    static constexpr int64_t kPartElements = 16384;

    Attrs attrs_;
    kernels::jit::LayerNormKernel kernel_;
};

class JitTactic final : public Tactic
{
public:
    constexpr JitTactic(char const* name, kernels::jit::Isa isa) : Tactic(name, 1, Backend::kCpu), isa_(isa) {}
    Support supports(Problem const& p) const override
    {
        if (p.inputs[0].type != DataType::kFloat)
            return Support::no("takes f32 only");
        return supportsIsa(isa_);
    }
    Result<std::unique_ptr<Kernel>> load(Problem const& p, Config const&, std::string const&) const override
    {
        auto const& a = p.node->attrsAs<Attrs>();
        TW_ASSIGN(auto kernel, kernels::jit::LayerNormKernel::emit(isa_, a.hasGamma, a.hasBeta));
        return std::unique_ptr<Kernel>(std::make_unique<JitKernel>(a, std::move(kernel)));
    }

private:
    kernels::jit::Isa isa_;
};

constexpr JitTactic kAvx512{"layer_norm_f32_jit_avx512", kernels::jit::Isa::kAvx512};
constexpr JitTactic kAvx2{"layer_norm_f32_jit_avx2", kernels::jit::Isa::kAvx2};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kAvx512, &kAvx2, &kPlain};
    return kList;
}

} // namespace tw::ops::layer_norm
