// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce/cpu_log_sum_exp.h"

#include <cmath>
#include <limits>

#include "base/round.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::reduce {

namespace {

using kernels::Join;
using kernels::RowKernels;

constexpr float kLowest = -std::numeric_limits<float>::infinity();

float finished(float most, double sum)
{
    return std::isfinite(most) ? float(double(most) + std::log(sum)) : most;
}

float largest(float a, float b)
{
    return b != b || b > a ? b : a;
}

double powersOf(RowKernels const& k, float const* x, int64_t n, float most)
{
    double sum = 0;
    for (int64_t at = 0; at < n; at += kPiece)
        sum += double(k.sumOfPowers(x + at, std::min(kPiece, n - at), most));
    return sum;
}

// Runs of reduced elements, of which there may be several for a result.
void ofRuns(RowKernels const& k, Loops const& loops, TensorRef const& x, float* y, Workers& workers)
{
    inPieces(workers, loops.kept.volume(), x.sizeBytes(), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            float const* from = x.as<float>() + keptOffset(loops, i);
            auto each = [&](auto const& with) {
                Counter reduced(loops.reduced);
                do
                    with(from + reduced.offset(loops.reducedStrides));
                while (reduced.next());
            };
            float most = kLowest;
            each([&](float const* run) { most = largest(most, k.joinRow[int(Join::kMax)](run, loops.inner)); });
            double sum = 0;
            if (std::isfinite(most))
                each([&](float const* run) { sum += powersOf(k, run, loops.inner, most); });
            y[i] = finished(most, sum);
        }
    });
}

// Columns: neighbours are kept, a block of them at a time.
void ofColumns(RowKernels const& k, Loops loops, TensorRef const& x, float* y, Workers& workers)
{
    constexpr int64_t kColumns = 256, kRun = 512; // rows that are summed apart, which bounds the error
    // The last reduced axis makes the rows of a call.
    int64_t rows = 1, step = 0;
    if (loops.reduced.rank > 0) {
        rows = loops.reduced[--loops.reduced.rank];
        step = loops.reducedStrides[--loops.reducedStrides.rank];
    }
    int64_t const n = loops.inner, blocks = divideUp(n, kColumns);
    inPieces(workers, loops.kept.volume() * blocks, x.sizeBytes(), [&](int64_t begin, int64_t end) {
        float most[kColumns], sum[kColumns], run[kColumns];
        for (int64_t i = begin; i < end; ++i) {
            int64_t const column = i % blocks * kColumns, columns = std::min(kColumns, n - column);
            float const* from = x.as<float>() + keptOffset(loops, i / blocks) + column;
            auto each = [&](auto const& with) {
                Counter reduced(loops.reduced);
                do
                    for (int64_t r = 0; r < rows; r += kRun)
                        with(from + reduced.offset(loops.reducedStrides) + r * step, std::min(kRun, rows - r));
                while (reduced.next());
            };
            std::fill_n(most, columns, kLowest);
            std::fill_n(sum, columns, 0.f);
            each([&](float const* at, int64_t count) { k.joinRows[int(Join::kMax)](at, step, count, columns, most); });
            each([&](float const* at, int64_t count) {
                std::fill_n(run, columns, 0.f);
                k.addPowers(at, step, count, columns, most, run);
                k.joinRows[int(Join::kSum)](run, 0, 1, columns, sum);
            });
            for (int64_t c = 0; c < columns; ++c)
                y[i / blocks * n + column + c] = finished(most[c], double(sum[c]));
        }
    });
}

} // namespace

void logSumExp(RowKernels const& k, Loops loops, TensorRef const& x, float* y, Workers& workers)
{
    if (loops.innerReduced)
        ofRuns(k, loops, x, y, workers);
    else
        ofColumns(k, loops, x, y, workers);
}

} // namespace tw::ops::reduce
