// SPDX-License-Identifier: Apache-2.0
// Every pass, a function of one type; pipeline.cpp gives the order. What a pass does stands at the head of its file. A
// pass works on one graph; the runner brings it to regions too.
#pragma once

#include <type_traits>

#include "passes/pass.h"

namespace tw::passes {

std::remove_pointer_t<Run> removeDead, dropExpansions, rowsToCacheUpdate, windowScores, headsApart, joinMasks,
    activationBeforeMovement, fuseAppendAttention, joinIntegerSums, packedRows, narrowCaches, foldConstants,
    simplifyShapes, constantsIntoRegions, inlineRegions, hoistInvariants, captureCarried, countConditions,
    iterateGathers, expandPowers, fuseCumulativeSum, fuseUnrolledRecurrence, fuseRecurrence, fuseScatterReduction,
    indexRows, removeIdentities, removeDeadRows, foldPadding, foldScaleIntoConvolution, fuseLayerNorm, fuseRotary,
    fuseAttention, batchesFirst, fuseShuffleReduce, fuseReduce, fuseLogSoftmax, sinkReshapes, cancelMovements,
    pixelsToRows, patchesToMatmul, convolutionToMatmul, transposedToPixels, splitMultipliedDepthwise, mergeMatmuls,
    mergeUnrolledProducts, mergeConvolutions, joinFunctions, sumIntoScatter, fuseActivation, fuseEpilogue,
    multiplyByReciprocals, fusePointwise, fuseExpandedDepthwise, copyConstantActivations, fuseGate, fuseNormMatmul,
    weightsByColumns, fuseMatmulNorm, fuseResultQuantization, moveQuantization, moveZeroPoints, keepIntegerWeights,
    quantizeRanges, fuseQuantization, fuseByteTables, lowerPrecision, widenHalf, roundToHalf, shareNodes,
    shareConstants, gatherToReshape, scatterToConcatenation, sequencesAsImages;

// Of quantize_ranges: whether the user has decided.
bool wantsIntegers(ir::Graph const& g, PassContext const& ctx);

} // namespace tw::passes
