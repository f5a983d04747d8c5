// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/mma_f16.h"

#include <algorithm>

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"

namespace tw::cuda::attention_f16 {

namespace {

// In front of the rows' copies.
constexpr char const* kSizes = R"(
constexpr int THREADS = WARPS * 32, ROWS = WARPS * 16;
constexpr int PITCH = (D > DV ? D : DV) * 2 + 16; // an odd number of 16 bytes: no bank conflicts
constexpr u32 TILE_BYTES = KEYS * PITCH;
// Fragments of queries stay in registers where there is room for them.
constexpr bool KEEPS = D <= 128;
)";
constexpr char const* kText = R"(
TW_KERNEL __launch_bounds__(THREADS, 1) attention(const __grid_constant__ Args a)
{
    extern __shared__ __align__(16) u8 raw[];
    u32 const sharedQ = sharedAddress(raw), sharedK = sharedQ + ROWS * PITCH, sharedV = sharedK + 2 * TILE_BYTES;
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int const q0 = blockIdx.x * ROWS, head = blockIdx.y, batch = blockIdx.z;
    f16 const* const q = a.q + batch * a.qs.batch + head * a.qs.head;
    f16 const* const k = a.k + batch * a.ks.batch + head * a.ks.head;
    f16 const* const v = a.v + batch * a.vs.batch + head * a.vs.head;
    int const row = q0 + warp * 16 + g; // of this thread: row and row + 8
    Masks masks;
    masks.at(a, batch, head);
    int const shift = a.sk - a.sq;
    int const limit = CAUSAL ? max(min(a.sk, q0 + ROWS + shift), 1) : a.sk, steps = (limit + KEYS - 1) / KEYS;
    releaseDependents();
    waitForPrevious();
    loadTile<ROWS, HEAD, D>(sharedQ, q, a.qs.row, q0, a.sq);
    loadTile<KEYS, HEAD, D>(sharedK, k, a.ks.row, 0, a.sk);
    copyCommit();
    loadTile<KEYS, VALUE, DV>(sharedV, v, a.vs.row, 0, a.sk);
    copyCommit();

    u32 const qAt = sharedQ + (warp * 16 + lane % 16) * PITCH + lane / 16 * 16;
    u32 fragQ[KEEPS ? D / 16 : 1][4];
    float out[DV / 8][4] = {}, top[2] = {-INFINITY_F, -INFINITY_F}, sum[2] = {};
    for (int step = 0; step < steps; ++step) {
        int const key0 = step * KEYS;
        masks.fetch(a, key0, t);
        copyWait<1>(); // the step's keys
        __syncthreads();
        if (step + 1 < steps) loadTile<KEYS, HEAD, D>(sharedK + ((step + 1) & 1) * TILE_BYTES, k, a.ks.row, key0 + KEYS, a.sk);
        copyCommit();
        if (KEEPS && step == 0) {
#pragma unroll
            for (int d = 0; d < D / 16; ++d) loadMatrix4(fragQ[KEEPS ? d : 0], qAt + d * 32);
        }
        float s[KEYS / 8][4] = {};
        u32 const kAt = sharedK + (step & 1) * TILE_BYTES + (lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 16;
#pragma unroll
        for (int d = 0; d < D / 16; ++d) {
            if constexpr (!KEEPS) loadMatrix4(fragQ[0], qAt + d * 32);
#pragma unroll
            for (int n = 0; n < KEYS / 16; ++n) {
                u32 b[4];
                loadMatrix4(b, kAt + n * 16 * PITCH + d * 32);
                mma(s[n * 2], fragQ[KEEPS ? d : 0], b[0], b[1]);
                mma(s[n * 2 + 1], fragQ[KEEPS ? d : 0], b[2], b[3]);
            }
        }
        if constexpr (MASKED) {
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int h = 0; h < 2; ++h) masks.apply(a, row + h * 8, key0, n, t, s[n][h * 2], s[n][h * 2 + 1]);
        }
        if (key0 + KEYS > a.sk || (CAUSAL && key0 + KEYS > q0 + shift)) {
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    int const key = key0 + n * 8 + t * 2 + e % 2;
                    if (key >= a.sk || (CAUSAL && key > row + e / 2 * 8 + shift)) s[n][e] = -INFINITY_F;
                }
        }
        // Without masks the scores are scaled in the exponent; tops are of scaled scores.
        float const scale = MASKED ? 1 : a.scale;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float high = s[0][h * 2];
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n) high = fmaxf(high, fmaxf(s[n][h * 2], s[n][h * 2 + 1]));
            high = fmaxf(top[h], quadMax(high) * scale);
            float const origin = high == -INFINITY_F ? 0 : high, shrink = exp2Of(top[h] - origin);
            top[h] = high;
            float part = 0;
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    float const x = exp2Of(MASKED ? s[n][h * 2 + e] - origin : s[n][h * 2 + e] * scale - origin);
                    s[n][h * 2 + e] = x;
                    part += x;
                }
            sum[h] = sum[h] * shrink + part;
#pragma unroll
            for (int d = 0; d < DV / 8; ++d) {
                out[d][h * 2] *= shrink;
                out[d][h * 2 + 1] *= shrink;
            }
        }
        copyWait<1>(); // the step's values
        __syncthreads();
        if (step + 1 < steps) loadTile<KEYS, VALUE, DV>(sharedV + ((step + 1) & 1) * TILE_BYTES, v, a.vs.row, key0 + KEYS, a.sk);
        copyCommit();
        u32 const vAt = sharedV + (step & 1) * TILE_BYTES + lane % 16 * PITCH + lane / 16 * 16;
