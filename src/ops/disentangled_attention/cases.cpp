// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/disentangled_attention/op.h"

namespace tw::ops::disentangled_attention {

namespace {

void add(CaseList& list, std::string const& name, int64_t b, int64_t s, int64_t span, DataType type)
{
    Attrs a;
    a.span = span;
    a.factor = 0.125;
    list.add(name, a, {input(type, {b, s, s}), input(type, {b, s, 2 * span}), input(type, {b, s, 2 * span})});
}

} // namespace

void cases(CaseList& list)
{
    Attrs a;
    a.span = 2;
    a.factor = 2;
    // t of i - j = -1, 0, 1: 1, 2, 3.
    list.add("by_hand", a,
             {f32({1, 2, 2}, {0, 0, 0, 0}), f32({1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}),
              f32({1, 2, 4}, {10, 20, 30, 40, 50, 60, 70, 80})},
             {{66, 124, 96, 154}});
    for (DataType type : {DataType::kFloat, DataType::kHalf}) {
        std::string const suffix = isNarrowFloat(type) ? "_half" : "";
        add(list, "deberta" + suffix, 4, 128, 32, type);
        add(list, "long" + suffix, 1, 300, 16, type);
        add(list, "all_near" + suffix, 2, 9, 20, type);
        add(list, "span_1" + suffix, 2, 6, 1, type);
        add(list, "span_2" + suffix, 2, 33, 2, type);
        add(list, "span_3" + suffix, 3, 17, 3, type);
        add(list, "span_40" + suffix, 2, 150, 40, type);
        add(list, "few_tokens_beyond_half_a_span" + suffix, 1, 200, 300, type);
        add(list, "one_token" + suffix, 3, 1, 8, type);
    }
    add(list, "no_tokens", 2, 0, 4, DataType::kFloat);
    add(list, "nothing", 0, 5, 4, DataType::kFloat);
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    add(list, name, d.from(1, 4), d.size(150), d.size(60), d.type());
}

} // namespace tw::ops::disentangled_attention
