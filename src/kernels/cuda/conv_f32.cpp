// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv_f32.h"

#include <algorithm>
#include <cstring>

#include "kernels/cuda/hopper.h"

namespace tw::cuda::conv_f32 {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kRowBytes = kStepK * 4;

constexpr char const* kText = R"(
constexpr int THREADS = 256, WARPS = 8 / SLICES; // of a slice
constexpr u32 X_BYTES = TILE_M * 128, STAGE_BYTES = (TILE_M + TILE_N) * 128;
struct Output { float* y; float const *bias, *residual; i64 ldy, batchY, ldResidual; i32 m, n; };
struct Args : Output {
    i32 stepsK, inner, middle, outer;
    float const *x, *filters;
    i64 imageX, rowX, columnX, channelX, rowY, groupX, groupRowY, groupY;
    i32 groupsAcross, groupBias;
    i32 h, w, outH, outW, strideH, strideW, padH, padW, dilationH, dilationW, paddedK, aligned;
};
// Rows of 128 bytes; 8 rows at the same k lie in different banks.
TW_INLINE u32 unitAt(int row, int unit) { return row * 128 + (unit ^ (row & 7)) * 16; }
TW_INLINE float4 loadFour(u32 at)
{
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(at) : "memory");
    return v;
}
TW_INLINE void storeTwo(u32 at, float a, float b)
{
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(a), "f"(b) : "memory");
}

// Blocks that share a tile.
#if __CUDA_ARCH__ >= 900
TW_INLINE u32 splitRank() { u32 r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
TW_INLINE u32 splitCount() { u32 r; asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(r)); return r; }
TW_INLINE void splitSync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
TW_INLINE float4 loadFourOf(u32 at, u32 rank)
{
    float4 v;
    asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %4, %5;\n"
                 "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n}"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(at), "r"(rank) : "memory");
    return v;
}
#else
TW_INLINE u32 splitRank() { return 0; }
TW_INLINE u32 splitCount() { return 1; }
TW_INLINE void splitSync() { __syncthreads(); }
TW_INLINE float4 loadFourOf(u32 at, u32) { return loadFour(at); }
#endif

// Where k stands.
struct Taps {
    int inner, middle, outer;
    TW_INLINE void move(Args const& a, int by)
    {
        inner += by;
        while (inner >= a.inner) {
            inner -= a.inner;
            if (++middle == a.middle) { middle = 0; ++outer; }
        }
    }
    TW_INLINE void next(Args const& a)
    {
        if (++inner < a.inner) return;
        inner = 0;
        if (++middle == a.middle) { middle = 0; ++outer; }
    }
};
// A pixel's first tap.
struct Pixel { i64 at; int h, w; };
TW_INLINE Pixel pixelAt(Args const& a, int m)
{
    int const row = m / a.outW, image = row / a.outH;
    Pixel p;
    p.h = m < a.m ? (row - image * a.outH) * a.strideH - a.padH : -(1 << 28); // outside: zeros
    p.w = (m - row * a.outW) * a.strideW - a.padW;
    p.at = i64(image) * a.imageX;
    return p;
}
// Whether that tap is inside the image, and where.
TW_INLINE bool tapAt(Args const& a, Pixel const& p, Taps const& t, float const* x, float const*& from)
{
    int const h = p.h + (PLANAR ? t.middle : t.outer) * a.dilationH, w = p.w + (PLANAR ? t.inner : t.middle) * a.dilationW;
    int const c = PLANAR ? t.outer : t.inner;
    from = x + p.at + h * a.rowX + w * a.columnX + c * a.channelX;
    return u32(h) < u32(a.h) && u32(w) < u32(a.w) && t.outer < a.outer;
}

