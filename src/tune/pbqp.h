// SPDX-License-Identifier: Apache-2.0
// Partitioned boolean quadratic problems: give every node one of its labels so that the sum of label costs and of edge
// costs (a matrix over the labels of both ends) is least. Choosing the formats of a whole graph is one.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace tw::tune::pbqp {

inline constexpr double kImpossible = std::numeric_limits<double>::infinity();

struct Edge
{
    int a = 0, b = 0;          // a != b; several edges between two nodes add up
    std::vector<double> costs; // [labels of a, labels of b]
};

struct Problem
{
    std::vector<std::vector<double>> nodes; // costs of each label, at least one; kImpossible rules a label out
    std::vector<Edge> edges;

    int addNode(std::vector<double> costs);
    void addEdge(int a, int b, std::vector<double> costs);
};

struct Solution
{
    std::vector<int> labels; // for each node
    double cost = 0;         // kImpossible: there is no assignment
    bool isExact = true;     // false: the search ended at its limit; the best found, improved node by node
};

// Nodes of degree 0, 1 and 2 are reduced away, exactly; what remains is searched depth first with bounds, over at most
// `maxVisits` assignments of single nodes. Among equal costs the answer is the same every time.
Solution solve(Problem const& problem, int64_t maxVisits = 100'000);

double costOf(Problem const& problem, std::vector<int> const& labels);

} // namespace tw::tune::pbqp
