// SPDX-License-Identifier: Apache-2.0
// Pooling of linear images by bands of rows in shared memory: memory is read and written in packs of 16 bytes
// wherever rows begin.
#include <algorithm>

#include "kernels/cuda/common/generate.h"
#include "ops/pooling/cuda_windows.h"
#include "ops/pooling/pooling_params.h"

namespace tw::ops::pooling {

namespace bands {
namespace {

using cuda::ceilDiv;

constexpr int64_t kMostThreads = 512;
constexpr int64_t kMostShared = 47 * 1024;
constexpr double kLeastBytes = 6 * 1024, kMostBytes = 16 * 1024; // of x, of a block
constexpr int64_t kMostWindow = 7;                               // of either axis: rows of a window stay in registers
constexpr int64_t kSlack = 320; // bytes round a band, which threads at its ends read and do not use

// A config's numbers.
enum ConfigField
{
    kColumns, // outputs of a row of each thread
    kRows,    // outputs, one below the other
    kGroups,  // of so many rows, of a band
    kPlanes,  // of a block, where a band is a plane
    kConfigFields,
};

// What a block has of a plane, or of several.
class Bands
{
public:
    Bands(Problem const& p, Config const& config)
        : g_(pooling::geometryOf(p, true)), config_(config), bytes_(sizeOf(p.inputs[0].type))
    {}
    // Why a block cannot have such a band; null when it can.
    char const* misfit() const;
    // How much there is to say for it.
    double score() const;
    // After the cells and the window.
    std::string source() const;
    Geometry const& largest() const { return g_; }
    int64_t planes() const { return config_[kPlanes]; }
    int64_t band() const { return config_[kRows] * config_[kGroups]; } // rows of outputs
    int64_t threads() const { return ceilDiv(units(), 32) * 32; }

private:
    int64_t units() const { return ceilDiv(g_.out[2], config_[kColumns]) * config_[kGroups] * config_[kPlanes]; }
    // Words of shared memory.
    int64_t wordsX() const
    {
        int64_t const rows = config_[kPlanes] > 1 ? config_[kPlanes] * g_.in[1]
                                                  : std::min(g_.in[1], (band() - 1) * g_.stride[1] + g_.window[1]);
        return ceilDiv((rows * g_.in[2] + 2 * g_.stride[2] * config_[kColumns]) * bytes_ + kSlack, 16) * 4;
    }
    int64_t wordsY() const
    {
        int64_t const rows = config_[kPlanes] > 1 ? config_[kPlanes] * g_.out[1] : band();
        return ceilDiv(rows * g_.out[2] * bytes_ + 144, 16) * 4;
    }

