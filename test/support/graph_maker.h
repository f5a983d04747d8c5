// SPDX-License-Identifier: Apache-2.0
// Small graphs for tests of passes and runtime: made in a few lines, fed with random numbers, compared by value.
#pragma once

#include <gtest/gtest.h>

#include "interp/interp.h"
#include "ir/graph.h"
#include "support/op_case.h"
#include "tactic/registry.h"

namespace tw::test {

class GraphMaker
{
public:
    ir::Graph g;

    ir::Value* input(std::string name, ir::Shape shape, DataType type = DataType::kFloat)
    {
        return g.addInput(std::move(name), type, std::move(shape));
    }
    // Random in [-1, 1], or the values given.
    ir::Value* constant(std::string name, Extents const& dims, std::vector<double> const& values = {},
                        DataType type = DataType::kFloat)
    {
        Tensor t(type, dims);
        fillRandom(t.ref(), ops::Domain{}, hashText(name));
        for (size_t i = 0; i < values.size(); ++i)
            t.ref().set(int64_t(i), values[i]);
        return g.addConstant(std::move(name), type, dims, t.data());
    }
    ir::Value* i32(std::string name, std::vector<double> const& values)
    {
        return constant(std::move(name), {int64_t(values.size())}, values, DataType::kInt32);
    }
    template <class A>
    ir::Value* add(ir::OpDef const& op, A attrs, std::vector<ir::Value*> inputs, std::string name)
    {
        ir::Node* n = addNode(op, std::make_unique<A>(std::move(attrs)), std::move(inputs), std::move(name));
        return n ? n->outputs[0] : nullptr;
    }
    ir::Value* add(ir::OpDef const& op, std::vector<ir::Value*> inputs, std::string name)
    {
        return add(op, ir::NoAttrs{}, std::move(inputs), std::move(name));
    }
    ir::Node* addNode(ir::OpDef const& op, std::unique_ptr<ir::AttrsBase> attrs, std::vector<ir::Value*> inputs,
                      std::string name, std::vector<std::unique_ptr<ir::Graph>> regions = {})
    {
        auto node = g.addNode(op, std::move(attrs), std::move(inputs), std::move(name), std::move(regions));
        EXPECT_TRUE(node.ok()) << node.error().message;
        return node.ok() ? *node : nullptr;
    }
    void output(ir::Value* v, std::string name = {})
    {
        if (!name.empty())
            v->name = std::move(name);
        g.outputs.push_back(v);
    }
    std::unique_ptr<ir::Graph> take() { return std::make_unique<ir::Graph>(std::move(g)); }
};

// Inputs of a graph: the symbols of their shapes bound to `sizes` (7 where not given).
inline std::vector<Tensor> randomInputs(ir::Graph const& g, ir::Bindings sizes = {})
{
    std::vector<Tensor> inputs;
    for (ir::Value const* v : g.inputs) {
        Extents dims;
        for (ir::Dim const& d : v->shape) {
            std::vector<std::string> names;
            d.collectSymbols(names);
            for (auto const& n : names)
                sizes.try_emplace(n, 7);
            dims.push(*d.eval(sizes));
        }
        inputs.emplace_back(v->type, dims);
        fillRandom(inputs.back().ref(), isFloating(v->type) ? ops::Domain{} : ops::Domain{-4, 4, true, false},
                   hashText(v->name));
    }
    return inputs;
}

inline std::vector<TensorRef> refsOf(std::vector<Tensor> const& tensors)
{
    std::vector<TensorRef> refs;
    for (Tensor const& t : tensors)
        refs.push_back(t.ref());
    return refs;
}

inline void expectSame(std::vector<TensorRef> const& got, std::vector<Tensor> const& want, double tolerance = 1e-5)
{
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i)
        EXPECT_EQ(compare(got[i], want[i].ref(), ops::Tolerance{tolerance, tolerance}), "") << "output " << i;
}

} // namespace tw::test
