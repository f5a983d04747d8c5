// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/hopper.h"

#include "kernels/cuda/common/prelude.h"

namespace tw::cuda {

char const* const kRelu = "maximumOf(v, 0.0f)";
char const* const kGeluErf = "geluErfOf(v)";
char const* const kGeluTanh = "geluTanhOf(v)";
char const* const kSwish = "v * sigmoidOf(v)";

char const* const kAsyncCopies = R"(
TW_INLINE u32 sharedAddress(void const* p) { return u32(__cvta_generic_to_shared(p)); }
// 16 (8, 4) bytes, zeros where !valid; the address must be readable only when valid.
TW_INLINE void copyAsync16(u32 to, void const* from, bool valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}
TW_INLINE void copyAsync8(u32 to, void const* from, bool valid)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(valid ? 8 : 0) : "memory");
}
TW_INLINE void copyAsync4(u32 to, void const* from, bool valid)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(valid ? 4 : 0) : "memory");
}
TW_INLINE void copyCommit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> TW_INLINE void copyWait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
)";

char const* const kClusters = R"(
TW_INLINE u32 clusterRank() { u32 r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
TW_INLINE void clusterArrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
TW_INLINE void clusterWait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
TW_INLINE void clusterSync()
{
    clusterArrive();
    clusterWait();
}
TW_INLINE u32 addressAt(u32 at, u32 rank)
{
    u32 v;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(v) : "r"(at), "r"(rank));
    return v;
}
// To another block's shared memory, at what addressAt() gave.
TW_INLINE void storeCluster(u32 at, float a, float b, float c, float d)
{
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}
TW_INLINE void storeCluster(u32 at, float a, float b)
{
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(a), "f"(b) : "memory");
}
)";

char const* const kFragments = R"(
TW_INLINE void loadMatrix4(u32 (&r)[4], u32 at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
TW_INLINE void loadMatrix4Transposed(u32 (&r)[4], u32 at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
// d [16, 8] += a [16, 16] b [16, 8]
TW_INLINE void mma(float (&d)[4], u32 const (&a)[4], u32 b0, u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
)";

char const* const kFactors = R"(
template <int N> struct Factors {
    u32 high[N], low[N];
    TW_INLINE void set(int i, float v)
    {
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(high[i]) : "f"(v));
        if constexpr (EXACT) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(low[i]) : "f"(v - __uint_as_float(high[i])));
    }
};
// d [16, 8] += a [16, 8] b [8, 8]
TW_INLINE void multiply(float (&d)[4], u32 const (&a)[4], u32 b0, u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
TW_INLINE void multiply(float (&d)[4], Factors<4> const& a, Factors<2> const& b)
{
    if constexpr (EXACT) {
        multiply(d, a.low, b.high[0], b.high[1]);
        multiply(d, a.high, b.low[0], b.low[1]);
    }
    multiply(d, a.high, b.high[0], b.high[1]);
}
// Four blocks of 8 rows and 16 bytes: lane holds number lane % 4 of row lane / 4 of each.
TW_INLINE void loadBlocks(float (&v)[4], u32 at)
{
    u32 r[4];
    loadMatrix4(r, at);
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = __uint_as_float(r[i]);
}
)";

namespace {

constexpr char const* kMatrix = R"(
typedef unsigned char u8;
typedef unsigned short u16;
typedef int i32;
typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;
struct f16 { u16 bits; };
struct alignas(16) Unit { u32 v[4]; };
#define TW_INLINE __device__ __forceinline__
#define TW_KERNEL extern "C" __global__ void

TW_INLINE float halfToFloat(f16 h) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h.bits)); return f; }
TW_INLINE f16 floatToHalf(float f) { f16 h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(f)); return h; }
// Two halves in a register, the first one low.
TW_INLINE u32 packHalves(float low, float high)
{
    u32 v;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
    return v;
}
TW_INLINE float lowHalf(u32 v) { f16 h; h.bits = u16(v); return halfToFloat(h); }
TW_INLINE float highHalf(u32 v) { f16 h; h.bits = u16(v >> 16); return halfToFloat(h); }