    Geometry g_; // the largest
    Config config_;
    int64_t bytes_; // of an element
};

char const* Bands::misfit() const
{
    if (!isConfig(config_, kConfigFields, 1, 512) || config_[kColumns] > 16 || config_[kRows] > 32)
        return "a config has other numbers";
    int64_t const columns = config_[kColumns];
    if (columns * bytes_ % 4 != 0)
        return "a thread has whole words only";
    if (g_.before[2] >= 8 || g_.window[2] - g_.stride[2] - g_.before[2] >= columns * g_.stride[2])
        return "windows reach too far";
    if (config_[kPlanes] > 1 && band() < g_.out[1])
        return "several planes are whole ones";
    if (threads() > kMostThreads || (wordsX() + wordsY() + band()) * 4 > kMostShared)
        return "a block would hold too much";
    return nullptr;
}

// Busy threads and rows, few rows of x that are read twice, and blocks of a few KiB: enough of them share a
// multiprocessor, and none is over before it has begun.
double Bands::score() const
{
    int64_t const groups = ceilDiv(g_.out[1], config_[kRows]), of = config_[kGroups], planes = config_[kPlanes],
                  row = g_.in[2] * bytes_;
    double const bands = double(ceilDiv(groups, of)), rows = double(band() * g_.stride[1]);
    double const busy = double(units()) / double(threads()) * double(g_.out[1]) / (bands * double(band())),
                 read = of < groups ? rows / (rows - double(g_.stride[1] - g_.window[1])) : 1,
                 bytes = double(row) * (planes > 1 ? double(g_.in[1] * planes) : std::min(rows, double(g_.in[1])));
    return busy * read * std::min(1.0, bytes / kLeastBytes) * std::min(1.0, kMostBytes / bytes);
}

std::string Bands::source() const
{
    return cuda::constant("PAD_W", g_.before[2]) + cuda::constant("W", g_.in[2]) + cuda::constant("OUT_W", g_.out[2]) +
           cuda::constant("ROWS", config_[kRows]) + cuda::constant("COLUMNS", config_[kColumns]) +
           cuda::constant("GROUPS", config_[kGroups]) + cuda::constant("PLANES", config_[kPlanes]) +
           cuda::constant("THREADS", threads()) + cuda::constant("WORDS_X", wordsX()) +
           cuda::constant("WORDS_Y", wordsY()) + cuda::include("ops/pooling/pooling_bands.cuh");
}

std::vector<Config> configs(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    if (a.window.size() != 2 || !isFloating(p.inputs[0].type))
        return {};
    Geometry const g = pooling::geometryOf(p, true);
    std::vector<Config> list;
    if (std::min({g.in[2], g.in[1], g.out[1], g.out[2]}) < 1)
        return {};
    // The best of all bands that fit.
    auto add = [&](int64_t columns, int64_t wantedRows) {
        int64_t const rows = ceilDiv(g.out[1], ceilDiv(g.out[1], wantedRows)), groups = ceilDiv(g.out[1], rows);
        Config best;
        double most = 0;
        auto consider = [&](int64_t of, int64_t planes) {
            Config const c{columns, rows, of, planes};
            Bands const bands(p, c);
            if (bands.misfit())
                return;
            if (double const score = bands.score(); score > most * 1.01) {
                most = score;
                best = c;
            }
        };
        for (int64_t of = 1; of <= groups; ++of)
            consider(of, 1);
        for (int64_t planes = 2; planes <= std::min<int64_t>(g.batch, 32); ++planes)
            consider(groups, planes);
        if (!best.empty() && std::find(list.begin(), list.end(), best) == list.end())
            list.push_back(best);
    };
    add(4, 8);
    add(4, 14);
    add(4, 5);
    add(2, 14);
    add(2, 5);
    return list;
}

Support supports(Problem const& p)
{
    if (!isFloating(p.inputs[0].type))
        return Support::no("takes f16 and f32 only");
    TW_SUPPORTS(supportsWindows(p));
    auto const& a = p.node->attrsAs<Attrs>();
    if (std::max(a.window[0], a.window[1]) > kMostWindow)
        return Support::no(fmt::format("takes windows of at most {} rows and columns", kMostWindow));
    if (!p.node->inputs[0]->shape.back().isConst())
        return Support::no("needs to know the width");
    return configs(p).empty() ? Support::no("no band fits") : Support::yes();
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config)
{
    Bands const bands(p, config);
    if (char const* const why = bands.misfit())
        return noKernels(unsupported(why));
    auto const& attrs = p.node->attrsAs<Attrs>();
    CudaSource source = {.text = cellsOf(p) + windowOf(p.node->attrsAs<Attrs>()) + bands.source(),
                         .names = {"pooling"},
                         .isDependent = true,
                         .alignment = 16};
    return kernelsOf(std::move(source), [&attrs, bands](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        Geometry const g = geometryOf(attrs, x.dims, y.dims);
        Geometry const& largest = bands.largest();
        if (g.in[2] != largest.in[2] || g.out[2] != largest.out[2])
            return unsupported("the kernel was built for rows of another width");
        int64_t const count = ceilDiv(g.out[1], bands.band());
        BandsParams const p{.x = x.data,
                            .y = y.data,
                            .countX = uint64_t(x.count()),
                            .bands = cuda::divBy(count),
                            .planes = int32_t(g.batch),
                            .h = int32_t(g.in[1]),
                            .outH = int32_t(g.out[1]),
                            .padH = int32_t(g.before[1]),
                            .afterH = int32_t(g.after[1]),
                            .afterW = int32_t(g.after[2])};
        return launch(0, ceilDiv(g.batch, bands.planes()) * count, int(bands.threads()), p);
    });
}

} // namespace
} // namespace bands

constinit CudaTactic const kBands{"pooling_any_row_tiles_sm80", 2, bands::generate, bands::supports, bands::configs};

} // namespace tw::ops::pooling