#pragma unroll
        for (int n = 0; n < KEYS / 16; ++n) {
            u32 p[4] = {packHalves(s[n * 2][0], s[n * 2][1]), packHalves(s[n * 2][2], s[n * 2][3]),
                        packHalves(s[n * 2 + 1][0], s[n * 2 + 1][1]), packHalves(s[n * 2 + 1][2], s[n * 2 + 1][3])};
#pragma unroll
            for (int d = 0; d < DV / 16; ++d) {
                u32 b[4];
                loadMatrix4Transposed(b, vAt + n * 16 * PITCH + d * 32);
                mma(out[d * 2], p, b[0], b[1]);
                mma(out[d * 2 + 1], p, b[2], b[3]);
            }
        }
    }
    copyWait<0>();
    // The warp's own rows of q hold its result on the way out.
    u32 const own = sharedQ + warp * 16 * PITCH;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float const scale = a.sk == 0 ? 0 : 1 / quadSum(sum[h]);
#pragma unroll
        for (int d = 0; d < DV / 8; ++d)
            storeShared(own + (g + h * 8) * PITCH + d * 16 + t * 4,
                        packHalves(out[d][h * 2] * scale, out[d][h * 2 + 1] * scale));
    }
    __syncwarp();
    f16* const y = a.y + batch * a.ys.batch + head * a.ys.head;
    u8 const* const result = raw + warp * 16 * PITCH;
    constexpr int UNITS = VALUE / UNIT; // of a row
#pragma unroll 4
    for (int i = 0; i < (16 * UNITS + 31) / 32; ++i) {
        int const at = lane + i * 32, r = at / UNITS, u = at % UNITS, to = q0 + warp * 16 + r;
        if (at < 16 * UNITS && to < a.sq)
            *reinterpret_cast<Moved*>(y + i64(to) * a.ys.row + u * UNIT) =
                *reinterpret_cast<Moved const*>(result + r * PITCH + u * UNIT * 2);
    }
}
)";

} // namespace

int64_t Spec::sharedBytes() const
{
    return int64_t(warps * 16 + 4 * keys) * (std::max(paddedHead(), paddedValue()) * 2 + 16);
}

std::string Spec::name() const
{
    return "attention_f16_d" + std::to_string(headDim) + (valueDim != headDim ? "_v" + std::to_string(valueDim) : "") +
           (unit < 8 ? "_u" + std::to_string(unit) : "") + "_" + std::to_string(warps * 16) + "x" +
           std::to_string(keys) + masks.name() + "_sm80";
}

char const* unsupported(Spec const& s)
{
    if (s.headDim < 1 || s.headDim > 256 || s.valueDim < 1 || s.valueDim > 256)
        return "heads have 1 to 256 elements";
    if ((s.unit != 1 && s.unit != 2 && s.unit != 4 && s.unit != 8) || s.headDim % s.unit || s.valueDim % s.unit)
        return "copies move 1, 2, 4 or 8 elements, and heads have a multiple of that";
    if ((s.warps != 1 && s.warps != 2 && s.warps != 4 && s.warps != 8) ||
        (s.keys != 32 && s.keys != 64 && s.keys != 128))
        return "1, 2, 4 or 8 warps, steps of 32, 64 or 128 keys";
    if (s.sharedBytes() > kSharedLimit)
        return "the tiles do not fit into shared memory";
    return nullptr;
}

std::string source(Spec const& s)
{
    char const* const moved = s.unit == 8 ? "Unit" : s.unit == 4 ? "uint2" : s.unit == 2 ? "u32" : "u16";
    return include("kernels/cuda/common/matrix.cuh") + constant("HEAD", s.headDim) + constant("D", s.paddedHead()) +
           constant("VALUE", s.valueDim) + constant("DV", s.paddedValue()) + constant("UNIT", s.unit) +
           constant("WARPS", s.warps) + constant("KEYS", s.keys) + "typedef " + moved + " Moved;\n" +
           attentionText(s.masks) + kSizes + attentionRows() + kText;
}

Args packed(Spec const& spec, Shape const& shape, void const* qkv)
{
    Args a;
    int64_t const width = shape.heads * spec.headDim;
    auto const* const base = static_cast<uint16_t const*>(qkv);
    a.q = base;
    a.k = base + width;
    a.v = base + 2 * width;
    a.qStride = a.kStride = a.vStride = {shape.sq * 3 * width, spec.headDim, 3 * width};
    a.yStride = {shape.sq * width, spec.headDim, width};
    a.sq = int32_t(shape.sq);
    a.sk = int32_t(shape.sk);
    return a;
}

LaunchGeometry launch(Spec const& spec, Shape const& shape)
{
    LaunchGeometry g;
    int64_t const rows = spec.warps * 16;
    g.grid = (shape.sq + rows - 1) / rows;
    g.gridY = shape.heads;
    g.gridZ = shape.batch;
    g.block = spec.warps * 32;
    g.sharedBytes = spec.sharedBytes();
    return g;
}

} // namespace tw::cuda::attention_f16
