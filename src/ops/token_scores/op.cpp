// SPDX-License-Identifier: Apache-2.0
#include "ops/token_scores/op.h"

#include "families/decoding/check.h"
#include "tactic/registry.h"

namespace tw::ops::token_scores {

namespace {

using decoding::checkInput;
using ir::Dim;

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (a.beams < 1 || a.beams > 1024)
        return ctx.error("the number of beams is {}; it must be 1 to 1024", a.beams);
    TW_TRY(decoding::checkLogits(ctx, kLogits));
    Dim const rows = ctx.shape(kLogits)[0], tokens = ctx.shape(kLogits)[1];
    if (rows.isConst() && rows.value() % a.beams != 0)
        return ctx.error("the rows of logits {} are no multiple of {} beams", ctx.describe(kLogits), a.beams);
    Dim const n = a.beams == 1 ? rows : rows.isConst() ? Dim(rows.value() / a.beams) : Dim(-1);
    if (ctx.rank(kSequences) == 3)
        TW_TRY(checkInput(ctx, kSequences, "sequences", DataType::kInt32, {n, a.beams, -1}, "[rows, beams, capacity]"));
    else
        TW_TRY(checkInput(ctx, kSequences, "sequences", DataType::kInt32, {rows, -1}, "[rows, capacity]"));
    TW_TRY(checkInput(ctx, kLengths, "lengths", DataType::kInt32, {n}, "[rows / beams]"));
    TW_TRY(checkInput(ctx, kPrompts, "lengths of prompts", DataType::kInt32, {n}, "[rows / beams]"));
    TW_TRY(checkInput(ctx, kFloats, "numbers", DataType::kFloat, {n, -1}, "[rows / beams, columns]"));
    TW_TRY(checkInput(ctx, kInts, "numbers", DataType::kInt32, {n, -1}, "[rows / beams, columns]"));
    TW_TRY(checkInput(ctx, kEnds, "ids of ends", DataType::kInt32, {-1}, "[ids]"));
    TW_TRY(checkInput(ctx, kBadWords, "bad words", DataType::kInt32, {n, 2, -1}, "[rows / beams, 2, room]"));
    ctx.output(0, DataType::kFloat, {rows, tokens});
    return {};
}

void domain(ir::Node const& node, int input, Domain& d)
{
    auto const shape = [&](int i) -> ir::Shape const& { return node.inputs[size_t(i)]->shape; };
    switch (input) {
    case kLogits:
        d = {-4, 4, false, true};
        break;
    case kSequences:
    case kEnds:
        d = decoding::below(shape(kLogits)[1], -1);
        break;
    case kLengths:
    case kPrompts:
        d = decoding::below(shape(kSequences).back() + 1, 0);
        break;
    case kFloats:
        d = {0.25, 2};
        break;
    case kInts:
    case kBadWords:
        d = {0, 6, true};
        break;
    default:
        break;
    }
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "token_scores",
    TW_OP_PARTS(Attrs),
    .inputs = {kEnds, kInputs},
    .domain = domain,
    .mixesFloats = true,
};

} // namespace tw::ops::token_scores
