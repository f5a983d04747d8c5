// SPDX-License-Identifier: Apache-2.0
// On tensor cores.
#include <algorithm>

#include "families/attention/cuda_fused.h"
#include "kernels/cuda/attention/few_rows.h"
#include "kernels/cuda/attention/mma_f32.h"
#include "kernels/cuda/attention/wgmma_f16.h"
#include "ops/attention/tactics.h"

namespace tw::ops::attention {

namespace {

// ---- FP16 on tensor cores: kernels/cuda/attention_*f16.

namespace mma = cuda::attention_f16;
namespace wgmma = cuda::attention_wgmma_f16;

Support supportsMma(Problem const& problem)
{
    TW_SUPPORTS(isAmpere(problem));
    return supportsFused(problem, DataType::kHalf);
}

Support supportsWgmma(Problem const& problem)
{
    if (!problem.target.cuda || problem.target.cuda->capability != 90)
        return Support::no("needs compute capability 9.0");
    if (int64_t const size = problem.node->attrsAs<Attrs>().size; size != 64 && size != 128)
        return Support::no(fmt::format("takes heads of 64 or 128 elements, these have {}", size));
    if (auto const& a = problem.node->attrsAs<Attrs>(); a.valueSize != a.size)
        return Support::no(fmt::format("takes values of the size of keys, these have {}", a.valueSize));
    TW_SUPPORTS(supportsFused(problem, DataType::kHalf));
    if (problem.node->attrsAs<Attrs>().ofDecoders())
        return Support::no("takes neither lengths nor positions nor what changes scores");
    return copyUnit(problem) == 8 ? Support::yes() : Support::no("takes heads that begin at multiples of 8 elements");
}

// {warps, keys}
mma::Spec mmaSpec(Problem const& problem, Config const& c, cuda::AttentionMasks const& masks)
{
    mma::Spec s;
    auto const& a = problem.node->attrsAs<Attrs>();
    s.headDim = int(a.size);
    s.valueDim = int(a.valueSize);
    s.unit = copyUnit(problem);
    s.warps = int(c[0]);
    s.keys = int(c[1]);
    s.masks = masks;
    s.integers = a.integers;
    return s;
}

std::vector<Config> mmaConfigs(Problem const& problem)
{
    FusedSizes const z = fusedSizes(problem);
    int64_t const fitting = z.rows <= 16 ? 1 : z.rows <= 32 ? 2 : 4;
    std::vector<Config> list;
    auto add = [&](int64_t warps, int64_t keys) {
        Config const c{warps, keys};
        if (!unsupported(mmaSpec(problem, c, {})) && std::find(list.begin(), list.end(), c) == list.end())
            list.push_back(c);
    };
    auto const& a = problem.node->attrsAs<Attrs>();
    bool const isLarge = std::max(a.size, a.valueSize) > 128; // more keys a step do not fit the registers
    add(fitting, z.keys <= 32 || isLarge ? 32 : 64);
    if (isLarge) {
        if (fitting == 4)
            add(2, 32);
        return list;
    }
    if (!supportsWgmma(problem).ok) { // else the other kernel is ahead of these
        if (z.keys > 64)
            add(fitting, 128);
        if (fitting == 4) {
            add(2, 64);
            add(8, 64);
        }
    }
    return list;
}

std::unique_ptr<CudaKernels> generateMma(Problem const& problem, Config const& config)
{
    return fusedKernels<FusedKernels<mma::Spec>>(problem, config, 2, mmaSpec);
}

// {groups, keys, stages}
wgmma::Spec wgmmaSpec(Problem const& problem, Config const& c, cuda::AttentionMasks const& masks)
{
    wgmma::Spec s;
    s.headDim = int(problem.node->attrsAs<Attrs>().size);
    s.groups = int(c[0]);
    s.keys = int(c[1]);
    s.stages = int(c[2]);
    s.masks = masks;
    s.integers = problem.node->attrsAs<Attrs>().integers;
    return s;
}

std::vector<Config> wgmmaConfigs(Problem const& problem)
{
    constexpr int64_t kMostKeys = 256, kLong = 512;
    FusedSizes const z = fusedSizes(problem);
    cuda::AttentionMasks const masks = maskPlan(problem).masks;
    std::vector<Config> list;
    auto add = [&](int64_t groups, int64_t keys) {
        int64_t const steps = (z.keys + keys - 1) / keys;
        Config const c{groups, keys, std::min<int64_t>(steps, 2)};
        bool const fits = !unsupported(wgmmaSpec(problem, c, masks));
        if (fits && std::find(list.begin(), list.end(), c) == list.end())
            list.push_back(c);
        return fits;
    };
    // A group of warps for 64 rows, several blocks on a multiprocessor: the fewest steps that registers allow, which is
    // best for few blocks; one more; steps of 64 for many. More groups share what they copy: for long sequences.
    int64_t steps = 1;
    auto evenly = [&] { return (z.keys + steps * 16 - 1) / (steps * 16) * 16; };
    while (evenly() > kMostKeys || !add(1, evenly()))
        ++steps;
    ++steps;
    add(1, evenly());
    add(1, 64);
    if (z.keys % 96 == 0)
        add(1, 96);
    if (z.rows > 64)
        add(2, std::min<int64_t>((z.keys + 15) / 16 * 16, 128));
    if (z.rows >= kLong) {
        add(3, 96);
        add(1, 128);
    }
    return list;
}

class WgmmaKernels final : public FusedKernels<wgmma::Spec>
{
public:
    using FusedKernels::FusedKernels;
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override;
};

Result<void> WgmmaKernels::run(CudaLaunch const& launch, RunArgs& args) const
{
    FusedRun const r = runOf(args);
    if (r.shape.sk == 0) { // a tensor map holds at least one row
        cuda::Driver const& driver = launch.device().driver();
        return driver.check(
            driver.cuMemsetD8Async(cuda::addressOf(r.args.y), 0, size_t(args.outputs[0].sizeBytes()), launch.stream()),
            "cuMemsetD8Async");
    }
    wgmma::Maps const maps = wgmma::maps(spec_, r.shape, r.args);
    TW_ASSIGN(cuda::TensorMap const q, launch.encode(maps.q, r.args.q));
    TW_ASSIGN(cuda::TensorMap const k, launch.encode(maps.k, r.args.k));
    TW_ASSIGN(cuda::TensorMap const v, launch.encode(maps.v, r.args.v));
    return launch.withGeometry(0, wgmma::launch(spec_, r.shape), {&q, &k, &v, &r.args});
}

std::unique_ptr<CudaKernels> generateWgmma(Problem const& problem, Config const& config)
{
    return fusedKernels<WgmmaKernels>(problem, config, 3, wgmmaSpec);
}

// ---- FP16, few queries on a head of keys: kernels/cuda/attention/few_rows. The config: {warps, blocks}.

namespace few = cuda::attention_few_rows;

std::unique_ptr<CudaKernels> generateFew(Problem const& problem, Config const& config)
{
    return fusedKernels<FusedKernels<few::Spec>>(problem, config, 2, fewRowsSpec);
}

// ---- FP32 on tensor cores: kernels/cuda/attention_f32, with factors rounded to TF32 and without. The config: {warps,
// blocks, keys, parts}.

namespace kernel = cuda::attention_f32;

Support supports(Problem const& problem)
{
    TW_SUPPORTS(isAmpere(problem));
    if (problem.node->attrsAs<Attrs>().integers)
        return Support::no("makes no integers");
    return supportsFused(problem, DataType::kFloat);
}

template <bool tf32x3>
kernel::Spec specOf(Problem const& problem, Config const& c, cuda::AttentionMasks const& masks)
{
    kernel::Spec s;
    auto const& a = problem.node->attrsAs<Attrs>();
    s.headDim = int(a.size);
    s.valueDim = int(a.valueSize);
    s.unit = copyUnit(problem);
    s.warps = int(c[0]);
    s.blocks = int(c[1]);
    s.keys = int(c[2]);
    s.parts = int(c[3]);
    s.masks = masks;
    s.tf32x3 = tf32x3;
    return s;
}

template <bool tf32x3>
std::vector<Config> configs(Problem const& problem)
{
    FusedSizes const z = fusedSizes(problem);
    int64_t const fitting = z.rows <= 16 ? 1 : z.rows <= 32 ? 2 : 4;
    cuda::AttentionMasks const masks = maskPlan(problem).masks;
    std::vector<Config> list;
    auto add = [&](int64_t warps, int64_t blocks, int64_t keys, int64_t parts = 1) {
        Config const c{warps, blocks, keys, parts};
        if (!unsupported(specOf<tf32x3>(problem, c, masks)) && std::find(list.begin(), list.end(), c) == list.end())
            list.push_back(c);
    };
    auto const& a = problem.node->attrsAs<Attrs>();
    if (std::max(a.size, a.valueSize) > 128) { // more does not fit registers and shared memory
        add(std::min<int64_t>(fitting, 2), 1, 32);
        add(1, 1, 32);
        return list;
    }
    add(fitting, 1, z.keys <= 32 ? 32 : 64);
    add(fitting, 1, 32);
    // Few blocks: more warps for each head, which share the keys.
    if (problem.outputs[0].dims.volume() / std::max<int64_t>(z.rows * a.valueSize, 1) * ((z.rows + 63) / 64) <
        int64_t(problem.target.cuda->multiprocessors)) {
        add(fitting, 1, 32, 2);
        add(std::min<int64_t>(fitting, 2), 1, 32, 4);
    } else if (z.rows > 64) {
        add(4, 2, 32);
        add(8, 1, 32);
    }
    return list;
}

template <bool tf32x3>
std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config)
{
    return fusedKernels<FusedKernels<kernel::Spec>>(problem, config, 4, specOf<tf32x3>);
}

} // namespace

constinit CudaTactic const kF16Wgmma{"attention_f16_wgmma_sm90a", 3, generateWgmma, supportsWgmma, wgmmaConfigs};
constinit CudaTactic const kF16Mma{"attention_f16_mma_sm80", 4, generateMma, supportsMma, mmaConfigs};
constinit CudaTactic const kF16Few{"attention_f16_few_rows_sm80", 3, generateFew, supportsFewRows, fewRowsConfigs};
constinit CudaTactic const kTf32Mma{
    "attention_tf32_mma_sm80",          3, generate<false>, supports, configs<false>, nullptr, nullptr,
    Traits{.rounding = Rounding::kTf32}};
constinit CudaTactic const kF32Mma{"attention_f32_tf32x3_mma_sm80", 3, generate<true>, supports, configs<true>};

} // namespace tw::ops::attention
