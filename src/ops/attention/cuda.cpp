// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/attention/attention_params.h"
#include "ops/attention/cuda_cudnn.h"
#include "ops/attention/op.h"
#include "ops/attention/tactics.h"

namespace tw::ops::attention {

namespace {

constexpr int kThreads = 128;

KernelBag generate(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    KernelBag out;
    out.wide = isWide(problem);
    out.names = {"attention"};
    out.source = cuda::type("T", cuda::storageOf(problem.outputs[0].type)) + cuda::constant("kThreads", kThreads) +
                 cuda::number("kScale", float(a.scale)) + cuda::number("kFill", float(a.fill)) +
                 cuda::flag("kKeepInverted", a.keepInverted) + cuda::include("ops/attention/attention.cuh");
    out.run = [&a](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Geometry const g = geometryOf(a, args.inputs);
        Params p;
        p.q = args.inputs[0].data;
        p.k = args.inputs[1].data;
        p.v = args.inputs[2].data;
        p.mask = g.maskInput >= 0 ? args.inputs[size_t(g.maskInput)].data : nullptr;
        p.keep = g.keepInput >= 0 ? args.inputs[size_t(g.keepInput)].data : nullptr;
        p.y = args.outputs[0].data;
        Strides const at[] = {g.q, g.k, g.v, g.mask, g.keep};
        std::transform(std::begin(at), std::end(at), p.at, [](Strides const& from) {
            return OperandPlace{from.offset, from.batch, from.head, from.row};
        });
        p.heads = a.heads;
        p.rows = g.rows;
        p.columns = g.columns;
        p.size = a.size;
        p.valueSize = a.valueSize;
        p.headsPerKey = a.headsPerKey;
        int64_t const chunks = blocksFor(a.valueSize, kThreads);
        p.chunks = cuda::divBy(chunks);
        p.rowCount = cuda::divBy(g.rows);
        p.headCount = cuda::divBy(a.heads);
        return launch(0, g.batch * a.heads * g.rows * chunks, kThreads, p);
    };
    return out;
}

constexpr CudnnTactic kCudnn{"attention_f16_cudnn_sm90a", 1};
constexpr CudaTactic kPlain{"attention_any_plain_cuda", 2, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kF16Wgmma, &kF16Mma, &kTf32Mma, &kF32Mma, &kCudnn, &kPlain};
    return kList;
}

} // namespace tw::ops::attention