#if $tf32$
// Each warp of a slice has 32 rows; registers are laid out as mma.sync wants them.
constexpr int WARPS_M = TILE_M / 32, WARPS_N = WARPS / WARPS_M, WARP_N = TILE_N / WARPS_N;
constexpr int PITCH = TILE_N + 8; // of sums: halves of a warp store 8 bytes each without conflicts
TW_INLINE u32 rounded(u32 v) { u32 r; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(__uint_as_float(v))); return r; }
TW_INLINE void multiply(float (&d)[4], u32 const (&a)[4], u32 b0, u32 b1) // d [16, 8] += a [16, 8] b [8, 8]
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
struct Sums {
    float d[2][WARP_N / 8 * 4] = {};
    int row, column, first; // of this warp: in the tile, and in k by 8
    TW_INLINE Sums(int warp)
    {
        int const w = warp % WARPS;
        row = w % WARPS_M * 32;
        column = w / WARPS_M * WARP_N;
        first = warp / WARPS * (4 / SLICES);
    }
    TW_INLINE void add(u32 xs, u32 fs, int lane)
    {
#pragma unroll
        for (int i = 0; i < 4 / SLICES; ++i) {
            int const k = first + i;
            u32 fx[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                loadMatrix4(fx[i], xs + unitAt(row + i * 16 + lane % 16, k * 2 + lane / 16));
#pragma unroll
                for (int e = 0; e < 4; ++e) fx[i][e] = rounded(fx[i][e]);
            }
#pragma unroll
            for (int j = 0; j < WARP_N / 16; ++j) {
                u32 b[4];
                loadMatrix4(b, fs + unitAt(column + j * 16 + lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2));
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    multiply(*reinterpret_cast<float(*)[4]>(&d[i][j * 8]), fx[i], b[0], b[1]);
                    multiply(*reinterpret_cast<float(*)[4]>(&d[i][j * 8 + 4]), fx[i], b[2], b[3]);
                }
            }
        }
    }
    TW_INLINE void put(u32 to, int lane) const
    {
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int j = 0; j < WARP_N / 8; ++j)
#pragma unroll
                for (int h = 0; h < 2; ++h)
                    storeTwo(to + ((row + i * 16 + h * 8 + lane / 4) * PITCH + column + j * 8 + lane % 4 * 2) * 4,
                             d[i][j * 4 + h * 2], d[i][j * 4 + h * 2 + 1]);
    }
};
#else
// Each warp of a slice has 64 rows and 32 columns: a lane every 8th and every 4th of them.
constexpr int WARPS_M = TILE_M / 64, WARPS_N = WARPS / WARPS_M;
constexpr int PITCH = TILE_N + 4;
struct Sums {
    float d[8][8] = {};
    int row, column, first; // of this lane: in the tile, and in k by 4
    TW_INLINE Sums(int warp)
    {
        int const w = warp % WARPS, lane = threadIdx.x % 32;
        row = w % WARPS_M * 64 + lane % 8;
        column = w / WARPS_M * 32 + lane / 8;
        first = warp / WARPS * (8 / SLICES);
    }
    TW_INLINE void add(u32 xs, u32 fs, int)
    {
#pragma unroll 2
        for (int u = 0; u < 8 / SLICES; ++u) {
            float4 x[8];
#pragma unroll
            for (int i = 0; i < 8; ++i) x[i] = loadFour(xs + unitAt(row + i * 8, first + u));
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                float4 const f = loadFour(fs + unitAt(column + j * 4, first + u));
#pragma unroll
                for (int i = 0; i < 8; ++i) d[i][j] = fmaf(x[i].x, f.x, d[i][j]);
#pragma unroll
                for (int i = 0; i < 8; ++i) d[i][j] = fmaf(x[i].y, f.y, d[i][j]);
#pragma unroll
                for (int i = 0; i < 8; ++i) d[i][j] = fmaf(x[i].z, f.z, d[i][j]);
#pragma unroll
                for (int i = 0; i < 8; ++i) d[i][j] = fmaf(x[i].w, f.w, d[i][j]);
            }
        }
    }
    TW_INLINE void put(u32 to, int) const
    {
#pragma unroll
        for (int i = 0; i < 8; ++i)
#pragma unroll
            for (int j = 0; j < 8; ++j)
                storeShared(to + ((row + i * 8) * PITCH + column + j * 4) * 4, __float_as_uint(d[i][j]));
    }
};
#endif
constexpr u32 SUMS_BYTES = TILE_M * PITCH * 4; // of a slice

