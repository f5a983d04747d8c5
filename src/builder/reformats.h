// SPDX-License-Identifier: Apache-2.0
// The nodes between those who do not agree on a value's format: what one costs, and where they go.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "builder/carriers.h"
#include "builder/formats.h"
#include "ir/graph.h"

namespace tw::builder {

struct Reformat
{
    ir::Value const& value;
    Extents dims, maxDims; // of the value
    Carrier from, to;
};
// What reformats took on a GPU, where one takes a launch and its bytes at some rate: at sizes between measured ones times are
// between theirs, in proportion.
class ReformatTimes
{
public:
    std::optional<double> between(std::string const& kind, int64_t bytes) const;
    void add(std::string const& kind, int64_t bytes, double microseconds) { times_[kind][bytes] = microseconds; }

private:
    std::map<std::string, std::map<int64_t, double>> times_;
};

// In microseconds; tune::pbqp::kImpossible where no kernel does it. `graph`: the value's. Another type takes a cast in
// formats that its kernels know, with reformats before it and after. `known`: of the same options, asked first.
Result<double> timeOf(Reformat const& reformat, ir::Graph const& graph, tune::Options const& options,
                      TimesOf const& timesOf, ReformatTimes& known);

// A node of `alone` that makes the second carrier of the first, of one type, and its problem in these formats.
Result<ops::Problem> poseReformat(Reformat const& reformat, ir::Graph const& graph, tune::Options const& options,
                                  ir::Graph& alone);

// Of the smallest conversion between f32 and f16, either way.
Result<double> leastCastTime(ir::Graph const& graph, tune::Options const& options, TimesOf const& timesOf);

// Gives every value of a scheduled graph its format and puts reformats in: one for all readers that want the same.
// `chosen`: of each node, in the graph's order; `inputs` and `outputs`: of the network's. Names stay with the network's
// inputs and outputs. The number of nodes put in.
int insertReformats(ir::Graph& graph, std::span<ops::Formats const> chosen, std::span<Format const> inputs,
                    std::span<Format const> outputs);

} // namespace tw::builder
