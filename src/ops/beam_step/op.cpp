// SPDX-License-Identifier: Apache-2.0
#include "ops/beam_step/op.h"

#include "families/decoding/check.h"
#include "tactic/registry.h"

namespace tw::ops::beam_step {

namespace {

using decoding::checkInput;
using ir::Dim;
using ir::Shape;

Result<void> infer(ir::InferContext& ctx)
{
    if (ctx.type(kSequences) != DataType::kInt32 || ctx.rank(kSequences) != 3)
        return ctx.error("sequences {} must be i32 [rows, beams, capacity]", ctx.describe(kSequences));
    Shape const sequences = ctx.shape(kSequences);
    Dim const n = sequences[0], beams = sequences[1];
    if (!beams.isConst() || beams.value() < 1 || beams.value() > kMostBeams)
        return ctx.error("sequences {} must have 1 to {} beams, known when the engine is built",
                         ctx.describe(kSequences), kMostBeams);
    TW_TRY(checkInput(ctx, kScores, "scores", DataType::kFloat, {n * beams, -1}, "[rows beams, tokens]"));
    if (Dim const all = ctx.shape(kScores)[1] * beams; all.isConst() && all.value() > INT32_MAX)
        return ctx.error("scores {} of a row of {} beams have 2^31 elements or more", ctx.describe(kScores),
                         beams.value());
    TW_TRY(checkInput(ctx, kLengths, "lengths", DataType::kInt32, {n}, "[rows]"));
    TW_TRY(checkInput(ctx, kPrompts, "lengths of prompts", DataType::kInt32, {n}, "[rows]"));
    TW_TRY(checkInput(ctx, kSums, "sums", DataType::kFloat, {n, beams}, "[rows, beams]"));
    TW_TRY(checkInput(ctx, kDone, "done", DataType::kInt32, {n}, "[rows]"));
    TW_TRY(checkInput(ctx, kEndSequences, "ends", DataType::kInt32, {n, beams, sequences[2]},
                      "[rows, beams, capacity], as the sequences"));
    TW_TRY(checkInput(ctx, kEndLengths, "lengths of ends", DataType::kInt32, {n, beams}, "[rows, beams]"));
    TW_TRY(checkInput(ctx, kEndScores, "scores of ends", DataType::kFloat, {n, beams}, "[rows, beams]"));
    TW_TRY(checkInput(ctx, kFloats, "numbers", DataType::kFloat, {n, -1}, "[rows, columns]"));
    TW_TRY(checkInput(ctx, kInts, "numbers", DataType::kInt32, {n, -1}, "[rows, columns]"));
    TW_TRY(checkInput(ctx, kEndIds, "ids of ends", DataType::kInt32, {-1}, "[ids]"));
    TW_TRY(checkInput(ctx, kPlaces, "places", DataType::kInt32, {n, beams, sequences[2]},
                      "[rows, beams, capacity], as the sequences"));
    bool const places = ctx.attrs<Attrs>().places;
    if (places != ctx.has(kPlaces))
        return ctx.error(places ? "places are missing" : "places are given and not asked for");
    for (int i : {kTokens, kParents})
        ctx.output(i, DataType::kInt32, {n, beams});
    ctx.output(kNextSequences, DataType::kInt32, sequences);
    ctx.output(kNextLengths, DataType::kInt32, {n});
    ctx.output(kNextSums, DataType::kFloat, {n, beams});
    ctx.output(kNextDone, DataType::kInt32, {n});
    ctx.output(kNextEndSequences, DataType::kInt32, sequences);
    ctx.output(kNextEndLengths, DataType::kInt32, {n, beams});
    ctx.output(kNextEndScores, DataType::kFloat, {n, beams});
    if (places)
        ctx.output(kNextPlaces, DataType::kInt32, sequences);
    return {};
}

void domain(ir::Node const& node, int input, Domain& d)
{
    auto const shape = [&](int i) -> Shape const& { return node.inputs[size_t(i)]->shape; };
    switch (input) {
    case kScores:
        d = {-4, 0, false, true};
        break;
    case kSums:
    case kEndScores:
        d = {-3, 0};
        break;
    case kSequences:
    case kEndSequences:
        d = decoding::below(shape(kScores)[1], -1);
        break;
    case kLengths:
        d = decoding::below(shape(kSequences)[2], 1);
        break;
    case kPrompts:
    case kEndLengths:
        d = decoding::below(shape(kSequences)[2] + 1, 0);
        break;
    case kDone:
        d = {0, 0, true};
        break;
    case kFloats:
        d = {-0.5, 2};
        break;
    case kInts:
        d = {0, 9, true};
        break;
    case kEndIds:
        d = {-1, 3, true};
        break;
    case kPlaces:
        d = decoding::below(shape(kSequences)[1], 0);
        break;
    default:
        break;
    }
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "beam_step",
    TW_OP_PARTS(Attrs),
    .inputs = {kEndIds, kInputs},
    .domain = domain,
    .mixesFloats = true,
};

} // namespace tw::ops::beam_step
