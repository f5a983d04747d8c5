// SPDX-License-Identifier: Apache-2.0
#include "tune/sampling.h"

#include <algorithm>
#include <random>

#include "ir/op_def.h"
#include "tune/check_set.h"

namespace tw::tune {

namespace {

constexpr int64_t kEdges = 100; // about so many elements at the edges

} // namespace

std::vector<int64_t> sample(Extents const& dims, int64_t samples)
{
    int64_t const count = dims.volume();
    if (count <= kCompareAll)
        return {};
    std::vector<int64_t> at{0};
    for (int d = 0; d < dims.rank; ++d) {
        int64_t const n = dims[d];
        std::vector<int64_t> along{0, 1, n / 2, n - 2, n - 1};
        std::erase_if(along, [&](int64_t i) { return i < 0 || i >= n; });
        std::sort(along.begin(), along.end());
        along.erase(std::unique(along.begin(), along.end()), along.end());
        if (int64_t(at.size() * along.size()) > kEdges)
            along = {0, n - 1};
        std::vector<int64_t> next;
        for (int64_t base : at)
            for (int64_t i : along)
                next.push_back(base * n + i);
        at = std::move(next);
    }
    std::mt19937_64 random(kSeed);
    for (int64_t i = 0; i < samples; ++i)
        at.push_back(int64_t(random() % uint64_t(count)));
    std::sort(at.begin(), at.end());
    at.erase(std::unique(at.begin(), at.end()), at.end());
    return at;
}

bool mayBeSampled(ir::Graph const& body)
{
    return std::count_if(body.nodes.begin(), body.nodes.end(), [](auto const& n) { return !n->op->isElementwise; }) <=
           1;
}

} // namespace tw::tune
