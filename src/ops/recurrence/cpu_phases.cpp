// SPDX-License-Identifier: Apache-2.0
#include "ops/recurrence/cpu_phases.h"

#include <atomic>
#include <thread>

namespace tw::ops::recurrence {

namespace {

constexpr int kSpins = 4096; // some 50 us; then the system may give the CPU to who is waited for

struct alignas(64) Counter
{
    std::atomic<int64_t> v = 0;
};

void waitFor(std::atomic<int64_t> const& done, int64_t count)
{
    for (int spins = 0; done.load(std::memory_order_acquire) < count; ++spins) {
        if (spins < kSpins)
            __builtin_ia32_pause();
        else
            std::this_thread::yield();
    }
}

} // namespace

void runPhases(Workers& workers, int64_t phases, int parts, FunctionRef<void(int64_t phase, int part)> body)
{
    if (parts == 1) {
        for (int64_t phase = 0; phase < phases; ++phase)
            body(phase, 0);
        return;
    }
    Counter begun[kMostParts]; // of each part the next phase
    Counter done;              // parts of all phases
    workers.run(parts, [&](int64_t own, int) {
        for (int64_t phase = 0; phase < phases; ++phase) {
            for (int i = 0; i < parts; ++i) {
                int const part = int(own + i) % parts;
                int64_t next = phase;
                if (begun[part].v.load(std::memory_order_relaxed) != phase ||
                    !begun[part].v.compare_exchange_strong(next, phase + 1, std::memory_order_relaxed))
                    continue;
                body(phase, part);
                done.v.fetch_add(1, std::memory_order_acq_rel);
            }
            waitFor(done.v, (phase + 1) * parts);
        }
    });
}

} // namespace tw::ops::recurrence
