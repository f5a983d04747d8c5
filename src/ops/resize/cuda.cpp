// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/cuda_scale.h"
#include "ops/resize/op.h"
#include "ops/resize/resize_params.h"

namespace tw::ops::resize {

namespace {

constexpr int kThreads = 256;

CudaSource sourceOf(Problem const& problem)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    DataType const t = problem.outputs[0].type;
    bool const isCorner = a.coordinates == Coordinates::kAlignCorners;
    return {.text = cuda::flag("kIsAlignCorners", isCorner) +
                    cuda::flag("kIsAsymmetric", a.coordinates == Coordinates::kAsymmetric) +
                    cuda::flag("kIsZeroWhenOne", a.selector == Selector::kUpper || isCorner) +
                    cuda::flag("kRoundsHalfUp", a.rounding == Rounding::kHalfUp) +
                    cuda::flag("kRoundsHalfDown", a.rounding == Rounding::kHalfDown) +
                    cuda::flag("kRoundsDown", a.rounding == Rounding::kFloor) + cuda::number("kCubic", a.cubicCoeff) +
                    cuda::flag("kIsNearest", a.mode == Mode::kNearest) +
                    cuda::flag("kIsCubic", a.mode == Mode::kCubic) + cuda::flag("kExcludesOutside", a.excludeOutside) +
                    cuda::flag("kIsRounded", isQuantized(t)) + cuda::type("T", cuda::storageOf(t)) +
                    cuda::include("ops/resize/resize.cuh"),
            .names = {"resize"},
            .wide = isWide(problem)};
}

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    return kernelsOf(sourceOf(problem), [&attrs](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        Extents const strides = stridesOf(x.dims);
        Params p;
        p.x = x.data;
        p.y = y.data;
        p.count = uint64_t(y.count());
        for (int r = 0; r < kMaxRank; ++r)
            p.in[r] = p.over[r] = p.under[r] = 1;
        for (int d = 0, to = kMaxRank - y.dims.rank; d < y.dims.rank; ++d, ++to) {
            Axis const axis = axisOf(attrs, x.dims, y.dims, d);
            p.dim[to] = cuda::divBy(axis.out);
            p.in[to] = axis.in;
            p.stride[to] = strides[d];
            p.over[to] = axis.scale.over;
            p.under[to] = axis.scale.under;
        }
        return launch(0, blocksFor(y.count(), kThreads), kThreads, p);
    });
}

constexpr CudaTactic kPlain{"resize_any_plain_cuda", 1, plainKernels};

} // namespace

constinit TacticList const cudaTactics = kTactics<kLanes, kPlanes, kStrips, kRows, kNhwc, kNhwcF32, kNhwcI8, kPlain>;

} // namespace tw::ops::resize
