// SPDX-License-Identifier: Apache-2.0
// Reductions of axes with kept ones after them: columns of a matrix, or of many. The channels of images in Format::kHWC8
// are such columns, too, with pixels for rows; y is linear.
#include <algorithm>
#include <bit>
#include <numeric>

#include "base/round.h"
#include "ops/reduce/cuda_arithmetic.h"
#include "ops/reduce/reduce_params.h"

namespace tw::ops::reduce {

namespace columns {
namespace {

constexpr int kThreads = 256;
constexpr int kPlainLanes = 32, kFinishLanes = 8;
constexpr int64_t kMostLanes = 256, kMostAhead = 16, kMostShares = 1024;

// x as [outer, n, inner] with n reduced, its rows `pitch` elements from each other.
struct Columns
{
    int64_t outer = 1, n = 1, inner = 1, pitch = 1;
};

// The first of the reduced axes and the one after the last; axes of size 1 at the most are left out.
struct Axes
{
    int begin = 0, end = 0;

    Columns of(Extents const& x) const
    {
        int64_t const inner = x.volume(end, x.rank);
        return {x.volume(0, begin), x.volume(begin, end), inner, inner};
    }
};

// False when the reduced axes do not lie together or nothing lies after them. `x`: the largest dimensions.
bool axesOf(Attrs const& a, Extents const& x, Axes& axes)
{
    bool any = false, behind = false;
    for (int d = 0; d < x.rank; ++d) {
        if (x[d] == 1)
            continue;
        if (!a.has(d)) {
            behind = behind || any;
            continue;
        }
        if (behind)
            return false;
        axes.begin = any ? axes.begin : d;
        axes.end = d + 1;
        any = true;
    }
    return behind;
}

// How columns become packs: `fold` rows lie side by side as one, so that rows end with packs.
struct Packing
{
    int64_t width = 1, fold = 1;

    int64_t packsOfRow(Columns const& c) const { return std::max<int64_t>(divideUp(c.inner * fold, width), 1); }
};

// `folds`: rows may be folded.
Packing packingOf(Columns const& c, DataType t, bool folds)
{
    // Accumulators of 64 bits for 16 bytes of i8 would not fit into shared memory.
    for (int64_t width = std::min<int64_t>(16 / sizeOf(t), 8); width > 1; width /= 2) {
        int64_t const fold = width / std::gcd(c.inner, width);
        if (c.n % fold == 0 && (fold == 1 || folds))
            return {width, fold};
    }
    return {};
}

// Numbers of a config.
struct Choice
{
    int64_t lanes = 32, ahead = 8, shares = 1;
    bool isWhole = false; // lanes: the packs of a row
    int threads = kThreads;

    // Blocks of a multiprocessor, with 96 to 128 KiB on their way: as many as registers allow.
    int64_t resident() const { return std::min<int64_t>(32 / ahead, 6); }
    // Without whole matrices the sums of shares and those of folded rows are added up at once, as rows of one matrix.
    bool mayFold(Columns const& c) const { return isWhole || shares == 1 || c.outer == 1; }
};

// The plainest one for the config of a damaged plan.
Choice choiceOf(Config const& config, Columns const& c, DataType t)
{
    if (!isConfig(config, 4, 0, kMostShares))
        return {};
    Choice const choice{config[0], config[1], config[2], config[3] == 1};
    auto isPower = [](int64_t v) { return std::has_single_bit(uint64_t(v)); };
    bool const isKnown = choice.lanes >= 1 && choice.lanes <= kMostLanes && isPower(choice.ahead) &&
                         choice.ahead >= 2 && choice.ahead <= kMostAhead && choice.shares >= 1 &&
                         (choice.isWhole ? choice.lanes == packingOf(c, t, true).packsOfRow(c) : isPower(choice.lanes));
    return isKnown ? choice : Choice{};
}

// What is settled when the text is written.
struct Plan
{
    DataType type;
    Attrs const& attrs;
    Axes axes; // of linear x
    Choice choice;
    Packing packing;
    bool isByPixel = false;

