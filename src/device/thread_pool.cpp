// SPDX-License-Identifier: Apache-2.0
#include "device/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

namespace tw::device {

namespace {

// Jobs that can be open at once; a caller that finds no place works alone.
constexpr int kSlots = 32;
// A worker without work looks for it this long before it sleeps: longer than the pauses between the layers of a
// network, much shorter than what waking it costs is worth to anybody else.
constexpr std::chrono::microseconds kSpin{100};
// Spinning callers let others run after so many looks (two processes may share the CPUs).
constexpr int kLooksBeforeYield = 2000;

using Body = FunctionRef<void(int64_t, int)>;

// Set while this thread runs a body: calls from within run in line.
thread_local int currentWorker = -1;

std::vector<int> allowedCpus()
{
    std::vector<int> cpus;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        for (int c = 0; c < CPU_SETSIZE; ++c)
            if (CPU_ISSET(c, &set))
                cpus.push_back(c);
    return cpus;
}

} // namespace

int availableCpus()
{
    return std::max(1, int(allowedCpus().size()));
}

// Parts are split evenly into one lane for each worker that may join; who is through with its own helps the others.
struct ThreadPool::Job
{
    struct alignas(64) Lane // not initialized: most lanes are not used
    {
        int64_t first, end;
        std::atomic_ref<int64_t> next() { return std::atomic_ref<int64_t>(first); }
    };
    Job(Body const& b, int64_t parts, int lanesOfJob) : body(b), lanes(lanesOfJob)
    {
        for (int i = 0; i < lanes; ++i) {
            lane[i].first = parts * i / lanes;
            lane[i].end = parts * (i + 1) / lanes;
        }
    }
    void work(int worker)
    {
        for (int k = 0; k < lanes; ++k) {
            Lane& l = lane[(worker + k) % lanes];
            while (l.next().load(std::memory_order_relaxed) < l.end) {
                int64_t const part = l.next().fetch_add(1, std::memory_order_relaxed);
                if (part < l.end)
                    body(part, worker);
            }
        }
    }
    bool isOpen()
    {
        if (joined.load(std::memory_order_relaxed) >= lanes)
            return false;
        for (int i = 0; i < lanes; ++i)
            if (lane[i].next().load(std::memory_order_relaxed) < lane[i].end)
                return true;
        return false;
    }
    Body body;
    int lanes;
    std::atomic<int> joined{1}; // the caller is worker 0
    Lane lane[kMaxThreads];
};

// A job lives on its caller's stack: `users` keeps the caller from leaving while somebody works on it.
struct alignas(64) ThreadPool::Slot
{
    std::atomic<Job*> job{nullptr};
    std::atomic<int> users{0};
    std::atomic<bool> taken{false}; // by a caller
};

struct ThreadPool::State
{
    class Limited final : public Workers
    {
    public:
        Limited(State& state, int limit) : state_(state), limit_(limit) {}
        int count() const override { return limit_; }
        void run(int64_t parts, Body body) override { state_.run(parts, body, limit_); }

    private:
        State& state_;
        int limit_;
    };

    explicit State(int wanted)
    {
        std::vector<int> const cpus = allowedCpus();
        count = std::clamp(wanted > 0 ? wanted : int(cpus.size()), 1, kMaxThreads);
        crowded = int(cpus.size()) < count;
        for (int n = 1; n <= count; ++n)
            views.push_back(std::make_unique<Limited>(*this, n));
        for (int i = 1; i < count; ++i) {
            threads.emplace_back([this, i] { loop(i); });
            if (!crowded) {
                cpu_set_t one;
                CPU_ZERO(&one);
                CPU_SET(cpus[size_t(i)], &one);
                (void)pthread_setaffinity_np(threads.back().native_handle(), sizeof one, &one); // a wish
            }
        }
    }
    ~State()
    {
        {
            std::lock_guard lock(mutex);
            stopping.store(true);
        }
        wake.notify_all();
        for (std::thread& t : threads)
            t.join();
    }

