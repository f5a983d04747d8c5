// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <algorithm>

#include "cases/draw.h"
#include "ops/layer_norm/cases_sets.h"
#include "ops/layer_norm/op.h"

namespace tw::ops::layer_norm {

void cases(CaseList& list)
{
    auto add = [&](std::string const& name, int64_t axis, double epsilon, DataType t, Extents const& e) {
        Attrs a;
        a.axis = axis;
        a.epsilon = epsilon;
        int64_t const n = e.volume(int(axis), e.rank);
        list.add(name, a, {input(t, e), constant(t, {n}), constant(t, {n})});
    };
    Attrs a;
    a.axis = 1;
    a.epsilon = 2; // (1 3 1 -1): mean 1, variance 2, so that the divisor is 2
    list.add("by_hand", a,
             {f32({2, 4}, {1, 3, 1, -1, 0, 0, 0, 0}), constant(DataType::kFloat, {4}, {1, 1, 2, 2}),
              constant(DataType::kFloat, {4}, {0, 1, 0, 1})},
             {{0, 2, 0, -1, 0, 1, 0, 1}});
    for (int64_t n : {1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 129, 768, 1000})
        add("row_" + std::to_string(n), 1, n == 1 ? 0.5 : 1e-5, DataType::kFloat, {3, n});
    for (int parts = 0; parts < 3; ++parts) {
        Attrs some;
        some.axis = 1;
        some.hasGamma = parts & 1;
        some.hasBeta = parts & 2;
        std::vector<CaseInput> in{f32({3, 37})};
        if (parts > 0)
            in.push_back(constant(DataType::kFloat, {37}));
        list.add("parts_" + std::to_string(parts), some, std::move(in));
    }
    add("two_axes", 1, 1e-3, DataType::kFloat, {3, 5, 7});
    add("all", 0, 1e-3, DataType::kFloat, {3, 4});
    add("many_rows", 2, 1e-12, DataType::kFloat, {2, 33, 40});
    add("half", 2, 1e-3, DataType::kHalf, {2, 3, 40});
    for (int64_t n : {8, 250, 768, 1024, 3000})
        add("half_" + std::to_string(n), 1, 1e-5, DataType::kHalf, {n == 768 ? 37 : 2, n});
    add("row_2100", 1, 1e-5, DataType::kFloat, {2, 2100});
    add("row_9000", 1, 1e-5, DataType::kFloat, {2, 9000});
    // Rows in chunks: below, at and above one, a tail that is no whole pack.
    for (DataType type : {DataType::kFloat, DataType::kHalf})
        for (int64_t n : {2048, 4096, 4099, 8192, 20000, 40960})
            add(std::string(nameOf(type)) + "_long_" + std::to_string(n), 1, 1e-5, type, {3, n});
    Attrs groups; // as a group norm: no gamma, no beta
    groups.axis = 2;
    groups.hasGamma = groups.hasBeta = false;
    list.add("groups", groups, {input(DataType::kHalf, {2, 8, 10, 32, 32})});
    for (int64_t integers : {1, 2})
        for (DataType t : {DataType::kFloat, DataType::kHalf})
            for (int64_t n : {1, 8, 37, 768, 1024, 5000}) {
                Attrs to;
                to.axis = 1;
                to.hasBeta = n != 37;
                to.integers = integers;
                std::vector<CaseInput> in{input(t, {n == 768 ? 37 : 3, n}), constant(t, {n})};
                if (to.hasBeta)
                    in.push_back(constant(t, {n}));
                in.push_back(constant(DataType::kFloat, n == 8 ? Extents{} : Extents{1}));
                list.add("integers_" + std::to_string(integers) + "_" + nameOf(t) + "_" + std::to_string(n), to,
                         std::move(in));
            }
    Attrs planes; // with sets that are not contiguous
    planes.axis = 1;
    planes.kept = 4;
    planes.integers = 2;
    planes.hasGamma = planes.hasBeta = false;
    list.add("integers_planes", planes, {f32({2, 6, 5}), constant(DataType::kFloat, {1})});
    add("no_rows", 1, 1e-5, DataType::kFloat, {0, 4});
    add("no_columns", 1, 1e-5, DataType::kFloat, {4, 0});
    addSets(list);
}

// Any set of dimensions; often those of a layer, group or instance norm.
void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    Extents x = d.extents(int(d.from(2, 4)), d.chance(80) ? 24 : 60);
    int const last = x.rank - 1;
    DataType const t = d.type();
    a.axis = d.from(1, last);
    a.rms = d.chance(25);
    if (d.chance(50))
        a.kept = d.from(0, (1 << x.rank) - 1) & ~((2 << a.axis) - 1);
    if (d.chance(60)) {
        a.channel = d.chance(50) ? std::min(1, last) : last;
        if (d.chance(60) && a.isNormalized(int(a.channel))) {
            a.groups = d.from(1, 8);
            x[int(a.channel)] = a.groups * d.from(1, 12);
        }
    }
    int64_t n = a.channel >= 0 ? x[int(a.channel)] : 1;
    for (int i = 0; a.channel < 0 && i < x.rank; ++i)
        n *= a.isNormalized(i) ? x[i] : 1;
    a.hasGamma = d.chance(80);
    a.hasBeta = d.chance(80);
    if (d.chance(50))
        a.activation = activationOf(d);
    std::vector<CaseInput> in{input(t, x)};
    for (bool has : {a.hasGamma, a.hasBeta})
        if (has)
            in.push_back(constant(t, {n}));
    list.add(name, a, in);
}

} // namespace tw::ops::layer_norm
