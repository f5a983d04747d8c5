// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax/cpu_log.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/round.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::softmax {

namespace {

using kernels::Join;
using kernels::RowKernels;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kPiece = 4096; // floats that are summed in float

void ofRows(RowKernels const& k, int64_t rows, int64_t n, TensorRef const& x, float* y, Workers& workers)
{
    inPieces(workers, rows, x.sizeBytes(), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            float const* from = x.as<float>() + r * n;
            float const m = k.joinRow[int(Join::kMax)](from, n);
            double s = 0;
            for (int64_t at = 0; at < n && std::isfinite(m); at += kPiece)
                s += double(k.sumOfPowers(from + at, std::min(kPiece, n - at), m));
            k.lessTwo(from, n, m, std::isfinite(m) ? float(std::log(s)) : kNan, y + r * n);
        }
    });
}

// A block of columns at a time, all steps over it.
void ofColumns(RowKernels const& k, int64_t outer, int64_t n, int64_t inner, TensorRef const& x, float* y,
               Workers& workers)
{
    constexpr int64_t kColumns = 256, kRun = 512; // rows that are summed apart, which bounds the error
    int64_t const blocks = divideUp(inner, kColumns);
    inPieces(workers, outer * blocks, x.sizeBytes(), [&](int64_t begin, int64_t end) {
        float m[kColumns], s[kColumns], run[kColumns];
        for (int64_t i = begin; i < end; ++i) {
            int64_t const first = i % blocks * kColumns, width = std::min(kColumns, inner - first),
                          at = i / blocks * n * inner + first;
            float const* from = x.as<float>() + at;
            std::fill_n(m, width, kLowest);
            std::fill_n(s, width, 0.f);
            k.joinRows[int(Join::kMax)](from, inner, n, width, m);
            for (int64_t j = 0; j < n; j += kRun) {
                std::fill_n(run, width, 0.f);
                k.addPowers(from + j * inner, inner, std::min(kRun, n - j), width, m, run);
                k.joinRows[int(Join::kSum)](run, 0, 1, width, s);
            }
            for (int64_t c = 0; c < width; ++c)
                s[c] = std::isfinite(m[c]) ? std::log(s[c]) : kNan;
            for (int64_t j = 0; j < n; ++j)
                k.lessTwoRows(from + j * inner, width, m, s, y + at + j * inner);
        }
    });
}

} // namespace

void logSoftmax(RowKernels const& k, int axis, TensorRef const& x, float* y, Workers& workers)
{
    int64_t const outer = x.dims.volume(0, axis), n = x.dims[axis], inner = x.dims.volume(axis + 1, x.dims.rank);
    if (x.count() == 0)
        return;
    if (inner == 1)
        ofRows(k, outer, n, x, y, workers);
    else
        ofColumns(k, outer, n, inner, x, y, workers);
}

} // namespace tw::ops::softmax
