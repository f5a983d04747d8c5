// SPDX-License-Identifier: Apache-2.0
// Cuts a network into subgraphs for DLA. Knows nothing of layers: items and who reads whom.
#pragma once

#include <vector>

namespace tw::dla {

struct Item
{
    bool isOnDla = false;
    std::vector<int> inputs; // items whose outputs it reads
};

// The subgraph of each item, numbered from 0 in the order of their first items; -1: on the other device, as are items on
// a cycle. Subgraphs are connected and as large as a greedy search finds them, and can run one after the other: none
// needs what is computed of its own outputs outside.
std::vector<int> partition(std::vector<Item> const& items);

} // namespace tw::dla
