// SPDX-License-Identifier: Apache-2.0
// Operands that are rewritten in front of a product: FP32 as two TF32 numbers for each of theirs, FP16 with rows of
// whole 16 bytes.
#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/gemm/wgmma.h"

namespace tw::cuda::gemm_f16 {

namespace {

constexpr char const* kSplit = R"(
struct SplitArgs { float const* a; float* to; i64 lda; i32 rows, k, padded; };
TW_KERNEL split(const __grid_constant__ SplitArgs s)
{
    releaseDependents();
    waitForPrevious();
    int const at = blockIdx.x * 256 + threadIdx.x, row = at / (s.padded / 4), k0 = at % (s.padded / 4) * 4;
    if (row >= s.rows) return;
    float4 v = {};
    if (k0 < s.k) v = *reinterpret_cast<float4 const*>(s.a + row * s.lda + k0);
    float const x[4] = {v.x, v.y, v.z, v.w};
    Unit high, low;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(high.v[i]) : "f"(x[i]));
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(low.v[i]) : "f"(x[i] - __uint_as_float(high.v[i])));
    }
    float* const to = s.to + i64(row) * s.padded * 2 + k0;
    *reinterpret_cast<Unit*>(to) = high;
    *reinterpret_cast<Unit*>(to + s.padded) = low;
}
)";

// A warp copies 512 numbers of a row, and zeros behind the row's last, in words: lanes of a row that begins inside one
// take halves of two, the second from the next lane.
constexpr int64_t kPadColumns = 512, kPadWarps = 8;
constexpr char const* kPad = R"(
struct PadRows { f16 const* from; f16* to; i64 rows; i32 columns, padded; };
struct PadArgs { PadRows a, b; };
TW_KERNEL __launch_bounds__(256) pad(const __grid_constant__ PadArgs p)
{
    constexpr int COLUMNS = 512, WORDS = COLUMNS / 64;
    releaseDependents();
    i64 const warp = i64(blockIdx.x) * 8 + threadIdx.x / 32, warpsA = p.a.rows * ((p.a.padded + COLUMNS - 1) / COLUMNS);
    bool const isB = warp >= warpsA;
    int const columns = isB ? p.b.columns : p.a.columns, padded = isB ? p.b.padded : p.a.padded;
    int const parts = (padded + COLUMNS - 1) / COLUMNS, lane = threadIdx.x % 32;
    i64 const part = isB ? warp - warpsA : warp, row = part / parts;
    if (row >= (isB ? p.b.rows : p.a.rows)) return;
    f16 const* const from = (isB ? p.b.from : p.a.from) + row * columns;
    f16* const to = (isB ? p.b.to : p.a.to) + row * padded;
    int const column0 = int(part - row * parts) * COLUMNS, odd = int(u64(from) / 2 % 2), first = column0 - odd + lane * 2;
    waitForPrevious();
    u32 v[WORDS + 1];
#pragma unroll
    for (int i = 0; i <= WORDS; ++i) {
        int const c = first + i * 64;
        v[i] = c + 1 < columns ? *reinterpret_cast<u32 const*>(from + c) : c < columns ? from[c].bits : 0;
    }
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
        int const c = column0 + i * 64 + lane * 2;
        u32 const next = __shfl_sync(~0u, lane == 0 ? v[i + 1] : v[i], (lane + 1) % 32);
        if (c < padded) *reinterpret_cast<u32*>(to + c) = odd ? v[i] >> 16 | next << 16 : v[i];
    }
}
)";

} // namespace

int64_t padBlocks(PadArgs const& p)
{
    int64_t const a = p.a.rows * ceilDiv(p.a.padded, kPadColumns), b = p.b.rows * ceilDiv(p.b.padded, kPadColumns);
    return ceilDiv(a + b, kPadWarps);
}

std::string padSource()
{
    return std::string(kPad) + "static_assert(sizeof(PadArgs) == " + std::to_string(sizeof(PadArgs)) +
           ", \"layout of PadArgs\");\n";
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
    return std::string(kSplit) + "static_assert(sizeof(SplitArgs) == " + std::to_string(sizeof(SplitArgs)) +
           ", \"layout of SplitArgs\");\n";
}

} // namespace tw::cuda::gemm_f16
