// SPDX-License-Identifier: Apache-2.0
// What the library reads from the process environment: nothing below src/api does. Builders and runtimes read it once,
// when they are made.
#pragma once

#include <string>

#include "base/permissions.h"
#include "base/result.h"
#include "device/cpu.h"
#include "dla/model.h"

namespace tw::api {

enum class RequestedDevice
{
    kAny, // a GPU when there is one
    kCpu,
    kCuda,
};

struct Environment
{
    // TENSORWRIGHT_DEVICE=cpu|cuda|cuda:N.
    RequestedDevice device = RequestedDevice::kAny;
    int gpu = -1; // N; -1: the client's current device
    // TENSORWRIGHT_NVRTC: file or folder of the compiler for CUDA kernels.
    std::string nvrtc;
    // TENSORWRIGHT_KERNEL_CACHE=folder|off: where compiled CUDA kernels are kept for later builds. Else tensorwright/kernels in
    // XDG_CACHE_HOME or in ~/.cache. Empty: nowhere.
    std::string kernelCache;
    // TENSORWRIGHT_CUBLASLT, TENSORWRIGHT_CUDNN: the same of the libraries whose kernels compete with ours.
    std::string cublasLt, cudnn;
    // Whose packages may hold them: VIRTUAL_ENV and CONDA_PREFIX; PATH finds the Python that runs us.
    std::string virtualEnvironment, condaPrefix, path;
    std::string nvtxInjection; // NVTX_INJECTION64_PATH: the library of a profiler that wants ranges
    // TENSORWRIGHT_STRICT_PLAN=1: plans of another version or another device are refused, as 8.5 does.
    bool strictPlan = false;
    // TENSORWRIGHT_COPY_PLAN=1: engines keep a copy of their plan, in place of weights in the file that a client
    // mapped: for clients that change such a file while an engine lives.
    bool copyPlan = false;
    // TENSORWRIGHT_NUM_THREADS: threads of the CPU device, the caller included; 0: one for each CPU of the process.
    // Counts where the thread pool of the process is made, at its first use.
    int threads = 0;
    // TENSORWRIGHT_CPU_ISA=baseline|avx2|avx512: the widest instruction set that is used on the CPU, for plans as for
    // another machine and for tests. Counts where the process first makes a builder or a runtime.
    device::IsaLimit isaLimit = device::IsaLimit::kNone;
    // What builders may do to numbers, as far as variables say so (environment.cpp lists them).
    Permissions permits;
    // TENSORWRIGHT_RECORD_TENSORS=folder: every run of a context of this runtime's engines leaves there what its layers
    // have made (tensor_records.h).
    std::string recordFolder;
    // TENSORWRIGHT_TUNING_SECONDS: what a build may spend on timing candidates, about; 0: as long as it takes.
    int tuningSeconds = 0;
    // TENSORWRIGHT_KV_CAPACITY: rows that caches of decoders get for good, which get longer with each run in the network; 0: they stay
    // as they are (passes/caches/fixed_caches.h).
    int kvCapacity = 0;
    // TENSORWRIGHT_KV_PAGES, beside TENSORWRIGHT_KV_CAPACITY: blocks of 16 rows that the caches of all sequences have together; 0: each
    // sequence has its rows.
    int kvPages = 0;
    // TENSORWRIGHT_DLA_MODEL=orin|xavier: layers may be sent to a DLA that is modelled on the present device.
    dla::Model dla = dla::Model::kNone;
};

// Every variable must have a value that it knows.
Result<Environment> readEnvironment();

} // namespace tw::api
