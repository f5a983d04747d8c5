// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/wgmma_sparse.h"

#include <algorithm>

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/common/prelude.h"

namespace tw::cuda::gemm_sparse {

namespace {

constexpr int64_t kBarrierBytes = 256;
constexpr int kMostStages = 12;

// A dense kernel whose maps, sizes and strides are the same, but for the pixels of one copy.
gemm_f16::Spec denseOf(Spec const& s)
{
    gemm_f16::Spec d;
    static_cast<Epilogue&>(d) = s;
    d.image = s.image;
    d.integers = s.integers;
    if (s.integers)
        d.bias = d.residual = false;
    d.copies = true;
    return d;
}

} // namespace

int64_t Spec::stageBytes() const
{
    constexpr int64_t kUnit = 1024;
    return ceilDiv(tileQ * kStepBytes + tileP / kBlockRows * blockBytes(operandBytes()), kUnit) * kUnit;
}

int64_t Spec::sharedBytes() const
{
    return gemm_f16::kStagesAlignment + stages * stageBytes() + int64_t(tileP) * tileQ * operandBytes() + kBarrierBytes;
}

int Spec::blocksPerMultiprocessor() const
{
    int const otherRegisters = integers ? 56 : 44; // of a thread, beside its sums
    int64_t const byShared = kSharedLimit / (sharedBytes() + 1024),
                  byRegisters = 65536 / (threads() * (sums() + otherRegisters));
    return int(std::clamp<int64_t>(std::min(byShared, byRegisters), 1, 2));
}

std::string Spec::name() const
{
    return fmt::format("{}{}_sparse_{}x{}x{}_s{}{}{}_sm90a", image ? "conv" : "gemm",
                       integers ? "_i8_" + integers->name() : "_f16", tileP, tileQ, stepK(), stages,
                       multicast > 1 ? fmt::format("_multicast{}", multicast) : "", ahead ? "_ahead" : "");
}

char const* unsupported(Spec const& s)
{
    if (s.tileP != 64 && s.tileP != 128 && s.tileP != 256)
        return "a tile has 64, 128 or 256 filters";
    if (s.multicast != 1 && s.multicast != 2)
        return "multicast is 1 or 2";
    int const unit = (s.tileP == 64 ? 32 : 16) * (s.multicast == 2 && s.tileP != 64 ? 1 : s.multicast);
    if (s.tileQ < unit || s.tileQ > 256 || s.tileQ % unit)
        return "a tile has up to 256 pixels in steps of 16, 32 or 64";
    if (s.sums() > 128)
        return "more than 128 sums for each thread do not fit its registers";
    if (s.stages < 2 || s.stages > kMostStages || s.sharedBytes() > kSharedLimit)
        return "2 to 12 stages that fit into 227 KiB of shared memory";
    if (s.single || !s.aligned)
        return "FP16 or i8, in rows of whole 16 bytes";
    if (s.integers && (s.tileP == 64 || s.tileQ % 32))
        return "tiles of i8 have 128 or 256 filters, and pixels in steps of 32";
    if (s.integers && (s.integers->store != DataType::kInt8 || s.integers->table ||
                       (s.integers->residual && s.integers->residualType != DataType::kInt8)))
        return "sums of i8 make i8, without a table, with a residual of i8";
    return nullptr;
}

std::string source(Spec const& s)
{
    int const columns = s.tileP == 64 ? s.tileQ / 2 : s.tileQ; // of a group
    std::string const map = "const __grid_constant__ TensorMap ";
    std::string text = include("kernels/cuda/common/hopper.cuh") + wgmmaSparseSource(columns, s.integers.has_value()) +
                       constant("TILE_P", s.tileP) + constant("TILE_Q", s.tileQ) + constant("STAGES", s.stages) +
                       constant("MULTICAST", s.multicast) + constant("THREADS", s.threads()) +
                       constant("BLOCKS_PER_SM", s.blocksPerMultiprocessor()) + constant("STEP_K", s.stepK()) +
                       constant("BLOCK_BYTES", blockBytes(s.operandBytes())) +
                       constant("ELEMENT_BYTES", kElementBytes) + type("Sum", s.integers ? "i32" : "float") +
                       flag("AHEAD", s.ahead) + flag("INTEGERS", s.integers.has_value()) + flag("IMAGE", s.image) +
                       flag("REDISTRIBUTE", s.redistributes());
    if (s.integers)
        text += type("Element", storageOf(s.integers->store)) + constant("CHUNK", 64) + flag("BIAS", false) +
                flag("RESIDUAL", s.hasResidual()) + flag("ALIGNED", true) + integerEndSource(*s.integers) +
                include("kernels/cuda/gemm/wgmma_sparse_integers.cuh");
    else
        text += epilogueConstants(s, 64) + include("kernels/cuda/gemm/wgmma_sparse_halves.cuh");
    return text + "#define TW_PARAMETERS " + (s.hasResidual() ? map + "mapResidual, " : "") + "\n#define TW_RESIDUAL " +
           (s.hasResidual() ? "&mapResidual" : "nullptr") + "\n" + include("kernels/cuda/gemm/wgmma_sparse.cuh");
}

char const* unsupported(Spec const& s, Shape const& g)
{
    if (char const* const why = unsupported(s))
        return why;
    if (g.batch != 1)
        return "takes one matrix";
    Shape dense = g;
    dense.ldb = s.stepK(); // b is packed
    return gemm_f16::unsupported(denseOf(s), dense);
}

Launch launch(Spec const& s, Shape const& g, int multiprocessors)
{
    gemm_f16::Launch const dense = gemm_f16::launch(denseOf(s), g, multiprocessors);
    Launch l;
    l.q = dense.p;
    (s.image ? l.q.pixels : l.q.box[1]) = uint32_t(s.tileQ / s.multicast);
    l.y = dense.y;
    l.y.box[1] = uint32_t(s.tileP == 64 ? s.tileQ / 2 : s.tileQ);
    static_cast<gemm_f16::Args&>(l.args) = dense.args;
    l.args.tilesP = int32_t(ceilDiv(g.n, int64_t(s.tileP) * s.multicast));
    l.args.tilesQ = int32_t(ceilDiv(g.m, s.tileQ));
    l.args.blocks = int32_t(ceilDiv(g.n, kBlockRows));
    int64_t const units = int64_t(l.args.tilesP) * l.args.tilesQ,
                  resident = int64_t(multiprocessors) * s.blocksPerMultiprocessor() / s.multicast;
    l.geometry.grid = std::min(units, std::max<int64_t>(resident, 1)) * s.multicast;
    l.geometry.block = s.threads();
    l.geometry.cluster = s.multicast;
    l.geometry.sharedBytes = s.sharedBytes();
    return l;
}

double estimateUs(Spec const& s, Shape const& g, int multiprocessors)
{
    // As in wgmma_choice.cpp; an instruction of k = 32 takes as long as a dense one of 16, or as its operands take to come
    // out of shared memory at 128 bytes a clock.
    constexpr double kClocksPerUs = 1700, kBytesPerClock = 54, kLatency = 2800;
    Launch const l = launch(s, g, multiprocessors);
    int64_t const blocks = int64_t(l.args.tilesP) * l.args.tilesQ * s.multicast;
    int64_t const each = ceilDiv(blocks, multiprocessors);
    int64_t const atOnce = std::min<int64_t>(s.blocksPerMultiprocessor(), each), rounds = ceilDiv(each, atOnce);
    int const columns = s.tileP == 64 ? s.tileQ / 2 : s.tileQ;
    double const instructions = double(s.tileP) / 64 * s.tileQ / columns * 2; // of a step
    double const products = instructions * std::max(columns / 2.0, columns / 2.0 + 16) / 0.9;
    double const loaded = double(s.tileP) / kBlockRows * double(blockBytes(s.operandBytes())) +
                          double(s.tileQ) / s.multicast * kStepBytes;
    double const through = std::max(products, loaded / kBytesPerClock);
    double const main =
        std::max(double(l.args.steps * each) * through, double(rounds * ceilDiv(l.args.steps, s.stages)) * kLatency);
    double const write = double(s.tileP) * s.tileQ * 2 / 16; // of i8 16 ends a clock
    return (2400 + main + write * double(rounds)) / kClocksPerUs;
}

std::vector<Spec> candidates(Spec const& base, Shape const& g, int multiprocessors, size_t most)
{
    struct Tile
    {
        int p, q;
    };
    static constexpr Tile kTiles[] = {{128, 256}, {256, 128}, {128, 240}, {128, 192}, {128, 128},
                                      {128, 96},  {64, 256},  {64, 192},  {64, 128},  {128, 64}};
    std::vector<Guess<Spec>> all;
    for (Tile const& t : kTiles)
        for (int multicast : {1, 2})
            for (int blocks : {1, 2}) { // of a multiprocessor
                Spec s = base;
                s.tileP = t.p;
                s.tileQ = t.q;
                s.multicast = multicast;
                s.stages = 0;
                int64_t const room = kSharedLimit / blocks - (blocks - 1) * 1024 - s.sharedBytes();
                s.stages = int(std::min<int64_t>(room / s.stageBytes(), 8));
                if (s.stages < 2 || (blocks > 1 && s.blocksPerMultiprocessor() != blocks) ||
                    (multicast > 1 && g.n <= t.p) || unsupported(s, g))
                    continue;
                all.push_back({estimateUs(s, g, multiprocessors), s});
            }
    return bestOf(std::move(all), most);
}

} // namespace tw::cuda::gemm_sparse
