// SPDX-License-Identifier: Apache-2.0
// Every case of every op that has CUDA tactics, with the reference's results where they are wanted.
#pragma once

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "interp/interp.h"
#include "support/case_problem.h"
#include "support/cuda_libraries.h"
#include "tactic/registry.h"

namespace tw::test {

struct CudaCase
{
    ir::OpDef const* op = nullptr;
    std::string name; // "softmax.half"
    std::unique_ptr<CaseGraph> graph;
    std::vector<Tensor> want;
    ops::Problem problem;
};

enum class Results
{
    kNone, // what writes kernels asks for shapes alone
    kReference,
};

// Which of the cases, by their numbers.
using CaseShare = std::function<bool(size_t)>;

// The problem, and with Results::kReference the results. Sizes that depend on the data come from the reference, too.
inline Result<void> solve(CudaCase& c, Results results)
{
    TW_ASSIGN(auto const shapes, interp::inferConcrete(*c.graph->node, c.graph->nodeInputs));
    bool const isBounded = std::any_of(shapes.begin(), shapes.end(), [](auto const& s) { return s.bounded; });
    if (results == Results::kNone && !isBounded) {
        TW_ASSIGN(c.problem, caseProblem(*c.graph));
        return {};
    }
    uint64_t randomState = 1;
    interp::Options options;
    options.randomState = &randomState;
    TW_ASSIGN(c.want, interp::runNode(*c.graph->node, c.graph->nodeInputs, options));
    c.problem = caseProblem(*c.graph, c.want);
    return {};
}

// Cases whose name contains `filter`, of them those that `isIn` takes. Those that cannot be made are printed and
// counted.
inline std::vector<CudaCase> cudaCases(std::string const& filter, int& failures, Results results,
                                       CaseShare const& isIn = {})
{
    std::vector<CudaCase> out;
    size_t number = 0;
    for (ir::OpDef const* op : ops::all()) {
        if (!op->cudaTactics)
            continue;
        for (ops::CaseList const list = ops::casesOf(op->name); ops::Case const& c : list.cases) {
            CudaCase made;
            made.op = op;
            made.name = std::string(op->name) + "." + c.name;
            if (made.name.find(filter) == std::string::npos || (isIn && !isIn(number++)))
                continue;
            auto fail = [&](Error const& e) {
                std::printf("FAILED %s: %s\n", made.name.c_str(), e.message.c_str());
                ++failures;
            };
            auto graph = makeCase(*op, c);
            if (!graph.ok()) {
                fail(graph.error());
                continue;
            }
            made.graph = std::move(*graph);
            if (auto const solved = solve(made, results); !solved.ok()) {
                fail(solved.error());
                continue;
            }
            out.push_back(std::move(made));
        }
    }
    return out;
}

} // namespace tw::test
