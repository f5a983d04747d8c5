// SPDX-License-Identifier: Apache-2.0
// The thread pool of the process: workers that kernels share their work out to.
//
// Sized by the CPUs that the process may run on; workers are pinned to one of them each, unless there are more threads
// than CPUs. The calling thread takes part as worker 0 and keeps its own affinity. Workers that find nothing to do spin
// for a moment, since layers follow each other closely, then sleep. Several callers at once (contexts on different
// threads) share the workers: each caller always works for itself, free workers go to the jobs in turn.
#pragma once

#include <memory>

#include "base/workers.h"

namespace tw::device {

// CPUs that this process may run on, at least 1.
int availableCpus();

class ThreadPool
{
public:
    // `threads` counts the caller; 0: availableCpus().
    explicit ThreadPool(int threads);
    ~ThreadPool();
    ThreadPool(ThreadPool const&) = delete;
    ThreadPool& operator=(ThreadPool const&) = delete;

    static constexpr int kMaxThreads = 256;

    int threads() const;
    // With at most `limit` threads, the caller included; valid as long as the pool.
    Workers& workers(int limit = kMaxThreads);

private:
    struct Job;
    struct Slot;
    struct State;
    std::unique_ptr<State> state_;
};

// The pool of this process, made by the first call (whose `threads` counts; 0: availableCpus()). A child after fork()
// has none of its parent's threads and gets a pool of its own when it asks.
ThreadPool& processThreadPool(int threads = 0);

} // namespace tw::device
