// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/loop/cases_text.h"

namespace tw::ops::loop {

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
// or any of them as they are in between.
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

    RegionText body("body");
    body.inputs(types);
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
            v = body.apply(kOperations[d.from(0, 3)], v, other, partType);
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
