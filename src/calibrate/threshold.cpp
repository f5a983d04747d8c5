// SPDX-License-Identifier: Apache-2.0
#include "calibrate/threshold.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tw::calibrate {

namespace {

// The first bin of a level.
size_t beginOf(size_t level, size_t bins, size_t levels)
{
    return (level * bins + levels - 1) / levels;
}

// The same divergence from sums over levels, with a logarithm for each level instead of each bin:
//   sum P log(P / Q) = (sum c log c - sum over levels S log q) / N - log N + log M
// c: counts of bins, the outliers in the last; S: their sum in a level; q: what a bin of the level has in Q; N: of all
// values; M: of those within.
class LevelSums
{
public:
    LevelSums(std::span<uint64_t const> bins, int levels)
        : bins_(bins), levels_(size_t(levels)), sum_(bins.size() + 1), filled_(bins.size() + 1), logs_(bins.size() + 1)
    {
        for (size_t b = 0; b < bins.size(); ++b) {
            sum_[b + 1] = sum_[b] + bins[b];
            filled_[b + 1] = filled_[b] + (bins[b] != 0);
            logs_[b + 1] = logs_[b] + timesLog(double(bins[b]));
        }
    }
    double divergence(size_t n) const
    {
        uint64_t const within = sum_[n], outliers = sum_.back() - within;
        if (within == 0 || (bins_[n - 1] == 0 && outliers != 0))
            return std::numeric_limits<double>::infinity();
        double logs = logs_[n - 1] + timesLog(double(bins_[n - 1] + outliers));
        for (size_t l = 0; l < levels_; ++l) {
            size_t const begin = beginOf(l, n, levels_), end = beginOf(l + 1, n, levels_);
            uint64_t const sum = sum_[end] - sum_[begin];
            if (sum != 0)
                logs -= double(sum + (end == n ? outliers : 0)) *
                        std::log(double(sum) / double(filled_[end] - filled_[begin]));
        }
        double const total = double(sum_.back());
        return logs / total - std::log(total) + std::log(double(within));
    }

private:
    static double timesLog(double x) { return x > 0 ? x * std::log(x) : 0; }

    std::span<uint64_t const> bins_;
    size_t levels_;
    std::vector<uint64_t> sum_, filled_; // of the bins before
    std::vector<double> logs_;
};

} // namespace

std::vector<double> throughLevels(std::span<uint64_t const> bins, int levels)
{
    std::vector<double> out(bins.size(), 0);
    for (size_t l = 0; l < size_t(levels); ++l) {
        size_t const begin = beginOf(l, bins.size(), size_t(levels)), end = beginOf(l + 1, bins.size(), size_t(levels));
        uint64_t sum = 0, filled = 0;
        for (size_t b = begin; b < end; ++b) {
            sum += bins[b];
            filled += bins[b] != 0;
        }
        for (size_t b = begin; b < end; ++b)
            out[b] = bins[b] != 0 ? double(sum) / double(filled) : 0;
    }
    return out;
}

double divergence(std::span<uint64_t const> bins, int position, int levels)
{
    size_t const n = size_t(position);
    uint64_t within = 0, outliers = 0;
    for (size_t b = 0; b < bins.size(); ++b)
        (b < n ? within : outliers) += bins[b];
    bool const isLastEmpty = bins[n - 1] == 0;
    if (within == 0 || (isLastEmpty && outliers != 0))
        return std::numeric_limits<double>::infinity();
    std::vector<double> const q = throughLevels(bins.first(n), levels);
    double const total = double(within + outliers);
    double sum = 0;
    for (size_t b = 0; b < n; ++b) {
        if (bins[b] == 0)
            continue;
        double const p = double(bins[b] + (b == n - 1 ? outliers : 0)) / total;
        sum += p * std::log(p / (q[b] / double(within)));
    }
    return sum;
}

int leastDivergence(std::span<uint64_t const> bins, int levels)
{
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    // Sums of logarithms by level find the candidates: their rounding is far below this.
    constexpr double kClose = 1e-9;
    LevelSums const sums(bins, levels);
    std::vector<double> about(bins.size() + 1, kInfinity);
    for (size_t i = size_t(levels); i <= bins.size(); ++i)
        about[i] = sums.divergence(i);
    double least = *std::ranges::min_element(about) + kClose;
    int best = -1;
    for (size_t i = size_t(levels); i <= bins.size() && least < kInfinity; ++i)
        if (about[i] <= least + kClose)
            if (double const d = divergence(bins, int(i), levels); d <= least) {
                least = d;
                best = int(i);
            }
    return best;
}

double entropyThreshold(Histogram const& h)
{
    int const m = leastDivergence(h.bins);
    return m < 0 || m == kBins ? double(h.largest) : std::min(double(h.largest), (m + 0.5) * h.binWidth());
}

double largestThreshold(Histogram const& h)
{
    return double(h.largest);
}

double quantileThreshold(Histogram const& h, double quantile, double cutoff)
{
    double const wanted = quantile * double(h.count());
    double threshold = double(h.largest);
    uint64_t sum = h.zeros;
    for (int b = 0; b < kBins; ++b) {
        sum += h.bins[size_t(b)];
        if (double(sum) >= wanted) {
            threshold = std::min(threshold, (b + 1) * h.binWidth());
            break;
        }
    }
    return cutoff > 0 ? std::min(threshold, cutoff * double(h.largest)) : threshold;
}

double clippedShare(Histogram const& h, double threshold)
{
    double all = 0, beyond = 0;
    for (int b = 0; b < kBins; ++b) {
        double const x = std::min((b + 0.5) * h.binWidth(), double(h.largest)), count = double(h.bins[size_t(b)]);
        all += count * x * x;
        beyond += x > threshold ? count * (x - threshold) * (x - threshold) : 0;
    }
    return threshold > 0 && all > 0 ? beyond / all : 0;
}

float scaleOf(double threshold)
{
    float const scale = float(threshold / 127);
    return std::isnormal(scale) ? scale : 0.f;
}

} // namespace tw::calibrate
