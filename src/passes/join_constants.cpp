// SPDX-License-Identifier: Apache-2.0
#include "passes/join_constants.h"

#include "ops/concatenation/op.h"
#include "ops/slice/op.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

Result<ir::Value*> partOf(recipe::Computation& c, DataType type, int64_t rows, RowPart const& p)
{
    if (!p.from)
        return c.literal(type, {rows, p.count}, 0);
    int64_t const all = ir::extentsOf(p.from->shape).volume() / rows;
    ir::Value* const whole = c.take(*p.from, {rows, all});
    if (p.count == all)
        return whole;
    ops::slice::Attrs a;
    a.start = {0, p.first};
    a.size = {rows, p.count};
    a.stride = {1, 1};
    return c.add(ops::slice::def(), a, {whole});
}

} // namespace

Result<ir::Value*> joinConstants(ir::Graph& g, recipe::Recipes* recipes, std::string const& name, DataType type,
                                 Extents const& dims, int64_t rows, std::vector<RowPart> const& parts)
{
    auto joined = std::make_shared<ir::Constant>();
    if (rows == 0 || dims.volume() == 0) {
        joined->data = Blob::own({});
        return g.addConstant(name, type, dims, std::move(joined));
    }
    recipe::Computation c(recipes);
    std::vector<ir::Value*> values;
    for (RowPart const& p : parts) {
        TW_ASSIGN(ir::Value * v, partOf(c, type, rows, p));
        values.push_back(v);
    }
    TW_ASSIGN(ir::Value * whole, c.add(ops::concatenation::def(), ops::concatenation::Attrs(1), values));
    TW_ASSIGN(joined->data, c.finish(whole));
    return g.addConstant(name, type, dims, std::move(joined));
}

} // namespace tw::passes