    Plan(Problem const& problem, Config const& config)
        : type(problem.inputs[0].type), attrs(problem.node->attrsAs<Attrs>())
    {
        axesOf(attrs, problem.inputs[0].maxDims, axes);
        Columns const optimum = axes.of(problem.inputs[0].dims);
        choice = choiceOf(config, optimum, type);
        packing = packingOf(optimum, type, choice.mayFold(optimum));
    }
    // By pixels: packs of 16 bytes, the last of which need not be full.
    Plan(Problem const& problem, Choice const& choice)
        : type(problem.inputs[0].type), attrs(problem.node->attrsAs<Attrs>()),
          choice(choice), packing{16 / sizeOf(type)}, isByPixel(true)
    {}
    Columns columns(TensorRef const& x) const
    {
        int const r = x.dims.rank;
        return isByPixel ? Columns{x.dims.volume(0, r - 3), x.dims.volume(r - 2, r), x.dims[r - 3], x.pixelStride()}
                         : axes.of(x.dims);
    }
    int64_t folded() const { return choice.isWhole ? 1 : packing.fold; }
    // Of each column, what the first kernel leaves.
    int64_t sums() const { return choice.shares * folded(); }
    bool isPacked(TensorRef const& x, Columns const& c) const;
};

bool Plan::isPacked(TensorRef const& x, Columns const& c) const
{
    return isByPixel ||
           (cuda::addressOf(x.data) % uint64_t(packing.width * sizeOf(x.type)) == 0 && c.n % packing.fold == 0 &&
            c.inner * packing.fold % packing.width == 0 && (packing.fold == 1 || choice.mayFold(c)) &&
            (!choice.isWhole || choice.lanes == packing.packsOfRow(c)));
}

Result<void> run(Plan const& plan, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const& x = args.inputs[0];
    Columns const c = plan.columns(x);
    bool const packed = plan.isPacked(x, c);
    Packing const by = packed ? plan.packing : Packing{};
    int64_t const lanes = packed ? plan.choice.lanes : kPlainLanes, folded = packed ? plan.folded() : 1,
                  sums = plan.choice.shares * folded;
    ColumnsParams<void, void> p;
    // The first kernel leaves `each` sums for each column.
    auto walk = [&](int64_t n, int64_t pitch, int64_t packsOfRow, int64_t outer, int64_t each) {
        p.n = n;
        p.pitch = pitch;
        p.packs = uint64_t(outer * packsOfRow);
        p.columns = uint64_t(c.outer * c.inner * each);
        p.packsOfRow = cuda::divBy(packsOfRow);
    };
    walk(c.n / by.fold, c.pitch * by.fold, by.packsOfRow(c), c.outer, folded);
    p.x = x.data;
    p.y = args.outputs[0].data;
    p.parts = sums > 1 ? args.workspace : nullptr;
    p.count = c.n;
    p.inner = c.inner;
    p.shares = cuda::divBy(plan.choice.shares);
    int const threads = plan.choice.threads;
    TW_TRY(launch(packed ? 0 : 1, blocksFor(int64_t(p.packs), int(lanes)) * plan.choice.shares, threads, p));
    if (!p.parts)
        return {};
    // What shares left are the rows of one matrix; folded rows alone are those of as many as there were.
    bool const isOne = plan.choice.shares > 1;
    int64_t const row = isOne ? c.outer * c.inner : c.inner;
    walk(sums, row, row, isOne ? 1 : c.outer, 1);
    p.x = p.parts;
    p.parts = nullptr;
    p.shares = cuda::divBy(1);
    return launch(2, blocksFor(int64_t(p.packs), kFinishLanes), threads, p);
}

std::unique_ptr<CudaKernels> kernelsOfPlan(Problem const& problem, Plan const& plan)
{
    CudaSource source{.text = arithmeticOf(plan.attrs, plan.type) + cuda::constant("WIDTH", plan.packing.width) +
                              cuda::constant("LANES", plan.choice.lanes) + cuda::constant("FOLDED", plan.packing.fold) +
                              cuda::flag("IS_WHOLE", plan.choice.isWhole) + cuda::constant("AHEAD", plan.choice.ahead) +
                              cuda::constant("BLOCKS", plan.choice.resident()) +
                              cuda::constant("THREADS", plan.choice.threads) + cuda::flag("IS_PADDED", plan.isByPixel) +
                              cuda::include("ops/reduce/reduce_columns.cuh"),
                      .names = {"reduce_columns_packs", "reduce_columns", "reduce_columns_finish"},
                      .wide = isWide(problem),
                      .isDependent = true,
                      .alignment = plan.isByPixel ? 16 : 1};
    return kernelsOf(
        std::move(source), [plan](CudaLaunch const& launch, RunArgs& args) { return run(plan, launch, args); },
        [plan](std::span<TensorRef const>, std::span<TensorRef const> y) {
            return plan.sums() > 1 ? y[0].count() * plan.sums() * accumulatorBytes(plan.attrs, plan.type) : 0;
        });
}

Support supports(Problem const& problem)
{
    Axes axes;
    if (!axesOf(problem.node->attrsAs<Attrs>(), problem.inputs[0].maxDims, axes))
        return Support::no("reduces neighbouring axes with others behind them");
    if (axes.of(problem.inputs[0].maxDims).n > INT32_MAX / 2)
        return Support::no("counts rows in 32 bits");
    return Support::yes();
}

// {lanes along the columns, packs ahead, blocks that share rows, whether a block has whole matrices}
std::vector<Config> configs(Problem const& problem)
{
    Axes axes;
    axesOf(problem.node->attrsAs<Attrs>(), problem.inputs[0].maxDims, axes);
    Columns const c = axes.of(problem.inputs[0].dims);
    Packing const packing = packingOf(c, problem.inputs[0].type, true);
    int64_t const width = packing.packsOfRow(c), rows = c.n / packing.fold,
                  processors = problem.target.cuda ? problem.target.cuda->multiprocessors : 1;
    std::vector<Config> list;
    auto add = [&](int64_t lanes, int64_t ahead, bool isWhole) {
        int64_t const tiles = std::max<int64_t>(isWhole ? c.outer : (c.outer * width + lanes - 1) / lanes, 1),
                      most = std::min(kMostShares, rows / (kThreads / lanes * ahead));
        Choice choice{lanes, ahead, 1, isWhole};
        choice.shares = std::max<int64_t>(std::min(processors * choice.resident() / tiles, most), 1);
        if (packing.fold > 1 && !choice.mayFold(c))
            choice.shares = 1;
        Config const config{lanes, ahead, choice.shares, isWhole ? 1 : 0};
        if (std::find(list.begin(), list.end(), config) == list.end())
            list.push_back(config);
    };
    bool const fitsBlocks = width <= kMostLanes && width * (kThreads / width) >= kThreads * 7 / 8;
    if (fitsBlocks && rows * width >= kThreads) {
        add(width, 8, true);
        add(width, 16, true);
    }
    if (rows < kThreads / 32) { // a thread for each pack of columns
        add(256, 4, false);
        add(256, 8, false);
    } else {
        add(32, 4, false);
        add(32, 16, false);
        add(32, 8, false);
        add(64, 16, false);
    }
    return list;
}

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config)
{
    return kernelsOfPlan(problem, Plan(problem, config));
}

namespace pixels {

constexpr int64_t kLanes = 8;            // of a block: 64 channels of FP16, 32 of FP32
constexpr int64_t kMostSplit = 128;      // blocks that share an image's pixels
constexpr int64_t kPixelsEach = 256;     // of a block, where they do
constexpr int64_t kMostPixels = 1 << 30; // of an image

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
    int64_t const channels = kLanes * 16 / sizeOf(p.inputs[0].type), pixels = x.volume(x.rank - 2, x.rank),
                  blocks = x.volume(0, x.rank - 3) * divideUp(x[x.rank - 3], channels);
    std::vector<Config> list{{256, 1}, {64, 1}};
    // Few blocks, each with many pixels.
    int64_t const split = std::min(pixels / kPixelsEach, kMostSplit);
    if (p.target.cuda && split > 1 && blocks < int64_t(p.target.cuda->multiprocessors) * 2)
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
    Choice choice{kLanes};
    if (isConfig(config, 2, 1, 256) && config[1] <= kMostSplit) { // else the plainest: the plan is damaged
        choice.threads = config[0] == 64 ? 64 : kThreads;
        choice.shares = config[1];
    }
    return kernelsOfPlan(problem, Plan(problem, choice));
}

} // namespace pixels
} // namespace
} // namespace columns

constinit CudaTactic const kColumns{"reduce_any_columns_cuda", 2, columns::generate, columns::supports,
                                    columns::configs};
constinit CudaTactic const kNhwc{"reduce_f16_nhwc_cuda",    2,
                                 columns::pixels::generate, columns::pixels::supports<DataType::kHalf>,
                                 columns::pixels::configs,  columns::pixels::formats};
constinit CudaTactic const kNhwcF32{"reduce_f32_nhwc_cuda",    2,
                                    columns::pixels::generate, columns::pixels::supports<DataType::kFloat>,
                                    columns::pixels::configs,  columns::pixels::formats};

} // namespace tw::ops::reduce
