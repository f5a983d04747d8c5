// SPDX-License-Identifier: Apache-2.0
// Clock and median of the CPU benchmarks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <vector>

namespace tw::bench {

// Of the thread's own time while one thread works (others on the machine do not count), of the clock else.
inline double seconds(int threads)
{
    timespec t{};
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// `v` is not empty.
inline double median(std::vector<double> v)
{
    std::nth_element(v.begin(), v.begin() + std::ptrdiff_t(v.size() / 2), v.end());
    return v[v.size() / 2];
}

} // namespace tw::bench
