// SPDX-License-Identifier: Apache-2.0
// Text that writes a dense tensor in aligned words of 16 bytes whatever its rows are pieced together from: stretches of
// elements that may begin anywhere.
#pragma once

#include <cstdint>

namespace tw::ops {

// Bytes of an average segment from which words of one segment are what counts; of an element up to which joining them
// beats reading elements one by one.
constexpr int64_t kLeastSegmentBytes = 96, kMostJoinedBytes = 2;
constexpr int kWordThreads = 256;
constexpr int64_t kWordBytes = 16;

// Behind the prelude. copyWords<S>(source, y, count, each): elements of S bytes; a block writes each * 256 words, each
// <= 4. y is aligned to 16 bytes, `count` elements long, and consists of segments, numbered along it. A source has
//   Spot               where a position of y lies: its segment and its place in that
//   kClips             whether pieces may have a border
//   spot(i)            of element i of y; memory that it reads is not looked at
//   next(spot)         the beginning of the next segment
//   piece(spot)        a Piece: where it comes from
//   fill()             a word of border
//   segment(i)         number of the segment of element i
//   end(segment)       the element of y behind it
extern char const* const kWordsText;

// Elements of `unitBytes` around x, [low, high) of them there, as Piece wants them.
struct Stretch
{
    void const* x = nullptr; // aligned down to 16 bytes
    int64_t at = 0;          // where element 0 lies from there
    int64_t begin = 0, span = 0;
};
Stretch stretchOf(void const* x, int64_t low, int64_t high, int64_t unitBytes);

} // namespace tw::ops
