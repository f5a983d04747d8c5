// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include "ops/while_loop/op.h"

namespace tw::ops::while_loop {

Result<void> reference(RefContext& ctx)
{
    std::vector<TensorRef> now;
    for (int i = 0; i < ctx.inputCount(); ++i)
        now.push_back(ctx.in(i));
    std::vector<Tensor> carried; // owns the first of `now` after the first trip
    for (int64_t trip = 0;; ++trip) {
        TW_ASSIGN(auto condition, ctx.runRegion(0, now));
        if (condition[0].ref().getInt(0) == 0)
            break;
        if (trip >= ctx.maxTrips)
            return ctx.error("the loop did not end after " + std::to_string(trip) + " iterations");
        TW_ASSIGN(auto next, ctx.runRegion(1, now));
        for (size_t i = 0; i < next.size(); ++i) {
            if (next[i].type() != now[i].type || !(next[i].dims() == now[i].dims))
                return ctx.error("carried value " + std::to_string(i) + " had shape " + now[i].dims.str() +
                                 ", iteration " + std::to_string(trip) + " gives " + next[i].dims().str());
            now[i] = next[i].ref();
        }
        carried = std::move(next);
    }
    for (int i = 0; i < ctx.outputCount(); ++i)
        if (now[size_t(i)].sizeBytes() > 0)
            std::memcpy(ctx.out(i).data, now[size_t(i)].data, size_t(now[size_t(i)].sizeBytes()));
    return {};
}

} // namespace tw::ops::while_loop
