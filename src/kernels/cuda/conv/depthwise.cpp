// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv/depthwise.h"

namespace tw::cuda {

// What both types share: a block walks over tiles of y with the same channels. The tile of x [IN_H, IN_W, VECTORS] that
// the next one needs is copied meanwhile, zeros outside of x; y leaves through shared memory. Vectors of a pixel change
// places by the pixel's column, so that 8 columns' same vector lie in 8 different groups of banks.
char const* const kDepthwiseTile = R"(
struct Div { u64 d; u32 m, s; };
struct Params {
    void const *x, *filters, *bias, *residual; void* y; Div slices, tilesW, tilesH; u32 tiles, step;
    i64 pixelX, pixelY, pixelResidual; i32 vectors, h, w, outH, outW, padH, padW, pad;
};
TW_INLINE u32 divide(u32 n, Div const& v) { return (__umulhi(n, v.m) + n) >> v.s; }
constexpr int R = $r$, S = $s$, STEP_H = $strideH$, STEP_W = $strideW$, DIL_H = $dilationH$, DIL_W = $dilationW$;
constexpr int ACROSS = $across$, ROWS = $rows$, VECTORS = $vectors$, THREADS = VECTORS * 32;
constexpr int TILE_W = ACROSS * 4, TILE_H = 16 / ACROSS * ROWS;                    // outputs
constexpr int NEED_W = (TILE_W - 1) * STEP_W + (S - 1) * DIL_W + 1;                // columns of x
constexpr int IN_H = (TILE_H - 1) * STEP_H + (R - 1) * DIL_H + 1;
constexpr int LOG = VECTORS == 8 ? 3 : VECTORS == 4 ? 2 : VECTORS == 2 ? 1 : 0;    // 0: not a power of two
constexpr int PITCH = LOG ? VECTORS : VECTORS | 1;                                 // vectors from column to column
// Columns of x that make one output of each of 4 neighbours, in groups of 4.
constexpr int GROUPS = (3 * STEP_W + (S - 1) * DIL_W + 4) / 4;
constexpr bool IS_PAIR = $pair$; // a lane's two strips are neighbours
// A column's bit that says which of two groups of 4 columns, read at a time, it is in.
template <int STEP> constexpr int FAR = (STEP >= 4 ? 4 : STEP >= 2 ? 3 : 2) + IS_PAIR;
// Bytes behind the row's beginning.
template <int STEP> TW_INLINE constexpr int placeOf(int column, int vector)
{
    if constexpr (LOG == 0) return (column * PITCH + (IS_PAIR ? (column >> FAR<STEP>) * 4 : 0) + vector) * 16;
    int const turn = (column & 3) | (column >> FAR<STEP> & 1) << 2;
    return (column * VECTORS + (vector ^ (turn >> (3 - LOG)))) * 16;
}
constexpr int IN_W = $inW$, ROW = $rowX$, TILE = IN_H * ROW, ROW_Y = $rowY$; // bytes of shared memory
typedef $t$ T;
constexpr int V = 16 / int(sizeof(T)); // channels of a vector
struct Tile { int image, h0, w0; }; // of y
TW_INLINE Tile tileOf(Params const& p, u32 i)
{
    u32 const row = divide(i, p.tilesW), image = divide(row, p.tilesH);
    return {int(image), int(row - image * u32(p.tilesH.d)) * TILE_H, int(i - row * u32(p.tilesW.d)) * TILE_W};
}
// COUNT columns from FIRST on: each thread has one, in every STEPth row.
template <int FIRST, int COUNT> TW_INLINE void takeColumns(Params const& p, Tile const& t, u32 to, int vector0)
{
    constexpr int STEP = 32 / COUNT;
    int const vector = threadIdx.x % VECTORS, i = threadIdx.x / VECTORS, column = FIRST + i % COUNT;
    if (COUNT * STEP < 32 && i >= COUNT * STEP) return;
    int const h0 = t.h0 * STEP_H - p.padH + i / COUNT, w = t.w0 * STEP_W - p.padW + column;
    bool const isColumn = column < NEED_W && u32(w) < u32(p.w) && vector0 + vector < p.vectors;
    T const* x = static_cast<T const*>(p.x) + ((i64(t.image) * p.h + h0) * p.w + w) * p.pixelX + (vector0 + vector) * V;
    i64 const step = i64(STEP) * p.w * p.pixelX;
    to += i / COUNT * ROW + placeOf<STEP_W>(column, vector);
#pragma unroll 6
    for (int row = 0; row < IN_H; row += STEP) {
        if (IN_H % STEP == 0 || row + i / COUNT < IN_H) {
            bool const valid = isColumn && u32(h0 + row) < u32(p.h);
            copyAsync16(to + row * ROW, x, valid);
        }
        x += step;
    }
}
TW_INLINE void takeTile(Params const& p, Tile const& t, u32 to, int vector0)
{
    if constexpr (IN_W <= 32) takeColumns<0, IN_W>(p, t, to, vector0);
    else {
        takeColumns<0, 32>(p, t, to, vector0);
        takeColumns<32, (IN_W > 32 ? IN_W - 32 : 32)>(p, t, to, vector0);
    }
}
TW_INLINE Unit residualAt(Params const& p, Tile const& t, int h, int w, int vector)
{
    if (t.h0 + h >= p.outH || t.w0 + w >= p.outW || vector >= p.vectors) return Unit{};
    i64 const pixel = (i64(t.image) * p.outH + t.h0 + h) * p.outW + t.w0 + w;
    return *reinterpret_cast<Unit const*>(static_cast<T const*>(p.residual) + pixel * p.pixelResidual + vector * V);
}
// A plain store behind the first of an unrolled loop becomes four, of a word each.
TW_INLINE void storeWhole(T* to, Unit const& v)
{
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.v[0]), "r"(v.v[1]), "r"(v.v[2]), "r"(v.v[3]) : "memory");
}
TW_INLINE void putTile(Params const& p, Tile const& t, u32 from, int vector0)
{
    constexpr int STEP = 32 / TILE_W;
    int const vector = threadIdx.x % VECTORS, i = threadIdx.x / VECTORS, column = i % TILE_W;
    int const h0 = t.h0 + i / TILE_W, w = t.w0 + column;
    if (w >= p.outW || vector0 + vector >= p.vectors) return;
    T* y = static_cast<T*>(p.y) + ((i64(t.image) * p.outH + h0) * p.outW + w) * p.pixelY + (vector0 + vector) * V;
    i64 const step = i64(STEP) * p.outW * p.pixelY;
    from += i / TILE_W * ROW_Y + placeOf<1>(column, vector);
    constexpr int COUNT = TILE_H / STEP; // 2 ROWS
    Unit v[COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; ++k) v[k] = loadSharedUnit(from + k * STEP * ROW_Y);
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        if (h0 + k * STEP < p.outH) storeWhole(y, v[k]);
        y += step;
    }
}
$element$
TW_KERNEL __launch_bounds__(THREADS, $blocks$) depthwise(const __grid_constant__ Params p)
{
    extern __shared__ __align__(128) unsigned char shared[];
    u32 const first = sharedAddress(shared), staged = first + TILE * 2;
    u32 const place = divide(blockIdx.x, p.slices);
    int const vector0 = int(blockIdx.x - place * u32(p.slices.d)) * VECTORS;
    waitForPrevious();
    releaseDependents();
    Tile tile = tileOf(p, place);
    takeTile(p, tile, first, vector0);
    copyCommit();
    Worker worker;
    worker.begin(p, vector0);
    int turn = 0;
    for (u32 i = place; i < p.tiles; i += p.step) {
        Tile const next = tileOf(p, i + p.step);
        if (i + p.step < p.tiles) takeTile(p, next, first + (turn ^ 1) * TILE, vector0);
        copyCommit();
        copyWait<1>();
        __syncthreads();
        bool const again = __syncthreads_or(worker.compute(p, tile, first + turn * TILE, staged, vector0));
        putTile(p, tile, staged, vector0);
        if (again) {
            __syncthreads();
            computeAgain(p, tile, first + turn * TILE, vector0);
            __syncthreads();
        }
        tile = next;
        turn ^= 1;
    }
}
)";

