// SPDX-License-Identifier: Apache-2.0
// One step of beam search, for n sequences of b beams each.
//   scores [n b, V] f32: logs of the tokens' probabilities, as token_scores gives them; sequences [n, b, S] i32, S the capacity;
//   lengths [n] i32: of the beams, prompts included; prompts [n] i32; sums [n, b] f32: of the beams' scores; done [n] i32; ends of
//   beams so far, the best in front: sequences [n, b, S], lengths [n, b] i32 (the first one of 0 ends the list), scores [n, b] f32;
//   floats [n, F]; ints [n, I] i32, columns by families/decoding; ids [E] i32 (optional) that end a sequence beside the row's own;
//   places [n, b, S] i32 (with `places` alone): for each beam and position the beam whose part of a cache has it
//   y0 [n, b] i32: tokens; y1 [n, b] i32: the beams that they go on from; y2.. y8: sequences, lengths, sums, done, ends (sequences,
//   lengths, scores); y9: places
// A row is over on entry if it is done or its length is 0: its tokens are pads, parents the beams themselves, and the rest is
// as it was. So are those of a row whose length has its limit (the most of the row, or S); its beams become ends, and it is done.
// Else the 2 b best of all sums + scores (f32; what is -infinity is none) come in turn, equals by beam, then id. If the token
// ends sequences, it becomes an end if it is one of the first b; else it goes into the next beam, until b are full. Beams that
// stay empty have the sum -infinity, the pad, and themselves as parents. Ends have the score sum / (length - prompt)^penalty, their
// own token counted; a list that has b takes one that is better than its worst, which goes; of equals the newer stands in front.
// A row becomes done if b ends are there and, by `early`: 1: at once; 0 and others: the best beam's sum, scored as an end of now,
// is not above the worst; 2 with a penalty above 0: scored as an end at the limit, likewise. Then if no beam is left. Else, when the length has
// its limit: its beams become ends first.
// What lies behind a length is what lay there in the sequence that it was copied from; there is no end behind the list: 0, -infinity, pads.
#pragma once

#include "ir/attrs.h"
#include "ir/op_def.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::beam_step {

struct Attrs : ir::AttrsOf<Attrs>
{
    bool places = false;

    void visit(ir::AttrVisitor& v) override { v.field(1, "places", places); }
};

enum Input : int
{
    kScores,
    kSequences,
    kLengths,
    kPrompts,
    kSums,
    kDone,
    kEndSequences,
    kEndLengths,
    kEndScores,
    kFloats,
    kInts,
    kEndIds,
    kPlaces,
    kInputs,
};
enum Output : int
{
    kTokens,
    kParents,
    kNextSequences,
    kNextLengths,
    kNextSums,
    kNextDone,
    kNextEndSequences,
    kNextEndLengths,
    kNextEndScores,
    kNextPlaces,
};

constexpr int64_t kMostBeams = 256;

} // namespace tw::ops::beam_step
