// SPDX-License-Identifier: Apache-2.0
// NVRTC, opened at run time: CUDA C++ text to device code. It needs no GPU and no driver. Each distinct text is
// compiled once in the compiler's life, or was by an earlier one that kept it in a folder; several threads may compile at
// once.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/cuda/library.h"
#include "device/cuda/nvrtc.h"

namespace tw::cuda {

class KernelCache;

// What the assembler said of one kernel.
struct KernelResources
{
    std::string kernel;
    int registers = 0;
    int spillBytes = 0;  // stores and loads together
    int sharedBytes = 0; // static
};

struct Compiled
{
    std::string cubin;
    std::vector<KernelResources> kernels;
    double seconds = 0;
};

class Compiler
{
public:
    ~Compiler();
    Compiler(Compiler const&) = delete;
    Compiler& operator=(Compiler const&) = delete;
    static Result<std::unique_ptr<Compiler>> open(SearchPath const& path, std::shared_ptr<KernelCache> kept = nullptr);

    // 13000 is NVRTC 13.0.
    int version() const { return version_; }
    // `architecture` as "sm_90a". `name` is for messages only. The error holds the compiler's messages.
    Result<std::shared_ptr<Compiled const>> compile(std::string const& name, std::string const& source,
                                                    std::string const& architecture);
    size_t compiledCount() const;
    int libraries() { return nvrtc_.count(); } // NVRTC and its copies

private:
    explicit Compiler(std::unique_ptr<Nvrtc> nvrtc) : nvrtc_(std::move(nvrtc)) {}
    Result<Compiled> compileNow(std::string const& name, std::string const& source, std::string const& architecture);
    // Of the folder where there is one, else compiled and kept there.
    Result<Compiled> compileOnce(std::string const& name, std::string const& source, std::string const& architecture);

    NvrtcCopies nvrtc_;
    std::shared_ptr<KernelCache> kept_; // may be null
    uint64_t fileBytes_ = 0;            // of the library: versions do not tell builds of NVRTC apart
    int version_ = 0;
    mutable std::mutex mutex_;
    std::condition_variable ended_;
    std::set<std::string, std::less<>> running_;                               // keys as in done_
    std::map<std::string, std::shared_ptr<Compiled const>, std::less<>> done_; // architecture + source
};

// Opens the compiler when it is first needed: it is large, and plans that bring their kernels never need it.
class LazyCompiler
{
public:
    explicit LazyCompiler(SearchPath path, std::shared_ptr<KernelCache> kept = nullptr)
        : path_(std::move(path)), kept_(std::move(kept))
    {}
    Result<Compiler*> get();
    KernelCache* kept() const { return kept_.get(); }

private:
    SearchPath path_;
    std::shared_ptr<KernelCache> kept_;
    std::mutex mutex_;
    std::unique_ptr<Compiler> compiler_;
};

} // namespace tw::cuda
