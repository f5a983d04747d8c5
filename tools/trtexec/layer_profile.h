// SPDX-License-Identifier: Apache-2.0
// Collects the time of each layer over the profiled queries.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tw::trtexec {

class Log;

// Thread-safe: the contexts of several streams report to one profile.
class LayerProfile
{
public:
    void add(std::string_view layer, double ms);
    void print(Log& log) const;
    std::string json() const;
    bool empty() const;

private:
    struct Layer
    {
        std::string name;
        std::vector<double> times; // ms, one for each query
        double total() const;
        double median() const;
    };
    size_t iterations() const { return layers_.empty() ? 0 : layers_.front().times.size(); }
    double totalMs() const;

    mutable std::mutex mutex_;
    std::vector<Layer> layers_; // in the order of the first query
    std::unordered_map<std::string, size_t> indexOf_;
};

} // namespace tw::trtexec
