// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "onnx/fold_parts.h"

namespace tw::onnx {

// Updates written into a copy of the data, the last one of an element counting, as the layer does.
std::optional<Constant> foldScatter(ImportContext& ctx)
{
    Constant const &x = ctx.input(0).constant(), &j = ctx.input(1).constant(), &u = ctx.input(2).constant();
    bool const nd = ctx.opType() == "ScatterND";
    if (ctx.attrString("reduction", "none") != "none" || x.type != u.type || isFloating(j.type) || x.dims.nbDims < 1 ||
        j.dims.nbDims < 1 || x.count > kMaxRearranged)
        return {};
    int const rank = x.dims.nbDims, last = j.dims.nbDims - 1, k = nd ? j.dims.d[last] : 1;
    int const axis = nd ? 0 : ctx.axis(ctx.attrInt("axis", 0), rank);
    if (k < 1 || k > rank)
        return {};
    Dims want = j.dims; // of the updates
    if (nd) {
        want.nbDims = last + rank - k;
        if (want.nbDims > Dims::MAX_DIMS)
            return {};
        std::copy(x.dims.d + k, x.dims.d + rank, want.d + last);
    }
    if (toVector(want) != toVector(u.dims) || (!nd && j.dims.nbDims != rank))
        return {};
    Constant y = ctx.newConstant(x.type, x.dims);
    int64_t const bytes = sizeOf(x.type);
    if (y.count > 0)
        std::memcpy(dataOf(y), x.values, size_t(y.count * bytes));
    auto const sx = stridesOf(x.dims), su = stridesOf(u.dims);
    int64_t const block = nd ? sx[size_t(k - 1)] : 1;
    for (int64_t t = 0; block > 0 && t < u.count / block; ++t) {
        int64_t to = 0;
        for (int d = 0; d < (nd ? k : rank); ++d) {
            bool const byIndex = nd || d == axis;
            int64_t p = byIndex ? j.intAt(nd ? t * k + d : t) : t / su[size_t(d)] % u.dims.d[d];
            p += byIndex && p < 0 ? x.dims.d[d] : 0;
            if (p < 0 || p >= x.dims.d[d])
                return {};
            to += p * sx[size_t(d)];
        }
        std::memcpy(static_cast<char*>(dataOf(y)) + to * bytes, static_cast<char const*>(u.values) + t * block * bytes,
                    size_t(block * bytes));
    }
    return y;
}

} // namespace tw::onnx
