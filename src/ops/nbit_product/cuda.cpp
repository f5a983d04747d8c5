// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/round.h"
#include "ops/nbit_product/nbit_product_params.h"
#include "ops/nbit_product/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::nbit_product {

namespace {

Params paramsOf(Attrs const& a, RunArgs const& args)
{
    auto const given = [&](size_t i) { return i < args.inputs.size() ? args.inputs[i].data : nullptr; };
    Params p{.x = args.inputs[kX].data,
             .w = args.inputs[kWeights].as<uint32_t>(),
             .scales = args.inputs[kScales].data,
             .zeros = given(kZeros),
             .bias = given(kBias),
             .groups = static_cast<int32_t const*>(given(kGroups)),
             .y = args.outputs[0].data};
    p.n = uint64_t(args.inputs[kScales].dims[0]);
    p.k = uint64_t(a.k);
    p.rows = p.n == 0 ? 0 : uint64_t(args.outputs[0].count()) / p.n;
    p.blocks = uint64_t(a.blocks());
    p.words = uint64_t(a.words());
    p.block = uint64_t(a.block);
    return p;
}

std::string constantsOf(Problem const& problem)
{
    return cuda::type("T", cuda::storageOf(problem.inputs[kX].type)) +
           cuda::type("S", cuda::storageOf(problem.inputs[kScales].type)) +
           cuda::constant("kBits", problem.node->attrsAs<Attrs>().bits);
}

constexpr int kThreads = 256;

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    CudaSource source{.text = constantsOf(problem) + cuda::include("ops/nbit_product/nbit_product.cuh"),
                      .names = {"product"},
                      .wide = isWide(problem),
                      .isDependent = true};
    auto const& a = problem.node->attrsAs<Attrs>();
    return kernelsOf(std::move(source), [&a](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Params const p = paramsOf(a, args);
        if (p.rows * p.n == 0)
            return {};
        return launch(0, blocksFor(int64_t(p.rows * p.n) * 32, kThreads), kThreads, p);
    });
}

// Words that a lane reads at once: of one block, and aligned as they are.
int64_t unitOf(Attrs const& a)
{
    return a.words() % 4 == 0 ? 4 : a.words() % 2 == 0 ? 2 : 1;
}

int64_t rowsOf(Extents const& x, Attrs const& a)
{
    return x.volume() / a.k;
}

Support supportsBlocks(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    if (p.inputs.size() > kGroups && p.inputs[kGroups].present)
        return Support::no("takes blocks in order, but input 5 says another one");
    constexpr int64_t kMost = INT32_MAX;
    if (p.inputs[kScales].dims[0] > kMost / 16 || a.blocks() > kMost / a.block || a.k > kMost / 2)
        return Support::no("counts columns, and numbers of a row, in 32 bits");
    return Support::yes();
}

// --- few rows, in FP32 ---

constexpr int64_t kFewRows = 8;

Support supportsRows(Problem const& p)
{
    TW_SUPPORTS(supportsBlocks(p));
    int64_t const rows = rowsOf(p.inputs[kX].maxDims, p.node->attrsAs<Attrs>());
    return rows <= kFewRows ? Support::yes() : Support::no(fmt::format("has {} rows, more than {}", rows, kFewRows));
}

std::vector<Config> rowConfigs(Problem const& p) // {rows, columns of a warp}
{
    int64_t const rows = rowsOf(p.inputs[kX].maxDims, p.node->attrsAs<Attrs>());
    int64_t const most = rows <= 1 ? 1 : rows <= 2 ? 2 : rows <= 4 ? 4 : 8;
    return {{most, 1}, {most, 2}};
}

std::unique_ptr<CudaKernels> rowKernels(Problem const& problem, Config const& config)
{
    if (config.size() != 2 || config[0] < 1 || config[0] > kFewRows || config[1] < 1 || config[1] > 4)
        return noKernels(invalidArgument("nbit_product: the plan's configuration is not {rows, columns}"));
    auto const& a = problem.node->attrsAs<Attrs>();
    int64_t const columns = config[1];
    bool const packs = a.k % 4 == 0;
    CudaSource source{.text = constantsOf(problem) + cuda::constant("ROWS", config[0]) +
                              cuda::constant("COLUMNS", columns) + cuda::constant("UNIT", unitOf(a)) +
                              cuda::flag("PACKS", packs) + cuda::include("ops/nbit_product/nbit_rows.cuh"),
                      .names = {"rows"},
                      .isDependent = true,
                      .alignment = 16};
    return kernelsOf(std::move(source), [&a, columns](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Params const p = paramsOf(a, args);
        if (p.rows * p.n == 0)
            return {};
        constexpr int kWarps = 4;
        return launch(0, divideUp(divideUp(int64_t(p.n), columns), kWarps), kWarps * 32, p);
    });
}

// --- FP16 by mma.sync ---

Support supportsMma(Problem const& p)
{
    TW_SUPPORTS(takesOnly(DataType::kHalf, p));
    TW_SUPPORTS(supportsBlocks(p));
    auto const& a = p.node->attrsAs<Attrs>();
    if (!p.target.cuda || p.target.cuda->capability < 80)
        return Support::no("needs compute capability 8.0");
    if (int64_t const multiple = std::max<int64_t>(32 / a.bits, 8); a.k % multiple != 0)
        return Support::no(fmt::format("rows of {} numbers are no multiple of {}", a.k, multiple));
    return Support::yes();
}

std::vector<Config> mmaConfigs(Problem const& p) // {tiles of 8 rows, warps that share k}
{
    int64_t const rows = rowsOf(p.inputs[kX].maxDims, p.node->attrsAs<Attrs>());
    int64_t const tiles = rows <= 8 ? 1 : rows <= 16 ? 2 : rows <= 32 ? 4 : 8;
    return {{tiles, 8}, {tiles, 4}};
}

std::unique_ptr<CudaKernels> mmaKernels(Problem const& problem, Config const& config)
{
    if (config.size() != 2 || config[0] < 1 || config[0] > 8 || config[1] < 1 || config[1] > 8)
        return noKernels(invalidArgument("nbit_product: the plan's configuration is not {tiles, warps}"));
    auto const& a = problem.node->attrsAs<Attrs>();
    int64_t const tiles = config[0], warps = config[1];
    CudaSource source{.text = cuda::type("S", cuda::storageOf(problem.inputs[kScales].type)) +
                              cuda::constant("kBits", a.bits) + cuda::constant("TILES", tiles) +
                              cuda::constant("WARPS", warps) + cuda::constant("UNIT", unitOf(a)) +
                              cuda::include("ops/nbit_product/nbit_mma.cuh"),
                      .names = {"products"},
                      .isDependent = true,
                      .alignment = 16};
    return kernelsOf(std::move(source), [&a, tiles, warps](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Params const p = paramsOf(a, args);
        if (p.rows * p.n == 0)
            return {};
        return launch.grid(0, divideUp(int64_t(p.n), 16), divideUp(int64_t(p.rows), 8 * tiles), 1, int(warps * 32), p);
    });
}

constexpr CudaTactic kMma{"nbit_product_f16_mma_sm80", 1, mmaKernels, supportsMma, mmaConfigs};
constexpr CudaTactic kRows{"nbit_product_any_rows_cuda", 1, rowKernels, supportsRows, rowConfigs};
constexpr CudaTactic kPlain{"nbit_product_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kMma, kRows, kPlain>;

} // namespace tw::ops::nbit_product
