// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/scale/op.h"

namespace tw::ops::scale {

void cases(CaseList& list)
{
    auto weights = [](Extents const& e, std::vector<double> v = {}) {
        return constant(DataType::kFloat, e, std::move(v));
    };
    list.add("uniform_by_hand", Attrs(Mode::kUniform),
             {f32({1, 1, 1, 3}, {1, 2, -1}), weights({1}, {2}), weights({1}, {1}), weights({1}, {2})}, {{9, 25, 1}});
    list.add("channel_by_hand", Attrs(Mode::kChannel),
             {f32({1, 2, 1, 2}, {1, 2, 3, 4}), weights({2}, {2, 3}), weights({2}, {10, 20})}, {{12, 14, 29, 32}});
    list.add("elementwise_by_hand", Attrs(Mode::kElementwise),
             {f32({2, 2, 1, 1}, {1, 2, 3, 4}), weights({2}, {5, 6}), weights({2}, {1, -1})}, {{6, 11, 16, 23}});
    list.add("nothing_by_hand", Attrs(Mode::kUniform), {f32({1, 1, 1, 2}, {1, -2})}, {{1, -2}});
    list.add("quantize_by_hand", Attrs(Mode::kUniform, 1, int32_t(DataType::kInt8)),
             {f32({1, 1, 1, 6}, {0.25, 0.75, -0.25, 1.25, 100, -100}), weights({1}, {2})}, {{0, 2, 0, 2, 127, -128}});
    list.add("i8_by_hand", Attrs(Mode::kUniform),
             {input(DataType::kInt8, {1, 1, 1, 4}, {1, 3, 100, -128}), weights({1}, {0.5}), weights({1}, {0})},
             {{0, 2, 50, -64}});
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
        for (Mode m : {Mode::kUniform, Mode::kChannel, Mode::kElementwise}) {
            std::string const name = std::string(m == Mode::kUniform   ? "uniform_"
                                                 : m == Mode::kChannel ? "channel_"
                                                                       : "elementwise_") +
                                     nameOf(t);
            Extents const x{2, 3, 5, 67};
            Extents const c{m == Mode::kUniform ? 1 : m == Mode::kChannel ? 3 : 3 * 5 * 67};
            list.add(name, Attrs(m), {input(t, x), weights(c), weights(c)});
            list.add(name + "_power", Attrs(m), {input(t, x), weights(c), weights(c), weights(c)});
            list.add(name + "_scale_only", Attrs(m), {input(t, x), weights(c)});
            list.add(name + "_shift_only", Attrs(m), {input(t, x), absent(), weights(c)});
        }
    }
    list.add("last_axis", Attrs(Mode::kChannel, 3), {f32({2, 3, 4, 300}), weights({300}), weights({300})});
    list.add("first_axis", Attrs(Mode::kChannel, 0), {f32({3, 4, 5, 6}), weights({3}), weights({3})});
    list.add("half_image", Attrs(Mode::kChannel),
             {input(DataType::kHalf, {2, 24, 4, 5}), constant(DataType::kHalf, {24}), constant(DataType::kHalf, {24})});
    list.add("half_weights", Attrs(Mode::kChannel),
             {input(DataType::kHalf, {2, 3, 4, 5}), constant(DataType::kHalf, {3}), constant(DataType::kHalf, {3})});
    list.add("quantize", Attrs(Mode::kChannel, 1, int32_t(DataType::kInt8)),
             {input(DataType::kHalf, {2, 3, 4, 50}), weights({3}, {20, 30, 100}), weights({3})});
    list.add("input_weights", Attrs(Mode::kChannel), {f32({2, 3, 4, 5}), f32({1, 3, 1, 1}), f32({3})});
    list.add("empty", Attrs(Mode::kChannel), {f32({0, 3, 4, 5}), weights({3})});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Extents const x = d.extents(int(d.from(1, 4)), 24);
    Attrs const a(Mode(d.from(0, 2)), int32_t(d.from(0, x.rank - 1)));
    int64_t count = a.mode == Mode::kUniform ? 1 : x[a.channelAxis];
    for (int i = a.channelAxis + 1; a.mode == Mode::kElementwise && i < x.rank; ++i)
        count *= x[i];
    DataType const t = d.type();
    std::vector<CaseInput> in{input(t, x)};
    for (int i = 0; i < 3; ++i) // shift, scale, power
        in.push_back(d.chance(i < 2 ? 70 : 30) ? constant(t, {count}) : absent());
    list.add(name, a, in);
}

} // namespace tw::ops::scale
