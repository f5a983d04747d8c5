// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "base/check.h"
#include "ir/text.h"
#include "tactic/registry.h"

namespace tw::ops {

std::function<std::vector<std::unique_ptr<ir::Graph>>()> textRegions(std::vector<std::string> texts)
{
    return [texts = std::move(texts)] {
        std::vector<std::unique_ptr<ir::Graph>> regions;
        for (std::string const& text : texts) {
            auto g = ir::parse(text, find);
            if (!g.ok())
                checkFailed(g.error().message.c_str(), __FILE__, __LINE__);
            regions.push_back(std::move(*g));
        }
        return regions;
    };
}

CaseList casesOf(std::string_view op)
{
    CaseList list;
    for (OpCases const& c : allCases())
        if (op == c.op)
            c.add(list);
    return list;
}

} // namespace tw::ops
