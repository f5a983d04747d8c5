// SPDX-License-Identifier: Apache-2.0
#include "compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/core.h>

namespace tw::trtexec {

namespace {

constexpr double kRelativeFloor = 1e-5;

bool sameSpecial(double a, double b)
{
    return (std::isnan(a) && std::isnan(b)) || a == b;
}

} // namespace

Comparison compareTensors(std::span<double const> out, RecordedTensor const& reference, Tolerance const& tolerance)
{
    double maxRef = 0;
    for (size_t i = 0; i < out.size(); ++i) {
        double const ref = reference.at(i);
        if (std::isfinite(ref))
            maxRef = std::max(maxRef, std::abs(ref));
    }

    Comparison result;
    double dot = 0;
    double outNorm = 0;
    double refNorm = 0;
    for (size_t i = 0; i < out.size(); ++i) {
        double const ref = reference.at(i);
        bool good = false;
        if (!std::isfinite(ref) || !std::isfinite(out[i])) {
            good = sameSpecial(out[i], ref);
            if (!good)
                result.maxAbsolute = std::numeric_limits<double>::infinity();
        } else {
            double const difference = std::abs(out[i] - ref);
            result.maxAbsolute = std::max(result.maxAbsolute, difference);
            if (std::abs(ref) > kRelativeFloor * maxRef)
                result.maxRelative = std::max(result.maxRelative, difference / std::abs(ref));
            good = difference <= tolerance.atol * maxRef + tolerance.rtol * std::abs(ref);
            result.noise += difference * difference;
            dot += out[i] * ref;
            outNorm += out[i] * out[i];
            refNorm += ref * ref;
        }
        if (!good && result.failures++ == 0)
            result.firstFailure = i;
    }
    result.signal = refNorm;
    if (outNorm > 0 && refNorm > 0)
        result.cosine = dot / (std::sqrt(outNorm) * std::sqrt(refNorm));
    else
        result.cosine = outNorm == refNorm ? 1 : 0;
    result.passed = result.failures == 0 && result.cosine >= tolerance.cosine;
    return result;
}

double Comparison::sqnrDb() const
{
    return noise > 0 ? 10 * std::log10(signal / noise) : std::numeric_limits<double>::infinity();
}

double Comparison::relativeRms() const
{
    if (std::isinf(maxAbsolute))
        return maxAbsolute;
    return noise > 0 ? std::sqrt(noise / signal) : 0;
}

std::string comparisonText(std::string const& name, Comparison const& comparison)
{
    char text[256];
    std::snprintf(text, sizeof text, ": max absolute = %.3g, max relative = %.3g, cosine = %.9f  %s",
                  comparison.maxAbsolute, comparison.maxRelative, comparison.cosine,
                  comparison.passed ? "ok" : "FAILED");
    std::string line = name + text;
    if (comparison.failures > 0)
        line += fmt::format(" ({} element(s) beyond the tolerance, first at index {})", comparison.failures,
                            comparison.firstFailure);
    return line;
}

} // namespace tw::trtexec
