// SPDX-License-Identifier: Apache-2.0
// Makes one of two sums of integers with numbers, as lengths and places of decoders are counted:
//   (x + a) + b -> x + (a + b)    x - a counts as x + (-a); x + 0 goes with remove_identities
// Sums wrap, so that their order is free. Any form. Leaves alone: numbers that refit may change, or of which there are others in one constant;
// sums that stretch x; wishes of the user. The inner sum stays for others who read it.
#include "ops/elementwise/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using Operation = ops::elementwise::Operation;

// x + number, of x's shape.
struct NumberSum
{
    ir::Value* x = nullptr;
    size_t constant = 0; // the input that holds the number
    uint32_t number = 0;
};
std::optional<NumberSum> sumOf(ir::Node const* n, recipe::Recipes const* refit)
{
    bool const isSum = is(n, Operation::kSum);
    if ((!isSum && !is(n, Operation::kSub)) || n->outputs[0]->type != DataType::kInt32 || hasWish(*n))
        return std::nullopt;
    for (size_t i : {1, 0}) {
        if (i == 0 && !isSum)
            continue;
        auto const number = numberOf(n->inputs[i], refit);
        ir::Value* const x = n->inputs[1 - i];
        if (number && x->shape == n->outputs[0]->shape)
            return NumberSum{x, i, uint32_t(int64_t(isSum ? *number : -*number))};
    }
    return std::nullopt;
}

Result<bool> join(ir::Graph& g, ir::Node& n, recipe::Recipes const* refit)
{
    auto const outer = sumOf(&n, refit);
    auto const inner = outer ? sumOf(outer->x->producer, refit) : std::nullopt;
    if (!inner)
        return false;
    ir::Value const& old = *n.inputs[outer->constant];
    Tensor number(DataType::kInt32, ir::extentsOf(old.shape));
    for (int64_t i = 0; i < number.ref().count(); ++i)
        number.ref().as<int32_t>()[i] = int32_t(outer->number + inner->number);
    ir::Value* const sum = g.addConstant(old.name + ".joined", DataType::kInt32, number.dims(), number.data());
    TW_ASSIGN(ir::Node * made, g.addNode(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kSum).clone(),
                                         {inner->x, sum}, n.name, {}, g.positionOf(&n)));
    takePlaceOf(*made, n);
    made->outputs[0]->name = n.outputs[0]->name;
    made->outputs[0]->host = n.outputs[0]->host;
    g.replaceAllUses(n.outputs[0], made->outputs[0]);
    g.eraseNode(&n);
    return true;
}

} // namespace

Result<bool> joinIntegerSums(ir::Graph& g, PassContext const& ctx)
{
    return rewriteEach(
        g, [](ir::Node const& n) { return n.op == &ops::elementwise::def(); },
        [&](ir::Node& n) { return join(g, n, ctx.recipes); });
}

} // namespace tw::passes
