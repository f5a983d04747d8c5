// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "ops/conditional/op.h"

namespace tw::ops::conditional {

namespace {

// y = x op c, for a region with one capture.
std::string arithmetic(char const* name, int operation, char const* shape, char const* constant)
{
    std::string const type = std::string("f32") + shape;
    return fmt::format("graph \"{}\" imported {{ input %0 \"x\" {} const %1 \"c\" {} = {} node 0 \"op\" "
                       "elementwise(%0, %1) {{operation = {}}} -> %2 \"y\" {} output %2 }}",
                       name, type, type, constant, operation, type);
}

} // namespace

void cases(CaseList& list)
{
    auto add = [&](char const* name, bool condition, std::vector<CaseInput> captures, std::vector<std::string> regions,
                   std::vector<std::vector<double>> expected) {
        captures.insert(captures.begin(), input(DataType::kBool, {}, {double(condition)}));
        list.add(name, ir::NoAttrs{}, std::move(captures), std::move(expected)).regions =
            textRegions(std::move(regions));
    };
    CaseInput const x = f32({3}, {1, 2, 3});
    std::string const plus = arithmetic("then", 0, "[3]", "[10, 20, 30]"),
                      times = arithmetic("else", 1, "[3]", "splat 2");
    add("then_by_hand", true, {x}, {plus, times}, {{11, 22, 33}});
    add("else_by_hand", false, {x}, {plus, times}, {{2, 4, 6}});
    // Captures and constants go straight to the outputs.
    std::string const pass = R"(graph "then" imported { input %0 "a" i32[2] input %1 "b" i32[2] output %1 output %0 })";
    std::string const fixed = R"(graph "else" imported { input %0 "a" i32[2] input %1 "b" i32[2]
        const %2 "c" i32[2] = [7, 8] output %2 output %2 })";
    CaseInput const a = input(DataType::kInt32, {2}, {1, 2}), b = input(DataType::kInt32, {2}, {3, 4});
    add("captures_pass", true, {a, b}, {pass, fixed}, {{3, 4}, {1, 2}});
    add("constants_pass", false, {a, b}, {pass, fixed}, {{7, 8}, {7, 8}});
    // No captures at all.
    auto number = [](char const* name, char const* v) {
        return std::string("graph \"") + name + "\" imported { const %0 \"c\" f32[] = [" + v + "] output %0 }";
    };
    add("no_captures", false, {}, {number("then", "1"), number("else", "2")}, {{2}});
    // Shapes differ: the output has the size of the branch taken.
    std::string const whole = R"(graph "then" imported { input %0 "x" f32[3] output %0 })";
    std::string const part = R"(graph "else" imported { input %0 "x" f32[3]
        node 0 "part" slice(%0) {start = [1], size = [2], stride = [1]} -> %1 "y" f32[2] output %1 })";
    add("shapes_differ_then", true, {x}, {whole, part}, {{1, 2, 3}});
    add("shapes_differ_else", false, {x}, {whole, part}, {{2, 3}});
    // A size that the data decide inside a branch.
    std::string const find = R"(graph "then" imported { symbol $0.0 0..3 bound input %0 "x" f32[3]
        node 0 "find" non_zero(%0) -> %1 "y" i32[1,$0.0] output %1 })";
    std::string const none = R"(graph "else" imported { input %0 "x" f32[3] const %1 "c" i32[1,1] = [-1] output %1 })";
    add("data_decide_size", true, {f32({3}, {0, 5, 6})}, {find, none}, {{1, 2}});
    // The branch that is not taken would fail: its slice starts out of bounds.
    std::string const ok = R"(graph "then" imported { input %0 "x" f32[3] input %1 "at" i32[1]
        node 0 "one" slice(%0) {start = [0], size = [1], stride = [1]} -> %2 "y" f32[1] output %2 })";
    std::string const failing = R"(graph "else" imported { input %0 "x" f32[3] input %1 "at" i32[1]
        node 0 "one" slice(%0, %1) {size = [1], stride = [1]} -> %2 "y" f32[1] output %2 })";
    CaseInput const outside = input(DataType::kInt32, {1}, {99});
    add("untaken_would_fail", true, {x, outside}, {ok, failing}, {{1}});
    // A conditional in a conditional: sign of a number.
    std::string const inner = R"(graph "else" imported { input %0 "v" i32[] const %1 "zero" i32[] = [0]
        node 0 "less" elementwise(%0, %1) {operation = 13} -> %2 "negative" b[]
        node 1 "inner" conditional(%2)
            region graph "then" imported { const %0 "c" i32[] = [-1] output %0 }
            region graph "else" imported { const %0 "c" i32[] = [0] output %0 }
            -> %3 "sign" i32[]
        output %3 })";
    std::string const one = R"(graph "then" imported { input %0 "v" i32[] const %1 "c" i32[] = [1] output %1 })";
    add("nested_then", true, {input(DataType::kInt32, {}, {5})}, {one, inner}, {{1}});
    add("nested_else", false, {input(DataType::kInt32, {}, {-5})}, {one, inner}, {{-1}});
    add("nested_else_else", false, {input(DataType::kInt32, {}, {0})}, {one, inner}, {{0}});
}

} // namespace tw::ops::conditional
