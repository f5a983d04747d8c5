// SPDX-License-Identifier: Apache-2.0
// Maximum and average of FP16 and FP32 images in the linear format: rows of a plane by accesses of up to 16 bytes,
// columns that neighbours hold by exchange within the warp.
#include <algorithm>
#include <bit>

#include "kernels/cuda/common/generate.h"
#include "ops/pooling/cuda_windows.h"
#include "ops/pooling/pooling_params.h"

namespace tw::ops::pooling {

namespace nchw {
namespace {

constexpr int kThreads = 128;
constexpr int64_t kMostWords = 96; // of x that a thread loads: more are slow to compile and do not fit into registers

// A config's numbers.
enum ConfigField
{
    kColumns, // outputs of a row of each thread
    kRows,    // outputs, one below the other
    kUnitX,   // elements of an access to x
    kUnitY,
    kConfigFields,
};

// The largest power of two up to `most` that divides a row, which must be known; 1 where it is not.
int64_t unitOf(ir::Value const& v, int64_t width, int64_t most)
{
    if (!v.shape.back().isConst())
        return 1;
    int64_t unit = 1;
    while (unit * 2 <= most && width % (unit * 2) == 0)
        unit *= 2;
    return unit;
}

bool isSame(PaddingMode mode)
{
    return mode == PaddingMode::kSameUpper || mode == PaddingMode::kSameLower;
}

int64_t elementsOf(Problem const& p) // of 16 bytes
{
    return 16 / sizeOf(p.inputs[0].type);
}

int64_t alignmentOf(Problem const& p, Config const& config)
{
    return std::max(config[kUnitX], config[kUnitY]) * sizeOf(p.inputs[0].type);
}

// Why a thread cannot have so many outputs of the largest problem; null when it can.
char const* misfit(Problem const& p, Config const& config)
{
    if (!isConfig(config, kConfigFields, 1, 16))
        return "a config has other numbers";
    Geometry const g = pooling::geometryOf(p, true);
    int64_t const bytes = sizeOf(p.inputs[0].type);
    int64_t const columns = config[kColumns], rows = config[kRows], in = columns * g.stride[2];
    if (columns % (4 / bytes) != 0 || in % config[kUnitX] != 0 || columns % config[kUnitY] != 0 ||
        alignmentOf(p, config) > 16)
        return "accesses do not divide what a thread has";
    if (!std::has_single_bit(uint64_t(config[kUnitX])) || !std::has_single_bit(uint64_t(config[kUnitY])))
        return "accesses are of powers of two";
    if (g.before[2] >= in || g.window[2] - g.stride[2] - g.before[2] >= in)
        return "windows reach farther than the neighbour";
    if (((rows - 1) * g.stride[1] + g.window[1]) * in * bytes / 4 > kMostWords)
        return "a thread would load too much";
    return nullptr;
}

std::vector<Config> configs(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    if (a.window.size() != 2 || !isFloating(p.inputs[0].type))
        return {};
    Geometry const g = pooling::geometryOf(p, false);
    int64_t const most = elementsOf(p), step = std::min<int64_t>(g.stride[2], most);
    std::vector<Config> list;
    auto add = [&](int64_t columns, int64_t rows) {
        int64_t const in = columns * g.stride[2];
        Config c(kConfigFields);
        c[kColumns] = columns;
        c[kRows] = rows;
        auto largest = [](int64_t most, int64_t divides) { // power of two
            int64_t unit = 1;
            while (unit * 2 <= most && divides % (unit * 2) == 0)
                unit *= 2;
            return unit;
        };
        c[kUnitX] = largest(unitOf(*p.node->inputs[0], g.in[2], most), in);
        c[kUnitY] = largest(unitOf(*p.node->outputs[0], g.out[2], most), columns);
        if (!misfit(p, c) && std::find(list.begin(), list.end(), c) == list.end())
            list.push_back(c);
    };
    // Rows of whole packs: as many columns as give packs of x, or of y. Others: few, which lie closer together.
    int64_t const narrow = std::max<int64_t>(most / step, 2), unit = unitOf(*p.node->inputs[0], g.in[2], most);
    bool const overlaps = g.window[1] > g.stride[1], isWhole = unit == most;
    for (int64_t columns :
         {isWhole ? narrow : std::max<int64_t>(std::min(unit, narrow / 2), 2), isWhole ? most : narrow}) {
        add(columns, overlaps ? 2 : 1);
        add(columns, overlaps ? 4 : 2);
    }
    if (overlaps)
        add(narrow, 1);
    return list;
}

Support supports(Problem const& p)
{
    if (!isFloating(p.inputs[0].type))
        return Support::no("takes f16 and f32 only");
    TW_SUPPORTS(supportsWindows(p));
    if (isSame(p.node->attrsAs<Attrs>().paddingMode) && !p.node->inputs[0]->shape.back().isConst())
        return Support::no("needs to know the padding");
    return configs(p).empty() ? Support::no("the window is too large") : Support::yes();
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config)
{
    if (char const* const why = misfit(p, config))
        return noKernels(unsupported(why));
    auto const& attrs = p.node->attrsAs<Attrs>();
    int64_t const padding = pooling::geometryOf(p, false).before[2]; // columns before x
    CudaSource source = {.text = cellsOf(p) + windowOf(attrs) + cuda::constant("PAD_W", padding) +
                                 cuda::constant("ROWS", config[kRows]) + cuda::constant("COLUMNS", config[kColumns]) +
                                 cuda::constant("UNIT_X", config[kUnitX]) + cuda::constant("UNIT_Y", config[kUnitY]) +
                                 cuda::constant("THREADS", kThreads) + cuda::include("ops/pooling/pooling_planes.cuh"),
                         .names = {"pooling"},
                         .isDependent = true,
                         .alignment = alignmentOf(p, config)};
    return kernelsOf(std::move(source),
                     [&attrs, config, padding](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
                         TensorRef const &x = args.inputs[0], &y = args.outputs[0];
                         Geometry const g = geometryOf(attrs, x.dims, y.dims);
                         if (g.before[2] != padding || g.in[2] % config[kUnitX] != 0 || g.out[2] % config[kUnitY] != 0)
                             return unsupported("the kernel was built for rows of another width");
                         int64_t const wide = cuda::ceilDiv(g.out[2], config[kColumns]),
                                       groups = cuda::ceilDiv(g.out[1], config[kRows]);
                         PlanesParams const p{.x = x.data,
                                              .y = y.data,
                                              .count = uint64_t(g.batch * groups * wide),
                                              .wide = cuda::divBy(wide),
                                              .groups = cuda::divBy(groups),
                                              .h = int32_t(g.in[1]),
                                              .w = int32_t(g.in[2]),
                                              .outH = int32_t(g.out[1]),
                                              .outW = int32_t(g.out[2]),
                                              .padH = int32_t(g.before[1]),
                                              .afterH = int32_t(g.after[1]),
                                              .afterW = int32_t(g.after[2])};
                         return launch(0, blocksFor(int64_t(p.count), kThreads), kThreads, p);
                     });
}

} // namespace
} // namespace nchw

constinit CudaTactic const kNchw{"pooling_any_nchw_cuda", 1, nchw::generate, nchw::supports, nchw::configs};

} // namespace tw::ops::pooling
