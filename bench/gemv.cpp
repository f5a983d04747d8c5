// SPDX-License-Identifier: Apache-2.0
// Products of one to four rows with known weights against a loop that only reads the same bytes on the same threads,
// timed in the same rounds. Printed: the median over the rounds of (our time / the loop's time), with the weights where
// the call before left them ("warm") and out of all caches ("cold"). usage: bench_gemv [m n k]
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "device/cpu.h"
#include "device/large_pages.h"
#include "device/thread_pool.h"
#include "kernels/cpu/gemm_jit.h"
#include "kernels/cpu/gemv_jit.h"
#include "read_loop.h"
#include "timing.h"

namespace {

using namespace tw;
using bench::median;
using bench::seconds;
using kernels::GemmJit;
using kernels::GemmJitOptions;
using kernels::GemvJit;
using kernels::GemvJitOptions;
using kernels::jit::Isa;
using kernels::jit::vectorWidth;

constexpr int kRounds = 15;

struct Candidate
{
    std::string name;
    int64_t floats = 0;
    std::vector<device::PackedFloats> packed; // copies, more than fit any cache
    std::function<void(float const* b)> run;
    std::vector<double> ratios[2], rates[2]; // warm, cold
};

// One thread is timed by its own CPU time, which leaves out what other programs take from it; several by the clock.
void compare(int64_t m, int64_t n, int64_t k, int threads, Isa isa, device::CpuInfo const& cpu)
{
    Workers& workers = device::processThreadPool().workers(threads);
    bench::ReadLoop const loop(isa);
    Tensor a(DataType::kFloat, Extents{m, k}), b(DataType::kFloat, Extents{k, n}), c(DataType::kFloat, Extents{m, n});
    for (int64_t i = 0; i < a.count(); ++i)
        a.ref().as<float>()[i] = float(i % 7) - 3;
    for (int64_t i = 0; i < b.count(); ++i)
        b.ref().as<float>()[i] = float(i % 5) - 2;
    kernels::GemmShape const shape{m, n, k, k, 1, n, 1};
    int64_t const bytes = 4 * n * k, copies = std::clamp<int64_t>((96 << 20) / bytes, 1, 256);
    std::vector<Candidate> list;
    auto add = [&](std::string name, int vectors, std::function<void(float const*)> run) {
        GemmJitOptions o;
        o.isa = isa;
        o.vectors = vectors;
        Candidate x;
        x.name = std::move(name);
        x.floats = GemmJit::packedFloats(o, n, k);
        for (int64_t i = 0; i < copies; ++i) {
            x.packed.emplace_back(x.floats);
            GemmJit::packB(o, shape, b.ref().as<float>(), x.packed.back().data());
        }
        x.run = std::move(run);
        list.push_back(std::move(x));
    };
    std::vector<GemmJit> gemms(8);
    for (int vectors = 2; vectors <= 4; ++vectors) {
        GemmJitOptions o;
        o.isa = isa;
        o.vectors = vectors;
        o.b = GemmJitOptions::kPackedBefore;
        o.l2Bytes = cpu.l2Bytes;
        o.threads = threads;
        auto gemm = GemmJit::make(o, shape, {{}});
        if (!gemm.ok())
            std::abort();
        GemmJit& g = gemms[size_t(vectors)];
        g = std::move(*gemm);
        add("tile" + std::to_string(vectors), vectors, [&a, &c, &g, &workers](float const* from) {
            g.run(a.ref().as<float>(), from, nullptr, nullptr, c.ref().as<float>(), nullptr, workers);
        });
    }
    std::vector<GemvJit> gemvs(8);
    for (int vectors : {1, 2, 4}) {
        if (!kernels::jit::gemvFits(isa, int(m), vectors, 2, false) || n <= (vectors - 1) * vectorWidth(isa))
            continue;
        GemvJitOptions o;
        o.isa = isa;
        o.vectors = vectors;
        o.threads = threads;
        auto gemv = GemvJit::make(o, shape, {{}});
        if (!gemv.ok())
            std::abort();
        GemvJit& g = gemvs[size_t(vectors)];
        g = std::move(*gemv);
        add("rows" + std::to_string(vectors), vectors, [&a, &c, &g, &workers](float const* from) {
            g.run(a.ref().as<float>(), from, nullptr, nullptr, c.ref().as<float>(), workers);
        });
    }
    int const repeats = int(std::clamp<int64_t>((32 << 20) / bytes, 1, 4000));
    auto time = [&](Candidate const& x, bool cold, std::function<void(float const*)> const& f) {
        if (!cold)
            f(x.packed[0].data());
        double const begin = seconds(threads);
        if (cold)
            for (device::PackedFloats const& b : x.packed)
                f(b.data());
        else
            for (int r = 0; r < repeats; ++r)
                f(x.packed[0].data());
        return (seconds(threads) - begin) / (cold ? double(x.packed.size()) : repeats);
    };
    for (int round = 0; round < kRounds; ++round)
        for (size_t i = 0; i < list.size(); ++i) {
            Candidate& x = list[(i + size_t(round)) % list.size()]; // none always runs after the same one
            for (bool cold : {false, true}) {
                if (cold && (round % 2 != 0 || x.packed.size() < 2))
                    continue;
                double const reads = time(x, cold, [&](float const* b) { loop.read(b, x.floats, workers); });
                double const ours = time(x, cold, x.run);
                x.ratios[cold].push_back(ours / reads);
                x.rates[cold].push_back(double(bytes) / ours);
            }
        }
    std::printf("%ld x %4ld x %4ld  %s %dT |", long(m), long(n), long(k), isaName(isa), threads);
    for (Candidate const& x : list) {
        std::printf("  %s", x.name.c_str());
        for (bool cold : {false, true})
            if (!x.ratios[cold].empty())
                std::printf(" %.2f (%.0f)", median(x.ratios[cold]), median(x.rates[cold]) * 1e-9);
    }
    std::printf("\n");
    std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv)
{
    device::CpuInfo const cpu = device::probeCpu();
    std::printf("%s, L2 %ld KiB; time / a read loop's, warm and cold (GB/s)\n", cpu.model.c_str(),
                long(cpu.l2Bytes >> 10));
    std::vector<std::array<int64_t, 3>> shapes = {{1, 1000, 2048}, {1, 3072, 768}, {1, 768, 3072}, {1, 4096, 4096},
                                                  {1, 10, 84},     {1, 256, 512},  {1, 64, 4096},  {2, 3072, 768},
                                                  {4, 3072, 768},  {4, 1000, 2048}};
    if (argc == 4)
        shapes = {{std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3])}};
    for (Isa isa : {Isa::kAvx512, Isa::kAvx2}) {
        if (kernels::jit::isaOf(cpu, isa) != isa)
            continue;
        for (auto const& [m, n, k] : shapes)
            for (int threads : {1, 2})
                if (threads <= device::availableCpus())
                    compare(m, n, k, threads, isa, cpu);
    }
    return 0;
}
