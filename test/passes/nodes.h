// SPDX-License-Identifier: Apache-2.0
// Nodes that many of these graphs have.
#pragma once

#include "ops/activation/op.h"
#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/reduce/op.h"
#include "ops/shuffle/op.h"
#include "ops/unary/op.h"
#include "pass_test.h"

namespace tw::test {

using ops::activation::Kind;
using ops::elementwise::Operation;
using Unary = ops::unary::Operation;

inline ir::Value* image(GraphMaker& m, std::string const& name = "x", DataType type = DataType::kFloat)
{
    return m.input(name, {ir::Dim::symbol("N"), 3, 6, 5}, type);
}

inline ir::Value* number(GraphMaker& m, std::string const& name, float value)
{
    return m.g.addConstant(name, DataType::kFloat, {1, 1, 1, 1}, &value);
}

inline ir::Value* activation(GraphMaker& m, ir::Value* x, std::string const& name, Kind kind = Kind::kRelu)
{
    return m.add(ops::activation::def(), ops::activation::Attrs(kind, 0.3f, 1.25f), {x}, name);
}

inline ir::Value* binary(GraphMaker& m, Operation o, ir::Value* a, ir::Value* b, std::string const& name)
{
    return m.add(ops::elementwise::def(), ops::elementwise::Attrs(o), {a, b}, name);
}

inline ir::Value* sum(GraphMaker& m, ir::Value* a, ir::Value* b, std::string const& name)
{
    return binary(m, Operation::kSum, a, b, name);
}

class NodeMaker : public GraphMaker
{
public:
    ir::Value* apply(Operation o, ir::Value* a, ir::Value* b, std::string const& name)
    {
        return binary(*this, o, a, b, name);
    }
    ir::Value* unary(Unary o, ir::Value* x, std::string const& name)
    {
        return add(ops::unary::def(), ops::unary::Attrs(o), {x}, name);
    }
    ir::Value* product(ir::Value* a, ir::Value* b, std::string const& name)
    {
        return add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs(), {a, b}, name);
    }
    ir::Value* mean(ir::Value* x, std::string const& name, int64_t axes = 4)
    {
        ops::reduce::Attrs a;
        a.kind = ops::reduce::Kind::kAvg;
        a.axes = axes;
        a.keepDims = true;
        return add(ops::reduce::def(), a, {x}, name);
    }
    ir::Value* cast(ir::Value* x, DataType to, std::string const& name)
    {
        return add(ops::identity::def(), ops::identity::Attrs(to), {x}, name);
    }
    ir::Value* reshape(ir::Value* x, std::vector<int64_t> dims, std::string const& name)
    {
        ops::shuffle::Attrs a;
        a.hasReshape = true;
        a.reshape = std::move(dims);
        return add(ops::shuffle::def(), a, {x}, name);
    }
};

} // namespace tw::test
