// SPDX-License-Identifier: Apache-2.0
// Softmax along an axis with others after it: in one pass over memory, the axis in registers.
#include <algorithm>
#include <array>
#include <bit>

#include "kernels/cuda/common/generate.h"
#include "ops/softmax/op.h"
#include "ops/softmax/softmax_params.h"
#include "ops/softmax/tactics.h"

namespace tw::ops::softmax {

namespace {

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
        return Support::no("takes at most " + std::to_string(kMostParts * kMostNumbers / 4) +
                           " elements along the axis");
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

} // namespace

constinit CudaTactic const kColumns{"softmax_any_columns_cuda", 5, generateColumns, supportsColumns, configsOfColumns};

} // namespace tw::ops::softmax
