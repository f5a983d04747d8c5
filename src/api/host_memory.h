// SPDX-License-Identifier: Apache-2.0
// Bytes that the library hands to the client: a plan, a timing cache.
#pragma once

#include <string>

#include "api/property.h"

namespace tw::api {

struct HostMemoryObject final : nvinfer1::IHostMemory
{
    explicit HostMemoryObject(std::string b, nvinfer1::DataType t = nvinfer1::DataType::kINT8)
        : bytes(std::move(b)), elementType(t)
    {}
    std::string bytes;
    nvinfer1::DataType elementType;
};
TW_OBJECT(nvinfer1::IHostMemory, HostMemoryObject)

} // namespace tw::api
