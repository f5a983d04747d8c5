// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/cuda_scale.h"
#include "ops/resize/op.h"
#include "ops/resize/resize_params.h"

namespace tw::ops::resize {

namespace {

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    DataType const t = problem.outputs[0].type;
    bool const isCorner = attrs.coordinates == Coordinates::kAlignCorners;
    CudaSource source{
        .text = cuda::flag("kIsAlignCorners", isCorner) +
                cuda::flag("kIsAsymmetric", attrs.coordinates == Coordinates::kAsymmetric) +
                cuda::flag("kIsZeroWhenOne", attrs.selector == Selector::kUpper || isCorner) +
                cuda::flag("kRoundsHalfUp", attrs.rounding == Rounding::kHalfUp) +
                cuda::flag("kRoundsHalfDown", attrs.rounding == Rounding::kHalfDown) +
                cuda::flag("kRoundsDown", attrs.rounding == Rounding::kFloor) +
                cuda::number("kCubic", attrs.cubicCoeff) + cuda::flag("kIsNearest", attrs.mode == Mode::kNearest) +
                cuda::flag("kIsCubic", attrs.mode == Mode::kCubic) +
                cuda::flag("kExcludesOutside", attrs.excludeOutside) + cuda::flag("kIsRounded", isQuantized(t)) +
                cuda::type("T", cuda::storageOf(t)) + cuda::include("ops/resize/resize.cuh"),
        .names = {"resize"},
        .wide = isWide(problem)};
    return kernelsOf(std::move(source), [&attrs](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        Extents const strides = stridesOf(x.dims);
        Params p{.x = x.data, .y = y.data, .count = uint64_t(y.count())};
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
        return launch.each(0, y.count(), p);
    });
}

constexpr CudaTactic kPlain{"resize_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics =
    kTactics<kLanes, kPlanes, kStrips, kRows, kNhwc, kNhwcF32, kNhwcI8, kPlain>;

} // namespace tw::ops::resize
