// SPDX-License-Identifier: Apache-2.0
#include "dla/partition.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include <gtest/gtest.h>

using namespace tw::dla;

namespace {

std::vector<std::vector<bool>> reachOf(std::vector<Item> const& items)
{
    size_t const n = items.size();
    std::vector<std::vector<bool>> reach(n, std::vector<bool>(n, false));
    for (size_t i = 0; i < n; ++i)
        for (int from : items[i].inputs)
            reach[size_t(from)][i] = true;
    for (size_t k = 0; k < n; ++k)
        for (size_t i = 0; i < n; ++i)
            for (size_t j = 0; j < n; ++j)
                reach[i][j] = reach[i][j] || (reach[i][k] && reach[k][j]);
    return reach;
}

// Subgraphs and single items of the other device as one node each: whether any reaches itself.
bool hasCycle(std::vector<Item> const& items, std::vector<int> const& parts)
{
    std::vector<Item> merged(items.size() * 2);
    auto nodeOf = [&](size_t i) { return parts[i] < 0 ? i : items.size() + size_t(parts[i]); };
    for (size_t i = 0; i < items.size(); ++i)
        for (int from : items[i].inputs)
            if (nodeOf(size_t(from)) != nodeOf(i))
                merged[nodeOf(i)].inputs.push_back(int(nodeOf(size_t(from))));
    auto const reach = reachOf(merged);
    for (size_t i = 0; i < merged.size(); ++i)
        if (reach[i][i])
            return true;
    return false;
}

bool isConnected(std::vector<Item> const& items, std::vector<int> const& parts, int part)
{
    std::vector<size_t> members;
    for (size_t i = 0; i < items.size(); ++i)
        if (parts[i] == part)
            members.push_back(i);
    std::set<size_t> seen{members[0]};
    for (bool again = true; again;) {
        again = false;
        for (size_t i : members)
            for (int from : items[i].inputs) {
                bool const isInside = parts[size_t(from)] == part;
                if (isInside && seen.contains(i) != seen.contains(size_t(from))) {
                    seen.insert(i);
                    seen.insert(size_t(from));
                    again = true;
                }
            }
    }
    return seen.size() == members.size();
}

void check(std::vector<Item> const& items, std::string const& what)
{
    std::vector<int> const parts = partition(items);
    ASSERT_EQ(parts.size(), items.size());
    int const count = parts.empty() ? 0 : *std::ranges::max_element(parts) + 1;
    for (size_t i = 0; i < items.size(); ++i)
        EXPECT_EQ(parts[i] >= 0, items[i].isOnDla) << what << ": item " << i;
    EXPECT_FALSE(hasCycle(items, parts)) << what;
    for (int p = 0; p < count; ++p) {
        ASSERT_TRUE(std::ranges::count(parts, p) > 0) << what;
        EXPECT_TRUE(isConnected(items, parts, p)) << what << ": subgraph " << p;
    }
    // No two neighbours could be one.
    for (int a = 0; a < count; ++a)
        for (int b = a + 1; b < count; ++b) {
            std::vector<int> joined = parts;
            std::ranges::replace(joined, b, a);
            if (isConnected(items, joined, a)) {
                EXPECT_TRUE(hasCycle(items, joined)) << what << ": subgraphs " << a << " and " << b << " could be one";
            }
        }
}

std::vector<Item> shuffled(std::vector<Item> const& items, std::mt19937& random)
{
    std::vector<int> to(items.size());
    std::iota(to.begin(), to.end(), 0);
    std::ranges::shuffle(to, random);
    std::vector<Item> out(items.size());
    for (size_t i = 0; i < items.size(); ++i) {
        Item item = items[i];
        for (int& from : item.inputs)
            from = to[size_t(from)];
        out[size_t(to[i])] = std::move(item);
    }
    return out;
}

TEST(Partition, ByHand)
{
    EXPECT_TRUE(partition({}).empty());
    EXPECT_EQ(partition({{true, {}}, {true, {0}}, {true, {1}}}), (std::vector<int>{0, 0, 0}));
    EXPECT_EQ(partition({{true, {}}, {false, {0}}, {true, {1}}}), (std::vector<int>{0, -1, 1}));
    // A way around through the other device keeps the two ends apart.
    EXPECT_EQ(partition({{true, {}}, {false, {0}}, {true, {0, 1}}}), (std::vector<int>{0, -1, 1}));
    EXPECT_EQ(partition({{true, {}}, {true, {0}}, {true, {0, 1}}}), (std::vector<int>{0, 0, 0}));
    EXPECT_EQ(partition({{false, {}}}), (std::vector<int>{-1}));
    // Nothing in common: two.
    EXPECT_EQ(partition({{true, {}}, {true, {}}}), (std::vector<int>{0, 1}));
    // What reads an item twice, and items on a cycle.
    EXPECT_EQ(partition({{true, {}}, {true, {0, 0}}}), (std::vector<int>{0, 0}));
    EXPECT_EQ(partition({{true, {}}, {true, {0, 2}}, {true, {1}}}), (std::vector<int>{0, -1, -1}));
}

TEST(Partition, AtRandom)
{
    for (uint32_t seed = 0; seed < 300; ++seed) {
        std::mt19937 random(seed);
        auto draw = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
        int const count = 1 + draw(14), share = 1 + draw(9);
        std::vector<Item> items(static_cast<size_t>(count));
        for (int i = 0; i < count; ++i) {
            items[size_t(i)].isOnDla = draw(10) < share;
            for (int k = i == 0 ? 0 : draw(3); k > 0; --k)
                items[size_t(i)].inputs.push_back(draw(i));
        }
        check(items, "seed " + std::to_string(seed));
        check(shuffled(items, random), "seed " + std::to_string(seed) + " in another order");
    }
}

TEST(Partition, LargeNetworksTakeNoTime)
{
    std::vector<Item> items;
    for (int i = 0; i < 4000; ++i)
        items.push_back({i % 7 != 3, i < 2 ? std::vector<int>() : std::vector<int>{i - 1, i - 2}});
    auto const parts = partition(items);
    EXPECT_GT(*std::ranges::max_element(parts), 500);
}

} // namespace
