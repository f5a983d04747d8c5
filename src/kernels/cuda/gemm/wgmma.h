// SPDX-License-Identifier: Apache-2.0
// y = f(a b + bias) in FP16, or in FP32 with factors rounded to TF32 (Spec::single), with float sums, or of i8 with
// exact sums and the end that these have (Spec::integers), for compute capability 9.0: wgmma fed by TMA. One warp copies, one or two warpgroups multiply. The same
// kernel is the convolution of an NHWC image (no groups): then a's rows are the filter's positions, read through an
// im2col tensor map, and b's are the filters [k, r, s, c].
//
// P is the operand whose rows are the instruction's 64 rows, Q gives its columns. P = a, Q = b; swapped the other way
// round, for few rows of a. Of FP32 and i8 operands k is contiguous (aAlongK, bAlongK).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/common/epilogue.h"
#include "kernels/cuda/common/tensor_map.h"
#include "kernels/cuda/conv/shape.h"
#include "kernels/cuda/gemm/wgmma_params.h"

namespace tw::cuda::gemm_f16 {

constexpr int64_t kStepBytes = 128;        // of k at once: one swizzled row, but for Spec::stepBytes
constexpr int64_t kStagesAlignment = 1024; // bytes, in shared memory
constexpr int kMostFirstWarps = 4;
constexpr int kByteMap = 0; // type of a tensor map, beside those of TensorMapSpec

struct Spec : Epilogue
{
    int tileP = 128, tileQ = 128; // multiples of 64 and of 8
    int stages = 4;
    int groups = 2;        // of 4 warps, that multiply
    bool pingPong = false; // warpgroups alternate at whole tiles, else they share each tile's rows
    int split = 1;         // blocks of a cluster that share a tile's k and add up through shared memory: 1, 2, 4, 8
    int multicast = 1;     // blocks of a cluster, neighbours in P, that share their Q: 1, 2
    // Blocks whose tiles are whole rows, n = norm tileQ, of which they take LayerNorm together (wgmma_norm.cuh): 2 to
    // 8; 0: no norm.
    int norm = 0;
    // y = f(x[.., gates]) * x[.., rest] with x = a b + bias: columns of b, and biases, come in groups of 8 gates and the 8
    // columns that they let through.
    bool gated = false;
    // The rows of a, up to kFirstRows, are normalized first (wgmma_first_norm.cuh): 1: LayerNorm, 2: RMSNorm, 0: not.
    int firstNorm = 0;
    int firstWarps =
        kMostFirstWarps; // that measure rows: no more than there are, so that blocks of the next kernel find room
    bool swap = false;   // P = b
    bool copies = false; // y leaves by TMA, and the residual comes by it: two more tensor maps
    bool aAlongK = true; // a [m, k], else [k, m]
    bool bAlongK = true; // b [n, k], else [k, n]
    bool image = false;  // a is an NHWC image,
    bool volume = false; // or an NDHWC one
    // y is transposed, an image of more pixels: the convolution's batches are phases, each with filters and taps of its own
    // (PhasedArgsOf, which takes the place of Args). x's pixels are where the first taps of the first phase are.
    bool phased = false;
    // FP32 operands (single) as sums of two TF32 numbers, which lie after each other in a row, high and low ones, with
    // zeros up to whole steps (splitRow()). k is walked three times, low a with high b, high with low, high with high,
    // and sums go to registers of their own every kKeptSteps steps, since tensor cores cut off what sums lose.
    bool tf32x3 = false;
    // Factors of i8, and what becomes of their sums, in place of what Epilogue has: of that `aligned` counts, and
    // `residual`, which says that the residual comes as y leaves (bringsResidual()).
    std::optional<IntegerEnd> integers;
    // Of i8: 64 where k, or an image's channels, would leave rows of 128 half empty.
    int stepBytes = int(kStepBytes);
    // Of i8 with ping-pong: the residual of a group's next tile comes while this one's is added. For few steps, which
    // hide no way to memory.
    bool ahead = false;
    bool constantB = true; // b may be read before the previous kernel of the stream is done