// NaN goes through.
TW_INLINE float maximumOf(float a, float b) { float y; asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b)); return y; }
// Results below 2^-126 are 0: without .ftz each takes four instructions, not one.
TW_INLINE float powerOf2(float v) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(v)); return y; }
TW_INLINE float reciprocalOf(float v) { float y; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(v)); return y; }
TW_INLINE float sigmoidOf(float v) { return reciprocalOf(1.0f + powerOf2(-1.44269504f * v)); }
TW_INLINE float tanhOf(float v) { float y; asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(v)); return y; } // within 2^-11
// v Phi(v) = v / 2 (1 + tanh u) with u as v times a polynomial of v^2, fitted for |v| < 5.5 (beyond, Phi(-v) < 2e-8) to
// within 2.5e-5; what tanhOf() adds is less than what FP16 rounds off at v. One special function: an exponential and a
// reciprocal would be two, and they are what an epilogue of GELU waits for.
TW_INLINE float geluErfOf(float v)
{
    float const w = fminf(v * v, 30.0f), half = 0.5f * v;
    return fmaf(half, tanhOf(v * (0.797507890f + w * (0.0370056415f + w * -3.51516705e-4f))), half);
}
TW_INLINE float geluTanhOf(float v)
{
    float const half = 0.5f * v;
    return fmaf(half, tanhOf(v * (0.797884561f + 0.0356774081f * v * v)), half);
}

TW_INLINE void storeShared(u32 at, u32 v) { asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(v) : "memory"); }
TW_INLINE u32 loadShared(u32 at)
{
    u32 v;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
    return v;
}
TW_INLINE void loadShared(u32 at, float& a, float& b)
{
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(a), "=f"(b) : "r"(at) : "memory");
}
TW_INLINE void storeShared(u32 at, Unit const& u)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(u.v[0]), "r"(u.v[1]), "r"(u.v[2]), "r"(u.v[3])
                 : "memory");
}
TW_INLINE Unit loadSharedUnit(u32 at)
{
    Unit u;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(u.v[0]), "=r"(u.v[1]), "=r"(u.v[2]), "=r"(u.v[3]) : "r"(at) : "memory");
    return u;
}
)";

constexpr char const* kHopper = R"(
struct alignas(64) TensorMap { u64 opaque[16]; };

TW_INLINE void barrierInit(u32 bar, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
TW_INLINE void barrierInitFence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
TW_INLINE void barrierExpect(u32 bar, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
TW_INLINE void barrierArrive(u32 bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory"); }
// The same barrier of another block of the cluster.
TW_INLINE void barrierArriveAt(u32 bar, u32 rank)
{
    asm volatile("{\n.reg .b32 at;\nmapa.shared::cluster.u32 at, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [at];\n}" ::"r"(bar), "r"(rank) : "memory");
}
TW_INLINE void barrierWait(u32 bar, u32 parity)
{
    u32 done;
    do {
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(bar), "r"(parity) : "memory");
    } while (!done);
}

TW_INLINE void prefetchMap(TensorMap const* map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
TW_INLINE void copyTile(u32 to, TensorMap const* map, u32 bar, int c0, int c1, int c2)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
                 "[%2];" ::"r"(to), "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
TW_INLINE void copyTile(u32 to, TensorMap const* map, u32 bar, int c0, int c1, int c2, int c3)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {%3, %4, %5, %6}], [%2];" ::"r"(to), "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}
// To the same place in every block of `mask`, each of whose barriers counts the bytes.
TW_INLINE void copyTileTo(u32 to, TensorMap const* map, u32 bar, int c0, int c1, int c2, u16 mask)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
                 "[%1, {%3, %4, %5}], [%2], %6;" ::"r"(to), "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "h"(mask)
                 : "memory");
}
// From shared memory, 128-byte rows swizzled; what ordinary stores put there is fenced before.
TW_INLINE void storeTile(TensorMap const* map, u32 from, int c0, int c1, int c2)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
                 "r"(from), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
TW_INLINE void bulkCommit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// All that this thread has committed is read.
TW_INLINE void bulkWaitRead() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
TW_INLINE void sharedFence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
TW_INLINE void storeMatrix4(u32 at, u32 const (&r)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(r[0]), "r"(r[1]),
                 "r"(r[2]), "r"(r[3]) : "memory");
}
// Pixels from (w, h, n) on, each moved by the filter's tap.
TW_INLINE void copyPixels(u32 to, TensorMap const* map, u32 bar, int c, int w, int h, int n, u16 tapW, u16 tapH)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(to), "l"(map), "r"(bar), "r"(c), "r"(w), "r"(h), "r"(n),
                 "h"(tapW), "h"(tapH) : "memory");
}
)";

