// SPDX-License-Identifier: Apache-2.0
// Sum, average, product, maximum or minimum over the pixels of FP16 and FP32 images in Format::kHWC8; y is linear.
#include <algorithm>

#include "ops/reduce/cuda_arithmetic.h"
#include "ops/reduce/reduce_params.h"

namespace tw::ops::reduce {

namespace nhwc {
namespace {

constexpr int64_t kPixelBytes = 128;     // of a block: 64 channels of FP16, 32 of FP32
constexpr int64_t kMostSplit = 128;      // blocks that share an image's pixels
constexpr int64_t kPixelsEach = 256;     // of a block, where they do
constexpr int64_t kMostPixels = 1 << 30; // of an image

// Channels of a block.
int64_t channelsOf(DataType type)
{
    return kPixelBytes / sizeOf(type);
}

// The plainest one for the config of a damaged plan.
struct Choice
{
    int threads = 256;
    int64_t split = 1;
};
Choice choiceOf(Config const& config)
{
    if (!isConfig(config, 2, 1, 256) || config[1] > kMostSplit)
        return {};
    return {config[0] == 64 ? 64 : 256, config[1]};
}

template <DataType type>
Support supports(Problem const& p)
{
    Extents const& x = p.inputs[0].maxDims;
    if (p.inputs[0].type != type)
        return Support::no(std::string("takes ") + nameOf(type) + " only");
    if (!p.node->attrsAs<Attrs>().isBare())
        return Support::no("has nothing in front of the sum or behind it");
    if (x.rank < 3 || p.node->attrsAs<Attrs>().axes != int64_t(3) << (x.rank - 2))
        return Support::no("reduces the two axes behind the channels only");
    if (x.volume(x.rank - 2, x.rank) > kMostPixels || x[x.rank - 3] > kMostPixels || x.volume() == 0)
        return Support::no("counts in 32 bits, and needs pixels");
    return Support::yes();
}

// {threads of a block, blocks that share an image}
std::vector<Config> configs(Problem const& p)
{
    Extents const& x = p.inputs[0].dims;
    if (x.rank < 3)
        return {{256, 1}};
    int64_t const channels = channelsOf(p.inputs[0].type), pixels = x.volume(x.rank - 2, x.rank),
                  blocks = x.volume(0, x.rank - 3) * ((x[x.rank - 3] + channels - 1) / channels);
    std::vector<Config> list{{256, 1}, {64, 1}};
    // Few blocks, each with many pixels.
    int64_t const split = std::min(pixels / kPixelsEach, kMostSplit);
    if (p.cuda && split > 1 && blocks < int64_t(p.cuda->multiprocessors) * 2)
        list.push_back({256, split});
    return list;
}

std::vector<Formats> formats(Problem const& p)
{
    if (p.inputs[0].dims.rank < 3)
        return {};
    Formats f = linearFormats(p);
    f.inputs[0] = Format::kHWC8;
    return {f};
}

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config)
{
    Choice const choice = choiceOf(config);
    CudaSource source = {.text = cuda::include("kernels/cuda/common/matrix.cuh") +
                                 arithmeticOf(problem.node->attrsAs<Attrs>(), problem.inputs[0].type) +
                                 cuda::constant("THREADS", choice.threads) +
                                 cuda::include("ops/reduce/reduce_pixels.cuh"),
                         .names = {"reduce", "finish"},
                         .isWhole = true,
                         .isDependent = true,
                         .alignment = 16};
    return kernelsOf(
        std::move(source),
        [type = problem.inputs[0].type, choice](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            TensorRef const& x = args.inputs[0];
            int const axis = x.dims.rank - 3;
            int64_t const channels = channelsOf(type), images = x.dims.volume(0, axis),
                          chunks = (x.dims[axis] + channels - 1) / channels;
            PixelsParams<void> p;
            p.x = x.data;
            p.y = args.outputs[0].data;
            p.parts = static_cast<float*>(args.workspace);
            p.pixel = x.pixelStride();
            p.pixels = int32_t(x.dims[axis + 1] * x.dims[axis + 2]);
            p.channels = int32_t(x.dims[axis]);
            p.chunks = int32_t(chunks);
            p.split = int32_t(choice.split);
            TW_TRY(launch(0, images * chunks * choice.split, choice.threads, p));
            return choice.split > 1 ? launch(1, images * chunks, int(channels), p) : Result<void>();
        },
        [choice](std::span<TensorRef const>, std::span<TensorRef const> results) {
            return choice.split > 1 ? results[0].count() * choice.split * int64_t(sizeof(float)) : 0;
        });
}

} // namespace
} // namespace nhwc

constinit CudaTactic const kNhwc{
    "reduce_f16_nhwc_cuda", 2, nhwc::generate, nhwc::supports<DataType::kHalf>, nhwc::configs, nhwc::formats};
constinit CudaTactic const kNhwcF32{
    "reduce_f32_nhwc_cuda", 2, nhwc::generate, nhwc::supports<DataType::kFloat>, nhwc::configs, nhwc::formats};

} // namespace tw::ops::reduce
