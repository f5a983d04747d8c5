// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "kernels/cuda/common/generate.h"
#include "ops/softmax/op.h"
#include "ops/softmax/softmax_params.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::softmax {

namespace {

// ---- Softmax of short rows that begin anywhere, by blocks of rows in shared memory.

using cuda::ceilDiv;

constexpr int64_t kMostWords = 26;        // of 4 bytes, of a lane
constexpr int64_t kMostBytes = 40 * 1024; // of a block's rows

int64_t rowLengthOf(Problem const& p)
{
    return p.inputs[0].maxDims[int(p.node->attrsAs<Attrs>().axis)];
}

int64_t wordsOf(Problem const& p)
{
    return std::max<int64_t>(ceilDiv(rowLengthOf(p) * sizeOf(p.inputs[0].type), 4), 1);
}

bool fits(Problem const& p, int64_t lanes, int64_t threads)
{
    int64_t const bytes = threads / std::max<int64_t>(lanes, 1) * rowLengthOf(p) * sizeOf(p.inputs[0].type);
    return (threads == 128 || threads == 256) && lanes >= 1 && lanes <= 32 && std::has_single_bit(uint64_t(lanes)) &&
           ceilDiv(wordsOf(p), lanes) <= kMostWords && bytes <= kMostBytes && bytes % 16 == 0;
}

std::unique_ptr<CudaKernels> shortRowKernels(Problem const& problem, int64_t lanes, int64_t threads)
{
    CudaSource source = {.text = cuda::type("T", cuda::storageOf(problem.inputs[0].type)) + cuda::flag("LOG", false) +
                                 cuda::constant("N", rowLengthOf(problem)) + cuda::constant("LANES", lanes) +
                                 cuda::constant("THREADS", threads) +
                                 cuda::include("ops/softmax/softmax_short_rows.cuh"),
                         .names = {"softmax_short_rows"},
                         .wide = isWide(problem),
                         .isDependent = true,
                         .alignment = 16};
    return kernelsOf(
        std::move(source),
        [length = rowLengthOf(problem), lanes, threads](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            TensorRef const &in = args.inputs[0], &y = args.outputs[0];
            ShortRowsParams const p{.x = in.data, .y = y.data, .rows = uint64_t(in.count() / length)};
            return launch(0, blocksFor(int64_t(p.rows), int(threads / lanes)), int(threads), p);
        });
}

// {threads of a row, of a block}
std::vector<Config> configsOfShortRows(Problem const& problem)
{
    std::vector<Config> list;
    for (auto const& [most, threads] :
         {std::pair{kMostWords, 128}, {kMostWords / 2, 128}, {kMostWords / 4, 128}, {kMostWords, 256}}) {
        int64_t lanes = 1;
        while (lanes < 32 && ceilDiv(wordsOf(problem), lanes) > most)
            lanes *= 2;
        Config const config{lanes, threads};
        if (fits(problem, lanes, threads) && std::find(list.begin(), list.end(), config) == list.end())
            list.push_back(config);
    }
    return list;
}

Support supportsShortRows(Problem const& problem)
{
    TensorSpec const& x = problem.inputs[0];
    int const axis = int(problem.node->attrsAs<Attrs>().axis);
    if (problem.node->attrsAs<Attrs>().log)
        return Support::no("gives no logarithms");
    if (x.maxDims.volume(axis + 1, x.maxDims.rank) > 1)
        return Support::no("takes the innermost axis only");
    if (!problem.node->inputs[0]->shape[size_t(axis)].isConst())
        return Support::no("needs to know the length of a row");
    if (rowLengthOf(problem) * sizeOf(x.type) % 16 == 0)
        return Support::no("leaves rows of whole packs to others");
    if (problem.target.cuda && problem.target.cuda->capability < 80)
        return Support::no("needs a GPU of compute capability 8.0 or later");
    if (configsOfShortRows(problem).empty())
        return Support::no(fmt::format("takes rows of at most {} bytes", 32 * kMostWords * 4));
    return Support::yes();
}

std::unique_ptr<CudaKernels> generateShortRows(Problem const& problem, Config const& config)
{
    if (!isConfig(config, 2, 1, 256) || !fits(problem, config[0], config[1]))
        return noKernels(unsupported("rows do not fit into a block"));
    return shortRowKernels(problem, config[0], config[1]);
}

constexpr CudaTactic kShortRows{"softmax_any_short_rows_sm80", 1, generateShortRows, supportsShortRows,
                                configsOfShortRows};

// ---- Softmax along an axis with others after it: in one pass over memory, the axis in registers.

constexpr int64_t kMostThreads = 512, kMostLanes = 256, kMostParts = 32;
constexpr int64_t kLongColumn = 100;  // along an axis
constexpr int64_t kMostOfEight = 320; // along an axis, which eight threads hold in packs of four
constexpr int64_t kMostPaired = 160;  // FP16, two in a register
constexpr int64_t kMostSingles = 48;  // FP16, one in a register as FP32: more are pairs
constexpr int64_t kMostNumbers = 96;  // of a column's, times the columns of a pack, in the registers of a thread

// How a tile of columns is distributed: columns of a pack, lanes along the columns, threads along the axis.
struct Shares
{
    int64_t width = 1, lanes = 32, parts = 16;

