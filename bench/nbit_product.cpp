// SPDX-License-Identifier: Apache-2.0
// One token's products by weights of 4 and 8 bits, of the shapes of TinyLlama-1.1B, out of all caches, beside loops that only
// read and only copy as many bytes on the same threads, timed in the same rounds. Printed for each tactic: microseconds, GB/s
// of packed weights, and the medians over the rounds of (our time / the loop's). usage: bench_nbit_product [rows [number of a shape [rounded]]],
// or bench_nbit_product rates THREADS: bytes a second that the loops read, and copy (read and written), medians.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "device/cpu.h"
#include "device/large_pages.h"
#include "device/thread_pool.h"
#include "ops/nbit_product/op.h"
#include "read_loop.h"
#include "tactic/registry.h"
#include "timing.h"
#include "tune/check.h"

namespace {

using namespace tw;
using bench::median;
using bench::ReadLoop;
using bench::seconds;
using kernels::jit::Isa;

constexpr int kRounds = 9;
constexpr int64_t kCold = int64_t(160) << 20; // bytes, more than caches hold

void copyAll(ReadLoop const& loop, float const* from, float* to, int64_t count, Workers& workers)
{
    loop.inParts(count, workers,
                 [&](int64_t begin, int64_t n) { std::memcpy(to + begin, from + begin, size_t(n) * sizeof(float)); });
}

struct Candidate
{
    std::string name;
    std::vector<std::unique_ptr<ops::Kernel>> kernels; // copies of the weights
    std::shared_ptr<ops::Prepared const> prepared;
    Tensor workspace;
    std::vector<double> seconds, overRead, overCopy;
};

void measure(int64_t m, int64_t n, int64_t k, int64_t bits, int64_t block, bool roundsX, DataType type, int threads,
             ReadLoop const& loop)
{
    using namespace ops::nbit_product;
    Attrs attrs;
    attrs.k = k;
    attrs.bits = bits;
    attrs.block = block;
    attrs.roundsX = roundsX;
    ir::Graph graph;
    Extents const dims[] = {{m, k}, {n, attrs.blocks(), attrs.words()}, {n, attrs.blocks()}};
    DataType const types[] = {type, DataType::kInt32, DataType::kHalf};
    std::vector<ir::Value*> values;
    for (int i = 0; i < 3; ++i)
        values.push_back(graph.addInput("in", types[i], ir::shapeOf(dims[i])));
    auto node = graph.addNode(def(), attrs.clone(), values, "p");
    if (!node.ok())
        std::abort();
    Workers& workers = device::processThreadPool().workers(threads);
    std::vector<Tensor> in;
    for (int i = 0; i < 3; ++i) {
        in.emplace_back(types[i], dims[i]);
        tune::fillRandom(in.back().ref(), tune::domainOf(**node, i), uint64_t(i));
    }
    Tensor y(type, {m, n});
    int64_t const bytes = n * attrs.blocks() * (attrs.words() * 4 + 2);
    int64_t const copies = std::max<int64_t>(kCold / bytes, 2);
    std::vector<TensorRef> inputs{in[0].ref(), in[1].ref(), in[2].ref()}, outputs{y.ref()};
    ops::Problem p;
    p.node = *node;
    p.threads = threads;
    Blob const weights(in[1].ref().data, size_t(in[1].ref().sizeBytes())),
        scales(in[2].ref().data, size_t(in[2].ref().sizeBytes()));
    for (int i = 0; i < 3; ++i)
        p.inputs.push_back({.type = types[i],
                            .dims = dims[i],
                            .maxDims = dims[i],
                            .constant = i == 1   ? &weights
                                        : i == 2 ? &scales
                                                 : nullptr});
    p.outputs.push_back({.type = type, .dims = {m, n}, .maxDims = {m, n}});
    std::vector<Candidate> list;
    for (ops::Tactic const* tactic : *def().cpuTactics) {
        if (!tactic->supports(p).ok || std::strstr(tactic->name(), "plain"))
            continue;
        for (ops::Config const& config : tactic->configs(p)) {
            Candidate c;
            c.name = std::string(tactic->name()) + " " + std::to_string(config[0]);
            for (int64_t i = 0; i < copies; ++i) {
                auto kernel = tactic->load(p, config, "");
                if (!kernel.ok())
                    std::abort();
                c.kernels.push_back(std::move(*kernel));
            }
            auto prepared = c.kernels[0]->prepare(inputs, outputs);
            c.prepared = *prepared;
            c.workspace = Tensor(DataType::kInt8, {c.kernels[0]->workspaceBytes(inputs, outputs) + 64});
            list.push_back(std::move(c));
        }
    }
    device::PackedFloats from(copies * bytes / 4), to(copies * bytes / 4);
    std::fill_n(from.data(), copies * bytes / 4, 1.F); // memory that nobody wrote is one page of zeros
    std::vector<double> reads, copied;
    auto const time = [&](auto const& f) {
        double const begin = seconds(threads);
        for (int64_t i = 0; i < copies; ++i)
            f(i);
        return (seconds(threads) - begin) / double(copies);
    };
    for (int round = 0; round < kRounds; ++round)
        for (Candidate& c : list) {
            double const read = time([&](int64_t i) { loop.read(from.data() + i * bytes / 4, bytes / 4, workers); });
            double const copy = time([&](int64_t i) {
                copyAll(loop, from.data() + i * bytes / 4, to.data() + i * bytes / 4, bytes / 4, workers);
            });
            double const ours = time([&](int64_t i) {
                ops::RunArgs args{.inputs = inputs, .outputs = outputs};
                args.workers = &workers;
                args.prepared = c.prepared.get();
                args.workspace =
                    reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(c.workspace.ref().data) + 63) / 64 * 64);
                if (!c.kernels[size_t(i)]->run(args).ok())
                    std::abort();
            });
            c.seconds.push_back(ours);
            c.overRead.push_back(ours / read);
            c.overCopy.push_back(ours / copy);
            reads.push_back(read);
            copied.push_back(copy);
        }
    for (Candidate const& c : list)
        std::printf("%3ld x %5ld x %4ld  %ld bits / %3ld %4s %dT  %-34s %9.1f us %6.1f GB/s  / read %.2f / copy %.2f   "
                    "(read %.1f, copy %.1f GB/s)\n",
                    long(m), long(n), long(k), long(bits), long(block), nameOf(type), threads, c.name.c_str(),
                    median(c.seconds) * 1e6, double(bytes) / median(c.seconds) * 1e-9, median(c.overRead),
                    median(c.overCopy), double(bytes) / median(reads) * 1e-9, double(bytes) / median(copied) * 1e-9);
    std::fflush(stdout);
}

