// SPDX-License-Identifier: Apache-2.0
// Matrix products by emitted kernels against the FMA peak: a loop of independent multiply-adds on registers, timed in
// the same rounds on the same threads. Printed: the median over the rounds of (our rate / the loop's rate), per tile
// width, with factors in FP32 and, where the CPU has such products, rounded to BF16 (200 %: twice what FP32 could
// reach). usage: bench_gemm [m n k]   (b is packed before, as constant weights are)
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/tensor.h"
#include "device/cpu.h"
#include "device/thread_pool.h"
#include "kernels/cpu/gemm_jit.h"
#include "kernels/cpu/jit/vector_code.h"
#include "timing.h"

namespace {

using namespace tw;
using bench::median;
using bench::seconds;
using kernels::GemmJit;
using kernels::GemmJitOptions;
using kernels::jit::Factors;
using kernels::jit::Isa;

constexpr int kRounds = 40;

// One thread is timed by its own CPU time, which leaves out what other programs take from it; several by the clock.
// 2 x 12 sums, enough for the latency of one on two ports.
struct PeakLoop
{
    static constexpr int kSums = 12;
    kernels::jit::Code code;
    Isa isa;
    explicit PeakLoop(Isa i) : isa(i)
    {
        auto made = kernels::jit::emit(i, [](kernels::jit::VectorCode& c) {
            Xbyak::Label again;
            for (int v = 0; v <= kSums; ++v)
                c.zero(v);
            c.L(again);
            for (int r = 0; r < 2; ++r)
                for (int v = 1; v <= kSums; ++v)
                    c.vfmadd231ps(c.vec(v), c.vec(0), c.vec(0));
            c.dec(c.rdi);
            c.jnz(again, c.T_NEAR);
            c.vzeroupper();
            c.ret();
        });
        if (made.ok())
            code = std::move(*made);
    }
    // FLOP/s of all workers together.
    double rate(Workers& workers, int64_t turns) const
    {
        int const threads = workers.count();
        double const begin = seconds(threads);
        workers.run(workers.count(), [&](int64_t, int) { code.entry<void (*)(int64_t)>()(turns); });
        return double(workers.count()) * 2 * 2 * kSums * kernels::jit::vectorWidth(isa) * double(turns) /
               (seconds(threads) - begin);
    }
};

struct Candidate
{
    GemmJitOptions options;
    GemmJit gemm;
    Tensor packed, workspace;
    std::vector<double> shares, rates;
};

void compare(int64_t m, int64_t n, int64_t k, int threads, Isa isa, Factors factors, device::CpuInfo const& cpu)
{
    Workers& workers = device::processThreadPool().workers(threads);
    PeakLoop const peak(isa);
    Tensor a(DataType::kFloat, Extents{m, k}), b(DataType::kFloat, Extents{k, n}), c(DataType::kFloat, Extents{m, n});
    for (int64_t i = 0; i < a.count(); ++i)
        a.ref().as<float>()[i] = float(i % 7) - 3;
    for (int64_t i = 0; i < b.count(); ++i)
        b.ref().as<float>()[i] = float(i % 5) - 2;
    kernels::GemmShape const shape{m, n, k, k, 1, n, 1};
    std::vector<Candidate> list;
    for (int vectors = 1; vectors <= 4; ++vectors) {
        Candidate x;
        x.options.isa = isa;
        x.options.factors = factors;
        x.options.vectors = vectors;
        x.options.b = GemmJitOptions::kPackedBefore;
        x.options.packA = m > 1 && kernels::thrashesL1(4 * k, kernels::jit::gemmMaxRows(isa, vectors), cpu.l1DataBytes);
        x.options.l2Bytes = cpu.l2Bytes;
        x.options.threads = threads;
        auto gemm = GemmJit::make(x.options, shape, {{}});
        if (!gemm.ok())
            std::abort();
        x.gemm = std::move(*gemm);
        x.packed = Tensor(DataType::kFloat, Extents{GemmJit::packedFloats(x.options, n, k)});
        GemmJit::packB(x.options, shape, b.ref().as<float>(), x.packed.ref().as<float>());
        x.workspace = Tensor(DataType::kInt8, Extents{GemmJit::workspaceBytes(x.options, m, n, k)});
        list.push_back(std::move(x));
    }
    double const flops = 2. * double(m) * double(n) * double(k);
    int const repeats =
        std::max(1, int(1e7 / flops)); // short products several times, so that the clock's step is small
    // The loop lasts as long as a product: other programs take their share of either.
    auto const turns = int64_t(flops * repeats / threads / (2 * 2 * PeakLoop::kSums * kernels::jit::vectorWidth(isa)));
    std::vector<double> peaks;
    for (int round = 0; round <= kRounds; ++round) {
        double const top = peak.rate(workers, turns);
        if (round > 0)
            peaks.push_back(top);
        for (size_t i = 0; i < list.size(); ++i) {
            Candidate& x = list[(i + size_t(round)) % list.size()]; // none always runs after the same one
            double const begin = seconds(threads);
            for (int r = 0; r < repeats; ++r)
                x.gemm.run(a.ref().as<float>(), x.packed.ref().as<float>(), nullptr, nullptr, c.ref().as<float>(),
                           x.workspace.data(), workers);
            double const rate = flops * repeats / (seconds(threads) - begin);
            if (round > 0) { // round 0 warms up
                x.shares.push_back(rate / top);
                x.rates.push_back(rate);
            }
        }
    }
    constexpr char const* kNames[] = {"f32", "bf16 shifts", "bf16 dots", "bf16 tiles"};
    std::printf("%5ld x %4ld x %4ld  %s %-11s %dT  peak %6.1f GFLOP/s |", long(m), long(n), long(k), isaName(isa),
                kNames[int(factors)], threads, median(peaks) * 1e-9);
    int const width = kernels::jit::vectorWidth(isa);
    for (Candidate const& x : list) {
        int const rows = kernels::jit::gemmMaxRows(isa, x.options.vectors, factors);
        double const rate = median(x.rates);
        std::printf("  %2dx%-2d %5.1f %%", rows, x.options.vectors * width, 100 * median(x.shares));
        if (m <= 4) // bound by memory: weights are read once
            std::printf(" %5.1f GB/s", rate / flops * (isPairs(factors) ? 2 : 4) * double(n) * double(k) * 1e-9);
    }
    std::printf("\n");
    std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv)
{
    device::CpuInfo const cpu = device::probeCpu();
    std::printf("%s, L2 %ld KiB; share of the FMA loop, by tile\n", cpu.model.c_str(), long(cpu.l2Bytes >> 10));
    std::vector<std::array<int64_t, 3>> shapes = {{128, 768, 768},  {1024, 1024, 1024}, {128, 3072, 768},
                                                  {128, 768, 3072}, {384, 1024, 1024},  {197, 768, 768},
                                                  {1, 768, 3072},   {1, 4096, 4096}};
    if (argc == 4)
        shapes = {{std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3])}};
    for (Isa isa : {Isa::kAvx512, Isa::kAvx2}) {
        if (kernels::jit::isaOf(cpu, isa) != isa)
            continue;
        for (auto const& [m, n, k] : shapes)
            for (int threads : {1, 2})
                for (Factors f : {Factors::kFloat, Factors::kBf16Shifts, Factors::kBf16Dots, Factors::kBf16Tiles})
                    if (threads <= device::availableCpus() && kernels::jit::hasFactors(cpu, isa, f))
                        compare(m, n, k, threads, isa, f, cpu);
    }
    return 0;
}
