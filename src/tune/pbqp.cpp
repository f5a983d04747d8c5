// SPDX-License-Identifier: Apache-2.0
#include "tune/pbqp.h"

#include <algorithm>
#include <map>

namespace tw::tune::pbqp {

int Problem::addNode(std::vector<double> costs)
{
    nodes.push_back(std::move(costs));
    return int(nodes.size()) - 1;
}

void Problem::addEdge(int a, int b, std::vector<double> costs)
{
    edges.push_back(Edge{a, b, std::move(costs)});
}

double costOf(Problem const& problem, std::vector<int> const& labels)
{
    double sum = 0;
    for (size_t n = 0; n < problem.nodes.size(); ++n)
        sum += problem.nodes[n][size_t(labels[n])];
    for (Edge const& e : problem.edges)
        sum += e.costs[size_t(labels[size_t(e.a)]) * problem.nodes[size_t(e.b)].size() + size_t(labels[size_t(e.b)])];
    return sum;
}

namespace {

struct Matrix
{
    int rows = 0, columns = 0;
    std::vector<double> at; // [rows, columns]

    double operator()(int r, int c) const { return at[size_t(r) * size_t(columns) + size_t(c)]; }
    double& operator()(int r, int c) { return at[size_t(r) * size_t(columns) + size_t(c)]; }
    double least() const { return *std::ranges::min_element(at); }
};

// The nodes that are left, with the edges between them; each edge stands at both ends, its own labels in the rows.
struct State
{
    std::map<int, std::vector<double>> nodes;
    std::map<int, std::map<int, Matrix>> edges;
};

void add(State& s, int a, int b, Matrix const& m)
{
    auto into = [](std::map<int, Matrix>& row, int other, Matrix const& extra) {
        auto [at, isNew] = row.try_emplace(other, extra);
        for (size_t i = 0; !isNew && i < extra.at.size(); ++i)
            at->second.at[i] += extra.at[i];
    };
    Matrix t{m.columns, m.rows, std::vector<double>(m.at.size())};
    for (int r = 0; r < m.rows; ++r)
        for (int c = 0; c < m.columns; ++c)
            t(c, r) = m(r, c);
    into(s.edges[a], b, m);
    into(s.edges[b], a, t);
}

// A node that was taken out: its label follows from those of the neighbours it had.
struct Taken
{
    int node = 0;
    std::vector<double> costs;
    std::map<int, Matrix> edges;
};

Taken take(State& s, int n)
{
    Taken t{n, std::move(s.nodes[n]), std::move(s.edges[n])};
    s.nodes.erase(n);
    s.edges.erase(n);
    for (auto const& [other, m] : t.edges)
        s.edges[other].erase(n);
    return t;
}

int bestLabel(Taken const& t, std::vector<int> const& labels)
{
    int best = 0;
    double least = kImpossible;
    for (int l = 0; l < int(t.costs.size()); ++l) {
        double cost = t.costs[size_t(l)];
        for (auto const& [other, m] : t.edges)
            cost += m(l, labels[size_t(other)]);
        if (cost < least) {
            least = cost;
            best = l;
        }
    }
    return best;
}

class Solver
{
public:
    Solver(Problem const& p, int64_t maxVisits) : problem_(p), visits_(maxVisits), labels_(p.nodes.size(), 0) {}

    Solution solve()
    {
        State s;
        for (size_t n = 0; n < problem_.nodes.size(); ++n) {
            s.nodes[int(n)] = problem_.nodes[n];
            s.edges[int(n)];
        }
        for (Edge const& e : problem_.edges)
            add(s, e.a, e.b,
                Matrix{int(problem_.nodes[size_t(e.a)].size()), int(problem_.nodes[size_t(e.b)].size()), e.costs});
        best_.labels = labels_;
        best_.cost = kImpossible;
        search(std::move(s), 0);
        best_.isExact = visits_ > 0;
        if (!best_.isExact)
            improve();
        best_.cost = costOf(problem_, best_.labels); // sums in one order, whatever the search did
        return best_;
    }

private:
    // Takes out all nodes with up to two neighbours; returns what is certain of the cost.
    double reduce(State& s, std::vector<Taken>& taken)
    {
        double certain = 0;
        for (bool more = true; more;) {
            more = false;
            for (auto it = s.nodes.begin(); it != s.nodes.end();) {
                int const n = it->first;
                ++it;
                if (s.edges[n].size() > 2)
                    continue;
                more = true;
                Taken t = take(s, n);
                if (t.edges.empty()) {
                    certain += *std::ranges::min_element(t.costs);
                } else if (t.edges.size() == 1) {
                    auto const& [other, m] = *t.edges.begin();
                    for (int o = 0; o < m.columns; ++o) {
                        double least = kImpossible;
                        for (int l = 0; l < m.rows; ++l)
                            least = std::min(least, t.costs[size_t(l)] + m(l, o));
                        s.nodes[other][size_t(o)] += least;
                    }
                } else {
                    auto const& [y, my] = *t.edges.begin();
                    auto const& [z, mz] = *t.edges.rbegin();
                    Matrix through{my.columns, mz.columns,
                                   std::vector<double>(size_t(my.columns) * size_t(mz.columns), kImpossible)};
                    for (int l = 0; l < my.rows; ++l)
                        for (int a = 0; a < my.columns; ++a)
                            for (int b = 0; b < mz.columns; ++b)
                                through(a, b) = std::min(through(a, b), t.costs[size_t(l)] + my(l, a) + mz(l, b));
                    add(s, y, z, through);
                }
                taken.push_back(std::move(t));
            }
        }
        return certain;
    }

