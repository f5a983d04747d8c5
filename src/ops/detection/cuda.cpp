// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <limits>

#include "base/round.h"
#include "kernels/cuda/common/generate.h"
#include "ops/detection/detection_params.h"
#include "ops/detection/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::detection {

namespace {

constexpr int kThreads = 512;

std::string constantsOf(Problem const& problem)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    bool const hasAnchors = problem.inputs.size() > kAnchors && problem.inputs[kAnchors].present;
    auto storage = [&](size_t i) { return cuda::storageOf(problem.inputs[i].type); };
    return cuda::type("B", storage(kBoxes)) + cuda::type("S", storage(kScores)) +
           cuda::type("A", storage(hasAnchors ? kAnchors : kBoxes)) + cuda::flag("kHasAnchors", hasAnchors) +
           cuda::flag("kCenterSizes", a.coding == Coding::kCenterSizes) + cuda::flag("kSigmoid", a.sigmoid) +
           cuda::flag("kAboveLeast", a.aboveLeast) + cuda::flag("kAboveOverlap", a.aboveOverlap) +
           cuda::flag("kClassesFirst", a.classesFirst) + cuda::flag("kClips", a.clips) + cuda::flag("kRows", a.rows) +
           cuda::constant("kPixels", int(a.pixels));
}

// Gives its parts of the workspace out, or counts their bytes.
class Parts
{
public:
    explicit Parts(void* at) : at_(static_cast<std::byte*>(at)) {}
    void* next(int64_t size)
    {
        void* const part = at_ ? at_ + bytes : nullptr;
        bytes += roundUp(size, 256);
        return part;
    }
    int64_t bytes = 0;

private:
    std::byte* at_;
};

constexpr int64_t numberOr(int64_t n, int64_t most)
{
    return std::clamp<int64_t>(n, 0, most);
}

void addSizes(Attrs const& a, TensorRef const& boxes, TensorRef const& scores, Params& p)
{
    p.items = uint32_t(scores.dims[0]);
    p.count = uint32_t(scores.dims[1]);
    p.classes = uint32_t(scores.dims[2]);
    p.boxClasses = uint32_t(boxes.dims.rank == 4 ? boxes.dims[2] : 1);
    p.most = uint32_t(a.most);
    p.mostOfClass = uint32_t(numberOr(a.mostOfClass, UINT32_MAX));
    p.limit = uint32_t(numberOr(a.limit, UINT32_MAX));
    p.limitOfClass = uint32_t(numberOr(a.limitOfClass, UINT32_MAX));
    p.keptRoom = uint32_t(mostKept(a, int64_t(p.count) * p.classes));
    // What is out of range is no class.
    p.background = a.background >= 0 && a.background < int64_t(p.classes) ? int32_t(a.background) : -1;
    p.noClass = int32_t(a.noClass);
    p.least = leastElement(a);
    p.overlap = float(a.overlap);
}

void addTensors(Attrs const& a, RunArgs const& args, Params& p)
{
    p.boxes = args.inputs[kBoxes].data;
    p.scores = args.inputs[kScores].data;
    if (args.inputs.size() > kAnchors && args.inputs[kAnchors].data) {
        p.anchors = args.inputs[kAnchors].data;
        p.anchorItems = uint32_t(args.inputs[kAnchors].dims[0]);
    }
    if (a.rows) {
        p.outRows = args.outputs[0].data;
    } else {
        p.counts = args.outputs[0].data;
        p.outBoxes = args.outputs[1].data;
        p.outScores = args.outputs[2].data;
        p.outClasses = args.outputs[3].data;
    }
}

// What both searches need: numbers of classes, and what rows are made of.
void addCommon(Attrs const& a, Parts& parts, Params& p)
{
    p.ofClass = parts.next(int64_t(p.items) * p.classes * 2 * 4);
    if (a.rows) {
        p.counts = parts.next(int64_t(p.items) * 4);
        p.found = parts.next(int64_t(p.items) * p.most * 2 * 4);
    }
}

void addPlain(Attrs const& a, Parts& parts, Params& p)
{
    addCommon(a, parts, p);
    p.list = parts.next(int64_t(p.items) * p.count * p.classes);
}

template <auto add>
int64_t bytesOf(Attrs const& a, std::span<TensorRef const> in)
{
    Params p;
    addSizes(a, in[kBoxes], in[kScores], p);
    Parts parts(nullptr);
    add(a, parts, p);
    return parts.bytes;
}

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    return kernelsOf(
        {.text = constantsOf(problem) + cuda::include("ops/detection/detection.cuh"),
         .names = {"detection_plain", "detection_rows"},
         .wide = isWide(problem)},
        [&a](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            Params p;
            addSizes(a, args.inputs[kBoxes], args.inputs[kScores], p);
            Parts parts(args.workspace);
            addPlain(a, parts, p);
            addTensors(a, args, p);
            TW_TRY(launch(0, p.items, kThreads, p));
            return a.rows ? launch(1, p.items, kThreads, p) : Result<void>();
        },
        [&a](std::span<TensorRef const> in, std::span<TensorRef const>) { return bytesOf<addPlain>(a, in); });
}

