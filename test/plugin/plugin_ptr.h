// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "NvInfer.h"

namespace tw::test {

struct DestroyPlugin
{
    void operator()(nvinfer1::IPluginV2* p) const { p->destroy(); }
};
using PluginPtr = std::unique_ptr<nvinfer1::IPluginV2, DestroyPlugin>;

} // namespace tw::test
