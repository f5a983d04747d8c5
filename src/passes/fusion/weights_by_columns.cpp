// SPDX-License-Identifier: Apache-2.0
// Turns the constant matrices of products of few rows, so that a column lies together, as the kernel of these reads it:
//   matrix_multiply(x, w [k, n])  ->  matrix_multiply(x, transposed w [n, k], b transposed)
// Kernels of many rows read either, so that an engine with a profile for steps of a decoder and one for prompts has each matrix once.
// The constant has a recipe for refits. In FP16 or BF16 on GPUs of capability 8.0 and later, where the first optimization profile has up to 16 rows. Expects
// Form::kFused. Stands behind fuse_norm_matmul, which makes new weights. Leaves alone: weights that others read, too, gated products, whose columns are
// packed anyway, and what the user wants in FP32.
#include "ops/matrix_multiply/op.h"
#include "ops/shuffle/op.h"
#include "passes/few_rows.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/rewrite.h"
#include "recipe/recipes.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::matrix_multiply::Attrs;
using ops::matrix_multiply::MatrixOperation;

// A constant [.., k, n], all before them 1.
bool isMatrix(ir::Value const& w)
{
    if (!w.isConstant() || w.rank() < 2)
        return false;
    Extents const dims = ir::extentsOf(w.shape);
    return dims[dims.rank - 1] * dims[dims.rank - 2] == dims.volume() && dims.volume() > 0;
}

bool isWanted(ir::Graph const& g, ir::Node const& n, PassContext const& ctx)
{
    if (n.op != &ops::matrix_multiply::def() || n.body || ops::sumsIntegers(n) || ops::matrix_multiply::isGated(n) ||
        ops::matrix_multiply::hasNorm(n))
        return false;
    auto const& a = n.attrsAs<Attrs>();
    ir::Value const& w = *n.inputs[ops::matrix_multiply::kB];
    return a.a != MatrixOperation::kTranspose && a.b == MatrixOperation::kNone && isMatrix(w) &&
           isNarrowFloat(w.type) && n.outputs[0]->type == w.type && g.useCount(&w) == 1 &&
           hasFewRows(g, n.outputs[0]->shape, ctx);
}

} // namespace

Result<bool> weightsByColumns(ir::Graph& g, PassContext const& ctx)
{
    if (!ctx.target.gpu() || ctx.target.gpu()->capability < 80)
        return false;
    return rewriteEach(
        g, [&](ir::Node& n) { return isWanted(g, n, ctx); },
        [&](ir::Node& node) -> Result<bool> {
            ir::Value const& w = *node.inputs[ops::matrix_multiply::kB];
            Extents dims = ir::extentsOf(w.shape);
            int64_t &k = dims[dims.rank - 2], &n = dims[dims.rank - 1];
            recipe::Computation c(ctx.recipes);
            ops::shuffle::Attrs turn;
            turn.firstTranspose = {1, 0};
            TW_ASSIGN(ir::Value * turned, c.add(ops::shuffle::def(), turn, {c.take(w, {k, n})}));
            TW_ASSIGN(BlobPtr made, c.finish(turned));
            std::swap(k, n);
            node.inputs[ops::matrix_multiply::kB] = constantWith(g, w, w.type, dims, std::move(made));
            node.attrsAs<Attrs>().b = MatrixOperation::kTranspose;
            g.eraseUnusedValues(); // weights of all layers would be there twice
            return true;
        });
}

} // namespace tw::passes
