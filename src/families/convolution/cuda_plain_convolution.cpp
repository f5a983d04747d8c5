// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/cuda_plain_convolution.h"

#include "families/convolution/cuda_plain_convolution_params.h"
#include "families/convolution/kernel_window.h"
#include "families/elementwise/cuda_epilogue.h"
#include "ops/convolution/op.h"

namespace tw::ops {

namespace {

constexpr int kThreads = 256, kTile = 64;
constexpr int64_t kTileFrom = 8;                  // channels of y in a group from which tiles pay
constexpr int64_t kWideWindow = int64_t(1) << 29; // attributes from which on coordinates take 64 bits

// `first`: position of the first kernel. `end`: of sums of i8.
Result<void> run(KernelWindowAttrs const& a, WindowKind kind, CudaLaunch const& launch,
                 std::span<TensorRef const> inputs, TensorRef const& y, int first, cuda::IntegerEndArgs const& end = {})
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
    p.end = end;
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

CudaSource sourceOf(Problem const& problem)
{
    auto const& a = problem.node->attrsAs<convolution::Attrs>();
    bool const forward = !a.transposed;
    CudaSource out;
    out.wide = isWide(problem) || hasWideWindow(a);
    out.names =
        forward ? std::vector<std::string>{"convolve_direct", "convolve_tile"} : std::vector<std::string>{"deconvolve"};
    out.text = cuda::type("T", cuda::storageOf(problem.inputs[0].type));
    if (sumsIntegers(*problem.node))
        out.text += cuda::integerEndSource(integerEndOf(problem, a.epilogue)) +
                    cuda::include("families/convolution/cuda_plain_integers.cuh");
    else
        out.text += exactEpilogue(a.epilogue, hasInput(*problem.node, Epilogue::kResidual)) +
                    cuda::include("families/convolution/cuda_plain_floats.cuh");
    out.text += cuda::include(forward ? "families/convolution/cuda_plain_convolution.cuh"
                                      : "families/convolution/cuda_plain_deconvolution.cuh");
    return out;
}

CudaSource sourceOfTwo(Problem const& problem, FusedActivation const& inner, FusedActivation const& outer)
{
    CudaSource out;
    out.wide = isWide(problem) || hasWideWindow(problem.node->attrsAs<KernelWindowAttrs>()) ||
               expandedDims(problem.inputs[0].maxDims, problem.outputs[0].maxDims).volume() >= INT32_MAX;
    out.names = {"convolve_direct", "convolve_tile", "convolve_direct_2", "convolve_tile_2"};
    Epilogue first, second;
    first.activation = inner;
    second.activation = outer;
    out.text = exactEpilogue(first, false) + exactEpilogue(second, false, "epilogue_2") +
               cuda::type("T", cuda::storageOf(problem.outputs[0].type)) +
               cuda::include("families/convolution/cuda_plain_floats.cuh") +
               cuda::include("families/convolution/cuda_plain_convolution_twice.cuh");
    return out;
}

} // namespace

std::unique_ptr<CudaKernels> convolveKernels(Problem const& problem, Config const&)
{
    auto const& attrs = problem.node->attrsAs<convolution::Attrs>();
    return kernelsOf(
        sourceOf(problem),
        [&attrs, isOfIntegers = sumsIntegers(*problem.node)](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            return ops::run(attrs, attrs.kind(), launch, args.inputs, args.outputs[0], 0,
                            isOfIntegers ? integerEndArgs(args) : cuda::IntegerEndArgs{});
        });
}

std::unique_ptr<CudaKernels> convolveTwiceKernels(Problem const& problem, FusedActivation const& inner,
                                                  FusedActivation const& outer)
{
    auto const between = [](std::span<TensorRef const> in, TensorRef const& y, void* at) {
        return TensorRef{y.type, expandedDims(in[0].dims, y.dims), at};
    };
    auto const run = [between, &attrs = problem.node->attrsAs<KernelWindowAttrs>()](CudaLaunch const& launch,
                                                                                    RunArgs& args) -> Result<void> {
        TensorRef const z = between(args.inputs, args.outputs[0], args.workspace);
        TensorRef const second[] = {z, args.inputs[3], args.inputs[4]};
        KernelWindowAttrs const one = KernelWindowAttrs::plain(2);
        TW_TRY(ops::run(one, WindowKind::kConvolution, launch, args.inputs.first(3), z, 0));
        return ops::run(attrs, WindowKind::kConvolution, launch, second, args.outputs[0], 2);
    };
    return kernelsOf(sourceOfTwo(problem, inner, outer), run,
                     [between](std::span<TensorRef const> in, std::span<TensorRef const> results) {
                         return between(in, results[0], nullptr).sizeBytes();
                     });
}

} // namespace tw::ops
