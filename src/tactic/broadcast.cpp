// SPDX-License-Identifier: Apache-2.0
#include "tactic/broadcast.h"

namespace tw::ops {

BroadcastLoop broadcastLoop(Extents const& out, std::span<Extents const* const> operands)
{
    BroadcastLoop loop;
    loop.operands = int(operands.size());
    Extents strides[BroadcastLoop::kMaxOperands];
    int k = 0;
    for (Extents const* e : operands)
        strides[k++] = stridesOf(*e, true);
    int rank = 0;
    for (int axis = 0; axis < out.rank; ++axis) {
        if (out[axis] == 1)
            continue;
        bool merges = rank > 0;
        for (k = 0; k < loop.operands && merges; ++k)
            merges = loop.stride[k][rank - 1] == strides[k][axis] * out[axis];
        if (!merges) {
            ++rank;
            loop.extent[rank - 1] = 1;
        }
        loop.extent[rank - 1] *= out[axis];
        for (k = 0; k < loop.operands; ++k)
            loop.stride[k][rank - 1] = strides[k][axis];
    }
    if (rank == 0) { // a single element
        loop.extent[0] = 1;
        for (k = 0; k < loop.operands; ++k)
            loop.stride[k][0] = 1;
    }
    loop.rank = rank > 0 ? rank : 1;
    return loop;
}

Result<ir::Shape> broadcastInputs(ir::InferContext const& ctx, int count)
{
    ir::Shape out = ctx.shape(0);
    for (int i = 0; i < count; ++i) {
        if (ctx.rank(i) > kMaxRank)
            return ctx.error("{} has more than {} dimensions", ctx.describe(i), kMaxRank);
        if (ctx.rank(i) != ctx.rank(0))
            return ctx.error(ctx.describe(0) + " and " + ctx.describe(i) +
                             " must have equal rank; reshape one of them with dimensions of 1 in front");
        std::string why;
        auto next = ir::broadcast(out, ctx.shape(i), why);
        if (!next)
            return ctx.error(ctx.describe(0) + " and " + ctx.describe(i) + " do not broadcast: " + why);
        out = std::move(*next);
    }
    return out;
}

ContentMap contentMap(ir::InferContext const& ctx, ir::Shape const& out, int count)
{
    ContentMap map;
    if (int(out.size()) > kMaxRank || !ir::isStatic(out))
        return map;
    int64_t elements = 1;
    for (ir::Dim const& d : out)
        elements = d.value() < 0 ? ir::kMaxContent + 1 : ir::mulSat(elements, d.value());
    if (elements > ir::kMaxContent)
        return map;
    for (int i = 0; i < count; ++i)
        if (!ir::isStatic(ctx.shape(i)))
            return map;
    map.known = true;
    map.from.resize(size_t(count));
    if (elements == 0)
        return map;
    Extents const e = ir::extentsOf(out);
    for (int i = 0; i < count; ++i) {
        Extents const strides = stridesOf(ir::extentsOf(ctx.shape(i)), true);
        Counter c(e);
        do
            map.from[size_t(i)].push_back(c.offset(strides));
        while (c.next());
    }
    return map;
}

} // namespace tw::ops