// Four columns of y, or as many as there are.
TW_INLINE float4 takeFour(float const* from, int left, bool aligned)
{
    float4 v = make_float4(0, 0, 0, 0);
    if (aligned) return *reinterpret_cast<float4 const*>(from);
    v.x = from[0];
    if (left > 1) v.y = from[1];
    if (left > 2) v.z = from[2];
    if (left > 3) v.w = from[3];
    return v;
}

TW_KERNEL __launch_bounds__(THREADS, BLOCKS_PER_SM) convolve(const __grid_constant__ Args a)
{
    extern __shared__ __align__(128) u8 raw[];
    u32 const base = sharedAddress(raw);
    int const tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    int const split = splitCount(), rank = splitRank();
    int const m0 = blockIdx.x / split * TILE_M, n0 = blockIdx.y * TILE_N, group = blockIdx.z;
    int const begin = int(i64(a.stepsK) * rank / split), end = int(i64(a.stepsK) * (rank + 1) / split);
    float const* const x = a.x + i64(group) * a.groupX;
    float const* const filters = a.filters + i64(group) * a.n * a.paddedK;
    releaseDependents();

    // x: each thread has one place in k and PIXELS rows.
    constexpr int PER_ROW = 32 / VECTOR, STEP = VECTOR == 1 ? 0 : THREADS / PER_ROW;
    constexpr int PIXELS = VECTOR == 1 ? 1 : TILE_M / (THREADS / PER_ROW), LOADS = VECTOR == 1 ? TILE_M * 32 / THREADS : 1;
    int const row0 = VECTOR == 1 ? tid % TILE_M : tid / PER_ROW, k0 = VECTOR == 1 ? tid / TILE_M * LOADS : tid % PER_ROW * VECTOR;
    Pixel pixel[PIXELS];
#pragma unroll
    for (int i = 0; i < PIXELS; ++i) pixel[i] = pixelAt(a, m0 + row0 + i * STEP);
    Taps taps = {0, 0, 0};
    taps.move(a, begin * 32 + k0);

    auto loadFilters = [&](int step, u32 to) {
#pragma unroll
        for (int i = 0; i < TILE_N * 8 / THREADS; ++i) {
            int const at = tid + i * THREADS, r = at / 8, u = at % 8;
            copyAsync16(to + unitAt(r, u), filters + i64(n0 + r) * a.paddedK + step * 32 + u * 4, n0 + r < a.n);
        }
    };
    auto copyX = [&](u32 to) {
        if constexpr (VECTOR > 1) {
#pragma unroll
            for (int i = 0; i < PIXELS; ++i) {
                float const* from;
                bool const inside = tapAt(a, pixel[i], taps, x, from);
                u32 const at = to + unitAt(row0 + i * STEP, k0 / 4) + k0 % 4 * 4;
                if constexpr (VECTOR == 4) copyAsync16(at, from, inside);
                else copyAsync8(at, from, inside);
            }
        } else {
            Taps t = taps;
#pragma unroll
            for (int i = 0; i < LOADS; ++i) {
                float const* from;
                bool const inside = tapAt(a, pixel[0], t, x, from);
                copyAsync4(to + unitAt(row0, (k0 + i) / 4) + (k0 + i) % 4 * 4, from, inside);
                t.next(a);
            }
        }
        taps.move(a, 32);
    };

    // The first steps; filters are constant, x may belong to the kernel before.
#pragma unroll 1
    for (int s = 0; s < STAGES - 1; ++s)
        if (begin + s < end) loadFilters(begin + s, base + s * STAGE_BYTES + X_BYTES);
    waitForPrevious();
#pragma unroll 1
    for (int s = 0; s < STAGES - 1; ++s) {
        if (begin + s < end) copyX(base + s * STAGE_BYTES);
        copyCommit();
    }

    Sums sums(warp);
    int stage = 0, ahead = STAGES - 1;
    for (int step = begin; step < end; ++step) {
        copyWait<STAGES - 2>();
        __syncthreads();
        if (step + STAGES - 1 < end) {
            u32 const next = base + ahead * STAGE_BYTES;
            loadFilters(step + STAGES - 1, next + X_BYTES);
            copyX(next);
        }
        copyCommit();
        u32 const xs = base + stage * STAGE_BYTES;
        sums.add(xs, xs + X_BYTES, lane);
        if (++stage == STAGES) stage = 0;
        if (++ahead == STAGES) ahead = 0;
    }
    copyWait<0>();

    // Each block writes its part of the tile's rows, four columns a thread, up to four times at once.
    constexpr int ACROSS = TILE_N / 4, AT_ONCE = 4;
    int const rows = TILE_M / split, count = rows * ACROSS;
    bool const aligned = a.aligned != 0;
    float* const y = a.y + i64(group / a.groupsAcross) * a.groupRowY + i64(group % a.groupsAcross) * a.groupY;
    float const* const residual = a.residual ? a.residual + i64(group % a.groupsAcross) * a.groupY : nullptr;
    float4 add[AT_ONCE];
    auto fetch = [&](int first) {
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            int const at = first + i * THREADS, row = m0 + rank * rows + at / ACROSS, column = n0 + at % ACROSS * 4;
            add[i] = make_float4(0, 0, 0, 0);
            if (residual && at < count && row < a.m && column < a.n)
                add[i] = takeFour(residual + i64(row) * a.ldResidual + column, a.n - column, aligned);
        }
    };
    fetch(tid);
    __syncthreads(); // all stages are read
    sums.put(base + warp / WARPS * SUMS_BYTES, lane);
    splitSync();
    for (int first = tid; first < count; first += AT_ONCE * THREADS) {
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            int const at = first + i * THREADS, row = rank * rows + at / ACROSS, column = n0 + at % ACROSS * 4, m = m0 + row;
            if (at >= count || m >= a.m || column >= a.n) continue;
            u32 const from = base + (row * PITCH + at % ACROSS * 4) * 4;
            float4 v = make_float4(0, 0, 0, 0);
            for (int r = 0; r < split; ++r)
#pragma unroll
                for (int s = 0; s < SLICES; ++s) {
                    float4 const part = loadFourOf(from + s * SUMS_BYTES, r);
                    v.x += part.x;
                    v.y += part.y;
                    v.z += part.z;
                    v.w += part.w;
                }
            int const left = a.n - column;
            if (a.bias) {
                float4 const b = takeFour(a.bias + group * a.groupBias + column, left, aligned);
                v.x += b.x;
                v.y += b.y;
                v.z += b.z;
                v.w += b.w;
            }
            v.x = activate(v.x + add[i].x);
            v.y = activate(v.y + add[i].y);
            v.z = activate(v.z + add[i].z);
            v.w = activate(v.w + add[i].w);
            int const line = m / a.outW;
            float* const to = y + i64(line) * a.rowY + i64(m - line * a.outW) * a.ldy + column;
            if (aligned) *reinterpret_cast<float4*>(to) = v;
            else {
                to[0] = v.x;
                if (left > 1) to[1] = v.y;
                if (left > 2) to[2] = v.z;
                if (left > 3) to[3] = v.w;
            }
        }
        if (first + AT_ONCE * THREADS < count) fetch(first + AT_ONCE * THREADS);
    }
    __syncwarp();
    if (split > 1) splitSync(); // others have read this block's sums
}
)";

