// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/cuda_plain_convolution.h"

#include "families/convolution/cuda_plain_convolution_params.h"
#include "families/convolution/kernel_window.h"
#include "families/elementwise/cuda_pointwise.h"
#include "ops/convolution/op.h"

namespace tw::ops {

namespace {

constexpr int kThreads = 256, kTile = 64;
constexpr int64_t kTileFrom = 8;                  // channels of y in a group from which tiles pay
constexpr int64_t kWideWindow = int64_t(1) << 29; // attributes from which on coordinates take 64 bits

// `first`: position of the first kernel.
Result<void> run(KernelWindowAttrs const& a, WindowKind kind, CudaLaunch const& launch,
                 std::span<TensorRef const> inputs, TensorRef const& y, int first)
{
    TensorRef const &x = inputs[0], &w = inputs[1];
    KernelWindowGeometry const g = geometryOf(kind, a, x.dims, w.dims, y.dims);
    auto optional = [&](size_t i) { return i < inputs.size() ? inputs[i].data : nullptr; };
    int64_t const groupK = g.k / g.groups, plane = g.out[0] * g.out[1] * g.out[2];
    PlainConvolutionParams p;
    p.x = x.data;
    p.w = w.data;
    p.bias = optional(2);
    p.residual = optional(3);
    p.y = y.data;
    p.count = uint64_t(y.count());
    p.c = g.c;
    p.k = g.k;
    p.groupC = g.c / g.groups;
    p.positions = g.batch * plane;
    p.groupK = cuda::divBy(groupK);
    p.channels = cuda::divBy(g.k);
    for (int i = 0; i < 3; ++i) {
        p.out[i] = cuda::divBy(g.out[i]);
        p.window[i] = cuda::divBy(g.window[i]);
        p.in[i] = g.in[i];
        p.stride[i] = g.stride[i];
        p.dilation[i] = g.dilation[i];
        p.before[i] = g.before[i];
    }
    if (kind == WindowKind::kDeconvolution || groupK < kTileFrom)
        return launch(first, blocksFor(y.count(), kThreads), kThreads, p);
    int64_t const tilesK = blocksFor(groupK, kTile), tilesP = blocksFor(p.positions, kTile);
    p.tilesK = cuda::divBy(tilesK);
    p.tilesP = cuda::divBy(tilesP);
    return launch(first + 1, tilesK * tilesP * g.groups, kThreads, p);
}

std::string activate(char const* name, FusedActivation const& f)
{
    return activationSource(name, f.kind, f.alpha, f.beta);
}

bool hasWideWindow(KernelWindowAttrs const& a)
{
    for (auto const* list : {&a.strides, &a.dilations, &a.prePadding, &a.postPadding})
        for (int64_t v : *list)
            if (v >= kWideWindow)
                return true;
    return false;
}

Extents expandedDims(Extents const& x, Extents const& y)
{
    return {y[0], y[1], x[2], x[3]};
}

} // namespace

KernelBag convolveKernels(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<convolution::Attrs>();
    KernelBag out;
    out.wide = isWide(problem) || hasWideWindow(a);
    bool const forward = !a.transposed;
    out.names =
        forward ? std::vector<std::string>{"convolve_direct", "convolve_tile"} : std::vector<std::string>{"deconvolve"};
    out.source = activate("activate", a.epilogue.activation) +
                 cuda::type("T", cuda::storageOf(problem.outputs[0].type)) +
                 cuda::include(forward ? "families/convolution/cuda_plain_convolution.cuh"
                                       : "families/convolution/cuda_plain_deconvolution.cuh");
    out.run = [&a](CudaLaunch const& launch, RunArgs& args) {
        return run(a, a.kind(), launch, args.inputs, args.outputs[0], 0);
    };
    return out;
}

KernelBag convolveTwiceKernels(Problem const& problem, FusedActivation const& inner, FusedActivation const& outer)
{
    auto const& a = problem.node->attrsAs<KernelWindowAttrs>();
    KernelBag out;
    out.wide = isWide(problem) || hasWideWindow(a) ||
               expandedDims(problem.inputs[0].maxDims, problem.outputs[0].maxDims).volume() >= INT32_MAX;
    out.names = {"convolve_direct", "convolve_tile", "convolve_direct_2", "convolve_tile_2"};
    out.source = activate("activate", inner) + activate("activate_2", outer) +
                 cuda::type("T", cuda::storageOf(problem.outputs[0].type)) +
                 cuda::include("families/convolution/cuda_plain_convolution_twice.cuh");
    out.workspace = [](std::span<TensorRef const> in, std::span<TensorRef const> results) {
        return TensorRef{results[0].type, expandedDims(in[0].dims, results[0].dims), nullptr}.sizeBytes();
    };
    out.run = [&a](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        TensorRef const z{y.type, expandedDims(x.dims, y.dims), args.workspace};
        TensorRef const second[] = {z, args.inputs[3], args.inputs[4]};
        KernelWindowAttrs const one = KernelWindowAttrs::plain(2);
        TW_TRY(run(one, WindowKind::kConvolution, launch, args.inputs.first(3), z, 0));
        return run(a, WindowKind::kConvolution, launch, second, y, 2);
    };
    return out;
}

} // namespace tw::ops
