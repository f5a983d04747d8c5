// SPDX-License-Identifier: Apache-2.0
// Checked copies and fills as closures, for streams and for graph nodes alike.
#pragma once

#include <cstddef>

#include "cuda_runtime_api.h"
#include "state.h"

namespace tw::hostcuda {

struct Box
{
    std::size_t widthBytes = 0;
    std::size_t height = 0;
    std::size_t depth = 0;
};

struct BoxCopy
{
    void* dst = nullptr;
    std::size_t dstPitch = 0;
    std::size_t dstSlicePitch = 0;
    void const* src = nullptr;
    std::size_t srcPitch = 0;
    std::size_t srcSlicePitch = 0;
    Box box;
};

// Each checks its arguments.
Work makeCopy(void* dst, void const* src, std::size_t count, cudaMemcpyKind kind);
Work makeBoxCopy(BoxCopy const& copy, cudaMemcpyKind kind);
Work make3DCopy(cudaMemcpy3DParms const* parms);
Work makeFill(void* dst, std::size_t pitch, std::size_t slicePitch, unsigned int value, unsigned int elementBytes,
              Box const& box);

// Every field.
cudaDeviceProp propertiesOf(int device);

// Fails for a number that is no attribute. Attributes of things that do not exist here (textures, surfaces, links, peer
// devices, memory clock and bus) are 0.
int attributeOf(cudaDeviceAttr attr);

} // namespace tw::hostcuda
