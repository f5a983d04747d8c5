// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce/cuda_pixels.h"

#include <algorithm>

#include "kernels/cuda/common/hopper.h"
#include "ops/reduce/op.h"

namespace tw::ops::reduce {

namespace {

constexpr int64_t kPixelBytes = 128;     // of a block: 64 channels of FP16, 32 of FP32
constexpr int64_t kMostSplit = 128;      // blocks that share an image's pixels
constexpr int64_t kPixelsEach = 256;     // of a block, where they do
constexpr int64_t kMostPixels = 1 << 30; // of an image

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    float* parts = nullptr; // [image, split, channels] where blocks share an image
    int64_t pixel = 0;      // elements from pixel to pixel
    int32_t pixels = 0, channels = 0, chunks = 0, split = 0;
};

// V elements of 16 bytes.
constexpr char const* kHalves = R"(
typedef f16 T;
constexpr int V = 8;
TW_INLINE float valueOf(Unit const& u, int i) { return i % 2 ? highHalf(u.v[i / 2]) : lowHalf(u.v[i / 2]); }
TW_INLINE T stored(float v) { return floatToHalf(v); }
)";
constexpr char const* kFloats = R"(
typedef float T;
constexpr int V = 4;
TW_INLINE float valueOf(Unit const& u, int i) { return __uint_as_float(u.v[i]); }
TW_INLINE T stored(float v) { return v; }
)";

// A block has CHANNELS channels of an image: 8 lanes for them, the others along the pixels. Where blocks share an
// image, a second kernel adds up.
constexpr char const* kText = R"(
constexpr int CHANNELS = 8 * V;
struct Params { T const* x; T* y; float* parts; i64 pixel; i32 pixels, channels, chunks, split; };
constexpr int THREADS = $threads$, STEP = THREADS / 8, WARPS = THREADS / 32, AHEAD = 8;
TW_INLINE float join(float a, float b) { return $join$; }
TW_INLINE T result(Params const& p, float sum)
{
    float const count = float(p.pixels);
    (void)count;
    return stored($result$);
}
TW_KERNEL __launch_bounds__(THREADS) reduce(const __grid_constant__ Params p)
{
    __shared__ float part[WARPS][CHANNELS];
    waitForPrevious();
    releaseDependents();
    int const rank = blockIdx.x % p.split, block = blockIdx.x / p.split;
    int const image = block / p.chunks, c0 = (block - image * p.chunks) * CHANNELS;
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32, c = c0 + lane % 8 * V;
    float v[V];
#pragma unroll
    for (int e = 0; e < V; ++e) v[e] = $identity$;
    T const* const x = p.x + i64(image) * p.pixels * p.pixel + c;
    int const first = int(i64(p.pixels) * rank / p.split), last = int(i64(p.pixels) * (rank + 1) / p.split);
    if (c < p.channels) {
        for (int k = first + threadIdx.x / 8; k < last; k += STEP * AHEAD) {
            Unit u[AHEAD];
#pragma unroll
            for (int j = 0; j < AHEAD; ++j)
                if (k + j * STEP < last) u[j] = *reinterpret_cast<Unit const*>(x + i64(k + j * STEP) * p.pixel);
#pragma unroll
            for (int j = 0; j < AHEAD; ++j)
                if (k + j * STEP < last)
#pragma unroll
                    for (int e = 0; e < V; ++e) v[e] = join(v[e], valueOf(u[j], e));
        }
    }
#pragma unroll
    for (int e = 0; e < V; ++e) {
        v[e] = join(v[e], __shfl_xor_sync(0xffffffffu, v[e], 8));
        v[e] = join(v[e], __shfl_xor_sync(0xffffffffu, v[e], 16));
        if (lane < 8) part[warp][lane * V + e] = v[e];
    }
    __syncthreads();
    for (int t = threadIdx.x; t < CHANNELS && c0 + t < p.channels; t += THREADS) {
        float sum = part[0][t];
#pragma unroll
        for (int w = 1; w < WARPS; ++w) sum = join(sum, part[w][t]);
        if (p.split > 1) p.parts[(i64(image) * p.split + rank) * p.channels + c0 + t] = sum;
        else p.y[i64(image) * p.channels + c0 + t] = result(p, sum);
    }
}
// A thread for each result.
TW_KERNEL __launch_bounds__(CHANNELS) finish(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    int const image = blockIdx.x / p.chunks, c = (blockIdx.x - image * p.chunks) * CHANNELS + threadIdx.x;
    if (c >= p.channels) return;
    float sum = $identity$;
#pragma unroll 8
    for (int r = 0; r < p.split; ++r) sum = join(sum, p.parts[(i64(image) * p.split + r) * p.channels + c]);
    p.y[i64(image) * p.channels + c] = result(p, sum);
}
)";

