// SPDX-License-Identifier: Apache-2.0
// Turns an op's case into a graph of one node with input tensors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/tensor.h"
#include "cases/cases.h"
#include "ir/op_def.h"
#include "tune/check.h"

namespace tw::test {

// What the tuner fills and compares with, so that a test means by "equal" what a build does.
using tune::compare;
using tune::domainOf;
using tune::fillRandom;
using tune::inFormats;
using tune::toleranceOf;

struct CaseGraph
{
    ir::Graph graph;
    ir::Node* node = nullptr;
    std::vector<Tensor> storage;
    std::vector<TensorRef> graphInputs; // in the order of graph.inputs
    std::vector<TensorRef> nodeInputs;  // null data: absent
};

// CaseInput::uneven.
inline void makeUneven(TensorRef const& t)
{
    constexpr int64_t kStep = 5, kPeriod = 7; // i8 holds three dimensions of it
    for (int64_t i = 0; i < t.count(); ++i) {
        int64_t added = 0, rest = i;
        for (int k = t.dims.rank - 1; k >= 0; rest /= t.dims[k--])
            added += kStep * (rest % t.dims[k] % kPeriod);
        t.set(i, t.get(i) + double(added));
    }
}

// The seed comes from the names, so that a case has the same numbers in every run.
inline Result<std::unique_ptr<CaseGraph>> makeCase(ir::OpDef const& op, ops::Case const& c)
{
    auto g = std::make_unique<CaseGraph>();
    g->graph.name = std::string(op.name) + "." + c.name;
    uint64_t const seed = hashText(g->graph.name);
    std::vector<ir::Value*> values;
    // Two steps: domains may depend on the node, which needs its inputs. Random constants that shapes depend on must
    // have values of their own in the case.
    for (size_t i = 0; i < c.inputs.size(); ++i) {
        ops::CaseInput const& in = c.inputs[i];
        g->storage.emplace_back(in.type, in.dims);
        TensorRef const& t = g->storage.back().ref();
        for (size_t k = 0; k < in.values.size(); ++k)
            t.set(int64_t(k), in.values[k]);
        std::string const name = "in" + std::to_string(i);
        if (!in.present) {
            values.push_back(nullptr);
        } else if (in.constant) {
            auto constant = std::make_shared<ir::Constant>();
            constant->data = std::make_shared<Blob const>(t.data, size_t(t.sizeBytes()));
            values.push_back(g->graph.addConstant(name, in.type, in.dims, constant));
        } else {
            values.push_back(g->graph.addInput(name, in.type, ir::shapeOf(in.dims)));
        }
    }
    TW_ASSIGN(g->node, g->graph.addNode(op, c.attrs->clone(), values, c.name,
                                        c.regions ? c.regions() : std::vector<std::unique_ptr<ir::Graph>>{}));
    g->graph.outputs = g->node->outputs;
    for (size_t i = 0; i < c.inputs.size(); ++i) {
        ops::CaseInput const& in = c.inputs[i];
        TensorRef const& t = g->storage[i].ref();
        if (in.present && in.values.empty())
            fillRandom(t, domainOf(*g->node, int(i)), seed + i);
        if (in.uneven)
            makeUneven(t);
        if (in.present && !in.constant)
            g->graphInputs.push_back(t);
        if (i < g->node->inputs.size())
            g->nodeInputs.push_back(in.present ? t : TensorRef{});
    }
    return g;
}

} // namespace tw::test
