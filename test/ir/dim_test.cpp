// SPDX-License-Identifier: Apache-2.0
#include "ir/dim.h"

#include <random>

#include <gtest/gtest.h>

namespace tw::ir {

namespace {

Dim const kN = Dim::symbol("N"), kM = Dim::symbol("M");

Dim parsed(std::string const& text)
{
    auto d = Dim::parse(text);
    EXPECT_TRUE(d.ok()) << text << ": " << (d.ok() ? "" : d.error().message);
    return d.ok() ? *d : Dim(-12345);
}

} // namespace

TEST(Dim, EqualSumsAndProductsAreEqual)
{
    EXPECT_EQ(kN + kM, kM + kN);
    EXPECT_EQ((kN + 1) * (kM + 2), kN * kM + kN * 2 + kM + 2);
    EXPECT_EQ(kN - kN, Dim(0));
    EXPECT_EQ(kN + kN, kN * 2);
    EXPECT_EQ(kN * 0, Dim(0));
    EXPECT_EQ(max(kN, kM), max(kM, kN));
    EXPECT_EQ(max(kN, kN), kN);
    EXPECT_EQ(Dim::make(DimOp::kEqual, kN, kN), Dim(1));
    EXPECT_EQ(Dim::make(DimOp::kLess, kN, kN), Dim(0));
}

TEST(Dim, DifferentThingsAreNotEqual)
{
    EXPECT_FALSE(kN == kM);
    EXPECT_FALSE(kN + 1 == kN);
    EXPECT_FALSE(kN * 2 == kN * kN);
    EXPECT_FALSE(floorDiv(kN, 2) == ceilDiv(kN, 2));
    EXPECT_FALSE(floorDiv(kN, kM) == floorDiv(kM, kN));
    EXPECT_FALSE(kN == Dim(3));
}

TEST(Dim, ExactDivisionsVanish)
{
    EXPECT_EQ(floorDiv(kN * 6, 3), kN * 2);
    EXPECT_EQ(floorDiv(kN * kM * 4, kM * 2), kN * 2);
    EXPECT_EQ(ceilDiv(kN * kM + kN, kN), kM + 1);
    EXPECT_EQ(floorDiv(kN, 1), kN);
    EXPECT_FALSE(floorDiv(kN * 3, 2).isConst());
    Dim const rows = kN + kM;
    EXPECT_EQ(floorDiv(kN * rows * 64, rows * 16), kN * 4);
    EXPECT_EQ(ceilDiv(rows * rows - 1, rows + 1), rows - 1);
    EXPECT_EQ(floorDiv(kN * kN * kN - kM * kM * kM, kN - kM), kN * kN + kN * kM + kM * kM);
    EXPECT_EQ(floorDiv(max(kN, kM) * rows - rows, rows), max(kN, kM) - 1);
    for (Dim const& d : {floorDiv(rows * rows + 1, rows), floorDiv(rows * 3, rows * 2), floorDiv(rows * kN, rows + 1)})
        EXPECT_EQ(d.str().find("floordiv"), 0u) << d.str() << ": there is a rest";
}

TEST(Dim, EvaluatesAsIntegersDo)
{
    Bindings const b{{"N", 7}, {"M", -3}};
    EXPECT_EQ(*(kN * kM + 5).eval(b), -16);
    EXPECT_EQ(*floorDiv(kM, 2).eval(b), -2);
    EXPECT_EQ(*ceilDiv(kM, 2).eval(b), -1);
    EXPECT_EQ(*max(kN, kM * -3).eval(b), 9);
    EXPECT_EQ(*Dim::make(DimOp::kLess, kM, kN).eval(b), 1);
    EXPECT_FALSE(Dim::symbol("K").eval(b).ok());
    EXPECT_FALSE(floorDiv(kN, kM + 3).eval(b).ok()) << "division by zero";
    EXPECT_FALSE(floorDiv(Dim(1), Dim(0)).eval(b).ok());
}

TEST(Dim, ArithmeticSaturates)
{
    EXPECT_EQ(Dim(INT64_MAX) + Dim(1), Dim(INT64_MAX));
    EXPECT_EQ(Dim(INT64_MAX) * Dim(2), Dim(INT64_MAX));
    EXPECT_EQ(Dim(INT64_MIN) * Dim(2), Dim(INT64_MIN));
    EXPECT_EQ(floorDivInt(INT64_MIN, -1), INT64_MAX);
    EXPECT_EQ(*(kN * kN).eval({{"N", INT64_MAX}}), INT64_MAX);
}

TEST(Dim, RangesHoldForEveryBinding)
{
    SymbolTable const symbols{{"N", {{1, 8}, false}}, {"M", {{0, 3}, true}}};
    EXPECT_EQ((kN * 2 + 1).range(symbols), (Range{3, 17}));
    EXPECT_EQ((kN - kM).range(symbols), (Range{-2, 8}));
    EXPECT_EQ(ceilDiv(kN, 2).range(symbols), (Range{1, 4}));
    EXPECT_EQ(floorDiv(kN, kM).range(symbols), (Range{INT64_MIN, INT64_MAX}));
    EXPECT_EQ(Dim::symbol("K").range(symbols), Range{});
    // Random expressions: their value lies within their range.
    uint64_t const seed = 20240517;
    std::mt19937_64 random(seed);
    for (int round = 0; round < 500; ++round) {
        Dim d = random() % 2 ? kN : kM;
        for (int step = 0; step < 4; ++step) {
            Dim const other = random() % 3 == 0 ? Dim(int64_t(random() % 5) + 1) : random() % 2 ? kN : kM;
            switch (random() % 9) {
            case 0:
                d = d + other;
                break;
            case 1:
                d = d - other;
                break;
            case 2:
                d = d * other;
                break;
            case 3:
                d = max(d, other);
                break;
            case 4:
                d = min(d, other);
                break;
            case 5:
                d = floorDiv(d, other);
                break;
            case 6:
                d = Dim::make(DimOp::kEqual, d, other);
                break;
            case 7:
                d = Dim::make(DimOp::kLess, d, other);
                break;
            default:
                d = ceilDiv(d, other);
                break;
            }
        }
        EXPECT_EQ(parsed(d.str()), d) << "seed " << seed << ", round " << round;
        Range const range = d.range(symbols);
        Dim const less = d.within(symbols);
        EXPECT_EQ(less.within(symbols), less) << d.str();
        for (int64_t n = 1; n <= 8; ++n)
            for (int64_t m = 0; m <= 3; ++m)
                if (auto v = d.eval({{"N", n}, {"M", m}}); v.ok()) {
                    EXPECT_GE(*v, range.lo) << d.str() << ", seed " << seed << ", round " << round;
                    EXPECT_LE(*v, range.hi) << d.str() << ", seed " << seed << ", round " << round;
                    EXPECT_EQ(less.eval({{"N", n}, {"M", m}}).value(), *v)
                        << d.str() << " became " << less.str() << ", seed " << seed << ", round " << round;
                }
    }
}

TEST(Dim, RangesShortenExpressions)
{
    SymbolTable const symbols{{"N", {{0, 23}, false}}, {"M", {{1, 9}, false}}};
    Dim const total = kN + kM;
    EXPECT_EQ(max(kN, 0).within(symbols), kN);
    EXPECT_EQ(min(total, 64).within(symbols), total);
    EXPECT_EQ(min(total, 31).within(symbols), min(total, 31)) << "it may be 32";
    EXPECT_EQ((min(max(total, 0), 64) - kN).within(symbols), kM);
    EXPECT_EQ(max(Dim(64), total).within(symbols), Dim(64));
    EXPECT_EQ(max(total, kM).within(symbols), total) << "that N is not below 0 says it";
    EXPECT_EQ(Dim::make(DimOp::kLess, kN - total, 0).within(symbols), Dim(1));
    EXPECT_EQ(Dim::make(DimOp::kEqual, total, 0).within(symbols), Dim(0));
    EXPECT_EQ((floorDiv(max(kM, 0), 2) * kN).within(symbols), floorDiv(kM, 2) * kN);
    // Of what nobody has said a range there is no number below 0.
    EXPECT_EQ(max(Dim::symbol("K"), 0).within({}), Dim::symbol("K"));
    EXPECT_EQ(max(Dim::symbol("K"), 1).within({}), max(Dim::symbol("K"), 1));
    // What leaves int64 says nothing.
    Dim const beyond = kN * INT64_MIN + kN * kN * INT64_MAX;
    EXPECT_FALSE(max(beyond, 0).within({}).isConst());
}

TEST(Dim, TextReadsBack)
{
    for (Dim const& d : {Dim(0), Dim(-5), kN, kN * 2 + 1, kN * kM - 7, floorDiv(kN + 1, 2) * kM, max(kN, 4),
                         Dim::make(DimOp::kEqual, kN, 3), Dim::symbol("$12.0"), min(ceilDiv(kN, kM), kN - kM)})
        EXPECT_EQ(parsed(d.str()), d) << d.str();
    EXPECT_EQ(parsed(" ( N + 2 * M ) "), kN + kM * 2);
}

TEST(Dim, BadTextIsAnError)
{
    for (char const* text : {"", "(", "N +", "N M", "2 *", "floordiv(N)", "sqrt(N, 2)", "-", "99999999999999999999",
                             "N)", "max(N, 2", "*"})
        EXPECT_FALSE(Dim::parse(text).ok()) << text;
    EXPECT_FALSE(Dim::parse(std::string(1000, '(')).ok());
    EXPECT_FALSE(Dim::parse(std::string(100000, 'N')).ok());
}

TEST(Dim, UntrustedProductsStayBounded)
{
    Dim d = 1;
    for (int i = 0; i < 64; ++i)
        d = d * (Dim::symbol("a" + std::to_string(i)) + Dim::symbol("b" + std::to_string(i)));
    EXPECT_LT(d.str().size(), 100000u);
}

// Each max() of an expression with itself doubles the text, each product of names lengthens it.
TEST(Dim, EveryExpressionCanBeReadBack)
{
    Dim doubled = kN, product = kN, sum = kN, deep = kN;
    for (int i = 0; i < 500; ++i) {
        std::string const name = "s" + std::to_string(i);
        doubled = max(doubled, doubled * 2 + 1);
        product = product * Dim::symbol(name);
        sum = sum + Dim::symbol(name);
        deep = floorDiv(deep + 1, 2);
        for (Dim const& d : {doubled, product, sum, deep}) {
            ASSERT_LE(d.str().size(), 4096u);
            auto const again = Dim::parse(d.str());
            ASSERT_TRUE(again.ok()) << again.error().message;
            ASSERT_EQ(*again, d);
        }
    }
}

// Expressions beyond the length of their text are equal where they are the same, and nowhere else.
TEST(Dim, WhatIsTooLongIsNotEqual)
{
    auto sum = [](int count) {
        Dim d;
        for (int i = 0; i < count; ++i)
            d = d + Dim::symbol("s" + std::to_string(i)) * (i + 1);
        return d;
    };
    Dim const a = sum(400), b = sum(401);
    EXPECT_NE(a.str().find("$too_complex"), std::string::npos) << "or this test shows nothing";
    EXPECT_EQ(a, sum(400));
    EXPECT_FALSE(a == b);
    EXPECT_FALSE(a - b == Dim(0));
    EXPECT_FALSE(Dim::make(DimOp::kEqual, a, b).isConst());
    Dim const x = sum(60), y = sum(59) + 1;
    EXPECT_EQ(x * y, y * x);
    EXPECT_FALSE(x * y == x * x);
    EXPECT_NE((x * y).str().find("$too_complex"), std::string::npos);
}

TEST(Dim, EndsOfTheIntegers)
{
    for (int64_t v : {INT64_MIN, INT64_MIN + 1, INT64_MAX}) {
        EXPECT_EQ(Dim::parse(std::to_string(v)).value(), Dim(v));
        Dim const d = kN * Dim(v) + Dim(v);
        EXPECT_EQ(Dim::parse(d.str()).value(), d);
        (void)floorDiv(d, Dim(-1)).str(); // INT64_MIN / -1 would trap
        (void)ceilDiv(Dim(v), Dim(-1)).str();
        (void)floorDiv(d, kN * Dim(-1)).str();
    }
}

TEST(Shape, VolumeAndText)
{
    EXPECT_EQ(volume({}), Dim(1));
    EXPECT_EQ(volume({2, kN, 3}), kN * 6);
    EXPECT_EQ(str(Shape{2, kN, kN + 1}), "[2,N,(N + 1)]");
    EXPECT_TRUE(isStatic({1, 2}));
    EXPECT_FALSE(isStatic({1, kN}));
}

} // namespace tw::ir
