// SPDX-License-Identifier: Apache-2.0
#include "device/cpu.h"

#include <atomic>
#include <cstdint>
#include <cstring>

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tw::device {

namespace {

struct Leaf
{
    uint32_t a = 0, b = 0, c = 0, d = 0;
};

Leaf cpuid(uint32_t leaf, uint32_t sub = 0)
{
    Leaf r;
    if (!__get_cpuid_count(leaf, sub, &r.a, &r.b, &r.c, &r.d))
        return {};
    return r;
}

bool bit(uint32_t word, int i)
{
    return (word >> i & 1) != 0;
}

// Register state that the operating system saves: bit 1 SSE, 2 AVX, 5..7 AVX-512, 17 and 18 AMX.
uint64_t xcr0()
{
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return uint64_t(hi) << 32 | lo;
}

std::atomic<IsaLimit> isaLimit = IsaLimit::kNone;

} // namespace

void limitIsa(IsaLimit limit)
{
    static bool const first = (isaLimit = limit, true);
    static_cast<void>(first);
}

CpuInfo probeCpu()
{
    CpuInfo info;
    Leaf const one = cpuid(1), seven = cpuid(7), sevenOne = cpuid(7, 1);
    bool const osxsave = bit(one.c, 27);
    uint64_t const saved = osxsave ? xcr0() : 0;
    bool const ymm = (saved & 0x6) == 0x6, zmm = (saved & 0xe6) == 0xe6;
    bool const tiles = zmm && (saved & 0x60000) == 0x60000 && bit(seven.d, 24);
    info.avx2 = ymm && bit(seven.b, 5);
    info.fma = ymm && bit(one.c, 12);
    info.f16c = ymm && bit(one.c, 29);
    info.avxVnni = ymm && bit(sevenOne.a, 4);
    info.avx512f = zmm && bit(seven.b, 16);
    info.avx512dq = zmm && bit(seven.b, 17);
    info.avx512bw = zmm && bit(seven.b, 30);
    info.avx512vl = zmm && bit(seven.b, 31);
    info.avx512vbmi = zmm && bit(seven.c, 1);
    info.avx512vnni = zmm && bit(seven.c, 11);
    info.avx512fp16 = zmm && bit(seven.d, 23);
    info.avx512bf16 = zmm && bit(sevenOne.a, 5);
    info.amxBf16 = tiles && bit(seven.d, 22);
    IsaLimit const limit = isaLimit;
    if (limit != IsaLimit::kNone)
        info.avx512f = info.avx512dq = info.avx512bw = info.avx512vl = info.avx512vbmi = info.avx512vnni =
            info.avx512fp16 = info.avx512bf16 = info.amxBf16 = false;
    if (limit == IsaLimit::kBaseline)
        info.avx2 = info.fma = info.f16c = info.avxVnni = false;
    // Caches, one by one, in a leaf of the same layout at each maker's place.
    bool const amd = bit(cpuid(0x80000001u).c, 22); // topology extensions
    for (uint32_t i = 0; i < 16; ++i) {
        Leaf const l = cpuid(amd ? 0x8000001du : 4u, i);
        uint32_t const type = l.a & 31, level = l.a >> 5 & 7; // 0 none, 1 data, 2 instructions, 3 both
        if (type == 0)
            break;
        // ways, partitions, line bytes, sets
        int64_t const sizeBytes = (int64_t(l.b >> 22) + 1) * (int64_t(l.b >> 12 & 0x3ff) + 1) *
                                  (int64_t(l.b & 0xfff) + 1) * (int64_t(l.c) + 1);
        if (level == 1 && type == 1)
            info.l1DataBytes = sizeBytes;
        if (level == 2)
            info.l2Bytes = sizeBytes;
    }
    char name[49] = {};
    for (uint32_t i = 0; i < 3; ++i) {
        Leaf const l = cpuid(0x80000002u + i);
        std::memcpy(name + 16 * i, &l, 16);
    }
    info.model = name;
    while (!info.model.empty() && info.model.back() == ' ')
        info.model.pop_back();
    while (!info.model.empty() && info.model.front() == ' ')
        info.model.erase(0, 1);
    if (info.model.empty())
        info.model = "x86-64 CPU";
    return info;
}

std::string CpuInfo::fingerprint() const
{
    std::string s = "cpu:" + model;
    auto add = [&](bool has, char const* flag) {
        if (has)
            s += std::string(":") + flag;
    };
    add(avx2, "avx2");
    add(fma, "fma");
    add(f16c, "f16c");
    add(avx512f, "avx512f");
    add(avx512dq, "avx512dq");
    add(avx512bw, "avx512bw");
    add(avx512vl, "avx512vl");
    add(avx512vnni, "avx512vnni");
    add(avx512vbmi, "avx512vbmi");
    add(avxVnni, "avxvnni");
    add(avx512fp16, "avx512fp16");
    add(avx512bf16, "avx512bf16");
    add(amxBf16, "amxbf16");
    return s;
}

bool permitTiles()
{
    // Numbers of Linux: arch_prctl(ARCH_REQ_XCOMP_PERM, the tile data of XSAVE). Once asked, it holds for the process.
    constexpr long kRequest = 0x1023, kTileData = 18;
    static bool const permitted = probeCpu().amxBf16 && ::syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
    return permitted;
}

int64_t physicalMemoryBytes()
{
    long const pages = ::sysconf(_SC_PHYS_PAGES), pageBytes = ::sysconf(_SC_PAGESIZE);
    return pages > 0 && pageBytes > 0 ? int64_t(pages) * pageBytes : 0;
}

} // namespace tw::device