int64_t tilesOf(int64_t v, int64_t tile)
{
    return (v + tile - 1) / tile;
}

} // namespace

int Spec::slices() const
{
    // Of the 8 warps each has 32 x 32 sums (64 with the largest tile), or 64 x 32.
    int const warps = tf32 ? std::min(8, tileM / 32 * (tileN / 32)) : tileM / 64 * (tileN / 32);
    return 8 / warps;
}

int64_t Spec::sharedBytes() const
{
    int64_t const steps = int64_t(stages) * (tileM + tileN) * kRowBytes,
                  sums = int64_t(slices()) * tileM * (tileN + (tf32 ? 8 : 4)) * 4;
    return std::max(steps, sums);
}

std::string Spec::name() const
{
    return std::string(tf32 ? "conv_tf32_" : "conv_f32_") + std::to_string(tileM) + "x" + std::to_string(tileN) + "x" +
           std::to_string(kStepK) + "_s" + std::to_string(stages) + "_v" + std::to_string(vector) +
           (planar ? "_nchw" : "") + "_sm80";
}

char const* unsupported(Spec const& s)
{
    if ((s.tileM != 64 && s.tileM != 128) || (s.tileN != 32 && s.tileN != 64 && s.tileN != 128))
        return "tiles have 64 or 128 pixels and 32, 64 or 128 filters";
    if (s.tf32 && s.slices() > 4)
        return "a step has 4 parts that warps can share";
    if (s.stages < 2 || s.stages > 6 || s.sharedBytes() > 160 * 1024)
        return "2 to 6 stages";
    if (s.vector != 1 && s.vector != 2 && s.vector != 4)
        return "copies of 1, 2 or 4 elements";
    if (s.split != 1 && s.split != 2 && s.split != 4 && s.split != 8)
        return "1, 2, 4 or 8 blocks share a tile";
    return nullptr;
}

