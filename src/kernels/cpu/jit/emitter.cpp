// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/emitter.h"

#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/mman.h>

#include "base/hash.h"
#include "device/cpu.h"

namespace tw::kernels::jit {

std::optional<Isa> isaOf(device::CpuInfo const& cpu, Isa highest)
{
    if (!cpu.avx2 || !cpu.fma)
        return std::nullopt;
    bool const avx512 = cpu.avx512f && cpu.avx512bw && cpu.avx512vl && cpu.avx512dq;
    return avx512 && highest == Isa::kAvx512 ? Isa::kAvx512 : Isa::kAvx2;
}

char const* isaName(Isa isa)
{
    return isa == Isa::kAvx512 ? "avx512" : "avx2";
}

namespace {

// The functions of the process that are in use, by their hash.
class Functions
{
public:
    Result<std::shared_ptr<void const>> find(uint8_t const* bytes, size_t sizeBytes)
    {
        uint64_t const key = hashBytes(bytes, sizeBytes);
        std::vector<std::shared_ptr<void const>> others; // may be the last to hold them: let go after the lock
        std::lock_guard const lock(mutex_);
        for (auto [it, end] = known_.equal_range(key); it != end; ++it) {
            auto memory = it->second.memory.lock();
            if (memory && it->second.sizeBytes == sizeBytes && std::memcmp(memory.get(), bytes, sizeBytes) == 0)
                return memory;
            others.push_back(std::move(memory));
        }
        TW_ASSIGN(void* const p, place(bytes, sizeBytes));
        auto const entry = known_.insert({key, {}});
        std::shared_ptr<void const> memory(p, [=, this](void* m) {
            ::munmap(m, sizeBytes);
            std::lock_guard const closing(mutex_);
            known_.erase(entry);
        });
        entry->second = {memory, sizeBytes};
        return memory;
    }

private:
    struct Function
    {
        std::weak_ptr<void const> memory;
        size_t sizeBytes = 0;
    };

    static Result<void*> place(uint8_t const* bytes, size_t sizeBytes)
    {
        void* const p = ::mmap(nullptr, sizeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            return failedAllocation("no memory for {} bytes of machine code: {}", sizeBytes, std::strerror(errno));
        std::memcpy(p, bytes, sizeBytes);
        if (::mprotect(p, sizeBytes, PROT_READ | PROT_EXEC) == 0)
            return p;
        int const why = errno;
        ::munmap(p, sizeBytes);
        return failedInitialization(
            std::string("this system forbids code made at run time (mprotect: ") + std::strerror(why) +
            "); allow executable memory for the process, or build the engine with plain kernels");
    }

    std::mutex mutex_;
    std::unordered_multimap<uint64_t, Function> known_;
};

Functions& functions()
{
    static Functions* const all = new Functions; // never destroyed: engines may be static objects of the client
    return *all;
}

} // namespace

Result<Code> Code::make(uint8_t const* bytes, size_t sizeBytes)
{
    if (sizeBytes == 0)
        return internalError("an emitted function has no code");
    Code code;
    TW_ASSIGN(code.memory_, functions().find(bytes, sizeBytes));
    code.sizeBytes_ = sizeBytes;
    return code;
}

} // namespace tw::kernels::jit
