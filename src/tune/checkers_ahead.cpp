// SPDX-License-Identifier: Apache-2.0
#include "tune/checkers_ahead.h"

#include <algorithm>
#include <new>

#include "base/format.h"
#include "tune/check.h"
#include "tune/phases.h"
#include "tune/region_key.h"

namespace tw::tune {

namespace {

constexpr int64_t kMostHeldBytes = int64_t(1) << 30; // of checkers that nobody has taken yet

// The node itself, and the sizes that it is looked at with: of one block, profiles differ in these alone.
std::string keyOf(ops::Problem const& problem, std::span<Point const> points)
{
    std::string key = fmt::format("{}", static_cast<void const*>(problem.node));
    for (auto const* specs : {&problem.inputs, &problem.outputs})
        for (ops::TensorSpec const& t : *specs)
            key += fmt::format("|{}{} {} {}", nameOf(t.type), t.dims.str(),
                               static_cast<void const*>(t.constant ? t.constant->data() : nullptr), t.contents.data);
    return key + pointsKey(points);
}

// Inputs, outputs and references of two kinds of values, and of points, whose tensors are of about these sizes; what consists of
// equal images takes less.
int64_t expectedBytes(ops::Problem const& problem, size_t points)
{
    int64_t bytes = 0;
    for (auto const* specs : {&problem.inputs, &problem.outputs})
        for (ops::TensorSpec const& t : *specs)
            bytes += t.present && !t.constant ? TensorRef{t.type, t.dims, nullptr}.sizeBytes() : 0;
    return bytes * int64_t(2 + points);
}

} // namespace

struct CheckersAhead::Job
{
    Region region;
    std::unique_ptr<Checker> checker;
    State state = State::kOpen;
    int64_t bytes = 0; // counted as held
};

void CheckersAhead::start(std::vector<Region> regions, int threads, Workers& workers)
{
    stop();
    isStopped_ = false;
    workers_ = &workers;
    for (Region& r : regions) {
        std::string key = keyOf(r.problem, r.points);
        if (!places_.try_emplace(std::move(key), jobs_.size()).second)
            continue;
        jobs_.push_back(std::make_shared<Job>());
        jobs_.back()->region = std::move(r);
    }
    for (int i = 0; i < std::min<int>(threads, int(jobs_.size())); ++i)
        threads_.emplace_back([this] { work(); });
}

void CheckersAhead::stop()
{
    {
        std::lock_guard lock(mutex_);
        isStopped_ = true;
        changed_.notify_all();
    }
    for (std::thread& t : threads_)
        t.join();
    threads_.clear();
    jobs_.clear();
    places_.clear();
    next_ = 0;
    heldBytes_ = 0;
}

void CheckersAhead::work()
{
    std::unique_lock lock(mutex_);
    while (!isStopped_ && next_ < jobs_.size()) {
        std::shared_ptr<Job> const job = jobs_[next_++];
        int64_t const expected = expectedBytes(job->region.problem, job->region.points.size());
        changed_.wait(lock, [&] {
            return isStopped_ || job->state != State::kOpen || heldBytes_ == 0 ||
                   heldBytes_ + expected <= kMostHeldBytes;
        });
        if (isStopped_ || job->state != State::kOpen)
            continue;
        job->state = State::kRunning;
        job->bytes = expected;
        heldBytes_ += expected;
        lock.unlock();
        std::unique_ptr<Checker> checker = makeChecker(job->region);
        int64_t const bytes = checker ? checker->bytes() : 0;
        lock.lock();
        heldBytes_ += bytes - expected;
        job->bytes = bytes;
        job->checker = std::move(checker);
        job->state = job->checker ? State::kDone : State::kGone;
        changed_.notify_all();
    }
}

// Null: there was not enough memory. Who asks for it will see.
std::unique_ptr<Checker> CheckersAhead::makeChecker(Region const& region) const
{
    try {
        auto checker = std::make_unique<Checker>(region.problem, *workers_, region.points);
        checker->makeSets();
        return checker;
    } catch (std::bad_alloc const&) {
        return nullptr;
    }
}

std::shared_ptr<Checker> CheckersAhead::take(ops::Problem const& problem, std::span<Point const> points)
{
    std::unique_lock lock(mutex_);
    auto const at = places_.find(keyOf(problem, points));
    if (at == places_.end())
        return nullptr;
    std::shared_ptr<Job> const job = jobs_[at->second];
    changed_.wait(lock, [&] { return job->state != State::kRunning; });
    bool const isDone = job->state == State::kDone;
    job->state = State::kGone;
    heldBytes_ -= job->bytes;
    job->bytes = 0;
    changed_.notify_all();
    return isDone ? std::shared_ptr<Checker>(job, job->checker.get()) : nullptr;
}

std::shared_ptr<Checker> checkerOf(ops::Problem const& problem, Options const& options)
{
    if (options.checkers) {
        Phases::Scope const phase(options.phases, "inputs and reference");
        if (auto made = options.checkers->take(problem, options.points))
            return made;
    }
    return std::make_shared<Checker>(problem, *options.buildWorkers, options.points, options.phases);
}

} // namespace tw::tune