    void run(int64_t parts, Body const& body, int limit)
    {
        int const lanes = int(std::min<int64_t>(limit, parts));
        Slot* slot = lanes > 1 && currentWorker < 0 ? freeSlot() : nullptr;
        if (!slot) {
            int const worker = std::max(currentWorker, 0), before = currentWorker;
            currentWorker = worker;
            for (int64_t p = 0; p < parts; ++p)
                body(p, worker);
            currentWorker = before;
            return;
        }
        Job job(body, parts, lanes);
        slot->job.store(&job);
        published.fetch_add(1);
        if (sleepers.load() > 0) {
            std::lock_guard lock(mutex); // a worker between its last look and its sleep holds it
            wake.notify_all();
        }
        currentWorker = 0;
        job.work(0);
        currentWorker = -1;
        slot->job.store(nullptr);
        for (int looks = 0; slot->users.load() != 0; ++looks) {
            if (looks < kLooksBeforeYield && !crowded)
                _mm_pause();
            else
                std::this_thread::yield();
        }
        slot->taken.store(false, std::memory_order_release);
    }

    int count = 1;
    std::vector<std::unique_ptr<Limited>> views;

private:
    Slot* freeSlot()
    {
        for (Slot& s : slots)
            if (!s.taken.load(std::memory_order_relaxed) && !s.taken.exchange(true, std::memory_order_acquire))
                return &s;
        return nullptr;
    }

    // Works on one open job; false: there was none.
    bool serve(int& from)
    {
        for (int k = 0; k < kSlots; ++k) {
            Slot& s = slots[size_t((from + k) % kSlots)];
            if (!s.job.load(std::memory_order_relaxed))
                continue;
            bool worked = false;
            s.users.fetch_add(1);
            if (Job* job = s.job.load(); job && job->isOpen()) {
                int const worker = job->joined.fetch_add(1);
                if (worker < job->lanes) {
                    currentWorker = worker;
                    job->work(worker);
                    currentWorker = -1;
                    worked = true;
                }
            }
            s.users.fetch_sub(1);
            if (worked) {
                from = (from + k + 1) % kSlots; // the next job in turn
                return true;
            }
        }
        return false;
    }

    void loop(int index)
    {
        int from = index % kSlots;
        while (!stopping.load(std::memory_order_relaxed)) {
            uint64_t const seen = published.load();
            if (serve(from))
                continue;
            if (!crowded && spin(seen))
                continue;
            std::unique_lock lock(mutex);
            sleepers.fetch_add(1);
            wake.wait(lock, [&] { return published.load() != seen || stopping.load(); });
            sleepers.fetch_sub(1);
        }
    }
    // True when a job was published in the meantime.
    bool spin(uint64_t seen)
    {
        auto const end = std::chrono::steady_clock::now() + kSpin;
        do {
            for (int i = 0; i < 64; ++i) {
                if (published.load(std::memory_order_relaxed) != seen || stopping.load(std::memory_order_relaxed))
                    return true;
                _mm_pause();
            }
        } while (std::chrono::steady_clock::now() < end);
        return false;
    }

    bool crowded = false; // more threads than CPUs: nobody is pinned, nobody spins
    Slot slots[kSlots];
    alignas(64) std::atomic<uint64_t> published{0};
    alignas(64) std::atomic<int> sleepers{0};
    std::atomic<bool> stopping{false};
    std::mutex mutex;
    std::condition_variable wake;
    std::vector<std::thread> threads;
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>(threads)) {}
ThreadPool::~ThreadPool() = default;

int ThreadPool::threads() const
{
    return state_->count;
}

Workers& ThreadPool::workers(int limit)
{
    return *state_->views[size_t(std::clamp(limit, 1, state_->count) - 1)];
}

namespace {

std::atomic<ThreadPool*> processPool{nullptr};
std::mutex processMutex;

// The parent's threads do not exist here, and its locks may be held by nobody: everything is begun anew. The parent's
// pool stays allocated.
void forgetInChild()
{
    processPool.store(nullptr);
    new (&processMutex) std::mutex;
    currentWorker = -1;
}

} // namespace

ThreadPool& processThreadPool(int threads)
{
    if (ThreadPool* pool = processPool.load(std::memory_order_acquire))
        return *pool;
    std::lock_guard lock(processMutex);
    if (ThreadPool* pool = processPool.load(std::memory_order_acquire))
        return *pool;
    static bool const registered = pthread_atfork(nullptr, nullptr, forgetInChild) == 0;
    (void)registered;
    // Never freed: contexts may still run while the process ends.
    auto* pool = new ThreadPool(threads);
    processPool.store(pool, std::memory_order_release);
    return *pool;
}

} // namespace tw::device
