// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <thread>
#include <vector>

#include "base/workers.h"

namespace tw::kernels {

// Parts backwards and dealt out to `count` workers, each in a thread of its own.
class BackwardWorkers final : public Workers
{
public:
    explicit BackwardWorkers(int count) : count_(count) {}
    int count() const override { return count_; }
    void run(int64_t parts, FunctionRef<void(int64_t, int)> body) override
    {
        std::vector<std::thread> threads;
        for (int w = 0; w < count_; ++w)
            threads.emplace_back([&, w] {
                for (int64_t p = parts - 1; p >= 0; --p)
                    if (p % count_ == w)
                        body(p, w);
            });
        for (auto& t : threads)
            t.join();
    }

private:
    int count_;
};

} // namespace tw::kernels
