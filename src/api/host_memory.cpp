// SPDX-License-Identifier: Apache-2.0
#include "api/host_memory.h"

using tw::api::HostMemoryObject;

namespace nvinfer1 {

void* IHostMemory::data() const noexcept
{
    return const_cast<char*>(static_cast<HostMemoryObject const*>(this)->bytes.data());
}
std::size_t IHostMemory::size() const noexcept
{
    return static_cast<HostMemoryObject const*>(this)->bytes.size();
}
DataType IHostMemory::type() const noexcept
{
    return static_cast<HostMemoryObject const*>(this)->elementType;
}

} // namespace nvinfer1