    int64_t threads() const { return lanes * parts; }
    int64_t numbers(int64_t n) const { return cuda::ceilDiv(n, parts) * width; } // of a thread
    bool fits(DataType t, int64_t n) const;
    // Whether threads keep pairs of FP16: where numbers are many, half the registers are worth that powers are rounded.
    bool isRaw(DataType t, int64_t n) const { return t == DataType::kHalf && width >= 2 && numbers(n) > kMostSingles; }
    int64_t resident(DataType t, int64_t n) const;
};

bool Shares::fits(DataType t, int64_t n) const
{
    auto isPower = [](int64_t v) { return std::has_single_bit(uint64_t(v)); };
    return numbers(n) <= (t == DataType::kHalf && width >= 2 ? kMostPaired : kMostNumbers) && threads() % 32 == 0 &&
           threads() <= kMostThreads && isPower(width) && isPower(lanes) && width * sizeOf(t) <= 16 &&
           lanes <= kMostLanes && parts <= kMostParts;
}

// Blocks of a multiprocessor by the registers that a thread needs: its numbers, of each column a few, addresses.
int64_t Shares::resident(DataType t, int64_t n) const
{
    constexpr int64_t kRegisters = 65536, kThreads = 2048;
    int64_t const others = 24 + 3 * width, held = isRaw(t, n) ? numbers(n) / 2 : numbers(n);
    return std::clamp<int64_t>(std::min(kRegisters / ((held + others) * threads()), kThreads / threads()), 1, 32);
}

// The plainest for the config of a damaged plan.
Shares sharesOf(Config const& config, DataType t, int64_t n)
{
    if (!isConfig(config, 3, 1, kMostLanes))
        return {};
    Shares const s{config[0], config[1], config[2]};
    return s.fits(t, n) ? s : Shares{};
}

int axisOf(Problem const& problem)
{
    return int(problem.node->attrsAs<Attrs>().axis);
}
// Elements along the axis, at the most.
int64_t lengthOf(Problem const& problem)
{
    return std::max<int64_t>(problem.inputs[0].maxDims[axisOf(problem)], 1);
}

CudaSource sourceOf(Problem const& problem, Shares const& s)
{
    DataType const t = problem.inputs[0].type;
    int64_t const n = lengthOf(problem);
    return {.text = cuda::type("T", cuda::storageOf(t)) + cuda::flag("LOG", problem.node->attrsAs<Attrs>().log) +
                    cuda::constant("N", n) + cuda::constant("X", s.lanes) + cuda::constant("Y", s.parts) +
                    cuda::flag("EXACT", problem.node->inputs[0]->shape[size_t(axisOf(problem))].isConst()) +
                    cuda::flag("RAW", s.isRaw(t, n)) + cuda::constant("WIDTH", s.width) +
                    cuda::constant("RESIDENT", s.resident(t, n)) + cuda::include("ops/softmax/softmax_columns.cuh"),
            .names = {"softmax_columns_packs", "softmax_columns"},
            .wide = isWide(problem),
            .isDependent = true};
}

Support supportsColumns(Problem const& problem)
{
    TensorSpec const& x = problem.inputs[0];
    int const axis = int(problem.node->attrsAs<Attrs>().axis);
    if (x.maxDims[axis] > kMostParts * kMostNumbers / 4)
        return Support::no(fmt::format("takes at most {} elements along the axis", kMostParts * kMostNumbers / 4));
    if (x.dims.volume(axis + 1, x.dims.rank) < 2)
        return Support::no("takes axes with others behind them");
    return Support::yes();
}

// {columns of a pack, lanes along the columns, threads along the axis}
std::vector<Config> configsOfColumns(Problem const& problem)
{
    TensorSpec const& x = problem.inputs[0];
    int const axis = int(problem.node->attrsAs<Attrs>().axis);
    int64_t const n = std::max<int64_t>(x.maxDims[axis], 1), inner = x.dims.volume(axis + 1, x.dims.rank);
    std::vector<Config> list;
    int64_t widest = 4; // wider packs of FP16 need more threads for each column
    while (inner % widest != 0)
        widest /= 2;
    auto put = [&](Shares const& s) {
        Config const config{s.width, s.lanes, s.parts};
        if (inner % s.width == 0 && s.fits(x.type, n) && std::find(list.begin(), list.end(), config) == list.end())
            list.push_back(config);
    };
    // Long columns of FP16: 128 bytes of columns at least, 256 where a thread's part fits its registers, in blocks of
    // 128 or 256 threads, of which several share a multiprocessor.
    if (x.type == DataType::kHalf && n > kLongColumn && widest >= 2) {
        if (n <= kMostOfEight)
            for (Shares const& s : {Shares{4, 32, 4}, {4, 32, 8}, {2, 64, 4}, {8, 16, 16}, {2, 16, 16}})
                put(s);
        else
            for (Shares const& s : {Shares{8, 8, 32}, {4, 16, 16}, {4, 8, 32}})
                put(s);
        for (Shares const& s : {Shares{2, 32, 8}, {2, 16, 16}, {2, 32, 16}})
            if (widest == 2 || list.empty())
                put(s);
    }
    // As few threads a column as hold it in `enough` registers each, in blocks of 128 or 256.
    auto add = [&](int64_t width, int64_t enough, int64_t threads) {
        Shares s{width, 32, 1};
        while (s.parts < 16 && s.numbers(n) > enough)
            s.parts *= 2;
        s.lanes = std::max(s.lanes, threads / s.parts);
        put(s);
    };
    if (list.empty())
        for (int64_t width = widest; width >= 1 && width * 2 >= widest; width /= 2)
            for (int64_t enough : {48, 24})
                for (int64_t threads : {128, 256})
                    add(width, enough, threads);
    if (list.empty())
        list.push_back({1, 32, 16});
    return list;
}

std::unique_ptr<CudaKernels> generateColumns(Problem const& problem, Config const& config)
{
    Shares const shares = sharesOf(config, problem.inputs[0].type, lengthOf(problem));
    return kernelsOf(
        sourceOf(problem, shares),
        [axis = axisOf(problem), shares](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            TensorRef const &x = args.inputs[0], &y = args.outputs[0];
            int64_t const inner = x.dims.volume(axis + 1, x.dims.rank);
            bool const isPacked =
                inner % shares.width == 0 &&
                (cuda::addressOf(x.data) | cuda::addressOf(y.data)) % uint64_t(shares.width * sizeOf(x.type)) == 0;
            ColumnsParams p;
            p.x = x.data;
            p.y = y.data;
            p.set(x.dims.volume(0, axis), x.dims[axis], inner, isPacked ? shares.width : 1);
            return launch(isPacked ? 0 : 1, blocksFor(int64_t(p.packs), int(shares.lanes)), int(shares.threads()), p);
        });
}

constexpr CudaTactic kColumns{"softmax_any_columns_cuda", 5, generateColumns, supportsColumns, configsOfColumns};

// ---- Everything else.

constexpr int kThreads = 256;
constexpr int64_t kWarpUpTo = 1024; // longer slices get a whole block

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    CudaSource source = {.text = cuda::type("T", cuda::storageOf(problem.outputs[0].type)) +
                                 cuda::flag("LOG", problem.node->attrsAs<Attrs>().log) +
                                 cuda::include("ops/softmax/softmax.cuh"),
                         .names = {"softmax_threads", "softmax_warps", "softmax_blocks"},
                         .wide = isWide(problem)};
    return kernelsOf(
        std::move(source),
        [axis = int(problem.node->attrsAs<Attrs>().axis)](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            TensorRef const &x = args.inputs[0], &y = args.outputs[0];
            int64_t const inner = x.dims.volume(axis + 1, x.dims.rank), slices = x.dims.volume(0, axis) * inner;
            Params const p{.x = x.data,
                           .y = y.data,
                           .slices = uint64_t(slices),
                           .n = uint64_t(x.dims[axis]),
                           .inner = cuda::divBy(inner)};
            if (inner >= 32)
                return launch(0, blocksFor(slices, kThreads), kThreads, p);
            if (x.dims[axis] <= kWarpUpTo)
                return launch(1, blocksFor(slices * 32, kThreads), kThreads, p);
            return launch(2, slices, kThreads, p);
        });
}