    static double lowerBound(State const& s)
    {
        double bound = 0;
        for (auto const& [n, costs] : s.nodes)
            bound += *std::ranges::min_element(costs);
        for (auto const& [n, row] : s.edges)
            for (auto const& [other, m] : row)
                bound += other > n ? m.least() : 0;
        return bound;
    }

    void search(State s, double cost)
    {
        std::vector<Taken> taken;
        cost += reduce(s, taken);
        if (s.nodes.empty()) {
            if (cost < best_.cost) {
                std::vector<int> const before = labels_;
                finish(taken);
                best_.labels = labels_;
                best_.cost = cost;
                labels_ = before;
            }
            return;
        }
        if (cost + lowerBound(s) >= best_.cost)
            return;
        // The node with the most neighbours: fixing it cuts most edges.
        int pivot = s.nodes.begin()->first;
        for (auto const& [n, row] : s.edges)
            if (row.size() > s.edges[pivot].size())
                pivot = n;
        Taken const t = take(s, pivot);
        std::vector<std::pair<double, int>> order; // promising labels first
        for (int l = 0; l < int(t.costs.size()); ++l) {
            double least = t.costs[size_t(l)];
            for (auto const& [other, m] : t.edges)
                least +=
                    *std::min_element(m.at.begin() + int64_t(l) * m.columns, m.at.begin() + int64_t(l + 1) * m.columns);
            order.emplace_back(least, l);
        }
        std::ranges::sort(order);
        undo_.push_back(&taken);
        for (auto const& [least, l] : order) {
            bool const first = best_.cost == kImpossible;
            if (least == kImpossible || (visits_ <= 0 && !first))
                break;
            --visits_;
            State next = s;
            for (auto const& [other, m] : t.edges)
                for (int o = 0; o < m.columns; ++o)
                    next.nodes[other][size_t(o)] += m(l, o);
            labels_[size_t(pivot)] = l;
            search(std::move(next), cost + t.costs[size_t(l)]);
            if (visits_ < -kMostWithoutAnswer)
                break;
        }
        undo_.pop_back();
    }

    // Labels of the nodes that were reduced away, last taken first: on this level, then on those above.
    void finish(std::vector<Taken> const& taken)
    {
        auto label = [&](std::vector<Taken> const& list) {
            for (auto t = list.rbegin(); t != list.rend(); ++t)
                labels_[size_t(t->node)] = bestLabel(*t, labels_);
        };
        label(taken);
        for (auto up = undo_.rbegin(); up != undo_.rend(); ++up)
            label(**up);
    }

    // Moves one node at a time as long as that helps.
    void improve()
    {
        std::vector<Taken> all;
        for (size_t n = 0; n < problem_.nodes.size(); ++n)
            all.push_back(Taken{int(n), problem_.nodes[n], {}});
        State s;
        for (Edge const& e : problem_.edges)
            add(s, e.a, e.b,
                Matrix{int(problem_.nodes[size_t(e.a)].size()), int(problem_.nodes[size_t(e.b)].size()), e.costs});
        for (auto& [n, row] : s.edges)
            all[size_t(n)].edges = std::move(row);
        for (int pass = 0; pass < kPasses; ++pass) {
            bool moved = false;
            for (Taken const& t : all) {
                std::vector<int> to = best_.labels;
                to[size_t(t.node)] = bestLabel(t, best_.labels);
                if (to == best_.labels || !(costOf(problem_, to) < costOf(problem_, best_.labels)))
                    continue;
                best_.labels = std::move(to);
                moved = true;
            }
            if (!moved)
                return;
        }
    }

    static constexpr int kPasses = 16;
    static constexpr int64_t kMostWithoutAnswer = 100'000; // visits after the limit, when all so far was impossible
    Problem const& problem_;
    int64_t visits_;
    std::vector<int> labels_;
    std::vector<std::vector<Taken> const*> undo_;
    Solution best_;
};

} // namespace

Solution solve(Problem const& problem, int64_t maxVisits)
{
    return Solver(problem, maxVisits).solve();
}

} // namespace tw::tune::pbqp
