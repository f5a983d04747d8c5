// SPDX-License-Identifier: Apache-2.0
// What this CPU is and can do. Probed once by the caller and passed down.
#pragma once

#include <cstdint>
#include <string>

namespace tw::device {

struct CpuInfo
{
    std::string model; // "AMD EPYC 9R14", from cpuid
    bool avx2 = false, fma = false, f16c = false;
    bool avx512f = false, avx512bw = false, avx512vl = false, avx512dq = false;
    bool avx512vnni = false, avx512vbmi = false, avxVnni = false, avx512fp16 = false, avx512bf16 = false;
    bool amxBf16 = false; // tiles of AMX; a process may use them once permitTiles() is true
    int64_t l1DataBytes = 32 << 10, l2Bytes = 512 << 10; // of one core; these when the CPU does not say
    // Model and instruction sets in one line: the key of tactic choices.
    std::string fingerprint() const;
};

// The widest instruction set that is used; a CPU without it has what it has.
enum class IsaLimit
{
    kNone,
    kAvx2,
    kBaseline, // x86-64 as it first was
};
// Of the process: what the first call says holds for every probeCpu() that comes after it.
void limitIsa(IsaLimit limit);
CpuInfo probeCpu();
// Asks the system for the registers of AMX, for every thread of the process: false where it has none or refuses.
bool permitTiles();
// Of the machine; 0 when the system does not say.
int64_t physicalMemoryBytes();

// Whether others use the CPUs that kernels are timed on.

// Processes that ran or wanted to in the last minute, on average; 0 where the system does not say.
double loadAverage();
// More than the CPUs can run, ours among them.
bool isBusy(double load, int cpus);
// "This machine is busy (load 5.1 on 2 CPUs): ..."; empty: it is not.
std::string busyLine();

} // namespace tw::device
