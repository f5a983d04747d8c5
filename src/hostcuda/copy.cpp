// SPDX-License-Identifier: Apache-2.0
// Copies and fills. Ranges inside memory that the stand-in knows are checked against its end; addresses it does not
// know are taken as plain host memory, because a plugin may be given memory of the library itself.
#include "copy.h"

#include <cstring>
#include <utility>

#include "registry.h"
#include "state.h"

namespace tw::hostcuda {
namespace {

// count bytes at ptr, of which the caller says that it is (side = device) or may be (host) device memory.
void checkRange(void const* ptr, std::size_t count, bool mustBeHost)
{
    std::uintptr_t end = 0;
    failIf(ptr == nullptr || __builtin_add_overflow(reinterpret_cast<std::uintptr_t>(ptr), count, &end));
    std::optional<Allocation> const known = registry().find(ptr);
    if (known)
        failIf((mustBeHost && known->kind == MemoryKind::kDevice) || end > known->base + known->sizeBytes);
}

// Whether destination and source are said to be host memory.
std::pair<bool, bool> hostSides(cudaMemcpyKind kind)
{
    failIf(static_cast<unsigned>(kind) > static_cast<unsigned>(cudaMemcpyDefault), cudaErrorInvalidMemcpyDirection);
    return {kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost,
            kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice};
}

// Bytes from the first to the last that a box of rows touches.
std::size_t boxBytes(Box const& box, std::size_t pitch, std::size_t slicePitch)
{
    std::size_t rows = 0, slices = 0, sizeBytes = 0;
    failIf(__builtin_mul_overflow(box.height - 1, pitch, &rows) ||
           __builtin_mul_overflow(box.depth - 1, slicePitch, &slices) ||
           __builtin_add_overflow(rows, slices, &sizeBytes) ||
           __builtin_add_overflow(sizeBytes, box.widthBytes, &sizeBytes));
    return sizeBytes;
}

bool isEmpty(Box const& box)
{
    return box.widthBytes == 0 || box.height == 0 || box.depth == 0;
}

} // namespace

Work makeCopy(void* dst, void const* src, std::size_t count, cudaMemcpyKind kind)
{
    auto const [hostDst, hostSrc] = hostSides(kind);
    if (count == 0)
        return [] {};
    checkRange(dst, count, hostDst);
    checkRange(src, count, hostSrc);
    return [=] { std::memmove(dst, src, count); };
}

Work makeBoxCopy(BoxCopy const& copy, cudaMemcpyKind kind)
{
    auto const [hostDst, hostSrc] = hostSides(kind);
    if (isEmpty(copy.box))
        return [] {};
    failIf(copy.box.widthBytes > copy.dstPitch || copy.box.widthBytes > copy.srcPitch, cudaErrorInvalidPitchValue);
    checkRange(copy.dst, boxBytes(copy.box, copy.dstPitch, copy.dstSlicePitch), hostDst);
    checkRange(copy.src, boxBytes(copy.box, copy.srcPitch, copy.srcSlicePitch), hostSrc);
    return [copy] {
        for (std::size_t z = 0; z < copy.box.depth; ++z)
            for (std::size_t y = 0; y < copy.box.height; ++y)
                std::memmove(static_cast<char*>(copy.dst) + z * copy.dstSlicePitch + y * copy.dstPitch,
                             static_cast<char const*>(copy.src) + z * copy.srcSlicePitch + y * copy.srcPitch,
                             copy.box.widthBytes);
    };
}

Work make3DCopy(cudaMemcpy3DParms const* parms)
{
    failIf(parms == nullptr);
    failIf(parms->srcArray != nullptr || parms->dstArray != nullptr, cudaErrorNotSupported); // there are no arrays here
    // The address of a position, and how far slices are apart.
    auto const place = [](cudaPitchedPtr const& base, cudaPos const& pos, std::size_t& slicePitch) {
        std::size_t slice = 0, row = 0;
        auto at = reinterpret_cast<std::uintptr_t>(base.ptr);
        failIf(__builtin_mul_overflow(base.pitch, base.ysize, &slicePitch) ||
               __builtin_mul_overflow(slicePitch, pos.z, &slice) || __builtin_mul_overflow(base.pitch, pos.y, &row) ||
               __builtin_add_overflow(at, slice, &at) || __builtin_add_overflow(at, row, &at) ||
               __builtin_add_overflow(at, pos.x, &at));
        return reinterpret_cast<void*>(at);
    };
    BoxCopy copy;
    copy.dst = place(parms->dstPtr, parms->dstPos, copy.dstSlicePitch);
    copy.src = place(parms->srcPtr, parms->srcPos, copy.srcSlicePitch);
    copy.box = Box{parms->extent.width, parms->extent.height, parms->extent.depth};
    failIf(!isEmpty(copy.box) && (parms->dstPtr.ptr == nullptr || parms->srcPtr.ptr == nullptr));
    copy.dstPitch = parms->dstPtr.pitch;
    copy.srcPitch = parms->srcPtr.pitch;
    return makeBoxCopy(copy, parms->kind);
}

Work makeFill(void* dst, std::size_t pitch, std::size_t slicePitch, unsigned int value, unsigned int elementBytes,
              Box const& box)
{
    failIf(elementBytes != 1 && elementBytes != 2 && elementBytes != 4);
    if (isEmpty(box))
        return [] {};
    failIf(box.height > 1 && box.widthBytes > pitch, cudaErrorInvalidPitchValue);
    checkRange(dst, boxBytes(box, pitch, slicePitch), false);
    return [=] {
        for (std::size_t z = 0; z < box.depth; ++z)
            for (std::size_t y = 0; y < box.height; ++y) {
                char* const row = static_cast<char*>(dst) + z * slicePitch + y * pitch;
                if (elementBytes == 1)
                    std::memset(row, static_cast<int>(value & 0xffu), box.widthBytes);
                else
                    for (std::size_t x = 0; x < box.widthBytes; x += elementBytes)
                        std::memcpy(row + x, &value, elementBytes); // little endian: the low bytes are the element
            }
    };
}

namespace {

// A synchronous call is work on the legacy stream; it is also a wait, which captures can forbid.
void runNow(Work work)
{
    checkLegacyStream();
    submit(nullptr, cudaGraphNodeTypeMemcpy, std::move(work));
}

Work makePeerCopy(void* dst, int dstDevice, void const* src, int srcDevice, std::size_t count)
{
    failIf(dstDevice != 0 || srcDevice != 0, cudaErrorInvalidDevice);
    return makeCopy(dst, src, count, cudaMemcpyDeviceToDevice);
}

Work make3DFill(cudaPitchedPtr const& pitched, int value, cudaExtent const& extent)
{
    std::size_t slicePitch = 0;
    failIf(__builtin_mul_overflow(pitched.pitch, pitched.ysize, &slicePitch));
    return makeFill(pitched.ptr, pitched.pitch, slicePitch, static_cast<unsigned int>(value), 1,
                    Box{extent.width, extent.height, extent.depth});
}

} // namespace
} // namespace tw::hostcuda

