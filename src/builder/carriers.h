// SPDX-License-Identifier: Apache-2.0
// Values between nodes that choose types and formats: what they are carried in, and what it costs where maker and
// readers differ.
#pragma once

#include <functional>
#include <vector>

#include "base/format.h"
#include "base/result.h"
#include "base/types.h"
#include "tune/pbqp.h"

namespace tw::builder {

// What a value exists in.
struct Carrier
{
    DataType type = DataType::kFloat;
    Format format = Format::kLinear;
    bool operator==(Carrier const&) const = default;
    auto operator<=>(Carrier const&) const = default; // NOLINT(modernize-use-nullptr): not what is written here
};

// What a reader wants: of `isAnyType` the format alone counts.
struct Wanted
{
    Carrier carrier;
    bool isAnyType = false;
    bool operator==(Wanted const&) const = default;

    bool isMetBy(Carrier const& c) const { return c.format == carrier.format && (isAnyType || c.type == carrier.type); }
};

// What one node of the problem wants of one value, by label.
struct Use
{
    int node = 0;
    std::vector<std::vector<Wanted>> wanted;
};

// Microseconds that it takes to make the second of the first; tune::pbqp::kImpossible where nothing does.
using CopyTime = std::function<Result<double>(Carrier const& from, Carrier const& to)>;

// Edges of the problem between the node that makes a value (`produced`: in what, by label) and those that use it.
Result<void> addValue(tune::pbqp::Problem& problem, int producer, std::vector<Carrier> const& produced,
                      std::vector<Use> const& uses, CopyTime const& timeOf);

} // namespace tw::builder
