// SPDX-License-Identifier: Apache-2.0
// Turns an op's case into a graph of one node with input tensors, and compares tensors with the op's tolerance.
#pragma once

#include <bit>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/tensor.h"
#include "ir/op_def.h"
#include "ops/cases.h"

namespace tw::test {

// Values of a domain; deterministic for a seed.
inline void fillRandom(TensorRef const& t, ops::Domain const& domain, uint64_t seed)
{
    std::mt19937_64 random(seed);
    for (int64_t i = 0; i < t.count(); ++i) {
        double const u = double(random() >> 11) * 0x1p-53;
        double v = domain.lo + u * (domain.hi - domain.lo);
        bool const whole = domain.integer || !isFloating(t.type);
        if (whole)
            v = std::floor(domain.lo + u * (domain.hi - domain.lo + 1));
        if (t.type == DataType::kBool)
            v = double(random() & 1);
        t.set(i, v);
    }
}

inline ops::Domain domainOf(ir::Node const& node, int i)
{
    ops::Domain d;
    if (node.inputs[i] && !isFloating(node.inputs[i]->type))
        d = ops::Domain{-4, 4, true, false};
    if (node.op->domain)
        node.op->domain(node, i, d);
    return d;
}

struct CaseGraph
{
    ir::Graph graph;
    ir::Node* node = nullptr;
    std::vector<Tensor> storage;
    std::vector<TensorRef> graphInputs; // in the order of graph.inputs
    std::vector<TensorRef> nodeInputs;  // null data: absent
};

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
        if (in.present && !in.constant)
            g->graphInputs.push_back(t);
        if (i < g->node->inputs.size())
            g->nodeInputs.push_back(in.present ? t : TensorRef{});
    }
    return g;
}

// Empty when equal within the tolerance, else where and how much.
inline std::string compare(TensorRef const& got, TensorRef const& want, ops::Tolerance const& tolerance)
{
    if (got.type != want.type || !(got.dims == want.dims))
        return std::string("got ") + nameOf(got.type) + got.dims.str() + ", want " + nameOf(want.type) +
               want.dims.str();
    double maxAbs = 0;
    for (int64_t i = 0; i < want.count(); ++i)
        if (std::isfinite(want.get(i)))
            maxAbs = std::max(maxAbs, std::fabs(want.get(i)));
    for (int64_t i = 0; i < want.count(); ++i) {
        double const a = got.get(i), b = want.get(i);
        bool equal = a == b || (std::isnan(a) && std::isnan(b));
        if (!equal && isFloating(want.type) && std::isfinite(a) && std::isfinite(b))
            equal = std::fabs(a - b) <= tolerance.absolute * maxAbs + tolerance.relative * std::fabs(b);
        if (!equal)
            return "element " + std::to_string(i) + ": got " + std::to_string(a) + ", want " + std::to_string(b) +
                   " (max |want| " + std::to_string(maxAbs) + ")";
    }
    return {};
}

inline ops::Tolerance toleranceOf(ir::Node const& node, DataType type)
{
    return node.op->tolerance ? node.op->tolerance(node, type) : ops::Tolerance::forType(type);
}

} // namespace tw::test
