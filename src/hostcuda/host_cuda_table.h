// SPDX-License-Identifier: Apache-2.0
// How libnvinfer takes part in the streams of our CUDA runtime stand-in.
//
// A libcudart of ours has one such table, `twHostCuda`, and announces it by a note in its ELF file (modules.h), so that
// libnvinfer finds it however it was loaded: present means that the client's streams, events and "device" pointers
// belong to the stand-in and that the device is the CPU (stream.h of the API says what holds beside NVIDIA's
// libcudart). Before the first use check `version == kTwHostCudaVersion` and `sizeBytes >= sizeof(TwHostCudaTable)` as
// it was compiled; a newer stand-in may append fields and keep the version.
//
// Every function is thread safe, throws nothing, and returns a cudaError_t as int (0 = success). Unlike the cuda*
// functions they leave the thread's last error alone: an error of the library's own call is not the client's.
//
// Order: work of one stream never overlaps with other work of that stream. It runs in the calling thread, before
// enqueue returns, so everything given to a stream earlier is finished when it starts. Work may call cuda* functions,
// on the same stream too (a plugin does): they run at once, at that place in the order.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct CUstream_st;
struct CUevent_st;

extern "C" {

enum
{
    kTwHostCudaVersion = 1
};

// What the stand-in knows of an address.
enum TwHostCudaMemory
{
    kTwHostCudaUnknown = 0, // plain host memory, never seen by the stand-in: usable, of unknown size
    kTwHostCudaHost = 1,    // cudaMallocHost, cudaHostAlloc, cudaHostRegister
    kTwHostCudaDevice = 2,  // cudaMalloc and its kin; host memory too
    kTwHostCudaManaged = 3  // cudaMallocManaged
};

struct TwHostCudaPointer
{
    int32_t memory;   // TwHostCudaMemory
    int32_t reserved; // 0
    void* base;       // start of the allocation that holds the address; null when unknown
    size_t sizeBytes; // size of that allocation; 0 when unknown
};

struct TwHostCudaTable
{
    uint32_t version;   // kTwHostCudaVersion; another value means another layout
    uint32_t sizeBytes; // of this table in the stand-in

    // Runs fn(arg) in stream order. Where the stream is capturing, fn is recorded instead and runs at every launch of
    // the graph, one launch at a time, in whichever thread launches. enqueue owns arg from the call on, also when it
    // fails: destroyArg(arg) (null: nothing to do) is called once, after fn's only run, or when the last graph and
    // executable graph that hold it are destroyed. fn and destroyArg must not throw.
    // Fails with cudaErrorInvalidValue (null fn), cudaErrorInvalidResourceHandle (unknown stream),
    // cudaErrorStreamCaptureInvalidated or cudaErrorStreamCaptureImplicit; then fn has not run and never will.
    int (*enqueue)(CUstream_st* stream, void (*fn)(void*), void* arg, void (*destroyArg)(void*));

    // *capturing = 1 while the stream records (also when its capture has become invalid), else 0.
    int (*isCapturing)(CUstream_st* stream, int* capturing);

    // cudaEventRecord: stamps the event, or makes it a point of the capture.
    int (*recordEvent)(CUevent_st* event, CUstream_st* stream);

    // cudaStreamWaitEvent with flags 0.
    int (*waitEvent)(CUstream_st* stream, CUevent_st* event);

    // Waits until work that other threads run on the stream has finished. An error that invalidates the capture when
    // the stream is capturing, like cudaStreamSynchronize.
    int (*synchronize)(CUstream_st* stream);

    // Fills *info; an unknown address is no error.
    int (*pointerInfo)(void const* ptr, TwHostCudaPointer* info);
};

// Exported by the shared libraries; this declaration gives the symbol C linkage and its type.
extern TwHostCudaTable const twHostCuda;

} // extern "C"
