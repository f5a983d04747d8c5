// SPDX-License-Identifier: Apache-2.0
// Products of i8 by emitted kernels against the peak of the CPU's dot products: a loop of independent ones on registers,
// timed in the same rounds on the same threads. Printed: the median over the rounds of (our rate / the loop's rate), by
// tile width, `c` where rows of a are copied first. Outputs are i8 with a scale and a bias for each column.
// usage: bench_int8_gemm [products m n k [variable]]   (b is packed before, as constant weights are, or variable: [n, k],
// packed in the timing)
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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

// 2 x 12 sums, enough for the latency of one on two ports.
struct PeakLoop
{
    static constexpr int kSums = 12;
    kernels::jit::Code code;
    double perTurn = 0; // multiplications and additions
    PeakLoop(Isa isa, Factors factors) : perTurn(2. * 2 * kSums * 4 * kernels::jit::vectorWidth(isa))
    {
        auto made = kernels::jit::emit(isa, [&](kernels::jit::VectorCode& c) {
            Xbyak::Label again;
            for (int v = 0; v <= kSums; ++v)
                c.zero(v);
            c.L(again);
            for (int r = 0; r < 2; ++r)
                for (int v = 1; v <= kSums; ++v)
                    if (isBytePairs(factors)) {
                        c.vpmaddubsw(c.vec(13), c.vec(0), c.vec(0));
                        c.vpmaddwd(c.vec(13), c.vec(13), c.vec(0));
                        c.vpaddd(c.vec(v), c.vec(v), c.vec(13));
                    } else if (factors == Factors::kByteDots)
                        c.vpdpbusd(c.vec(v), c.vec(0), c.vec(0), c.avx512() ? Xbyak::EvexEncoding : Xbyak::VexEncoding);
                    else // two words in a lane, and their sum: half of what a dot product of bytes does
                        c.vpmaddwd(c.vec(v), c.vec(0), c.vec(0));
            c.dec(c.rdi);
            c.jnz(again, c.T_NEAR);
            c.vzeroupper();
            c.ret();
        });
        if (made.ok())
            code = std::move(*made);
        if (factors == Factors::kByteWords)
            perTurn /= 2;
    }
    // Operations of all workers together, in a second.
    double rate(Workers& workers, int64_t turns) const
    {
        int const threads = workers.count();
        double const begin = seconds(threads);
        workers.run(workers.count(), [&](int64_t, int) { code.entry<void (*)(int64_t)>()(turns); });
        return double(workers.count()) * perTurn * double(turns) / (seconds(threads) - begin);
    }
};

struct Candidate
{
    GemmJitOptions options;
    GemmJit gemm;
    Tensor packed, workspace;
    std::vector<double> shares, rates;
};

struct Shape
{
    int64_t products, m, n, k;
    bool variable = false;
};

char const* nameOf(Factors factors)
{
    constexpr char const* kNames[] = {" words", " signs", " pairs", " vnni"};
    return kNames[int(factors) - int(Factors::kByteWords)];
}

