// SPDX-License-Identifier: Apache-2.0
// What random cases are drawn with: randomCase() of each op.
#pragma once

#include <algorithm>
#include <iterator>
#include <random>

#include "base/extents.h"
#include "base/types.h"
#include "families/elementwise/activate.h"
#include "ops/activation/op.h"

namespace tw::ops {

constexpr int64_t kMostWork = 400'000; // multiplications of one case: the reference is slow

class Draw
{
public:
    explicit Draw(uint64_t seed) : random_(seed) {}
    int64_t from(int64_t lo, int64_t hi) { return lo + int64_t(random_() % uint64_t(hi - lo + 1)); }
    bool chance(int percent) { return from(1, 100) <= percent; }
    // Beside the widths of vectors and tiles as often as anywhere.
    int64_t size(int64_t most)
    {
        static constexpr int64_t kWidths[] = {4, 6, 8, 12, 14, 16, 24, 32, 48, 64, 96, 128};
        if (chance(50))
            return from(1, most);
        return std::clamp<int64_t>(kWidths[from(0, std::size(kWidths) - 1)] + from(-1, 1), 1, most);
    }
    DataType type() { return chance(75) ? DataType::kFloat : DataType::kHalf; }
    Extents extents(int rank, int64_t most)
    {
        Extents e;
        for (e.rank = 0; e.rank < rank;) {
            int const i = e.rank++;
            e[i] = size(most);
        }
        return e;
    }
    // Until it is small enough.
    template <class F>
    void until(F fits)
    {
        while (!fits())
            continue;
    }

private:
    std::mt19937_64 random_;
};

// None, or one of those that are layers.
inline FusedActivation activationOf(Draw& d)
{
    if (d.chance(50))
        return {};
    // Parameters with which every kind moves. A jump would make a difference of rounding errors.
    auto const kind = activation::Kind(d.from(0, activation::kKindCount - 1));
    return FusedActivation(kind == activation::Kind::kThresholdedRelu ? activation::Kind::kRelu : kind, 0.25F, 0.75F);
}

} // namespace tw::ops