constexpr char const* kGroups = R"(
TW_INLINE void loadShared(float (&v)[4], u32 at)
{
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(at) : "memory");
}
TW_INLINE void groupSync(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
TW_INLINE void groupArrive(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

TW_INLINE void wgmmaFence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TW_INLINE void wgmmaCommit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> TW_INLINE void wgmmaWait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
// Rows of 128 bytes, swizzled, in groups of 8; `leading`: bytes between blocks of 64 rows of a transposed operand.
TW_INLINE u64 descriptor(u32 at, u32 leading)
{
    return u64((at & 0x3FFFF) >> 4) | u64(leading >> 4) << 16 | u64(1024 >> 4) << 32 | u64(1) << 62;
}
)";

} // namespace

std::string matrixPrelude()
{
    return std::string(kMatrix) + kAsyncCopies + kFragments + kDependence;
}

std::string hopperPrelude()
{
    return matrixPrelude() + kHopper + kClusters + kGroups;
}

namespace {

// `type`: "k16.f32.f16.f16"; `orders`: what follows the operands' signs.
std::string wgmmaOf(int n, char const* type, std::string const& orders)
{
    int const count = n / 2;
    std::string registers, operands;
    for (int i = 0; i < count; ++i) {
        registers += (i ? ", %" : "%") + std::to_string(i);
        operands += (i ? ", \"+f\"(d[" : "\"+f\"(d[") + std::to_string(i) + "])";
    }
    auto arg = [&](int i) { return "%" + std::to_string(count + i); };
    return "TW_INLINE void wgmma(float (&d)[" + std::to_string(count) + "], u64 p, u64 q, int keep)\n{\n" +
           "    asm volatile(\"{\\n.reg .pred k;\\nsetp.ne.b32 k, " + arg(2) +
           ", 0;\\nwgmma.mma_async.sync.aligned.m64n" + std::to_string(n) + type + " {" + registers + "}, " + arg(0) +
           ", " + arg(1) + ", k, 1, 1" + orders + ";\\n}\"\n        : " + operands +
           "\n        : \"l\"(p), \"l\"(q), \"r\"(keep));\n}\n";
}

} // namespace

std::string wgmmaText(int n, bool transposedP, bool transposedQ)
{
    return wgmmaOf(n, "k16.f32.f16.f16", std::string(transposedP ? ", 1" : ", 0") + (transposedQ ? ", 1" : ", 0"));
}

std::string wgmmaSingleText(int n)
{
    return wgmmaOf(n, "k8.f32.tf32.tf32", "");
}

std::string wgmmaRegistersText(int n, bool transposedQ)
{
    int const count = n / 2;
    std::string registers, operands;
    for (int i = 0; i < count; ++i) {
        registers += (i ? ", %" : "%") + std::to_string(i);
        operands += (i ? ", \"+f\"(d[" : "\"+f\"(d[") + std::to_string(i) + "])";
    }
    auto arg = [&](int i) { return "%" + std::to_string(count + i); };
    return "TW_INLINE void wgmmaFrom(float (&d)[" + std::to_string(count) +
           "], u32 const (&p)[4], u64 q, int keep)\n{\n" + "    asm volatile(\"{\\n.reg .pred k;\\nsetp.ne.b32 k, " +
           arg(5) + ", 0;\\nwgmma.mma_async.sync.aligned.m64n" + std::to_string(n) + "k16.f32.f16.f16 {" + registers +
           "}, {" + arg(0) + ", " + arg(1) + ", " + arg(2) + ", " + arg(3) + "}, " + arg(4) + ", k, 1, 1, " +
           (transposedQ ? "1" : "0") + ";\\n}\"\n        : " + operands +
           "\n        : \"r\"(p[0]), \"r\"(p[1]), \"r\"(p[2]), \"r\"(p[3]), \"l\"(q), \"r\"(keep));\n}\n";
}

std::string activationText(std::string const& expression)
{
    return "TW_INLINE float activate(float v) { return " + (expression.empty() ? "v" : expression) + "; }\n";
}

} // namespace tw::cuda
