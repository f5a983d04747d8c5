// SPDX-License-Identifier: Apache-2.0
#include "ops/sample/op.h"

#include "families/decoding/check.h"
#include "tactic/registry.h"

namespace tw::ops::sample {

namespace {

using decoding::checkInput;
using ir::Dim;

Result<void> infer(ir::InferContext& ctx)
{
    TW_TRY(decoding::checkLogits(ctx, kLogits));
    Dim const n = ctx.shape(kLogits)[0], tokens = ctx.shape(kLogits)[1];
    TW_TRY(checkInput(ctx, kScores, "scores", DataType::kFloat, {n, tokens}, "[rows, tokens]"));
    TW_TRY(checkInput(ctx, kSequences, "sequences", DataType::kInt32, {n, -1}, "[rows, capacity]"));
    TW_TRY(checkInput(ctx, kLengths, "lengths", DataType::kInt32, {n}, "[rows]"));
    TW_TRY(checkInput(ctx, kPrompts, "lengths of prompts", DataType::kInt32, {n}, "[rows]"));
    TW_TRY(checkInput(ctx, kFloats, "numbers", DataType::kFloat, {n, -1}, "[rows, columns]"));
    TW_TRY(checkInput(ctx, kInts, "numbers", DataType::kInt32, {n, -1}, "[rows, columns]"));
    TW_TRY(checkInput(ctx, kEnds, "ids of ends", DataType::kInt32, {-1}, "[ids]"));
    TW_TRY(checkInput(ctx, kStopWords, "stop words", DataType::kInt32, {n, 2, -1}, "[rows, 2, room]"));
    ctx.output(kToken, DataType::kInt32, {n});
    ctx.output(kFinished, DataType::kInt32, {n});
    ctx.output(kLog, DataType::kFloat, {n});
    ctx.output(kNextSequences, DataType::kInt32, ctx.shape(kSequences));
    ctx.output(kNextLengths, DataType::kInt32, {n});
    return {};
}

// Without limits, and few rows are finished: what is timed has something to do.
void domain(ir::Node const& node, int input, Domain& d)
{
    auto const shape = [&](int i) -> ir::Shape const& { return node.inputs[size_t(i)]->shape; };
    switch (input) {
    case kScores:
    case kLogits:
        d = {-4, 4, false, true};
        break;
    case kSequences:
        d = decoding::below(shape(kLogits)[1], -1);
        break;
    case kLengths:
        d = decoding::below(shape(kSequences)[1], 1);
        break;
    case kPrompts:
        d = decoding::below(shape(kSequences)[1] + 1, 0);
        break;
    case kFloats:
        d = {0.25, 1};
        break;
    case kInts:
        d = {-1, 0, true};
        break;
    case kEnds:
        d = {-1, 0, true};
        break;
    case kStopWords:
        d = {0, 6, true};
        break;
    default:
        break;
    }
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "sample",
    TW_OP_PARTS(ir::NoAttrs),
    .inputs = {kEnds, kInputs},
    .domain = domain,
    .mixesFloats = true,
};

} // namespace tw::ops::sample
