// SPDX-License-Identifier: Apache-2.0
// What the generators of kernel text share: lines of it, and the choice among tiles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/common/source.h"

namespace tw::cuda {

constexpr int64_t kSharedLimit = 227 * 1024; // bytes of shared memory that a block of capability 9.0 may have
// The same of another capability.
constexpr int64_t sharedLimitOf(int capability)
{
    if (capability >= 120 || capability == 86 || capability == 89)
        return 99 * 1024;
    return capability < 90 ? 163 * 1024 : kSharedLimit;
}

inline int64_t ceilDiv(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

template <class Spec>
struct Guess
{
    double us;
    Spec spec;
};

// The best guess first; of equal ones the earlier.
template <class Spec>
void sortGuesses(std::vector<Guess<Spec>>& all)
{
    std::stable_sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.us < b.us; });
}

// The specs of the best guesses, `most` at most, the best first.
template <class Spec>
std::vector<Spec> bestOf(std::vector<Guess<Spec>> all, size_t most)
{
    sortGuesses(all);
    std::vector<Spec> list;
    for (size_t i = 0; i < std::min(all.size(), most); ++i)
        list.push_back(std::move(all[i].spec));
    return list;
}

} // namespace tw::cuda
