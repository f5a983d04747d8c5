// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/kernel_window.h"

namespace tw::ops {

KernelWindowGeometry geometryOf(WindowKind kind, KernelWindowAttrs const& a, Extents const& x, Extents const& w,
                                Extents const& y)
{
    KernelWindowGeometry g;
    int const windowRank = w.rank - 2, channelAxis = x.rank - windowRank - 1, shift = 3 - windowRank;
    g.batch = x.volume(0, channelAxis);
    g.groups = a.groups;
    g.c = x[channelAxis];
    g.k = y[channelAxis];
    for (int i = 0; i < windowRank; ++i) {
        WindowParams const p = a.window(i, w[2 + i]);
        g.in[shift + i] = x[channelAxis + 1 + i];
        g.out[shift + i] = y[channelAxis + 1 + i];
        g.window[shift + i] = p.size;
        g.stride[shift + i] = p.stride;
        g.dilation[shift + i] = p.dilation;
        g.before[shift + i] = windowPadding(kind, a.paddingMode, g.in[shift + i], p).before;
    }
    return g;
}

} // namespace tw::ops
