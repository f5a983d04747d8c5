// SPDX-License-Identifier: Apache-2.0
#include "api/host_memory.h"

using namespace tw::api;

namespace nvinfer1 {

TW_GETTER(IHostMemory, void*, data, const_cast<char*>(self.bytes.data()))
TW_GETTER(IHostMemory, std::size_t, size, self.bytes.size())
TW_GETTER(IHostMemory, DataType, type, self.elementType)

} // namespace nvinfer1
