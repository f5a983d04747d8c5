// SPDX-License-Identifier: Apache-2.0
#include "ops/pooling/cuda_cells.h"

#include "tactic/cuda_tactic.h"

namespace tw::ops::pooling {

namespace {

constexpr char const* kPairs = R"(
typedef f16 T;
typedef u32 Cell;
constexpr int PER = 2;
constexpr bool AVERAGES = false;
constexpr u32 NOTHING = 0xFC00FC00u;
TW_INLINE Cell join(Cell a, Cell b) // of each half; NaN wins
{
    u32 v;
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
    return v;
}
template <int N> TW_INLINE Cell cellOf(u32 const (&words)[N], int i) { return words[i]; }
template <int N> TW_INLINE Cell pick(Cell const (&c)[N], int a, int b)
{
    return __byte_perm(c[a / 2], c[b / 2], (a % 2 ? 0x32u : 0x10u) | (b % 2 ? 0x7600u : 0x5400u));
}
)";
constexpr char const* kSingles = R"(
typedef $t$ T;
typedef float Cell;
constexpr int PER = 1;
constexpr bool AVERAGES = $averages$;
constexpr u32 NOTHING = AVERAGES ? 0 : 0xFF800000u;
TW_INLINE Cell join(Cell a, Cell b)
{
    if constexpr (AVERAGES) return a + b;
    Cell v;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(v) : "f"(a), "f"(b)); // NaN wins
    return v;
}
template <int N> TW_INLINE Cell cellOf(u32 const (&words)[N], int i)
{
    if constexpr (sizeof(T) == 4) return __uint_as_float(words[i]);
    f16 h;
    h.bits = (unsigned short)(i % 2 ? words[i / 2] >> 16 : words[i / 2]);
    return halfToFloat(h);
}
template <int N> TW_INLINE Cell pick(Cell const (&c)[N], int a, int) { return c[a]; }
)";

} // namespace

std::string cellsText(DataType type, bool averages)
{
    return hasPairs(type, averages)
               ? std::string(kPairs)
               : cuda::expand(kSingles, {{"t", cuda::storageOf(type)}, {"averages", averages ? "true" : "false"}});
}

} // namespace tw::ops::pooling
