// SPDX-License-Identifier: Apache-2.0
#include "passes/few_rows.h"

namespace tw::passes {

bool hasFewRows(ir::Graph const& g, ir::Shape const& x, PassContext const& ctx)
{
    constexpr int64_t kMostRows = 16; // of a kernel's tile
    ir::SymbolTable symbols = g.symbols;
    if (ctx.firstProfile)
        for (auto& [name, symbol] : symbols)
            if (auto const at = ctx.firstProfile->find(name); at != ctx.firstProfile->end())
                symbol.range = at->second.range;
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < x.size(); ++d)
        rows = ir::mulSat(rows, x[d].range(symbols).hi);
    return rows <= kMostRows;
}

} // namespace tw::passes
