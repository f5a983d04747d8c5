// SPDX-License-Identifier: Apache-2.0
// Every pass, one declaration each; pipeline.cpp gives the order. What a pass does stands at the head of its file. A
// pass works on one graph; the runner brings it to regions too.
#pragma once

#include "passes/pass.h"

namespace tw::passes {

Result<bool> removeDead(ir::Graph& g, PassContext const& ctx);
Result<bool> foldConstants(ir::Graph& g, PassContext const& ctx);
Result<bool> simplifyShapes(ir::Graph& g, PassContext const& ctx);
Result<bool> constantsIntoRegions(ir::Graph& g, PassContext const& ctx);
Result<bool> inlineRegions(ir::Graph& g, PassContext const& ctx);
Result<bool> hoistInvariants(ir::Graph& g, PassContext const& ctx);
Result<bool> captureCarried(ir::Graph& g, PassContext const& ctx);
Result<bool> countConditions(ir::Graph& g, PassContext const& ctx);
Result<bool> iterateGathers(ir::Graph& g, PassContext const& ctx);
Result<bool> expandPowers(ir::Graph& g, PassContext const& ctx);
Result<bool> fuseCumulativeSum(ir::Graph& g, PassContext const& ctx);
Result<bool> fuseUnrolledRecurrence(ir::Graph& g, PassContext const& ctx);
Result<bool> fuseRecurrence(ir::Graph& g, PassContext const& ctx);
Result<bool> fuseScatterReduction(ir::Graph& g, PassContext const& ctx);
Result<bool> removeIdentities(ir::Graph& g, PassContext const& ctx);
Result<bool> removeDeadRows(ir::Graph& g, PassContext const& ctx);
Result<bool> foldPadding(ir::Graph& g, PassContext const& ctx);
Result<bool> foldScaleIntoConvolution(ir::Graph& g, PassContext const& ctx);
Result<bool> fuseLayerNorm(ir::Graph& g, PassContext const& ctx);
Result<bool> fuseRotary(ir::Graph& g, PassContext const& ctx);
Result<bool> fuseAttention(ir::Graph& g, PassContext const& ctx);
Result<bool> fuseShuffleReduce(ir::Graph& g, PassContext const& ctx);
Result<bool> fuseReduce(ir::Graph& g, PassContext const& ctx);
Result<bool> fuseLogSoftmax(ir::Graph& g, PassContext const& ctx);
Result<bool> sinkReshapes(ir::Graph& g, PassContext const& ctx);
Result<bool> patchesToMatmul(ir::Graph& g, PassContext const& ctx);
Result<bool> mergeMatmuls(ir::Graph& g, PassContext const& ctx);
Result<bool> mergeUnrolledProducts(ir::Graph& g, PassContext const& ctx);
Result<bool> mergeConvolutions(ir::Graph& g, PassContext const& ctx);
Result<bool> fuseActivation(ir::Graph& g, PassContext const& ctx);
Result<bool> fuseEpilogue(ir::Graph& g, PassContext const& ctx);
Result<bool> multiplyByReciprocals(ir::Graph& g, PassContext const& ctx);
Result<bool> fusePointwise(ir::Graph& g, PassContext const& ctx);
Result<bool> fuseExpandedDepthwise(ir::Graph& g, PassContext const& ctx);
Result<bool> fuseGate(ir::Graph& g, PassContext const& ctx);
Result<bool> fuseMatmulNorm(ir::Graph& g, PassContext const& ctx);
Result<bool> fuseResultQuantization(ir::Graph& g, PassContext const& ctx);
Result<bool> moveQuantization(ir::Graph& g, PassContext const& ctx);
Result<bool> quantizeRanges(ir::Graph& g, PassContext const& ctx);
bool wantsIntegers(ir::Graph const& g, PassContext const& ctx);
Result<bool> fuseQuantization(ir::Graph& g, PassContext const& ctx);
Result<bool> fuseByteTables(ir::Graph& g, PassContext const& ctx);
Result<bool> lowerPrecision(ir::Graph& g, PassContext const& ctx);
Result<bool> shareConstants(ir::Graph& g, PassContext const& ctx);

} // namespace tw::passes
