// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <cmath>
#include <limits>

#include "cases/draw.h"
#include "ops/activation/op.h"

namespace tw::ops::activation {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

} // namespace

void cases(CaseList& list)
{
    // The first five of each list: worked by hand; then NaN and infinities.
    auto byHand = [&](char const* name, Attrs a, std::vector<double> y) {
        list.add(name, a, {f32({8}, {-2, -1, 0, 1, 2, kNan, kInf, -kInf})}, {std::move(y)});
    };
    double const e1 = std::exp(-1.0), e2 = std::exp(-2.0);
    byHand("relu", Attrs(Kind::kRelu), {0, 0, 0, 1, 2, kNan, kInf, 0});
    byHand("sigmoid", Attrs(Kind::kSigmoid), {0.119202922, 0.268941421, 0.5, 0.731058579, 0.880797078, kNan, 1, 0});
    byHand("tanh", Attrs(Kind::kTanh), {-0.964027580, -0.761594156, 0, 0.761594156, 0.964027580, kNan, 1, -1});
    byHand("leaky_relu", Attrs(Kind::kLeakyRelu, 0.25f), {-0.5, -0.25, 0, 1, 2, kNan, kInf, -kInf});
    byHand("elu", Attrs(Kind::kElu, 2), {2 * (e2 - 1), 2 * (e1 - 1), 0, 1, 2, kNan, kInf, -2});
    byHand("selu", Attrs(Kind::kSelu, 2, 3), {6 * (e2 - 1), 6 * (e1 - 1), 0, 3, 6, kNan, kInf, -6});
    byHand("softsign", Attrs(Kind::kSoftsign), {-2.0 / 3, -0.5, 0, 0.5, 2.0 / 3, kNan, kNan, kNan});
    byHand("softplus", Attrs(Kind::kSoftplus, 2, 0.5f),
           {0.626523374, 0.948153967, 1.386294361, 1.948153967, 2.626523374, kNan, kInf, 0});
    byHand("clip", Attrs(Kind::kClip, -1.5f, 0.5f), {-1.5, -1, 0, 0.5, 0.5, kNan, 0.5, -1.5});
    byHand("clip_crossed", Attrs(Kind::kClip, 1, -1), {1, 1, 1, 1, 1, kNan, 1, 1}); // alpha wins
    byHand("hard_sigmoid", Attrs(Kind::kHardSigmoid, 0.25f, 0.5f), {0, 0.25, 0.5, 0.75, 1, kNan, 1, 0});
    byHand("scaled_tanh", Attrs(Kind::kScaledTanh, 3, 0.5f),
           {-2.284782467, -1.386351473, 0, 1.386351473, 2.284782467, kNan, 3, -3});
    byHand("thresholded_relu", Attrs(Kind::kThresholdedRelu, 1), {0, 0, 0, 0, 2, 0, kInf, 0});
    list.add("i8_by_hand", Attrs(Kind::kLeakyRelu, 0.5f), {input(DataType::kInt8, {6}, {-128, -5, -3, -1, 0, 127})},
             {{-64, -2, -2, 0, 0, 127}});
    list.add("i8_saturates", Attrs(Kind::kSelu, 1, 3), {input(DataType::kInt8, {3}, {100, 42, -128})},
             {{127, 126, -3}});
    for (int k = 0; k < kKindCount; ++k) {
        std::string const name = fmt::format("kind{}", k);
        Attrs const a(Kind(k), 0.3f, 1.25f);
        list.add(name + "_f32", a, {f32({2, 3, 5, 19})});
        list.add(name + "_f16", a, {input(DataType::kHalf, {7, 41})});
        Attrs const whole{Kind(k), Kind(k) == Kind::kScaledTanh ? 30.0f : a.alpha, a.beta};
        list.add(name + "_i8", whole, {input(DataType::kInt8, {300})});
    }
    list.add("half_image", Attrs(Kind::kSigmoid), {input(DataType::kHalf, {2, 19, 4, 5})});
    list.add("block_end", Attrs(Kind::kRelu), {input(DataType::kHalf, {257})});
    list.add("scalar", Attrs(Kind::kSigmoid), {f32({})});
    list.add("empty", Attrs(Kind::kTanh), {f32({2, 0, 3})});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs const a(Kind(d.from(0, kKindCount - 1)), float(d.from(1, 8)) / 8, float(d.from(1, 8)) / 8);
    list.add(name, a, {input(d.chance(20) ? DataType::kInt8 : d.type(), d.extents(int(d.from(1, 4)), 24))});
}

} // namespace tw::ops::activation