struct Arithmetic
{
    char const *identity, *join, *result;
};

Arithmetic arithmeticOf(Kind kind)
{
    switch (kind) {
    case Kind::kSum:
        return {"0.0f", "a + b", "sum"};
    case Kind::kProd:
        return {"1.0f", "a * b", "sum"};
    case Kind::kMax: // NaN wins
        return {"-__int_as_float(0x7f800000)", "a != a ? a : b != b ? b : a > b ? a : b", "sum"};
    case Kind::kMin:
        return {"__int_as_float(0x7f800000)", "a != a ? a : b != b ? b : a < b ? a : b", "sum"};
    case Kind::kAvg:
        return {"0.0f", "a + b", "sum / count"};
    }
    return {};
}

// Channels of a block.
int64_t channelsOf(Problem const& p)
{
    return kPixelBytes / sizeOf(p.inputs[0].type);
}

Support supports(Problem const& p, DataType type)
{
    Extents const& x = p.inputs[0].maxDims;
    if (p.inputs[0].type != type)
        return Support::no(std::string("takes ") + nameOf(type) + " only");
    if (x.rank < 3 || p.node->attrsAs<Attrs>().axes != int64_t(3) << (x.rank - 2))
        return Support::no("reduces the two axes behind the channels only");
    if (x.volume(x.rank - 2, x.rank) > kMostPixels || x[x.rank - 3] > kMostPixels || x.volume() == 0)
        return Support::no("counts in 32 bits, and needs pixels");
    return Support::yes();
}

} // namespace

Support supportsPixels(Problem const& p)
{
    return supports(p, DataType::kHalf);
}
Support supportsPixels32(Problem const& p)
{
    return supports(p, DataType::kFloat);
}

// {threads of a block, blocks that share an image}
std::vector<Config> configsOfPixels(Problem const& p)
{
    Extents const& x = p.inputs[0].dims;
    if (x.rank < 3)
        return {{256, 1}};
    int64_t const pixels = x.volume(x.rank - 2, x.rank),
                  blocks = x.volume(0, x.rank - 3) * ((x[x.rank - 3] + channelsOf(p) - 1) / channelsOf(p));
    std::vector<Config> list{{256, 1}, {64, 1}};
    // Few blocks, each with many pixels.
    int64_t const split = std::min(pixels / kPixelsEach, kMostSplit);
    if (p.cuda && split > 1 && blocks < int64_t(p.cuda->multiprocessors) * 2)
        list.push_back({256, split});
    return list;
}

std::vector<Formats> formatsOfPixels(Problem const& p)
{
    if (p.inputs[0].dims.rank < 3)
        return {};
    Formats f = linearFormats(p);
    f.inputs[0] = Format::kHWC8;
    return {f};
}

CudaKernels generatePixels(Problem const& p, Config const& config)
{
    bool const isKnown = config.size() == 2 && config[1] >= 1 && config[1] <= kMostSplit;
    int const threads = isKnown && config[0] == 64 ? 64 : 256;
    int64_t const split = isKnown ? config[1] : 1;
    Arithmetic const f = arithmeticOf(p.node->attrsAs<Attrs>().kind);
    CudaKernels out;
    out.isWhole = true;
    out.isDependent = true;
    out.alignment = 16;
    out.names = {"reduce", "finish"};
    out.source =
        cuda::include("kernels/cuda/common/matrix.cuh") + (p.inputs[0].type == DataType::kHalf ? kHalves : kFloats) +
        cuda::expand(
            kText,
            {{"threads", std::to_string(threads)}, {"join", f.join}, {"identity", f.identity}, {"result", f.result}}) +
        cuda::sizeCheck<Params>();
    if (split > 1)
        out.workspace = [split](std::span<TensorRef const>, std::span<TensorRef const> results) {
            return results[0].count() * split * int64_t(sizeof(float));
        };
    out.run = [split, threads, channels = channelsOf(p)](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const& x = args.inputs[0];
        int const axis = x.dims.rank - 3;
        int64_t const images = x.dims.volume(0, axis), chunks = (x.dims[axis] + channels - 1) / channels;
        Params q;
        q.x = x.data;
        q.y = args.outputs[0].data;
        q.parts = static_cast<float*>(args.workspace);
        q.pixel = x.pixelStride();
        q.pixels = int32_t(x.dims[axis + 1] * x.dims[axis + 2]);
        q.channels = int32_t(x.dims[axis]);
        q.chunks = int32_t(chunks);
        q.split = int32_t(split);
        TW_TRY(launch(0, images * chunks * split, threads, q));
        return split > 1 ? launch(1, images * chunks, int(channels), q) : Result<void>();
    };
    return out;
}

} // namespace tw::ops::reduce
