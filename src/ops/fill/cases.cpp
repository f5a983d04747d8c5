// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/fill/op.h"

namespace tw::ops::fill {

void cases(CaseList& list)
{
    auto make = [](Operation o, std::vector<int64_t> dims, double alpha, double beta,
                   DataType type = DataType::kFloat) {
        Attrs a;
        a.operation = o;
        a.dims = std::move(dims);
        a.alpha = alpha;
        a.beta = beta;
        a.outputType = type;
        return a;
    };
    auto dims = [](std::vector<double> d) {
        int64_t const n = int64_t(d.size());
        return constant(DataType::kInt32, {n}, std::move(d));
    };
    auto i32 = [](Extents const& e, std::vector<double> v) { return input(DataType::kInt32, e, std::move(v)); };
    using O = Operation;
    list.add("linspace_by_hand", make(O::kLinspace, {4}, 1, 0.5), {}, {{1, 1.5, 2, 2.5}});
    list.add("linspace_i32_by_hand", make(O::kLinspace, {3}, 5, -2, DataType::kInt32), {}, {{5, 3, 1}});
    list.add("linspace_steps_by_hand", make(O::kLinspace, {}, 0, 0), {dims({2, 3}), f32({}, {10}), f32({2}, {5, 1})},
             {{10, 11, 12, 15, 16, 17}});
    list.add("linspace_i32_steps_by_hand", make(O::kLinspace, {}, 0, 0),
             {dims({2, 2}), i32({}, {2147483647.0}), i32({2}, {1, 2})},
             {{2147483647.0, -2147483647.0, -2147483648.0, -2147483646.0}});
    list.add("linspace_half", make(O::kLinspace, {300}, -3, 0.25, DataType::kHalf), {});
    list.add("linspace_scalar_step", make(O::kLinspace, {}, 0, 0), {dims({300}), i32({}, {3}), i32({}, {-7})});
    list.add("linspace_rank4", make(O::kLinspace, {}, 0, 0),
             {dims({2, 3, 4, 70}), input(DataType::kHalf, {1}, {0.5}), input(DataType::kHalf, {4}, {1, 2, 3, 0.125})});
    list.add("static_dims_with_steps", make(O::kLinspace, {3, 5}, 0, 0), {absent(), f32({}), f32({2})});
    list.add("scalar", make(O::kLinspace, {}, 0, 0), {dims({}), f32({}, {3}), f32({0})}, {{3}});
    list.add("empty", make(O::kLinspace, {0}, 0, 1), {});
    for (O o : {O::kRandomUniform, O::kRandomNormal}) {
        std::string const name = o == O::kRandomUniform ? "uniform" : "normal";
        list.add(name, make(o, {3, 333}, -2, 3), {});
        list.add(name + "_half", make(o, {7, 41}, 0, 1, DataType::kHalf), {});
        list.add(name + "_inputs", make(o, {}, 0, 0), {dims({5, 60}), f32({}, {1}), f32({}, {4})});
        list.add(name + "_empty", make(o, {2, 0}, 0, 1), {});
        list.add(name + "_scalar", make(o, {}, 5, 1), {});
    }
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    Extents const y = d.extents(int(d.from(1, 3)), 40);
    a.dims.assign(y.begin(), y.end());
    std::vector<double> steps;
    for (int i = 0; i < y.rank; ++i)
        steps.push_back(double(d.from(-3, 3)));
    DataType const t = d.chance(50) ? DataType::kInt32 : DataType::kFloat;
    list.add(name, a, {absent(), constant(t, {}, {double(d.from(-5, 5))}), constant(t, {y.rank}, steps)});
}

} // namespace tw::ops::fill
