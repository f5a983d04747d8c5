// SPDX-License-Identifier: Apache-2.0
// The streams and events of the client's CUDA runtime. Only our stand-in can order work of the CPU device.
#pragma once

#include "base/result.h"
#include "hostcuda/host_cuda_table.h"

namespace tw::api {

// Our stand-in in this process, however it was loaded.
struct HostCuda
{
    TwHostCudaTable const* table = nullptr; // null: there is none
    bool isBesideAnother = false; // NVIDIA's libcudart is there too, and ours was loaded for some library alone
};
HostCuda hostCuda();
// The stand-in that a stream of an engine on the CPU belongs to. Null when there is none, or when a GPU's runtime is in
// the process too and the stream is not the stand-in's.
TwHostCudaTable const* hostCudaOf(CUstream_st* stream);
// Why a stream or an event (`what`) cannot be used without the stand-in.
Error needsHostCuda(char const* what);
// A CUDA status of the stand-in as an error: "<what>: CUDA error 400 (invalid stream or event)".
Error cudaFailed(char const* what, int status);

} // namespace tw::api
