// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/transpose.h"
#include "base/types.h"
#include "families/gemm/cuda_gemm_wgmma_run.h"
#include "tactic/blocks.h"

namespace tw::ops::gemm_f16 {

namespace {

template <class T>
std::string packedAs(Blob const& b, PackedMatrices const& s)
{
    int64_t const rows = s.transposes ? s.columns : s.rows, columns = s.transposes ? s.rows : s.columns;
    int64_t const count = int64_t(b.sizeBytes() / sizeof(T)) / (rows * columns);
    std::string out(size_t(count * rows * s.padded) * sizeof(T), '\0');
    auto* to = reinterpret_cast<T*>(out.data());
    T const* from = b.as<T>();
    for (int64_t i = 0; i < count; ++i, to += rows * s.padded, from += rows * columns) {
        if (!s.transposes) {
            for (int64_t r = 0; r < rows; ++r)
                std::memcpy(to + r * s.padded, from + r * columns, size_t(columns) * sizeof(T));
            continue;
        }
        transposePlane(from, rows, to, s.padded, columns, rows);
    }
    return out;
}

// Where column `at` of a packed gated product was, of n.
int64_t gatedColumn(int64_t at, int64_t n)
{
    int64_t const group = at / 16, in = at % 16;
    return in < 8 ? group * 8 + in : n / 2 + group * 8 + in - 8;
}

// `rows` packed rows of each matrix, of `padded` elements with `columns` in front.
void orderGates(std::string& packed, PackedMatrices const& s)
{
    int64_t const size = s.size, rows = s.transposes ? s.columns : s.rows, columns = s.transposes ? s.rows : s.columns,
                  rowBytes = s.padded * size;
    std::string const from = packed;
    int64_t const count = int64_t(packed.size()) / (rows * rowBytes);
    for (int64_t i = 0; i < count * rows; ++i) {
        char* const to = packed.data() + i * rowBytes;
        if (s.gated == PackedMatrices::Gated::kRows) {
            int64_t const row = i % rows;
            std::memcpy(to, from.data() + (i - row + gatedColumn(row, rows)) * rowBytes, size_t(rowBytes));
            continue;
        }
        for (int64_t c = 0; c < columns; c += 8) // eights stay together
            std::memcpy(to + c * size, from.data() + i * rowBytes + gatedColumn(c, columns) * size, size_t(8 * size));
    }
}

// High and low parts of rows that hold numbers in their first half.
void splitRows(std::string& packed, int64_t row)
{
    auto* v = reinterpret_cast<float*>(packed.data());
    for (float* const end = v + packed.size() / sizeof(float); v != end; v += row)
        for (int64_t i = 0; i < row / 2; ++i) {
            float const whole = v[i];
            v[i] = roundToTf32(whole);
            v[row / 2 + i] = roundToTf32(whole - v[i]);
        }
}

} // namespace

std::string packMatrices(Blob const& b, PackedMatrices const& how)
{
    std::string packed = how.size == 4   ? packedAs<float>(b, how)
                         : how.size == 2 ? packedAs<uint16_t>(b, how)
                                         : packedAs<int8_t>(b, how);
    if (how.gated != PackedMatrices::Gated::kNot)
        orderGates(packed, how);
    if (how.tf32x3)
        splitRows(packed, how.padded);
    return packed;
}

std::string packColumnSums(TensorSpec const& b, int64_t rows, int64_t columns, bool alongK)
{
    std::vector<double> sums(size_t(alongK ? rows : columns));
    float buffer[kBlock];
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t first = 0; first < columns; first += kBlock) {
            int64_t const n = std::min(kBlock, columns - first);
            float const* const v = loadFloats(b.type, b.constant->data(), row * columns + first, 1, n, buffer);
            if (alongK)
                sums[size_t(row)] += std::accumulate(v, v + n, 0.0);
            else
                for (int64_t i = 0; i < n; ++i)
                    sums[size_t(first + i)] += double(v[i]);
        }
    std::vector<float> const out(sums.begin(), sums.end());
    return std::string(reinterpret_cast<char const*>(out.data()), out.size() * sizeof(float));
}

void packGatedBias(std::string& bias)
{
    int64_t const n = int64_t(bias.size() / sizeof(float));
    PackedMatrices how;
    how.rows = 1;
    how.columns = how.padded = n;
    how.size = sizeof(float);
    how.gated = PackedMatrices::Gated::kColumns;
    if (n > 0)
        orderGates(bias, how);
}

} // namespace tw::ops::gemm_f16