void printRates(int threads, ReadLoop const& loop)
{
    Workers& workers = device::processThreadPool().workers(threads);
    int64_t const count = kCold / 4;
    device::PackedFloats from(count), to(count);
    std::fill_n(from.data(), count, 1.F);
    std::fill_n(to.data(), count, 1.F);
    std::vector<double> reads, copies;
    constexpr int kTimes = 3;
    for (int round = 0; round < kTimes; ++round) {
        double const begin = seconds(2);
        loop.read(from.data(), count, workers);
        double const middle = seconds(2);
        copyAll(loop, from.data(), to.data(), count, workers);
        reads.push_back(middle - begin);
        copies.push_back(seconds(2) - middle);
    }
    std::printf("%.6g %.6g\n", double(kCold) / median(reads), 2 * double(kCold) / median(copies));
}

} // namespace

int main(int argc, char** argv)
{
    bool const wantsRates = argc == 3 && std::strcmp(argv[1], "rates") == 0;
    int64_t const m = argc > 1 ? std::atoll(argv[1]) : 1;
    device::CpuInfo const cpu = device::probeCpu();
    auto const isa = kernels::jit::isaOf(cpu);
    if (!isa)
        return 0;
    ReadLoop const loop(*isa);
    if (wantsRates) {
        printRates(std::atoi(argv[2]), loop);
        return 0;
    }
    std::printf("%s\n", cpu.model.c_str());
    constexpr int64_t kShapes[][2] = {{2048, 2048}, {256, 2048}, {5632, 2048}, {2048, 5632}, {32000, 2048}};
    int64_t const only = argc > 2 ? std::atoll(argv[2]) : -1;
    bool const roundsX = argc > 3 && std::strcmp(argv[3], "rounded") == 0;
    for (int64_t shape = only < 0 ? 0 : only; shape < (only < 0 ? int64_t(std::size(kShapes)) : only + 1); ++shape)
        for (int threads : {1, 2})
            if (threads <= device::availableCpus())
                for (int64_t bits : {4, 8})
                    for (DataType type : {DataType::kFloat, DataType::kHalf})
                        measure(m, kShapes[shape][0], kShapes[shape][1], bits, 32, roundsX, type, threads, loop);
    return 0;
}