void compare(Shape const& shape, int threads, Isa isa, Factors factors, device::CpuInfo const& cpu)
{
    auto const [products, m, n, k, variable] = shape;
    Workers& workers = device::processThreadPool().workers(threads);
    PeakLoop const peak(isa, factors);
    Tensor a(DataType::kInt8, Extents{products * m, k}), b(DataType::kInt8, Extents{products * k, n}),
        c(DataType::kInt8, Extents{products * m, n}), columns(DataType::kFloat, Extents{n});
    for (int64_t i = 0; i < a.count(); ++i)
        a.ref().as<int8_t>()[i] = int8_t(i % (factors == Factors::kBytePairs ? 127 : 253));
    for (int64_t i = 0; i < b.count(); ++i)
        b.ref().as<int8_t>()[i] = int8_t(i % 241 - 120);
    std::fill_n(columns.ref().as<float>(), n, 1e-4F);
    kernels::GemmShape const s{m, n, k, k, 1, variable ? 1 : n, variable ? k : 1};
    std::vector<Candidate> list;
    for (int vectors = 1; vectors <= 4; ++vectors)
        for (bool const copies : {false, true}) {
            Candidate x;
            x.options.isa = isa;
            x.options.factors = factors;
            x.options.vectors = vectors;
            x.options.b = variable ? GemmJitOptions::kPacked : GemmJitOptions::kPackedBefore;
            x.options.packA = copies;
            x.options.l2Bytes = cpu.l2Bytes;
            x.options.threads = threads;
            x.options.integers.bias = x.options.integers.bounded = true;
            x.options.integers.store = DataType::kInt8;
            int64_t const each = GemmJit::packedFloats(x.options, n, k);
            std::vector<kernels::GemmOffsets> offsets;
            for (int64_t i = 0; i < products; ++i)
                offsets.push_back({i * m * k, variable ? i * k * n : i * each});
            auto gemm = GemmJit::make(x.options, s, offsets);
            if (!gemm.ok())
                std::abort();
            x.gemm = std::move(*gemm);
            x.packed = Tensor(DataType::kFloat, Extents{products * each});
            for (int64_t i = 0; i < products && !variable; ++i)
                GemmJit::packB(x.options, s, b.ref().as<int8_t>() + i * k * n, x.packed.ref().as<float>() + i * each);
            x.workspace = Tensor(DataType::kInt8, Extents{GemmJit::workspaceBytes(x.options, m, n, k)});
            list.push_back(std::move(x));
        }
    kernels::jit::GemmArgs out;
    out.c = c.data();
    out.scale = out.bias = columns.ref().as<float>();
    double const operations = 2. * double(products) * double(m) * double(n) * double(k);
    int const repeats = std::max(1, int(4e7 / operations)); // so that the clock's step is small
    // The loop lasts as long as a product: other programs take their share of either.
    auto const turns = int64_t(operations * repeats / threads / peak.perTurn);
    std::vector<double> peaks;
    for (int round = 0; round <= kRounds; ++round) {
        double const top = peak.rate(workers, turns);
        if (round > 0)
            peaks.push_back(top);
        for (size_t i = 0; i < list.size(); ++i) {
            Candidate& x = list[(i + size_t(round)) % list.size()]; // none always runs after the same one
            double const begin = seconds(threads);
            for (int r = 0; r < repeats; ++r)
                x.gemm.run(a.data(), (variable ? b : x.packed).data(), out, x.workspace.data(), workers);
            double const rate = operations * repeats / (seconds(threads) - begin);
            if (round > 0) { // round 0 warms up
                x.shares.push_back(rate / top);
                x.rates.push_back(rate);
            }
        }
    }
    std::printf("%3ld of %4ld x %4ld x %4ld%s %s%s %dT  peak %6.1f GOP/s |", long(products), long(m), long(n), long(k),
                variable ? " variable" : "", isaName(isa), nameOf(factors), threads, median(peaks) * 1e-9);
    int const width = kernels::jit::vectorWidth(isa);
    for (Candidate const& x : list) {
        std::printf("  %d%s %5.1f %%", x.options.vectors * width, x.options.packA ? "c" : "", 100 * median(x.shares));
        if (m <= 4) // bound by memory: weights are read once
            std::printf(" %5.1f GB/s", median(x.rates) / operations * double(products) * double(n) * double(k) * 1e-9);
    }
    std::printf("\n");
    std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv)
{
    device::CpuInfo const cpu = device::probeCpu();
    std::printf("%s, L2 %ld KiB; share of the loop of dot products, by columns of a tile\n", cpu.model.c_str(),
                long(cpu.l2Bytes >> 10));
    // BERT's layers and its attention, small sums, few rows.
    std::vector<Shape> shapes = {{1, 128, 768, 768},   {1, 128, 3072, 768},      {1, 128, 768, 3072},
                                 {1, 384, 1024, 1024}, {12, 128, 128, 64, true}, {12, 128, 64, 128, true},
                                 {1, 3136, 64, 64},    {1, 3136, 256, 64},       {1, 1, 768, 3072},
                                 {1, 1, 4096, 4096}};
    if (argc >= 5)
        shapes = {{std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3]), std::atoll(argv[4]),
                   argc > 5 && std::strcmp(argv[5], "variable") == 0}};
    for (Isa isa : {Isa::kAvx512, Isa::kAvx2}) {
        if (kernels::jit::isaOf(cpu, isa) != isa)
            continue;
        for (Factors factors : {Factors::kByteDots, Factors::kBytePairs, Factors::kByteSigns, Factors::kByteWords}) {
            if (factors == Factors::kByteDots && kernels::jit::byteFactors(cpu, isa) != factors)
                continue;
            if (factors == Factors::kByteSigns && isa == Isa::kAvx512)
                continue;
            for (Shape const& shape : shapes)
                for (int threads : {1, 2})
                    if (threads <= device::availableCpus())
                        compare(shape, threads, isa, factors, cpu);
        }
    }
    return 0;
}
