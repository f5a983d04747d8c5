// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/deformable_attention/op.h"

namespace tw::ops::deformable_attention {

namespace {

CaseInput i32(Extents const& dims, std::vector<double> values)
{
    return input(DataType::kInt32, dims, std::move(values));
}

struct Sizes
{
    int64_t n, q, m, d, p;
    std::vector<double> shapes; // (h, w) of each image
};

void add(CaseList& list, std::string const& name, Sizes const& s, DataType type = DataType::kFloat, int64_t spare = 0)
{
    int64_t const levels = int64_t(s.shapes.size() / 2);
    std::vector<double> starts;
    int64_t rows = 0;
    for (int64_t l = 0; l < levels; ++l) {
        starts.push_back(double(rows));
        rows += int64_t(s.shapes[size_t(2 * l)] * s.shapes[size_t(2 * l + 1)]);
    }
    list.add(name, Attrs(),
             {input(type, {s.n, rows + spare, s.m, s.d}), i32({levels, 2}, s.shapes), i32({levels}, starts),
              input(type, {s.n, s.q, s.m, levels, s.p, 2}), input(type, {s.n, s.q, s.m, levels, s.p})});
}

} // namespace

void cases(CaseList& list)
{
    // The middle of four pixels; a quarter of the last one; outside.
    list.add("by_hand", Attrs(),
             {f32({1, 4, 1, 1}, {1, 2, 3, 4}), i32({1, 2}, {2, 2}), i32({1}, {0}),
              f32({1, 3, 1, 1, 1, 2}, {0.5, 0.5, 1, 1, 2, 0}), f32({1, 3, 1, 1, 1}, {2, 1, 1})},
             {{5, 1, 0}});
    list.add("rows_that_are_not_there", Attrs(),
             {f32({1, 4, 1, 1}, {1, 2, 3, 4}), i32({2, 2}, {2, 2, 1000000, 1000000}), i32({2}, {2, -5}),
              f32({1, 1, 1, 2, 1, 2}, {0.5, 0.5, 0.9, 0.9}), f32({1, 1, 1, 2, 1}, {1, 1})},
             {{1.75}});
    list.add("far_away", Attrs(),
             {f32({1, 4, 1, 1}, {1, 2, 3, 4}), i32({1, 2}, {2, 2}), i32({1}, {0}),
              f32({1, 1, 1, 1, 4, 2}, {1e30, 0, 0, -3e38, INFINITY, 0, NAN, 0}), f32({1, 1, 1, 1, 4}, {1, 1, 1, 1})},
             {{0}});
    add(list, "detr", {2, 50, 8, 32, 4, {20, 30, 10, 15, 5, 8, 3, 4}});
    add(list, "detr_half", {2, 50, 8, 32, 4, {20, 30, 10, 15, 5, 8, 3, 4}}, DataType::kHalf);
    add(list, "odd_sizes", {3, 7, 3, 5, 3, {3, 7, 1, 1}});
    add(list, "odd_sizes_half", {3, 7, 3, 5, 3, {3, 7, 1, 1}}, DataType::kHalf);
    add(list, "one_of_each", {1, 1, 1, 1, 1, {1, 1}});
    add(list, "wide", {1, 3, 2, 264, 2, {6, 6}});
    add(list, "spare_rows", {2, 5, 2, 8, 2, {4, 4}}, DataType::kFloat, 9);
    add(list, "no_queries", {2, 0, 2, 8, 2, {4, 4}});
    add(list, "no_images", {0, 3, 2, 8, 2, {4, 4}});
    list.add("no_levels", Attrs(),
             {f32({1, 4, 1, 2}), i32({0, 2}, {}), i32({0}, {}), f32({1, 1, 1, 0, 3, 2}), f32({1, 1, 1, 0, 3})},
             {{0, 0}});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Sizes s{d.from(1, 3), d.size(30), d.from(1, 8), d.size(70), d.from(1, 5), {}};
    for (int64_t l = d.from(1, 4); l > 0; --l)
        for (int k = 0; k < 2; ++k)
            s.shapes.push_back(double(d.from(1, 12)));
    add(list, name, s, d.type());
}

} // namespace tw::ops::deformable_attention
