// SPDX-License-Identifier: Apache-2.0
// The assignment of labels: the least cost, as trying everything finds it, on graphs of every density.
#include "tune/pbqp.h"

#include <random>

#include <gtest/gtest.h>

namespace tw::tune::pbqp {

namespace {

struct Shape
{
    int nodes, labels;
    double density, impossible; // shares of pairs with an edge, of entries that are ruled out
};

// Costs are small whole numbers, so that sums are exact in any order.
Problem randomProblem(Shape const& shape, std::mt19937& random)
{
    auto chance = [&](double p) { return std::uniform_real_distribution<double>(0, 1)(random) < p; };
    auto cost = [&] { return chance(shape.impossible) ? kImpossible : double(random() % 100); };
    Problem p;
    for (int n = 0; n < shape.nodes; ++n) {
        std::vector<double> costs(1 + random() % unsigned(shape.labels));
        for (double& c : costs)
            c = cost();
        p.addNode(costs);
    }
    for (int a = 0; a < shape.nodes; ++a)
        for (int b = 0; b < shape.nodes; ++b) {
            if (a == b || !chance(shape.density / 2))
                continue;
            std::vector<double> costs(p.nodes[size_t(a)].size() * p.nodes[size_t(b)].size());
            for (double& c : costs)
                c = cost();
            p.addEdge(a, b, costs);
        }
    return p;
}

double bruteForce(Problem const& p)
{
    std::vector<int> labels(p.nodes.size(), 0);
    double least = kImpossible;
    for (;;) {
        least = std::min(least, costOf(p, labels));
        size_t n = 0;
        for (; n < labels.size(); ++n) {
            if (++labels[n] < int(p.nodes[n].size()))
                break;
            labels[n] = 0;
        }
        if (n == labels.size())
            return least;
    }
}

} // namespace

TEST(Pbqp, LeastCostOfRandomGraphs)
{
    int possible = 0, searched = 0;
    for (unsigned seed = 0; seed < 600; ++seed) {
        std::mt19937 random(seed);
        Shape const shape{1 + int(seed % 9), 1 + int(seed / 9 % 4), double(seed % 5) / 4, seed % 3 ? 0.0 : 0.15};
        Problem const p = randomProblem(shape, random);
        Solution const s = solve(p);
        double const want = bruteForce(p);
        ASSERT_EQ(s.cost, want) << "seed " << seed;
        ASSERT_TRUE(s.isExact) << "seed " << seed;
        if (want < kImpossible) {
            ++possible;
            ASSERT_EQ(costOf(p, s.labels), want) << "seed " << seed;
        }
        searched += shape.nodes > 4 && shape.density > 0.7;
    }
    EXPECT_GT(possible, 300);
    EXPECT_GT(searched, 50); // graphs that reductions alone cannot solve
}

TEST(Pbqp, NothingToDo)
{
    EXPECT_EQ(solve(Problem()).cost, 0);
    Problem p;
    p.addNode({7});
    EXPECT_EQ(solve(p).cost, 7);
}

// A chain with short cuts, as residual networks are: reductions alone solve it, however long it is.
TEST(Pbqp, LongResidualNetworkIsExact)
{
    std::mt19937 random(1);
    auto matrix = [&] { return std::vector<double>{0, double(random() % 20), double(random() % 20), 0}; };
    auto costs = [&] { return std::vector<double>{double(random() % 50), double(random() % 50)}; };
    Problem p;
    int last = p.addNode(costs());
    for (int block = 0; block < 400; ++block) {
        int const a = p.addNode(costs()), b = p.addNode(costs()), sum = p.addNode(costs());
        p.addEdge(last, a, matrix());
        p.addEdge(a, b, matrix());
        p.addEdge(b, sum, matrix());
        p.addEdge(last, sum, matrix());
        last = sum;
    }
    Solution const s = solve(p, 0); // no visit is needed
    EXPECT_EQ(s.cost, costOf(p, s.labels));
    Solution const again = solve(p);
    EXPECT_EQ(again.labels, s.labels);
    EXPECT_TRUE(again.isExact);
}

// More than can be searched: an answer all the same, in time, and no single move improves it.
TEST(Pbqp, LargeDenseGraphGetsALocalOptimum)
{
    std::mt19937 random(5);
    Problem const p = randomProblem({60, 4, 0.5, 0}, random);
    Solution const s = solve(p, 200);
    EXPECT_FALSE(s.isExact);
    for (size_t n = 0; n < p.nodes.size(); ++n)
        for (size_t l = 0; l < p.nodes[n].size(); ++l) {
            std::vector<int> moved = s.labels;
            moved[n] = int(l);
            EXPECT_GE(costOf(p, moved), s.cost);
        }
}

} // namespace tw::tune::pbqp
