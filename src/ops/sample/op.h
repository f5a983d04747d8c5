// SPDX-License-Identifier: Apache-2.0
// Chooses a token for each sequence and puts it behind.
//   scores [n, V] f32: of tokens, as token_scores gives them; logits [n, V] f32 or f16: the model's; sequences [n, S] i32,
//   S the capacity; lengths [n] i32: prompts included; prompts [n] i32; floats [n, F]; ints [n, I] i32, columns by
//   families/decoding; ends [E] i32 (optional): ids that end a sequence beside the row's own; stop words [n, 2, L] i32 (optional)
//   y0 [n] i32: tokens; y1 [n] i32: 1 where a sequence is finished; y2 [n] f32: log softmax of the token in logits;
//   y3 [n, S]: sequences; y4 [n]: lengths
// A row is finished on entry, and stays so, if its length is 0, or its limit (the most of the row, or S), or if behind the
// prompt its last token is an end, or a stop word stands at its end. Then its token is the pad, its log 0, and the rest as it was.
// Likewise if no token can come, but the log is -infinity. Else the token is written at `length`, which is one more, and the
// row is finished if it is now by these rules. With temperature 0 the token is that with the largest score, of equals the
// lowest id. Else, x = score / temperature in f32 and w = exp(x - max x) in units of 2^-40 (weightOf() says how), of the tokens
//   that are no less than the k-th largest x, all of its equals included;
//   of these, by falling x, then rising id, the first so many that their w are at least p of the sum, one at least;
//   of these, those with w >= minP
// the token is the first, by id, up to which the w of all add up to more than a number in [0, sum) that Philox 4x32-10 gives for
// the key seed and the counter (length, stream, 0, 0): it depends on nothing else, and is the same on every device.
#pragma once

#include "ir/attrs.h"
#include "ir/op_def.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::sample {

enum Input : int
{
    kScores,
    kLogits,
    kSequences,
    kLengths,
    kPrompts,
    kFloats,
    kInts,
    kEnds,
    kStopWords,
    kInputs,
};
enum Output : int
{
    kToken,
    kFinished,
    kLog,
    kNextSequences,
    kNextLengths,
};

} // namespace tw::ops::sample
