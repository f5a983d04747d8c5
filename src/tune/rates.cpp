// SPDX-License-Identifier: Apache-2.0
#include "tune/rates.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

#include "base/tensor.h"
#include "device/cuda/target.h"
#include "kernels/cpu/jit/product_rate.h"
#include "tactic/cpu_tactic.h"
#include "tune/bench.h"
#include "tune/timing_cache.h"

namespace tw::tune {

namespace {

constexpr char const* kNames[] = {"copies", "f32 products", "tf32 products", "f16 products"};
constexpr int kRuns = 4; // the fastest counts: nothing makes a machine faster than it is
// More than the caches of a core, no more than what large layers read and write; of each worker.
constexpr int64_t kCopyBytes = 4 << 20;
constexpr double kProductMicroseconds = 300;

double copyOnCpu(Workers& workers)
{
    int64_t const parts = workers.count();
    Tensor from(DataType::kInt8, {parts * kCopyBytes}), to(DataType::kInt8, {parts * kCopyBytes});
    if (!from.data() || !to.data())
        return 0;
    std::memset(from.data(), 1, size_t(parts * kCopyBytes));
    double least = INFINITY;
    for (int run = 0; run < kRuns; ++run) {
        double const begin = nowMicroseconds();
        workers.run(parts, [&](int64_t part, int) {
            int64_t const at = part * kCopyBytes;
            std::memcpy(static_cast<char*>(to.data()) + at, static_cast<char*>(from.data()) + at, size_t(kCopyBytes));
        });
        least = std::min(least, nowMicroseconds() - begin);
    }
    return 2.0 * double(parts * kCopyBytes) / std::max(least, 1.0);
}

double productsOnCpu(device::CpuInfo const& cpu, Workers& workers)
{
    auto const isa = kernels::jit::isaOf(cpu);
    if (!isa)
        return 0;
    auto const kernel = kernels::jit::ProductRateKernel::emit(*isa);
    if (!kernel.ok())
        return 0;
    double rate = 0;
    int64_t repeats = 1000;
    for (int run = 0; run < kRuns; ++run) {
        double const begin = nowMicroseconds();
        workers.run(workers.count(), [&](int64_t, int) { (*kernel)(repeats); });
        double const taken = std::max(nowMicroseconds() - begin, 1.0);
        rate = std::max(rate, kernel->operations() * double(repeats) * workers.count() / taken);
        repeats = std::max<int64_t>(1000, int64_t(double(repeats) * kProductMicroseconds / taken));
    }
    return rate;
}

} // namespace

double Rates::bytes()
{
    return of(Kind::kCopy);
}

Rates::Kind Rates::kindOf(DataType operands) const
{
    bool const isCuda = options_.backend == ops::Backend::kCuda;
    if (isCuda && isNarrowFloat(operands))
        return Kind::kF16;
    return isCuda && options_.permits.has(Permission::kTf32) && isFullFloat(operands) ? Kind::kTf32 : Kind::kF32;
}

double Rates::operations(DataType operands)
{
    return of(kindOf(operands));
}

void Rates::prepare(DataType operands) const
{
    Kind const kind = kindOf(operands);
    if (options_.backend == ops::Backend::kCuda && options_.target.cuda &&
        !(options_.cache && options_.cache->find(keyOf(kind))))
        compileProductRate(*options_.target.cuda, operands, kind == Kind::kTf32);
}

double Rates::of(Kind kind)
{
    if (auto const found = known_.find(kind); found != known_.end())
        return found->second;
    // In the cache as a whole number for a millisecond.
    std::string const key = keyOf(kind);
    if (auto const hit = options_.cache ? options_.cache->find(key) : std::nullopt; hit && hit->config.size() == 1)
        return known_[kind] = double(std::max<int64_t>(hit->config[0], 0)) / 1000;
    double rate = 0;
    if (options_.backend == ops::Backend::kCpu)
        rate = onceOnCpu(kind);
    else if (options_.target.cuda && options_.target.cuda->device)
        rate = kind == Kind::kCopy
                   ? cudaCopyRate(*options_.target.cuda)
                   : cudaProductRate(*options_.target.cuda, kind == Kind::kF16 ? DataType::kHalf : DataType::kFloat,
                                     kind == Kind::kTf32);
    if (options_.log)
        options_.log->verbose("Rate of {} here: {}{} in a microsecond", kNames[int(kind)], rate,
                              kind == Kind::kCopy ? " bytes" : " operations");
    int64_t const whole = std::isfinite(rate) ? int64_t(rate * 1000) : 0;
    if (options_.cache && whole > 0)
        options_.cache->insert(key, CacheEntry{0, {whole}, 0, {}});
    return known_[kind] = double(whole) / 1000;
}

double Rates::measureOnCpu(Kind kind) const
{
    return kind == Kind::kCopy ? copyOnCpu(*options_.workers) : productsOnCpu(*options_.target.cpu, *options_.workers);
}

// Within a process once: the machine stays the same, and measuring takes longer than building a small network.
double Rates::onceOnCpu(Kind kind) const
{
    static std::mutex mutex;
    static std::map<std::string, double>& measured = *new std::map<std::string, double>; // builders may outlive statics
    std::lock_guard const lock(mutex);
    auto const [it, isNew] = measured.try_emplace(keyOf(kind), 0);
    if (isNew)
        it->second = measureOnCpu(kind);
    return it->second;
}

std::string Rates::keyOf(Kind kind) const
{
    std::string const threads = options_.backend == ops::Backend::kCpu && options_.workers->count() > 1
                                    ? fmt::format("{} threads|", options_.workers->count())
                                    : "";
    return options_.device + "|" + threads + "rate of " + kNames[int(kind)];
}

} // namespace tw::tune