// The search over all multiprocessors.
constexpr int64_t kBins = 8192, kNumbers = 4, kSorted = 8192, kTile = 1024; // as in detection_search.cuh
constexpr int kPassThreads = 512, kSearchThreads = 1024;
constexpr int64_t kSearchShared = kSorted * 8 + kTile * (16 + 4);
constexpr int64_t kBlocksOfMultiprocessor = 4; // of a pass: their bins are 32 KiB
constexpr int64_t kMostBlocks = 65535;         // of a grid's second dimension

uint32_t orderOf(float score)
{
    uint32_t const bits = std::bit_cast<uint32_t>(score + 0.F);
    return bits & 0x80000000U ? ~bits : bits | 0x80000000U;
}

// Bins are finest where scores are that people use: up to 1, and logits up to 64. Those beyond share the last bin.
void addBins(Attrs const& a, Params& p)
{
    float const usual = a.sigmoid ? 64 : 1;
    uint32_t const last = orderOf(p.least < usual ? usual : std::numeric_limits<float>::infinity());
    p.firstKey = orderOf(p.least);
    while (p.firstKey < last && (last - p.firstKey) >> p.shift >= kBins - 1)
        ++p.shift;
}

void addSearch(Attrs const& a, Parts& parts, Params& p)
{
    addCommon(a, parts, p);
    if (!a.rows)
        p.found = parts.next(int64_t(p.items) * p.most * 2 * 4);
    p.list = parts.next(int64_t(p.items) * p.count * p.classes * 8);
    p.kept = parts.next(int64_t(p.items) * p.keptRoom * 16);
    p.keptClasses = parts.next(int64_t(p.items) * p.keptRoom * 4);
    p.bins = parts.next(int64_t(p.items) * kBins * 4);
    p.numbers = parts.next(int64_t(p.items) * kNumbers * 4); // behind the bins: both are cleared at once
}

Support supportsSearch(Problem const& problem)
{
    if (cuda::sharedLimitOf(problem.target.cuda->capability) < kSearchShared)
        return Support::no(fmt::format("needs {} bytes of shared memory", kSearchShared));
    if (problem.inputs[kScores].maxDims[0] > kMostBlocks)
        return Support::no(fmt::format("takes at most {} images", kMostBlocks));
    return Support::yes();
}

Result<void> runSearch(Attrs const& a, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const& scores = args.inputs[kScores];
    Params p;
    addSizes(a, args.inputs[kBoxes], scores, p);
    Parts parts(args.workspace);
    addSearch(a, parts, p);
    addTensors(a, args, p);
    addBins(a, p);
    int64_t const elements = int64_t(p.count) * p.classes, pack = kMostUnit / sizeOf(scores.type);
    p.isPacked = elements % pack == 0 && reinterpret_cast<uintptr_t>(p.scores) % kMostUnit == 0;
    if (p.items == 0)
        return {};
    cuda::Driver const& driver = launch.device().driver();
    TW_CUDA(driver, cuMemsetD8Async(cuda::addressOf(p.bins), 0, size_t(int64_t(p.items) * (kBins + kNumbers) * 4),
                                    launch.stream()));
    int64_t const each = blocksFor(elements, kPassThreads * int(p.isPacked ? pack : 1));
    int64_t const all = launch.multiprocessors() * kBlocksOfMultiprocessor;
    int64_t const blocks = std::clamp<int64_t>(each, 1, std::max<int64_t>(all / p.items, 1));
    TW_TRY(launch.grid(0, blocks, p.items, 1, kPassThreads, p));
    TW_TRY(launch.grid(1, blocks, p.items, 1, kPassThreads, p));
    TW_TRY(launch(2, p.items, kSearchThreads, p, kSearchShared));
    p.isSecond = 1;
    if (a.limit == 0) // a list has the best `limit`
        TW_TRY(launch(3, p.items, kThreads, p));
    return a.rows ? launch(4, p.items, kThreads, p) : Result<void>();
}

std::unique_ptr<CudaKernels> searchKernels(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    int64_t const wanted = a.limit > 0 ? std::min<int64_t>(a.limit, INT32_MAX) : kSorted;
    return kernelsOf(
        {.text = constantsOf(problem) + cuda::constant("kWanted", int(wanted)) +
                 cuda::include("ops/detection/detection_search.cuh"),
         .names = {"detection_count", "detection_list", "detection_search", "detection_plain", "detection_rows"},
         .wide = isWide(problem),
         .sharedBytes = kSearchShared},
        [&a](CudaLaunch const& launch, RunArgs& args) { return runSearch(a, launch, args); },
        [&a](std::span<TensorRef const> in, std::span<TensorRef const>) { return bytesOf<addSearch>(a, in); });
}

// Some launches, and two passes over the scores. It is enough for the plain search not to be tried, which goes through them
// for each box.
double estimateSearch(Problem const& problem, Config const&)
{
    constexpr double kLaunches = 30, kBytesPerMicrosecond = 2e6;
    TensorSpec const& scores = problem.inputs[kScores];
    return kLaunches + 2 * double(scores.dims.volume() * sizeOf(scores.type)) / kBytesPerMicrosecond;
}

constexpr CudaTactic kSearch{
    "detection_any_bins_sm80", 1, searchKernels, supportsSearch, nullptr, nullptr, estimateSearch};
constexpr CudaTactic kPlain{"detection_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kSearch, kPlain>;

} // namespace tw::ops::detection
