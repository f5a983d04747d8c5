// SPDX-License-Identifier: Apache-2.0
// Scores of the tokens that may come next, what decoding puts in front of choosing one: penalties for tokens that were there,
// and tokens that may not come.
//   logits [n beams, V] f32 or f16; sequences [n beams, S] or [n, beams, S] i32, S the capacity; lengths [n] i32: of a row's sequences, prompts
//   included; prompts [n] i32: lengths of prompts; floats [n, F]; ints [n, I] i32, columns by families/decoding; ends [E] i32
//   (optional): ids that end a sequence beside the row's own; bad words [n, 2, L] i32 (optional); `beams` rows of logits and
//   sequences are a row of the others.   y [n beams, V] f32
// NaN counts as -infinity: such a token never comes; +infinity as the largest float. With logSoftmax y = x - log(sum(exp(x)))
// first. Then, each number rounded to f32, in this order:
//   y > 0 ? y / repetition : y repetition, once for each token of the sequence; y - presence, then y - frequency times count,
//   for tokens behind the prompt; -infinity for a token that would make the last n of a sequence what n of it were before; for
//   the last token of a bad word whose others the sequence ends with; for those that end sequences, while length < minimum.
// Ids outside 0..V-1 are no tokens. Lengths count as 0 to S, prompts as 0 to the length; of length 0 all is -infinity.
#pragma once

#include "ir/attrs.h"
#include "ir/op_def.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::token_scores {

struct Attrs : ir::AttrsOf<Attrs>
{
    int64_t beams = 1;
    bool logSoftmax = false;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "beams", beams);
        v.field(2, "log_softmax", logSoftmax);
    }
};

enum Input : int
{
    kLogits,
    kSequences,
    kLengths,
    kPrompts,
    kFloats,
    kInts,
    kEnds,
    kBadWords,
    kInputs,
};

} // namespace tw::ops::token_scores
