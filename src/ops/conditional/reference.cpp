// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include "ops/conditional/op.h"

namespace tw::ops::conditional {

Result<void> reference(RefContext& ctx)
{
    std::vector<TensorRef> captures;
    for (int i = 1; i < ctx.inputCount(); ++i)
        captures.push_back(ctx.in(i));
    TW_ASSIGN(auto results, ctx.runRegion(ctx.in(0).getInt(0) != 0 ? 0 : 1, captures));
    for (int i = 0; i < ctx.outputCount(); ++i) {
        TensorRef const& r = results[size_t(i)].ref();
        bool fits = r.type == ctx.out(i).type && r.dims.rank == ctx.out(i).dims.rank;
        for (int d = 0; fits && d < r.dims.rank; ++d)
            fits = r.dims[d] <= ctx.out(i).dims[d];
        if (!fits)
            return ctx.error("output " + std::to_string(i) + " has shape " + r.dims.str() + ", above its bound " +
                             ctx.out(i).dims.str());
        ctx.setOutputDims(i, r.dims);
        if (r.sizeBytes() > 0)
            std::memcpy(ctx.out(i).data, r.data, size_t(r.sizeBytes()));
    }
    return {};
}

} // namespace tw::ops::conditional
