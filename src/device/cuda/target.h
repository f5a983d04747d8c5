// SPDX-License-Identifier: Apache-2.0
// What CUDA tactics are built for and loaded on.
#pragma once

#include <memory>
#include <string>

#include "device/cuda/compiler.h"
#include "device/cuda/device.h"

namespace tw::cuda {

class Libraries;

struct Target
{
    std::shared_ptr<Device const> device;   // null: kernels are compiled, none can run
    std::shared_ptr<LazyCompiler> compiler; // never null
    std::shared_ptr<Libraries> libraries;   // null: their tactics refuse everything
    std::string architecture;               // "sm_90a"
    int capability = 0;                     // 90
    int multiprocessors = 1;

    static Target of(std::shared_ptr<Device const> device, std::shared_ptr<LazyCompiler> compiler,
                     std::shared_ptr<Libraries> libraries = nullptr)
    {
        Target t;
        t.compiler = std::move(compiler);
        t.libraries = std::move(libraries);
        t.architecture = device->info().architecture();
        t.capability = device->info().capability();
        t.multiprocessors = device->info().multiprocessors;
        t.device = std::move(device);
        return t;
    }
};

} // namespace tw::cuda
