// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/voxels/op.h"

namespace tw::ops::voxels {

namespace {

Attrs attrs(int64_t points, int64_t voxels, int64_t features, std::vector<double> size)
{
    Attrs a;
    a.maxPoints = points;
    a.maxVoxels = voxels;
    a.features = features;
    a.least = {-3, -3, -2};
    a.most = {3, 3, 2};
    a.size = std::move(size);
    return a;
}

} // namespace

void cases(CaseList& list)
{
    auto const counts = [](std::vector<double> const& values) {
        return input(DataType::kInt32, {int64_t(values.size())}, values);
    };
    Attrs byHand = attrs(2, 2, 7, {3, 3, 4});
    // Two points in the first cell, one in another, one outside, and one in a third cell, for which there is no voxel.
    list.add("by_hand", byHand, {f32({1, 5, 3}, {-2, -1, 0, 1, 2, 0, -1, -2, 1, 5, 0, 0, 2, -2, 0}), counts({5})},
             {{-2, -1, 0, -0.5, 0.5, -0.5, -0.5, -1, -2, 1, 0.5, -0.5, 0.5, 0.5,
               1,  2,  0, 0,    0,   0,    -0.5, 0,  0,  0, 0,   0,    0,   0},
              {0, 0, 0, 0, 0, 0, 1, 1},
              {2}});
    list.add("pillars", attrs(5, 40, 10, {0.5, 0.5, 4}), {f32({3, 200, 4}), counts({200, 57, 0})});
    list.add("few_voxels", attrs(3, 4, 9, {1, 1, 4}), {f32({2, 300, 4}), counts({300, 299})});
    list.add("one_point_each", attrs(1, 100, 3, {0.25, 0.25, 1}), {f32({1, 90, 5}), counts({90})});
    list.add("more_features_than_there_are", attrs(4, 20, 14, {1, 1, 1}), {f32({1, 90, 4}), counts({90})});
    list.add("counts_out_of_range", attrs(4, 20, 10, {1, 1, 1}), {f32({2, 30, 4}), counts({31, -1})});
    list.add("one_cell", attrs(300, 3, 10, {6, 6, 4}), {f32({1, 700, 4}), counts({700})});
    list.add("no_points", attrs(4, 20, 10, {1, 1, 1}), {f32({2, 0, 4}), counts({3, 0})});
    list.add("no_images", attrs(4, 20, 10, {1, 1, 1}), {f32({0, 5, 4}), input(DataType::kInt32, {0})});
    list.add("not_finite", attrs(2, 4, 3, {3, 3, 4}),
             {f32({1, 4, 3}, {NAN, 0, 0, INFINITY, 0, 0, 1, 1, 1, 0, 0, -INFINITY}), counts({4})});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Extents const x{d.from(1, 4), d.size(600), d.from(3, 6)};
    double const size = double(d.from(1, 12)) / 4;
    Attrs const a = attrs(d.from(1, 40), d.size(60), d.from(1, 14), {size, size, 4});
    list.add(name, a, {f32(x), input(DataType::kInt32, {x[0]})});
}

} // namespace tw::ops::voxels
