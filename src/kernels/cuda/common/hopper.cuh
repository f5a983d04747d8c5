// SPDX-License-Identifier: Apache-2.0
// Compute capability 9.0: barriers in shared memory, copies by tensor maps, warpgroup matrix instructions.
#pragma once

#include "kernels/cuda/common/clusters.cuh"
#include "kernels/cuda/common/matrix.cuh"

namespace tw::cuda {

struct alignas(64) TensorMap
{
    u64 opaque[16];
};

TW_INLINE void barrierInit(u32 bar, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
TW_INLINE void barrierInitFence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
TW_INLINE void barrierExpect(u32 bar, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
TW_INLINE void barrierArrive(u32 bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
// The same barrier of another block of the cluster.
TW_INLINE void barrierArriveAt(u32 bar, u32 rank)
{
    asm volatile("{\n.reg .b32 at;\nmapa.shared::cluster.u32 at, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [at];\n}" ::"r"(bar),
                 "r"(rank)
                 : "memory");
}
TW_INLINE void barrierWait(u32 bar, u32 parity)
{
    u32 done;
    do {
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(bar), "r"(parity)
                     : "memory");
    } while (!done);
}

TW_INLINE void prefetchMap(TensorMap const* map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
TW_INLINE void copyTile(u32 to, TensorMap const* map, u32 bar, int c0, int c1, int c2)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
        "[%2];" ::"r"(to),
        "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2)
        : "memory");
}
TW_INLINE void copyTile(u32 to, TensorMap const* map, u32 bar, int c0, int c1, int c2, int c3)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
                 "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}
// To the same place in every block of `mask`, each of whose barriers counts the bytes.
TW_INLINE void copyTileTo(u32 to, TensorMap const* map, u32 bar, int c0, int c1, int c2, u16 mask)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
        "[%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
        "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "h"(mask)
        : "memory");
}
// From shared memory, 128-byte rows swizzled; what ordinary stores put there is fenced before.
TW_INLINE void storeTile(TensorMap const* map, u32 from, int c0, int c1, int c2)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
                 "r"(from), "r"(c0), "r"(c1), "r"(c2)
                 : "memory");
}
TW_INLINE void bulkCommit()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// All that this thread has committed is read.
TW_INLINE void bulkWaitRead()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
TW_INLINE void sharedFence()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
TW_INLINE void storeMatrix4(u32 at, u32 const (&r)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(r[0]), "r"(r[1]),
                 "r"(r[2]), "r"(r[3])
                 : "memory");
}
// Each 8 x 8 block transposed on its way.
TW_INLINE void storeMatrix4Transposed(u32 at, u32 const (&r)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(r[0]),
                 "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}
// Pixels from (w, h, n) on, each moved by the filter's tap.
TW_INLINE void copyPixels(u32 to, TensorMap const* map, u32 bar, int c, int w, int h, int n, u16 tapW, u16 tapH)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(to),
                 "l"(map), "r"(bar), "r"(c), "r"(w), "r"(h), "r"(n), "h"(tapW), "h"(tapH)
                 : "memory");
}
// The same of an image of three axes.
TW_INLINE void copyVoxels(u32 to, TensorMap const* map, u32 bar, int c, int w, int h, int d, int n, u16 tapW, u16 tapH,
                          u16 tapD)
{
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {%3, %4, %5, %6, %7}], [%2], {%8, %9, %10};" ::"r"(to),
                 "l"(map), "r"(bar), "r"(c), "r"(w), "r"(h), "r"(d), "r"(n), "h"(tapW), "h"(tapH), "h"(tapD)
                 : "memory");
}

TW_INLINE void copyPixelsTo(u32 to, TensorMap const* map, u32 bar, int c, int w, int h, int n, u16 tapW, u16 tapH,
                            u16 mask)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8}, %9;" ::"r"(to),
        "l"(map), "r"(bar), "r"(c), "r"(w), "r"(h), "r"(n), "h"(tapW), "h"(tapH), "h"(mask)
        : "memory");
}
// Bytes as they are, in steps of 16.
TW_INLINE void copyBytes(u32 to, void const* from, u32 bytes, u32 bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(bar)
                 : "memory");
}

TW_INLINE void loadShared(float (&v)[4], u32 at)
{
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                 : "r"(at)
                 : "memory");
}
TW_INLINE void groupSync(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
TW_INLINE void groupArrive(int id, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

TW_INLINE void wgmmaFence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
TW_INLINE void wgmmaCommit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int N>
TW_INLINE void wgmmaWait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
// Rows of 128 or 64 bytes, swizzled, in groups of 8; `leading`: bytes between blocks of 64 rows of a transposed operand.
template <u32 ROW_BYTES = 128>
TW_INLINE u64 descriptor(u32 at, u32 leading)
{
    return u64((at & 0x3FFFF) >> 4) | u64(leading >> 4) << 16 | u64(ROW_BYTES * 8 >> 4) << 32 |
           u64(ROW_BYTES == 128 ? 1 : 2) << 62;
}
// Rows of 32 bytes in blocks of 8 rows of 16 bytes, not swizzled: the first 16 bytes of 64 rows, then the others.
TW_INLINE u64 blockDescriptor(u32 at)
{
    return u64((at & 0x3FFFF) >> 4) | u64(1024 >> 4) << 16 | u64(128 >> 4) << 32;
}

} // namespace tw::cuda
