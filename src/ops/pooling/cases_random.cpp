// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/pooling/op.h"

namespace tw::ops::pooling {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    auto a = Attrs::plain(Kind(d.from(0, 2)), {1, 1});
    Extents x{d.from(1, 3), d.size(70), d.size(24), d.size(24)};
    for (size_t i = 0; i < 2; ++i) {
        a.window[i] = d.chance(15) ? x[2 + int(i)] : d.from(1, std::min<int64_t>(4, x[2 + int(i)]));
        a.strides[i] = d.from(1, 3);
        a.prePadding[i] = d.from(0, std::min<int64_t>(a.window[i] - 1, 2));
        a.postPadding[i] = d.from(0, std::min<int64_t>(a.window[i] - 1, 2));
    }
    a.blend = a.kind == Kind::kMaxAverageBlend ? 0.25F : 0;
    a.excludePadding = d.chance(50);
    list.add(name, a, {input(d.type(), x)});
}

} // namespace tw::ops::pooling