constexpr int64_t kMostPacks = 4; // of a thread: 32 halves in registers

// How a row of n elements is distributed: threads for each row, packs for each thread.
struct RowShares
{
    int64_t row = 1, packs = 1;
};
RowShares rowSharesOf(int64_t n, int64_t width)
{
    // Threads of a warp: two packs each, so that loads overlap; then 128 or 512.
    RowShares s;
    for (; s.row < 32 && s.row * width * 2 < n; s.row *= 2)
        ;
    for (; s.row >= 32 && s.row < 512 && s.row * width * kMostPacks < n; s.row *= 4)
        ;
    s.packs = std::max<int64_t>((n + s.row * width - 1) / (s.row * width), 1);
    return s;
}

int64_t widthOf(DataType t)
{
    return 16 / sizeOf(t);
}

Support supportsRows(Problem const& problem)
{
    TensorSpec const& x = problem.inputs[0];
    int const axis = int(problem.node->attrsAs<Attrs>().axis);
    if (x.maxDims.volume(axis + 1, x.maxDims.rank) > 1)
        return Support::no("takes the innermost axis only");
    if (rowSharesOf(x.maxDims[axis], widthOf(x.type)).packs > kMostPacks)
        return Support::no(fmt::format("takes rows of at most {} elements, this one has {}",
                                       512 * kMostPacks * widthOf(x.type), x.maxDims[axis]));
    return Support::yes();
}

