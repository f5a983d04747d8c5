// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <limits>

#include "cases/draw.h"
#include "ops/token_scores/op.h"

namespace tw::ops::token_scores {

namespace {

CaseInput i32(Extents const& dims, std::vector<double> values = {})
{
    return input(DataType::kInt32, dims, std::move(values));
}

Attrs attrs(int64_t beams, bool logSoftmax)
{
    Attrs a;
    a.beams = beams;
    a.logSoftmax = logSoftmax;
    return a;
}

double const kNever = -std::numeric_limits<double>::infinity();

// Columns of integers: top k, least length, most length, n-gram, seed, seed, stream, end, pad.
void byHand(CaseList& list)
{
    CaseInput const logits = f32({1, 6}, {1, -2, 3, 0.5, 4, -1});
    // Token 1 stands in the prompt alone, 2 in both parts, 4 twice behind the prompt; 9 and -1 are no tokens.
    CaseInput const sequence = i32({1, 8}, {1, 2, 9, 2, 4, 4, -1, 5});
    CaseInput const length = i32({1}, {7}), prompt = i32({1}, {3}), none = i32({1, 1}, {0});
    list.add("repetition_by_hand", attrs(1, false), {logits, sequence, length, prompt, f32({1, 4}, {1, 1, 0, 2}), none},
             {{1, -4, 1.5, 0.5, 2, -1}});
    list.add("presence_by_hand", attrs(1, false),
             {logits, sequence, length, prompt, f32({1, 5}, {1, 1, 0, 1, 0.5}), none}, {{1, -2, 2.5, 0.5, 3.5, -1}});
    list.add("frequency_by_hand", attrs(1, false),
             {logits, sequence, length, prompt, f32({1, 6}, {1, 1, 0, 1, 0, 0.25}), none},
             {{1, -2, 2.75, 0.5, 3.5, -1}});
    list.add("all_penalties_by_hand", attrs(1, false),
             {logits, sequence, length, prompt, f32({1, 6}, {1, 1, 0, 2, 0.5, 0.25}), none},
             {{1, -4, 0.75, 0.5, 1, -1}});
    // Behind 1 2 came 3 and 0.
    CaseInput const grams = i32({1, 8}, {1, 2, 3, 1, 2, 0, 1, 2});
    list.add("ngram_by_hand", attrs(1, false),
             {logits, grams, i32({1}, {8}), i32({1}, {0}), f32({1, 1}, {1}), i32({1, 4}, {0, 0, 0, 3})},
             {{kNever, -2, 3, kNever, 4, -1}});
    list.add("ngram_of_one_by_hand", attrs(1, false),
             {logits, grams, i32({1}, {3}), i32({1}, {0}), f32({1, 1}, {1}), i32({1, 4}, {0, 0, 0, 1})},
             {{1, kNever, kNever, kNever, 4, -1}});
    list.add("ngram_longer_than_all_by_hand", attrs(1, false),
             {logits, grams, i32({1}, {8}), i32({1}, {0}), f32({1, 1}, {1}), i32({1, 4}, {0, 0, 0, 9})},
             {{1, -2, 3, 0.5, 4, -1}});
    list.add("least_length_by_hand", attrs(1, false),
             {logits, grams, i32({1}, {5}), i32({1}, {0}), f32({1, 1}, {1}), i32({1, 8}, {0, 6, 0, 0, 0, 0, 0, 2}),
              i32({3}, {-1, 5, 77})},
             {{1, -2, kNever, 0.5, 4, kNever}});
    list.add("long_enough_by_hand", attrs(1, false),
             {logits, grams, i32({1}, {6}), i32({1}, {0}), f32({1, 1}, {1}), i32({1, 8}, {0, 6, 0, 0, 0, 0, 0, 2}),
              i32({3}, {-1, 5, 77})},
             {{1, -2, 3, 0.5, 4, -1}});
    // Words 4; 1 2 3; 0 5; then an end that does not rise.
    list.add("bad_words_by_hand", attrs(1, false),
             {logits, grams, i32({1}, {8}), i32({1}, {0}), f32({1, 1}, {1}), i32({1, 1}, {0}), absent(),
              i32({1, 2, 7}, {4, 1, 2, 3, 0, 5, 0, 1, 4, 6, 6, 7, -1, -1})},
             {{1, -2, 3, kNever, kNever, -1}});
    list.add("bad_ends_by_hand", attrs(1, false),
             {logits, grams, i32({1}, {8}), i32({1}, {0}), f32({1, 1}, {1}), i32({1, 1}, {0}), absent(),
              i32({1, 2, 2}, {4, 3, 1, 2000000000})},
             {{1, -2, 3, 0.5, kNever, -1}});
    list.add("numbers_by_hand", attrs(1, false),
             {f32({1, 4}, {std::numeric_limits<double>::quiet_NaN(), kNever, -kNever, 2}), i32({1, 2}, {1, 3}),
              i32({1}, {2}), i32({1}, {0}), f32({1, 4}, {0, 0, 0, 4}), i32({1, 1}, {0})},
             {{kNever, kNever, double(std::numeric_limits<float>::max()), 0.5}});
    list.add("no_sequence_by_hand", attrs(1, false),
             {logits, grams, i32({1}, {-3}), i32({1}, {2}), f32({1, 1}, {1}), i32({1, 1}, {0})},
             {{kNever, kNever, kNever, kNever, kNever, kNever}})
        .isConstant = true;
    // exp is 1, 3 and 4 of 8.
    list.add("log_by_hand", attrs(2, true),
             {f32({2, 3}, {0, 1.0986122886681098, 1.3862943611198906, 5, 5, kNever}), i32({2, 2}, {0, 0, 1, 1}),
              i32({1}, {2}), i32({1}, {1}), f32({1, 4}, {0, 0, 0, 2}), i32({1, 1}, {0})},
             {{-4.1588830833596715, -0.9808292530117262, -0.6931471805599453, -0.6931471805599453, -1.3862943611198906,
               kNever}});
}

} // namespace

void cases(CaseList& list)
{
    byHand(list);
    double const nan = std::numeric_limits<double>::quiet_NaN();
    for (DataType type : {DataType::kFloat, DataType::kHalf})
        for (bool log : {false, true}) {
            std::string const name = wordOf(type) + (log ? "_log" : "");
            list.add(name, attrs(1, log),
                     {input(type, {5, 33}), i32({5, 40}), i32({5}), i32({5}), f32({5, 7}), i32({5, 10}), i32({3}),
                      i32({5, 2, 9})});
            list.add(name + "_beams", attrs(4, log),
                     {input(type, {12, 700}), log ? i32({3, 4, 21}) : i32({12, 21}), i32({3}), i32({3}), f32({3, 6}),
                      i32({3, 5})});
            list.add(name + "_many", attrs(1, log),
                     {input(type, {2, 33000}), i32({2, 1500}), i32({2}, {1500, 700}), i32({2}, {20, 690}), f32({2, 7}),
                      i32({2, 10})});
        }
    list.add("odd_numbers", attrs(1, false),
             {f32({4, 9}), i32({4, 30}), i32({4}, {30, 30, 31, 2000000000}), i32({4}, {0, -5, 9, 50}),
              f32({4, 6}, {nan, nan, nan, nan,   nan,  nan,  1, 1, 0, -2,      kNever, -kNever,
                           1,   1,   0,   1e-38, 3e38, 3e38, 1, 1, 0, -kNever, 1,      -3e38}),
              i32({4, 10}, {-1, -1,         -1, -2147483648.0,
                            -1, -1,         -1, -1,
                            -1, -1,         5,  2147483647,
                            -9, 2147483647, 0,  0,
                            0,  4,          0,  0,
                            0,  0,          0,  0,
                            0,  0,          0,  0,
                            0,  0,          0,  0,
                            0,  2,          0,  0,
                            0,  0,          0,  0})});
    list.add("no_capacity", attrs(1, false), {f32({2, 9}), i32({2, 0}), i32({2}), i32({2}), f32({2, 1}), i32({2, 1})})
        .isConstant = true;
    list.add("no_columns", attrs(1, true),
             {f32({2, 9}), i32({2, 5}), i32({2}, {3, 5}), i32({2}), f32({2, 0}), i32({2, 0})});
    list.add("no_rows", attrs(1, false), {f32({0, 9}), i32({0, 5}), i32({0}), i32({0}), f32({0, 2}), i32({0, 3})});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    int64_t const beams = d.from(1, 3), n = d.from(1, 4), tokens = d.size(90), capacity = d.size(40);
    std::vector<CaseInput> in{input(d.type(), {n * beams, tokens}),
                              i32({n * beams, capacity}),
                              i32({n}),
                              i32({n}),
                              f32({n, d.from(1, 7)}),
                              i32({n, d.from(1, 10)}),
                              d.chance(50) ? i32({d.from(1, 4)}) : absent()};
    if (d.chance(50))
        in.push_back(i32({n, 2, d.from(1, 9)}));
    list.add(name, attrs(beams, d.chance(50)), std::move(in));
}

} // namespace tw::ops::token_scores
