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
        // What does not fit into the output is not written: the caller sees by the dimensions what it takes.
        int64_t const capacity = ctx.out(i).sizeBytes();
        ctx.setOutputDims(i, r.dims);
        if (r.sizeBytes() > 0 && r.sizeBytes() <= capacity)
            std::memcpy(ctx.out(i).data, r.data, size_t(r.sizeBytes()));
    }
    return {};
}

} // namespace tw::ops::conditional
