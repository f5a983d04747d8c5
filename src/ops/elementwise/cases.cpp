// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <cmath>
#include <limits>

#include "cases/draw.h"
#include "ops/elementwise/op.h"

namespace tw::ops::elementwise {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

} // namespace

void cases(CaseList& list)
{
    auto byHand = [&](std::string suffix, DataType type, Operation o, std::vector<double> a, std::vector<double> b,
                      std::vector<double> y) {
        Extents const e{int64_t(a.size())};
        list.add(kOperationNames[int(o)] + suffix, Attrs(o),
                 {input(type, e, std::move(a)), input(type, e, std::move(b))}, {std::move(y)});
    };
    using O = Operation;
    auto real = [&](O o, std::vector<double> y) {
        byHand("_by_hand", DataType::kFloat, o, {5, -7, 2, kNan, 1, kInf, -1}, {2, 2, 2, 1, kNan, -kInf, 0},
               std::move(y));
    };
    real(O::kSum, {7, -5, 4, kNan, kNan, kNan, -1});
    real(O::kProd, {10, -14, 4, kNan, kNan, -kInf, 0});
    real(O::kMax, {5, 2, 2, kNan, kNan, kInf, 0});
    real(O::kMin, {2, -7, 2, kNan, kNan, -kInf, -1});
    real(O::kSub, {3, -9, 0, kNan, kNan, kInf, -1});
    real(O::kDiv, {2.5, -3.5, 1, kNan, kNan, kNan, -kInf});
    real(O::kPow, {25, 49, 4, kNan, 1, 0, 1});
    real(O::kFloorDiv, {2, -4, 1, kNan, kNan, kNan, -kInf});
    real(O::kEqual, {0, 0, 1, 0, 0, 0, 0});
    real(O::kGreater, {1, 0, 0, 0, 0, 1, 0});
    real(O::kLess, {0, 1, 0, 0, 0, 0, 1});
    double const lo = -2147483648.0, hi = 2147483647.0;
    auto whole = [&](O o, std::vector<double> y) {
        byHand("_i32_by_hand", DataType::kInt32, o, {7, -7, 7, -7, 5, lo, hi}, {2, 2, -2, -2, 0, -1, 1}, std::move(y));
    };
    whole(O::kSum, {9, -5, 5, -9, 5, hi, lo});
    whole(O::kProd, {14, -14, -14, 14, 0, lo, hi});
    whole(O::kMax, {7, 2, 7, -2, 5, -1, hi});
    whole(O::kMin, {2, -7, -2, -7, 0, lo, 1});
    whole(O::kSub, {5, -9, 9, -5, 5, lo + 1, hi - 1});
    whole(O::kDiv, {3, -3, -3, 3, 0, lo, hi});
    whole(O::kFloorDiv, {3, -4, -4, 3, 0, lo, hi});
    whole(O::kEqual, {0, 0, 0, 0, 0, 0, 0});
    whole(O::kGreater, {1, 0, 1, 0, 1, 0, 1});
    whole(O::kLess, {0, 1, 0, 1, 0, 1, 0});
    auto small = [&](O o, std::vector<double> y) {
        byHand("_i8_by_hand", DataType::kInt8, o, {100, -100, 7, -7, 5, -128, 2}, {50, 50, 2, 2, 0, -1, -1},
               std::move(y));
    };
    small(O::kSum, {127, -50, 9, -5, 5, -128, 1});
    small(O::kProd, {127, -128, 14, -14, 0, 127, -2});
    small(O::kSub, {50, -128, 5, -9, 5, -127, 3});
    small(O::kDiv, {2, -2, 4, -4, 0, 127, -2}); // 3.5 to 4, -3.5 to -4
    small(O::kFloorDiv, {2, -2, 3, -4, 0, 127, -2});
    small(O::kPow, {127, 127, 49, 49, 1, 0, 0});
    for (O o : {O::kAnd, O::kOr, O::kXor}) {
        bool const isAnd = o == O::kAnd, isXor = o == O::kXor;
        byHand("_by_hand", DataType::kBool, o, {0, 0, 1, 1}, {0, 1, 0, 1},
               {0, double(!isAnd), double(!isAnd), double(!isXor)});
    }
    list.add("broadcast_by_hand", Attrs(O::kSub), {f32({2, 1}, {10, 20}), f32({1, 3}, {1, 2, 3})},
             {{9, 8, 7, 19, 18, 17}});
    list.add("mixed_by_hand", Attrs(O::kSum), {f32({2}, {0.25, 1}), input(DataType::kHalf, {2}, {0.5, 2})},
             {{0.75, 3}});
    list.add("mixed_other_way", Attrs(O::kProd), {input(DataType::kHalf, {3, 100}), f32({1, 100})});
    list.add("mixed_less", Attrs(O::kLess), {input(DataType::kHalf, {3, 100}), f32({1, 100})});
    for (int k = 0; k < kOperationCount; ++k) {
        Attrs const a{O(k)};
        std::string const name = kOperationNames[k];
        if (isLogic(a.operation)) {
            list.add(name, a, {input(DataType::kBool, {3, 100}), input(DataType::kBool, {3, 100})});
            list.add(name + "_broadcast", a, {input(DataType::kBool, {3, 100}), input(DataType::kBool, {3, 1})});
            continue;
        }
        for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8, DataType::kInt32}) {
            if (t == DataType::kInt32 && a.operation == O::kPow)
                continue;
            std::string const suffix = std::string("_") + nameOf(t);
            list.add(name + suffix, a, {input(t, {2, 3, 89}), input(t, {2, 3, 89})});
            list.add(name + suffix + "_channel", a, {input(t, {2, 3, 5, 7}), input(t, {1, 3, 1, 1})});
            list.add(name + suffix + "_outer", a, {input(t, {4, 1, 3}), input(t, {1, 5, 3})});
        }
    }
    // Exponents with loops of their own.
    std::pair<double, std::vector<double>> const powers[] = {{2, {9, 0, kInf, 2.25, kNan}},
                                                             {3, {-27, -0.0, -kInf, 3.375, kNan}},
                                                             {1, {-3, -0.0, -kInf, 1.5, kNan}},
                                                             {-1, {-1.0 / 3, -kInf, -0.0, 2.0 / 3, kNan}},
                                                             {0.5, {kNan, 0, kInf, std::sqrt(1.5), kNan}},
                                                             {-0.5, {kNan, kInf, 0, 1 / std::sqrt(1.5), kNan}},
                                                             {1.5, {kNan, 0, kInf, 1.5 * std::sqrt(1.5), kNan}}};
    for (auto const& [e, y] : powers)
        for (DataType t : {DataType::kFloat, DataType::kHalf})
            list.add(fmt::format("pow_{}_{}", e, nameOf(t)), Attrs(O::kPow),
                     {input(t, {5}, {-3, -0.0, -kInf, 1.5, kNan}), input(t, {1}, {e})}, {y});
    list.add("pow_long_row", Attrs(O::kPow), {f32({2, 16400}), f32({1, 1}, {0.5})});
    list.add("pow_many_rows", Attrs(O::kPow), {f32({700, 3}), f32({700, 1})});
    list.add("both_sides", Attrs(O::kSum), {f32({2, 1, 3, 1}), f32({1, 4, 1, 5})});
    list.add("scalar", Attrs(O::kSum), {f32({}), f32({})});
    list.add("ones", Attrs(O::kSum), {f32({1, 1}), f32({1, 1})});
    list.add("empty", Attrs(O::kSum), {f32({2, 0, 3}), f32({1, 1, 3})});
    list.add("empty_by_broadcast", Attrs(O::kMax), {f32({2, 1}), f32({1, 0})});
    // Images in FP16: an operand for each element, channel, pixel, image, and one in all.
    DataType const h = DataType::kHalf;
    for (Extents const& e :
         {Extents{2, 24, 3, 5}, {1, 24, 1, 1}, {2, 24, 1, 1}, {2, 1, 3, 5}, {1, 1, 3, 5}, {2, 1, 1, 1}, {1, 1, 1, 1}})
        list.add("half_image_" + e.str(), Attrs(O::kSum), {input(h, {2, 24, 3, 5}), input(h, e)});
    list.add("half_image_tail", Attrs(O::kProd), {input(h, {2, 19, 3, 5}), input(h, {2, 19, 3, 5})});
    list.add("half_image_tail_stretched", Attrs(O::kProd), {input(h, {2, 19, 3, 5}), input(h, {2, 19, 1, 1})});
    list.add("half_image_constant", Attrs(O::kSub), {input(h, {2, 16, 3, 5}), constant(h, {1, 16, 1, 1})});
    list.add("long_row", Attrs(O::kProd), {input(DataType::kHalf, {2, 700}), input(DataType::kHalf, {2, 1})});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    a.operation = Operation(d.from(0, 5)); // those of floats without a domain of their own, and kDiv
    Extents x = d.extents(int(d.from(1, 4)), 20), y = x;
    for (int i = 0; i < x.rank; ++i)
        if (d.chance(30))
            (d.chance(50) ? x : y)[i] = 1;
    DataType const t = d.type();
    list.add(name, a, {input(t, x), d.chance(30) ? constant(t, y) : input(t, y)});
}

} // namespace tw::ops::elementwise
