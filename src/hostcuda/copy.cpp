// SPDX-License-Identifier: Apache-2.0
// Copies and fills. Ranges inside memory that the stand-in knows are checked against its end; addresses it does not
// know are taken as plain host memory, because a plugin may be given memory of the library itself.
#include "copy.h"

#include <cstring>

#include "registry.h"
#include "state.h"

namespace tw::hostcuda {
namespace {

// count bytes at ptr, of which the caller says that it is (side = device) or may be (host) device memory.
cudaError_t checkRange(void const* ptr, std::size_t count, bool mustBeHost)
{
    std::uintptr_t end = 0;
    if (ptr == nullptr || __builtin_add_overflow(reinterpret_cast<std::uintptr_t>(ptr), count, &end))
        return cudaErrorInvalidValue;
    std::optional<Allocation> const known = registry().find(ptr);
    if (!known)
        return cudaSuccess;
    if (mustBeHost && known->kind == MemoryKind::kDevice)
        return cudaErrorInvalidValue;
    return count <= known->base + known->sizeBytes - reinterpret_cast<std::uintptr_t>(ptr) ? cudaSuccess
                                                                                           : cudaErrorInvalidValue;
}

cudaError_t checkDirection(cudaMemcpyKind kind, bool& hostDst, bool& hostSrc)
{
    if (static_cast<unsigned>(kind) > static_cast<unsigned>(cudaMemcpyDefault))
        return cudaErrorInvalidMemcpyDirection;
    hostDst = kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost;
    hostSrc = kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice;
    return cudaSuccess;
}

// Bytes from the first to the last that a box of rows touches.
bool boxBytes(Box const& box, std::size_t pitch, std::size_t slicePitch, std::size_t& sizeBytes)
{
    std::size_t rows = 0;
    std::size_t slices = 0;
    return !__builtin_mul_overflow(box.height - 1, pitch, &rows) &&
           !__builtin_mul_overflow(box.depth - 1, slicePitch, &slices) &&
           !__builtin_add_overflow(rows, slices, &sizeBytes) &&
           !__builtin_add_overflow(sizeBytes, box.widthBytes, &sizeBytes);
}

bool isEmpty(Box const& box)
{
    return box.widthBytes == 0 || box.height == 0 || box.depth == 0;
}

} // namespace

cudaError_t makeCopy(void* dst, void const* src, std::size_t count, cudaMemcpyKind kind, Work& work)
{
    bool hostDst = false;
    bool hostSrc = false;
    if (cudaError_t const error = checkDirection(kind, hostDst, hostSrc); error != cudaSuccess)
        return error;
    if (count == 0) {
        work = [] {};
        return cudaSuccess;
    }
    if (cudaError_t const error = checkRange(dst, count, hostDst); error != cudaSuccess)
        return error;
    if (cudaError_t const error = checkRange(src, count, hostSrc); error != cudaSuccess)
        return error;
    work = [=] { std::memmove(dst, src, count); };
    return cudaSuccess;
}

cudaError_t makeBoxCopy(BoxCopy const& copy, cudaMemcpyKind kind, Work& work)
{
    bool hostDst = false;
    bool hostSrc = false;
    if (cudaError_t const error = checkDirection(kind, hostDst, hostSrc); error != cudaSuccess)
        return error;
    if (isEmpty(copy.box)) {
        work = [] {};
        return cudaSuccess;
    }
    if (copy.box.widthBytes > copy.dstPitch || copy.box.widthBytes > copy.srcPitch)
        return cudaErrorInvalidPitchValue;
    std::size_t dstBytes = 0;
    std::size_t srcBytes = 0;
    if (!boxBytes(copy.box, copy.dstPitch, copy.dstSlicePitch, dstBytes) ||
        !boxBytes(copy.box, copy.srcPitch, copy.srcSlicePitch, srcBytes))
        return cudaErrorInvalidValue;
    if (cudaError_t const error = checkRange(copy.dst, dstBytes, hostDst); error != cudaSuccess)
        return error;
    if (cudaError_t const error = checkRange(copy.src, srcBytes, hostSrc); error != cudaSuccess)
        return error;
    work = [copy] {
        for (std::size_t z = 0; z < copy.box.depth; ++z)
            for (std::size_t y = 0; y < copy.box.height; ++y)
                std::memmove(static_cast<char*>(copy.dst) + z * copy.dstSlicePitch + y * copy.dstPitch,
                             static_cast<char const*>(copy.src) + z * copy.srcSlicePitch + y * copy.srcPitch,
                             copy.box.widthBytes);
    };
    return cudaSuccess;
}

cudaError_t make3DCopy(cudaMemcpy3DParms const& parms, Work& work)
{
    if (parms.srcArray != nullptr || parms.dstArray != nullptr)
        return cudaErrorNotSupported; // there are no arrays here
    BoxCopy copy;
    auto const place = [](cudaPitchedPtr const& base, cudaPos const& pos, std::size_t& slicePitch,
                          std::size_t& offset) {
        std::size_t slice = 0;
        std::size_t row = 0;
        return !__builtin_mul_overflow(base.pitch, base.ysize, &slicePitch) &&
               !__builtin_mul_overflow(slicePitch, pos.z, &slice) && !__builtin_mul_overflow(base.pitch, pos.y, &row) &&
               !__builtin_add_overflow(slice, row, &offset) && !__builtin_add_overflow(offset, pos.x, &offset);
    };
    std::size_t dstOffset = 0;
    std::size_t srcOffset = 0;
    if (!place(parms.dstPtr, parms.dstPos, copy.dstSlicePitch, dstOffset) ||
        !place(parms.srcPtr, parms.srcPos, copy.srcSlicePitch, srcOffset))
        return cudaErrorInvalidValue;
    copy.box = Box{parms.extent.width, parms.extent.height, parms.extent.depth};
    if (!isEmpty(copy.box) && (parms.dstPtr.ptr == nullptr || parms.srcPtr.ptr == nullptr))
        return cudaErrorInvalidValue;
    std::uintptr_t dst = 0;
    std::uintptr_t src = 0;
    if (__builtin_add_overflow(reinterpret_cast<std::uintptr_t>(parms.dstPtr.ptr), dstOffset, &dst) ||
        __builtin_add_overflow(reinterpret_cast<std::uintptr_t>(parms.srcPtr.ptr), srcOffset, &src))
        return cudaErrorInvalidValue;
    copy.dst = reinterpret_cast<void*>(dst);
    copy.src = reinterpret_cast<void const*>(src);
    copy.dstPitch = parms.dstPtr.pitch;
    copy.srcPitch = parms.srcPtr.pitch;
    return makeBoxCopy(copy, parms.kind, work);
}

cudaError_t makeFill(void* dst, std::size_t pitch, std::size_t slicePitch, unsigned int value,
                     unsigned int elementBytes, Box const& box, Work& work)
{
    if (elementBytes != 1 && elementBytes != 2 && elementBytes != 4)
        return cudaErrorInvalidValue;
    if (isEmpty(box)) {
        work = [] {};
        return cudaSuccess;
    }
    if (box.height > 1 && box.widthBytes > pitch)
        return cudaErrorInvalidPitchValue;
    std::size_t sizeBytes = 0;
    if (!boxBytes(box, pitch, slicePitch, sizeBytes))
        return cudaErrorInvalidValue;
    if (cudaError_t const error = checkRange(dst, sizeBytes, false); error != cudaSuccess)
        return error;
    work = [=] {
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
    return cudaSuccess;
}

namespace {

// A synchronous call is work on the legacy stream; it is also a wait, which captures can forbid.
cudaError_t runNow(Work work)
{
    if (cudaError_t const error = checkLegacyStream(); error != cudaSuccess)
        return error;
    return submit(nullptr, cudaGraphNodeTypeMemcpy, std::move(work));
}

cudaError_t checkDevices(int a, int b)
{
    return a == 0 && b == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

} // namespace
} // namespace tw::hostcuda

using namespace tw::hostcuda;

cudaError_t cudaMemcpy(void* dst, void const* src, size_t count, cudaMemcpyKind kind)
{
    return call([&] {
        Work work;
        cudaError_t const error = makeCopy(dst, src, count, kind, work);
        return error != cudaSuccess ? error : runNow(std::move(work));
    });
}

cudaError_t cudaMemcpyAsync(void* dst, void const* src, size_t count, cudaMemcpyKind kind, cudaStream_t stream)
{
    return call([&] {
        Work work;
        cudaError_t const error = makeCopy(dst, src, count, kind, work);
        return error != cudaSuccess ? error : submit(stream, cudaGraphNodeTypeMemcpy, std::move(work));
    });
}

cudaError_t cudaMemcpyPeer(void* dst, int dstDevice, void const* src, int srcDevice, size_t count)
{
    return call([&] {
        Work work;
        if (cudaError_t const error = checkDevices(dstDevice, srcDevice); error != cudaSuccess)
            return error;
        cudaError_t const error = makeCopy(dst, src, count, cudaMemcpyDeviceToDevice, work);
        return error != cudaSuccess ? error : runNow(std::move(work));
    });
}

cudaError_t cudaMemcpyPeerAsync(void* dst, int dstDevice, void const* src, int srcDevice, size_t count,
                                cudaStream_t stream)
{
    return call([&] {
        Work work;
        if (cudaError_t const error = checkDevices(dstDevice, srcDevice); error != cudaSuccess)
            return error;
        cudaError_t const error = makeCopy(dst, src, count, cudaMemcpyDeviceToDevice, work);
        return error != cudaSuccess ? error : submit(stream, cudaGraphNodeTypeMemcpy, std::move(work));
    });
}

cudaError_t cudaMemcpy2D(void* dst, size_t dstPitch, void const* src, size_t srcPitch, size_t width, size_t height,
                         cudaMemcpyKind kind)
{
    return call([&] {
        Work work;
        BoxCopy const copy{dst, dstPitch, 0, src, srcPitch, 0, {width, height, 1}};
        cudaError_t const error = makeBoxCopy(copy, kind, work);
        return error != cudaSuccess ? error : runNow(std::move(work));
    });
}

cudaError_t cudaMemcpy2DAsync(void* dst, size_t dstPitch, void const* src, size_t srcPitch, size_t width, size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream)
{
    return call([&] {
        Work work;
        BoxCopy const copy{dst, dstPitch, 0, src, srcPitch, 0, {width, height, 1}};
        cudaError_t const error = makeBoxCopy(copy, kind, work);
        return error != cudaSuccess ? error : submit(stream, cudaGraphNodeTypeMemcpy, std::move(work));
    });
}

cudaError_t cudaMemcpy3D(cudaMemcpy3DParms const* parms)
{
    return call([&] {
        Work work;
        cudaError_t const error = parms == nullptr ? cudaErrorInvalidValue : make3DCopy(*parms, work);
        return error != cudaSuccess ? error : runNow(std::move(work));
    });
}

cudaError_t cudaMemcpy3DAsync(cudaMemcpy3DParms const* parms, cudaStream_t stream)
{
    return call([&] {
        Work work;
        cudaError_t const error = parms == nullptr ? cudaErrorInvalidValue : make3DCopy(*parms, work);
        return error != cudaSuccess ? error : submit(stream, cudaGraphNodeTypeMemcpy, std::move(work));
    });
}

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

namespace {

cudaError_t make3DFill(cudaPitchedPtr const& pitched, int value, cudaExtent const& extent, Work& work)
{
    std::size_t slicePitch = 0;
    if (__builtin_mul_overflow(pitched.pitch, pitched.ysize, &slicePitch))
        return cudaErrorInvalidValue;
    return makeFill(pitched.ptr, pitched.pitch, slicePitch, static_cast<unsigned int>(value), 1,
                    Box{extent.width, extent.height, extent.depth}, work);
}

} // namespace

cudaError_t cudaMemset3D(cudaPitchedPtr pitched, int value, cudaExtent extent)
{
    return call([&] {
        Work work;
        cudaError_t const error = make3DFill(pitched, value, extent, work);
        return error != cudaSuccess ? error : runNow(std::move(work));
    });
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr pitched, int value, cudaExtent extent, cudaStream_t stream)
{
    return call([&] {
        Work work;
        cudaError_t const error = make3DFill(pitched, value, extent, work);
        return error != cudaSuccess ? error : submit(stream, cudaGraphNodeTypeMemset, std::move(work));
    });
}
