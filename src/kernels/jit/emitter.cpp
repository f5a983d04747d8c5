// SPDX-License-Identifier: Apache-2.0
#include "kernels/jit/emitter.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

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

Code::Code(Code&& other) noexcept : memory_(other.memory_), sizeBytes_(other.sizeBytes_)
{
    other.memory_ = nullptr;
    other.sizeBytes_ = 0;
}

Code& Code::operator=(Code&& other) noexcept
{
    std::swap(memory_, other.memory_);
    std::swap(sizeBytes_, other.sizeBytes_);
    return *this;
}

Code::~Code()
{
    if (memory_)
        ::munmap(memory_, sizeBytes_);
}

Result<Code> Code::make(uint8_t const* bytes, size_t sizeBytes)
{
    if (sizeBytes == 0)
        return internalError("an emitted function has no code");
    Code code;
    void* p = ::mmap(nullptr, sizeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return Error{ErrorCode::kFailedAllocation,
                     "no memory for " + std::to_string(sizeBytes) + " bytes of machine code: " + std::strerror(errno)};
    code.memory_ = p;
    code.sizeBytes_ = sizeBytes;
    std::memcpy(p, bytes, sizeBytes);
    if (::mprotect(p, sizeBytes, PROT_READ | PROT_EXEC) != 0)
        return Error{ErrorCode::kFailedInitialization,
                     std::string("this system forbids code made at run time (mprotect: ") + std::strerror(errno) +
                         "); allow executable memory for the process, or build the engine with plain kernels"};
    return code;
}

} // namespace tw::kernels::jit
