// SPDX-License-Identifier: Apache-2.0
#include "tune/bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <time.h>

namespace tw::tune {

namespace {

constexpr double kShort = 10; // microseconds: below, the clock and the pool's start would show
constexpr int kMostRepeats = 16;
constexpr double kLong = 3000;         // microseconds: such a run empties caches by itself
constexpr double kPreempted = 1.3;     // wall time to CPU time of the calling thread
constexpr double kPreemptedExtra = 20; // microseconds
constexpr double kOwnTime = 500;       // microseconds, some times what filling L2 again takes

double threadCpuMicroseconds()
{
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return double(t.tv_sec) * 1e6 + double(t.tv_nsec) * 1e-3;
}

} // namespace

double nowMicroseconds()
{
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double microsecondsOf(Workers const& workers)
{
    return workers.count() == 1 ? threadCpuMicroseconds() : nowMicroseconds();
}

bool Eviction::reserve()
{
    if (!memory_.data())
        memory_ = Tensor(DataType::kInt8, {bytesOfEach_ * workers_.count()});
    return memory_.data() != nullptr;
}

void Eviction::run()
{
    if (bytesOfEach_ == 0)
        return;
    ++written_;
    workers_.run(workers_.count(), [&](int64_t part, int) {
        std::memset(static_cast<char*>(memory_.data()) + part * bytesOfEach_, written_, size_t(bytesOfEach_));
    });
}

Bench::Bench(ops::Kernel const& kernel, Checker::Buffers const& buffers, Options const& options)
    : kernel_(kernel), buffers_(buffers), workers_(*options.workers), own_(*options.workers, options.cacheBytes),
      eviction_(options.eviction ? *options.eviction : own_),
      workspace_(DataType::kInt8, {kernel.workspaceBytes(buffers.inputs, buffers.outputs)})
{
    outputs_.reserve(buffers.outputs.size());
}

Result<std::unique_ptr<Bench>> Bench::make(ops::Kernel const& kernel, Checker::Buffers const& buffers,
                                           Options const& options)
{
    std::unique_ptr<Bench> b(new Bench(kernel, buffers, options));
    if (!b->workspace_.data() || !b->eviction_.reserve())
        return failedAllocation("no memory for timing");
    TW_ASSIGN(b->prepared_, kernel.prepare(buffers.inputs, buffers.outputs));
    return b;
}

Sample Bench::run()
{
    if (lastMicroseconds_ < kLong)
        eviction_.run();
    uint64_t state = 1;
    double const cpu = threadCpuMicroseconds(), begin = nowMicroseconds();
    for (int i = 0; i < repeats_; ++i) {
        outputs_ = buffers_.outputs;
        ops::RunArgs args{buffers_.inputs, outputs_, workspace_.data(), &state, &workers_};
        args.prepared = prepared_.get();
        (void)kernel_.run(args).ok(); // checked before; a failing run cannot win
    }
    double const wall = nowMicroseconds() - begin, used = threadCpuMicroseconds() - cpu;
    // One thread that was interrupted in a long run has its own time, in which what the caches lost to others hardly shows: on a
    // busy machine each such run is interrupted.
    bool const interrupted = wall > kPreempted * used + kPreemptedExtra,
               hasOwnTime = interrupted && workers_.count() == 1 && used / repeats_ > kOwnTime;
    Sample const s{(hasOwnTime ? used : wall) / repeats_, interrupted && !hasOwnTime};
    if (s.microseconds * repeats_ < kShort)
        repeats_ = std::clamp(int(std::ceil(kShort / std::max(s.microseconds, 0.1))), 1, kMostRepeats);
    lastMicroseconds_ = s.microseconds;
    return s;
}

} // namespace tw::tune
