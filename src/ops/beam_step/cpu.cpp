// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/beam_step/launch.h"
#include "tactic/cpu_tactic.h"

namespace tw::ops::beam_step {

namespace {

static_assert(kBeams == kMostBeams);

// The best 2 b tokens of a beam.
void findBest(Params const& p, int64_t row)
{
    int64_t const n = row / p.beams, room = 2 * p.beams;
    uint64_t* const keys = p.keys + row * room;
    std::fill_n(keys, room, 0);
    float const sum = decoding::scoreOf(p.sums[row]);
    if (isOver(p, rowOf(p, n), n) || decoding::isNever(sum))
        return;
    float const* scores = p.scores + row * p.vocabulary;
    for (int32_t t = 0; t < p.vocabulary; ++t) {
        uint64_t const key = keyOf(sum, decoding::scoreOf(scores[t]), uint32_t(t));
        if (key <= keys[room - 1])
            continue;
        int64_t at = room - 1;
        for (; at > 0 && keys[at - 1] < key; --at)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

// Those of all beams, best first.
int32_t merge(Params const& p, int64_t n, Candidate* best)
{
    int32_t const room = 2 * p.beams;
    int32_t heads[kBeams] = {}, count = 0;
    uint64_t const* const keys = p.keys + n * p.beams * room;
    for (; count < room; ++count) {
        int32_t of = -1;
        uint32_t most = 0;
        for (int32_t j = 0; j < p.beams; ++j)
            if (heads[j] < room)
                if (auto const order = uint32_t(keys[j * room + heads[j]] >> 32); order > most)
                    most = order, of = j;
        if (of < 0)
            break;
        best[count] = candidateOf(keys[of * room + heads[of]++], of);
    }
    return count;
}

void step(Params const& p, int64_t n)
{
    Made next[kBeams], ends[kBeams];
    Candidate best[2 * kBeams];
    Row const r = rowOf(p, n);
    State s{.next = next, .ends = ends, .listed = 0, .length = 0, .isDone = false};
    begin(p, r, n, s);
    if (!s.isDone)
        advance(r, p.ends, best, merge(p, n, best), s);
    for (int32_t j = 0; j < p.beams; ++j) {
        writeNumbers(p, r, n, s, j);
        for (int32_t i = 0; i < p.capacity; ++i)
            writePosition(p, r, n, s, j, i);
    }
}

int64_t workspace(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    return keyBytes(in);
}

Result<void> run(ir::Node const&, RunArgs& args)
{
    Params const p = paramsOf(args);
    int64_t const rows = args.inputs[kSequences].dims[0];
    args.workers->run(rows * p.beams, [&](int64_t row, int) { findBest(p, row); });
    args.workers->run(rows, [&](int64_t n, int) { step(p, n); });
    return {};
}

constexpr PlainTactic kPlain{"beam_step_any_plain_cpu", 1, run, workspace};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kPlain>;

} // namespace tw::ops::beam_step
