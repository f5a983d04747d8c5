// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/loop/cases_text.h"

namespace tw::ops::loop {

namespace {

using elementwise::Operation;
using Types = std::vector<std::string>;

std::string const kI32 = "i32[]", kOne = "[1]";

CaseInput number(double v)
{
    return input(DataType::kInt32, {}, {v});
}

class Adder
{
public:
    explicit Adder(CaseList& list) : list_(list) {}
    Case& operator()(char const* name, Attrs a, std::vector<CaseInput> inputs, std::string condition, std::string body,
                     std::vector<std::vector<double>> expected = {})
    {
        a.iteratorReverse.resize(a.iteratorAxes.size());
        a.stackReverse.resize(a.stackAxes.size());
        Case& c = list_.add(name, a, std::move(inputs), std::move(expected));
        c.regions = textRegions({std::move(condition), std::move(body)});
        return c;
    }

private:
    CaseList& list_;
};

Attrs carrying(int64_t carried, std::vector<int64_t> iteratorAxes = {}, std::vector<int64_t> stackAxes = {})
{
    Attrs a;
    a.carried = carried;
    a.iteratorAxes = std::move(iteratorAxes);
    a.stackAxes = std::move(stackAxes);
    return a;
}

// The first value + 1, of `types`.
std::string addOne(Types const& types)
{
    RegionText r("body", types);
    return r.output(r.apply(Operation::kSum, 0, r.constant(kI32, kOne), kI32)).str();
}

void addTrips(Adder const& given)
{
    Adder add = given;
    Types const two{kI32, kI32};
    add("while_by_hand", carrying(1), {number(3), absent(), number(7)}, lessThan(two, 0, 1), addOne(two), {{7}});
    add("while_zero_trips", carrying(1), {number(9), absent(), number(7)}, lessThan(two, 0, 1), addOne(two), {{9}});
    add("while_many_trips", carrying(1), {number(0), absent(), number(1000)}, lessThan(two, 0, 1), addOne(two),
        {{1000}});
    add("count_by_hand", carrying(1), {number(3), number(5)}, always({kI32}), addOne({kI32}), {{8}});
    add("count_zero", carrying(1), {number(3), number(0)}, always({kI32}), addOne({kI32}), {{3}});
    add("count_below_zero", carrying(1), {number(3), number(-2)}, always({kI32}), addOne({kI32}), {{3}});
    add("count_is_constant", carrying(1), {number(3), constant(DataType::kInt32, {}, {4})}, always({kI32}),
        addOne({kI32}), {{7}});
    add("both_count_ends", carrying(1), {number(3), number(2), number(7)}, lessThan(two, 0, 1), addOne(two), {{5}});
    add("both_condition_ends", carrying(1), {number(3), number(9), number(7)}, lessThan(two, 0, 1), addOne(two), {{7}});
}

void addCarried(Adder const& given)
{
    Adder add = given;
    // a, b = b, a + b: a carried value is another one's next.
    RegionText fibonacci("body", {kI32, kI32});
    fibonacci.output(1).output(fibonacci.apply(Operation::kSum, 0, 1, kI32));
    add("swapped", carrying(2), {number(0), number(1), number(10)}, always({kI32, kI32}), fibonacci.str(),
        {{55}, {89}});
    // Three values go round.
    RegionText round("body", {kI32, kI32, kI32});
    round.output(2).output(0).output(1);
    add("rotated", carrying(3), {number(5), number(6), number(7), number(4)}, always({kI32, kI32, kI32}), round.str(),
        {{7}, {5}, {6}});
    // A carried value stays, or becomes a constant, or a capture.
    RegionText fixed("body", {kI32, kI32, kI32, kI32});
    fixed.output(0).output(fixed.constant(kI32, "[9]")).output(3);
    add("constants_and_captures", carrying(3), {number(1), number(2), number(3), number(2), number(8)},
        always({kI32, kI32, kI32, kI32}), fixed.str(), {{1}, {9}, {8}});
    Types const power{"f32[2,3]", "f32[2,3]"};
    RegionText times("body", power);
    times.output(times.apply(Operation::kProd, 0, 1, "f32[2,3]"));
    add("captures", carrying(1), {f32({2, 3}, {1, 2, 3, 4, 5, 6}), number(3), f32({2, 3}, {1, 2, 0, -1, 0.5, 1})},
        always(power), times.str(), {{1, 16, 0, -4, 0.625, 6}});
    Types const none{"f32[0,4]", "f32[0,4]"};
    RegionText nothing("body", none);
    nothing.output(nothing.apply(Operation::kProd, 0, 1, "f32[0,4]"));
    add("empty_tensor", carrying(1), {f32({0, 4}), number(3), f32({0, 4})}, always(none), nothing.str(), {{}});
}

void addIterators(Adder const& given)
{
    Adder add = given;
    // The sum of slices, and twice each slice in a stack; x = [[1 2 3] [4 5 6]].
    auto sums = [](std::string const& type) {
        RegionText r("body", {type, type});
        r.output(r.apply(Operation::kSum, 0, 1, type)).output(r.apply(Operation::kSum, 1, 1, type));
        return r.str();
    };
    CaseInput const x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    CaseInput const rows = f32({3}, {10, 20, 30}), columns = f32({2}, {10, 20});
    std::string const row = "f32[3]", column = "f32[2]";
    add("rows_by_hand", carrying(1, {0}, {0}), {rows, number(2), x, absent()}, always({row, row}), sums(row),
        {{15, 27, 39}, {2, 4, 6, 8, 10, 12}});
    add("columns", carrying(1, {1}, {1}), {columns, number(3), x, absent()}, always({column, column}), sums(column),
        {{16, 35}, {2, 4, 6, 8, 10, 12}});
    add("columns_to_rows", carrying(1, {1}, {0}), {columns, number(3), x, absent()}, always({column, column}),
        sums(column), {{16, 35}, {2, 8, 4, 10, 6, 12}});
    Attrs reversed = carrying(1, {1}, {0});
    reversed.iteratorReverse = {1};
    add("columns_from_the_end", reversed, {columns, number(2), x, absent()}, always({column, column}), sums(column),
        {{15, 31}, {6, 12, 4, 10}});
    reversed.stackReverse = {1};
    add("stack_reversed", reversed, {columns, number(2), x, absent()}, always({column, column}), sums(column),
        {{15, 31}, {4, 10, 6, 12}});
    add("length_above_trips", carrying(1, {0}, {1}), {rows, number(2), x, number(4)}, always({row, row}), sums(row),
        {{15, 27, 39}, {2, 8, 0, 0, 4, 10, 0, 0, 6, 12, 0, 0}});
    reversed = carrying(1, {0}, {0});
    reversed.stackReverse = {1};
    add("length_above_trips_reversed", reversed, {rows, number(2), x, number(3)}, always({row, row}), sums(row),
        {{15, 27, 39}, {0, 0, 0, 8, 10, 12, 2, 4, 6}});
    add("no_trips_with_length", carrying(1, {0}, {0}), {rows, number(0), x, number(2)}, always({row, row}), sums(row),
        {{10, 20, 30}, {0, 0, 0, 0, 0, 0}});
    add("no_trips", carrying(1, {0}, {0}), {rows, number(0), x, absent()}, always({row, row}), sums(row),
        {{10, 20, 30}, {}});
    add("no_slices", carrying(1, {0}, {0}), {rows, number(0), f32({0, 3}), absent()}, always({row, row}), sums(row),
        {{10, 20, 30}, {}});
    // Elements of a vector, into a vector; i8, whose parts start anywhere.
    std::string const one = "i8[]";
    add("scalars", carrying(1, {0}, {0}),
        {input(DataType::kInt8, {}, {1}), number(3), input(DataType::kInt8, {3}, {1, 2, 3}), absent()},
        always({one, one}), sums(one), {{7}, {2, 4, 6}});
    // Nothing is carried: a map.
    RegionText map("body", {row});
    map.output(map.apply(Operation::kProd, 0, 0, row)).output(0);
    add("map", carrying(0, {0}, {0, 1}), {number(2), x, absent(), absent()}, always({row}), map.str(),
        {{1, 4, 9, 16, 25, 36}, {1, 4, 2, 5, 3, 6}});
    // While the slice is below a bound: the condition of the last trip sees the last slice again.
    std::string const word = "i32[]";
    CaseInput const v = input(DataType::kInt32, {4}, {1, 2, 3, 4});
    RegionText take("body", {word, word, word});
    take.output(take.apply(Operation::kSum, 0, 1, word)).output(1);
    auto until = [&](char const* name, double bound, std::vector<std::vector<double>> expected) {
        add(name, carrying(1, {0}, {0}), {number(0), absent(), v, absent(), number(bound)},
            lessThan({word, word, word}, 1, 2), take.str(), std::move(expected));
    };
    until("while_slice", 3, {{3}, {1, 2}});
    until("while_first_slice", 1, {{0}, {}});
    RegionText sumBelow("condition", {word, word, word});
    sumBelow.output(sumBelow.apply(Operation::kLess, 0, 2, "b[]"));
    add("while_to_the_end", carrying(1, {0}, {0}), {number(0), absent(), v, absent(), number(10)}, sumBelow.str(),
        take.str(), {{10}, {1, 2, 3, 4}});
}

// Stacks with lengths of loops whose end no shape knows: the number that the condition compares is no counter.
void addStacksOfWhiles(Adder const& given)
{
    Adder add = given;
    std::string const one = "f32[]", row = "f32[2]";
    Types const seen{one, row, row, one}; // s, x, the slice, the limit
    RegionText body("body", seen);
    int const sum = body.apply(Operation::kSum, 1, 2, row);
    body.output(body.apply(Operation::kSum, 0, body.constant(one, "[0.5]"), one));
    body.output(sum).output(sum).output(2).output(0).output(1);
    Attrs a = carrying(2, {1}, {0, 1, 0, 0});
    a.stackReverse = {0, 1, 1, 0};
    CaseInput const rows = f32({2, 4}, {1, 2, 3, 4, 10, 20, 30, 40}); // slices [1 10], [2 20], ...
    auto stacks = [&](char const* name, double first, std::vector<double> const& lengths,
                      std::vector<std::vector<double>> expected) {
        std::vector<CaseInput> in{f32({}, {first}), f32({2}, {1, 2}), absent(), rows};
        for (double length : lengths)
            in.push_back(constant(DataType::kInt32, {}, {length}));
        in.push_back(f32({}, {1}));
        add(name, a, std::move(in), lessThan(seen, 0, 3), body.str(), std::move(expected));
    };
    std::vector<double> const none(6, 0), nothing;
    stacks("while_stacks_of_no_trips", 1, {3, 3, 3, 3}, {{1}, {1, 2}, none, none, {0, 0, 0}, none});
    stacks("while_stacks_of_no_trips_and_no_length", 2, {0, 0, 0, 0},
           {{2}, {1, 2}, nothing, nothing, nothing, nothing});
    stacks("while_stacks_of_one_trip", 0.5, {3, 1, 2, 3},
           {{1}, {2, 12}, {2, 12, 0, 0, 0, 0}, {1, 10}, {0, 0.5}, {1, 2, 0, 0, 0, 0}});
    stacks("while_stacks_longer_than_trips", 0, {3, 3, 4, 2},
           {{1}, {4, 32}, {2, 12, 4, 32, 0, 0}, {0, 2, 1, 0, 20, 10}, {0, 0, 0.5, 0}, {1, 2, 2, 12}});
    // Conditions that are bools as they come: a slice of a map, a carried value.
    Types const seenByMap{"b[]", row};
    RegionText goesOn("condition", seenByMap), both("body", seenByMap);
    goesOn.output(0);
    both.output(0).output(1);
    CaseInput const two = constant(DataType::kInt32, {}, {2}), captured = f32({2}, {5, 6});
    add("while_slice_of_bools", carrying(0, {0}, {0, 0}),
        {absent(), input(DataType::kBool, {3}, {0, 1, 1}), constant(DataType::kInt32, {}, {3}), two, captured},
        goesOn.str(), both.str(), {{0, 0, 0}, {0, 0, 0, 0}});
    add("while_carried_bool", carrying(1, {}, {0}), {input(DataType::kBool, {}, {0}), number(2), two, captured},
        goesOn.str(), both.str(), {{0}, {0, 0, 0, 0}});
}

void addNested(Adder const& given)
{
    Adder add = given;
    // total = sum over i < n of i, counted one by one.
    std::string const nested = R"(graph "body" imported {
        input %0 "i" i32[] input %1 "total" i32[] const %2 "one" i32[] = [1]
        node 0 "inner" loop(%1, %0) {carried = 1}
            region graph "condition" imported { input %0 "total" i32[] const %1 "yes" b[] = [1] output %1 }
            region graph "body" imported { input %0 "total" i32[] const %1 "one" i32[] = [1]
                node 0 "t" elementwise(%0, %1) {operation = 0} -> %2 "total" i32[] output %2 }
            -> %3 "sum" i32[]
        node 1 "add" elementwise(%0, %2) {operation = 0} -> %4 "next" i32[]
        output %4 output %3 })";
    add("loop_in_loop", carrying(2), {number(0), number(0), number(6)}, always({kI32, kI32}), nested, {{6}, {15}});
    // A conditional in a loop whose trips the data decide: steps of the sequence v -> v / 2 or 3 v + 1 down to 1.
    std::string const collatz = R"(graph "body" imported {
        input %0 "v" i32[] input %1 "steps" i32[] input %2 "one" i32[] const %3 "two" i32[] = [2]
        node 0 "half" elementwise(%0, %3) {operation = 5} -> %4 "half" i32[]
        node 1 "double" elementwise(%4, %3) {operation = 1} -> %5 "double" i32[]
        node 2 "even" elementwise(%0, %5) {operation = 11} -> %6 "even" b[]
        node 3 "next" conditional(%6, %0, %4, %2)
            region graph "then" imported { input %0 "v" i32[] input %1 "half" i32[] input %2 "one" i32[] output %1 }
            region graph "else" imported { input %0 "v" i32[] input %1 "half" i32[] input %2 "one" i32[]
                const %3 "three" i32[] = [3]
                node 0 "mul" elementwise(%0, %3) {operation = 1} -> %4 "triple" i32[]
                node 1 "add" elementwise(%4, %2) {operation = 0} -> %5 "next" i32[] output %5 }
            -> %7 "next" i32[]
        node 4 "count" elementwise(%1, %2) {operation = 0} -> %8 "steps" i32[]
        output %7 output %8 })";
    std::string const aboveOne = R"(graph "condition" imported {
        input %0 "v" i32[] input %1 "steps" i32[] input %2 "one" i32[]
        node 0 "greater" elementwise(%0, %2) {operation = 12} -> %3 "go_on" b[] output %3 })";
    add("conditional_in_loop", carrying(2), {number(27), number(0), absent(), number(1)}, aboveOne, collatz,
        {{1}, {111}});
    // A stack of stacks: the table of products of two vectors.
    std::string const table = R"(graph "body" imported { input %0 "a" f32[] input %1 "b" f32[3]
        const %2 "three" i32[] = [3]
        node 0 "row" loop(%2, %1, _, %0) {iterator_axes = [0], iterator_reverse = [0], stack_axes = [0], stack_reverse = [0]}
            region graph "condition" imported { input %0 "b" f32[] input %1 "a" f32[] const %2 "yes" b[] = [1] output %2 }
            region graph "body" imported { input %0 "b" f32[] input %1 "a" f32[]
                node 0 "mul" elementwise(%0, %1) {operation = 1} -> %2 "y" f32[] output %2 }
            -> %3 "row" f32[3]
        output %3 })";
    add("stack_of_stacks", carrying(0, {0}, {0}), {number(2), f32({2}, {2, 3}), absent(), f32({3}, {1, 10, 100})},
        always({"f32[]", "f32[3]"}), table, {{2, 20, 200, 3, 30, 300}});
}

} // namespace

