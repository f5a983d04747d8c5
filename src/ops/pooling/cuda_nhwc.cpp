// SPDX-License-Identifier: Apache-2.0
// Maximum and average of FP16, FP32 and i8 images by pixels (pixelVectorsOf()): 16 bytes of channels for each thread.
#include <algorithm>
#include <bit>

#include "base/format.h"
#include "kernels/cuda/common/generate.h"
#include "ops/pooling/cuda_windows.h"
#include "ops/pooling/pooling_params.h"

namespace tw::ops::pooling {

namespace nhwc {
namespace {

using cuda::ceilDiv;

constexpr int kThreads = 256, kStripThreads = 128;
constexpr int64_t kMostUnrolled = 64; // positions of x that a thread sees
constexpr int64_t kMostColumns = 16;
constexpr int64_t kMostRing = 5; // rows of a window that a thread keeps

// A config is {rows of a thread} for windows of any size, or has these numbers.
enum ConfigField
{
    kRows,    // outputs, one below the other
    kSlice,   // vectors of neighbouring threads
    kAhead,   // rows of x, loaded before the first is used
    kColumns, // outputs side by side
    kConfigFields,
};

template <DataType type>
Support supports(Problem const& p)
{
    if (p.inputs[0].type != type)
        return Support::no(std::string("takes ") + nameOf(type) + " only");
    TW_SUPPORTS(supportsWindows(p));
    if (p.inputs[0].dims.rank < 3)
        return Support::no("takes windows behind channels only");
    if (p.node->attrsAs<Attrs>().window[1] > kMostColumns)
        return Support::no(fmt::format("takes windows of at most {} columns", kMostColumns));
    return Support::yes();
}

// Positions of x that a thread sees.
int64_t seen(Attrs const& a, int64_t rows)
{
    return ((rows - 1) * a.strides[0] + a.window[0]) * a.window[1];
}

// What a thread has.
struct Choice
{
    bool isStrip = false;
    int64_t rows = 1, slice = 1, ahead = 1, columns = 1; // of a damaged plan's config, too

