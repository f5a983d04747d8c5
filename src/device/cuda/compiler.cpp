// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/compiler.h"

#include <cstdlib>
#include <filesystem>

#include "device/cuda/kernel_cache.h"
#include "device/cuda/library.h"

namespace tw::cuda {

namespace {

constexpr char const* kOptions[] = {"--std=c++17", "--ptxas-options=-v", "--no-source-include"};

// The number before `what`, in the line that begins at `from`.
int numberBefore(std::string const& log, size_t from, size_t end, char const* what)
{
    size_t at = log.find(what, from);
    if (at == std::string::npos || at >= end)
        return 0;
    size_t begin = at;
    while (begin > from && (log[begin - 1] == ' ' || (log[begin - 1] >= '0' && log[begin - 1] <= '9')))
        --begin;
    return std::atoi(log.c_str() + begin);
}

// Of the assembler's verbose report:
//   ptxas info    : Compiling entry function 'name' for 'sm_90a'
//   ptxas info    : Function properties for name
//       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//   ptxas info    : Used 12 registers, used 0 barriers, 0 bytes smem
std::vector<KernelResources> resourcesOf(std::string const& log)
{
    static constexpr char const* kEntry = "Compiling entry function '";
    std::vector<KernelResources> list;
    for (size_t at = log.find(kEntry); at != std::string::npos;) {
        size_t const name = at + std::string(kEntry).size(), next = log.find(kEntry, name);
        KernelResources r;
        r.kernel = log.substr(name, log.find('\'', name) - name);
        r.spillBytes =
            numberBefore(log, name, next, " bytes spill stores") + numberBefore(log, name, next, " bytes spill loads");
        r.registers = numberBefore(log, name, next, " registers");
        r.sharedBytes = numberBefore(log, name, next, " bytes smem");
        list.push_back(std::move(r));
        at = next;
    }
    return list;
}

} // namespace

Compiler::~Compiler() = default;

Result<std::unique_ptr<Compiler>> Compiler::open(SearchPath const& path, std::shared_ptr<KernelCache> kept)
{
    TW_ASSIGN(auto library, openLibraryOfDriver("NVRTC, the compiler for CUDA kernels,", "libnvrtc.so", path));
    TW_ASSIGN(auto nvrtc, Nvrtc::of(std::move(library)));
    int major = 0, minor = 0;
    std::string const file = nvrtc->library->file();
    if (nvrtc->nvrtcVersion(&major, &minor) != 0 || major < 12)
        return failedInitialization("{} is NVRTC {}, 12 is the oldest that works", file, major);
    std::unique_ptr<Compiler> c(new Compiler(std::move(nvrtc)));
    c->kept_ = std::move(kept);
    c->version_ = major * 1000 + minor * 10;
    std::error_code unknown;
    c->fileBytes_ = std::filesystem::file_size(file, unknown);
    return c;
}

Result<Compiler*> LazyCompiler::get()
{
    std::lock_guard lock(mutex_);
    if (!compiler_) {
        TW_ASSIGN(compiler_, Compiler::open(path_, kept_));
    }
    return compiler_.get();
}

Result<std::shared_ptr<Compiled const>> Compiler::compile(std::string const& name, std::string const& source,
                                                          std::string const& architecture)
{
    std::string const key = architecture + "\n" + source;
    {
        // Another thread may be at the same text: its result will do.
        std::unique_lock lock(mutex_);
        ended_.wait(lock, [&] { return !running_.contains(key); });
        if (auto it = done_.find(key); it != done_.end())
            return it->second;
        running_.insert(key);
    }
    auto fresh = compileOnce(name, source, architecture);
    std::lock_guard lock(mutex_);
    running_.erase(key);
    ended_.notify_all();
    if (!fresh.ok())
        return fresh.error();
    return done_.try_emplace(key, std::make_shared<Compiled const>(std::move(*fresh))).first->second;
}

size_t Compiler::compiledCount() const
{
    std::lock_guard lock(mutex_);
    return done_.size();
}

Result<Compiled> Compiler::compileOnce(std::string const& name, std::string const& source,
                                       std::string const& architecture)
{
    if (!kept_)
        return compileNow(name, source, architecture);
    std::string text = fmt::format("{} {} {}", version_, fileBytes_, architecture);
    for (char const* option : kOptions)
        text += std::string(" ") + option;
    text += "\n" + source;
    Hash128 const key = hashBytes128(text.data(), text.size());
    if (auto found = kept_->find(key))
        return std::move(*found);
    auto fresh = compileNow(name, source, architecture);
    if (fresh.ok())
        kept_->keep(key, *fresh);
    return fresh;
}

Result<Compiled> Compiler::compileNow(std::string const& name, std::string const& source,
                                      std::string const& architecture)
{
    NvrtcCopies::Use const use(nvrtc_);
    Nvrtc const& nvrtc = *use;
    NvrtcProgram* program = nullptr;
    // One name for all: it is part of the code, and equal sources must give equal bytes.
    if (int const status = nvrtc.nvrtcCreateProgram(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr))
        return failedInitialization(std::string("NVRTC: ") + nvrtc.nvrtcGetErrorString(status));
    struct Destroy
    {
        Nvrtc const& c;
        NvrtcProgram** p;
        ~Destroy() { c.nvrtcDestroyProgram(p); }
    } const destroy{nvrtc, &program};
    std::string const target = "--gpu-architecture=" + architecture;
    char const* const options[] = {target.c_str(), kOptions[0], kOptions[1], kOptions[2]};
    int const status = nvrtc.nvrtcCompileProgram(program, int(std::size(options)), options);
    size_t bytes = 0;
    std::string log;
    if (nvrtc.nvrtcGetProgramLogSize(program, &bytes) == 0 && bytes > 1) {
        log.resize(bytes);
        nvrtc.nvrtcGetProgramLog(program, log.data());
        log.resize(bytes - 1); // without the closing zero
    }
    if (status != 0)
        return internalError("the CUDA source of '" + name + "' does not compile for " + architecture + ": " + log);
    Compiled out;
    out.kernels = resourcesOf(log);
    if (nvrtc.nvrtcGetCUBINSize(program, &bytes) != 0 || bytes == 0)
        return internalError("NVRTC made no device code of '" + name + "' for " + architecture);
    out.cubin.resize(bytes);
    if (int const read = nvrtc.nvrtcGetCUBIN(program, out.cubin.data()))
        return internalError(std::string("NVRTC: ") + nvrtc.nvrtcGetErrorString(read));
    out.seconds = use.seconds();
    return out;
}

} // namespace tw::cuda