std::unique_ptr<CudaKernels> rowKernels(Problem const& problem, Config const&)
{
    constexpr int64_t kRowThreads = 128; // of blocks that hold several rows
    auto const& a = problem.node->attrsAs<Attrs>();
    int const axis = int(a.axis);
    int64_t const width = widthOf(problem.inputs[0].type); // elements of a pack
    RowShares const shares = rowSharesOf(problem.inputs[0].maxDims[axis], width);
    int64_t const row = shares.row, threads = std::max(row, kRowThreads);
    CudaSource source = {.text = cuda::type("T", cuda::storageOf(problem.inputs[0].type)) + cuda::flag("LOG", a.log) +
                                 cuda::constant("THREADS", threads) + cuda::constant("ROW", row) +
                                 cuda::constant("WIDTH", width) + cuda::constant("PACKS", shares.packs) +
                                 cuda::include("ops/softmax/softmax_rows.cuh"),
                         .names = {"softmax_packs", "softmax_edges", "softmax_elements"},
                         .wide = isWide(problem),
                         .isDependent = true};
    return kernelsOf(
        std::move(source), [axis, width, row, threads](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            TensorRef const &in = args.inputs[0], &y = args.outputs[0];
            Params const p{
                .x = in.data, .y = y.data, .slices = uint64_t(in.dims.volume(0, axis)), .n = uint64_t(in.dims[axis])};
            bool const isAligned = (cuda::addressOf(in.data) | cuda::addressOf(y.data)) % 16 == 0;
            int const kernel = !isAligned || row < width ? 2 : in.dims[axis] % width == 0 ? 0 : 1;
            return launch(kernel, blocksFor(int64_t(p.slices), int(threads / row)), int(threads), p);
        });
}

constexpr CudaTactic kRows{"softmax_any_rows_cuda", 3, rowKernels, supportsRows};
constexpr CudaTactic kPlain{"softmax_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kRows, kShortRows, kColumns, kPlain>;

} // namespace tw::ops::softmax
