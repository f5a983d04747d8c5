// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/rotary/op.h"

namespace tw::ops::rotary {

void cases(CaseList& list)
{
    auto add = [&](std::string const& name, int64_t size, bool interleaved, DataType t, Extents const& x,
                   Extents const& w) {
        Attrs a;
        a.size = size;
        a.interleaved = interleaved;
        list.add(name, a, {input(t, x), constant(t, w), input(t, w)});
    };
    for (bool interleaved : {false, true}) {
        Attrs a;
        a.size = 4;
        a.interleaved = interleaved;
        // 1 2 3 4 5 turned: halves -3 -4 1 2, neighbours -2 1 -4 3.
        list.add(interleaved ? "neighbours_by_hand" : "halves_by_hand", a,
                 {f32({5}, {1, 2, 3, 4, 5}), f32({4}, {1, 2, 1, 0}), f32({4}, {1, 1, 2, 3})},
                 {interleaved ? std::vector<double>{-1, 5, -5, 9, 5} : std::vector<double>{-2, 0, 5, 6, 5}});
        std::string const form = interleaved ? "neighbours" : "halves";
        for (DataType t : {DataType::kFloat, DataType::kHalf}) {
            std::string const name = form + "_" + nameOf(t);
            add(name + "_heads", 64, interleaved, t, {2, 7, 3, 64}, {1, 7, 1, 64});
            add(name + "_heads_first", 64, interleaved, t, {2, 3, 7, 64}, {1, 1, 7, 64});
            add(name + "_pairs", 64, interleaved, t, {2, 7, 3, 64}, {2, 7, 1, 32});
            add(name + "_part", 32, interleaved, t, {2, 5, 2, 80}, {1, 5, 1, 32});
            add(name + "_part_pairs", 20, interleaved, t, {1, 5, 2, 33}, {1, 5, 1, 10});
            for (int64_t size : {2, 6, 16, 34, 96, 130})
                add(fmt::format("{}_{}", name, size), size, interleaved, t, {3, 5, size}, {1, 5, size});
        }
        for (DataType t : {DataType::kFloat, DataType::kHalf})
            for (int64_t offset : {0, 64, 3}) {
                Attrs packed;
                packed.size = 32;
                packed.interleaved = interleaved;
                packed.heads = 3;
                packed.offset = offset;
                packed.rowSize = offset == 64 ? 64 : 32;
                list.add(fmt::format("{}_{}_packed_{}", form, nameOf(t), offset), packed,
                         {input(t, {2, 5, 320}), input(t, {2, 5, 1, 32}), input(t, {1, 5, 1, 16})});
            }
        add(form + "_long", 128, interleaved, DataType::kFloat, {1, 70, 9, 128}, {1, 70, 1, 128});
        add(form + "_empty", 8, interleaved, DataType::kFloat, {0, 8}, {1, 8});
    }
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    a.interleaved = d.chance(50);
    Extents const x = d.extents(int(d.from(1, 5)), 20);
    Extents whole = x;
    int const last = x.rank - 1;
    whole[last] += 1;
    a.size = 2 * d.from(1, whole[last] / 2);
    DataType const t = d.type();
    auto angles = [&] {
        Extents w = whole;
        for (int i = 0; i < last; ++i)
            if (d.chance(50))
                w[i] = 1;
        w[last] = d.chance(50) ? a.size : a.size / 2;
        return d.chance(50) ? constant(t, w) : input(t, w);
    };
    CaseInput const c = angles(), s = angles();
    list.add(name, a, {input(t, whole), c, s});
}

} // namespace tw::ops::rotary
