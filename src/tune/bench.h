// SPDX-License-Identifier: Apache-2.0
// One kernel ready to be timed, as it will run between other layers: on all workers, with their caches emptied.
#pragma once

#include <memory>

#include "base/result.h"
#include "tune/check.h"
#include "tune/contest.h"

namespace tw::tune {

double nowMicroseconds();
// The clock of what takes milliseconds: for one worker, which is the calling thread, its own time, in which interruptions do not count.
double microsecondsOf(Workers const& workers);

class Bench
{
public:
    // Kernel, buffers and workers outlive the bench.
    static Result<std::unique_ptr<Bench>> make(ops::Kernel const& kernel, Checker::Buffers const& buffers,
                                               Workers& workers, int64_t cacheBytes);
    Sample run();

private:
    Bench(ops::Kernel const& kernel, Checker::Buffers const& buffers, Workers& workers, int64_t cacheBytes);
    ops::Kernel const& kernel_;
    Checker::Buffers const& buffers_;
    Workers& workers_;
    Tensor workspace_, eviction_;
    int64_t cacheBytes_;
    std::vector<TensorRef> outputs_;
    std::shared_ptr<ops::Prepared const> prepared_;
    int repeats_ = 1; // of short runs
    double lastMicroseconds_ = 0;
};

} // namespace tw::tune
