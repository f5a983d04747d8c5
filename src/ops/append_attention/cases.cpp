// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/append_attention/op.h"

namespace tw::ops::append_attention {

namespace {

struct Sizes
{
    int64_t batch = 2, rows = 1, capacity = 90, heads = 4, keyHeads = 2, size = 64, valueSize = 64;
    std::vector<double> begins = {40, 7}; // where new rows go
    int64_t rotary = 0;
    bool interleaved = false, byPair = false;
    int64_t before = 0; // columns in front of the projection
};

struct Built
{
    Attrs a;
    std::vector<CaseInput> in;
};
using Change = std::function<void(Built&)>;

// Queries, keys and values side by side in one projection.
Built built(DataType type, DataType caches, Sizes const& z)
{
    Built b;
    auto& a = b.a.attention;
    a.heads = z.heads;
    a.headsPerKey = z.heads / z.keyHeads;
    a.size = a.q.headStride = a.k.headStride = z.size;
    a.valueSize = a.v.headStride = z.valueSize;
    a.scale = 0.3;
    a.fill = -INFINITY;
    a.lengths = a.causal = true;
    a.q.offset = z.before;
    b.a.keyOffset = z.before + z.heads * z.size;
    b.a.keyHeadStride = z.size;
    b.a.valueOffset = b.a.keyOffset + z.keyHeads * z.size;
    b.a.valueHeadStride = z.valueSize;
    int64_t const width = b.a.valueOffset + z.keyHeads * z.valueSize;
    CaseInput const x = input(type, {z.batch, z.rows, width});
    CaseInput const fresh = input(caches, {z.batch, z.rows, width}); // other numbers than the queries', as any may be
    std::vector<double> lengths;
    for (double begin : z.begins)
        lengths.push_back(begin + double(z.rows));
    b.in = {x,
            input(caches, {z.batch, z.keyHeads, z.capacity, z.size}),
            input(caches, {z.batch, z.keyHeads, z.capacity, z.valueSize}),
            fresh,
            fresh,
            input(DataType::kInt32, {z.batch}, z.begins),
            absent(),
            absent()};
    if (z.rotary > 0) {
        b.a.rotarySize = z.rotary;
        b.a.interleaved = z.interleaved;
        b.a.keyOffset = b.a.keyHeadStride = 0;
        b.in[kNewKeys] = absent();
        b.in[kCosines] = b.in[kSines] = input(type, {z.batch, z.rows, 1, z.byPair ? z.rotary / 2 : z.rotary});
    }
    b.in.push_back(input(DataType::kInt32, {z.batch}, lengths));
    if (isQuantized(caches)) {
        a.scales = true;
        b.in.resize(b.in.size() + 2, input(DataType::kFloat, {z.keyHeads}));
    }
    return b;
}

void typedCases(CaseList& list, DataType type)
{
    auto add = [&](std::string const& name, Sizes const& z, Change const& change = {},
                   DataType caches = DataType::kBool) {
        Built b = built(type, caches == DataType::kBool ? type : caches, z);
        if (change)
            change(b);
        list.add(wordOf(type) + "_" + name, b.a, std::move(b.in));
    };
    for (int64_t size : {16, 32, 64, 80, 96, 128, 256})
        for (int64_t rows : {1, 3})
            add(fmt::format("{}_of_size_{}", rows, size), {.rows = rows, .size = size, .valueSize = size});
    add("values_of_another_size", {.size = 64, .valueSize = 32});
    for (int64_t shared : {1, 4, 8})
        for (int64_t rows : {1, 5, 17})
            add(fmt::format("{}_share_{}_rows", shared, rows), {.rows = rows, .heads = 2 * shared});
    add("many_rows", {.rows = 70, .capacity = 200, .begins = {0, 100}});
    add("long", {.batch = 1, .capacity = 3000, .heads = 2, .keyHeads = 1, .begins = {2990}});
    add("first_rows", {.rows = 4, .begins = {0, 0}});
    add("behind_the_last", {.rows = 4, .capacity = 32, .begins = {30, 32}});
    add("in_front_of_the_first", {.rows = 4, .capacity = 32, .begins = {-2, -9}});
    add("far_outside", {.rows = 2, .begins = {2147483646, -2147483648.0}}, [](Built& b) {
        b.in[kOthers] = input(DataType::kInt32, {2}, {90, 5});
    });
    add("lengths_of_their_own", {.rows = 3}, [](Built& b) { b.in[kOthers] = input(DataType::kInt32, {2}, {41, 60}); });
    add("not_causal", {.rows = 3}, [](Built& b) { b.a.attention.causal = false; });
    add("no_sequences", {.batch = 0, .begins = {}});
    add("no_rows", {.rows = 0});
    add("apart", {}, [&](Built& b) { // new rows by heads, as cache_update has them
        b.in[kNewKeys] = b.in[kNewValues] = input(type, {2, 2, 1, 64});
        b.a.keyOffset = b.a.keyHeadStride = b.a.valueOffset = b.a.valueHeadStride = 0;
    });
    add("queries_by_heads", {.rows = 3}, [&](Built& b) { b.in[kQueries] = input(type, {2, 4, 3, 64}); });
    for (bool interleaved : {false, true})
        for (bool byPair : {false, true}) {
            std::string const name = std::string(interleaved ? "neighbours" : "halves") + (byPair ? "_by_pair" : "");
            for (int64_t rows : {1, 4, 80})
                add(fmt::format("turned_{}_{}", name, rows),
                    {.rows = rows, .rotary = 64, .interleaved = interleaved, .byPair = byPair});
            add("turned_in_part_" + name, {.rows = 2, .rotary = 32, .interleaved = interleaved, .byPair = byPair});
            add("turned_by_odd_parts_" + name, {.rows = 2, .rotary = 24, .interleaved = interleaved, .byPair = byPair});
            add("turned_large_" + name, {.rows = 2,
                                         .size = 256,
                                         .valueSize = 256,
                                         .rotary = 256,
                                         .interleaved = interleaved,
                                         .byPair = byPair});
        }
    add("turned_behind_others", {.rows = 2, .rotary = 64, .before = 24});
    add("turned_at_odd_places", {.rows = 2, .rotary = 64, .before = 3});
    add("turned_by_one_row", {.rows = 3, .rotary = 64}, [&](Built& b) {
        b.in[kCosines] = input(type, {1, 1, 1, 64});
        b.in[kSines] = input(type, {1, 3, 1, 32});
    });
    add("window", {.rows = 3}, [](Built& b) { b.a.attention.window = 9; });
    add("all", {.rows = 3, .rotary = 64}, [&](Built& b) {
        auto& a = b.a.attention;
        a.window = 30;
        a.softcap = 2;
        a.sinks = a.slopes = true;
        b.in.insert(b.in.begin() + kOthers, input(type, {2, 1, 3, 90}));
        b.in.push_back(input(type, {4}));
        b.in.push_back(input(DataType::kFloat, {4}, {0.5, 0.25, 0.125, -0.25}));
    });
    for (int64_t rows : {1, 3})
        add(fmt::format("int8_{}", rows), {.rows = rows}, {}, DataType::kInt8);
}

} // namespace

void cases(CaseList& list)
{
    // Of two keys of which one is new: scores are 1 and 2 (scale 1), values 10 and 20.
    Attrs a;
    a.attention.lengths = true;
    list.add("by_hand", a,
             {f32({1, 1, 1}, {1}), f32({1, 1, 3, 1}, {1, 7, 7}), f32({1, 1, 3, 1}, {10, 7, 7}), f32({1, 1, 1, 1}, {2}),
              f32({1, 1, 1, 1}, {20}), input(DataType::kInt32, {1}, {1}), absent(), absent(),
              input(DataType::kInt32, {1}, {2})},
             {{10 + 10 / (1 + std::exp(-1.0))}, {1, 2, 7}, {10, 20, 7}});
    for (DataType type : {DataType::kFloat, DataType::kHalf})
        typedCases(list, type);
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Sizes z;
    z.batch = d.from(1, 3);
    z.rows = d.from(1, 6);
    z.capacity = d.from(z.rows, 60);
    z.keyHeads = d.from(1, 3);
    z.heads = z.keyHeads * d.from(1, 4);
    z.size = 2 * d.from(1, 40);
    z.valueSize = d.from(1, 80);
    z.before = d.chance(70) ? 0 : d.from(1, 20);
    z.rotary = d.chance(50) ? 2 * d.from(1, z.size / 2) : 0;
    z.interleaved = d.chance(50);
    z.byPair = d.chance(50);
    z.begins.clear();
    for (int64_t i = 0; i < z.batch; ++i)
        z.begins.push_back(double(d.from(-2, z.capacity)));
    Built b = built(d.type(), DataType::kFloat, z);
    for (size_t i = kKeyCache; i <= kNewValues; ++i)
        b.in[i].type = b.in[kQueries].type;
    b.a.attention.causal = d.chance(70);
    list.add(name, b.a, std::move(b.in));
}

} // namespace tw::ops::append_attention
