// SPDX-License-Identifier: Apache-2.0
// The cases of an op: what every tactic, the interpreter and the text and plan round trips are tested on. Written once,
// in src/ops/<op>/cases.cpp, which defines tw::ops::<op>::cases(CaseList&); no part of the shipped library.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/extents.h"
#include "base/types.h"
#include "ir/graph.h"

namespace tw::ops {

struct CaseInput
{
    DataType type = DataType::kFloat;
    Extents dims;
    std::vector<double> values; // empty: random from the op's domain
    bool constant = false;      // a constant of the graph (weights) or a shape tensor, not an input
    bool present = true;        // false: optional input left out
    bool uneven = false;        // 5 (c mod 7) is added for each coordinate c, so that whole rows and columns differ
};

struct Case
{
    std::string name;
    std::shared_ptr<ir::AttrsBase> attrs;
    std::vector<CaseInput> inputs;
    // Expected values of output i, worked out by hand; empty: not stated.
    std::vector<std::vector<double>> expected;
    bool isConstant = false; // all elements of the outputs are the same, and that is what the case is for
    // Makes the node's regions (textRegions()), for ops that have them.
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
// Of a floating type, in names of cases.
inline std::string wordOf(DataType type)
{
    return isNarrowFloat(type) ? "half" : "single";
}
inline CaseInput constant(DataType type, Extents const& dims, std::vector<double> values = {})
{
    return CaseInput{type, dims, std::move(values), true, true};
}
inline CaseInput uneven(DataType type, Extents const& dims)
{
    CaseInput in = input(type, dims);
    in.uneven = true;
    return in;
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

// Regions out of their text form.
std::function<std::vector<std::unique_ptr<ir::Graph>>()> textRegions(std::vector<std::string> texts);

// Every op folder with a cases.cpp, by name.
class Draw;
struct OpCases
{
    char const* op;
    void (*add)(CaseList&);
    // One with random sizes and attributes; null where there is no randomCase().
    void (*addRandom)(CaseList&, Draw&, std::string const& name);
};
std::span<OpCases const> allCases();
// Those of one op; none where its folder has no cases.cpp.
CaseList casesOf(std::string_view op);

} // namespace tw::ops
