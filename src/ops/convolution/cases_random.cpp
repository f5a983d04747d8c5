// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "cases/integer_sums.h"
#include "cases/programs.h"
#include "ops/convolution/op.h"

namespace tw::ops::convolution {

// Channels of x and y, window and padding of a convolution, and what stands after it.
void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    KernelWindowAttrs a;
    Extents x, w, y;
    bool const transposed = d.chance(33);
    d.until([&] {
        int const rank = d.chance(85) ? 2 : 3;
        a = KernelWindowAttrs::plain(rank);
        bool const depthwise = d.chance(20);
        int64_t const c = d.size(80), perGroup = depthwise ? 1 : d.size(80);
        a.groups = depthwise ? c : d.chance(25) ? d.from(2, 4) : 1;
        int64_t const in = depthwise ? c : c * a.groups, out = perGroup * a.groups;
        x = rank == 2 ? Extents{d.from(1, 3), in, 0, 0} : Extents{d.from(1, 2), in, 0, 0, 0};
        w = y = x;
        y[1] = out;
        w[0] = transposed ? in : out;
        w[1] = transposed ? perGroup : in / a.groups;
        int64_t work = x[0] * out * (in / a.groups);
        for (int i = 0; i < rank; ++i) {
            size_t const k = size_t(i);
            x[2 + i] = d.size(rank == 2 ? 40 : 9);
            w[2 + i] = d.chance(30) ? 1 : d.chance(60) ? 3 : d.from(1, 7);
            a.strides[k] = d.chance(60) ? 1 : d.from(1, 3);
            a.dilations[k] = d.chance(80) ? 1 : d.from(1, 3);
            a.prePadding[k] = d.from(0, w[2 + i] / 2 + d.chance(10));
            a.postPadding[k] = d.chance(60) ? a.prePadding[k] : d.from(0, w[2 + i] / 2);
            int64_t const reach = a.dilations[k] * (w[2 + i] - 1) + 1, pad = a.prePadding[k] + a.postPadding[k];
            int64_t const o = transposed
                                  ? (x[2 + i] - 1) * a.strides[k] + reach - pad
                                  : (x[2 + i] + pad - reach < 0 ? 0 : (x[2 + i] + pad - reach) / a.strides[k] + 1);
            if (o < 1)
                return false;
            y[2 + i] = o;
            work *= w[2 + i] * (transposed ? x[2 + i] : o);
        }
        return work <= kMostWork;
    });
    DataType const t = d.chance(30) ? DataType::kInt8 : d.type();
    std::vector<CaseInput> in{input(t, x), constant(t, w)};
    if (isQuantized(t)) {
        Attrs sums(a, {}, transposed);
        endIntegers(sums.epilogue, in, integerSums(d), y, y[1]);
        list.add(name, sums, in);
        return;
    }
    bool const residual = d.chance(25);
    if (d.chance(60))
        in.push_back(constant(t, {y[1]}));
    else if (residual)
        in.push_back(absent());
    if (residual)
        in.push_back(input(t, y));
    Attrs sums(a, activationOf(d), transposed);
    if (d.chance(20))
        drawProgram(d, residual).setTo(sums.epilogue);
    list.add(name, sums, in);
}

} // namespace tw::ops::convolution
