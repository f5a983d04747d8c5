// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <limits>

#include "cases/draw.h"
#include "ops/beam_step/op.h"

namespace tw::ops::beam_step {

namespace {

double const kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

CaseInput i32(Extents const& dims, std::vector<double> values = {})
{
    return input(DataType::kInt32, dims, std::move(values));
}
Attrs attrs(bool places)
{
    Attrs a;
    a.places = places;
    return a;
}

std::vector<double> const kSums = {-1, -2}, kLogs = {-1, -2, -3, -4, -0.5, -1.5, -9, -9};
std::vector<double> const kTwo = {7, 8, 5, 5, 7, 9, 6, 6};

struct Expected
{
    std::vector<double> tokens, parents, sequences;
    double length;
    std::vector<double> sums;
    double done;
    std::vector<double> ends, endLengths, endScores;
};
// A row of two beams of two tokens each, one of them the prompt's, of at most four; four tokens. There is no end yet.
void oneRow(CaseList& list, std::string const& name, std::vector<double> logs, std::vector<double> sums,
            std::vector<double> ints, double penalty, Expected const& e)
{
    int64_t const columns = int64_t(ints.size());
    list.add(name + "_by_hand", attrs(false),
             {f32({2, 4}, logs), i32({1, 2, 4}, kTwo), i32({1}, {2}), i32({1}, {1}), f32({1, 2}, sums), i32({1}, {0}),
              i32({1, 2, 4}, {1, 1, 1, 1, 2, 2, 2, 2}), i32({1, 2}, {0, 3}), f32({1, 2}, {0, 0}),
              f32({1, 7}, {1, 1, 0, 1, 0, 0, penalty}), i32({1, columns}, ints)},
             {e.tokens, e.parents, e.sequences, {e.length}, e.sums, {e.done}, e.ends, e.endLengths, e.endScores});
}

void byHand(CaseList& list)
{
    std::vector<double> const none = {9, 9, 9, 9, 9, 9, 9, 9}, worst = {-kInfinity, -kInfinity};
    // In turn: beam 0 token 0 -2, 1 0 -2.5, 0 1 -3, 1 1 -3.5.
    oneRow(list, "no_ends", kLogs, kSums, {0, 0, 0, 0, 0, 0, 0, -1, 9}, 1,
           {{0, 0}, {0, 1}, {7, 8, 0, 5, 7, 9, 0, 6}, 3, {-2, -2.5}, 0, none, {0, 0}, worst});
    std::vector<double> const ended = {7, 8, 0, 5, 7, 9, 0, 6}, later = {7, 8, 1, 5, 7, 9, 1, 6};
    Expected all{{1, 1}, {0, 1}, later, 3, {-3, -3.5}, 1, ended, {3, 3}, {-1, -1.25}};
    oneRow(list, "all_ends", kLogs, kSums, {0, 0, 0, 0, 0, 0, 0, 0, 9}, 1, all);
    oneRow(list, "all_ends_early", kLogs, kSums, {0, 0, 0, 0, 0, 0, 0, 0, 9, 1}, 1, all);
    all.done = 0; // -3 / 3 may still win over -1.25
    oneRow(list, "all_ends_late", kLogs, kSums, {0, 0, 0, 0, 0, 0, 0, 0, 9, 2}, 1, all);
    oneRow(list, "penalty_below_zero", kLogs, kSums, {0, 0, 0, 0, 0, 0, 0, 0, 9, 2}, -1,
           {{1, 1}, {0, 1}, later, 3, {-3, -3.5}, 1, ended, {3, 3}, {-4, -5}});
    // Ends of ranks 2 and 3 are not among the first two.
    oneRow(list, "late_ends", kLogs, kSums, {0, 0, 0, 0, 0, 0, 0, 1, 9}, 1,
           {{0, 0}, {0, 1}, {7, 8, 0, 5, 7, 9, 0, 6}, 3, {-2, -2.5}, 0, none, {0, 0}, worst});
    oneRow(list, "one_beam_alone", kLogs, {0, -kInfinity}, {0, 0, 0, 0, 0, 0, 0, -1, 9}, 1,
           {{0, 1}, {0, 0}, {7, 8, 0, 5, 7, 8, 1, 5}, 3, {-1, -2}, 0, none, {0, 0}, worst});
    oneRow(list, "limit", kLogs, kSums, {0, 0, 3, 0, 0, 0, 0, -1, 9}, 0,
           {{0, 0}, {0, 1}, ended, 3, {-2, -2.5}, 1, ended, {3, 3}, {-2, -2.5}});
    oneRow(list, "limit_before", kLogs, kSums, {0, 0, 2, 0, 0, 0, 0, -1, 9}, 0,
           {{9, 9}, {0, 1}, kTwo, 2, {-1, -2}, 1, kTwo, {2, 2}, {-1, -2}});
    oneRow(list, "equals", {-1, -1, -1, -1, -1, -1, -1, -1}, {0, 0}, {0, 0, 0, 0, 0, 0, 0, 0, 9}, 1,
           {{1, 2},
            {0, 0},
            {7, 8, 1, 5, 7, 8, 2, 5},
            3,
            {-1, -1},
            0,
            {7, 8, 0, 5, 9, 9, 9, 9},
            {3, 0},
            {-0.5, -kInfinity}});
    oneRow(list, "one_token", {-kInfinity, -2, kNan, -kInfinity, kNan, kNan, kNan, kNan}, kSums,
           {0, 0, 0, 0, 0, 0, 0, -1, 9}, 1,
           {{1, 9}, {0, 1}, {7, 8, 1, 5, 7, 9, 9, 6}, 3, {-3, -kInfinity}, 0, none, {0, 0}, worst});
    oneRow(list, "no_token", {kNan, kNan, kNan, kNan, kNan, kNan, kNan, kNan}, kSums, {0, 0, 0, 0, 0, 0, 0, -1, 9}, 1,
           {{9, 9}, {0, 1}, {7, 8, 9, 5, 7, 9, 9, 6}, 3, {-kInfinity, -kInfinity}, 1, none, {0, 0}, worst});
    // Rows that are done or not in use; an end that is better than one of two, one that is not.
    list.add("rows_by_hand", attrs(true),
             {f32({8, 2}, {-1, -2, -1, -2, -1, -2, -1, -2, -3, -1, -9, -9, -7, -1, -9, -9}),
              i32({4, 2, 3}, {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8}),
              i32({4}, {1, 0, 1, 1}), i32({4}, {0, 0, 0, 0}), f32({4, 2}, {-1, -2, -1, -2, 0, -1, 0, -1}),
              i32({4}, {1, 0, 0, 0}),
              i32({4, 2, 3}, {1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 1, 0, 1, 1, 1, 0, 1}),
              i32({4, 2}, {2, 0, 0, 0, 3, 3, 3, 3}), f32({4, 2}, {-1, 0, 0, 0, -1, -2, -1, -2}),
              f32({4, 1}, {1, 1, 1, 1}), i32({4, 9}, {0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 9,
                                                      0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 9}),
              absent(), i32({4, 2, 3}, {0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1})},
             {{9, 9, 9, 9, 1, 1, 1, 1},
              {0, 1, 0, 1, 0, 1, 0, 1},
              {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 1, 5, 6, 1, 6, 7, 1, 7, 8, 1, 8},
              {1, 0, 2, 2},
              {-1, -2, -1, -2, -1, -10, -1, -10},
              {1, 1, 0, 0},
              {1, 1, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 0, 1, 1, 5, 0, 5, 0, 1, 1, 1, 0, 1},
              {2, 0, 0, 0, 3, 2, 3, 3},
              {-1, -kInfinity, -kInfinity, -kInfinity, -1, -1.5, -1, -2},
              {0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1}});
}

// Rows of b beams that differ in what ends them.
void rows(CaseList& list, std::string const& name, int64_t n, int64_t beams, int64_t tokens, int64_t capacity,
          bool places, bool ids)
{
    std::vector<CaseInput> in{f32({n * beams, tokens}),
                              i32({n, beams, capacity}),
                              i32({n}),
                              i32({n}),
                              f32({n, beams}),
                              i32({n}),
                              i32({n, beams, capacity}),
                              i32({n, beams}),
                              f32({n, beams}),
                              f32({n, 7}),
                              i32({n, 10}),
                              ids ? i32({3}) : absent()};
    if (places)
        in.push_back(i32({n, beams, capacity}));
    list.add(name, attrs(places), std::move(in));
}

} // namespace

void cases(CaseList& list)
{
    byHand(list);
    rows(list, "few", 7, 4, 9, 12, false, true);
    rows(list, "places", 7, 3, 33, 21, true, false);
    rows(list, "one_beam", 5, 1, 50, 10, true, true);
    rows(list, "many_tokens", 2, 4, 33000, 40, true, true);
    rows(list, "many_beams", 2, 33, 100, 10, true, true);
    rows(list, "most_beams", 1, 256, 40, 6, false, true);
    rows(list, "few_tokens", 9, 8, 2, 6, true, true);
    rows(list, "no_capacity", 2, 2, 5, 0, true, true);
    rows(list, "no_rows", 0, 2, 5, 4, true, false);
    rows(list, "no_tokens", 2, 2, 0, 4, false, false);
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    rows(list, name, d.from(1, 6), d.from(1, 6), d.size(200), d.size(24), d.chance(50), d.chance(50));
}

} // namespace tw::ops::beam_step