    int64_t operandBytes() const { return integers ? 1 : elementBytes(); }
    int64_t storeBytes() const { return integers ? integers->storeBytes() : elementBytes(); } // of y
    int64_t residualBytes() const { return integers ? integers->residualBytes() : elementBytes(); }
    int64_t storeAlignment() const { return integers ? 16 / storeBytes() : alignment(); }
    // Whether kernels that copy y bring the residual the same way, by a map that is y's but for its strides.
    bool bringsResidual() const { return integers ? residualBytes() == storeBytes() : residual; }
    int tileY() const { return gated && !swap ? tileQ / 2 : tileQ; } // columns of y, unless swapped
    int sums() const;                                                // of a thread
    int sumRegisters() const { return sums() * (tf32x3 ? 2 : 1); }
    bool redistributes() const; // registers, from the copying warps (then four) to those that multiply
    int threads() const { return groups * 128 + (redistributes() ? 128 : 32) + (firstNorm ? firstWarps * 32 : 0); }
    int cluster() const { return split * multicast; }
    bool pAlongK() const { return swap ? bAlongK : aAlongK; }
    bool qAlongK() const { return swap ? aAlongK : bAlongK; }
    int64_t stepK() const { return stepBytes / operandBytes(); }
    int64_t stageBytes() const { return int64_t(tileP + tileQ) * stepBytes; }
    int chunk() const; // columns that a warp stages at once on the way to y
    int64_t biasBytes() const;
    int64_t stagingBytes() const;
    int64_t sumsBytes() const;
    int64_t rowsBytes() const { return firstNorm ? kFirstRows * 8 : 0; }
    int64_t tableBytes() const; // of an i8 end's table, behind all else in shared memory
    int64_t sharedBytes() const;
    int blocksPerMultiprocessor() const;
    // "gemm_f16_128x256x64_s4", unique for each spec that supported() takes.
    std::string name() const;
};

// Null, or why the kernel does not exist.
char const* unsupported(Spec const& spec);
std::string source(Spec const& spec);
constexpr char const* kKernel = "gemm";
constexpr int kKeptSteps = 8;

// Floats of a row of a 3xTF32 kernel's operand: high parts of k numbers, then low ones.
int64_t splitRow(int64_t k);
// The text of a second kernel, which makes such rows of a: SplitArgs is its parameter, with 256 threads each for 4
// numbers.
std::string splitSource();
constexpr char const* kSplitKernel = "split";
int64_t splitBlocks(SplitArgs const& args);

// The text of another kernel, after a product's, which copies FP16 operands so that rows are whole 16 bytes, with
// zeros at their ends: PadArgs is its parameter, with 256 threads a block. An operand without rows stays where it is.
std::string padSource();
constexpr char const* kPadKernel = "pad";
int64_t padBlocks(PadArgs const& args);

// Filter positions of an image; unused otherwise.
using Image = ConvShape; // of one group; filters are columns of b

struct Shape
{
    int64_t m = 1, n = 1, k = 1, batch = 1;     // n: columns of b, twice those of y where it is gated
    int64_t lda = 0, ldb = 0, ldy = 0;          // elements; 0: dense
    int64_t batchA = 0, batchB = 0, batchY = 0; // elements; 0: one for all batches (y: dense)
    Image image;                                // m, n, k follow from it with imageShape()
};
Shape imageShape(Image const& image, int64_t filters);

// Why this shape cannot run, or null: TMA wants 16-byte steps, sizes below 2^31.
char const* unsupported(Spec const& spec, Shape const& shape);

int64_t normRows(Spec const& spec, Shape const& shape);
inline int64_t normParts(Spec const& spec, Shape const& shape)
{
    return normRows(spec, shape) * spec.norm;
}
// That kernel, in the same text, with 256 threads each for one number; FillArgs is its parameter.
constexpr char const* kFillKernel = "fill";

using Args = ArgsOf<void>;

struct Launch
{
    TensorMapSpec p, q; // p is a's unless swapped
    TensorMapSpec y;    // the residual's too, where that is brought by TMA
    Args args;          // without addresses
    Volume volume;
    LaunchGeometry geometry;
};
Launch launch(Spec const& spec, Shape const& shape, int multiprocessors);

// A guess of the kernel's time, for ordering.
double estimateUs(Spec const& spec, Shape const& shape, int multiprocessors);
// The tiles worth timing, the best guess first, at most so many; none: the shape cannot run. `base` says all but tile,
// stages, groups, pingPong, split, multicast and swap; its `copies` is a permission.
// The same of kernels that take LayerNorm.
std::vector<Spec> normCandidates(Spec const& base, Shape const& shape, int multiprocessors, size_t most);
std::vector<Spec> candidates(Spec const& base, Shape const& shape, int multiprocessors, size_t most);

} // namespace tw::cuda::gemm_f16
