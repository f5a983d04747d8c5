// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"
#include "families/copy/cuda_segments.h"
#include "ops/slice/op.h"

namespace tw::ops::slice {

namespace {

// Start and stride are shape tensors: their elements lie on the host.
Steps steps(ir::Node const& node, RunArgs const& args)
{
    auto input = [&](size_t i) { return i < args.inputs.size() ? args.inputs[i] : TensorRef{}; };
    return stepsOf(node.attrsAs<Attrs>(), input(1), input(3), args.inputs[0].dims.rank);
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const&)
{
    return sliceKernels(p, p.node->attrsAs<Attrs>().mode, 4, steps);
}

// Whether start, size or stride are shape tensors.
bool isComputed(Problem const& p)
{
    for (size_t i = 1; i < p.inputs.size() && i < 4; ++i)
        if (p.inputs[i].present)
            return true;
    return false;
}

Segments segmentsOf(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    if (isComputed(p))
        return {};
    return segmentsOfSlice(p, a.mode, stepsOf(a, {}, {}, p.inputs[0].dims.rank));
}

// Whether every pixel of y has the channels that one of x has.
bool keepsChannels(Problem const& p)
{
    if (isComputed(p))
        return false;
    auto const& a = p.node->attrsAs<Attrs>();
    int const axis = p.outputs[0].dims.rank - 3;
    ir::Dim const &from = p.node->inputs[0]->shape[size_t(axis)], &to = p.node->outputs[0]->shape[size_t(axis)];
    return a.start[size_t(axis)] == 0 && a.stride[size_t(axis)] == 1 && from == to;
}

// Channels-last where all of y lies in x, or whole pixels are repeated.
std::vector<Formats> formats(Problem const& p)
{
    std::vector<Formats> list{linearFormats(p)};
    DataType const type = p.outputs[0].type;
    Mode const mode = p.node->attrsAs<Attrs>().mode;
    if (isReal(type) && p.outputs[0].dims.rank >= 3 && !p.inputs[0].constant &&
        (mode == Mode::kStrict || (mode != Mode::kFill && keepsChannels(p)))) {
        list.push_back(linearFormats(p));
        list.back().inputs[0] = list.back().outputs[0] = pixelVectorsOf(type);
    }
    return list;
}

constexpr CudaTactic kSegments = segmentsTactic<segmentsOf, 4>("slice_any_segments_sm90");
constexpr CudaTactic kPlain{"slice_any_plain_cuda", 4, generate, nullptr, nullptr, formats};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kSegments, kPlain>;

} // namespace tw::ops::slice
