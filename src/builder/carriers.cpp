// SPDX-License-Identifier: Apache-2.0
#include "builder/carriers.h"

#include <algorithm>
#include <map>

namespace tw::builder {

namespace {

using tune::pbqp::kImpossible;
using Set = std::vector<Carrier>;

class Wiring
{
public:
    Wiring(std::vector<Carrier> const& produced, std::vector<Use> const& uses, CopyTime const& timeOf)
        : produced_(produced), uses_(uses), timeOf_(timeOf)
    {
        for (Carrier const& c : produced)
            note(c);
        for (Use const& u : uses)
            for (auto const& wanted : u.wanted)
                for (Wanted const& w : wanted)
                    noteAll(w);
        std::ranges::sort(all_);
    }

    Result<void> addTo(tune::pbqp::Problem& p, int producer)
    {
        if (all_.size() == 1)
            return {};
        if (uses_.size() == 1) {
            std::vector<double> costs;
            for (Carrier const& from : produced_)
                for (auto const& wanted : uses_[0].wanted) {
                    TW_ASSIGN(double us, copies(from, wanted));
                    costs.push_back(us);
                }
            p.addEdge(producer, uses_[0].node, std::move(costs));
            return {};
        }
        // Several readers share copies: a node of its own says in what the value exists.
        std::vector<Set> const sets = subsets();
        int const available = p.addNode(std::vector<double>(sets.size(), 0.0));
        std::vector<double> made;
        for (Carrier const& from : produced_)
            for (Set const& set : sets) {
                made.push_back(kImpossible);
                if (contains(set, from))
                    TW_SET(made.back(), copies(from, set));
            }
        p.addEdge(producer, available, std::move(made));
        for (Use const& u : uses_) {
            std::vector<double> costs;
            for (Set const& set : sets)
                for (auto const& wanted : u.wanted)
                    costs.push_back(std::ranges::all_of(wanted,
                                                        [&](Wanted const& w) {
                                                            return std::ranges::any_of(
                                                                set, [&](Carrier c) { return w.isMetBy(c); });
                                                        })
                                        ? 0
                                        : kImpossible);
            p.addEdge(available, u.node, std::move(costs));
        }
        return {};
    }

private:
    void note(Carrier const& c)
    {
        if (!contains(all_, c))
            all_.push_back(c);
    }
    void noteAll(Wanted const& w)
    {
        if (!w.isAnyType)
            return note(w.carrier);
        for (Carrier const& c : produced_)
            note({c.type, w.carrier.format});
    }
    std::vector<Set> subsets() const
    {
        std::vector<Set> sets;
        for (unsigned mask = 1; mask < 1u << all_.size(); ++mask) {
            sets.emplace_back();
            for (size_t c = 0; c < all_.size(); ++c)
                if (mask >> c & 1)
                    sets.back().push_back(all_[c]);
        }
        return sets;
    }

    Result<double> copy(Carrier const& from, Carrier const& to)
    {
        if (from == to)
            return 0.0;
        auto const known = times_.find({from, to});
        if (known != times_.end())
            return known->second;
        TW_ASSIGN(double const us, timeOf_(from, to));
        return times_[{from, to}] = us;
    }
    Result<double> copies(Carrier const& from, Set const& to)
    {
        double sum = 0;
        for (Carrier const& c : to) {
            TW_ASSIGN(double us, copy(from, c));
            sum += us;
        }
        return sum;
    }
    Result<double> copies(Carrier const& from, std::vector<Wanted> const& wanted)
    {
        double sum = 0;
        for (Wanted const& w : wanted) {
            TW_ASSIGN(double us, copy(from, {w.isAnyType ? from.type : w.carrier.type, w.carrier.format}));
            sum += us;
        }
        return sum;
    }

    std::vector<Carrier> const& produced_;
    std::vector<Use> const& uses_;
    CopyTime const& timeOf_;
    std::vector<Carrier> all_; // that anybody makes or wants, in order
    std::map<std::pair<Carrier, Carrier>, double> times_;
};

} // namespace

Result<void> addValue(tune::pbqp::Problem& problem, int producer, std::vector<Carrier> const& produced,
                      std::vector<Use> const& uses, CopyTime const& timeOf)
{
    return Wiring(produced, uses, timeOf).addTo(problem, producer);
}

} // namespace tw::builder
