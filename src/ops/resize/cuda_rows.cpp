// SPDX-License-Identifier: Apache-2.0
// Images resized along their two axes, in planes or by pixels: a thread walks down the rows of y and keeps what it has
// read of x. By pixels it has 16 bytes of channels; the tactics of single types have one row and all three formats of
// pixels (pixelVectorsOf()).
#include <algorithm>

#include "base/format.h"
#include "base/round.h"
#include "ops/resize/cuda_scale.h"
#include "ops/resize/resize_params.h"

namespace tw::ops::resize {

namespace rows {
namespace {

constexpr int kSpans = 3; // between neighbouring rows of x, for a thread
constexpr int kMostWide = 4, kMostRows = 16;

struct Shape
{
    int rows, wide; // rows 0: those between neighbours of x
    bool pixels;
};

// Some shape for the config of a damaged plan, too.
Shape shapeOf(Problem const& problem, Config const& config)
{
    Shape shape{4, 1, problem.outputs[0].format == Format::kHWC8};
    if (isConfig(config, 2, 0, kMostRows)) {
        shape.rows = int(config[0]);
        shape.wide = int(config[1] >= kMostWide ? 4 : config[1] >= 2 ? 2 : 1);
    }
    if (shape.pixels)
        shape.wide = int(16 / sizeOf(problem.outputs[0].type));
    if (problem.node->attrsAs<Attrs>().mode == Mode::kNearest)
        shape.rows = std::max(shape.rows, 1);
    return shape;
}

Support supports(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    TensorSpec const& x = p.inputs[0];
    if (a.mode == Mode::kCubic)
        return Support::no("does not mix by cubic weights");
    if (a.mode == Mode::kLinear && !isFloating(x.type))
        return Support::no(std::string("mixes no ") + nameOf(x.type));
    if (x.dims.rank < 3)
        return Support::no("resizes images");
    return supportsLastAxes(p);
}

std::vector<Formats> formats(Problem const& p)
{
    std::vector<Formats> list{linearFormats(p)};
    if (p.outputs[0].dims.rank >= 3 && !p.inputs[0].constant && isFloating(p.outputs[0].type)) {
        list.push_back(linearFormats(p));
        list.back().inputs[0] = list.back().outputs[0] = Format::kHWC8;
    }
    return list;
}

// Rows of y for a thread, and columns of planes.
std::vector<Config> configs(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    int const rank = p.outputs[0].dims.rank;
    bool const pixels = p.outputs[0].format == Format::kHWC8,
               grows = a.mode == Mode::kLinear && p.outputs[0].dims[rank - 2] > p.inputs[0].dims[rank - 2];
    std::vector<Config> list;
    if (grows)
        list = pixels ? std::vector<Config>{{0, 1}} : std::vector<Config>{{0, 4}, {0, 2}};
    for (int64_t rows : {4, 2})
        list.push_back({rows, pixels ? 1 : 4});
    if (!pixels)
        list.push_back({8, 4});
    if (supportsKnown(p).ok) // kernels that know the sizes are faster
        list.resize(1);
    return list;
}

std::unique_ptr<CudaKernels> kernelsOfShape(Problem const& problem, Shape const& shape)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    DataType const t = problem.outputs[0].type;
    bool const isNearest = attrs.mode == Mode::kNearest;
    CudaSource source{.text = cuda::type("T", isNearest ? cuda::unitOf(sizeOf(t)) : cuda::storageOf(t)) +
                              cuda::type("Value", isNearest ? "T" : "float") +
                              cuda::constant("kRows", std::max(shape.rows, 1)) + cuda::constant("kWide", shape.wide) +
                              cuda::constant("kSpans", kSpans) + cuda::flag("kNhwc", shape.pixels) +
                              cuda::flag("kIsBetween", shape.rows == 0) + cuda::flag("kIsNearest", isNearest) +
                              cuda::flag("kExcludesOutside", attrs.excludeOutside) +
                              cuda::include("ops/resize/resize_rows.cuh"),
                      .names = {"resize_rows", "resize_rows_long"},
                      .isDependent = true,
                      .alignment = shape.pixels ? 16 : 1};
    return kernelsOf(std::move(source), [&attrs, shape](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        int const axis = y.dims.rank - 2;
        RowParams p{.x = x.data, .y = y.data};
        for (int i = 0; i < 2; ++i)
            p.scale[i] = scaleOf(attrs, axisOf(attrs, x.dims, y.dims, axis + i));
        Scale const &rows = p.scale[0], &columns = p.scale[1];
        int64_t images = y.dims.volume(0, axis), inner = divideUp(columns.out, shape.wide);
        p.xPixel = p.yPixel = 1;
        if (shape.pixels) {
            int64_t const channels = y.dims[axis - 1], vectors = divideUp(channels, shape.wide);
            images = y.dims.volume(0, axis - 1);
            inner = columns.out * vectors;
            p.vectors = cuda::divBy(vectors);
            p.xPixel = x.pixelStride();
            p.yPixel = y.pixelStride();
        }
        p.xRow = columns.in * p.xPixel;
        p.yRow = columns.out * p.yPixel;
        p.xImage = p.xRow * rows.in;
        p.yImage = p.yRow * rows.out;
        int64_t const groups = shape.rows == 0 ? divideUp(rows.in + 1, kSpans) : divideUp(rows.out, shape.rows);
        p.inner = cuda::divBy(inner);
        p.groups = cuda::divBy(groups);
        p.count = uint64_t(images * groups * inner);
        return launch.each(isLong(rows) || isLong(columns) ? 1 : 0, int64_t(p.count), p);
    });
}

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config)
{
    return kernelsOfShape(problem, shapeOf(problem, config));
}

namespace nhwc {

template <DataType type>
Support supports(Problem const& p)
{
    if (p.inputs[0].type != type)
        return Support::no(std::string("takes ") + nameOf(type) + " only");
    TW_SUPPORTS(rows::supports(p));
    TensorSpec const& y = p.outputs[0];
    return storageCount(pixelVectorsOf(type), y.type, y.maxDims) >= INT32_MAX ? Support::no("counts in 32 bits")
                                                                              : Support::yes();
}

std::vector<Formats> formats(Problem const& p)
{
    if (p.outputs[0].dims.rank < 3 || p.inputs[0].constant)
        return {};
    Formats f = linearFormats(p);
    f.inputs[0] = f.outputs[0] = pixelVectorsOf(p.outputs[0].type);
    return {f};
}

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const&)
{
    return kernelsOfShape(problem, {1, int(16 / sizeOf(problem.outputs[0].type)), true});
}

} // namespace nhwc
} // namespace
} // namespace rows

constinit CudaTactic const kRows{"resize_any_rows_cuda", 1, rows::generate, rows::supports, rows::configs,
                                 rows::formats};
constinit CudaTactic const kNhwc{
    "resize_f16_nhwc_cuda", 1, rows::nhwc::generate, rows::nhwc::supports<DataType::kHalf>, nullptr,
    rows::nhwc::formats};
constinit CudaTactic const kNhwcF32{
    "resize_f32_nhwc_cuda", 1, rows::nhwc::generate, rows::nhwc::supports<DataType::kFloat>, nullptr,
    rows::nhwc::formats};
constinit CudaTactic const kNhwcI8{
    "resize_i8_nhwc_cuda", 1, rows::nhwc::generate, rows::nhwc::supports<DataType::kInt8>, nullptr,
    rows::nhwc::formats};

} // namespace tw::ops::resize
