// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include "ops/cache_update/op.h"

namespace tw::ops::cache_update {

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &x = ctx.in(0), &u = ctx.in(1), &y = ctx.out();
    Layout const at(a, x.dims, u.dims);
    for (int64_t i = 0; i < y.count(); ++i)
        y.set(i, x.get(i));
    for (int64_t n = 0; n < at.images; ++n) {
        std::vector<int32_t> pages;
        for (int64_t p = 0; a.pages && p < ctx.in(3).dims[1]; ++p)
            pages.push_back(int32_t(ctx.in(3).getInt(n * ctx.in(3).dims[1] + p)));
        for (int64_t g = 0; g < at.groups; ++g)
            for (int64_t i = 0; i < at.rows; ++i) {
                int64_t const to = at.placeInAll(a, n, g, ctx.has(2) ? ctx.in(2).getInt(n) : 0, i, pages);
                for (int64_t e = 0; to >= 0 && e < at.inner; ++e)
                    y.set(to * at.inner + e, u.get(at.at(n, g, i) + e));
            }
    }
    return {};
}

} // namespace tw::ops::cache_update