// A warp has 8 channels of 16 strips, a lane two of them: `mma` by a matrix [8 columns of x and 2 channels, 4 columns
// of y and 2 channels] per row of the filter, which holds the filter's taps along a band and zeros elsewhere. What a
// zero makes of an infinity or NaN of the other channel is not part of the result: such tiles are computed again.
char const* const kDepthwiseTileHalves = R"(
TW_INLINE void multiply(float (&d)[4], u32 a0, u32 a1, u32 b)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(b));
}
TW_INLINE Unit finished(Params const& p, Tile const& t, int h, int w, int vector, float (&v)[8])
{
    if constexpr ($residual$) {
        Unit const r = residualAt(p, t, h, w, vector);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            v[i * 2] += lowHalf(r.v[i]);
            v[i * 2 + 1] += highHalf(r.v[i]);
        }
    }
    Unit y;
#pragma unroll
    for (int i = 0; i < 4; ++i) y.v[i] = packHalves(activate(v[i * 2]), activate(v[i * 2 + 1]));
    return y;
}
__device__ __noinline__ void computeAgain(Params const& p, Tile const& t, u32 tile, int vector0)
{
    int const vector = threadIdx.x % VECTORS, c = (vector0 + vector) * V;
    if (vector0 + vector >= p.vectors) return;
    T const* const filters = static_cast<T const*>(p.filters) + c;
    float const* const bias = static_cast<float const*>(p.bias) + c;
    i64 const step = i64(p.vectors) * V;
#pragma unroll 1
    for (int i = threadIdx.x / VECTORS; i < TILE_H * TILE_W; i += 32) {
        int const h = i / TILE_W, w = i % TILE_W;
        if (t.h0 + h >= p.outH || t.w0 + w >= p.outW) continue;
        float v[8];
#pragma unroll
        for (int j = 0; j < 8; ++j) v[j] = bias[j];
#pragma unroll 1
        for (int tap = 0; tap < R * S; ++tap) {
            int const r = tap / S, s = tap % S;
            Unit const f = *reinterpret_cast<Unit const*>(filters + tap * step);
            Unit const x = loadSharedUnit(tile + (h * STEP_H + r * DIL_H) * ROW + placeOf<STEP_W>(w * STEP_W + s * DIL_W, vector));
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                v[j * 2] = fmaf(lowHalf(x.v[j]), lowHalf(f.v[j]), v[j * 2]);
                v[j * 2 + 1] = fmaf(highHalf(x.v[j]), highHalf(f.v[j]), v[j * 2 + 1]);
            }
        }
        Unit const y = finished(p, t, h, w, vector0 + vector, v);
        i64 const pixel = (i64(t.image) * p.outH + t.h0 + h) * p.outW + t.w0 + w;
        *reinterpret_cast<Unit*>(static_cast<T*>(p.y) + pixel * p.pixelY + c) = y;
    }
}
struct Worker {
    u32 band[R][GROUPS][4];
    float2 bias[4];
    TW_INLINE void begin(Params const& p, int vector0)
    {
        int const g = (threadIdx.x & 31) / 4, q = threadIdx.x % 4;
        T const* const filters = static_cast<T const*>(p.filters) + channelOf(p, vector0);
        i64 const step = i64(p.vectors) * V;
        float2 const* const from = reinterpret_cast<float2 const*>(static_cast<float const*>(p.bias) + channelOf(p, vector0));
#pragma unroll
        for (int j = 0; j < 4; ++j) bias[j] = from[j];
        // Row k, column n of a band: column q of its group and channel k % 2 of x, output g / 2 and channel g % 2.
        u32 const mask = g % 2 ? 0xFFFF0000u : 0xFFFFu;
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
                int const at = i * 4 + q - g / 2 * STEP_W, s = at / DIL_W;
                Unit f = Unit{};
                if (at >= 0 && s < S && at % DIL_W == 0)
                    f = *reinterpret_cast<Unit const*>(filters + (r * S + s) * step);
#pragma unroll
                for (int j = 0; j < 4; ++j) band[r][i][j] = f.v[j] & mask;
            }
    }
    static TW_INLINE int channelOf(Params const& p, int vector0)
    {
        int const vector = vector0 + threadIdx.x / 32;
        return (vector < p.vectors ? vector : 0) * V;
    }
    // Whether a row of x is part of an output.
    static TW_INLINE constexpr bool isUsed(int i)
    {
        for (int o = 0; o < ROWS; ++o)
            if (i >= o * STEP_H && (i - o * STEP_H) % DIL_H == 0 && (i - o * STEP_H) / DIL_H < R) return true;
        return false;
    }
    TW_INLINE bool compute(Params const& p, Tile const& t, u32 tile, u32 staged, int vector0) const
    {
        int const vector = threadIdx.x / 32, g = (threadIdx.x & 31) / 4, q = threadIdx.x % 4;
        float sum[ROWS][4][4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            float2 const b = bias[j];
#pragma unroll
            for (int o = 0; o < ROWS; ++o) {
                sum[o][j][0] = sum[o][j][2] = b.x;
                sum[o][j][1] = sum[o][j][3] = b.y;
            }
        }
        // Moves registers once to where all products take them: plain copies are made anew for each.
        u32 const zero = u32(p.pad);
        // Two strips, neighbours or one below the other.
        constexpr int PER = IS_PAIR ? 2 : 1, LOADS = IS_PAIR ? GROUPS + STEP_W : GROUPS;
        int const w0 = g % (ACROSS / PER) * (4 * PER), h0 = g / (ACROSS / PER) * ROWS;
        int const w1 = w0 + (IS_PAIR ? 4 : 0), h1 = h0 + (IS_PAIR ? 0 : 8 / ACROSS * ROWS);
        u32 from[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; ++k)
            from[k] = tile + h0 * STEP_H * ROW + placeOf<STEP_W>(w0 * STEP_W + k * 4 + q, vector);
#pragma unroll
        for (int i = 0; i < (ROWS - 1) * STEP_H + (R - 1) * DIL_H + 1; ++i) {
            if (!isUsed(i)) continue;
            Unit x[IS_PAIR ? LOADS : LOADS * 2]; // columns of the first strip, and the second's that are others
#pragma unroll
            for (int k = 0; k < LOADS; ++k) {
                if (k < GROUPS || k >= STEP_W) x[k] = loadSharedUnit(from[k] + i * ROW);
                if (!IS_PAIR) x[k + LOADS] = loadSharedUnit(from[k] + (i + 8 / ACROSS * ROWS * STEP_H) * ROW);
            }
            // As the products take them, moved once for all of them.
#pragma unroll
            for (int k = 0; k < GROUPS; k += 2)
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    constexpr int SECOND = IS_PAIR ? STEP_W : LOADS;
                    u32 both[4];
                    both[0] = x[k].v[j] ^ zero;
                    both[1] = x[k + SECOND].v[j] ^ zero;
                    if (k + 1 < GROUPS) {
                        both[2] = x[k + 1].v[j] ^ zero;
                        both[3] = x[k + 1 + SECOND].v[j] ^ zero;
                    }
#pragma unroll
                    for (int o = 0; o < ROWS; ++o) {
                        int const at = i - o * STEP_H, r = at / DIL_H;
                        if (at < 0 || at % DIL_H != 0 || r >= R) continue;
                        if (k + 1 < GROUPS) mma(sum[o][j], both, band[r][k][j], band[r][k + 1][j]);
                        else multiply(sum[o][j], both[0], both[1], band[r][k][j]);
                    }
                }
        }
        float odd[4] = {}; // NaN from any NaN or infinity
        u32 const to[2] = {staged + h0 * ROW_Y + placeOf<1>(w0 + q, vector), staged + h1 * ROW_Y + placeOf<1>(w1 + q, vector)};
