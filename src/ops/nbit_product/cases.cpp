// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/nbit_product/op.h"

namespace tw::ops::nbit_product {

namespace {

struct Form
{
    int64_t k = 64, n = 32, bits = 4, block = 32;
    DataType x = DataType::kFloat, scales = DataType::kFloat;
    bool zeros = false, bias = false, groups = false, isConstant = true, roundsX = false;
};

void product(CaseList& list, std::string const& name, Extents rows, Form const& f)
{
    Attrs a;
    a.k = f.k;
    a.bits = f.bits;
    a.block = f.block;
    a.roundsX = f.roundsX;
    rows.push(f.k);
    auto weights = [&](DataType t, Extents const& dims) {
        CaseInput in = input(t, dims);
        in.constant = f.isConstant;
        return in;
    };
    std::vector<CaseInput> in{
        input(f.x, rows), weights(DataType::kInt32, {f.n, a.blocks(), a.words()}), weights(f.scales, {f.n, a.blocks()}),
        f.zeros ? weights(f.scales, {f.n, a.blocks()}) : absent(), f.bias ? weights(f.x, {f.n}) : absent()};
    if (f.groups)
        in.push_back(weights(DataType::kInt32, {f.k}));
    list.add(name, a, std::move(in));
}

CaseInput i32(Extents const& dims, std::vector<double> values)
{
    return constant(DataType::kInt32, dims, std::move(values));
}
CaseInput known(Extents const& dims, std::vector<double> values)
{
    return constant(DataType::kFloat, dims, std::move(values));
}

// Rows 0 1 2 .. 15 and 15 14 .. 0 of weights.
void byHand(CaseList& list)
{
    Attrs a;
    a.k = 3;
    a.block = 16;
    CaseInput const w = i32({2, 1, 2},
                            {0x76543210, double(int32_t(0xfedcba98)), double(int32_t(0x89abcdef)), 0x01234567}),
                    x = f32({2, 3}, {1, 2, 3, -1, 0, 4});
    list.add("by_hand", a, {x, w, known({2, 1}, {1, 0.5})}, {{-40, 17, -16, 6.5}});
    list.add("zeros_by_hand", a, {x, w, known({2, 1}, {1, 0.5}), known({2, 1}, {0, 15.5})}, {{8, -5.5, 8, -4.75}});
    list.add("bias_by_hand", a, {x, w, known({2, 1}, {1, 0.5}), absent(), known({2}, {40, -17})}, {{0, 0, 24, -10.5}});
    a.k = 18;
    std::vector<double> ones(18, 1), groups(18, 1);
    groups[3] = -7;
    groups[17] = 9;
    groups[5] = 0;
    CaseInput const two = i32({1, 2, 2}, {0x76543210, double(int32_t(0xfedcba98)), 0x000000ab, 0}),
                    one = f32({1, 18}, ones);
    list.add("second_block_by_hand", a, {one, two, known({1, 2}, {1, 10})}, {{-8 + 50}});
    list.add("groups_by_hand", a,
             {one, two, known({1, 2}, {1, 10}), known({1, 2}, {0, 1}), absent(), i32({18}, groups)},
             {{8 + 10 * (120 - 8 + 21 - 16)}});
    a.k = 5;
    a.bits = 2;
    list.add("two_bits_by_hand", a,
             {f32({5}, {1, 1, 1, 1, 10}), i32({1, 1, 1}, {0b10'11'10'01'00}), known({1, 1}, {1})},
             {{-2 - 1 + 0 + 1 + 0}});
    a.bits = 8;
    list.add(
        "eight_bits_by_hand", a,
        {f32({5}, {1, 1, 1, 1, 10}), i32({1, 1, 4}, {double(int32_t(0xff800100)), 0x7f, 0, 0}), known({1, 1}, {2})},
        {{2 * (-128 - 127 + 0 + 127 - 10)}});
}

} // namespace

void cases(CaseList& list)
{
    byHand(list);
    for (int64_t bits : {2, 4, 8}) {
        std::string const name = "bits" + std::to_string(bits);
        for (int64_t block : {16, 32, 64, 128, 256}) {
            std::string const of = name + "_block" + std::to_string(block);
            product(list, of, {1}, {.k = 512, .n = 48, .bits = bits, .block = block});
            product(list, of + "_odd", {3}, {.k = 303, .n = 37, .bits = bits, .block = block, .zeros = true});
            product(list, of + "_half", {2},
                    {.k = 290,
                     .n = 21,
                     .bits = bits,
                     .block = block,
                     .x = DataType::kHalf,
                     .scales = DataType::kHalf,
                     .zeros = true,
                     .bias = true});
        }
        for (int64_t block : {48, 304, 512, 4096}) // one for each row among them
            product(list, name + "_row" + std::to_string(block), {2},
                    {.k = 301, .n = 19, .bits = bits, .block = block});
        for (int64_t m : {0, 1, 3, 8, 65}) {
            std::string const of = name + "_m" + std::to_string(m);
            product(list, of, {m}, {.k = 160, .n = 70, .bits = bits, .bias = true});
            product(list, of + "_half", {m},
                    {.k = 160, .n = 70, .bits = bits, .x = DataType::kHalf, .scales = DataType::kHalf});
            product(list, of + "_variable", {m}, {.k = 70, .n = 33, .bits = bits, .zeros = true, .isConstant = false});
        }
        for (int64_t m : {1, 3, 20}) // longer than what stays in L1
            product(list, name + "_pieces" + std::to_string(m), {m},
                    {.k = 4500, .n = 40, .bits = bits, .zeros = m == 3, .bias = m == 20});
        for (int64_t m : {0, 1, 5, 14, 65}) { // x in 8 bits
            std::string const of = name + "_rounded_m" + std::to_string(m);
            product(list, of, {m}, {.k = 1184, .n = 70, .bits = bits, .bias = m == 5, .roundsX = true});
            product(list, of + "_zeros_half", {m},
                    {.k = 290,
                     .n = 37,
                     .bits = bits,
                     .block = 16,
                     .x = DataType::kHalf,
                     .scales = DataType::kHalf,
                     .zeros = true,
                     .roundsX = true});
        }
        product(list, name + "_rounded_groups", {9},
                {.k = 150, .n = 40, .bits = bits, .zeros = true, .groups = true, .roundsX = true});
        product(list, name + "_groups", {4}, {.k = 150, .n = 40, .bits = bits, .zeros = true, .groups = true});
        product(list, name + "_groups_half", {1},
                {.k = 150, .n = 40, .bits = bits, .x = DataType::kHalf, .bias = true, .groups = true});
    }
    product(list, "half_of_single_scales", {2}, {.x = DataType::kHalf});
    product(list, "single_of_half_scales", {2}, {.scales = DataType::kHalf, .zeros = true});
    product(list, "bf16", {2}, {.x = DataType::kBf16, .bias = true});
    product(list, "vector", {}, {.n = 5});
    product(list, "batch", {2, 3, 5}, {.k = 96, .n = 65});
    product(list, "one_product", {3}, {.k = 1, .n = 40});
    product(list, "one_column", {7}, {.k = 260, .n = 1});
    product(list, "no_columns", {3}, {.n = 0});
    product(list, "long", {1}, {.k = 2048, .n = 130, .block = 128, .x = DataType::kHalf, .scales = DataType::kHalf});
    for (int64_t n : {7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65})
        product(list, "columns" + std::to_string(n), {2}, {.k = 100, .n = n, .zeros = n % 2 == 0});
    for (int64_t m : {2, 4, 5, 6, 7, 9, 12, 13, 16, 17, 33})
        product(list, "rows" + std::to_string(m), {m}, {.k = 100, .n = 40, .zeros = m % 2 == 0});
    // Zeros that are no integers, and scales that FP16 has all of.
    CaseInput const weights = constant(DataType::kInt32, {3, 2, 4});
    Attrs a;
    a.k = 64;
    list.add("fractions", a,
             {f32({2, 64}), weights, known({3, 2}, {0.5, 1, 2, 0.25, 0.125, 3}),
              known({3, 2}, {0.5, 7.25, -3, 100, 8, 15})});
    list.add("middle_zeros", a,
             {f32({2, 64}), weights, known({3, 2}, {0.5, 1, 2, 0.25, 0.125, 3}), known({3, 2}, {8, 8, 8, 8, 8, 8})});
    list.add("large_scales", a, {f32({2, 64}), weights, known({3, 2}, {1e6, 2e6, 3e5, 1e6, 2e6, 1e6})});
    list.add("tiny", a, {f32({1, 64}, std::vector<double>(64, 1e-28)), weights, known({3, 2}, {1, 2, 3, 4, 5, 6})});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Form f;
    int64_t const m = d.size(40);
    d.until([&] {
        f.k = d.size(600);
        f.n = d.size(150);
        return m * f.k * f.n <= kMostWork;
    });
    f.bits = int64_t(1) << d.from(1, 3);
    f.block = d.chance(80) ? int64_t(16) << d.from(0, 4) : 16 * d.from(1, 40);
    f.x = d.type();
    f.scales = d.type();
    f.zeros = d.chance(50);
    f.bias = d.chance(30);
    f.groups = d.chance(15);
    f.isConstant = d.chance(90);
    f.roundsX = d.chance(30);
    product(list, name, {m}, f);
}

} // namespace tw::ops::nbit_product
