// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <limits>

#include "cases/draw.h"
#include "ops/attention_guard/op.h"

namespace tw::ops::attention_guard {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

Attrs heads(int64_t heads, int64_t size, int64_t perKey = 1)
{
    Attrs a;
    a.heads = heads;
    a.valueSize = size;
    a.headsPerKey = perKey;
    return a;
}

CaseInput numbers(Extents const& e, std::vector<double> const& v)
{
    return input(DataType::kInt32, e, v);
}

} // namespace

void cases(CaseList& list)
{
    // Two rows of two heads of one number: NaN of the second head, whose values are finite, and of the first, whose are not.
    CaseInput const y = f32({1, 2, 2}, {1, kNan, kNan, 2});
    list.add("by_hand", heads(2, 1), {y, f32({1, 2, 2, 1}, {3, kInfinity, 5, 6})}, {{1, 0, kNan, 2}});
    list.add("shared_by_hand", heads(2, 1, 2), {y, f32({1, 1, 2, 1}, {3, 4})}, {{1, 0, 0, 2}});
    Attrs a = heads(2, 1);
    a.lengths = true;
    list.add("lengths_by_hand", a, {y, f32({1, 2, 2, 1}, {3, kNan, 5, kNan}), numbers({1}, {1})}, {{1, 0, 0, 2}});
    list.add("no_keys_by_hand", a, {y, f32({1, 2, 2, 1}, {kNan, kNan, kNan, kNan}), numbers({1}, {-3})},
             {{1, 0, 0, 2}});
    a.pages = true;
    std::vector<double> blocks(64, 1);
    blocks[16 + 2] = kInfinity; // block 0, head 1, row 2
    list.add("pages_by_hand", a, {y, f32({2, 2, 16, 1}, blocks), numbers({1}, {20}), numbers({1, 2}, {1, -7})},
             {{1, kNan, 0, 2}});
    for (DataType t : {DataType::kFloat, DataType::kHalf}) {
        std::string const name = nameOf(t);
        list.add("heads_" + name, heads(4, 32, 2), {input(t, {3, 5, 128}), input(t, {3, 2, 7, 32})});
        list.add("integers_" + name, heads(2, 3), {input(t, {2, 4, 6}), input(DataType::kInt8, {2, 2, 5, 3})});
        Attrs columns = heads(3, 5);
        columns.v = {7, 6, false};
        list.add("columns_" + name, columns, {input(t, {2, 9, 15}), input(t, {2, 4, 29})});
        columns.v.rowsFirst = columns.rowsFirst = true;
        list.add("rows_first_" + name, columns, {input(t, {9, 2, 15}), input(t, {4, 2, 29})});
        Attrs cache = heads(4, 8);
        cache.lengths = true;
        list.add("cache_" + name, cache, {input(t, {3, 2, 32}), input(t, {3, 4, 11, 8}), numbers({3}, {11, 4, 0})});
        list.add("nothing_" + name, heads(2, 4), {input(t, {0, 3, 8}), input(t, {0, 2, 3, 4})});
        list.add("no_values_" + name, heads(2, 4), {input(t, {2, 3, 8}), input(t, {2, 2, 0, 4})});
    }
    list.add("long", heads(12, 64), {f32({1, 384, 768}), f32({1, 12, 384, 64})});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a = heads(1, d.from(1, 20), d.from(1, 3));
    a.heads = a.headsPerKey * d.from(1, 3);
    int64_t const batch = d.from(1, 3), rows = d.from(0, 6), width = a.heads * a.valueSize;
    DataType const t = d.chance(50) ? DataType::kFloat : DataType::kHalf, of = d.chance(15) ? DataType::kInt8 : t;
    a.rowsFirst = d.chance(30);
    std::vector<CaseInput> in{input(t, a.rowsFirst ? Extents{rows, batch, width} : Extents{batch, rows, width})};
    a.lengths = d.chance(50);
    a.pages = a.lengths && d.chance(50);
    int64_t const columns = d.from(0, 9);
    if (a.pages) {
        in.push_back(input(of, {d.from(1, 5), a.keyHeads(), attention::kPageRows, a.valueSize}));
    } else if (d.chance(50)) {
        in.push_back(input(of, {batch, a.keyHeads(), columns, a.valueSize}));
    } else {
        a.v = {d.from(0, 4), a.valueSize + d.from(0, 3), d.chance(50)};
        int64_t const all = a.v.offset + a.keyHeads() * a.v.headStride + d.from(0, 2);
        in.push_back(input(of, a.v.rowsFirst ? Extents{columns, batch, all} : Extents{batch, columns, all}));
    }
    if (a.lengths)
        in.push_back(input(DataType::kInt32, {batch}));
    if (a.pages)
        in.push_back(input(DataType::kInt32, {batch, d.from(0, 3)}));
    list.add(name, a, std::move(in));
}

} // namespace tw::ops::attention_guard
