// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/proposals/op.h"
#include "ops/proposals/proposals_params.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::proposals {

namespace {

constexpr int kThreads = 256, kSelectThreads = 1024;
constexpr int kTile = 64; // boxes of a word of a mask

CudaSource sourceOf(Problem const& problem)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    auto const has = [&](size_t i) { return i < problem.inputs.size() && problem.inputs[i].present; };
    auto const storage = [&](char const* name, size_t i) {
        return cuda::type(name, cuda::storageOf(has(i) ? problem.inputs[i].type : DataType::kFloat));
    };
    using cuda::flag, cuda::number;
    std::string text =
        storage("B", kBoxes) + storage("S", kScores) + storage("D", kDeltas) + storage("I", kImages) +
        flag("kHasDeltas", has(kDeltas)) + flag("kHasClasses", has(kClasses)) + flag("kHasImages", has(kImages)) +
        flag("kHasLimits", !a.limits.empty()) + flag("kAsksSides", a.asksSides()) +
        flag("kIsMinStrict", a.isMinStrict) + number("kLeast", float(a.least)) + number("kAbove", float(a.above)) +
        number("kOverlap", float(a.overlap)) + number("kMostGrowth", float(a.mostGrowth)) +
        number("kPlus", float(a.plus)) + number("kAreaPlus", float(a.areaPlus)) + number("kMinSide", float(a.minSide));
    for (size_t i = 0; i < 4; ++i)
        text += number((fmt::format("kWeight{}", i)).c_str(), float(a.weights[i]));
    for (size_t i = 0; i < 2; ++i)
        text += number((fmt::format("kLimit{}", i)).c_str(), a.limits.empty() ? 0 : float(a.limits[i]));
    return {.text = text + cuda::include("ops/proposals/proposals.cuh"),
            .names = {"proposals_ranks", "proposals_select", "proposals_order", "proposals_masks", "proposals_keep"},
            .wide = isWide(problem),
            .sharedBytes = kMostBoxes / kTile * int64_t(sizeof(uint64_t))};
}

// What is worked out for the sizes of a run, and where it lies in the workspace.
struct Layout
{
    Layout(int64_t limit, Extents const& scores)
        : images(scores[0]), count(scores[1]), most(std::min(limit, count)), words(blocksFor(most, kTile))
    {}
    int64_t masks() const { return images * most * words * int64_t(sizeof(uint64_t)); }
    int64_t keys() const { return images * most * int64_t(sizeof(uint64_t)); }
    int64_t sorted() const { return images * most * int64_t(sizeof(Scored)); }
    int64_t bytes() const
    {
        return masks() + keys() + sorted() + (images * count + images) * int64_t(sizeof(uint32_t));
    }
    int64_t images, count, most, words;
};

Params paramsOf(Layout const& l, RunArgs const& args)
{
    auto const dataOf = [&](size_t i) { return i < args.inputs.size() ? args.inputs[i].data : nullptr; };
    auto* at = static_cast<std::byte*>(args.workspace);
    Params p;
    p.boxes = dataOf(kBoxes);
    p.scores = dataOf(kScores);
    p.deltas = dataOf(kDeltas);
    p.classes = dataOf(kClasses);
    p.images = dataOf(kImages);
    p.rows = args.outputs[0].data;
    p.best = args.outputs[1].data;
    p.masks = reinterpret_cast<cuda::u64*>(at);
    p.keys = reinterpret_cast<cuda::u64*>(at += l.masks());
    p.sorted = reinterpret_cast<Scored*>(at += l.keys());
    p.ranks = reinterpret_cast<uint32_t*>(at += l.sorted());
    p.looked = p.ranks + l.images * l.count;
    p.count = uint32_t(l.count);
    p.most = uint32_t(l.most);
    p.words = uint32_t(l.words);
    p.keep = uint32_t(args.outputs[0].dims[1]);
    p.columns = uint32_t(args.outputs[0].dims[2]);
    p.isShared = args.inputs[kBoxes].dims[0] == 1;
    return p;
}

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    int64_t const limit = problem.node->attrsAs<Attrs>().limit;
    return kernelsOf(
        sourceOf(problem),
        [limit](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            Layout const l(limit, args.inputs[kScores].dims);
            Params const p = paramsOf(l, args);
            TW_TRY(launch.grid(0, blocksFor(l.count, kThreads), l.images, 1, kThreads, p));
            TW_TRY(launch(1, l.images, kSelectThreads, p));
            TW_TRY(launch.grid(2, blocksFor(l.most, kThreads), l.images, 1, kThreads, p));
            TW_TRY(launch.grid(3, l.words, l.words, l.images, kTile, p));
            return launch(4, l.images, kThreads, p, l.words * int64_t(sizeof(uint64_t)));
        },
        [limit](std::span<TensorRef const> in, std::span<TensorRef const>) {
            return Layout(limit, in[kScores].dims).bytes();
        });
}

constexpr CudaTactic kPlain{"proposals_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::proposals
