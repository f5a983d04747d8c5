// SPDX-License-Identifier: Apache-2.0
// The kernel's text.
#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/common/prelude.h"
#include "kernels/cuda/conv/mma_f32.h"

namespace tw::cuda::conv_f32 {

namespace {

constexpr char const* kText = R"(
constexpr int THREADS = 256, WARPS = 8 / SLICES; // of a slice
constexpr u32 X_BYTES = TILE_M * 128, STAGE_BYTES = (TILE_M + TILE_N) * 128;
struct Output { float* y; float const *bias, *residual; i64 ldy, batchY, ldResidual; i32 m, n; };
struct Div { u64 d; u32 m, s; };
struct Args : Output {
    i32 stepsK, inner, middle, outer;
    float const *x, *filters;
    i64 imageX, gapY, groupX, groupRowY, groupY;
    i32 rowX, columnX, channelX, groupsAcross, groupBias;
    i32 h, w, strideH, strideW, padH, padW, dilationH, dilationW, paddedK;
    Div outH, outW;
};
TW_INLINE int divide(int n, Div const& v) { return int((__umulhi(u32(n), v.m) + u32(n)) >> v.s); }
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
TW_INLINE u32 addressIn(u32 at, u32 rank)
{
    u32 there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    return there;
}
TW_INLINE float4 loadFourOf(u32 at) // what addressIn() gave
{
    float4 v;
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(at) : "memory");
    return v;
}
#else
TW_INLINE u32 splitRank() { return 0; }
TW_INLINE u32 splitCount() { return 1; }
TW_INLINE void splitSync() { __syncthreads(); }
TW_INLINE u32 addressIn(u32 at, u32) { return at; }
TW_INLINE float4 loadFourOf(u32 at) { return loadFour(at); }
#endif

// Where k stands.
struct Taps {
    int inner, middle, outer;
    TW_INLINE Taps(Args const& a, int k)
    {
        int const q = k / a.inner;
        inner = k - q * a.inner;
        outer = q / a.middle;
        middle = q - outer * a.middle;
    }
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
// A pixel's first tap, which may lie outside.
struct Pixel { i64 at; int h, w; };
TW_INLINE Pixel pixelAt(Args const& a, int m)
{
    int const row = divide(m, a.outW), image = divide(row, a.outH);
    Pixel p;
    p.h = (row - image * int(a.outH.d)) * a.strideH - a.padH;
    p.w = (m - row * int(a.outW.d)) * a.strideW - a.padW;
    p.at = i64(image) * a.imageX + i64(p.h) * a.rowX + i64(p.w) * a.columnX;
    if (m >= a.m) p.h = -(1 << 28); // zeros
    return p;
}
// How far a tap is from the first one.
struct Step {
    i64 at;
    int h, w;
    bool known;
    TW_INLINE Step(Args const& a, Taps const& t)
    {
        h = (PLANAR ? t.middle : t.outer) * a.dilationH;
        w = (PLANAR ? t.inner : t.middle) * a.dilationW;
        at = i64(h) * a.rowX + i64(w) * a.columnX + (PLANAR ? i64(t.outer) * a.channelX : t.inner);
        known = t.outer < a.outer;
    }
    TW_INLINE bool isInside(Args const& a, Pixel const& p) const
    {
        return u32(p.h + h) < u32(a.h) && u32(p.w + w) < u32(a.w) && known;
    }
};

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
    TW_INLINE void add(u8 const* x, u8 const* f, int lane)
    {
        u32 const xs = sharedAddress(x), fs = sharedAddress(f);
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
// Each warp of a slice has 64 rows and 32 columns: a lane every 8th and every 4th of them. Lanes 2 i and 2 i + 1 read the
// same rows, lanes i and i ^ 2 the same columns: else loads of 16 bytes take twice as long.
constexpr int WARPS_M = TILE_M / 64, WARPS_N = WARPS / WARPS_M;
constexpr int PITCH = TILE_N + 4;
struct Sums {
    float d[8][8] = {};
    int row, column, first; // of this lane: in the tile, and in k by 4
    TW_INLINE Sums(int warp)
    {
        int const w = warp % WARPS, lane = threadIdx.x % 32;
        row = w % WARPS_M * 64 + lane / 2 % 8;
        column = w / WARPS_M * 32 + lane % 2 + lane / 16 * 2;
        first = warp / WARPS * (8 / SLICES);
    }
    // What four places of k bring: of this lane's rows and columns.
    struct Part { float4 x[8], f[8]; };
    TW_INLINE void take(Part& part, u8 const* stage, int unit) const
    {
        float4 const* const x = reinterpret_cast<float4 const*>(stage + row * 128);
        float4 const* const f = reinterpret_cast<float4 const*>(stage + X_BYTES + column * 128);
        int const k = first + unit, turn = row & 7, even = column & 7;
#pragma unroll
        for (int i = 0; i < 8; ++i) part.x[i] = x[i * 64 + (k ^ turn)];
#pragma unroll
        for (int j = 0; j < 8; ++j) part.f[j] = f[j * 32 + (k ^ even ^ (j % 2 ? 4 : 0))];
    }
    TW_INLINE void add(Part const& part)
    {
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int i = 0; i < 8; ++i) d[i][j] = fmaf(part.x[i].x, part.f[j].x, d[i][j]);
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int i = 0; i < 8; ++i) d[i][j] = fmaf(part.x[i].y, part.f[j].y, d[i][j]);
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int i = 0; i < 8; ++i) d[i][j] = fmaf(part.x[i].z, part.f[j].z, d[i][j]);
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int i = 0; i < 8; ++i) d[i][j] = fmaf(part.x[i].w, part.f[j].w, d[i][j]);
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
TW_INLINE float4 takeFour(float const* from, int left)
{
    if constexpr (ALIGNED) return *reinterpret_cast<float4 const*>(from);
    float4 v = make_float4(from[0], 0, 0, 0);
    if (left > 1) v.y = from[1];
    if (left > 2) v.z = from[2];
    if (left > 3) v.w = from[3];
    return v;
}
TW_INLINE void putFour(float* to, float4 const& v, int left)
{
    if constexpr (ALIGNED) {
        *reinterpret_cast<float4*>(to) = v;
        return;
    }
    to[0] = v.x;
    if (left > 1) to[1] = v.y;
    if (left > 2) to[2] = v.z;
    if (left > 3) to[3] = v.w;
}
TW_INLINE void putFour(u32 at, float4 const& v)
{
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}
TW_INLINE void addFour(float4& v, float4 const& x)
{
    v.x += x.x;
    v.y += x.y;
    v.z += x.z;
    v.w += x.w;
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
    Taps taps(a, begin * 32 + k0);

    auto loadFilters = [&](int step, u32 to) {
#pragma unroll
        for (int i = 0; i < TILE_N * 8 / THREADS; ++i) {
            int const at = tid + i * THREADS, r = at / 8, u = at % 8;
            copyAsync16(to + unitAt(r, u), filters + i64(n0 + r) * a.paddedK + step * 32 + u * 4, n0 + r < a.n);
        }
    };
    auto copyX = [&](u32 to) {
        if constexpr (VECTOR > 1) {
            Step const step(a, taps);
            float const* const from = x + step.at;
#pragma unroll
            for (int i = 0; i < PIXELS; ++i) {
                bool const inside = step.isInside(a, pixel[i]);
                u32 const at = to + unitAt(row0 + i * STEP, k0 / 4) + k0 % 4 * 4;
                if constexpr (VECTOR == 4) copyAsync16(at, from + pixel[i].at, inside);
                else copyAsync8(at, from + pixel[i].at, inside);
            }
        } else {
            Taps t = taps;
#pragma unroll
            for (int i = 0; i < LOADS; ++i) {
                Step const step(a, t);
                copyAsync4(to + unitAt(row0, (k0 + i) / 4) + (k0 + i) % 4 * 4, x + step.at + pixel[0].at,
                           step.isInside(a, pixel[0]));
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
#if $tf32$
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
        u8 const* const xs = raw + stage * STAGE_BYTES;
        sums.add(xs, xs + X_BYTES, lane);
        if (++stage == STAGES) stage = 0;
        if (++ahead == STAGES) ahead = 0;
    }
#else
    // Registers are filled while others are multiplied, over the end of a step too: its last part is in registers when
    // all warps meet and the stage is given away.
    int stage = STAGES - 1;
    auto nextStage = [&](int step) { // that of this step is ready
        copyWait<STAGES - 2>();
        __syncthreads();
        if (step + STAGES - 1 < end) {
            u32 const to = base + stage * STAGE_BYTES;
            loadFilters(step + STAGES - 1, to + X_BYTES);
            copyX(to);
        }
        copyCommit();
        if (++stage == STAGES) stage = 0;
    };
    Sums::Part even, odd;
    nextStage(begin);
    sums.take(even, raw + stage * STAGE_BYTES, 0);
#pragma unroll 1
    for (int step = begin; step < end; ++step)
#pragma unroll 1
        for (int unit = 0; unit < 8 / SLICES; unit += 2) {
            sums.take(odd, raw + stage * STAGE_BYTES, unit + 1);
            sums.add(even);
            bool const isLast = unit + 2 == 8 / SLICES;
            if (isLast) nextStage(step + 1);
            sums.take(even, raw + stage * STAGE_BYTES, isLast ? 0 : unit + 2); // behind the last step: not used
            sums.add(odd);
        }
#endif
    copyWait<0>();

    // Each block writes its part of the tile's rows: a thread four columns, of up to four rows at once.
    constexpr int ACROSS = TILE_N / 4, ROWS = THREADS / ACROSS, AT_ONCE = 4;
    int const rows = TILE_M / split, row1 = tid / ACROSS, column = n0 + tid % ACROSS * 4, left = a.n - column;
    int const first = m0 + rank * rows, last = min(first + rows, a.m);
    float4 bias = make_float4(0, 0, 0, 0), add[AT_ONCE];
    if (a.bias && left > 0) bias = takeFour(a.bias + group * a.groupBias + column, left);
    i64 const base0 = i64(group / a.groupsAcross) * a.groupRowY + i64(group % a.groupsAcross) * a.groupY + column;
    auto fetch = [&](int m) {
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            add[i] = make_float4(0, 0, 0, 0);
            if (m + i * ROWS < last && left > 0)
                add[i] = takeFour(a.residual + base0 + i64(m + i * ROWS) * int(a.ldResidual), left);
        }
    };
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) add[i] = make_float4(0, 0, 0, 0);
    if (a.residual) fetch(first + row1);
    __syncthreads(); // all stages are read
    sums.put(base + warp / WARPS * SUMS_BYTES, lane);
    __syncthreads();
    if (split > 1) {
        // Slices first, in place: what others read is little.
        if constexpr (SLICES > 1) {
            u32 at = base + (row1 * PITCH + tid % ACROSS * 4) * 4;
#pragma unroll 2
            for (int r = row1; r < TILE_M; r += ROWS, at += ROWS * PITCH * 4) {
                float4 v = loadFour(at);
#pragma unroll
                for (int s = 1; s < SLICES; ++s) addFour(v, loadFour(at + s * SUMS_BYTES));
                putFour(at, v);
            }
        }
        splitSync();
    }
    u32 from = base + ((rank * rows + row1) * PITCH + tid % ACROSS * 4) * 4;
#pragma unroll 1
    for (int m = first + row1; m < last; m += ROWS * AT_ONCE, from += ROWS * AT_ONCE * PITCH * 4) {
        float4 v[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) v[i] = bias;
        if (split > 1) {
#pragma unroll 1
            for (int r = 0; r < split; r += 2) {
                u32 const first = addressIn(from, r), second = addressIn(from, r + 1);
#pragma unroll
                for (int i = 0; i < AT_ONCE; ++i)
                    if (m + i * ROWS < last) {
                        float4 const other = loadFourOf(second + i * ROWS * PITCH * 4);
                        addFour(v[i], loadFourOf(first + i * ROWS * PITCH * 4));
                        addFour(v[i], other);
                    }
            }
        } else {
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i)
                if (m + i * ROWS < last)
#pragma unroll
                    for (int s = 0; s < SLICES; ++s) addFour(v[i], loadFour(from + i * ROWS * PITCH * 4 + s * SUMS_BYTES));
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            int const row = m + i * ROWS;
            if (row >= last || left <= 0) continue;
            addFour(v[i], add[i]);
            v[i].x = activate(v[i].x);
            v[i].y = activate(v[i].y);
            v[i].z = activate(v[i].z);
            v[i].w = activate(v[i].w);
            float* to = a.y + base0 + i64(row) * int(a.ldy);
            if (a.gapY) to += i64(divide(row, a.outW)) * a.gapY;
            putFour(to, v[i], left);
        }
        if (a.residual) fetch(m + ROWS * AT_ONCE);
    }
    __syncwarp();
    if (split > 1) splitSync(); // others have read this block's sums
}
)";

} // namespace

std::string source(Spec const& s)
{
    return include("kernels/cuda/common/matrix.cuh") + s.activation + constant("TILE_M", s.tileM) +
           constant("TILE_N", s.tileN) + constant("STAGES", s.stages) + constant("VECTOR", s.vector) +
           constant("SLICES", s.slices()) + constant("BLOCKS_PER_SM", s.isAlone() ? 1 : 2) +
           "constexpr bool PLANAR = " + (s.planar ? "true" : "false") +
           ", ALIGNED = " + (s.aligned ? "true" : "false") + ";\n" + expand(kText, {{"tf32", s.tf32 ? "1" : "0"}}) +
           "static_assert(sizeof(Args) == " + std::to_string(sizeof(Args)) + ", \"layout of Args\");\n";
}

} // namespace tw::cuda::conv_f32
