// SPDX-License-Identifier: Apache-2.0
// The kernels of kernels.h, written once with the compiler's vector types. For the files that define TW_ISA (the
// namespace) and TW_BYTES (of a vector).
#include <immintrin.h>

#include "ops/gather/kernels.h"

namespace tw::TW_ISA {

namespace {

constexpr int64_t kVector = TW_BYTES, kLine = 64;
constexpr int64_t kLongBytes = 512, kLines = 4;

template <int64_t kBytes>
struct Bytes
{
    using V [[gnu::vector_size(kBytes)]] = uint8_t;
};
template <int64_t kBytes>
inline typename Bytes<kBytes>::V loadBytesAt(std::byte const* x)
{
    typename Bytes<kBytes>::V v;
    __builtin_memcpy(&v, x, kBytes);
    return v;
}
template <int64_t kBytes>
inline void storeBytesAt(std::byte* y, typename Bytes<kBytes>::V v)
{
    __builtin_memcpy(y, &v, kBytes);
}

// kPieces pieces of kBytes, half of them counted from the end, which may overlap.
template <int64_t kBytes, int kPieces>
inline void copyPieces(std::byte* y, std::byte const* x, int64_t n)
{
    typename Bytes<kBytes>::V v[kPieces];
    auto at = [n](int i) { return i < kPieces / 2 ? i * kBytes : n - (kPieces - i) * kBytes; };
    for (int i = 0; i < kPieces; ++i)
        v[i] = loadBytesAt<kBytes>(x + at(i));
    for (int i = 0; i < kPieces; ++i)
        storeBytesAt<kBytes>(y + at(i), v[i]);
}

// Up to four vectors.
inline void copyShort(std::byte* y, std::byte const* x, int64_t n)
{
    if (n > 2 * kVector)
        return copyPieces<kVector, 4>(y, x, n);
    if (n >= kVector)
        return copyPieces<kVector, 2>(y, x, n);
#if TW_BYTES == 64
    if (n >= 32)
        return copyPieces<32, 2>(y, x, n);
#endif
    if (n >= 16)
        return copyPieces<16, 2>(y, x, n);
    if (n >= 8)
        return copyPieces<8, 2>(y, x, n);
    if (n >= 4)
        return copyPieces<4, 2>(y, x, n);
    for (int64_t i = 0; i < n; ++i)
        y[i] = x[i];
}

inline void copyLong(std::byte* y, std::byte const* x, int64_t n)
{
    int64_t b = 0;
    for (; b + 4 * kVector <= n; b += 4 * kVector)
        copyPieces<kVector, 4>(y + b, x + b, 4 * kVector);
    for (; b + kVector <= n; b += kVector)
        storeBytesAt<kVector>(y + b, loadBytesAt<kVector>(x + b));
    storeBytesAt<kVector>(y + n - kVector, loadBytesAt<kVector>(x + n - kVector));
}

inline std::byte const* blockOf(std::byte const* x, int64_t index, int64_t size, int64_t blockBytes)
{
    index += index < 0 ? size : 0;
    return uint64_t(index) < uint64_t(size) ? x + index * blockBytes : nullptr;
}

template <int64_t kBytes>
void blocksOf(std::byte const* x, int32_t const* j, int64_t count, int64_t size, std::byte* y)
{
    for (int64_t i = 0; i < count; ++i, y += kBytes) {
        constexpr int64_t kPiece = kBytes < kVector ? kBytes : kVector;
        if (std::byte const* from = blockOf(x, j[i], size, kBytes))
            copyPieces<kPiece, kBytes / kPiece>(y, from, kBytes);
        else
            __builtin_memset(y, 0, kBytes);
    }
}

void blocks(std::byte const* x, int32_t const* j, int64_t count, int64_t size, int64_t blockBytes, std::byte* y)
{
    switch (blockBytes) {
    case 1:
        return blocksOf<1>(x, j, count, size, y);
    case 2:
        return blocksOf<2>(x, j, count, size, y);
    case 4:
        return blocksOf<4>(x, j, count, size, y);
    case 8:
        return blocksOf<8>(x, j, count, size, y);
    case 16:
        return blocksOf<16>(x, j, count, size, y);
    case 32:
        return blocksOf<32>(x, j, count, size, y);
    case 64:
        return blocksOf<64>(x, j, count, size, y);
    }
    if (blockBytes <= 4 * kVector) {
        for (int64_t i = 0; i < count; ++i, y += blockBytes) {
            if (std::byte const* from = blockOf(x, j[i], size, blockBytes))
                copyShort(y, from, blockBytes);
            else
                for (int64_t b = 0; b < blockBytes; ++b)
                    y[b] = std::byte(0);
        }
        return;
    }
    // Blocks lie anywhere: the hardware learns of each by its first misses. The first lines of the one after the next
    // are fetched while this one is copied (0.7 to 0.9 of the time where x is in memory, more lines gain nothing).
    int64_t const ahead = blockBytes < kLongBytes ? 1 : kLines;
    for (int64_t i = 0; i < count; ++i, y += blockBytes) {
        std::byte const* from = blockOf(x, j[i], size, blockBytes);
        if (std::byte const* next = i + 2 < count ? blockOf(x, j[i + 2], size, blockBytes) : nullptr)
            for (int64_t line = 0; line < ahead; ++line)
                _mm_prefetch(reinterpret_cast<char const*>(next + line * kLine), _MM_HINT_T0);
        if (!from)
            __builtin_memset(y, 0, size_t(blockBytes));
        else if (kVector == 16 || blockBytes < kLongBytes)
            __builtin_memcpy(y, from, size_t(blockBytes));
        else
            copyLong(y, from, blockBytes);
    }
}

#if TW_BYTES > 16
using Words [[gnu::vector_size(TW_BYTES)]] = int32_t;

// x[at] where `use` is set, else 0.
inline Words gatherWords(uint32_t const* x, Words at, Words use)
{
#if TW_BYTES == 64
    return Words(
        _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), _mm512_movepi32_mask(__m512i(use)), __m512i(at), x, 4));
#else
    return Words(_mm256_mask_i32gather_epi32(_mm256_setzero_si256(), reinterpret_cast<int const*>(x), __m256i(at),
                                             __m256i(use), 4));
#endif
}

void words(uint32_t const* x, int32_t const* j, int64_t count, int64_t size, int64_t step, int64_t along, uint32_t* y)
{
    constexpr int64_t kWords = kVector / 4;
    if (count < kWords) {
        for (int64_t i = 0; i < count; ++i) {
            int64_t const p = j[i] + (j[i] < 0 ? size : 0);
            y[i] = uint64_t(p) < uint64_t(size) ? x[p * step + i * along] : 0;
        }
        return;
    }
    Words lanes, index;
    for (int i = 0; i < kWords; ++i)
        lanes[i] = i;
    int32_t const most = int32_t(size);
    for (int64_t begin = 0; begin < count; begin += kWords) {
        int64_t const i = begin + kWords <= count ? begin : count - kWords; // the last may overlap the one before it
        __builtin_memcpy(&index, j + i, sizeof index);
        index += (index < 0) & most;
        Words at = step == 1 ? index : index * int32_t(step);
        if (along != 0)
            at += (lanes + int32_t(i)) * int32_t(along);
        Words const v = gatherWords(x, at, (index >= 0) & (index < most));
        __builtin_memcpy(y + i, &v, sizeof v);
    }
}
#endif

} // namespace

ops::gather::Kernels const kGather = {blocks,
#if TW_BYTES > 16
                                      words
#else
                                      nullptr
#endif
};

} // namespace tw::TW_ISA
