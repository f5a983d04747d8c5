// SPDX-License-Identifier: Apache-2.0
#include "dla/partition.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tw::dla {

namespace {

class Partition
{
public:
    explicit Partition(std::vector<Item> const& items)
        : items_(items), readers_(items.size()), place_(items.size(), -1), parent_(items.size())
    {
        std::iota(parent_.begin(), parent_.end(), 0);
        for (size_t i = 0; i < items.size(); ++i)
            for (int from : items[i].inputs)
                readers_[size_t(from)].push_back(int(i));
        sort();
        members_.resize(items.size());
        for (size_t i = 0; i < items.size(); ++i)
            members_[i] = {int(i)};
    }

    std::vector<int> run()
    {
        for (int to : order_)
            for (int from : items_[size_t(to)].inputs)
                if (isOnDla(from) && isOnDla(to) && root(from) != root(to) && !hasDetour(root(from), root(to)))
                    join(root(from), root(to));
        std::vector<int> out(items_.size(), -1);
        std::map<int, int> numbers;
        for (int i : order_)
            if (isOnDla(i))
                out[size_t(i)] = numbers.try_emplace(root(i), int(numbers.size())).first->second;
        return out;
    }

private:
    bool isOnDla(int i) const { return items_[size_t(i)].isOnDla && place_[size_t(i)] >= 0; }

    void sort()
    {
        std::vector<size_t> missing;
        for (size_t i = 0; i < items_.size(); ++i) {
            missing.push_back(items_[i].inputs.size());
            if (missing.back() == 0)
                order_.push_back(int(i));
        }
        for (size_t k = 0; k < order_.size(); ++k) {
            place_[size_t(order_[k])] = int(k);
            for (int reader : readers_[size_t(order_[k])])
                if (--missing[size_t(reader)] == 0)
                    order_.push_back(reader);
        }
    }

    int root(int i)
    {
        while (parent_[size_t(i)] != i)
            i = parent_[size_t(i)] = parent_[size_t(parent_[size_t(i)])];
        return i;
    }

    // Whether a way leads from one subgraph into the other through anything else, whole subgraphs taken as one.
    bool hasDetour(int from, int to)
    {
        std::vector<int> open;
        std::vector<bool> seen(items_.size(), false);
        auto visit = [&](int r) {
            if (seen[size_t(r)])
                return;
            seen[size_t(r)] = true;
            open.push_back(r);
        };
        seen[size_t(from)] = true;
        for (int member : members_[size_t(from)])
            for (int reader : readers_[size_t(member)])
                if (root(reader) != to)
                    visit(root(reader));
        while (!open.empty()) {
            int const r = open.back();
            open.pop_back();
            for (int member : members_[size_t(r)])
                for (int reader : readers_[size_t(member)]) {
                    if (root(reader) == to)
                        return true;
                    visit(root(reader));
                }
        }
        return false;
    }

    void join(int a, int b)
    {
        if (members_[size_t(a)].size() < members_[size_t(b)].size())
            std::swap(a, b);
        parent_[size_t(b)] = a;
        auto &to = members_[size_t(a)], &from = members_[size_t(b)];
        to.insert(to.end(), from.begin(), from.end());
        from.clear();
    }

    std::vector<Item> const& items_;
    std::vector<std::vector<int>> readers_;
    std::vector<int> order_, place_; // every item before those that read it; -1: on a cycle
    std::vector<int> parent_;
    std::vector<std::vector<int>> members_; // of roots
};

} // namespace

std::vector<int> partition(std::vector<Item> const& items)
{
    return Partition(items).run();
}

} // namespace tw::dla
