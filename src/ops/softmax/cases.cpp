// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <limits>
#include <utility>

#include "cases/draw.h"
#include "ops/softmax/op.h"

namespace tw::ops::softmax {

void cases(CaseList& list)
{
    double const inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    bool log = false;
    auto softmax = [&](std::string name, int64_t axis, CaseInput x, std::vector<std::vector<double>> expected = {}) {
        Attrs a;
        a.axis = axis;
        a.log = log;
        list.add((log ? "log_" : "") + std::move(name), a, {std::move(x)}, std::move(expected));
    };
    double const ln2 = 0.6931471805599453;
    softmax("by_hand", 1, f32({1, 3}, {0, ln2, 0}), {{0.25, 0.5, 0.25}});
    softmax("first_axis_by_hand", 0, f32({2, 2}, {0, ln2, 0, 0}), {{0.5, 2.0 / 3, 0.5, 1.0 / 3}});
    softmax("large_values", 0, f32({2}, {1e30, 1e30}), {{0.5, 0.5}}); // exp of them alone is infinite
    softmax("very_different", 0, f32({2}, {-1e30, 1e30}), {{0, 1}});
    softmax("minus_infinity", 1, f32({2, 2}, {-inf, 0, -inf, -inf}), {{0, 1, nan, nan}});
    softmax("nan", 1, f32({2, 3}, {0, nan, 1, inf, 0, 1}), {{nan, nan, nan, nan, nan, nan}});
    softmax("nan_columns", 0, f32({3, 2}, {0, -inf, nan, 0, 1, -inf}), {{nan, 0, nan, 1, nan, 0}});
    softmax("one_element", 0, f32({1}, {5}), {{1}});
    for (int64_t n : {2, 7, 8, 9, 15, 16, 17, 64, 1000, 4100, 8192, 8193})
        softmax(fmt::format("row_{}", n), 1, f32({3, n}));
    for (int64_t n : {5, 100, 300}) // rows go in groups, the last one may have fewer
        softmax(fmt::format("rows_of_{}", n), 1, f32({35, n}));
    for (int64_t inner : {2, 255, 256, 257})
        softmax(fmt::format("columns_{}", inner), 1, f32({2, 5, inner}));
    for (auto const& [n, inner] :
         {std::pair<int64_t, int64_t>{3137, 8}, {129, 1}, {31, 8}, {33, 8}, {200, 3}, {7, 100}, {2, 128}, {5, 129}})
        softmax(fmt::format("narrow_columns_{}_{}", n, inner), 1, f32({3, n, inner, 1}));
    softmax("axis_0_of_4", 0, f32({3, 2, 4, 5}));
    softmax("channels", 1, f32({2, 10, 3, 3}));
    softmax("rank_8", 7, f32({1, 2, 1, 2, 1, 2, 1, 3}));
    softmax("half_rows", 1, input(DataType::kHalf, {3, 33}));
    for (int64_t n : {128, 1024, 4104})
        softmax(fmt::format("half_row_{}", n), 1, input(DataType::kHalf, {3, n}));
    for (int64_t n : {65, 197, 1001, 4101, 16383}) { // rows that begin at any element
        softmax(fmt::format("odd_row_{}", n), 1, f32({19, n}));
        softmax(fmt::format("half_odd_row_{}", n), 1, input(DataType::kHalf, {19, n}));
    }
    softmax("half_many_rows", 1, input(DataType::kHalf, {77, 128}));
    softmax("half_columns_64", 1, input(DataType::kHalf, {2, 9, 64}));
    softmax("many_channels", 1, f32({2, 64, 36}));
    for (int64_t n : {3, 21, 150, 600, 700}) // columns that one thread has, or several share
        for (int64_t inner : {63, 136}) {
            std::string const name = fmt::format("columns_of_{}_{}", n, inner);
            softmax(name, 1, f32({2, n, inner}));
            softmax("half_" + name, 1, input(DataType::kHalf, {2, n, inner}));
        }
    // Of a long column all but one, all, all but a NaN are -inf; +inf.
    std::vector<double> few(size_t(700 * 8), -inf);
    few[13 * 8] = 1;
    few[699 * 8 + 2] = few[650 * 8 + 3] = nan;
    few[5 * 8 + 3] = 2;
    few[0 * 8 + 4] = inf;
    for (size_t i = 0; i < 700; ++i)
        few[i * 8 + 5] = double(i % 7);
    softmax("half_columns_of_few", 1, input(DataType::kHalf, {1, 700, 8}, few));
    softmax("half_columns", 1, input(DataType::kHalf, {2, 9, 4}));
    softmax("empty_axis", 1, f32({2, 0, 3}));
    softmax("empty_batch", 1, f32({0, 5}));

    log = true;
    softmax("by_hand", 1, f32({2, 2}, {0, 0, 5, 5 + 2 * ln2}),
            {{-ln2, -ln2, -1.6094379124341003, -0.2231435513142097}});
    softmax("very_different", 0, f32({2}, {-1e30, 1e30}), {{-2e30, 0}});
    softmax("far_below", 1, f32({2, 3}, {0, -200, -1000, 5000, 5000, 4000}),
            {{0, -200, -1000, -ln2, -ln2, -1000 - ln2}});
    softmax("minus_infinity", 1, f32({2, 2}, {-inf, 0, -inf, -inf}), {{-inf, 0, nan, nan}});
    softmax("nan", 1, f32({2, 3}, {0, nan, 1, inf, 0, 1}), {{nan, nan, nan, nan, nan, nan}});
    softmax("nan_columns", 0, f32({3, 2}, {0, -inf, nan, 0, 1, -inf}), {{nan, -inf, nan, 0, nan, -inf}});
    softmax("one_element", 0, f32({1}, {5}), {{0}});
    for (DataType t : {DataType::kFloat, DataType::kHalf}) {
        std::string const of = nameOf(t);
        for (int64_t n : {2, 7, 8, 9, 17, 64, 65, 1000, 1001, 4100, 8193, 16383})
            softmax(fmt::format("{}_row_{}", of, n), 1, input(t, {5, n}));
        for (int64_t inner : {2, 63, 64, 136, 255, 257})
            for (int64_t n : {5, 21, 150, 700})
                softmax(fmt::format("{}_columns_of_{}_{}", of, n, inner), 1, input(t, {2, n, inner}));
        softmax(of + "_axis_0_of_4", 0, input(t, {3, 2, 4, 5}));
        softmax(of + "_many_rows", 1, input(t, {77, 128}));
    }
    softmax("half_columns_of_few", 1, input(DataType::kHalf, {1, 700, 8}, few));
    softmax("empty_axis", 1, f32({2, 0, 3}));
    softmax("empty_batch", 1, f32({0, 5}));
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    Extents const x = d.extents(int(d.from(1, 4)), 24);
    a.axis = d.chance(50) ? x.rank - 1 : d.from(0, x.rank - 1);
    a.log = d.chance(30);
    list.add(name, a, {input(d.type(), x)});
}

} // namespace tw::ops::softmax