int vectorOf(Shape const& g, bool planar)
{
    for (int v : {4, 2})
        if (planar ? g.s % v == 0 && g.w % v == 0 && g.strideW % v == 0 && g.padW % v == 0 && g.dilationW == 1
                   : g.c / g.groups % v == 0)
            return v;
    return 1;
}

int64_t paddedK(Shape const& g)
{
    return tilesOf(g.r * g.s * (g.c / g.groups), kStepK) * kStepK;
}

float roundToTf32(float v)
{
    uint32_t bits;
    std::memcpy(&bits, &v, sizeof(bits));
    if ((bits & 0x7F800000u) != 0x7F800000u) // infinities and NaN stay
        bits = (bits + 0x1000u) & ~0x1FFFu;
    std::memcpy(&v, &bits, sizeof(bits));
    return v;
}

void roundAllToTf32(std::string& bytes)
{
    auto* const values = reinterpret_cast<float*>(bytes.data());
    std::transform(values, values + bytes.size() / sizeof(float), values, roundToTf32);
}

char const* unsupported(Spec const& s, Shape const& g)
{
    if (char const* const why = unsupported(s))
        return why;
    constexpr int64_t kLimit = int64_t(1) << 30;
    if (g.n < 1 || g.c < 1 || g.k < 1 || g.groups < 1 || g.c % g.groups || g.k % g.groups || g.groups > 65535)
        return "channels and filters come in whole groups, up to 65535";
    if (g.n * g.outH * g.outW > kLimit || g.h > kLimit || g.w > kLimit || paddedK(g) > kLimit || g.k > kLimit ||
        g.k / g.groups / s.tileN >= 65535)
        return "sizes count below 2^30";
    if (s.vector > vectorOf(g, s.planar))
        return "x has fewer elements in a row than the copies take";
    if (s.split > paddedK(g) / kStepK)
        return "k has fewer steps than the blocks that would share them";
    return nullptr;
}

std::string source(Spec const& s)
{
    auto constant = [](char const* name, int64_t value) {
        return "constexpr int " + std::string(name) + " = " + std::to_string(value) + ";\n";
    };
    // 64 sums and what they are made of leave room for one block of 8 warps.
    bool const isLarge = !s.tf32 || s.tileM * s.tileN > 128 * 64;
    std::string text = kText;
    size_t const at = text.find("$tf32$");
    text.replace(at, 6, s.tf32 ? "1" : "0");
    return matrixPrelude() + s.activation + constant("TILE_M", s.tileM) + constant("TILE_N", s.tileN) +
           constant("STAGES", s.stages) + constant("VECTOR", s.vector) + constant("SLICES", s.slices()) +
           constant("BLOCKS_PER_SM", isLarge ? 1 : 2) + "constexpr bool PLANAR = " + (s.planar ? "true" : "false") +
           ";\n" + text + "static_assert(sizeof(Args) == " + std::to_string(sizeof(Args)) + ", \"layout of Args\");\n";
}

