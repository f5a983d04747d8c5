// SPDX-License-Identifier: Apache-2.0
#include "families/copy/cuda_segments.h"
#include "ops/padding/op.h"

namespace tw::ops::padding {

namespace {

// A slice that begins before x and is filled with zeros.
slice::Steps stepsOf(ir::Node const& node, int rank)
{
    auto const& a = node.attrsAs<Attrs>();
    slice::Steps s{};
    for (int d = 0; d < rank; ++d)
        s.stride[d] = 1;
    s.start[rank - 2] = -a.pre[0];
    s.start[rank - 1] = -a.pre[1];
    return s;
}
slice::Steps steps(ir::Node const& node, RunArgs const& args)
{
    return stepsOf(node, args.inputs[0].dims.rank);
}

Segments segmentsOf(Problem const& p)
{
    return segmentsOfSlice(p, slice::Mode::kFill, stepsOf(*p.node, p.inputs[0].dims.rank));
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const&)
{
    return sliceKernels(p, slice::Mode::kFill, -1, steps);
}

constexpr CudaTactic kSegments = segmentsTactic<segmentsOf>("padding_any_segments_sm90");
constexpr CudaTactic kPlain{"padding_any_plain_cuda", 3, generate};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kSegments, kPlain>;

} // namespace tw::ops::padding
