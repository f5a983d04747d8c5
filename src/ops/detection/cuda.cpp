// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/round.h"
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

constexpr CudaTactic kPlain{"detection_any_plain_cuda", 1, plainKernels};

} // namespace

constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::detection
