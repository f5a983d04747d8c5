// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include <cmath>
#include <limits>

#include "ops/softmax/op.h"

namespace tw::ops::softmax {

Result<void> reference(RefContext& ctx)
{
    TensorRef const &x = ctx.in(0), &y = ctx.out();
    int const axis = int(ctx.attrs<Attrs>().axis);
    bool const log = ctx.attrs<Attrs>().log;
    int64_t const n = x.dims[axis], inner = x.dims.volume(axis + 1, x.dims.rank);
    for (int64_t o = 0; o < x.dims.volume(0, axis); ++o)
        for (int64_t i = 0; i < inner; ++i) {
            auto at = [&](int64_t j) { return (o * n + j) * inner + i; };
            double m = -std::numeric_limits<double>::infinity(), s = 0;
            for (int64_t j = 0; j < n; ++j)
                m = x.get(at(j)) > m ? x.get(at(j)) : m;
            for (int64_t j = 0; j < n; ++j)
                s += std::exp(x.get(at(j)) - m);
            for (int64_t j = 0; j < n; ++j)
                y.set(at(j), log ? x.get(at(j)) - m - std::log(s) : std::exp(x.get(at(j)) - m) / s);
        }
    return {};
}

} // namespace tw::ops::softmax
