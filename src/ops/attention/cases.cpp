// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <cmath>

#include "ops/attention/op.h"

namespace tw::ops::attention {

namespace {

Attrs attrsOf(int64_t heads, int64_t size, double scale)
{
    Attrs a;
    a.heads = heads;
    a.size = a.valueSize = a.q.headStride = a.k.headStride = a.v.headStride = size;
    a.scale = scale;
    return a;
}

constexpr double kLowest = -3.4028234663852886e38;

// A mask by which each token sees itself and those before it; the last token of the rows is that of the columns.
CaseInput lower(DataType type, int64_t rows, int64_t columns, double seen = 1, double other = 0)
{
    std::vector<double> v;
    for (int64_t i = 0; i < rows * columns; ++i)
        v.push_back(i % columns <= i / columns + columns - rows ? seen : other);
    return constant(type, {1, 1, rows, columns}, v);
}

// Masks behind queries, keys and values; what those of bools hide becomes `fill`.
auto masked(std::vector<CaseInput> masks, double fill = Attrs().fill, bool keepInverted = false)
{
    return [=](Attrs& t, std::vector<CaseInput>& in) {
        t.fill = fill;
        t.keepInverted = keepInverted;
        in.insert(in.end(), masks.begin(), masks.end());
    };
}

// For tactics on tensor cores: whole and broken tiles, every way to lie in memory, every mask.
template <class Tokens>
void fused(Tokens const& tokens, DataType type)
{
    auto add = [&](std::string const& name, int64_t batch, int64_t rows, int64_t columns, int64_t heads, int64_t size,
                   auto change) {
        tokens(std::string(nameOf(type)) + "_" + name, batch, rows, columns, heads, size,
               [&](Attrs& t, std::vector<CaseInput>& in) {
                   for (CaseInput& i : in)
                       i.type = type;
                   change(t, in);
               });
    };
    auto x = [&](Extents const& e) { return input(type, e); };
    auto nothing = [](Attrs&, std::vector<CaseInput>&) {};
    for (int64_t size : {1, 5, 8, 16, 18, 20, 36, 40, 64, 80, 96, 127, 128, 130, 160, 200, 256})
        add("size_" + std::to_string(size), 2, 21, 35, 3, size, nothing);
    for (auto const& [size, values] : {std::pair<int64_t, int64_t>{64, 40}, {20, 33}, {32, 256}, {256, 48}}) {
        std::string const name = "size_" + std::to_string(size) + "_values_" + std::to_string(values);
        add(name, 2, 70, 35, 3, size, [&, values = values](Attrs& t, std::vector<CaseInput>& in) {
            t.valueSize = t.v.headStride = values;
            in[2] = x({2, 35, 3 * values});
        });
    }
    add("large_masked", 2, 70, 99, 2, 160, masked({x({1, 2, 70, 99})}));
    for (int64_t rows : {1, 16, 17, 64, 65, 150})
        add("rows_" + std::to_string(rows), 1, rows, 70, 2, 64, nothing);
    for (int64_t columns : {1, 15, 16, 63, 128, 129, 197, 450})
        add("columns_" + std::to_string(columns), 1, 70, columns, 2, 64, nothing);
    add("one_head", 2, 33, 33, 1, 64, nothing);
    add("many_heads", 9, 70, 50, 15, 64, nothing); // more blocks than a GPU has multiprocessors
    add("heads_first", 2, 70, 41, 3, 64, [&](Attrs&, std::vector<CaseInput>& in) {
        in = {x({2, 3, 70, 64}), x({2, 3, 41, 64}), x({2, 3, 41, 64})};
    });
    for (int64_t keys : {1, 2, 3}) { // heads of keys and values, which 6 heads of queries share
        auto const shared = [&, keys](bool apart) {
            return [&, keys, apart](Attrs& t, std::vector<CaseInput>& in) {
                t.headsPerKey = 6 / keys;
                in[1] = in[2] = apart ? x({2, keys, 40, 64}) : x({2, 40, keys * 64});
            };
        };
        add("keys_of_" + std::to_string(keys), 2, 33, 40, 6, 64, shared(false));
        add("keys_first_of_" + std::to_string(keys), 2, 70, 40, 6, 64, shared(true));
    }
    add("keys_of_2_size_40", 2, 33, 70, 6, 40, [&](Attrs& t, std::vector<CaseInput>& in) {
        t.headsPerKey = 3;
        in[1] = in[2] = x({2, 70, 80});
        in.push_back(x({1, 6, 33, 70}));
    });
    for (bool apart : {false, true}) // all in one tensor, parts after each other or by heads
        add(apart ? "packed_by_heads" : "packed", 2, 65, 65, 3, 64, [&](Attrs& t, std::vector<CaseInput>& in) {
            t.q.headStride = t.k.headStride = t.v.headStride = apart ? 192 : 64;
            t.k.offset = apart ? 64 : 192;
            t.v.offset = 2 * t.k.offset;
            in[0] = in[1] = in[2] = x({2, 65, 576});
        });
    struct Masked
    {
        char const* name;
        int64_t columns;
        Extents dims;
    };
    for (Masked const& m : {Masked{"keys", 128, {2, 1, 1, 128}}, Masked{"odd_keys", 99, {2, 1, 1, 99}},
                            Masked{"all", 128, {2, 2, 70, 128}}, Masked{"odd_all", 99, {1, 1, 70, 99}}}) {
        add("mask_of_" + std::string(m.name), 2, 70, m.columns, 2, 64, masked({x(m.dims)}));
        add("keep_" + std::string(m.name), 2, 70, m.columns, 2, 64,
            masked({input(DataType::kBool, m.dims)}, -3, m.columns == 99));
    }
    add("keep_and_mask", 2, 70, 200, 2, 64, masked({input(DataType::kBool, {1, 1, 70, 200}), x({2, 1, 1, 200})}, -1e4));
    auto causal = [&](std::string const& name, int64_t rows, int64_t columns, double seen, double other, bool keep,
                      double fill) {
        add("causal_" + name, 2, rows, columns, 2, 64,
            masked({lower(keep ? DataType::kBool : type, rows, columns, seen, other)}, fill));
    };
    causal("keep", 150, 150, 1, 0, true, kLowest);
    causal("mild", 70, 70, 1, 0, true, -1e4); // too near to scores to be left out
    causal("added", 150, 150, 0, -INFINITY, false, 0);
    causal("behind", 70, 150, 1, 0, true, kLowest);
    causal("without_columns", 150, 70, 0, -INFINITY, false, 0); // of the first 80 rows
    add("all_masked", 1, 17, 40, 1, 64, [&](Attrs& t, std::vector<CaseInput>& in) {
        t.fill = kLowest;
        std::vector<double> some(17 * 40);
        some[0] = some[45] = 1;
        in.push_back(constant(DataType::kBool, {1, 1, 17, 40}, some));
    });
    add("unaligned", 1, 9, 21, 2, 16, [&](Attrs& t, std::vector<CaseInput>& in) {
        t.q.offset = 4;
        in[0] = x({1, 9, 36});
    });
    add("odd_columns", 2, 70, 70, 2, 24, [&](Attrs& t, std::vector<CaseInput>& in) { // rows that begin anywhere
        t.k.offset = 49;
        t.v.offset = 97;
        t.q.headStride = t.k.headStride = t.v.headStride = 24;
        in[0] = in[1] = in[2] = x({2, 70, 145});
    });
    add("no_columns", 1, 3, 0, 2, 64, nothing);

    auto integers = [&](std::string const& name, int64_t batch, int64_t rows, int64_t columns, int64_t heads,
                        int64_t size, auto change) {
        add("integers_" + name, batch, rows, columns, heads, size, [&](Attrs& t, std::vector<CaseInput>& in) {
            change(t, in);
            t.integers = true;
            in.push_back(constant(DataType::kFloat, size == 64 ? Extents{} : Extents{1}));
        });
    };
    for (int64_t size : {1, 5, 16, 20, 32, 40, 64, 80, 96, 127, 128, 130, 160, 256})
        integers("size_" + std::to_string(size), 2, 21, 35, 3, size, nothing);
    for (int64_t rows : {1, 17, 64, 150})
        integers("rows_" + std::to_string(rows), 3, rows, 197, 2, 64, nothing);
    integers("values_33", 2, 70, 35, 3, 20, [&](Attrs& t, std::vector<CaseInput>& in) {
        t.valueSize = t.v.headStride = 33;
        in[2] = x({2, 35, 3 * 33});
    });
    for (int64_t size : {32, 64, 128, 256}) {
        integers("mask_of_keys_size_" + std::to_string(size), 2, 70, 128, 2, size, masked({x({2, 1, 1, 128})}));
        integers("keep_and_mask_size_" + std::to_string(size), 2, 33, 99, 2, size,
                 masked({input(DataType::kBool, {1, 1, 33, 99}), x({2, 1, 1, 99})}, -1e4));
    }
    integers("causal", 2, 150, 150, 2, 64, masked({lower(DataType::kBool, 150, 150)}, kLowest));
    integers("packed", 2, 65, 65, 3, 64, [&](Attrs& t, std::vector<CaseInput>& in) {
        t.k.offset = 192;
        t.v.offset = 384;
        in[0] = in[1] = in[2] = x({2, 65, 576});
    });
    integers("heads_first", 2, 70, 41, 3, 64, [&](Attrs&, std::vector<CaseInput>& in) {
        in = {x({2, 3, 70, 64}), x({2, 3, 41, 64}), x({2, 3, 41, 64})};
    });
    integers("keys_of_2", 2, 33, 40, 6, 64, [&](Attrs& t, std::vector<CaseInput>& in) {
        t.headsPerKey = 3;
        in[1] = in[2] = x({2, 40, 2 * 64});
    });
    integers("no_columns", 1, 3, 0, 2, 64, nothing);

    // Roundings: numbers are integers, so that scores lie between edges of steps by thirds.
    auto steps = [&](std::string const& name, int64_t rows, int64_t columns, int64_t size, bool sums, bool weights,
                     auto change) {
        add(name, 2, rows, columns, 3, size, [&](Attrs& t, std::vector<CaseInput>& in) {
            t.scale = 1 / 24.0;
            t.scoreStep = 3 * t.scale;
            t.sumStep = sums ? 3 * t.scoreStep : 0;
            t.weightStep = weights ? 1 / 512.0 : 0;
            change(t, in);
        });
    };
    for (int64_t columns : {1, 35, 64, 128, 300})
        for (bool weights : {false, true})
            steps((weights ? "steps_of_all_" : "steps_of_scores_") + std::to_string(columns), 70, columns, 64, false,
                  weights, nothing);
    for (int64_t size : {40, 128, 160})
        steps("steps_size_" + std::to_string(size), 21, 75, size, true, true, nothing);
    for (bool weights : {false, true})
        for (int64_t columns : {99, 200})
            steps(std::string(weights ? "all_" : "") + "steps_of_sums_" + std::to_string(columns), 70, columns, 64,
                  true, weights, masked({x({2, 1, 1, columns})}));
    steps("steps_keep_and_mask", 70, 99, 64, true, true, [&](Attrs& t, std::vector<CaseInput>& in) {
        t.fill = kLowest; // hidden keys keep the weight of the lowest step
        in.push_back(input(DataType::kBool, {2, 1, 70, 99}));
        in.push_back(x({1, 3, 70, 99}));
    });
    steps("steps_hidden_keys", 70, 99, 64, true, false, [&](Attrs&, std::vector<CaseInput>& in) {
        std::vector<double> hidden(99);
        for (size_t j = 60; j < hidden.size(); ++j)
            hidden[j] = -INFINITY;
        in.push_back(constant(type, {1, 1, 1, 99}, hidden));
    });
    steps("steps_causal", 150, 150, 64, false, true, masked({lower(DataType::kBool, 150, 150)}, kLowest));
    steps("steps_causal_sums", 70, 70, 64, true, false, [&](Attrs& t, std::vector<CaseInput>& in) {
        t.fill = kLowest; // by which nothing is left out then
        in.push_back(lower(DataType::kBool, 70, 70));
    });
    steps("steps_no_columns", 3, 0, 64, true, true, nothing);
}

} // namespace

void cases(CaseList& list)
{
    double const ln3 = 1.0986122886681098;
    // Scores of one query against two keys: 0 and ln 3, so that the weights are 1/4 and 3/4.
    Attrs a = attrsOf(1, 2, 0.5);
    list.add("by_hand", a, {f32({1, 1, 2}, {2, 0}), f32({1, 2, 2}, {0, 5, ln3, 7}), f32({1, 2, 2}, {4, 8, 0, 4})},
             {{1, 5}});
    list.add("mask_by_hand", a,
             {f32({1, 1, 2}, {2, 0}), f32({1, 2, 2}, {0, 5, ln3, 7}), f32({1, 2, 2}, {4, 8, 0, 4}),
              f32({1, 1, 1, 2}, {ln3, 0})},
             {{2, 6}});
    Attrs two = a; // of queries, on one of keys and values
    two.heads = two.headsPerKey = 2;
    list.add("shared_by_hand", two,
             {f32({1, 1, 4}, {2, 0, -2, 0}), f32({1, 2, 2}, {0, 5, ln3, 7}), f32({1, 2, 2}, {4, 8, 0, 4})},
             {{1, 5, 3, 7}});
    a.fill = 0;
    list.add("keep_by_hand", a,
             {f32({1, 1, 2}, {2, 0}), f32({1, 2, 2}, {9, 5, ln3, 7}), f32({1, 2, 2}, {4, 8, 0, 4}),
              input(DataType::kBool, {1, 1, 1, 2}, {0, 1})},
             {{1, 5}});
    auto tokens = [&](std::string const& name, int64_t batch, int64_t rows, int64_t columns, int64_t heads,
                      int64_t size, auto change) {
        Attrs t = attrsOf(heads, size, 1 / std::sqrt(double(size)));
        std::vector<CaseInput> in{f32({batch, rows, heads * size}), f32({batch, columns, heads * size}),
                                  f32({batch, columns, heads * size})};
        change(t, in);
        list.add(name, t, std::move(in)).isConstant = columns == 0; // zeros: there is nothing to attend to
    };
    auto nothing = [](Attrs&, std::vector<CaseInput>&) {};
    for (int64_t rows : {1, 2, 13, 14, 15, 29, 64})
        tokens("rows_" + std::to_string(rows), 1, rows, 33, 2, 16, nothing);
    for (int64_t columns : {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 100, 197, 700})
        tokens("columns_" + std::to_string(columns), 1, 5, columns, 2, 16, nothing);
    for (int64_t size : {1, 3, 8, 20, 32, 40, 64, 65})
        tokens("size_" + std::to_string(size), 2, 9, 21, 3, size, nothing);
    tokens("mask_of_keys", 2, 9, 40, 2, 8, masked({f32({2, 1, 1, 40})}));
    tokens("mask_of_all", 2, 9, 40, 2, 8, masked({f32({2, 2, 9, 40})}));
    tokens("mask_of_heads", 2, 9, 40, 2, 8, masked({f32({1, 2, 9, 40})}));
    for (bool inverted : {false, true})
        tokens(inverted ? "keep_inverted" : "keep", 2, 9, 40, 2, 8,
               masked({input(DataType::kBool, {2, 1, 9, 40})}, -3, inverted));
    tokens("mask_of_many_keys", 2, 31, 331, 3, 24, masked({f32({2, 1, 1, 331})}));
    tokens("keep_and_mask", 1, 9, 19, 2, 8, masked({input(DataType::kBool, {1, 1, 9, 19}), f32({1, 1, 1, 19})}, -1e4));
    for (int64_t rows : {17, 40}) // each token sees itself and those before it
        tokens("causal_" + std::to_string(rows), 2, rows, rows, 2, 8,
               masked({lower(DataType::kBool, rows, rows)}, kLowest));
    tokens("row_ends_and_mask", 2, 33, 77, 2, 12, [&](Attrs& t, std::vector<CaseInput>& in) { // in no order
        t.fill = kLowest;
        t.keepInverted = true;
        std::vector<double> ends;
        for (int64_t i = 0; i < 33 * 77; ++i)
            ends.push_back(i % 77 > i / 77 * 29 % 77);
        in.push_back(constant(DataType::kBool, {1, 1, 33, 77}, ends));
        in.push_back(f32({2, 1, 33, 77}));
    });
    tokens("all_masked", 1, 3, 5, 1, 4, [](Attrs& t, std::vector<CaseInput>& in) { // weights are equal then
        t.fill = kLowest;
        in.push_back(constant(DataType::kBool, {1, 1, 3, 5}, {0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1}));
    });
    tokens("heads_first", 2, 9, 21, 3, 20, [](Attrs&, std::vector<CaseInput>& in) {
        in = {f32({2, 3, 9, 20}), f32({2, 3, 21, 20}), f32({2, 3, 21, 20})};
    });
    tokens("other_value_size", 2, 9, 21, 3, 20, [](Attrs& t, std::vector<CaseInput>& in) {
        t.valueSize = t.v.headStride = 34;
        in[2] = f32({2, 21, 3 * 34});
    });
    for (int i = 0; i < 3; ++i) // parts of one row of 3 * 3 * 20 columns, two ways
        tokens("merged_" + std::to_string(i), 2, 9, 9, 3, 20, [&](Attrs& t, std::vector<CaseInput>& in) {
            int64_t const step = i == 0 ? 60 : 20;
            t.q.headStride = t.k.headStride = t.v.headStride = i == 0 ? 20 : 60;
            t.q.offset = 0;
            t.k.offset = step;
            t.v.offset = i == 2 ? 0 : 2 * step;
            in[0] = in[1] = in[2] = f32({2, 9, 180});
        });
    tokens("half", 1, 9, 21, 2, 16, [](Attrs&, std::vector<CaseInput>& in) {
        for (CaseInput& x : in)
            x.type = DataType::kHalf;
        in.push_back(input(DataType::kHalf, {1, 1, 9, 21}));
    });
    for (DataType type : {DataType::kHalf, DataType::kFloat})
        fused(tokens, type);
    // y = 1 and 5 in steps of 0.25; 500 and -500 are beyond the ends.
    Attrs steps = attrsOf(1, 2, 0.5);
    steps.integers = true;
    list.add("integers_by_hand", steps,
             {f32({1, 1, 2}, {2, 0}), f32({1, 2, 2}, {0, 5, ln3, 7}), f32({1, 2, 2}, {4, 8, 0, 4}), f32({}, {0.25})},
             {{4, 20}});
    list.add("integers_beyond_the_ends", steps,
             {f32({1, 1, 2}, {2, 0}), f32({1, 1, 2}, {0, 5}), f32({1, 1, 2}, {500, -500}), f32({1}, {0.25})},
             {{127, -128}});
    tokens("negative_scale", 1, 9, 21, 2, 16, [](Attrs& t, std::vector<CaseInput>&) { t.scale = -0.7; });
    tokens("no_batch", 0, 3, 5, 2, 4, nothing);
    tokens("no_rows", 1, 0, 5, 2, 4, nothing);
    tokens("no_columns", 1, 3, 0, 2, 4, nothing);
}

} // namespace tw::ops::attention