Launch launch(Spec const& s, Shape const& g)
{
    Launch l;
    Args& a = l.args;
    int64_t const groupC = g.c / g.groups, groupK = g.k / g.groups;
    a.m = int32_t(g.n * g.outH * g.outW);
    a.n = int32_t(groupK);
    a.ldy = a.ldResidual = g.k;
    a.rowY = a.ldy * g.outW;
    a.groupX = groupC * (s.planar ? g.h * g.w : 1);
    a.groupY = groupK; // a group's filters are neighbours
    a.groupsAcross = int32_t(g.groups);
    a.groupBias = int32_t(groupK);
    a.paddedK = int32_t(paddedK(g));
    a.stepsK = a.paddedK / kStepK;
    a.inner = int32_t(s.planar ? g.s : groupC);
    a.middle = int32_t(s.planar ? g.r : g.s);
    a.outer = int32_t(s.planar ? groupC : g.r);
    a.imageX = g.h * g.w * g.c;
    a.channelX = s.planar ? g.h * g.w : 1;
    a.columnX = s.planar ? 1 : g.c;
    a.rowX = a.columnX * g.w;
    a.h = int32_t(g.h);
    a.w = int32_t(g.w);
    a.outH = int32_t(g.outH);
    a.outW = int32_t(g.outW);
    a.strideH = g.strideH;
    a.strideW = g.strideW;
    a.padH = g.padH;
    a.padW = g.padW;
    a.dilationH = g.dilationH;
    a.dilationW = g.dilationW;
    a.aligned = groupK % 4 == 0;
    l.geometry.grid = tilesOf(a.m, s.tileM) * s.split;
    l.geometry.gridY = tilesOf(groupK, s.tileN);
    l.geometry.gridZ = g.groups;
    l.geometry.block = kThreads;
    l.geometry.cluster = s.split;
    l.geometry.sharedBytes = s.sharedBytes();
    return l;
}

double estimateUs(Spec const& s, Shape const& g, int multiprocessors)
{
    // Clocks: products at the rate that a multiprocessor reaches, 50 bytes of operands, waiting for the step.
    constexpr double kClocksPerUs = 1700, kTf32Rate = 650, kRate = 95, kBytes = 50, kWait = 60;
    int64_t const groupK = g.k / g.groups, steps = tilesOf(paddedK(g) / kStepK, s.split);
    int64_t const blocks = tilesOf(g.n * g.outH * g.outW, s.tileM) * tilesOf(groupK, s.tileN) * g.groups * s.split;
    double const products = double(s.tileM) * s.tileN * kStepK / (s.tf32 ? kTf32Rate : kRate);
    double const bytes = double(s.tileM + s.tileN) * kRowBytes / kBytes;
    double const step = std::max(products, bytes) + kWait + (s.vector < 4 ? s.tileM * 4 : 0);
    double const write = double(s.tileM) * s.tileN / s.split * 4 / 32 + double(s.tileM) * s.tileN / 32 + 600 +
                         (s.split > 1 ? 1200 + 200 * s.split : 0);
    double const rounds = double(tilesOf(blocks, multiprocessors));
    // A block's first operands are 1500 clocks on their way.
    return (2000 + 1500 + rounds * (double(steps) * step + write)) / kClocksPerUs;
}

std::vector<Spec> candidates(Spec const& base, Shape const& g, int multiprocessors, bool clusters, size_t most,
                             size_t mostTexts)
{
    struct Choice
    {
        double us;
        Spec spec;
    };
    std::vector<Choice> all;
    struct Tile
    {
        int m, n, stages;
    };
    static constexpr Tile kTiles[] = {{128, 128, 4}, {128, 64, 4}, {64, 64, 4}, {64, 32, 4}, {128, 32, 4}};
    for (Tile const& t : kTiles)
        for (int split : {1, 2, 4, 8}) {
            if (split > 1 && !clusters)
                continue;
            Spec s = base;
            s.tileM = t.m;
            s.tileN = t.n;
            s.stages = t.stages;
            s.split = split;
            if (!unsupported(s, g))
                all.push_back({estimateUs(s, g, multiprocessors), s});
        }
    std::stable_sort(all.begin(), all.end(), [](Choice const& a, Choice const& b) { return a.us < b.us; });
    std::vector<Spec> list;
    std::vector<std::string> texts;
    for (Choice const& c : all) {
        bool const isKnown = std::find(texts.begin(), texts.end(), c.spec.name()) != texts.end();
        if (list.size() >= most || (!isKnown && texts.size() >= mostTexts))
            continue;
        if (!isKnown)
            texts.push_back(c.spec.name());
        list.push_back(c.spec);
    }
    return list;
}

} // namespace tw::cuda::conv_f32
