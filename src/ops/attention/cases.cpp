// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cases.h"

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

// Rows in front of batches: bits of q, k, v and y.
auto rowsFirst(int which)
{
    return [=](Attrs& t, std::vector<CaseInput>& in) {
        Operand* const operands[] = {&t.q, &t.k, &t.v};
        for (size_t i = 0; i < 3; ++i)
            if (which & 1 << i) {
                operands[i]->rowsFirst = true;
                std::swap(in[i].dims[0], in[i].dims[1]);
            }
        t.rowsFirst = which & 8;
    };
}

// Sequences one behind the other.
auto segments(std::vector<double> begins)
{
    return [=](Attrs& t, std::vector<CaseInput>& in) {
        t.segments = true;
        in.push_back(input(DataType::kInt32, {int64_t(begins.size())}, begins));
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
        add(fmt::format("size_{}", size), 2, 21, 35, 3, size, nothing);
    for (auto const& [size, values] : {std::pair<int64_t, int64_t>{64, 40}, {20, 33}, {32, 256}, {256, 48}}) {
        std::string const name = fmt::format("size_{}_values_{}", size, values);
        add(name, 2, 70, 35, 3, size, [&, values = values](Attrs& t, std::vector<CaseInput>& in) {
            t.valueSize = t.v.headStride = values;
            in[2] = x({2, 35, 3 * values});
        });
    }
    add("large_masked", 2, 70, 99, 2, 160, masked({x({1, 2, 70, 99})}));
    for (int64_t rows : {1, 16, 17, 64, 65, 150})
        add(fmt::format("rows_{}", rows), 1, rows, 70, 2, 64, nothing);
    for (int64_t columns : {1, 15, 16, 63, 128, 129, 197, 450})
        add(fmt::format("columns_{}", columns), 1, 70, columns, 2, 64, nothing);
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
        add(fmt::format("keys_of_{}", keys), 2, 33, 40, 6, 64, shared(false));
        add(fmt::format("keys_first_of_{}", keys), 2, 70, 40, 6, 64, shared(true));
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
    // As exporters write "hidden", padding in front: rows that see nothing weigh all keys alike.
    for (auto const& [rows, columns] : {std::pair<int64_t, int64_t>{1, 40}, {9, 9}, {70, 150}})
        add(fmt::format("lowest_mask_{}", rows), 2, rows, columns, 2, 64, [&](Attrs&, std::vector<CaseInput>& in) {
            std::vector<double> mask;
            for (int64_t b = 0; b < 2; ++b)
                for (int64_t i = 0; i < rows; ++i)
                    for (int64_t j = 0; j < columns; ++j)
                        mask.push_back(j >= 3 * b && j <= i + columns - rows && (b == 0 || rows > 1)
                                           ? 0
                                           : (isNarrowFloat(type) ? -2048 : kLowest));
            in.push_back(input(type, {2, 1, rows, columns}, mask));
        });
    for (int which : {1, 2, 4, 8, 15})
        add(fmt::format("rows_first_{}", which), 3, 70, 41, 2, 64, rowsFirst(which));
    add("rows_first_size_40", 2, 33, 70, 3, 40, rowsFirst(15));
    add("rows_first_one_head", 5, 33, 70, 1, 64, rowsFirst(15));
    for (bool apart : {false, true}) // all in one tensor, parts after each other or by heads
        add(apart ? "rows_first_packed_by_heads" : "rows_first_packed", 2, 65, 65, 3, 64,
            [&](Attrs& t, std::vector<CaseInput>& in) {
                t.q.headStride = t.k.headStride = t.v.headStride = apart ? 192 : 64;
                t.k.offset = apart ? 64 : 192;
                t.v.offset = 2 * t.k.offset;
                in[0] = in[1] = in[2] = x({2, 65, 576});
                rowsFirst(15)(t, in);
            });
    add("rows_first_mask_of_keys", 2, 70, 99, 2, 64, [&](Attrs& t, std::vector<CaseInput>& in) {
        rowsFirst(15)(t, in);
        in.push_back(x({2, 1, 1, 99}));
    });
    add("rows_first_causal", 2, 150, 150, 2, 64, [&](Attrs& t, std::vector<CaseInput>& in) {
        rowsFirst(15)(t, in);
        masked({lower(DataType::kBool, 150, 150)}, kLowest)(t, in);
    });
    struct Sequences
    {
        char const* name;
        int64_t rows;
        std::vector<double> begins;
    };
    for (Sequences const& q :
         {Sequences{"of_many_lengths", 200, {0, 1, 17, 81, 81, 144, 200}}, Sequences{"of_one", 70, {0, 70}},
          Sequences{"without_begins", 70, {}}, Sequences{"inside", 150, {20, 90}},
          Sequences{"in_no_order", 150, {60, -7, 10, 60, 2147483647, 90, -2147483648.0}},
          Sequences{"of_more_than_a_warp", 90, {0,  1,  2,  3,  4,  5,  7,  8,  10, 11, 12, 13, 14,
                                                15, 16, 17, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28,
                                                29, 30, 31, 32, 33, 34, 35, 36, 38, 50, 71, 80, 90}}})
        for (int64_t size : {40, 64, 128})
            add(fmt::format("segments_{}_size_{}", q.name, size), 1, q.rows, q.rows, 2, size, segments(q.begins));
    add("segments_of_300", 1, 700, 700, 2, 64, segments({0, 300, 400}));
    add("segments_of_batches", 2, 90, 90, 3, 64, segments({0, 11, 80}));
    add("segments_packed_by_heads", 1, 165, 165, 3, 64, [&](Attrs& t, std::vector<CaseInput>& in) {
        t.q.headStride = t.k.headStride = t.v.headStride = 192;
        t.k.offset = 64;
        t.v.offset = 128;
        in[0] = in[1] = in[2] = x({1, 165, 576});
        segments({0, 33, 98, 165})(t, in);
    });
    add("segments_that_share_keys", 1, 120, 120, 6, 64, [&](Attrs& t, std::vector<CaseInput>& in) {
        t.headsPerKey = 3;
        in[1] = in[2] = x({1, 120, 2 * 64});
        segments({0, 50})(t, in);
    });
    add("segments_rows_first", 2, 90, 90, 3, 64, [&](Attrs& t, std::vector<CaseInput>& in) {
        rowsFirst(15)(t, in);
        segments({0, 11, 80})(t, in);
    });
    for (int64_t size : {40, 64}) // each sequence keeps its NaN for itself
        add(fmt::format("segments_of_nan_size_{}", size), 1, 90, 90, 1, size,
            [&, size](Attrs& t, std::vector<CaseInput>& in) {
                std::vector<double> v;
                for (int64_t i = 0; i < 90 * size; ++i)
                    v.push_back(i / size >= 30 && i / size < 50 && i % size % 3 == 0 ? NAN
                                                                                     : double(i * 7 % 11) / 8 - 0.5);
                in[2] = input(type, {1, 90, size}, v);
                segments({0, 30, 50})(t, in);
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
        integers(fmt::format("size_{}", size), 2, 21, 35, 3, size, nothing);
    for (int64_t rows : {1, 17, 64, 150})
        integers(fmt::format("rows_{}", rows), 3, rows, 197, 2, 64, nothing);
    integers("values_33", 2, 70, 35, 3, 20, [&](Attrs& t, std::vector<CaseInput>& in) {
        t.valueSize = t.v.headStride = 33;
        in[2] = x({2, 35, 3 * 33});
    });
    for (int64_t size : {32, 64, 128, 256}) {
        integers(fmt::format("mask_of_keys_size_{}", size), 2, 70, 128, 2, size, masked({x({2, 1, 1, 128})}));
        integers(fmt::format("keep_and_mask_size_{}", size), 2, 33, 99, 2, size,
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
    integers("rows_first", 3, 70, 41, 2, 64, rowsFirst(15));
    integers("rows_first_size_40", 3, 70, 41, 2, 40, rowsFirst(15));
    integers("segments", 1, 165, 165, 3, 64, segments({0, 33, 98}));
    integers("segments_size_40", 1, 165, 165, 3, 40, segments({0, 33, 98}));
    integers("no_columns", 1, 3, 0, 2, 64, nothing);

    decoderCases(add, type, type);
    if (isNarrowFloat(type))
        decoderCases(add, type, DataType::kInt8);

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
            steps(fmt::format("{}{}", weights ? "steps_of_all_" : "steps_of_scores_", columns), 70, columns, 64, false,
                  weights, nothing);
    for (int64_t size : {40, 128, 160})
        steps(fmt::format("steps_size_{}", size), 21, 75, size, true, true, nothing);
    for (bool weights : {false, true})
        for (int64_t columns : {99, 200})
            steps(fmt::format("{}steps_of_sums_{}", weights ? "all_" : "", columns), 70, columns, 64, true, weights,
                  masked({x({2, 1, 1, columns})}));
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
    for (bool weights : {false, true})
        steps(weights ? "steps_of_all_segments" : "steps_of_segments", 270, 270, 64, false, weights,
              segments({0, 200, 230}));
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
    Attrs of = a; // the second image has one key, the third none
    of.lengths = of.causal = true;
    list.add("lengths_by_hand", of,
             {f32({3, 1, 2}, {2, 0, 2, 0, 2, 0}),
              f32({3, 3, 2}, {0, 5, ln3, 7, 9, 9, 0, 5, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}),
              f32({3, 3, 2}, {4, 8, 0, 4, 9, 9, 3, 7, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}),
              input(DataType::kInt32, {3}, {2, 1, 0})},
             {{1, 5, 3, 7, 0, 0}});
    Attrs sink = a; // two scores of 0 and one of nothing
    sink.sinks = true;
    list.add("sink_by_hand", sink,
             {f32({1, 1, 2}, {2, 0}), f32({1, 2, 2}, {0, 5, 0, 7}), f32({1, 2, 2}, {4, 8, 2, 4}), f32({1}, {0})},
             {{2, 4}});
    Attrs rows = a; // two batches of a query and two keys, row by row
    rows.rowsFirst = rows.q.rowsFirst = rows.k.rowsFirst = rows.v.rowsFirst = true;
    list.add("rows_first_by_hand", rows,
             {f32({1, 2, 2}, {2, 0, -2, 0}), f32({2, 2, 2}, {0, 5, 0, 3, ln3, 7, ln3, 1}),
              f32({2, 2, 2}, {4, 8, 8, 0, 0, 4, 4, 4})},
             {{1, 5, 7, 1}});
    Attrs sequences = a; // rows 0 and 1, and row 2
    sequences.segments = true;
    list.add("segments_by_hand", sequences,
             {f32({1, 3, 2}, {2, 0, -2, 0, 1, 1}), f32({1, 3, 2}, {0, 5, ln3, 7, 9, 9}),
              f32({1, 3, 2}, {4, 8, 0, 4, 6, 7}), input(DataType::kInt32, {3}, {0, 2, 3})},
             {{1, 5, 3, 7, 6, 7}});
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
        tokens(fmt::format("rows_{}", rows), 1, rows, 33, 2, 16, nothing);
    for (int64_t columns : {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 100, 197, 700})
        tokens(fmt::format("columns_{}", columns), 1, 5, columns, 2, 16, nothing);
    for (int64_t size : {1, 3, 8, 20, 32, 40, 64, 65})
        tokens(fmt::format("size_{}", size), 2, 9, 21, 3, size, nothing);
    tokens("mask_of_keys", 2, 9, 40, 2, 8, masked({f32({2, 1, 1, 40})}));
    tokens("mask_of_all", 2, 9, 40, 2, 8, masked({f32({2, 2, 9, 40})}));
    tokens("mask_of_heads", 2, 9, 40, 2, 8, masked({f32({1, 2, 9, 40})}));
    for (bool inverted : {false, true})
        tokens(inverted ? "keep_inverted" : "keep", 2, 9, 40, 2, 8,
               masked({input(DataType::kBool, {2, 1, 9, 40})}, -3, inverted));
    tokens("mask_of_many_keys", 2, 31, 331, 3, 24, masked({f32({2, 1, 1, 331})}));
    tokens("keep_and_mask", 1, 9, 19, 2, 8, masked({input(DataType::kBool, {1, 1, 9, 19}), f32({1, 1, 1, 19})}, -1e4));
    for (int64_t rows : {17, 40}) // each token sees itself and those before it
        tokens(fmt::format("causal_{}", rows), 2, rows, rows, 2, 8,
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
        tokens(fmt::format("merged_{}", i), 2, 9, 9, 3, 20, [&](Attrs& t, std::vector<CaseInput>& in) {
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
    for (DataType keys : {DataType::kHalf, DataType::kInt8})
        decoderCases(tokens, DataType::kFloat, keys);
    for (int64_t rows : {1, 9, 70})
        tokens(fmt::format("segments_causal_{}", rows), 1, rows + 45, rows + 45, 2, 32,
               [&](Attrs& t, std::vector<CaseInput>& in) {
                   t.causal = true;
                   t.window = rows == 9 ? 5 : 0;
                   segments({0, 15, 40})(t, in);
               });
    // y = 1 and 5 in steps of 0.25; 500 and -500 are beyond the ends.
    Attrs steps = attrsOf(1, 2, 0.5);
    steps.integers = true;
    list.add("integers_by_hand", steps,
             {f32({1, 1, 2}, {2, 0}), f32({1, 2, 2}, {0, 5, ln3, 7}), f32({1, 2, 2}, {4, 8, 0, 4}), f32({}, {0.25})},
             {{4, 20}});
    list.add("integers_beyond_the_ends", steps,
             {f32({1, 1, 2}, {2, 0}), f32({1, 1, 2}, {0, 5}), f32({1, 1, 2}, {500, -500}), f32({1}, {0.25})},
             {{127, -128}});
    tokens("segments_with_masks", 1, 40, 40, 2, 8, [](Attrs& t, std::vector<CaseInput>& in) {
        masked({input(DataType::kBool, {1, 1, 40, 40}), f32({1, 1, 1, 40})}, -1e4)(t, in);
        segments({0, 9, 30})(t, in);
    });
    for (int64_t rows : {1, 13, 29, 64})
        tokens(fmt::format("segments_of_{}", rows), 1, rows + 15, rows + 15, 3, 20, segments({0, 15}));
    tokens("segments_of_no_rows", 1, 0, 0, 2, 4, segments({0, 3}));
    tokens("long_heads_unscaled", 1, 31, 33, 2, 4100, [](Attrs& t, std::vector<CaseInput>&) { t.scale = 1; });
    tokens("negative_scale", 1, 9, 21, 2, 16, [](Attrs& t, std::vector<CaseInput>&) { t.scale = -0.7; });
    tokens("no_batch", 0, 3, 5, 2, 4, nothing);
    tokens("no_rows", 1, 0, 5, 2, 4, nothing);
    tokens("no_columns", 1, 3, 0, 2, 4, nothing);
}

} // namespace tw::ops::attention
