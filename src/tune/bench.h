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

// Memory that workers write so that their caches hold nothing else. All regions of a build share one: to get its pages from the
// system takes longer than most kernels of small networks.
class Eviction
{
public:
    Eviction(Workers& workers, int64_t bytesOfEach) : workers_(workers), bytesOfEach_(bytesOfEach) {}
    bool reserve(); // false: there is no memory
    void run();     // after reserve()

private:
    Workers& workers_;
    int64_t bytesOfEach_;
    Tensor memory_;
    int written_ = 0;
};

class Bench
{
public:
    // Kernel, buffers and what the options point to outlive the bench.
    static Result<std::unique_ptr<Bench>> make(ops::Kernel const& kernel, Checker::Buffers const& buffers,
                                               Options const& options);
    Sample run();

private:
    Bench(ops::Kernel const& kernel, Checker::Buffers const& buffers, Options const& options);
    ops::Kernel const& kernel_;
    Checker::Buffers const& buffers_;
    Workers& workers_;
    Eviction own_; // where the options have none
    Eviction& eviction_;
    Tensor workspace_;
    std::vector<TensorRef> outputs_;
    std::shared_ptr<ops::Prepared const> prepared_;
    int repeats_ = 1; // of short runs
    double lastMicroseconds_ = 0;
};

} // namespace tw::tune