#pragma unroll
        for (int o = 0; o < ROWS; ++o)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float v[8];
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    v[j * 2] = sum[o][j][half * 2];
                    v[j * 2 + 1] = sum[o][j][half * 2 + 1];
                }
#pragma unroll
                for (int j = 0; j < 8; ++j) odd[j % 4] = fmaf(v[j], 0.0f, odd[j % 4]);
                int const h = (half ? h1 : h0) + o;
                storeShared(to[half] + o * ROW_Y, finished(p, t, h, half ? w1 + q : w0 + q, vector0 + vector, v));
            }
        float const all = odd[0] + odd[1] + odd[2] + odd[3];
        return all != all;
    }
};
)";

// A warp has 4 channels, a lane 2 ROWS outputs of a column.
char const* const kDepthwiseTileFloats = R"(
struct Worker {
    float4 bias;
    float4 f[$held$]; // the filter, where it fits into registers
    T const* filters;
    TW_INLINE void begin(Params const& p, int vector0)
    {
        int const vector = vector0 + threadIdx.x / 32, c = (vector < p.vectors ? vector : 0) * V;
        filters = static_cast<T const*>(p.filters) + c;
        bias = *reinterpret_cast<float4 const*>(static_cast<float const*>(p.bias) + c);
        if constexpr ($held$ > 1)
#pragma unroll
            for (int i = 0; i < R * S; ++i) f[i] = *reinterpret_cast<float4 const*>(filters + i64(i) * p.vectors * V);
    }
    TW_INLINE bool compute(Params const& p, Tile const& t, u32 tile, u32 staged, int vector0) const
    {
        constexpr int TALL = ROWS * 2, SEEN = (TALL - 1) * STEP_H + (R - 1) * DIL_H + 1;
        int const vector = threadIdx.x / 32, lane = threadIdx.x & 31, w = lane % TILE_W, h0 = lane / TILE_W * TALL;
        i64 const step = i64(p.vectors) * V;
        float sum[TALL][4];
#pragma unroll
        for (int o = 0; o < TALL; ++o) {
            sum[o][0] = bias.x;
            sum[o][1] = bias.y;
            sum[o][2] = bias.z;
            sum[o][3] = bias.w;
        }
#pragma unroll
        for (int s = 0; s < S; ++s) {
            u32 const from = tile + h0 * STEP_H * ROW + placeOf<STEP_W>(w * STEP_W + s * DIL_W, vector);
            Unit x[SEEN];
#pragma unroll
            for (int i = 0; i < SEEN; ++i) {
                bool isUsed = false;
#pragma unroll
                for (int o = 0; o < TALL; ++o)
                    isUsed = isUsed || (i >= o * STEP_H && (i - o * STEP_H) % DIL_H == 0 && (i - o * STEP_H) / DIL_H < R);
                if (isUsed) x[i] = loadSharedUnit(from + i * ROW);
            }
#pragma unroll
            for (int r = 0; r < R; ++r) {
                float4 const k = $held$ > 1 ? f[$held$ > 1 ? r * S + s : 0]
                                            : *reinterpret_cast<float4 const*>(filters + (r * S + s) * step);
#pragma unroll
                for (int o = 0; o < TALL; ++o) {
                    Unit const& v = x[o * STEP_H + r * DIL_H];
                    sum[o][0] = fmaf(__uint_as_float(v.v[0]), k.x, sum[o][0]);
                    sum[o][1] = fmaf(__uint_as_float(v.v[1]), k.y, sum[o][1]);
                    sum[o][2] = fmaf(__uint_as_float(v.v[2]), k.z, sum[o][2]);
                    sum[o][3] = fmaf(__uint_as_float(v.v[3]), k.w, sum[o][3]);
                }
            }
        }
#pragma unroll
        for (int o = 0; o < TALL; ++o) {
            if constexpr ($residual$) {
                Unit const r = residualAt(p, t, h0 + o, w, vector0 + vector);
#pragma unroll
                for (int j = 0; j < 4; ++j) sum[o][j] += __uint_as_float(r.v[j]);
            }
            Unit y;
#pragma unroll
            for (int j = 0; j < 4; ++j) y.v[j] = __float_as_uint(activate(sum[o][j]));
            storeShared(staged + (h0 + o) * ROW_Y + placeOf<1>(w, vector), y);
        }
        return false;
    }
};
TW_INLINE void computeAgain(Params const&, Tile const&, u32, int) {}
)";

} // namespace tw::cuda
