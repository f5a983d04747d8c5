// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "ops/gather/kernels.h"

namespace tw::avx2 {

namespace {

constexpr int64_t kVector = 32; // bytes
constexpr int64_t kLongBytes = 512, kLines = 4;

template <class T>
inline void copyAs(std::byte* y, std::byte const* x)
{
    __builtin_memcpy(y, x, sizeof(T));
}
inline __m256i load(std::byte const* x)
{
    return _mm256_loadu_si256(reinterpret_cast<__m256i const*>(x));
}
inline void store(std::byte* y, __m256i v)
{
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), v);
}

// Up to 128 bytes: two or four pieces that may overlap.
inline void copyShort(std::byte* y, std::byte const* x, int64_t n)
{
    if (n > 2 * kVector) {
        __m256i const first = load(x), second = load(x + kVector), third = load(x + n - 2 * kVector),
                      last = load(x + n - kVector);
        store(y, first);
        store(y + kVector, second);
        store(y + n - 2 * kVector, third);
        store(y + n - kVector, last);
    } else if (n >= kVector) {
        __m256i const first = load(x), last = load(x + n - kVector);
        store(y, first);
        store(y + n - kVector, last);
    } else if (n >= 16) {
        copyAs<__m128i>(y, x);
        copyAs<__m128i>(y + n - 16, x + n - 16);
    } else if (n >= 8) {
        copyAs<uint64_t>(y, x);
        copyAs<uint64_t>(y + n - 8, x + n - 8);
    } else if (n >= 4) {
        copyAs<uint32_t>(y, x);
        copyAs<uint32_t>(y + n - 4, x + n - 4);
    } else {
        for (int64_t i = 0; i < n; ++i)
            y[i] = x[i];
    }
}

inline void clear(std::byte* y, int64_t n) // few
{
    for (int64_t i = 0; i < n; ++i)
        y[i] = std::byte(0);
}

inline void copyVectors(std::byte* y, std::byte const* x, int64_t n)
{
    int64_t b = 0;
    for (; b + 4 * kVector <= n; b += 4 * kVector) {
        __m256i const v0 = load(x + b), v1 = load(x + b + kVector), v2 = load(x + b + 2 * kVector),
                      v3 = load(x + b + 3 * kVector);
        store(y + b, v0);
        store(y + b + kVector, v1);
        store(y + b + 2 * kVector, v2);
        store(y + b + 3 * kVector, v3);
    }
    for (; b + kVector <= n; b += kVector)
        store(y + b, load(x + b));
    store(y + n - kVector, load(x + n - kVector));
}

inline std::byte const* blockOf(std::byte const* x, int64_t index, int64_t size, int64_t blockBytes)
{
    index += index < 0 ? size : 0;
    return uint64_t(index) < uint64_t(size) ? x + index * blockBytes : nullptr;
}

template <class T>
void blocksOf(std::byte const* x, int32_t const* j, int64_t count, int64_t size, std::byte* y)
{
    for (int64_t i = 0; i < count; ++i, y += sizeof(T)) {
        if (std::byte const* from = blockOf(x, j[i], size, sizeof(T)))
            copyAs<T>(y, from);
        else
            clear(y, sizeof(T));
    }
}

void blocks(std::byte const* x, int32_t const* j, int64_t count, int64_t size, int64_t blockBytes, std::byte* y)
{
    switch (blockBytes) {
    case 1:
        return blocksOf<uint8_t>(x, j, count, size, y);
    case 2:
        return blocksOf<uint16_t>(x, j, count, size, y);
    case 4:
        return blocksOf<uint32_t>(x, j, count, size, y);
    case 8:
        return blocksOf<uint64_t>(x, j, count, size, y);
    case 16:
        return blocksOf<__m128i>(x, j, count, size, y);
    case 32:
        return blocksOf<__m256i>(x, j, count, size, y);
    }
    if (blockBytes <= 4 * kVector) {
        for (int64_t i = 0; i < count; ++i, y += blockBytes) {
            if (std::byte const* from = blockOf(x, j[i], size, blockBytes))
                copyShort(y, from, blockBytes);
            else
                clear(y, blockBytes);
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
                _mm_prefetch(reinterpret_cast<char const*>(next + line * 64), _MM_HINT_T0);
        if (!from)
            __builtin_memset(y, 0, size_t(blockBytes));
        else if (blockBytes < kLongBytes)
            __builtin_memcpy(y, from, size_t(blockBytes));
        else
            copyVectors(y, from, blockBytes);
    }
}

void words(uint32_t const* x, int32_t const* j, int64_t count, int64_t size, int64_t step, int64_t along, uint32_t* y)
{
    constexpr int64_t kWords = 8;
    __m256i const sizes = _mm256_set1_epi32(int32_t(size)), steps = _mm256_set1_epi32(int32_t(step));
    __m256i const lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), zero = _mm256_setzero_si256();
    for (int64_t i = 0; i < count; i += kWords) {
        __m256i const use =
            _mm256_cmpgt_epi32(_mm256_set1_epi32(int32_t(count - i < kWords ? count - i : kWords)), lanes);
        __m256i index = _mm256_maskload_epi32(j + i, use);
        index = _mm256_add_epi32(index, _mm256_and_si256(_mm256_cmpgt_epi32(zero, index), sizes));
        // Inside: index >= 0 and index < size.
        __m256i const inside = _mm256_and_si256(
            use, _mm256_andnot_si256(_mm256_cmpgt_epi32(zero, index), _mm256_cmpgt_epi32(sizes, index)));
        __m256i at = step == 1 ? index : _mm256_mullo_epi32(index, steps);
        if (along != 0)
            at = _mm256_add_epi32(at, _mm256_mullo_epi32(_mm256_set1_epi32(int32_t(along)),
                                                         _mm256_add_epi32(lanes, _mm256_set1_epi32(int32_t(i)))));
        __m256i const v = _mm256_mask_i32gather_epi32(zero, reinterpret_cast<int const*>(x), at, inside, 4);
        _mm256_maskstore_epi32(reinterpret_cast<int*>(y + i), use, v);
    }
}

} // namespace

ops::gather::Kernels const kGather = {blocks, words};

} // namespace tw::avx2
