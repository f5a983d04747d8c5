// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <limits>

#include "cases/draw.h"
#include "ops/topk/op.h"

namespace tw::ops::topk {

void cases(CaseList& list)
{
    double const inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    auto topk = [&](std::string name, Kind kind, int64_t k, int64_t axis, CaseInput x,
                    std::vector<std::vector<double>> expected = {}) {
        Attrs a;
        a.kind = kind;
        a.k = k;
        a.axis = axis;
        list.add(std::move(name), a, {std::move(x)}, std::move(expected));
    };
    CaseInput const ties = f32({6}, {3, 1, 3, 2, 1, 3});
    topk("max_ties_by_hand", Kind::kMax, 4, 0, ties, {{3, 3, 3, 2}, {0, 2, 5, 3}});
    topk("min_ties_by_hand", Kind::kMin, 4, 0, ties, {{1, 1, 2, 3}, {1, 4, 3, 0}});
    topk("zeros_are_equal", Kind::kMax, 2, 0, f32({3}, {-1, -0.0, 0}), {{0, 0}, {1, 2}});
    topk("zeros_are_equal_min", Kind::kMin, 3, 0, f32({4}, {1, 0, -0.0, 0}), {{0, 0, 0}, {1, 2, 3}});
    CaseInput const odd = f32({5}, {-inf, nan, inf, nan, 0});
    topk("max_nan", Kind::kMax, 4, 0, odd, {{nan, nan, inf, 0}, {1, 3, 2, 4}});
    topk("min_nan", Kind::kMin, 4, 0, odd, {{-inf, 0, inf, nan}, {0, 4, 2, 1}});
    topk("columns_by_hand", Kind::kMax, 1, 0, f32({2, 3}, {1, 5, 3, 4, 2, 6}), {{4, 5, 6}, {1, 0, 1}});
    for (auto [kindName, kind] : {std::pair{"max", Kind::kMax}, std::pair{"min", Kind::kMin}}) {
        std::string const name = kindName;
        topk(name + "_one", kind, 1, 1, f32({3, 17}));
        topk(name + "_all", kind, 9, 1, f32({3, 9}));
        topk(name + "_middle_axis", kind, 3, 1, f32({2, 7, 5}));
        topk(name + "_first_of_4", kind, 2, 0, f32({4, 2, 3, 2}));
        topk(name + "_rank_8", kind, 2, 4, f32({1, 2, 1, 1, 3, 2, 1, 2}));
        topk(name + "_most", kind, kMaxK, 0, f32({5000}));
        // Rows around the vectors' widths and the number of lanes; many candidates; ties and NaN everywhere.
        for (int64_t n : {15, 16, 17, 63, 65, 130, 257, 1000})
            topk(fmt::format("{}_5_of_{}", name, n), kind, 5, 1, f32({3, n}));
        topk(name + "_1_of_1000", kind, 1, 1, f32({2, 1000}));
        topk(name + "_100_of_20000", kind, 100, 0, f32({20000}));
        topk(name + "_shared", kind, 5, 2, f32({30, 7, 150}));
        topk(name + "_600_of_4000", kind, 600, 1, f32({2, 4000}));
        topk(name + "_all_equal", kind, 9, 0, f32({5000}, std::vector<double>(5000, 0.5)));
        for (int64_t period : {2, 3, 500}) { // NaN but every period-th element; then as many numbers as NaN
            std::vector<double> v(5000);
            for (size_t i = 0; i < v.size(); ++i)
                v[i] = int64_t(i) % period == 0 ? -inf : int64_t(i) % period == 1 ? double(i % 7) - 3 : nan;
            for (int64_t k : {5, 60, 200})
                topk(fmt::format("{}_nan_{}_{}", name, period, k), kind, k, 0, f32({5000}, v));
            topk(fmt::format("{}_nan_columns_{}", name, period), kind, 1, 0, f32({100, 50}, v));
        }
        topk(name + "_all_nan", kind, 3, 0, f32({1500}, std::vector<double>(1500, nan)));
        for (int64_t k : {1, 3})
            for (int64_t inner : {2, 15, 33, 100}) {
                std::string const columns = fmt::format("_columns_{}_{}", k, inner);
                topk(name + columns, kind, k, 1, f32({2, 40, inner}));
                topk(name + columns + "_i8", kind, k, 1, input(DataType::kInt8, {2, 40, inner}));
                topk(name + columns + "_f16", kind, k, 1, input(DataType::kHalf, {2, 40, inner}));
            }
        topk(name + "_long_columns", kind, 4, 0, f32({9000, 3}));
        topk(name + "_f16_1000", kind, 5, 1, input(DataType::kHalf, {3, 1000}));
        topk(name + "_i8_1000", kind, 5, 1, input(DataType::kInt8, {3, 1000}));
        topk(name + "_f16", kind, 5, 1, input(DataType::kHalf, {3, 30}));
        topk(name + "_i8_many_ties", kind, 7, 1, input(DataType::kInt8, {3, 30}));
        topk(name + "_empty_batch", kind, 2, 1, f32({0, 5}));
    }
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    Extents const x = d.extents(int(d.from(1, 4)), 40);
    a.kind = Kind(d.from(0, 1));
    a.axis = d.from(0, x.rank - 1);
    a.k = d.from(1, x[int(a.axis)]);
    list.add(name, a, {input(d.chance(20) ? DataType::kInt8 : d.type(), x)});
}

} // namespace tw::ops::topk
