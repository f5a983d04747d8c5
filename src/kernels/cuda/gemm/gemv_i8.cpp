// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/gemv_i8.h"

#include <algorithm>

#include "kernels/cuda/common/generate.h"

namespace tw::cuda::gemv_i8 {

namespace {

bool isPower(int v, int most)
{
    return v >= 1 && v <= most && (v & (v - 1)) == 0;
}

int64_t unitsOf(int64_t k)
{
    return ceilDiv(k, 16);
}

int64_t columnsOfBlock(Spec const& s)
{
    return int64_t(kThreads / 32 / s.warpsK) * s.columns;
}

// a, then where warps share k their sums.
int64_t sharedBytes(int64_t m, int64_t k)
{
    constexpr int64_t kSums = kThreads / 32 * 64 * 4;
    return std::max(m * unitsOf(k) * 16, kSums);
}

} // namespace

std::string Spec::name() const
{
    return fmt::format("gemv_i8_{}x{}_k{}{}{}", rows, columns, warpsK, packs ? "_" : "_bytes_", end.name());
}

char const* unsupported(Spec const& s)
{
    if (!isPower(s.rows, kMostRows) || !isPower(s.columns, 4) || !isPower(s.warpsK, 4))
        return "1, 2, 4, 8 or 16 rows, 1, 2 or 4 columns and warps that share k";
    return nullptr;
}

char const* unsupported(Spec const& s, int64_t m, int64_t n, int64_t k)
{
    constexpr int64_t kLimit = int64_t(1) << 30;
    if (char const* const why = unsupported(s))
        return why;
    if (m > s.rows)
        return "at most 16 rows, and no more than the kernel was made for";
    if (n < 1 || k < 1 || n > kLimit || k > kLimit || sharedBytes(m, k) > kMostShared)
        return "rows of a fit into 96 KiB of shared memory";
    return s.packs && k % 16 ? "rows of a are not whole 16 bytes" : nullptr;
}

std::string source(Spec const& s)
{
    return include("kernels/cuda/common/matrix.cuh") + integerEndSource(s.end) + constant("ROWS", s.rows) +
           constant("COLUMNS", s.columns) + constant("WARPS_K", s.warpsK) + constant("THREADS", kThreads) +
           flag("PACKS", s.packs) + flag("EARLY", s.constantB) + include("kernels/cuda/gemm/gemv_i8.cuh");
}

LaunchGeometry launch(Spec const& s, int64_t m, int64_t n, int64_t k, Args& a)
{
    a.m = int32_t(m);
    a.n = int32_t(n);
    a.k = int32_t(k);
    a.units = int32_t(unitsOf(k));
    LaunchGeometry l;
    l.grid = m ? ceilDiv(n, columnsOfBlock(s)) : 0;
    l.block = kThreads;
    l.sharedBytes = sharedBytes(m, k);
    return l;
}

double estimateUs(Spec const& s, int64_t m, int64_t n, int64_t k, int multiprocessors)
{
    // 20 bytes of b a clock on a multiprocessor where enough warps wait for them, each for 800 clocks.
    constexpr double kClocksPerUs = 1700, kBytes = 20, kWait = 800;
    int64_t const blocks = ceilDiv(n, columnsOfBlock(s)), each = ceilDiv(blocks, std::max(multiprocessors, 1));
    int64_t const atOnce = std::min<int64_t>({each, 16, std::max<int64_t>(200 * 1024 / sharedBytes(m, k), 1)});
    double const perBlock = double(columnsOfBlock(s)) * double(unitsOf(k)) * 16;
    double const turns = double(ceilDiv(unitsOf(k), s.warpsK * 32));
    double const products = perBlock * double(s.rows) / 4 / 64; // dp4a
    double const waits = turns * kWait / double(atOnce);
    double const a = double(m * unitsOf(k)) / 2; // to shared memory
    return (2500 + double(each) * (std::max({perBlock / kBytes, products, waits}) + a)) / kClocksPerUs;
}

std::vector<Spec> candidates(Spec const& base, int64_t m, int64_t n, int64_t k, int multiprocessors, size_t most)
{
    std::vector<Guess<Spec>> all;
    for (int columns : {4, 2, 1})
        for (int warpsK : {1, 2, 4}) {
            Spec s = base;
            s.columns = columns;
            s.warpsK = warpsK;
            if (!unsupported(s, m, n, k))
                all.push_back({estimateUs(s, m, n, k, multiprocessors), s});
        }
    return bestOf(std::move(all), most);
}

} // namespace tw::cuda::gemv_i8
