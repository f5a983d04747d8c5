// SPDX-License-Identifier: Apache-2.0
#include "ops/roi_align/cuda_roi_align.h"
#include "ops/roi_align/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::roi_align {

namespace {

constexpr int kThreads = 256;

std::string areasBelow(std::vector<double> const& areas)
{
    std::string sum = "0";
    for (double area : areas)
        sum += " + int(v > " + cuda::literal(float(area)) + ")";
    return "TW_INLINE int areasBelow(float v)\n{\n    return " + sum + ";\n}\n";
}

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    CudaSource source{.text = constantsOf(problem) + cuda::include("ops/roi_align/roi_align.cuh"),
                      .names = {"roi_align"},
                      .wide = isWide(problem)};
    return kernelsOf(std::move(source), [](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Params const p = paramsOf(args);
        return launch(0, blocksFor(int64_t(p.count), kThreads), kThreads, p);
    });
}

constexpr CudaTactic kPlain{"roi_align_any_plain_cuda", 1, plainKernels};

} // namespace

std::string constantsOf(Problem const& problem)
{
    static_assert(Params::kMaps == kMostMaps);
    auto const& a = problem.node->attrsAs<Attrs>();
    using cuda::constant, cuda::flag, cuda::number;
    return cuda::type("R", cuda::storageOf(problem.inputs[kRois].type)) +
           cuda::type("T", cuda::storageOf(problem.outputs[0].type)) + constant("kHeight", a.height) +
           constant("kWidth", a.width) + constant("kSamples", a.samples) +
           constant("kMaps", int64_t(problem.inputs.size()) - kMaps) + number("kScale", float(a.scale)) +
           number("kImageHeight", float(a.imageHeight)) + number("kImageWidth", float(a.imageWidth)) +
           constant("kBoxes", int64_t(a.boxes)) + constant("kGrid", int64_t(a.grid)) +
           constant("kOutside", int64_t(a.outside)) + flag("kHasImages", problem.inputs[kImages].present) +
           flag("kIsMax", a.mode == Mode::kMax) + flag("kIsRowFirst", a.isRowFirst) +
           flag("kIsAbsolute", a.isAbsolute) + flag("kIsPlusOne", a.isPlusOne) +
           flag("kIsEmptySkipped", a.isEmptySkipped) + areasBelow(a.areas);
}

Params paramsOf(RunArgs const& args)
{
    TensorRef const &rois = args.inputs[kRois], &y = args.outputs[0];
    Params p;
    p.rois = rois.data;
    p.images = args.inputs[kImages].data;
    p.y = y.data;
    p.count = uint64_t(y.count());
    p.perImage = uint32_t(rois.dims.rank == 3 ? rois.dims[1] : 1);
    p.batch = int32_t(args.inputs[kMaps].dims[0]);
    p.channels = int32_t(args.inputs[kMaps].dims[1]);
    for (size_t i = kMaps; i < args.inputs.size(); ++i) {
        TensorRef const& map = args.inputs[i];
        p.maps[i - kMaps] = map.data;
        p.h[i - kMaps] = int32_t(map.dims[2]);
        p.w[i - kMaps] = int32_t(map.dims[3]);
    }
    return p;
}

extern constinit TacticList const cudaTactics = kTactics<kNhwc, kPlanes, kPlain>;

} // namespace tw::ops::roi_align
