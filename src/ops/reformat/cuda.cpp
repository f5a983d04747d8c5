// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda_tactic.h"
#include "ops/reformat/op.h"

namespace tw::ops::reformat {

namespace {

constexpr int kThreads = 256;

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    int64_t channels = 0, pixels = 0;
    int64_t xStride = 0, yStride = 0; // from pixel to pixel; 0: linear
    cuda::Div tilesC, tilesP;
};

// Squares of 32 channels by 32 pixels through shared memory; each side is walked along what it is dense in.
constexpr char const* kText = R"(
struct Params { void const* x; void* y; i64 channels, pixels, xStride, yStride; Div tilesC, tilesP; };
TW_INLINE i64 place(Params const& p, i64 stride, i64 image, i64 c, i64 pixel)
{
    return stride ? (image * p.pixels + pixel) * stride + c : (image * p.channels + c) * p.pixels + pixel;
}
TW_KERNEL reformat(const __grid_constant__ Params p)
{
    __shared__ $unit$ tile[32][33]; // [channel, pixel]
    idx const rest = divide(blockIdx.x, p.tilesP), image = divide(rest, p.tilesC);
    i64 const c0 = i64(rest - image * idx(p.tilesC.d)) * 32, p0 = i64(blockIdx.x - rest * idx(p.tilesP.d)) * 32;
    int const tx = threadIdx.x % 32, ty = threadIdx.x / 32;
#pragma unroll
    for (int r = ty; r < 32; r += 8) {
        int const c = p.xStride ? tx : r, pixel = p.xStride ? r : tx;
        if (c0 + c < p.channels && p0 + pixel < p.pixels)
            tile[c][pixel] = static_cast<$unit$ const*>(p.x)[place(p, p.xStride, image, c0 + c, p0 + pixel)];
    }
    __syncthreads();
#pragma unroll
    for (int r = ty; r < 32; r += 8) {
        int const c = p.yStride ? tx : r, pixel = p.yStride ? r : tx;
        if (c0 + c < p.channels && p0 + pixel < p.pixels)
            static_cast<$unit$*>(p.y)[place(p, p.yStride, image, c0 + c, p0 + pixel)] = tile[c][pixel];
    }
}
)";

std::vector<Formats> formats(Problem const& problem)
{
    std::vector<Formats> list{linearFormats(problem)};
    if (problem.inputs[0].dims.rank >= 3)
        for (Format from : {Format::kLinear, Format::kChannelsLast})
            for (Format to : {Format::kLinear, Format::kChannelsLast})
                if (from != Format::kLinear || to != Format::kLinear)
                    list.push_back(Formats{{from}, {to}});
    return list;
}

CudaKernels generate(Problem const& problem, Config const&)
{
    CudaKernels out;
    out.wide = isWide(problem);
    out.names = {"reformat"};
    out.source =
        cuda::expand(kText, {{"unit", cuda::unitOf(sizeOf(problem.outputs[0].type))}}) + cuda::sizeCheck<Params>();
    out.run = [](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        constexpr int64_t kTile = 32;
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        auto strideOf = [](TensorRef const& t) { return t.format == Format::kLinear ? 0 : t.pixelStride(); };
        int const rank = x.dims.rank;
        int64_t const images = rank > 1 ? x.dims[0] : 1;
        Params p;
        p.x = x.data;
        p.y = y.data;
        p.channels = rank > 1 ? x.dims[1] : 1;
        p.pixels = x.count() / (images * p.channels);
        p.xStride = strideOf(x);
        p.yStride = strideOf(y);
        int64_t const tilesC = blocksFor(p.channels, kTile), tilesP = blocksFor(p.pixels, kTile);
        p.tilesC = cuda::divBy(tilesC);
        p.tilesP = cuda::divBy(tilesP);
        return launch(0, images * tilesC * tilesP, kThreads, p);
    };
    return out;
}

constexpr CudaTactic kPlain{"reformat_plain_cuda", 1, generate, nullptr, nullptr, formats};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::reformat
