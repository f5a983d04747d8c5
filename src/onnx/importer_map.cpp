// SPDX-License-Identifier: Apache-2.0
// Which importer an operator of an opset has.
#include <algorithm>
#include <stdexcept>

#include "onnx/importer.h"

namespace tw::onnx {

void ImporterMap::add(char const* opType, Importer run, int firstOpset, int lastOpset)
{
    std::vector<Entry>& entries = entries_[opType];
    for (Entry const& e : entries)
        if (firstOpset <= e.lastOpset && e.firstOpset <= lastOpset)
            throw std::logic_error(std::string(opType) + " has two importers for opset " +
                                   std::to_string(std::max(firstOpset, e.firstOpset)));
    entries.push_back({run, firstOpset, lastOpset});
}

Importer ImporterMap::find(std::string const& opType, int opset) const
{
    auto it = entries_.find(opType);
    if (it == entries_.end())
        return nullptr;
    for (Entry const& e : it->second)
        if (opset >= e.firstOpset && opset <= e.lastOpset)
            return e.run;
    return nullptr;
}

bool ImporterMap::contains(std::string const& opType) const
{
    return entries_.count(opType) != 0;
}

} // namespace tw::onnx
