// SPDX-License-Identifier: Apache-2.0
// usage: fma_peak THREADS
// The FP32 FMA peak of this moment, as one more engine beside those that bench/cpu_peers.py compares: what another
// process takes from the machine shows here too. Registers only, independent accumulators, the widest vectors that the
// CPU has. Lines in, lines out, as in engine_worker.cpp: "ready {json}", then "run N" -> "times s s ...", "clock cpu", "quit".
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include <xbyak/xbyak.h>
#include <xbyak/xbyak_util.h>

namespace {

// void loop(uint64_t turns): `accumulators` FMAs a turn. Two pipes of latency 4 or 5 need ten independent ones.
class FmaLoop : public Xbyak::CodeGenerator
{
public:
    explicit FmaLoop(bool wide) : lanes(wide ? 16 : 8), accumulators(wide ? 24 : 12)
    {
        using Register = Xbyak::Ymm;
        auto vector = [wide](int i) { return wide ? Register(Xbyak::Zmm(i)) : Register(i); };
        // 2^-20 everywhere: sums stay normal numbers, and small.
        mov(eax, 0x35800000);
        vmovd(Xbyak::Xmm(accumulators), eax);
        for (int i = accumulators; i >= 0; --i)
            vbroadcastss(vector(i), Xbyak::Xmm(accumulators));
        Xbyak::Label turn;
        align(64);
        L(turn);
        for (int i = 0; i < accumulators; ++i)
            vfmadd231ps(vector(i), vector(accumulators), vector(accumulators));
        dec(rdi);
        jnz(turn, T_NEAR);
        vzeroupper();
        ret();
    }

    double flopsPerTurn() const { return 2.0 * lanes * accumulators; }

private:
    int lanes, accumulators;
};

clockid_t clockOfRuns = CLOCK_MONOTONIC;

double now()
{
    timespec time = {};
    clock_gettime(clockOfRuns, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// All threads start together; the time is that of the last one.
double run(void (*loop)(uint64_t), uint64_t turns, int threads)
{
    std::atomic<int> waiting{threads - 1};
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) {
        others.emplace_back([&] {
            --waiting;
            while (waiting > 0) {
            }
            loop(turns);
        });
    }
    while (waiting > 0) {
    }
    double const start = now();
    loop(turns);
    for (std::thread& t : others)
        t.join();
    return now() - start;
}

} // namespace

int main(int argc, char** argv)
{
    int const threads = argc > 1 ? std::atoi(argv[1]) : 1;
    Xbyak::util::Cpu const cpu;
    if (threads < 1 || threads > 1024 || !cpu.has(Xbyak::util::Cpu::tFMA)) {
        std::fprintf(stderr, "fma_peak: THREADS must be 1 to 1024, and the CPU must have FMA\n");
        return 2;
    }
    FmaLoop const code(cpu.has(Xbyak::util::Cpu::tAVX512F));
    auto const loop = code.getCode<void (*)(uint64_t)>();

    // Runs of about 20 ms.
    uint64_t turns = 1 << 16;
    run(loop, turns, 1);
    turns = static_cast<uint64_t>(double(turns) * 0.02 / run(loop, turns, 1)) + 1;

    std::printf("ready {\"flops\": %.0f}\n", code.flopsPerTurn() * double(turns) * threads);
    std::fflush(stdout);
    char line[64];
    while (std::fgets(line, sizeof line, stdin)) {
        if (std::strcmp(line, "clock cpu\n") == 0) {
            clockOfRuns = CLOCK_PROCESS_CPUTIME_ID;
            std::printf("%s", line);
            std::fflush(stdout);
            continue;
        }
        if (std::strncmp(line, "run ", 4) != 0)
            break;
        std::printf("times");
        for (int n = std::atoi(line + 4); n > 0; --n)
            std::printf(" %.9f", run(loop, turns, threads));
        std::printf("\n");
        std::fflush(stdout);
    }
    return 0;
}
