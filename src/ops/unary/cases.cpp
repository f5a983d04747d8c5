// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <limits>

#include "cases/draw.h"
#include "ops/unary/op.h"

namespace tw::ops::unary {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

} // namespace

void cases(CaseList& list)
{
    auto byHand = [&](Operation o, std::vector<double> x, std::vector<double> y) {
        list.add(std::string(kOperationNames[int(o)]) + "_by_hand", Attrs(o), {f32({int64_t(x.size())}, x)},
                 {std::move(y)});
    };
    byHand(Operation::kExp, {0, 1, -1, 100, -kInf, kInf, kNan}, {1, 2.718281828, 0.367879441, kInf, 0, kInf, kNan});
    byHand(Operation::kLog, {1, 2.718281828, 0.5, 0, -1, kInf, kNan}, {0, 1, -0.693147181, -kInf, kNan, kInf, kNan});
    byHand(Operation::kSqrt, {4, 2, 0, -1, kInf}, {2, 1.414213562, 0, kNan, kInf});
    byHand(Operation::kRecip, {4, -0.5, 0, -0.0, kInf}, {0.25, -2, kInf, -kInf, 0});
    byHand(Operation::kAbs, {-3, 3, -0.0, -kInf, kNan}, {3, 3, 0, kInf, kNan});
    byHand(Operation::kNeg, {-3, 3, kInf, kNan}, {3, -3, -kInf, kNan});
    byHand(Operation::kSin, {0, 1, -1, 100}, {0, 0.841470985, -0.841470985, -0.506365641});
    byHand(Operation::kCos, {0, 1, -1, 100, kInf}, {1, 0.540302306, 0.540302306, 0.862318872, kNan});
    byHand(Operation::kTan, {0, 1, -1}, {0, 1.557407725, -1.557407725});
    byHand(Operation::kSinh, {0, 1, -1}, {0, 1.175201194, -1.175201194});
    byHand(Operation::kCosh, {0, 1, -1}, {1, 1.543080635, 1.543080635});
    byHand(Operation::kAsin, {0, 1, -1, 2}, {0, 1.570796327, -1.570796327, kNan});
    byHand(Operation::kAcos, {0, 1, -1, 2}, {1.570796327, 0, 3.141592654, kNan});
    byHand(Operation::kAtan, {0, 1, -kInf}, {0, 0.785398163, -1.570796327});
    byHand(Operation::kAsinh, {0, 1, -1}, {0, 0.881373587, -0.881373587});
    byHand(Operation::kAcosh, {1, 2, 0.5}, {0, 1.316957897, kNan});
    byHand(Operation::kAtanh, {0, 0.5, 1, -1, 2}, {0, 0.549306144, kInf, -kInf, kNan});
    byHand(Operation::kCeil, {1.2, -1.2, 3, -kInf}, {2, -1, 3, -kInf});
    byHand(Operation::kFloor, {1.2, -1.2, 3, kInf}, {1, -2, 3, kInf});
    byHand(Operation::kErf, {0, 0.5, -1, kInf, kNan}, {0, 0.520499878, -0.842700793, 1, kNan});
    byHand(Operation::kSign, {-3, 0, -0.0, 5, kNan, -kInf}, {-1, 0, 0, 1, 0, -1});
    byHand(Operation::kRound, {0.5, 1.5, 2.5, -0.5, -1.5, 2.4, -2.6, 8388609.0}, {0, 2, 2, 0, -2, 2, -3, 8388609.0});
    list.add("not_by_hand", Attrs(Operation::kNot), {input(DataType::kBool, {3}, {0, 1, 1})}, {{1, 0, 0}});
    list.add("sign_i32_by_hand", Attrs(Operation::kSign),
             {input(DataType::kInt32, {4}, {-2147483648.0, -1, 0, 2147483647.0})}, {{-1, -1, 0, 1}});
    list.add("abs_i8_by_hand", Attrs(Operation::kAbs), {input(DataType::kInt8, {3}, {-128, -5, 7})}, {{127, 5, 7}});
    list.add("recip_i8_by_hand", Attrs(Operation::kRecip), {input(DataType::kInt8, {5}, {0, 1, 2, -1, 3})},
             {{127, 1, 0, -1, 0}});
    list.add("log_i8_by_hand", Attrs(Operation::kLog), {input(DataType::kInt8, {4}, {0, 1, 100, -1})},
             {{-128, 0, 5, 0}});
    for (int k = 0; k < kOperationCount; ++k) {
        Attrs const a{Operation(k)};
        std::string const name = kOperationNames[k];
        if (a.operation == Operation::kNot) {
            list.add(name, a, {input(DataType::kBool, {3, 100})});
            continue;
        }
        list.add(name + "_f32", a, {f32({3, 5, 19})});
        list.add(name + "_f16", a, {input(DataType::kHalf, {7, 41})});
        list.add(name + "_f16_special", a,
                 {input(DataType::kHalf, {9}, {0, -0.0, 1, -1, 0.5, -0.5, kInf, -kInf, kNan})});
        list.add(name + "_f16_wide", a,
                 {input(DataType::kHalf, {8}, {65504, -65504, 3000, -3000, 20, -20, 6e-8, -6e-8})});
        list.add(name + "_i8", a, {input(DataType::kInt8, {300})});
        if (a.operation >= Operation::kSin && a.operation <= Operation::kAtanh) {
            list.add(name + "_f32_special", a,
                     {f32({4, 4}, {0, -0.0, 1, -1, 0.5, -0.5, kInf, -kInf, kNan, 1e-10, -1e-30, 0.4142, 2.4142, -0.125,
                                   0.9999999, 1.0000001})});
            bool const isOfUnit = a.operation == Operation::kAsin || a.operation == Operation::kAcos ||
                                  a.operation == Operation::kAtanh; // NaN beyond 1
            list.add(name + "_f32_wide", a, {f32({9}, {3e38, 1e7, -2e6, 999999, -300, 20, -20, 3.1415927, -1.5707964})})
                .isConstant = isOfUnit;
            list.add(name + "_f32_long", a, {f32({3, 10007})});
        }
    }
    list.add("sign_i32", Attrs(Operation::kSign), {input(DataType::kInt32, {2, 33})});
    list.add("scalar", Attrs(Operation::kExp), {f32({})});
    list.add("empty", Attrs(Operation::kExp), {input(DataType::kHalf, {0, 3})});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs const a(Operation(d.from(0, kOperationCount - 1)));
    DataType const t = a.operation == Operation::kNot                    ? DataType::kBool
                       : a.operation == Operation::kSign && d.chance(30) ? DataType::kInt32
                                                                         : d.type();
    list.add(name, a, {input(t, d.extents(int(d.from(0, 4)), 24))});
}

} // namespace tw::ops::unary
