// SPDX-License-Identifier: Apache-2.0
// Functions of one INT8 number, behind a node of sums that makes it, become a table in its epilogue.
//   pointwise(conv(x, w, b)), i8 to i8        ->  conv(x, w, b; table)      convolutions and matrix products of i8
// The table is made by the reference. Expects Form::kFused; stands after fuse_pointwise. For GPUs, where it lies in the
// first cache, and CPUs with AVX-512, where it lies in registers; others pass over the tensor once more. Leaves alone: results that others read too, functions of
// several inputs (also of scales that refit may change).
#include "interp/interp.h"
#include "ops/convolution/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/pointwise/op.h"
#include "passes/list.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::Epilogue;

bool isByteFunction(ir::Node const& n)
{
    return n.op == &ops::pointwise::def() && n.inputs.size() == 1 && isQuantized(n.inputs[0]->type) &&
           isQuantized(n.outputs[0]->type);
}

// The node of sums that alone makes what `n`, a function of one INT8 number, reads; else null.
ir::Node* sumBefore(ir::Graph const& g, ir::Node const& n)
{
    ir::Node* const sum = onlyProducer(g, n.inputs[0]);
    bool const isSum = sum && (sum->op == &ops::convolution::def() || sum->op == &ops::matrix_multiply::def());
    return isSum && ops::sumsIntegers(*sum) && !ops::hasInput(*sum, Epilogue::kTable) && canJoin(*sum, n) ? sum
                                                                                                          : nullptr;
}

// What the node makes of -128 .. 127.
Result<Tensor> tableOf(ir::Node const& n)
{
    constexpr int kBytes = 256;
    Extents dims;
    for (int d = 0; d < n.inputs[0]->rank(); ++d)
        dims.push(d + 1 < n.inputs[0]->rank() ? 1 : kBytes);
    Tensor bytes(DataType::kInt8, dims);
    for (int i = 0; i < kBytes; ++i)
        bytes.ref().set(i, i - 128);
    ir::Graph alone;
    ir::Value* const x = alone.addInput("bytes", DataType::kInt8, ir::Shape(dims.begin(), dims.end()));
    TW_ASSIGN(ir::Node * copy, alone.addNode(*n.op, n.attrs->clone(), {x}, n.name));
    TW_ASSIGN(std::vector<Tensor> made, interp::runNode(*copy, {bytes.ref()}));
    return std::move(made[0]);
}

} // namespace

Result<bool> fuseByteTables(ir::Graph& g, PassContext const& ctx)
{
    TargetInfo::Cpu const* const cpu = ctx.target.cpu();
    if (cpu && cpu->isa != TargetInfo::Isa::kAvx512)
        return false;
    return changeEach(g, isByteFunction, [&](ir::Node& n) -> Result<bool> {
        ir::Node* const sum = sumBefore(g, n);
        if (!sum)
            return false;
        TW_ASSIGN(Tensor const table, tableOf(n));
        sum->inputs.resize(Epilogue::kEnd);
        sum->inputs[Epilogue::kTable] = g.addConstant(n.name + ".table", DataType::kInt8, Extents{256}, table.data());
        joinOrigins(*sum, *sum, n);
        sum->outputs[0]->name = n.outputs[0]->name;
        g.replaceAllUses(n.outputs[0], sum->outputs[0]);
        g.eraseNode(&n);
        return true;
    });
}

} // namespace tw::passes
