// SPDX-License-Identifier: Apache-2.0
#include "importers/common/importer_map.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/core.h>

namespace tw::importers {

void ImporterMap::add(char const* opType, Importer run, int firstOpset, int lastOpset, char const* domain)
{
    std::vector<Entry>& entries = entries_[{domain, opType}];
    for (Entry const& e : entries)
        if (firstOpset <= e.lastOpset && e.firstOpset <= lastOpset)
            throw std::logic_error(
                fmt::format("{} has two importers for opset {}", opType, std::max(firstOpset, e.firstOpset)));
    entries.push_back({run, firstOpset, lastOpset});
}

void ImporterMap::remove(char const* opType, char const* domain)
{
    entries_.erase({domain, opType});
}

Importer ImporterMap::find(std::string const& opType, int opset, std::string const& domain) const
{
    auto it = entries_.find({domain, opType});
    if (it == entries_.end())
        return nullptr;
    for (Entry const& e : it->second)
        if (opset >= e.firstOpset && opset <= e.lastOpset)
            return e.run;
    return nullptr;
}

bool ImporterMap::contains(std::string const& opType, std::string const& domain) const
{
    return entries_.contains({domain, opType});
}

} // namespace tw::importers
