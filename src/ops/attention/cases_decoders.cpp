// SPDX-License-Identifier: Apache-2.0
// Cases of lengths, places and what else decoders have.
#include "ops/attention/cases.h"

namespace tw::ops::attention {

namespace {

// Keys that images have, the last queries of which are those there.
auto lengths(std::vector<double> of, bool causal = true)
{
    return [=](Attrs& t, std::vector<CaseInput>& in) {
        t.lengths = true;
        t.causal = causal;
        in.push_back(input(DataType::kInt32, {int64_t(of.size())}, of));
    };
}

using AddCase = std::function<void(std::string const& name, int64_t batch, int64_t rows, int64_t columns, int64_t heads,
                                   int64_t size, ChangeCase const& change)>;

// Keys and values in blocks of 16 rows, of which some are of several images; some numbers of blocks are beyond the first and the last.
void pagedCases(AddCase const& with, DataType type, DataType keys)
{
    struct Blocks
    {
        int64_t images, pages, blocks, heads, size;
    };
    auto paged = [keys](Blocks const& b, std::vector<double> const& of, bool causal = true) {
        return [=](Attrs& t, std::vector<CaseInput>& in) {
            t.headsPerKey = t.heads / b.heads;
            in[1] = in[2] = input(keys, {b.blocks, b.heads, 16, b.size});
            lengths(of, causal)(t, in);
            t.pages = true;
            in.push_back(input(DataType::kInt32, {b.images, b.pages}));
        };
    };
    for (int64_t size : {16, 32, 48, 64, 96, 128, 256})
        for (int64_t rows : {1, 4, 70})
            with(fmt::format("pages_of_size_{}_rows_{}", size, rows), 3, rows, 0, 2, size,
                 paged({3, 5, 9, 2, size}, {80, rows + 1.0, 71}));
    for (int64_t shared : {2, 4, 5, 8})
        for (int64_t rows : {1, 3, 40})
            with(fmt::format("pages_{}_share_{}_rows", shared, rows), 2, rows, 0, 2 * shared, 64,
                 paged({2, 6, 20, 2, 64}, {90, 47}));
    for (int64_t rows : {1, 5, 80})
        for (int64_t window : {1, 7, 64, 500})
            with(fmt::format("pages_window_{}_rows_{}", window, rows), 2, rows, 0, 2, 64,
                 [&](Attrs& t, std::vector<CaseInput>& in) {
                     t.window = window;
                     paged({2, 13, 26, 2, 64}, {200, 83})(t, in);
                 });
    with("pages_lengths_anywhere", 5, 3, 0, 2, 64, paged({5, 4, 7, 2, 64}, {0, 2, 64, 1000, -7}));
    with("pages_not_causal", 3, 20, 0, 3, 64, paged({3, 9, 4, 3, 64}, {0, 9, 130}, false));
    with("pages_long", 1, 1, 0, 1, 64, paged({1, 188, 200, 1, 64}, {2990}));
    with("pages_long_heads", 2, 1, 0, 3, 128, paged({2, 70, 90, 3, 128}, {1100, 1120}));
    with("pages_one_block", 2, 2, 0, 2, 32, paged({2, 3, 1, 2, 32}, {48, 5}));
    with("pages_unaligned", 2, 1, 0, 2, 20, paged({2, 4, 6, 2, 20}, {60, 31}));
    for (int64_t rows : {1, 5, 80})
        with(fmt::format("pages_all_rows_{}", rows), 3, rows, 0, 6, 32, [&](Attrs& t, std::vector<CaseInput>& in) {
            t.headsPerKey = 3;
            in[1] = in[2] = input(keys, {25, 2, 16, 32});
            masked({input(type, {3, 1, rows, 160}), input(DataType::kBool, {1, 6, 1, 160})}, -3, rows == 5)(t, in);
            lengths({150, 0, 91})(t, in);
            t.window = 40;
            t.softcap = 2;
            t.sinks = t.slopes = t.pages = true;
            in.push_back(input(type, {6}));
            in.push_back(input(DataType::kFloat, {6}, {1, 0.5, 0.25, 0.125, 0, -0.25}));
            in.push_back(input(DataType::kInt32, {3, 10}));
        });
    with("pages_other_values", 2, 2, 0, 2, 64, [&](Attrs& t, std::vector<CaseInput>& in) {
        t.valueSize = t.v.headStride = 32;
        paged({2, 4, 6, 2, 64}, {60, 31})(t, in);
        in[2] = input(keys, {6, 2, 16, 32});
    });
    with("pages_without_blocks", 2, 2, 0, 2, 64, paged({2, 4, 0, 2, 64}, {60, 31}));
    with("pages_of_none", 2, 2, 0, 2, 64, paged({2, 0, 6, 2, 64}, {60, 31}));
}

} // namespace

void decoderCases(AddTokens const& add, DataType type, DataType keys)
{
    bool const isMixed = keys != type, isInteger = isQuantized(keys);
    auto x = [&](Extents const& e) { return input(type, e); };
    auto with = [&](std::string const& name, int64_t batch, int64_t rows, int64_t columns, int64_t heads, int64_t size,
                    ChangeCase const& change) {
        add("decoder_" +
                std::string(isInteger ? "int8_"
                            : isMixed ? "half_"
                                      : "") +
                name,
            batch, rows, columns, heads, size, [&](Attrs& t, std::vector<CaseInput>& in) {
                if (isMixed)
                    in[1].type = in[2].type = keys;
                change(t, in);
                if (isInteger) {
                    t.scales = true;
                    in.resize(in.size() + 2, input(DataType::kFloat, {t.keyHeads()}));
                }
            });
    };
    for (int64_t size : {16, 32, 48, 64, 96, 128, 256}) {
        with(fmt::format("one_of_size_{}", size), 3, 1, 75, 3, size, lengths({75, 1, 40}));
        with(fmt::format("four_of_size_{}", size), 2, 4, 140, 2, size, lengths({3, 133}));
        with(fmt::format("many_of_size_{}", size), 2, 70, 140, 2, size, lengths({101, 140}));
    }
    with("without_lengths", 2, 1, 130, 3, 64, [](Attrs&, std::vector<CaseInput>&) {});
    with("causal", 2, 90, 130, 3, 64, [](Attrs& t, std::vector<CaseInput>&) { t.causal = true; });
    with("causal_without_columns", 2, 90, 50, 3, 64, [](Attrs& t, std::vector<CaseInput>&) { t.causal = true; });
    with("not_causal", 3, 20, 130, 3, 64, lengths({0, 9, 130}, false));
    with("lengths_anywhere", 5, 3, 70, 2, 64, lengths({0, 2, 70, 1000, -7}));
    with("long", 1, 1, 3000, 1, 64, lengths({2990}));
    with("long_heads", 1, 1, 1100, 3, 128, lengths({1100}));
    for (int64_t shared : {2, 4, 5, 8, 12}) // queries on one head of keys
        for (int64_t rows : {1, 3, 33}) {
            int64_t const heads = 2 * shared;
            with(fmt::format("{}_share_{}_rows", shared, rows), 2, rows, 90, heads, 64,
                 [&](Attrs& t, std::vector<CaseInput>& in) {
                     t.headsPerKey = shared;
                     in[1].dims = in[2].dims = {2, 90, 2 * 64};
                     lengths({90, 47})(t, in);
                 });
        }
    for (int64_t rows : {1, 5, 80})
        for (int64_t window : {1, 7, 64, 500})
            with(fmt::format("window_{}_rows_{}", window, rows), 2, rows, 200, 2, 64,
                 [&](Attrs& t, std::vector<CaseInput>& in) {
                     t.window = window;
                     lengths({200, 83})(t, in);
                 });
    with("window_alone", 1, 90, 90, 2, 64, [](Attrs& t, std::vector<CaseInput>&) { t.window = 9; });
    for (int64_t rows : {1, 5, 80}) {
        auto name = [&](char const* what) { return fmt::format("{}_rows_{}", what, rows); };
        with(name("softcap"), 2, rows, 90, 2, 64, [&](Attrs& t, std::vector<CaseInput>& in) {
            t.softcap = 1.5;
            lengths({90, 81})(t, in);
        });
        with(name("sinks"), 2, rows, 90, 2, 64, [&](Attrs& t, std::vector<CaseInput>& in) {
            lengths({90, 3})(t, in);
            t.sinks = true;
            in.push_back(x({2}));
        });
        with(name("slopes"), 2, rows, 90, 2, 64, [&](Attrs& t, std::vector<CaseInput>& in) {
            lengths({90, 81})(t, in);
            t.slopes = true;
            in.push_back(input(DataType::kFloat, {2}, {0.5, 0.0625}));
        });
        with(name("mask"), 2, rows, 90, 2, 64, [&](Attrs& t, std::vector<CaseInput>& in) {
            masked({x({2, 1, rows, 90}), input(DataType::kBool, {1, 2, 1, 90})}, -3, rows == 5)(t, in);
            lengths({90, 81})(t, in);
        });
        with(name("mask_alone"), 2, rows, 90, 2, 64, masked({x({2, 1, rows, 90})}));
        with(name("all"), 3, rows, 150, 6, 32, [&](Attrs& t, std::vector<CaseInput>& in) {
            t.headsPerKey = 3;
            t.q.headStride = 32;
            in[1] = in[2] = input(keys, {3, 2, 150, 32}); // heads first, as caches lie
            in.push_back(x({3, 1, rows, 150}));
            lengths({150, 0, 91})(t, in);
            t.window = 40;
            t.softcap = 2;
            t.sinks = t.slopes = true;
            in.push_back(x({6}));
            in.push_back(input(DataType::kFloat, {6}, {1, 0.5, 0.25, 0.125, 0, -0.25}));
        });
    }
    for (int64_t rows :
         {1, 3, 40}) // the second image of a group reads what the first one wrote, and the other way round
        with(fmt::format("table_rows_{}", rows), 6, rows, 150, 4, 32, [&](Attrs& t, std::vector<CaseInput>& in) {
            t.headsPerKey = 2;
            in[1] = in[2] = input(keys, {6, 2, 150, 32});
            lengths({150, 0, 91, 100, 33, 1})(t, in);
            t.table = true;
            in.push_back(input(DataType::kInt32, {2, 3, 150}));
        });
    with("table_of_one", 2, 1, 70, 2, 64, [&](Attrs& t, std::vector<CaseInput>& in) {
        t.table = true;
        in.push_back(input(DataType::kInt32, {2, 1, 70}));
    });
    with("table_long", 4, 1, 1100, 2, 64, [&](Attrs& t, std::vector<CaseInput>& in) {
        lengths({1100, 7, 1000, 600})(t, in);
        t.table = true;
        in.push_back(input(DataType::kInt32, {1, 4, 1100}));
    });
    with("table_all", 4, 2, 75, 2, 64, [&](Attrs& t, std::vector<CaseInput>& in) {
        in.push_back(x({4, 1, 2, 75}));
        lengths({75, 70, 3, 60})(t, in);
        t.window = 40;
        t.sinks = t.slopes = t.table = true;
        in.push_back(x({2}));
        in.push_back(input(DataType::kFloat, {2}, {0.5, 0.0625}));
        in.push_back(input(DataType::kInt32, {2, 2, 75}));
    });
    with("table_unaligned", 4, 1, 60, 2, 20, [&](Attrs& t, std::vector<CaseInput>& in) {
        lengths({60, 31, 4, 9})(t, in);
        t.table = true;
        in.push_back(input(DataType::kInt32, {2, 2, 60}));
    });
    with("short_heads_first", 3, 2, 64, 9, 8, [&](Attrs& t, std::vector<CaseInput>& in) {
        t.headsPerKey = 3;
        in[0] = x({3, 9, 2, 8});
        in[1] = in[2] = input(keys, {3, 3, 64, 8});
        lengths({29, 39, 53})(t, in);
        t.softcap = 1.4;
        t.slopes = true;
        in.push_back(input(DataType::kFloat, {9}, {0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09}));
    });
    with("unaligned", 2, 1, 60, 2, 20, lengths({60, 31}));
    with("other_values", 2, 2, 60, 2, 64, [&](Attrs& t, std::vector<CaseInput>& in) {
        t.valueSize = t.v.headStride = 32;
        in[2].dims = {2, 60, 2 * 32};
        lengths({60, 31})(t, in);
    });
    with("no_columns", 2, 2, 0, 2, 64, lengths({0, 0}));
    pagedCases(with, type, keys);
}

} // namespace tw::ops::attention
