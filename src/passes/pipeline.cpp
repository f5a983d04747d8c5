// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>

#include "passes/pass.h"

namespace tw::passes {

std::vector<Pass> const& pipeline()
{
    static std::vector<Pass> const list = {};
    return list;
}

Result<void> run(ir::Graph& g, PassContext const& ctx, Options const& options)
{
    int done = 0;
    for (Pass const& p : pipeline()) {
        if (options.stopAfter >= 0 && done++ >= options.stopAfter)
            break;
        if (std::find(options.disabled.begin(), options.disabled.end(), p.name) != options.disabled.end())
            continue;
        auto const begin = std::chrono::steady_clock::now();
        auto changed = p.run(g, ctx);
        if (!changed.ok())
            return std::move(changed).error().in(std::string("pass ") + p.name);
        g.form = std::max(g.form, p.gives);
        if (options.verifyEach)
            if (auto verified = ir::verify(g); !verified.ok())
                return std::move(verified).error().in(std::string("after pass ") + p.name);
        if (*changed)
            ctx.log.verbose(
                std::string("pass ") + p.name + ": " + std::to_string(g.nodes.size()) + " nodes, " +
                std::to_string(
                    std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count()) +
                " ms");
    }
    return {};
}

} // namespace tw::passes
