// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/cache_update/op.h"

namespace tw::ops::cache_update {

namespace {

void update(CaseList& list, std::string const& name, int64_t axis, bool circular, std::vector<CaseInput> in,
            std::vector<std::vector<double>> expected = {})
{
    Attrs a;
    a.axis = axis;
    a.circular = circular;
    list.add(name, a, std::move(in), std::move(expected));
}

CaseInput indices(std::vector<double> const& v)
{
    return input(DataType::kInt32, {int64_t(v.size())}, v);
}

} // namespace

void cases(CaseList& list)
{
    CaseInput const x = f32({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}),
                    u = f32({2, 2, 2}, {-1, -2, -3, -4, -5, -6, -7, -8});
    update(list, "by_hand", 1, false, {x, u, indices({0, 1})}, {{-1, -2, -3, -4, 5, 6, 7, 8, -5, -6, -7, -8}});
    update(list, "first_rows_by_hand", 1, false, {x, u}, {{-1, -2, -3, -4, 5, 6, -5, -6, -7, -8, 11, 12}});
    update(list, "circular_by_hand", 1, true, {x, u, indices({2, 4})}, {{-3, -4, 3, 4, -1, -2, 7, 8, -5, -6, -7, -8}});
    update(list, "outside_by_hand", 1, false, {x, u, indices({2, -1})}, {{1, 2, 3, 4, -1, -2, -7, -8, 9, 10, 11, 12}});
    update(list, "far_outside_by_hand", 1, false, {x, u, indices({2147483647, -2147483648.0})},
           {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}});
    update(list, "whole", 1, false, {x, f32({2, 3, 2})});
    update(list, "nothing", 1, false, {x, f32({2, 0, 2}), indices({1, 1})});
    update(list, "no_images", 1, false, {f32({0, 3, 2}), f32({0, 1, 2}), indices({})});
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt32, DataType::kInt8, DataType::kBool}) {
        std::string const name = nameOf(t);
        update(list, "heads_" + name, 2, false,
               {input(t, {3, 4, 37, 64}), input(t, {3, 4, 1, 64}), indices({0, 36, 5})});
        update(list, "odd_" + name, 2, true, {input(t, {2, 3, 11, 5}), input(t, {2, 3, 7, 5}), indices({9, -3})});
        update(list, "last_axis_" + name, 3, false,
               {input(t, {2, 3, 4, 19}), input(t, {2, 3, 4, 6}), indices({13, 2})});
    }
    update(list, "long", 2, false, {f32({1, 8, 2048, 128}), f32({1, 8, 1, 128}), indices({2047})});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Extents x = d.extents(int(d.from(2, 5)), 12);
    int64_t const axis = d.from(1, x.rank - 1);
    Extents u = x;
    u[int(axis)] = d.from(0, x[int(axis)]);
    DataType const t = d.type();
    std::vector<CaseInput> in{input(t, x), input(t, u)};
    if (d.chance(80)) {
        std::vector<double> at;
        for (int64_t n = 0; n < x[0]; ++n)
            at.push_back(double(d.from(-2, x[int(axis)] + 1)));
        in.push_back(indices(at));
    }
    update(list, name, axis, d.chance(40) && x[int(axis)] > 0, std::move(in));
}

} // namespace tw::ops::cache_update
