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

void updatePages(CaseList& list, std::string const& name, std::vector<CaseInput> in,
                 std::vector<std::vector<double>> expected = {})
{
    Attrs a;
    a.axis = 2;
    a.pages = true;
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
    // Blocks of 16 rows of one number: row 17 of image 0 goes to block 0, row 31 of image 1 to block 2, its row 32 nowhere.
    std::vector<double> blocks(48), written;
    for (size_t i = 0; i < blocks.size(); ++i)
        blocks[i] = double(i);
    written = blocks;
    written[1] = -1;
    written[2] = -2;
    written[32 + 15] = -3;
    auto pages = [](Extents const& e, std::vector<double> const& v) { return input(DataType::kInt32, e, v); };
    updatePages(list, "pages_by_hand",
                {f32({3, 1, 16, 1}, blocks), f32({2, 1, 2, 1}, {-1, -2, -3, -4}), indices({17, 31}),
                 pages({2, 2}, {1, 0, 1, 2})},
                {written});
    updatePages(list, "pages_outside",
                {f32({3, 1, 16, 1}, blocks), f32({3, 1, 2, 1}), indices({15, -2, 3}), pages({3, 1}, {3, 0, -1})});
    updatePages(list, "pages_far_outside",
                {f32({3, 1, 16, 1}, blocks), f32({2, 1, 2, 1}, {-1, -2, -3, -4}), indices({2147483647, -2147483648.0}),
                 pages({2, 2}, {2147483647, -2147483648.0, 1, 2})},
                {blocks});
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
        std::string const name = nameOf(t);
        updatePages(list, "pages_" + name,
                    {input(t, {9, 4, 16, 64}), input(t, {3, 4, 1, 64}), indices({0, 36, 5}),
                     pages({3, 3}, {7, -1, -1, 3, 1, 4, 0, 2, 12})});
        updatePages(list, "pages_prompt_" + name,
                    {input(t, {9, 2, 16, 5}), input(t, {2, 2, 41, 5}), indices({9, 0}),
                     pages({2, 4}, {8, 1, 2, 3, 4, 5, 6, -9})});
        Attrs packed; // new rows of two heads beside other things
        packed.axis = 2;
        packed.pages = true;
        packed.offset = 8;
        packed.headStride = 32;
        list.add(
            "pages_packed_" + name, packed,
            {input(t, {6, 2, 16, 32}), input(t, {2, 3, 96}), indices({14, 31}), pages({2, 3}, {5, 2, 0, 4, 3, 1})});
    }
    updatePages(list, "pages_without_blocks",
                {f32({0, 2, 16, 4}), f32({1, 2, 3, 4}), indices({1}), pages({1, 2}, {0, 0})});
    updatePages(list, "pages_of_none", {f32({2, 2, 16, 4}), f32({1, 2, 3, 4}), indices({1}), pages({1, 0}, {})});
    update(list, "long", 2, false, {f32({1, 8, 2048, 128}), f32({1, 8, 1, 128}), indices({2047})});
}

// Blocks that belong to one image each, but for numbers that are none.
void randomPages(CaseList& list, Draw& d, std::string const& name)
{
    int64_t const images = d.from(1, 4), count = d.from(1, 4), blocks = d.from(1, 16), heads = d.from(1, 3),
                  size = d.from(1, 40), rows = d.from(0, 40);
    DataType const t = d.type();
    std::vector<double> at, pages;
    for (int64_t n = 0; n < images; ++n)
        at.push_back(double(d.from(-2, count * kPageRows + 1)));
    for (int64_t i = 0; i < images * count; ++i)
        pages.push_back(d.chance(80) ? double((i * 7 + 3) % 17) : -1); // 17 is a prime: no number comes twice
    updatePages(list, name,
                {input(t, {blocks, heads, kPageRows, size}), input(t, {images, heads, rows, size}), indices(at),
                 input(DataType::kInt32, {images, count}, pages)});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    if (d.chance(30))
        return randomPages(list, d, name);
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
