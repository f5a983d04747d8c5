// SPDX-License-Identifier: Apache-2.0
// The cases of an op: what every tactic, the interpreter and the text and plan round trips are tested on. Written once,
// in op.cpp; tests, the tuner's check and benchmarks all read them.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/extents.h"
#include "base/types.h"
#include "ir/graph.h"

namespace tw::ops {

// Values that an input may take: uniform in [lo, hi]; integers only when `integer`.
struct Domain
{
    double lo = -1;
    double hi = 1;
    bool integer = false;
    bool specials = false; // sprinkle NaN, infinities, -0 (only where the op says what they give)
};

// |got - want| <= absolute * max|want| + relative * |want| for each element; NaN equals NaN, an infinity itself.
// Integers and bools are always compared exactly.
struct Tolerance
{
    double absolute = 1e-5;
    double relative = 1e-5;
    static Tolerance forType(DataType t) { return t == DataType::kHalf ? Tolerance{1e-3, 1e-3} : Tolerance{}; }
    // Of FP32 results whose factors were rounded to as many bits as FP16 has.
    Tolerance forTf32() const { return {std::max(absolute, 1e-3), std::max(relative, 1e-3)}; }
};

struct CaseInput
{
    DataType type = DataType::kFloat;
    Extents dims;
    std::vector<double> values; // empty: random from the op's domain
    bool constant = false;      // a constant of the graph (weights) or a shape tensor, not an input
    bool present = true;        // false: optional input left out
};

struct Case
{
    std::string name;
    std::shared_ptr<ir::AttrsBase> attrs;
    std::vector<CaseInput> inputs;
    // Expected values of output i, worked out by hand; empty: not stated.
    std::vector<std::vector<double>> expected;
    // Makes the node's regions (textRegions() of tactic/regions.h), for ops that have them.
    std::function<std::vector<std::unique_ptr<ir::Graph>>()> regions = {};
};

inline CaseInput input(DataType type, Extents const& dims, std::vector<double> values = {})
{
    return CaseInput{type, dims, std::move(values), false, true};
}
inline CaseInput f32(Extents const& dims, std::vector<double> values = {})
{
    return input(DataType::kFloat, dims, std::move(values));
}
inline CaseInput constant(DataType type, Extents const& dims, std::vector<double> values = {})
{
    return CaseInput{type, dims, std::move(values), true, true};
}
inline CaseInput absent()
{
    return CaseInput{DataType::kFloat, {}, {}, false, false};
}

class CaseList
{
public:
    template <class A>
    Case& add(std::string name, A attrs, std::vector<CaseInput> inputs, std::vector<std::vector<double>> expected = {})
    {
        cases.push_back(
            Case{std::move(name), std::make_shared<A>(std::move(attrs)), std::move(inputs), std::move(expected)});
        return cases.back();
    }
    std::vector<Case> cases;
};

} // namespace tw::ops
