// SPDX-License-Identifier: Apache-2.0
// Cases of convolutions whose filters follow 2:4 along their channels: what they mean is the dense convolution.
#include "cases/integer_sums.h"
#include "cases/sparse_weights.h"
#include "ops/convolution/cases.h"
#include "ops/convolution/op.h"

namespace tw::ops::convolution {

void sparseCases(CaseList& list)
{
    using activation::Kind;
    constexpr DataType kType = DataType::kHalf;
    auto add = [&](std::string const& name, Extents const& x, Extents const& w, int64_t padding, int64_t stride,
                   int64_t dilation, bool residual, FusedActivation f) {
        Attrs a(evenly(stride, padding, dilation).attrs(2), f);
        auto out = [&](int axis) { return (x[axis] + 2 * padding - dilation * (w[axis] - 1) - 1) / stride + 1; };
        Extents const y{x[0], w[0], out(2), out(3)};
        std::vector<CaseInput> in{input(kType, x), twoOfFour(kType, w, 1), constant(kType, {w[0]})};
        if (residual)
            in.push_back(input(kType, y));
        list.add("sparse_" + name, a, std::move(in));
        IntegerSums end{.f = Kind::kRelu, .innerScale = dilation > 1};
        if (residual)
            end.residual = DataType::kInt8;
        std::vector<CaseInput> bytes{input(DataType::kInt8, x), twoOfFour(DataType::kInt8, w, 1)};
        endIntegers(a.epilogue, bytes, end, y, w[0]);
        list.add("sparse_int8_" + name, std::move(a), std::move(bytes));
    };
    // Steps are 64 channels of a position; tiles 64 to 256 filters and pixels.
    for (bool residual : {false, true}) {
        std::string const r = residual ? "_residual" : "";
        FusedActivation const relu = Kind::kRelu;
        add("1x1" + r, {2, 64, 7, 9}, {64, 64, 1, 1}, 0, 1, 1, residual, relu);
        add("1x1_wide" + r, {3, 128, 14, 14}, {520, 128, 1, 1}, 0, 1, 1, residual, relu);
        add("1x1_odd" + r, {1, 36, 5, 11}, {75, 36, 1, 1}, 0, 1, 1, residual, {});
        add("1x1_stride2" + r, {2, 72, 9, 9}, {136, 72, 1, 1}, 0, 2, 1, residual, relu);
        add("3x3" + r, {2, 64, 9, 7}, {64, 64, 3, 3}, 1, 1, 1, residual, relu);
        add("3x3_channels_100" + r, {1, 100, 13, 12}, {130, 100, 3, 3}, 1, 1, 1, residual, Kind::kTanh);
        add("3x3_stride2" + r, {2, 64, 15, 14}, {256, 64, 3, 3}, 1, 2, 1, residual, relu);
        add("3x3_dilated" + r, {1, 64, 17, 16}, {72, 64, 3, 3}, 2, 1, 2, residual, relu);
        add("3x3_many_pixels" + r, {3, 64, 24, 25}, {136, 64, 3, 3}, 1, 1, 1, residual, relu);
        add("5x5_valid" + r, {2, 40, 11, 9}, {64, 40, 5, 5}, 0, 1, 1, residual, relu);
    }

    list.add("sparse_groups", Form{.groups = 2}.attrs(2),
             {input(kType, {1, 128, 6, 6}), twoOfFour(kType, {64, 64, 1, 1}, 1)});
    list.add("sparse_other_axis", Attrs::plain(2), {input(kType, {1, 64, 6, 6}), twoOfFour(kType, {64, 64, 1, 1}, 0)});
    list.add("sparse_empty", Attrs::plain(2), {input(kType, {0, 64, 6, 6}), twoOfFour(kType, {64, 64, 1, 1}, 1)});
}

} // namespace tw::ops::convolution
