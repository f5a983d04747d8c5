// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include <algorithm>
#include <cmath>

#include "ops/scatter/op.h"

namespace tw::ops::scatter {

namespace {

double reduced(Reduction r, double a, double b)
{
    if (r == Reduction::kAdd)
        return a + b;
    if (r == Reduction::kMul)
        return a * b;
    if (std::isnan(a) || std::isnan(b))
        return a + b;
    return r == Reduction::kMin ? std::min(a, b) : std::max(a, b);
}
// Of 32 bits, which wrap.
int64_t reduced(Reduction r, int64_t a, int64_t b)
{
    if (r == Reduction::kAdd || r == Reduction::kMul)
        return int32_t(uint32_t(r == Reduction::kAdd ? a + b : a * b));
    return r == Reduction::kMin ? std::min(a, b) : std::max(a, b);
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &x = ctx.in(0), &j = ctx.in(1), &u = ctx.in(2), &y = ctx.out();
    auto copy = [&](TensorRef const& from, int64_t i, int64_t to) {
        if (isFloating(y.type))
            y.set(to, from.get(i));
        else
            y.setInt(to, from.getInt(i));
    };
    for (int64_t i = 0; i < y.count(); ++i)
        copy(x, i, i);
    bool const isReduced = a.reduction != Reduction::kNone;
    std::vector<double> sums(isReduced && isFloating(y.type) ? size_t(y.count()) : 0); // rounded once, at the end
    for (size_t i = 0; i < sums.size(); ++i)
        sums[i] = x.get(int64_t(i));
    auto put = [&](int64_t i, int64_t to) {
        if (!isReduced)
            copy(u, i, to);
        else if (isFloating(y.type))
            y.set(to, sums[size_t(to)] = reduced(a.reduction, sums[size_t(to)], u.get(i)));
        else
            y.setInt(to, reduced(a.reduction, y.getInt(to), u.getInt(i)));
    };
    if (u.count() == 0)
        return {};
    Extents const yStrides = stridesOf(y.dims), jStrides = stridesOf(j.dims);
    int const q = j.dims.rank;
    Counter c(u.dims);
    int64_t at = 0;
    do {
        Extents to;
        to.rank = y.dims.rank;
        bool inside = true;
        auto setFromIndex = [&](int d, int64_t jOffset) {
            int64_t const index = j.getInt(jOffset), size = y.dims[d];
            to[d] = index < 0 ? index + size : index;
            inside = inside && to[d] >= 0 && to[d] < size;
        };
        if (a.mode == Mode::kElement) {
            for (int d = 0; d < y.dims.rank; ++d)
                to[d] = c.at[d];
            setFromIndex(int(a.axis), at);
        } else {
            int const k = int(j.dims[q - 1]);
            int64_t jOffset = 0;
            for (int d = 0; d < q - 1; ++d)
                jOffset += c.at[d] * jStrides[d];
            for (int d = 0; d < k; ++d)
                setFromIndex(d, jOffset + d);
            for (int d = k; d < y.dims.rank; ++d)
                to[d] = c.at[q - 1 + d - k];
        }
        int64_t offset = 0;
        for (int d = 0; inside && d < y.dims.rank; ++d)
            offset += to[d] * yStrides[d];
        if (inside)
            put(at, offset);
        ++at;
    } while (c.next());
    return {};
}

} // namespace tw::ops::scatter
