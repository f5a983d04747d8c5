// SPDX-License-Identifier: Apache-2.0
// Which tiles are worth timing. The model's constants were fitted on an H200 (1.7 GHz under load, 132 multiprocessors):
// the fastest of the tiles below was among its first three on every shape measured, or within 3 %.
#include <algorithm>
#include <bit>

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/gemm/wgmma.h"

namespace tw::cuda::gemm_f16 {

namespace {

constexpr double kClocksPerUs = 1700;
constexpr int64_t kFewRows = 512, kMostColumns = 128, kFewSteps = 4;
constexpr int kMostStages = 12;
constexpr int64_t kHalfOfShared = kSharedLimit / 2 - 1024; // the system takes 1 KiB of each block

// Share of the tensor cores' rate: narrow tiles wait for shared memory.
double efficiency(int tileQ)
{
    return tileQ >= 192 ? 0.9 : tileQ >= 128 ? 0.85 : tileQ >= 96 ? 0.75 : tileQ >= 64 ? 0.6 : 0.35;
}

} // namespace

double estimateUs(Spec const& s, Shape const& g, int multiprocessors)
{
    Launch const l = launch(s, g, multiprocessors);
    int64_t const blocks = int64_t(l.args.tilesP) * l.args.tilesQ * l.args.batches * s.cluster();
    int64_t const each = ceilDiv(blocks, multiprocessors); // of the busiest multiprocessor
    int64_t const atOnce = std::min<int64_t>(s.pingPong ? 2 : s.blocksPerMultiprocessor(), each);
    bool const overlapped = s.split > 1 || s.pingPong || s.blocksPerMultiprocessor() > 1;
    int64_t const rounds = overlapped ? ceilDiv(each, atOnce) : each;
    int64_t const steps = ceilDiv(l.args.steps, s.split);
    // Clocks of a step: 2048 products (of TF32 half as many, of i8 twice) and 54 bytes of operands each. Operands are 2800 clocks on
    // their way, and as many steps as there are stages are on it at once.
    double const products =
        double(s.tileP) * s.tileQ / 32 / efficiency(s.tileQ) * double(s.stepBytes) / double(kStepBytes);
    double const loaded = double(s.tileP + s.tileQ / s.multicast) * double(s.stepBytes);
    double const through = std::max(products, loaded / 54);
    double const main = std::max(double(steps * each) * through, double(rounds * ceilDiv(steps, s.stages)) * 2800);
    // Writing: 16 bytes a clock, and 16 ends of integers. Those that split read all sums at 14 bytes a clock.
    double const sums = s.split > 1 ? double(s.tileP) * s.tileQ * 4 / 14 * double(atOnce) : 0;
    double const write =
        double(s.tileP) * s.tileY() / s.split * double(s.storeBytes() + (s.integers ? 1 : 0)) / 16 +
        ((s.integers ? s.integers->residual && !(s.copies && s.bringsResidual()) : s.residual && !s.copies) ? 1700
                                                                                                            : 0) +
        sums;
    // Clusters that split do one tile each and are launched anew.
    double const tail = write * (s.pingPong ? std::max(1.0, double(each) / 2) : double(rounds)) +
                        (s.split > 1 ? double(rounds - 1) * 4000 : 0);
    return (2400 + main + tail) / kClocksPerUs;
}

std::vector<Spec> normCandidates(Spec const& base, Shape const& g, int multiprocessors, size_t most)
{
    struct Tile
    {
        int p, q, stages;
        bool pingPong;
    };
    static constexpr Tile kTiles[] = {{128, 256, 3, false}, {128, 192, 4, false}, {64, 256, 3, true},
                                      {64, 192, 4, true},   {64, 128, 6, true},   {128, 256, 2, false}};
    std::vector<Guess<Spec>> all;
    for (Tile const& t : kTiles) {
        if (g.n % t.q != 0 || g.n / t.q < 2 || g.n / t.q > 8)
            continue;
        Spec s = base;
        s.tileP = t.p;
        s.tileQ = t.q;
        s.stages = t.stages;
        s.groups = 2;
        s.pingPong = t.pingPong;
        s.norm = int(g.n / t.q);
        s.multicast = 1;
        s.split = 1;
        s.swap = false;
        s.copies = true;
        if (!unsupported(s, g))
            all.push_back({estimateUs(s, g, multiprocessors), s});
    }
    return bestOf(std::move(all), most);
}

std::vector<Spec> candidates(Spec const& given, Shape const& g, int multiprocessors, size_t most)
{
    struct Tile
    {
        int p, q, stages, groups;
        bool pingPong, splits;
    };
    static constexpr Tile kTiles[] = {{128, 256, 4, 2, false, false}, {128, 192, 4, 2, false, false},
                                      {256, 128, 4, 2, false, false}, {128, 128, 6, 2, false, true},
                                      {128, 128, 6, 2, true, false},  {128, 64, 6, 2, true, false},
                                      {128, 64, 4, 2, false, true},   {64, 128, 3, 1, false, false},
                                      {64, 64, 6, 1, false, true},    {64, 32, 8, 1, false, true}};
    Spec base = given;
    int64_t const channels = base.image ? g.image.c : g.k;
    if (base.integers && ceilDiv(channels, kStepBytes / 2) * 5 <= ceilDiv(channels, kStepBytes) * 8)
        base.stepBytes = kStepBytes / 2; // a fifth of each row would be zeros, or more
    int64_t const steps = (base.image ? g.image.t * g.image.r * g.image.s : 1) * ceilDiv(channels, base.stepK());
    std::vector<Guess<Spec>> all;
    // Operands are long on their way: as many stages as there is room for, where two blocks share a multiprocessor
    // half. Few blocks want one each, but clusters come as close together as they fit: then more than half.
    auto stagesFor = [&](Spec s, int64_t blocks) {
        s.copies = false;
        s.stages = 0;
        bool const shares = blocks > multiprocessors && !s.redistributes();
        int64_t const rest = s.sharedBytes(), fits = ((shares ? kHalfOfShared : kSharedLimit) - rest) / s.stageBytes();
        int64_t const alone = shares || s.split == 1 ? 0 : (kHalfOfShared - rest) / s.stageBytes() + 1;
        return int(std::clamp<int64_t>(std::min<int64_t>(fits, std::max<int64_t>(alone, 8)), 3, kMostStages));
    };
    auto add = [&](Spec const& s) {
        if (!unsupported(s, g))
            all.push_back({estimateUs(s, g, multiprocessors), s});
    };
    auto consider = [&](Spec s) {
        // Copying pays where a block does tile after tile.
        s.copies =
            s.copies && g.m > kFewRows && !s.swap && s.split == 1 && s.tileY() % (kStepBytes / s.storeBytes()) == 0;
        s.ahead = s.copies && s.pingPong && s.integers && s.integers->residual && s.bringsResidual() &&
                  steps * s.stepBytes <= kFewSteps * kStepBytes;
        int const stages = s.stages;
        while (s.copies && s.stages > 3 && unsupported(s))
            --s.stages; // room for y
        add(s);
        if (s.copies && s.stages < stages) {
            s.copies = s.ahead = false;
            s.stages = stages;
            add(s);
        }
    };
    for (Tile const& t : kTiles)
        for (int split : {1, 2, 4, 8}) {
            if (split > 1 && !t.splits)
                continue;
            Spec s = base;
            s.tileP = t.p;
            s.tileQ = t.q;
            s.stages = std::min(t.stages * int(kStepBytes) / s.stepBytes, kMostStages);
            s.groups = t.groups;
            s.pingPong = t.pingPong;
            s.split = split;
            s.multicast = 1;
            s.swap = false;
            if (t.splits || t.groups == 1)
                s.stages = stagesFor(s, ceilDiv(g.m, t.p) * ceilDiv(g.n, t.q) * g.batch * split);
            consider(s);
            // Their products are done before memory has brought operands, of tiles of which there are many.
            s.multicast = 2;
            if (s.integers && split == 1 && t.groups == 2 && t.q >= 128 && ceilDiv(g.m, t.p) >= multiprocessors / 4)
                consider(s);
        }
    // Few rows: b gives the tile's rows, and a, cut into as few parts as fit, its columns without a remainder.
    if (g.m <= kFewRows && !base.image)
        for (int64_t parts = ceilDiv(g.m, kMostColumns); parts <= ceilDiv(g.m, 64); ++parts)
            for (int groups : {1, 2})
                for (int split : {1, 2, 4, 8}) {
                    Spec s = base;
                    s.swap = true;
                    s.pingPong = false;
                    s.multicast = 1;
                    s.split = split;
                    s.groups = groups;
                    s.tileP = groups * 64;
                    int64_t const step = s.integers ? 16 : s.qAlongK() ? 8 : 64;
                    s.tileQ = int(ceilDiv(ceilDiv(g.m, parts), step) * step);
                    if (split > 1) // adding up wants powers of 2
                        s.tileQ = int(std::bit_ceil(uint32_t(std::max(s.tileQ, 8 * split))));
                    if (groups == 2 && std::has_single_bit(uint32_t(s.tileQ)))
                        continue; // 64 x 128 turned round, at best
                    s.stages = stagesFor(s, ceilDiv(g.n, s.tileP) * ceilDiv(g.m, s.tileQ) * g.batch * split);
                    consider(s);
                }
    sortGuesses(all);
    std::vector<Spec> list;
    for (Guess<Spec> const& c : all)
        if (list.size() < most && std::none_of(list.begin(), list.end(), [&](Spec const& s) {
                return s.name() == c.spec.name(); // reached by several ways
            }))
            list.push_back(c.spec);
    return list;
}

} // namespace tw::cuda::gemm_f16
