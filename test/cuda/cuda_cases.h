// SPDX-License-Identifier: Apache-2.0
// Every case of every op that has CUDA tactics, with the reference's results.
#pragma once

#include <cstdio>
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

// Cases whose name contains `filter`, of them every `shares`-th from number `share` on. Those that cannot be made are
// printed and counted.
inline std::vector<CudaCase> cudaCases(std::string const& filter, int& failures, int share = 0, int shares = 1)
{
    std::vector<CudaCase> out;
    int number = 0;
    for (ir::OpDef const* op : ops::all()) {
        if (!op->cudaTactics)
            continue;
        for (ops::CaseList const list = ops::casesOf(op->name); ops::Case const& c : list.cases) {
            CudaCase made;
            made.op = op;
            made.name = std::string(op->name) + "." + c.name;
            if (made.name.find(filter) == std::string::npos || number++ % shares != share)
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
            uint64_t randomState = 1;
            interp::Options options;
            options.randomState = &randomState;
            auto want = interp::runNode(*made.graph->node, made.graph->nodeInputs, options);
            if (!want.ok()) {
                fail(want.error());
                continue;
            }
            made.want = std::move(*want);
            made.problem = caseProblem(*made.graph, made.want);
            out.push_back(std::move(made));
        }
    }
    return out;
}

} // namespace tw::test
