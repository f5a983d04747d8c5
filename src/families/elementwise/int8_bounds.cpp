// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "families/elementwise/jit_end.h"

namespace tw::ops {

namespace {

using kernels::jit::Activation;

constexpr double kUnknown = std::numeric_limits<double>::infinity();
constexpr double kMost = 1 << 30;

// Of a constant's elements, the largest magnitude; `otherwise` where there is no such input.
double largest(Problem const& p, int input, double otherwise)
{
    if (size_t(input) >= p.inputs.size() || !p.inputs[size_t(input)].present)
        return otherwise;
    Blob const* const blob = p.inputs[size_t(input)].constant;
    if (!blob)
        return kUnknown;
    double most = 0;
    float const* const x = blob->as<float>();
    for (int64_t i = 0, count = int64_t(blob->sizeBytes() / sizeof(float)); i < count; ++i)
        most = std::isfinite(x[i]) ? std::max(most, std::fabs(double(x[i]))) : kUnknown;
    return most;
}

// Of f(x), |x| <= most.
double largestOf(Activation const& f, double most)
{
    switch (f.kind) {
    case ActivationKind::kRelu:
    case ActivationKind::kSwish:
    case ActivationKind::kGeluErf:
    case ActivationKind::kGeluTanh:
        return most;
    case ActivationKind::kSigmoid:
    case ActivationKind::kTanh:
        return 1;
    case ActivationKind::kClip:
        return std::isfinite(f.alpha) && std::isfinite(f.beta) ? std::max(std::fabs(f.alpha), std::fabs(f.beta))
                                                               : kUnknown;
    default:
        return kUnknown;
    }
}

} // namespace

bool staysBounded(Problem const& p, Epilogue const& e, double k)
{
    double const sum = std::min(k * 128 * 128, 0x1p31);
    double t = sum * largest(p, Epilogue::kScale, 1) + largest(p, Epilogue::kBias, 0);
    if (hasInput(*p.node, Epilogue::kInnerScale))
        t = 128 * largest(p, Epilogue::kInnerScale, 1);
    if (hasInput(*p.node, Epilogue::kResidual)) {
        if (!isQuantized(p.inputs[Epilogue::kResidual].type))
            return false;
        t += 128 * largest(p, Epilogue::kResidualScale, 1);
    }
    if (!(t < kMost)) // before an activation, too
        return false;
    if (auto const f = jitActivation(e.activation))
        t = largestOf(*f, t);
    return t * largest(p, Epilogue::kOutputScale, 1) < kMost;
}

} // namespace tw::ops
