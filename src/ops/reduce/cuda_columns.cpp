// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce/cuda_columns.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "ops/reduce/cuda_arithmetic.h"
#include "ops/reduce/reduce_columns_params.h"

namespace tw::ops::reduce {

namespace {

constexpr int kThreads = 256;
constexpr int kPlainLanes = 32, kFinishLanes = 8;
constexpr int64_t kMostLanes = 256, kMostAhead = 16, kMostShares = 1024;

// x as [outer, n, inner] with n reduced.
struct Columns
{
    int64_t outer = 1, n = 1, inner = 1;
};

// The first of the reduced axes and the one after the last; axes of size 1 at the most are left out.
struct Axes
{
    int begin = 0, end = 0;

    Columns of(Extents const& x) const { return {x.volume(0, begin), x.volume(begin, end), x.volume(end, x.rank)}; }
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

    int64_t packsOfRow(Columns const& c) const { return std::max<int64_t>(c.inner * fold / width, 1); }
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

class ColumnKernels
{
public:
    ColumnKernels(Problem const& problem, Config const& config);
    std::string source() const;
    // Of each column, what the first kernel leaves.
    int64_t sums() const { return choice_.shares * folded(); }
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const;

private:
    int64_t folded() const { return choice_.isWhole ? 1 : packing_.fold; }
    bool isPacked(TensorRef const& x, Columns const& c) const;

    DataType type_;
    Kind kind_;
    Axes axes_;
    Choice choice_;
    Packing packing_;
};

ColumnKernels::ColumnKernels(Problem const& problem, Config const& config) : type_(problem.inputs[0].type)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    kind_ = a.kind;
    axesOf(a, problem.inputs[0].maxDims, axes_);
    Columns const optimum = axes_.of(problem.inputs[0].dims);
    choice_ = choiceOf(config, optimum, type_);
    packing_ = packingOf(optimum, type_, choice_.mayFold(optimum));
}

std::string ColumnKernels::source() const
{
    return arithmeticOf(kind_, type_) + cuda::constant("WIDTH", packing_.width) +
           cuda::constant("LANES", choice_.lanes) + cuda::constant("FOLDED", packing_.fold) +
           cuda::flag("IS_WHOLE", choice_.isWhole) + cuda::constant("AHEAD", choice_.ahead) +
           cuda::constant("BLOCKS", choice_.resident()) + cuda::include("ops/reduce/reduce_columns.cuh");
}

bool ColumnKernels::isPacked(TensorRef const& x, Columns const& c) const
{
    return cuda::addressOf(x.data) % uint64_t(packing_.width * sizeOf(x.type)) == 0 && c.n % packing_.fold == 0 &&
           c.inner * packing_.fold % packing_.width == 0 && (packing_.fold == 1 || choice_.mayFold(c)) &&
           (!choice_.isWhole || choice_.lanes == packing_.packsOfRow(c));
}

Result<void> ColumnKernels::run(CudaLaunch const& launch, RunArgs& args) const
{
    TensorRef const& x = args.inputs[0];
    Columns const c = axes_.of(x.dims);
    bool const packed = isPacked(x, c);
    Packing const by = packed ? packing_ : Packing{};
    int64_t const lanes = packed ? choice_.lanes : kPlainLanes, folded = packed ? this->folded() : 1,
                  sums = choice_.shares * folded;
    ColumnsParams<void, void> p;
    // The first kernel leaves `each` sums for each column.
    auto walk = [&](int64_t n, int64_t inner, int64_t outer, int64_t width, int64_t each) {
        p.n = n;
        p.inner = inner;
        p.packs = uint64_t(outer * inner / width);
        p.columns = uint64_t(c.outer * c.inner * each);
        p.packsOfRow = cuda::divBy(inner / width);
    };
    walk(c.n / by.fold, c.inner * by.fold, c.outer, by.width, folded);
    p.x = x.data;
    p.y = args.outputs[0].data;
    p.parts = sums > 1 ? args.workspace : nullptr;
    p.count = c.n;
    p.shares = cuda::divBy(choice_.shares);
    TW_TRY(launch(packed ? 0 : 1, blocksFor(int64_t(p.packs), int(lanes)) * choice_.shares, kThreads, p));
    if (!p.parts)
        return {};
    // What shares left are the rows of one matrix; folded rows alone are those of as many as there were.
    bool const isOne = choice_.shares > 1;
    walk(sums, isOne ? c.outer * c.inner : c.inner, isOne ? 1 : c.outer, 1, 1);
    p.x = p.parts;
    p.parts = nullptr;
    p.shares = cuda::divBy(1);
    return launch(2, blocksFor(int64_t(p.packs), kFinishLanes), kThreads, p);
}

} // namespace

Support supportsColumns(Problem const& problem)
{
    Axes axes;
    if (!axesOf(problem.node->attrsAs<Attrs>(), problem.inputs[0].maxDims, axes))
        return Support::no("reduces neighbouring axes with others behind them");
    if (axes.of(problem.inputs[0].maxDims).n > INT32_MAX / 2)
        return Support::no("counts rows in 32 bits");
    return Support::yes();
}

// {lanes along the columns, packs ahead, blocks that share rows, whether a block has whole matrices}
std::vector<Config> configsOfColumns(Problem const& problem)
{
    Axes axes;
    axesOf(problem.node->attrsAs<Attrs>(), problem.inputs[0].maxDims, axes);
    Columns const c = axes.of(problem.inputs[0].dims);
    Packing const packing = packingOf(c, problem.inputs[0].type, true);
    int64_t const width = packing.packsOfRow(c), rows = c.n / packing.fold,
                  processors = problem.cuda ? problem.cuda->multiprocessors : 1;
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

KernelBag generateColumns(Problem const& problem, Config const& config)
{
    ColumnKernels const kernels(problem, config);
    KernelBag out;
    out.wide = isWide(problem);
    out.isDependent = true;
    out.names = {"reduce_columns_packs", "reduce_columns", "reduce_columns_finish"};
    out.source = kernels.source();
    if (kernels.sums() > 1)
        out.workspace = [bytes = kernels.sums() * accumulatorBytes(problem.inputs[0].type)](
                            std::span<TensorRef const>, std::span<TensorRef const> y) { return y[0].count() * bytes; };
    out.run = [kernels](CudaLaunch const& launch, RunArgs& args) { return kernels.run(launch, args); };
    return out;
}

} // namespace tw::ops::reduce
