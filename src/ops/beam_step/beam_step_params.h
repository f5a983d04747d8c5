// SPDX-License-Identifier: Apache-2.0
// What becomes of the best candidates of a row: the same text for CPUs and device code.
#pragma once

#include "families/decoding/row_params.h"
#include "kernels/cuda/common/params.h"

namespace tw::ops::beam_step {

using cuda::i32, cuda::i64, cuda::u32, cuda::u64;

struct Params
{
    float const* scores = nullptr;
    i32 const *sequences = nullptr, *lengths = nullptr, *prompts = nullptr;
    float const* sums = nullptr;
    i32 const *done = nullptr, *endSequences = nullptr, *endLengths = nullptr;
    float const* endScores = nullptr;
    float const* floats = nullptr;
    i32 const *ints = nullptr, *places = nullptr;
    decoding::Ends ends;
    i32 *tokens = nullptr, *parents = nullptr, *nextSequences = nullptr, *nextLengths = nullptr;
    float* nextSums = nullptr;
    i32 *nextDone = nullptr, *nextEndSequences = nullptr, *nextEndLengths = nullptr;
    float* nextEndScores = nullptr;
    i32* nextPlaces = nullptr;
    u64* keys = nullptr; // [rows, beams, 2 beams]: of each beam the best tokens, best first
    i32 vocabulary = 0, capacity = 0, beams = 0, floatColumns = 0, intColumns = 0;
};

constexpr int kBeams = 256; // the most, as in op.h

constexpr i32 kNoToken = -1, kOldEnd = -2;

struct Candidate
{
    float sum;
    i32 beam, token;
};
// A beam, or an end, as what it is made of: an old beam and a token behind it (or kNoToken), or an old end (kOldEnd).
struct Made
{
    float score;
    i32 length; // of ends
    i32 from, token;
};

struct Row
{
    decoding::Request request;
    i32 beams, length, prompt, limit;
};
TW_BOTH Row rowOf(Params const& p, i64 n)
{
    Row r;
    r.request =
        decoding::requestOf(p.floats + n * p.floatColumns, p.floatColumns, p.ints + n * p.intColumns, p.intColumns);
    r.beams = p.beams;
    r.length = decoding::clamped(p.lengths[n], 0, p.capacity);
    r.prompt = decoding::clamped(p.prompts[n], 0, r.length);
    r.limit = decoding::limitOf(r.request, p.capacity);
    return r;
}
TW_BOTH bool isOver(Params const& p, Row const& r, i64 n)
{
    return p.done[n] != 0 || r.length == 0;
}

// Of a candidate within its beam: larger for what comes first, 0 is none.
TW_BOTH u64 keyOf(float sum, float score, u32 token)
{
    float const all = decoding::scoreOf(sum + score);
    return decoding::isNever(all) ? 0 : u64(decoding::orderOf(all)) << 32 | (0xffffffffU - token);
}
TW_BOTH Candidate candidateOf(u64 key, i32 beam)
{
    u32 const bits = u32(key >> 32), plain = bits & 0x80000000U ? bits ^ 0x80000000U : ~bits;
#ifdef __CUDACC_RTC__
    float const sum = __uint_as_float(plain);
#else
    float const sum = std::bit_cast<float>(plain);
#endif
    return {sum, beam, i32(0xffffffffU - u32(key))};
}

// The state of a row while it is worked on.
struct State
{
    Made* next;
    Made* ends;
    i32 listed; // ends that there are
    i32 length;
    bool isDone;
};

TW_BOTH float scored(Row const& r, float sum, i32 length)
{
    i32 const made = length - r.prompt;
    return float(double(sum) / pow(double(made < 1 ? 1 : made), double(r.request.lengthPenalty)));
}
TW_BOTH void addEnd(Row const& r, State& s, Made const& end)
{
    if (s.listed == r.beams) {
        if (!(end.score > s.ends[s.listed - 1].score))
            return;
        --s.listed;
    }
    i32 place = 0;
    while (place < s.listed && s.ends[place].score > end.score)
        ++place;
    for (i32 i = s.listed++; i > place; --i)
        s.ends[i] = s.ends[i - 1];
    s.ends[place] = end;
}
TW_BOTH void endAll(Row const& r, State& s)
{
    for (i32 j = 0; j < r.beams; ++j)
        if (Made const& b = s.next[j]; !decoding::isNever(b.score))
            addEnd(r, s, {scored(r, b.score, s.length), s.length, b.from, b.token});
    s.isDone = true;
}
TW_BOTH bool areEndsEnough(Row const& r, State const& s)
{
    if (s.listed < r.beams)
        return false;
    if (r.request.early == 1)
        return true;
    bool const isAtLimit = r.request.early == 2 && r.request.lengthPenalty > 0;
    return s.ends[s.listed - 1].score >= scored(r, s.next[0].score, isAtLimit ? r.limit : s.length);
}
// By the best candidates of the row, best first.
TW_BOTH void advance(Row const& r, decoding::Ends const& ids, Candidate const* best, i32 count, State& s)
{
    i32 filled = 0;
    for (i32 rank = 0; rank < count; ++rank) {
        Candidate const c = best[rank];
        if (!decoding::isEnd(r.request, ids, c.token)) {
            if (filled < r.beams)
                s.next[filled++] = {c.sum, 0, c.beam, c.token};
        } else if (rank < r.beams) {
            addEnd(r, s, {scored(r, c.sum, s.length + 1), s.length + 1, c.beam, c.token});
        }
    }
    for (; filled < r.beams; ++filled)
        s.next[filled] = {decoding::never(), 0, filled, r.request.pad};
    ++s.length;
    s.isDone = areEndsEnough(r, s) || decoding::isNever(s.next[0].score);
    if (!s.isDone && s.length >= r.limit)
        endAll(r, s);
}
// What the row is on entry.
TW_BOTH void begin(Params const& p, Row const& r, i64 n, State& s)
{
    for (i32 j = 0; j < r.beams; ++j)
        s.next[j] = {decoding::scoreOf(p.sums[n * r.beams + j]), 0, j, kNoToken};
    s.listed = 0;
    for (i32 k = 0; k < r.beams; ++k) {
        i32 const length = p.endLengths[n * r.beams + k];
        if (length <= 0)
            break;
        s.ends[s.listed++] = {decoding::scoreOf(p.endScores[n * r.beams + k]), decoding::clamped(length, 0, p.capacity),
                              k, kOldEnd};
    }
    s.length = r.length;
    s.isDone = isOver(p, r, n);
    if (!s.isDone && r.length >= r.limit)
        endAll(r, s);
}

// All but sequences and places of beam or end j.
TW_BOTH void writeNumbers(Params const& p, Row const& r, i64 n, State const& s, i32 j)
{
    i64 const at = n * r.beams + j;
    Made const b = s.next[j];
    p.tokens[at] = b.token == kNoToken ? r.request.pad : b.token;
    p.parents[at] = b.from;
    p.nextSums[at] = b.score;
    p.nextEndLengths[at] = j < s.listed ? s.ends[j].length : 0;
    p.nextEndScores[at] = j < s.listed ? s.ends[j].score : decoding::never();
    if (j == 0) {
        p.nextLengths[n] = s.length;
        p.nextDone[n] = s.isDone;
    }
}
// Position i of them. Beams that moved have their token at the length that the row had, and it is their own place.
TW_BOTH void writePosition(Params const& p, Row const& r, i64 n, State const& s, i32 j, i32 i)
{
    auto const at = [&](i32 row) { return (n * r.beams + row) * p.capacity + i; };
    auto const of = [&](Made const& m) {
        if (m.token == kOldEnd)
            return p.endSequences[at(m.from)];
        return m.token != kNoToken && i == r.length ? m.token : p.sequences[at(m.from)];
    };
    Made const b = s.next[j];
    bool const isMoved = s.length > r.length;
    p.nextSequences[at(j)] = isMoved && i == r.length ? b.token : p.sequences[at(b.from)];
    p.nextEndSequences[at(j)] = j < s.listed ? of(s.ends[j]) : r.request.pad;
    if (p.nextPlaces)
        p.nextPlaces[at(j)] = isMoved && i == r.length ? j : p.places[at(b.from)];
}

} // namespace tw::ops::beam_step