void cases(CaseList& list)
{
    Adder const add(list);
    addTrips(add);
    addCarried(add);
    addIterators(add);
    addStacksOfWhiles(add);
    addNested(add);
}

namespace {

using elementwise::Operation;

std::string textOf(DataType type, Extents const& e)
{
    return nameOf(type) + e.str();
}

Extents with(Extents const& e, int64_t axis, int64_t extent)
{
    Extents out;
    for (int d = 0; d <= e.rank; ++d) {
        if (d == axis)
            out.push(extent);
        if (d < e.rank)
            out.push(e[d]);
    }
    return out;
}

} // namespace

// A trip counter, some tensors of one shape that are carried, iterated over, stacked and captured, and sums, products,
// one written into another, or any of them as they are in between.
void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    DataType const type = d.chance(60) ? DataType::kFloat : d.chance(50) ? DataType::kInt32 : DataType::kInt8;
    Extents part = d.extents(int(d.from(0, 3)), 5);
    if (part.rank > 0 && d.chance(5))
        part[0] = 0;
    int64_t const carried = d.from(0, 3), iterated = d.from(0, 2), stacked = d.from(carried == 0 ? 1 : 0, 3),
                  trips = d.chance(80) ? d.from(0, 6) : d.from(7, 13);
    bool const counts = d.chance(70), hasCondition = !counts || d.chance(30);
    // One of i32 may become a count on the way to an engine, one of f32 stays a condition.
    DataType const counter = hasCondition && d.chance(50) ? DataType::kFloat : DataType::kInt32;
    std::string const counterType = std::string(nameOf(counter)) + "[]";
    std::string const partType = textOf(type, part);

    // The counter, and what the condition compares it with, are carried value 0 and the first capture.
    Attrs a;
    a.carried = carried + 1;
    std::vector<CaseInput> inputs{input(counter, {}, {0})};
    std::vector<std::string> types{counterType};
    for (int64_t i = 0; i < carried; ++i) {
        inputs.push_back(input(type, part));
        types.push_back(partType);
    }
    inputs.push_back(counts ? input(DataType::kInt32, {}, {double(trips)}) : absent());
    for (int64_t i = 0; i < iterated; ++i) {
        a.iteratorAxes.push_back(d.from(0, part.rank));
        a.iteratorReverse.push_back(d.from(0, 1));
        inputs.push_back(input(type, with(part, a.iteratorAxes.back(), trips + d.from(0, 2))));
        types.push_back(partType);
    }
    for (int64_t k = 0; k < stacked; ++k) {
        a.stackAxes.push_back(d.from(0, part.rank));
        a.stackReverse.push_back(d.from(0, 1));
        inputs.push_back(d.chance(50) ? absent() : input(DataType::kInt32, {}, {double(trips + d.from(0, 2))}));
    }
    inputs.push_back(input(counter, {}, {double(counts ? d.from(0, trips + 2) : trips)}));
    types.push_back(counterType);
    int const limit = int(types.size()) - 1;
    inputs.push_back(input(type, part));
    types.push_back(partType);

    RegionText body("body", types);
    std::vector<int> tensors;
    for (int i = 1; i < int(types.size()); ++i)
        if (i != limit)
            tensors.push_back(i);
    auto any = [&] { return tensors[size_t(d.from(0, int64_t(tensors.size()) - 1))]; };
    std::vector<int> results{body.apply(Operation::kSum, 0, body.constant(counterType, "[1]"), counterType)};
    for (int64_t i = 0; i < carried + stacked; ++i) {
        constexpr Operation kOperations[] = {Operation::kSum, Operation::kSub, Operation::kMax, Operation::kMin};
        int v = any();
        if (d.chance(75)) {
            int const other = any();
            v = part.rank > 1 && d.chance(40)
                    ? body.update(v, other, d.from(1, part.rank - 1), part[0], d.from(-1, 2), partType)
                    : body.apply(kOperations[d.from(0, 3)], v, other, partType);
            tensors.push_back(v);
        }
        results.push_back(v);
    }
    for (int v : results)
        body.output(v);
    list.add(name, a, std::move(inputs)).regions =
        textRegions({hasCondition ? lessThan(types, 0, limit) : always(types), body.str()});
    list.cases.back().isConstant = true; // such as stacks of a captured number: nothing is wrong with them here
}

} // namespace tw::ops::loop
