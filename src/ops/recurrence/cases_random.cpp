// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/recurrence/op.h"

namespace tw::ops::recurrence {

namespace {

Attrs attrsOf(Draw& d)
{
    Attrs a;
    a.cell = Cell(d.from(0, 2));
    a.direction = Direction(d.from(0, 2));
    a.hidden = d.size(48);
    a.linearBeforeReset = d.chance(50);
    a.inputForget = a.cell == Cell::kLstm && d.chance(20);
    a.clip = d.chance(20) ? 0.7 : 0;
    a.batchFirst = d.chance(50);
    for (int i = 0, n = d.chance(25) ? functionsOf(a.cell) * directionsOf(a) : 0; i < n; ++i) {
        int64_t const f = d.from(0, kFunctions - 1);
        a.functions.push_back(Function(f) == Function::kThresholdedRelu ? int64_t(Function::kRelu) : f);
        a.alpha.push_back(0.4);
        a.beta.push_back(0.7);
    }
    return a;
}

} // namespace

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a = attrsOf(d);
    bool const skips = d.chance(10), lstm = a.cell == Cell::kLstm;
    int64_t const n = d.from(1, 9), t = d.from(1, 6), e = skips ? a.hidden : d.size(40), h = a.hidden,
                  both = directionsOf(a), g = gatesOf(a.cell) * h;
    DataType const type = d.type();
    auto given = [&](bool possible, CaseInput in) { return possible && d.chance(50) ? std::move(in) : absent(); };
    Extents const state = a.batchFirst ? Extents{n, both, h} : Extents{both, n, h};
    CaseInput w = skips ? absent() : constant(type, {both, g, e}), r = constant(type, {both, g, h});
    w.constant = r.constant = d.chance(80);
    list.add(name, a,
             {input(type, a.batchFirst ? Extents{n, t, e} : Extents{t, n, e}), r, w,
              given(true, constant(type, {both, 2 * g})), given(true, input(DataType::kInt32, {n})),
              given(true, input(type, state)), given(lstm, input(type, state)),
              given(lstm, constant(type, {both, 3 * h}))});
}

} // namespace tw::ops::recurrence
