// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <cmath>
#include <limits>

#include "cases/draw.h"
#include "ops/sample/op.h"

namespace tw::ops::sample {

namespace {

double const kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

CaseInput i32(Extents const& dims, std::vector<double> values = {})
{
    return input(DataType::kInt32, dims, std::move(values));
}
ir::NoAttrs none()
{
    return {};
}

// One row of five tokens, whose exp are 1, 2, 4, 4, 5 of 16; two tokens of at most six are there, one of them the prompt.
void oneRow(CaseList& list, std::string const& name, std::vector<double> floats, std::vector<double> ints, double token,
            bool finished = false)
{
    double const ln2 = std::log(2.0), exps[] = {1, 2, 4, 4, 5};
    auto const scores = f32({1, 5}, {0, ln2, 2 * ln2, 2 * ln2, std::log(5.0)});
    int64_t const f = int64_t(floats.size()), i = int64_t(ints.size());
    list.add(name + "_by_hand", none(),
             {scores, scores, i32({1, 6}, {4, 3, 9, 9, 9, 9}), i32({1}, {2}), i32({1}, {1}), f32({1, f}, floats),
              i32({1, i}, ints)},
             {{token}, {double(finished)}, {std::log(exps[int(token)] / 16)}, {4, 3, token, 9, 9, 9}, {3}});
}

void byHand(CaseList& list)
{
    oneRow(list, "greedy", {0}, {0}, 4);
    oneRow(list, "below_greedy", {-1}, {0}, 4);
    oneRow(list, "temperature_of_nan", {kNan}, {0}, 4);
    oneRow(list, "best_of_one", {1}, {1}, 4);
    oneRow(list, "least_share", {1, 0}, {0}, 4);
    oneRow(list, "share_below_zero", {1, -kInfinity}, {0}, 4);
    oneRow(list, "nobody_beside_the_best", {1, 1, 1}, {0}, 4);
    oneRow(list, "minimum_above_one", {1, 1, 9}, {0}, 4);
    oneRow(list, "end", {0}, {0, 0, 0, 0, 0, 0, 0, 4}, 4, true);
    oneRow(list, "limit", {0}, {0, 0, 3}, 4, true);
    oneRow(list, "no_limit", {0}, {0, 0, 4}, 4);
    auto const equal = f32({3, 4}, {1, 1, 1, 1, 1, -kInfinity, 1, kNan, kNan, -kInfinity, kNan, -kInfinity});
    list.add("equals_by_hand", none(),
             {equal, equal, i32({3, 2}, {0, 9, 0, 9, 5, 9}), i32({3}, {1, 1, 1}), i32({3}, {1, 1, 1}),
              f32({3, 1}, {0, 0, 0}),
              i32({3, 9}, {0, 0, 0, 0, 0, 0, 0, -1, 6, 0, 0, 0, 0, 0, 0, 0, -1, 6, 0, 0, 0, 0, 0, 0, 0, -1, 6})},
             {{0, 0, 6}, {1, 1, 1}, {std::log(0.25), std::log(0.5), -kInfinity}, {0, 0, 0, 0, 5, 9}, {2, 2, 1}});
    auto const six = f32({6, 3}, {0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0});
    // Not in use; full; ended; ended by a word; the end is the prompt's own; one word more makes it full.
    list.add("finished_by_hand", none(),
             {six, six, i32({6, 4}, {7, 7, 7, 7, 7, 7, 7, 7, 7, 2, 7, 7, 0, 2, 1, 7, 7, 2, 8, 8, 7, 7, 7, 8}),
              i32({6}, {0, 4, 2, 3, 2, 3}), i32({6}, {0, 1, 1, 1, 2, 1}), f32({6, 1}, {0, 0, 0, 0, 0, 0}),
              i32({6, 9}, {0, 0, 0, 0, 0, 0, 0, -1, 5, 0, 0, 0, 0, 0, 0, 0, -1, 5, 0, 0, 0, 0, 0, 0, 0, 2, 5,
                           0, 0, 0, 0, 0, 0, 0, -1, 5, 0, 0, 0, 0, 0, 0, 0, 2,  5, 0, 0, 0, 0, 0, 0, 0, 2, 5}),
              i32({2}, {-1, 6}), i32({6, 2, 3}, {1, 7, 9, 0, 0, 0, 1, 7, 9, 0, 0, 0, 1, 7, 9, 0, 0, 0,
                                                 8, 2, 1, 1, 3, 0, 1, 7, 9, 0, 0, 0, 1, 7, 9, 0, 0, 0})},
             {{5, 5, 5, 5, 1, 1},
              {1, 1, 1, 1, 0, 1},
              {0, 0, 0, 0, 1 - std::log(2 + std::exp(1.0)), 1 - std::log(2 + std::exp(1.0))},
              {7, 7, 7, 7, 7, 7, 7, 7, 7, 2, 7, 7, 0, 2, 1, 7, 7, 2, 1, 8, 7, 7, 7, 1},
              {0, 4, 2, 3, 3, 4}});
    list.add("word_ends_by_hand", none(),
             {f32({1, 3}, {0, 1, 0}), f32({1, 3}, {0, 1, 0}), i32({1, 4}, {2, 2, 0, 0}), i32({1}, {2}), i32({1}, {2}),
              f32({1, 1}, {0}), i32({1, 1}, {0}), absent(), i32({1, 2, 4}, {2, 0, 2, 1, 2, 4, 0, 0})},
             {{1}, {1}, {1 - std::log(2 + std::exp(1.0))}, {2, 2, 1, 0}, {3}});
}

std::vector<double> repeated(std::vector<double> const& row, int64_t rows)
{
    std::vector<double> all;
    for (int64_t n = 0; n < rows; ++n)
        all.insert(all.end(), row.begin(), row.end());
    return all;
}

// -1 to 6.
std::vector<double> cycled(int64_t count)
{
    std::vector<double> all;
    for (int64_t i = 0; i < count; ++i)
        all.push_back(double(5 * i % 8 - 1));
    return all;
}

// Rows of other streams.
void settings(CaseList& list, std::string const& name, DataType type, int64_t rows, int64_t tokens,
              std::vector<double> const& floats, double topK)
{
    std::vector<double> ints;
    for (int64_t n = 0; n < rows; ++n)
        for (double v : {topK, 0., 0., 0., 1234567., -5., double(n), -1., 0.})
            ints.push_back(v);
    list.add(name, none(),
             {f32({rows, tokens}), input(type, {rows, tokens}), i32({rows, 9}), i32({rows}), i32({rows}),
              f32({rows, int64_t(floats.size())}, repeated(floats, rows)), i32({rows, 9}, ints)});
}

} // namespace

void cases(CaseList& list)
{
    byHand(list);
    for (DataType type : {DataType::kFloat, DataType::kHalf})
        for (int64_t tokens : {1, 2, 7, 255, 257, 1024, 33000}) {
            std::string const name = wordOf(type) + "_" + std::to_string(tokens);
            int64_t const rows = tokens > 1000 ? 4 : 24;
            settings(list, name + "_all", type, rows, tokens, {1}, 0);
            settings(list, name + "_count", type, rows, tokens, {0.7}, 5);
            settings(list, name + "_share", type, rows, tokens, {1.3, 0.8}, 0);
            settings(list, name + "_least", type, rows, tokens, {2, 1, 0.25}, -1);
            settings(list, name + "_each", type, rows, tokens, {0.9, 0.6, 0.05}, 40);
        }
    settings(list, "many_count", DataType::kHalf, 3, 9000, {1, 0.999}, 3000);
    settings(list, "hot", DataType::kFloat, 16, 600, {kInfinity}, 0);
    settings(list, "hot_share", DataType::kFloat, 16, 3000, {1e30, 0.3}, 0);
    settings(list, "cold", DataType::kFloat, 16, 600, {1e-30}, 0);
    settings(list, "coldest", DataType::kFloat, 16, 600, {1e-44, 0.5}, 3);
    list.add("equal_scores", none(),
             {f32({6, 1000}, std::vector<double>(6000, 0.5)), f32({6, 1000}), i32({6, 9}), i32({6}), i32({6}),
              f32({6, 2}, repeated({1, 0.5}, 6)), i32({6, 7}, cycled(42))});
    list.add("numbers", none(),
             {f32({9, 40}), f32({9, 40}), i32({9, 9}), i32({9}), i32({9}, {-1, 0, 3, 9, 10, 2147483647, -5, 2, 1}),
              f32({9, 3}), i32({9, 10}, cycled(90)), i32({3}), i32({9, 2, 5})});
    list.add("no_columns", none(),
             {f32({9, 40}), f32({9, 40}), i32({9, 9}), i32({9}), i32({9}), f32({9, 0}), i32({9, 0})});
    list.add("no_tokens", none(),
             {f32({2, 0}), f32({2, 0}), i32({2, 3}, {1, 2, 3, 4, 5, 6}), i32({2}, {1, 2}), i32({2}, {1, 1}),
              f32({2, 1}), i32({2, 1})});
    list.add("no_capacity", none(),
             {f32({2, 5}), f32({2, 5}), i32({2, 0}), i32({2}, {1, 2}), i32({2}, {1, 1}), f32({2, 1}), i32({2, 1})})
        .isConstant = true;
    list.add("no_rows", none(), {f32({0, 5}), f32({0, 5}), i32({0, 4}), i32({0}), i32({0}), f32({0, 1}), i32({0, 1})});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    int64_t const n = d.from(1, 6), tokens = d.size(600), capacity = d.size(40), columns = d.from(1, 10);
    std::vector<double> ints;
    for (int64_t i = 0; i < n * columns; ++i)
        ints.push_back(double(i % columns == 0 ? d.from(-1, 40) : d.chance(30) ? d.from(-1, 50) : 0));
    std::vector<CaseInput> in{f32({n, tokens}),
                              input(d.type(), {n, tokens}),
                              i32({n, capacity}),
                              i32({n}),
                              i32({n}),
                              f32({n, d.from(1, 7)}),
                              i32({n, columns}, ints),
                              d.chance(50) ? i32({d.from(1, 4)}) : absent()};
    if (d.chance(50))
        in.push_back(i32({n, 2, d.from(1, 9)}));
    list.add(name, none(), std::move(in));
}

} // namespace tw::ops::sample