using namespace tw::hostcuda;

TW_CALL(cudaMemcpy, (void* dst, void const* src, size_t count, cudaMemcpyKind kind),
        runNow(makeCopy(dst, src, count, kind)))
TW_CALL(cudaMemcpyAsync, (void* dst, void const* src, size_t count, cudaMemcpyKind kind, cudaStream_t stream),
        submit(stream, cudaGraphNodeTypeMemcpy, makeCopy(dst, src, count, kind)))
TW_CALL(cudaMemcpyPeer, (void* dst, int dstDevice, void const* src, int srcDevice, size_t count),
        runNow(makePeerCopy(dst, dstDevice, src, srcDevice, count)))
TW_CALL(cudaMemcpyPeerAsync,
        (void* dst, int dstDevice, void const* src, int srcDevice, size_t count, cudaStream_t stream),
        submit(stream, cudaGraphNodeTypeMemcpy, makePeerCopy(dst, dstDevice, src, srcDevice, count)))

cudaError_t cudaMemcpy2D(void* dst, size_t dstPitch, void const* src, size_t srcPitch, size_t width, size_t height,
                         cudaMemcpyKind kind)
{
    return call([&] { runNow(makeBoxCopy({dst, dstPitch, 0, src, srcPitch, 0, {width, height, 1}}, kind)); });
}

cudaError_t cudaMemcpy2DAsync(void* dst, size_t dstPitch, void const* src, size_t srcPitch, size_t width, size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream)
{
    return call([&] {
        submit(stream, cudaGraphNodeTypeMemcpy,
               makeBoxCopy({dst, dstPitch, 0, src, srcPitch, 0, {width, height, 1}}, kind));
    });
}

TW_CALL(cudaMemcpy3D, (cudaMemcpy3DParms const* parms), runNow(make3DCopy(parms)))
TW_CALL(cudaMemcpy3DAsync, (cudaMemcpy3DParms const* parms, cudaStream_t stream),
        submit(stream, cudaGraphNodeTypeMemcpy, make3DCopy(parms)))

cudaError_t cudaMemset(void* ptr, int value, size_t count)
{
    return cudaMemset2D(ptr, count, value, count, 1);
}

cudaError_t cudaMemsetAsync(void* ptr, int value, size_t count, cudaStream_t stream)
{
    return cudaMemset2DAsync(ptr, count, value, count, 1, stream);
}

cudaError_t cudaMemset2D(void* ptr, size_t pitch, int value, size_t width, size_t height)
{
    return cudaMemset3D(cudaPitchedPtr{ptr, pitch, width, height}, value, cudaExtent{width, height, 1});
}

cudaError_t cudaMemset2DAsync(void* ptr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
{
    return cudaMemset3DAsync(cudaPitchedPtr{ptr, pitch, width, height}, value, cudaExtent{width, height, 1}, stream);
}

TW_CALL(cudaMemset3D, (cudaPitchedPtr pitched, int value, cudaExtent extent),
        runNow(make3DFill(pitched, value, extent)))
TW_CALL(cudaMemset3DAsync, (cudaPitchedPtr pitched, int value, cudaExtent extent, cudaStream_t stream),
        submit(stream, cudaGraphNodeTypeMemset, make3DFill(pitched, value, extent)))
