// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <limits>

#include "cases/draw.h"
#include "ops/reduce/op.h"

namespace tw::ops::reduce {

namespace {

// What stands in front of sums and behind them.
void fusedCases(CaseList& list)
{
    double const inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    struct Form
    {
        char const* name;
        Kind kind;
        Before before;
        After after;
    };
    constexpr Form kForms[] = {{"l1_norm", Kind::kSum, Before::kAbs, After::kNothing},
                               {"sum_of_squares", Kind::kSum, Before::kSquare, After::kNothing},
                               {"l2_norm", Kind::kSum, Before::kSquare, After::kSqrt},
                               {"log_sum", Kind::kSum, Before::kNothing, After::kLog},
                               {"log_sum_exp", Kind::kSum, Before::kExp, After::kLog},
                               {"rms", Kind::kAvg, Before::kSquare, After::kSqrt},
                               {"mean_abs", Kind::kAvg, Before::kAbs, After::kNothing},
                               {"max_abs", Kind::kMax, Before::kAbs, After::kNothing},
                               {"min_abs", Kind::kMin, Before::kAbs, After::kNothing},
                               {"prod_square", Kind::kProd, Before::kSquare, After::kSqrt}};
    auto add = [&](Form const& f, std::string const& name, int64_t axes, bool keepDims, CaseInput x,
                   std::vector<std::vector<double>> expected = {}) {
        Attrs a;
        a.kind = f.kind;
        a.axes = axes;
        a.keepDims = keepDims;
        a.before = f.before;
        a.after = f.after;
        list.add(std::string(f.name) + "_" + name, a, {std::move(x)}, std::move(expected));
    };
    double const ln2 = 0.6931471805599453, ln10 = 2.302585092994046;
    add(kForms[0], "by_hand", 2, false, f32({2, 3}, {1, -2, 3, -4, 5, -6}), {{6, 15}});
    add(kForms[1], "by_hand", 2, false, f32({2, 3}, {1, -2, 3, -4, 5, -6}), {{14, 77}});
    add(kForms[2], "by_hand", 2, true, f32({2, 2}, {3, -4, 5, -12}), {{5, 13}});
    add(kForms[2], "beyond_f16", 1, false, input(DataType::kHalf, {3, 2}, {300, -400, 400, 300, 0, 0}), {{500, 500}});
    add(kForms[3], "by_hand", 2, false, f32({3, 2}, {1, 1, 4, 6, 0, 0}), {{ln2, ln10, -inf}});
    add(kForms[4], "by_hand", 2, false, f32({2, 2}, {0, 0, 0, ln2 * 3}), {{ln2, 2 * ln2 + 0.8109302162163288}});
    add(kForms[4], "large", 2, false, f32({2, 2}, {1000, 1000, -1000, -1000}), {{1000 + ln2, -1000 + ln2}});
    std::vector<double> const special{-inf, 0, -inf, -inf, inf, 0, inf, -inf, nan, inf, 1, nan};
    std::vector<double> const specialSums{0, -inf, inf, inf, nan, nan};
    add(kForms[4], "infinities", 2, false, f32({6, 2}, special), {specialSums});
    add(kForms[4], "f16_infinities", 2, false, input(DataType::kHalf, {6, 2}, special), {specialSums});
    std::vector<double> turned(12);
    for (size_t i = 0; i < 12; ++i)
        turned[i % 2 * 6 + i / 2] = special[i];
    add(kForms[4], "infinities_of_columns", 1, false, f32({2, 6}, turned), {specialSums});
    std::vector<double> wide(75, -inf); // NaN among the numbers of a vector; none
    std::vector<double> wider = wide;
    wide[70] = nan;
    wide[3] = inf;
    wider[40] = 2;
    wide.insert(wide.end(), wider.begin(), wider.end());
    add(kForms[4], "infinities_of_rows", 2, false, f32({2, 75}, wide), {{nan, 2}});
    for (Form const& f : kForms) {
        for (DataType t : {DataType::kFloat, DataType::kHalf}) {
            std::string const n = nameOf(t);
            for (int64_t length : {7, 9, 64, 257})
                add(f, fmt::format("{}_rows_of_{}", n, length), 2, false, input(t, {3, length}));
            for (int64_t columns : {1, 23, 64, 255})
                add(f, fmt::format("{}_columns_{}", n, columns), 2, true, input(t, {2, 19, columns}));
            add(f, n + "_pixels", 12, true, input(t, {2, 20, 9, 7}));
            add(f, n + "_outer_and_inner", 5, true, input(t, {3, 4, 5}));
            add(f, n + "_first_and_last", 9, false, input(t, {3, 2, 5, 67}));
            add(f, n + "_alternating", 0b10101010, false, input(t, {2, 3, 2, 3, 2, 3, 2, 3}));
            add(f, n + "_no_axis", 0, true, input(t, {2, 3}));
        }
        add(f, "empty", 2, false, f32({2, 0}));
        add(f, "scalar", 0, false, f32({}, {1}));
    }
    for (Form const& f : {kForms[0], kForms[2], kForms[4]})
        for (DataType t : {DataType::kFloat, DataType::kHalf}) {
            std::string const n = nameOf(t);
            add(f, n + "_tall", 1, false, input(t, {3000, 136}));
            add(f, n + "_many_rows_of_3", 4, true, input(t, {20, 101, 3}));
            add(f, n + "_tall_3", 1, false, input(t, {20011, 3}));
            add(f, n + "_rows_of_49", 2, false, input(t, {1101, 49}));
            add(f, n + "_rows_of_40007", 2, false, input(t, {3, 40007}));
            add(f, n + "_rows_of_331", 2, false, input(t, {65, 331}));
        }
    add(kForms[4], "f32_rows_of_400009", 2, false, f32({3, 400009}));
    add(kForms[2], "all_of_many", 3, false, f32({67, 9001}));
}

} // namespace

void cases(CaseList& list)
{
    fusedCases(list);
    double const inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    auto reduce = [&](std::string name, Kind kind, int64_t axes, bool keepDims, CaseInput x,
                      std::vector<std::vector<double>> expected = {}) {
        Attrs a;
        a.kind = kind;
        a.axes = axes;
        a.keepDims = keepDims;
        list.add(std::move(name), a, {std::move(x)}, std::move(expected));
    };
    std::pair<char const*, Kind> const kinds[] = {
        {"sum", Kind::kSum}, {"prod", Kind::kProd}, {"max", Kind::kMax}, {"min", Kind::kMin}, {"avg", Kind::kAvg}};
    std::vector<double> const six{1, 2, 3, 4, 5, 6};
    std::vector<double> const rows[] = {{6, 15}, {6, 120}, {3, 6}, {1, 4}, {2, 5}};
    std::vector<double> const columns[] = {{5, 7, 9}, {4, 10, 18}, {4, 5, 6}, {1, 2, 3}, {2.5, 3.5, 4.5}};
    // Average of i32 is cut toward zero, that of i8 rounded half to even.
    std::vector<double> const wholeColumns[] = {{5, 7, 9}, {4, 10, 18}, {4, 5, 6}, {1, 2, 3}, {2, 3, 4}};
    std::vector<double> const byteColumns[] = {{5, 7, 9}, {4, 10, 18}, {4, 5, 6}, {1, 2, 3}, {2, 4, 4}};
    double const emptyReal[] = {0, 1, -inf, inf, nan}, emptyWhole[] = {0, 1, INT32_MIN, INT32_MAX, 0},
                 emptyByte[] = {0, 1, -128, 127, -128};
    for (auto [kindName, kind] : kinds) {
        std::string const k = kindName;
        auto const i = size_t(kind);
        reduce(k + "_rows_by_hand", kind, 2, true, f32({2, 3}, six), {rows[i]});
        reduce(k + "_columns_by_hand", kind, 1, false, f32({2, 3}, six), {columns[i]});
        reduce(k + "_columns_f16", kind, 1, false, input(DataType::kHalf, {2, 3}, six), {columns[i]});
        reduce(k + "_columns_i32", kind, 1, false, input(DataType::kInt32, {2, 3}, six), {wholeColumns[i]});
        reduce(k + "_columns_i8", kind, 1, false, input(DataType::kInt8, {2, 3}, six), {byteColumns[i]});
        reduce(k + "_empty_f32", kind, 2, false, f32({2, 0}), {{emptyReal[i], emptyReal[i]}});
        reduce(k + "_empty_f16", kind, 1, true, input(DataType::kHalf, {0, 2}), {{emptyReal[i], emptyReal[i]}});
        reduce(k + "_empty_i32", kind, 2, false, input(DataType::kInt32, {2, 0}), {{emptyWhole[i], emptyWhole[i]}});
        reduce(k + "_empty_i8", kind, 5, false, input(DataType::kInt8, {0, 2, 3}), {{emptyByte[i], emptyByte[i]}});
        reduce(k + "_to_empty", kind, 2, false, f32({0, 3}));
        reduce(k + "_scalar", kind, 0, false, f32({}, {3}), {{3}});
        reduce(k + "_no_axis", kind, 0, true, f32({2, 3}, six), {six});
        reduce(k + "_nan", kind, 1, false, f32({3}, {1, nan, 2}), {{nan}});
        reduce(k + "_all", kind, 7, false, f32({5, 7, 3}));
        reduce(k + "_hw", kind, 12, true, f32({2, 3, 9, 7}));
        for (int64_t c : {16, 17, 70, 130})
            for (bool keep : {false, true})
                reduce(fmt::format("{}_hw_c{}{}", k, c, keep ? "_kept" : ""), kind, 12, keep, f32({2, c, 9, 7}));
        reduce(k + "_channels", kind, 2, false, f32({2, 5, 3, 4}));
        reduce(k + "_outer_and_inner", kind, 5, true, f32({3, 4, 5}));
        reduce(k + "_alternating", kind, 0b10101010, false, f32({2, 3, 2, 3, 2, 3, 2, 3}));
        reduce(k + "_ones", kind, 6, false, f32({3, 1, 4, 1}));
        for (int64_t n : {7, 8, 9, 33, 64, 257})
            reduce(fmt::format("{}_last_{}", k, n), kind, 2, false, f32({3, n}));
        for (int64_t n : {255, 256, 257})
            reduce(fmt::format("{}_columns_{}", k, n), kind, 2, false, f32({2, 3, n}));
        for (DataType t : {DataType::kHalf, DataType::kInt8, DataType::kInt32})
            for (int64_t n : {64, 75})
                reduce(fmt::format("{}_columns_{}_{}", k, nameOf(t), n), kind, 2, false, input(t, {2, 11, n}));
        reduce(k + "_f16", kind, 2, false, input(DataType::kHalf, {3, 40}));
        reduce(k + "_f16_pixels", kind, 12, true, input(DataType::kHalf, {3, 20, 9, 7}));
        reduce(k + "_f16_pixels_no_batch", kind, 6, false, input(DataType::kHalf, {72, 5, 8}));
        reduce(k + "_f16_many_pixels", kind, 12, false, input(DataType::kHalf, {2, 72, 25, 24}));
        for (int64_t n : {1, 23, 64, 1000})
            for (int64_t r : {3, 16, 19})
                reduce(fmt::format("{}_middle_{}x{}", k, r, n), kind, 2, false, f32({3, r, n}));
        reduce(k + "_two_outer", kind, 5, false, f32({5, 3, 9, 70}));
        reduce(k + "_first_and_last", kind, 9, false, f32({3, 2, 5, 67}));
        reduce(k + "_nan_columns", kind, 1, false, f32({3, 2}, {1, nan, nan, 2, 3, 4}), {{nan, nan}});
        std::vector<double> wide(2 * 150, 0.5); // NaN in a vector, in the part that is read twice, in none
        wide[40] = wide[149] = wide[170] = nan;
        if (kind != Kind::kProd)
            reduce(k + "_nan_rows", kind, 2, false, f32({4, 75}, wide),
                   {{nan, nan, nan, i == size_t(Kind::kSum) ? 37.5 : 0.5}});
        reduce(k + "_nan_groups", kind, 1, false, f32({8, 32}, std::vector<double>(256, nan)),
               {std::vector<double>(32, nan)});
        reduce(k + "_long", kind, 2, false, f32({2, 2052}));
        reduce(k + "_i8", kind, 2, false, input(DataType::kInt8, {3, 19}));
        reduce(k + "_i32", kind, 3, false, input(DataType::kInt32, {3, 5, 4}));
    }
    // Rows that blocks and clusters of them share; few columns; many short ones.
    for (auto [kindName, kind] : {kinds[0], kinds[2], kinds[4]})
        for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8, DataType::kInt32}) {
            std::string const k = std::string(kindName) + "_" + nameOf(t);
            // The largest of many small whole numbers, and their mean, are nearly the same in every row.
            auto x = [&, isSum = kind == Kind::kSum](Extents const& e) { return isSum ? input(t, e) : uneven(t, e); };
            reduce(k + "_tall", kind, 1, false, x({3000, 136}));
            reduce(k + "_tall_3", kind, 1, false, x({20011, 3}));
            reduce(k + "_tall_8", kind, 1, false, x({9001, 8}));
            reduce(k + "_tall_middle", kind, 2, false, x({3, 700, 129}));
            for (int64_t n : {3, 49, 64, 196}) // rows that begin at any element
                reduce(fmt::format("{}_rows_of_{}", k, n), kind, 2, false, x({1101, n}));
            reduce(k + "_all_of_many", kind, 3, false, x({67, 1009}));
            reduce(k + "_rows_of_40007", kind, 2, false, x({3, 40007}));
            reduce(k + "_rows_of_331", kind, 2, false, x({65, 331}));
            reduce(k + "_rows_of_2051", kind, 2, false, x({17, 2051}));
            reduce(k + "_short", kind, 2, false, x({301, 5, 24}));
            for (int64_t length : {2, 3, 8, 9})
                reduce(fmt::format("{}_many_rows_of_{}", k, length), kind, 2, false, x({1003, length}));
        }
    // Rows of which each has more blocks than a warp has threads.
    reduce("sum_f32_rows_of_400009", Kind::kSum, 2, false, input(DataType::kFloat, {3, 400009}));
    reduce("max_f16_rows_of_600011", Kind::kMax, 2, false, input(DataType::kHalf, {2, 600011}));
    reduce("max_infinities", Kind::kMax, 2, false, f32({2, 2}, {-inf, -inf, inf, 0}), {{-inf, inf}});
    reduce("sum_i8_saturates", Kind::kSum, 2, false, input(DataType::kInt8, {2, 3}, {100, 100, 1, -100, -100, 1}),
           {{127, -128}});
    reduce("sum_i8_comes_back", Kind::kSum, 1, false, input(DataType::kInt8, {3}, {100, 100, -100}), {{100}});
    reduce("prod_i8_saturates", Kind::kProd, 2, false,
           input(DataType::kInt8, {3, 12}, {127,  127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, //
                                            -127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 127, //
                                            127,  127, 127, 127, 127, 127, 127, 127, 127, 127, 127, 0}),
           {{127, -128, 0}});
    reduce("sum_i32_wraps", Kind::kSum, 1, false, input(DataType::kInt32, {2}, {INT32_MAX, 1}), {{INT32_MIN}});
    reduce("prod_i32_wraps", Kind::kProd, 1, false, input(DataType::kInt32, {2}, {65536, 65537}), {{65536}});
    reduce("avg_i32_wide_sum", Kind::kAvg, 1, false, input(DataType::kInt32, {2}, {INT32_MAX, INT32_MAX}),
           {{INT32_MAX}});
    reduce("avg_i32_negative", Kind::kAvg, 1, false, input(DataType::kInt32, {2}, {-2, -1}), {{-1}});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    Extents const x = d.extents(int(d.from(1, 4)), 24);
    a.kind = Kind(d.from(0, 4));
    a.axes = d.from(1, (1 << x.rank) - 1);
    a.keepDims = d.chance(50);
    DataType const t = d.type();
    if (isFloating(t) && d.chance(50)) {
        a.before = Before(d.from(0, 3));
        a.after = After(d.from(0, 2));
        if (a.isLogSumExp()) {
            a.kind = Kind::kSum;
            a.after = After::kLog;
        }
    }
    list.add(name, a, {input(t, x)});
}

} // namespace tw::ops::reduce
