// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "ops/while_loop/op.h"

namespace tw::ops::while_loop {

namespace {

// i < n of the first value and capture `n`, given the types of all inputs.
std::string lessThan(std::vector<std::string> const& types, int i, int n)
{
    std::string s = "graph \"condition\" imported {";
    for (size_t k = 0; k < types.size(); ++k)
        s += " input %" + std::to_string(k) + " \"v\" " + types[k];
    return s + " node 0 \"less\" elementwise(%" + std::to_string(i) + ", %" + std::to_string(n) +
           ") {operation = 13} -> %" + std::to_string(types.size()) + " \"go_on\" b[] output %" +
           std::to_string(types.size()) + " }";
}

} // namespace

void cases(CaseList& list)
{
    auto add = [&](char const* name, int64_t carried, std::vector<CaseInput> inputs, std::vector<std::string> regions,
                   std::vector<std::vector<double>> expected) {
        Attrs a;
        a.carried = carried;
        list.add(name, a, std::move(inputs), std::move(expected)).regions = textRegions(std::move(regions));
    };
    auto number = [](double v) { return input(DataType::kInt32, {}, {v}); };
    std::string const i32 = "i32[]";
    // i += 1 while i < n.
    std::string const count =
        R"(graph "body" imported { input %0 "i" i32[] input %1 "n" i32[] const %2 "one" i32[] = [1]
        node 0 "add" elementwise(%0, %2) {operation = 0} -> %3 "next" i32[] output %3 })";
    add("count_by_hand", 1, {number(3), number(7)}, {lessThan({i32, i32}, 0, 1), count}, {{7}});
    add("zero_trips", 1, {number(9), number(7)}, {lessThan({i32, i32}, 0, 1), count}, {{9}});
    add("many_trips", 1, {number(0), number(1000)}, {lessThan({i32, i32}, 0, 1), count}, {{1000}});
    // a, b = b, a + b: a carried value is another one's next.
    std::string const fibonacci = R"(graph "body" imported {
        input %0 "a" i32[] input %1 "b" i32[] input %2 "i" i32[] input %3 "n" i32[] const %4 "one" i32[] = [1]
        node 0 "sum" elementwise(%0, %1) {operation = 0} -> %5 "sum" i32[]
        node 1 "add" elementwise(%2, %4) {operation = 0} -> %6 "next" i32[]
        output %1 output %5 output %6 })";
    add("swapped", 3, {number(0), number(1), number(0), number(10)}, {lessThan({i32, i32, i32, i32}, 2, 3), fibonacci},
        {{55}, {89}, {10}});
    // x = x * scale, with a captured tensor.
    std::string const power = R"(graph "body" imported {
        input %0 "x" f32[2,3] input %1 "i" i32[] input %2 "n" i32[] input %3 "scale" f32[2,3] const %4 "one" i32[] = [1]
        node 0 "mul" elementwise(%0, %3) {operation = 1} -> %5 "y" f32[2,3]
        node 1 "add" elementwise(%1, %4) {operation = 0} -> %6 "next" i32[]
        output %5 output %6 })";
    std::vector<std::string> const powerTypes{"f32[2,3]", i32, i32, "f32[2,3]"};
    add("captures", 2, {f32({2, 3}, {1, 2, 3, 4, 5, 6}), number(0), number(3), f32({2, 3}, {1, 2, 0, -1, 0.5, 1})},
        {lessThan(powerTypes, 1, 2), power}, {{1, 16, 0, -4, 0.625, 6}, {3}});
    add("empty_tensor", 2, {f32({0, 4}), number(0), number(3), f32({0, 4})},
        {R"(graph "condition" imported { input %0 "x" f32[0,4] input %1 "i" i32[] input %2 "n" i32[] input %3 "s" f32[0,4]
            node 0 "less" elementwise(%1, %2) {operation = 13} -> %4 "go_on" b[] output %4 })",
         R"(graph "body" imported { input %0 "x" f32[0,4] input %1 "i" i32[] input %2 "n" i32[] input %3 "s" f32[0,4]
            node 0 "mul" elementwise(%0, %3) {operation = 1} -> %4 "y" f32[0,4] output %4 output %2 })"},
        {{}, {3}});
    // A loop in a loop: total = sum over i < n of i, counted one by one.
    std::string const nested = R"(graph "body" imported {
        input %0 "i" i32[] input %1 "total" i32[] input %2 "n" i32[] const %3 "one" i32[] = [1] const %4 "zero" i32[] = [0]
        node 0 "inner" while_loop(%4, %1, %0) {carried = 2}
            region graph "condition" imported { input %0 "j" i32[] input %1 "total" i32[] input %2 "i" i32[]
                node 0 "less" elementwise(%0, %2) {operation = 13} -> %3 "go_on" b[] output %3 }
            region graph "body" imported { input %0 "j" i32[] input %1 "total" i32[] input %2 "i" i32[]
                const %3 "one" i32[] = [1]
                node 0 "j" elementwise(%0, %3) {operation = 0} -> %4 "next" i32[]
                node 1 "t" elementwise(%1, %3) {operation = 0} -> %5 "total" i32[]
                output %4 output %5 }
            -> %5 "j" i32[], %6 "sum" i32[]
        node 1 "add" elementwise(%0, %3) {operation = 0} -> %7 "next" i32[]
        output %7 output %6 })";
    add("loop_in_loop", 2, {number(0), number(0), number(6)}, {lessThan({i32, i32, i32}, 0, 2), nested}, {{6}, {15}});
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
    add("conditional_in_loop", 2, {number(27), number(0), number(1)}, {aboveOne, collatz}, {{1}, {111}});
}

} // namespace tw::ops::while_loop