    Choice(Attrs const& a, Config const& config)
        : isStrip(isConfig(config, kConfigFields, 1, 16) && config[kAhead] <= 4 && config[kColumns] <= 2 &&
                  a.window[0] <= kMostRing && a.window[0] >= a.strides[0] && seen(a, config[kRows]) <= kMostUnrolled)
    {
        if (isStrip || isConfig(config, 1, 1, 8))
            rows = config[kRows];
        if (!isStrip)
            return;
        slice = config[kSlice];
        ahead = config[kAhead];
        columns = config[kColumns];
    }
    int threads() const { return isStrip ? kStripThreads : kThreads; }
};

std::string textOf(Problem const& p, Choice const& choice)
{
    auto const& a = p.node->attrsAs<Attrs>();
    std::string const shared = cuda::type("T", cuda::storageOf(p.inputs[0].type)) +
                               cuda::flag("AVERAGES", a.kind == Kind::kAverage) + windowOf(a) +
                               cuda::constant("ROWS", choice.rows) + cuda::constant("THREADS", choice.threads());
    if (!choice.isStrip)
        return shared + cuda::flag("UNROLLS", seen(a, choice.rows) <= kMostUnrolled) +
               cuda::include("ops/pooling/pooling_pixels_windows.cuh");
    return shared + cuda::constant("SLICE", choice.slice) + cuda::constant("AHEAD", choice.ahead) +
           cuda::constant("COLUMNS", choice.columns) + cuda::include("ops/pooling/pooling_pixels_strips.cuh");
}

std::vector<Config> configs(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    std::vector<Config> list;
    list.push_back({1});
    if (a.strides[0] < a.window[0] && (a.strides[0] + a.window[0]) * a.window[1] <= kMostUnrolled)
        list.push_back({2});
    if (p.outputs[0].dims.volume() == 0 || a.window[0] < a.strides[0] || a.window[0] > kMostRing)
        return list;
    Extents const& y = p.outputs[0].dims;
    int64_t const out = y[y.rank - 2], vectors = ceilDiv(y[y.rank - 3], 16 / sizeOf(p.outputs[0].type));
    // 128 contiguous bytes, but that channels fill; 64 where x is narrow in any case.
    auto waste = [&](int64_t slice) { return ceilDiv(vectors, slice) * slice - vectors; };
    int64_t const slice = waste(8) * 4 <= vectors   ? 8
                          : waste(4) * 4 <= vectors ? 4
                                                    : std::min<int64_t>(int64_t(std::bit_ceil(uint64_t(vectors))), 4);
    auto add = [&](int64_t wanted, int64_t ahead, int64_t columns) {
        int64_t const rows = ceilDiv(out, ceilDiv(out, wanted)), seen = (rows - 1) * a.strides[0] + a.window[0];
        Config const config{rows, slice, ahead, columns};
        if (seen * a.window[1] <= kMostUnrolled && std::find(list.begin(), list.end(), config) == list.end())
            list.push_back(config);
    };
    add(4, 2, 2);
    add(4, 4, 1);
    add(8, 2, 1);
    add(8, 4, 1);
    return list;
}

std::vector<Formats> formats(Problem const& p)
{
    if (p.inputs[0].dims.rank < 3)
        return {};
    return {channelsLastFormats(p, pixelVectorsOf(p.inputs[0].type))};
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config)
{
    Choice const choice(p.node->attrsAs<Attrs>(), config);
    auto const& attrs = p.node->attrsAs<Attrs>();
    CudaSource source = {.text = textOf(p, choice), .names = {"pooling"}, .isDependent = true, .alignment = 16};
    return kernelsOf(std::move(source), [&attrs, choice](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        Geometry const g = geometryOf(attrs, x.dims, y.dims);
        int const axis = x.dims.rank - 3;
        int64_t const vectors = ceilDiv(x.dims[axis], 16 / sizeOf(x.type)), slices = ceilDiv(vectors, choice.slice),
                      groups = ceilDiv(g.out[1], choice.rows), wide = ceilDiv(g.out[2], choice.columns);
        PixelsParams const p{.x = x.data,
                             .y = y.data,
                             .count = uint64_t(x.dims.volume(0, axis) * groups * wide *
                                               (choice.isStrip ? slices * choice.slice : vectors)),
                             .vectors = cuda::divBy(vectors),
                             .wide = cuda::divBy(wide),
                             .groups = cuda::divBy(groups),
                             .slices = cuda::divBy(slices),
                             .pixelX = x.pixelStride(),
                             .pixelY = y.pixelStride(),
                             .h = int32_t(g.in[1]),
                             .w = int32_t(g.in[2]),
                             .outH = int32_t(g.out[1]),
                             .outW = int32_t(g.out[2]),
                             .padH = int32_t(g.before[1]),
                             .padW = int32_t(g.before[2]),
                             .afterH = int32_t(g.after[1]),
                             .afterW = int32_t(g.after[2])};
        return launch(0, blocksFor(int64_t(p.count), choice.threads()), choice.threads(), p);
    });
}

} // namespace
} // namespace nhwc

constinit CudaTactic const kNhwc{
    "pooling_f16_nhwc_cuda", 2, nhwc::generate, nhwc::supports<DataType::kHalf>, nhwc::configs, nhwc::formats};
constinit CudaTactic const kNhwcF32{
    "pooling_f32_nhwc_cuda", 2, nhwc::generate, nhwc::supports<DataType::kFloat>, nhwc::configs, nhwc::formats};
constinit CudaTactic const kNhwcI8{
    "pooling_i8_nhwc_cuda", 1, nhwc::generate, nhwc::supports<DataType::kInt8>, nhwc::configs, nhwc::formats};

} // namespace tw::ops::pooling
