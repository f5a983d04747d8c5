// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/wgmma.h"

#include <algorithm>

#include "kernels/cuda/common/epilogue.h"
#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/common/prelude.h"

namespace tw::cuda::gemm_f16 {

namespace {

constexpr int64_t kBarrierBytes = 384;

} // namespace

int Spec::sums() const
{
    return (pingPong ? tileP : tileP / groups) / 64 * tileQ / 2;
}

// Beside 8 warps that multiply, a ninth leaves 168 registers for each thread: warps share 4 register files.
bool Spec::redistributes() const
{
    return groups == 2 && (sumRegisters() > 64 || (split > 1 && sums() == 64)); // adding up takes more
}

int Spec::chunk() const
{
    int const columns = tileY() / split;
    if (!integers)
        return chunkOf(columns);
    int chunk = int(kStepBytes / storeBytes()); // 128 bytes of a row, or a half of it, ...
    while (columns % chunk)
        chunk /= 2;
    return chunk;
}

int64_t Spec::biasBytes() const
{
    if (norm)
        return int64_t(3) * tileQ * 4;
    return swap || gated ? 0 : int64_t(groups) * 2 * (tileQ / split) * (integers ? 8 : 4);
}

int64_t Spec::stagingBytes() const
{
    if (copies) // all that the multiplying warps have at once
        return int64_t(tileP) * tileY() * storeBytes() * (pingPong ? 2 : 1) * (ahead ? 2 : 1);
    return swap || (single && !integers) ? 0 : int64_t(groups) * 4 * 16 * chunk() * storeBytes();
}

int64_t Spec::sumsBytes() const
{
    constexpr int64_t kMost = 32 * 1024; // more goes where the stages were, which costs another barrier
    int64_t const bytes = int64_t(tileP) * tileQ * 4;
    return split > 1 && bytes <= kMost ? bytes : 0;
}

int64_t Spec::sharedBytes() const
{
    return kStagesAlignment + stages * stageBytes() + stagingBytes() + biasBytes() + sumsBytes() + kBarrierBytes +
           rowsBytes() + tableBytes();
}

int64_t Spec::tableBytes() const
{
    constexpr int64_t kBytes = 256, kLanes = 32;
    return integers && integers->table && !swap && split == 1 ? kBytes * kLanes : 0;
}

int Spec::blocksPerMultiprocessor() const
{
    // A thread's sums, and what else it holds.
    int const registers = sumRegisters() + 64;
    int64_t const byShared = kSharedLimit / (sharedBytes() + 1024), byRegisters = 65536 / (threads() * registers);
    return int(std::clamp<int64_t>(std::min(byShared, byRegisters), 1, 4));
}

std::string Spec::name() const
{
    std::string s = fmt::format("{}{}{}x{}x{}_s{}_g{}",
                                phased   ? "deconv"
                                : volume ? "conv3"
                                : image  ? "conv"
                                         : "gemm",
                                integers ? "_i8_" + integers->name() + "_"
                                : tf32x3 ? "_f32_"
                                : single ? "_tf32_"
                                         : "_f16_",
                                tileP, tileQ, stepK(), stages, groups);
    if (pingPong)
        s += "_pingpong";
    if (split > 1)
        s += fmt::format("_split{}", split);
    if (multicast > 1)
        s += fmt::format("_multicast{}", multicast);
    if (gated)
        s += "_gated";
    if (norm)
        s += fmt::format("_norm{}", norm);
    if (firstNorm)
        s += firstNorm == 1 ? "_of_norm" : "_of_rms";
    if (swap)
        s += "_swap";
    if (copies)
        s += ahead ? "_copies2" : "_copies";
    return s + "_" + (aAlongK ? "t" : "n") + (bAlongK ? "t" : "n") + "_sm90a";
}

char const* unsupported(Spec const& s)
{
    if (s.tileP % 64 || s.tileP < 64 || s.tileP > 256 || s.tileQ % 8 || s.tileQ < 8 || s.tileQ > 256)
        return "a tile has 64 to 256 rows in steps of 64 and 8 to 256 columns in steps of 8";
    if (s.groups < 1 || s.groups > 2 || (s.pingPong && s.groups != 2) || (!s.pingPong && s.tileP % (64 * s.groups)))
        return "one or two groups of warps, each with 64 rows or more of the tile; ping-pong needs two";
    if (s.tf32x3 && (!s.single || s.image || s.multicast > 1))
        return "only products of FP32 are 3xTF32";
    if (s.sumRegisters() > 128)
        return "more than 128 sums for each thread do not fit its registers";
    if (s.integers && (!s.aAlongK || !s.bAlongK || !isIntegersColumns(s.tileQ)))
        return "factors of i8 have a contiguous k, and tiles 8, 16, 24, 32 or more columns in steps of 16";
    if (s.integers && (s.single || s.norm || s.gated || s.tf32x3 || s.residual))
        return "sums of i8 have an end of their own";
    if (s.stepBytes != kStepBytes && (s.stepBytes != kStepBytes / 2 || !s.integers))
        return "steps are 128 bytes of k, or 64 of i8";
    if (s.ahead && !(s.integers && s.integers->residual && s.bringsResidual() && s.copies && s.pingPong))
        return "residuals come a tile ahead where ping-pong tiles of i8 leave by TMA";
    if (s.residual && !s.copies && s.tileP > 128)
        return "a residual and more than 128 rows do not fit the registers";
    if ((s.split != 1 && s.split != 2 && s.split != 4 && s.split != 8) || s.tileQ % (8 * s.split) ||
        (s.split > 1 && (s.multicast > 1 || s.pingPong)))
        return "split is 1, 2, 4 or 8, leaves 8 columns or more to each block, and goes with neither multicast nor "
               "ping-pong";
    if (s.integers && !s.swap && s.tileQ / s.split * s.storeBytes() % 16)
        return "rows of a tile's i8 results are whole 16 bytes";
    if (s.stages < 2 || s.stages > 12 || s.sharedBytes() > kSharedLimit)
        return "2 to 12 stages that fit into 227 KiB of shared memory";
    if (s.single && (!s.aAlongK || !s.bAlongK || s.copies))
        return "FP32 operands have a contiguous k, and their y does not leave by TMA";
    if (s.copies && (!s.aligned || s.swap || s.split > 1 || s.tileY() % (kStepBytes / s.storeBytes())))
        return "TMA stores rows in steps of 16 bytes, of tiles that are neither split nor swapped";
    if (s.split > 1 && s.sumsBytes() == 0 && int64_t(s.tileP) * s.tileQ * 4 > s.stages * s.stageBytes())
        return "the sums of a split tile do not fit into its stages";
    if (s.gated && (s.norm || s.image || s.residual || (s.swap ? s.single : s.tileQ % (16 * s.split) != 0)))
        return "gates and what they let through are columns of a tile (of FP16: or rows), whose products nothing is "
               "added to";
    if (s.norm && (s.norm < 2 || s.norm > 8 || !s.copies || s.image || s.multicast > 1 ||
                   (s.pingPong ? s.tileP : s.tileP / s.groups) != 64))
        return "a norm is taken by 2 to 8 blocks, of 64 rows for a warpgroup that leave by TMA";
    if (s.firstNorm && (s.integers || s.single || s.image || s.norm || s.pingPong || s.copies || s.multicast > 1 ||
                        s.redistributes() || !s.aAlongK))
        return "rows of FP16 are normalized first where all groups of warps share each tile, which leaves without TMA";
    if ((s.multicast != 1 && s.multicast != 2) || s.tileQ % (8 * s.multicast))
        return "multicast is 1 or 2";
    if (s.volume && !s.image)
        return "three axes are those of an image";
    if (s.phased &&
        (!s.image || s.volume || s.integers || s.single || s.pingPong || s.copies || s.residual || s.multicast > 1))
        return "phases are those of an FP16 image of two axes, whose tiles leave without TMA and one after the other";
    if (!s.pAlongK() && s.image)
        return "an image is read along its channels";
    if (!s.qAlongK() && s.tileQ % (64 * s.multicast))
        return "columns that are contiguous come in steps of 64";
    if (s.image && (s.swap || !s.bAlongK))
        return "convolutions take filters [k, r, s, c] and are not swapped";
    return nullptr;
}

Shape imageShape(Image const& i, int64_t filters)
{
    Shape s;
    s.image = i;
    s.m = i.n * i.outD * i.outH * i.outW;
    s.n = filters;
    s.k = i.t * i.r * i.s * i.c;
    return s;
}

char const* unsupported(Spec const& s, Shape const& g)
{
    if (char const* const why = unsupported(s))
        return why;
    constexpr int64_t kLimit = (int64_t(1) << 31) - 1024;
    if (g.m < 1 || g.n < 1 || g.k < 1 || g.batch < 1 || g.m > kLimit || g.n > kLimit || g.k > kLimit ||
        ceilDiv(g.m, 64) * ceilDiv(g.n, 8) > kLimit / g.batch)
        return "sizes are positive and count below 2^31";
    if (s.split > (s.image ? g.image.t * g.image.r * g.image.s * ceilDiv(g.image.c, s.stepK())
                           : ceilDiv(g.k, s.stepK()) * (s.tf32x3 ? 3 : 1)))
        return "k has fewer steps than the blocks that would share them";
    if (s.norm && (g.n != int64_t(s.norm) * s.tileQ || g.batch != 1))
        return "its blocks have whole rows of one matrix";
    if (s.firstNorm && (g.m > kFirstRows || (s.swap && g.m > s.tileQ) || g.batch != 1 || g.k % 8))
        return "up to 16 rows of whole 16 bytes, all of one tile, are normalized first";
    int64_t const unit = 16 / s.operandBytes(); // elements
    int64_t const lda = g.lda ? g.lda : s.aAlongK ? g.k : g.m, ldb = g.ldb ? g.ldb : s.bAlongK ? g.k : g.n;
    if (s.image) {
        Image const& i = g.image;
        if (i.c % unit)
            return "TMA wants channels in steps of 16 bytes";
        if (i.strideH > 8 || i.strideW > 8 || i.padH > 127 || i.padW > 127 || (i.r - 1) * i.dilationH > 127 ||
            (i.s - 1) * i.dilationW > 127)
            return "TMA's steps end at 8, its filters and padding at 127";
        if (s.volume && (i.strideD > 8 || std::max({i.padD, i.padH, i.padW}) > 15 ||
                         std::max({(i.t - 1) * i.dilationD, (i.r - 1) * i.dilationH, (i.s - 1) * i.dilationW}) > 31))
            return "TMA's filters of three axes end at 31, their padding at 15";
        return nullptr;
    }
    if (lda % unit || ldb % unit || g.batchA % unit || g.batchB % unit)
        return "TMA wants rows in steps of 16 bytes";
    if (s.gated && g.n % 16)
        return "gated columns come in steps of 8";
    if (s.aligned &&
        (g.n / (s.gated ? 2 : 1) % s.storeAlignment() || g.ldy % s.storeAlignment() || g.batchY % s.storeAlignment()))
        return "rows of y are not in steps of what is written at once";
    return nullptr;
}

int64_t normRows(Spec const& s, Shape const& g)
{
    return ceilDiv(g.m, s.tileP) * s.tileP;
}

Launch launch(Spec const& s, Shape const& g, int multiprocessors)
{
    Launch l;
    int64_t const bytes = s.operandBytes();
    int const type = s.integers ? kByteMap
                     : s.tf32x3 ? TensorMapSpec::kFloat32
                     : s.single ? TensorMapSpec::kRoundedFloat32
                                : TensorMapSpec::kFloat16;
    // One operand as rows of k, or k rows.
    auto map = [&](bool alongK, int64_t rows, int64_t ld, int64_t batchStride, int boxRows) {
        TensorMapSpec m;
        m.type = type;
        m.dims[0] = uint64_t(s.tf32x3 ? splitRow(g.k) : alongK ? g.k : rows);
        m.dims[1] = uint64_t(alongK ? rows : g.k);
        m.dims[2] = batchStride ? uint64_t(g.batch) : 1;
        m.strides[0] = uint64_t((ld ? ld : int64_t(m.dims[0])) * bytes);
        m.strides[1] = batchStride ? uint64_t(batchStride * bytes) : m.strides[0] * m.dims[1];
        m.box[0] = uint32_t(s.stepK());
        m.box[1] = uint32_t(alongK ? boxRows : 64);
        return m;
    };
    int const rowsA = s.swap ? s.tileQ / s.multicast : s.tileP, rowsB = s.swap ? s.tileP : s.tileQ / s.multicast;
    TensorMapSpec a = map(s.aAlongK, g.m, g.lda, g.batchA, rowsA), b = map(s.bAlongK, g.n, g.ldb, g.batchB, rowsB);
    Args& args = l.args;
    args.steps = int32_t(ceilDiv(g.k, s.stepK()));
    if (s.tf32x3) {
        args.stepsC = args.steps;
        args.steps *= 3;
    }
    if (s.image) {
        Image const& i = g.image;
        a = TensorMapSpec();
        a.type = type;
        a.im2col = true;
        a.rank = s.volume ? 5 : 4;
        uint64_t const dims[5] = {uint64_t(i.c), uint64_t(i.w), uint64_t(i.h), uint64_t(s.volume ? i.d : i.n),
                                  uint64_t(i.n)};
        uint64_t stride = uint64_t(bytes);
        for (int d = 0; d < a.rank; ++d) {
            a.dims[d] = dims[d];
            if (d > 0)
                a.strides[d - 1] = stride;
            stride *= dims[d];
        }
        a.lower[0] = -i.padW;
        a.lower[1] = -i.padH;
        // The last filter origin is (out - 1) stride - pad; the box ends there: size - 1 + upper.
        a.upper[0] = int((i.outW - 1) * i.strideW - i.padW - (i.w - 1));
        a.upper[1] = int((i.outH - 1) * i.strideH - i.padH - (i.h - 1));
        if (s.volume) {
            a.lower[2] = -i.padD;
            a.upper[2] = int((i.outD - 1) * i.strideD - i.padD - (i.d - 1));
            a.elementStrides[3] = uint32_t(i.strideD);
            l.volume = {int32_t(i.r), int32_t(i.outD), i.strideD, i.padD, i.dilationD};
        }
        a.elementStrides[1] = uint32_t(i.strideW);
        a.elementStrides[2] = uint32_t(i.strideH);
        a.channels = uint32_t(s.stepK());
        a.pixels = uint32_t(s.tileP);
        b = TensorMapSpec();
        b.type = type;
        b.dims[0] = uint64_t(i.c);
        b.dims[1] = uint64_t(i.t * i.r * i.s);
        b.dims[2] = uint64_t(g.n * (s.phased ? g.batch : 1));
        b.strides[0] = uint64_t(i.c * bytes);
        b.strides[1] = uint64_t(i.c * i.t * i.r * i.s * bytes);
        b.box[0] = uint32_t(s.stepK());
        b.box[2] = uint32_t(rowsB);
        args.stepsC = int32_t(ceilDiv(i.c, s.stepK()));
        args.steps = int32_t(i.t * i.r * i.s) * args.stepsC;
        args.filterW = int32_t(i.s);
        args.outW = int32_t(i.outW);
        args.outH = int32_t(i.outH);
        args.strideW = i.strideW;
        args.strideH = i.strideH;
        args.padW = i.padW;
        args.padH = i.padH;
        args.dilationW = i.dilationW;
        args.dilationH = i.dilationH;
    }
    l.p = s.swap ? b : a;
    l.q = s.swap ? a : b;
    int64_t const columns = s.gated ? g.n / 2 : g.n; // of y
    l.y.dims[0] = uint64_t(columns);
    l.y.dims[1] = uint64_t(g.m);
    l.y.dims[2] = uint64_t(g.batch);
    uint64_t const storeBytes = uint64_t(s.storeBytes());
    l.y.type = storeBytes == 1 ? kByteMap : storeBytes == 2 ? TensorMapSpec::kFloat16 : TensorMapSpec::kFloat32;
    l.y.strides[0] = uint64_t(g.ldy ? g.ldy : columns) * storeBytes;
    l.y.strides[1] = g.batchY ? uint64_t(g.batchY) * storeBytes : l.y.strides[0] * uint64_t(g.m);
    l.y.box[0] = uint32_t(kStepBytes / s.storeBytes());
    l.y.box[1] = 16;
    args.m = int32_t(g.m);
    args.n = args.channels = int32_t(columns);
    args.ldy = args.ldResidual = g.ldy ? g.ldy : columns;
    args.batchY = g.batchY ? g.batchY : args.ldy * g.m;
    args.batches = int32_t(g.batch);
    args.batchP = (s.swap ? g.batchB : g.batchA) != 0;
    args.batchQ = (s.swap ? g.batchA : g.batchB) != 0;
    args.tilesP = int32_t(ceilDiv(s.swap ? g.n : g.m, int64_t(s.tileP) * s.multicast));
    args.tilesQ = s.norm ? 1 : int32_t(ceilDiv(s.swap ? g.m : g.n, s.tileQ));
    args.band = divBy(kBandRows / s.multicast * int64_t(args.tilesQ));
    int64_t const units = int64_t(args.tilesP) * args.tilesQ * args.batches;
    // Split tiles keep their stages for the sums, so each cluster does one; else blocks stay and take tile after tile.
    int64_t const neighbours = s.norm ? s.norm : s.cluster();
    int64_t const resident = int64_t(multiprocessors) * s.blocksPerMultiprocessor() / neighbours;
    l.geometry.grid = (s.split > 1 ? units : std::min(units, std::max<int64_t>(resident, 1))) * neighbours;
    l.geometry.block = s.threads();
    l.geometry.cluster = s.cluster();
    l.geometry.sharedBytes = s.sharedBytes();
    return l;
}

std::string source(Spec const& s)
{
    bool const early = s.constantB;
    Epilogue rows = s; // of what is written
    if (s.gated) {
        rows.bias = false;
        rows.activation.clear();
    }
    std::string text =
        include("kernels/cuda/common/hopper.cuh") + (s.integers ? wgmmaIntegersSource(s.tileQ)
                                                     : s.single ? wgmmaTf32Source(s.tileQ)
                                                                : wgmmaSource(s.tileQ, !s.pAlongK(), !s.qAlongK()));
    text += constant("TILE_P", s.tileP) + constant("TILE_Q", s.tileQ) + constant("STAGES", s.stages) +
            constant("GROUPS", s.groups) + constant("SPLIT", s.split) + constant("MULTICAST", s.multicast) +
            constant("NORM", s.norm) + constant("FIRST_NORM", s.firstNorm) + constant("FIRST_WARPS", s.firstWarps) +
            constant("BARRIER_BYTES", kBarrierBytes) + constant("THREADS", s.threads()) +
            constant("BLOCKS_PER_SM", s.blocksPerMultiprocessor()) + constant("BIAS_BYTES", s.biasBytes()) +
            constant("STAGING_BYTES", s.stagingBytes()) + constant("SUMS_BYTES", s.sumsBytes()) +
            constant("STEP_K", s.stepK()) + constant("STEP_BYTES", s.stepBytes) + flag("AHEAD", s.ahead) +
            constant("KEPT_STEPS", kKeptSteps) + constant("TABLE_BYTES", s.tableBytes()) +
            constant("TABLE_AT", s.sharedBytes() - s.tableBytes() - kStagesAlignment) +
            type("Sum", s.integers ? "i32" : "float") + flag("INTEGERS", s.integers.has_value()) +
            flag("TF32X3", s.tf32x3);
    text += flag("PING_PONG", s.pingPong) + flag("SWAP", s.swap) + flag("P_ALONG_K", s.pAlongK()) +
            flag("Q_ALONG_K", s.qAlongK()) + flag("COPIES", s.copies) + flag("IMAGE", s.image) +
            flag("VOLUME", s.volume) + flag("PHASED", s.phased) + flag("REDISTRIBUTE", s.redistributes()) +
            flag("LATE", s.sums() > 96 || s.split > 1) + flag("EARLY", early) + flag("GATED", s.gated) +
            flag("GATE_BIAS", s.gated && s.bias) +
            activationSource(s.gated ? s.activation : std::string(), "activateGate");
    if (s.integers)
        text += type("Element", storageOf(s.integers->store)) + constant("CHUNK", s.chunk()) + flag("BIAS", false) +
                flag("RESIDUAL", s.bringsResidual()) + flag("ALIGNED", s.aligned) + integerEndSource(*s.integers);
    else
        text += epilogueConstants(rows, s.chunk());
    bool const fetches = s.copies && s.bringsResidual();
    // Parameters that are not there cannot be left out by a constant.
    std::string const map = "const __grid_constant__ TensorMap ";
    text += "#define TW_PARAMETERS " + (s.copies ? map + "mapY, " : "") + (fetches ? map + "mapResidual, " : "") +
            (s.norm ? "const __grid_constant__ Norm theNorm, " : "") +
            (s.firstNorm ? "const __grid_constant__ FirstNorm theFirstNorm, " : "") +
            (s.volume ? "const __grid_constant__ Volume theVolume, " : "") + "\n#define TW_Y " +
            (s.copies ? "&mapY" : "nullptr") + "\n#define TW_RESIDUAL " + (fetches ? "&mapResidual" : "nullptr") +
            "\n#define TW_NORM " + (s.norm ? "&theNorm" : "nullptr") + "\n#define TW_FIRST_NORM " +
            (s.firstNorm ? "&theFirstNorm" : "nullptr") + "\n#define TW_VOLUME " +
            (s.volume ? "&theVolume" : "nullptr") + "\n";
    return text +
           (s.integers ? include("kernels/cuda/gemm/wgmma_integers.cuh")
                       : rowsSource(s.single) + columnsSource(s.single)) +
           include("kernels/cuda/gemm/wgmma.cuh") + (s.norm ? include("kernels/cuda/gemm/wgmma_fill.cuh") : "");
}

// Operands that are rewritten before a product: FP32 as two TF32 numbers for each of theirs, FP16 with rows of
// whole 16 bytes.
namespace {

// A warp copies 512 numbers of a row, and zeros after the row's last, in words: lanes of a row that begins inside one
// take halves of two, the second from the next lane.
constexpr int64_t kPadColumns = 512, kPadWarps = 8;

} // namespace

int64_t padBlocks(PadArgs const& p)
{
    int64_t const a = p.a.rows * ceilDiv(p.a.padded, kPadColumns), b = p.b.rows * ceilDiv(p.b.padded, kPadColumns);
    return ceilDiv(a + b, kPadWarps);
}

std::string padSource()
{
    return include("kernels/cuda/gemm/wgmma_pad.cuh");
}

int64_t splitRow(int64_t k)
{
    return ceilDiv(k, kStepBytes / 4) * (kStepBytes / 4) * 2;
}

int64_t splitBlocks(SplitArgs const& a)
{
    return ceilDiv(int64_t(a.rows) * a.padded, 256 * 4);
}

std::string splitSource()
{
    return include("kernels/cuda/gemm/wgmma_split.cuh");
}

} // namespace tw::cuda::gemm_f16
