// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/window_phases.h"

#include <algorithm>

#include "base/round.h"

namespace tw::ops {

Classes classesOf(bool transposed, int64_t window, int64_t stride, int64_t dilation)
{
    Classes classes(size_t(transposed ? stride : 1));
    for (int64_t i = 0; i < window; ++i) {
        int64_t const f = transposed ? window - 1 - i : i;
        classes[size_t(transposed ? f * dilation % stride : 0)].push_back(f);
    }
    return classes;
}

std::vector<Phase> phasesOf(KernelWindowGeometry const& g, int axis, bool transposed, Classes const& classes)
{
    int64_t const stride = g.stride[axis], dilation = g.dilation[axis], before = g.before[axis];
    std::vector<Phase> phases;
    for (int64_t first = 0; first < std::min(transposed ? stride : 1, g.out[axis]); ++first) {
        Phase p;
        p.first = first;
        p.in = g.in[axis];
        if (transposed) {
            p.step = stride;
            p.count = divideUp(g.out[axis] - first, stride);
            p.tapClass = size_t(((first + before) % stride + stride) % stride);
        } else {
            p.stride = stride;
            p.count = g.out[axis];
        }
        for (int64_t f : classes[p.tapClass])
            p.offsets.push_back(transposed ? (first + before - f * dilation) / stride : f * dilation - before);
        phases.push_back(std::move(p));
    }
    return phases;
}

TapRange tapsInside(Phase const& p, int64_t q)
{
    TapRange r;
    for (int64_t offset : p.offsets) {
        int64_t const i = q * p.stride + offset;
        r.first += i < 0;
        r.count += i >= 0 && i < p.in;
    }
    return r;
}

} // namespace tw::ops
