// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_epilogue.h"

#include <algorithm>
#include <vector>

#include "base/element.h"
#include "families/elementwise/cuda_pointwise.h"
#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/common/prelude.h"

namespace tw::ops {

std::string epilogueActivation(FusedActivation const& f, DataType type)
{
    bool const exact = isFullFloat(type), isByte = isQuantized(type);
    // Comparisons are turned so that NaN goes through.
    std::string text;
    switch (FusedKind(f.kind)) {
    case FusedKind::kSwish:
        return exact ? "v / (1.0f + expf(-v))" : cuda::kSwish;
    case FusedKind::kGeluErf:
        return exact ? "0.5f * v * (1.0f + erff(v * 0.707106781f))" : isByte ? cuda::kGeluErfToBytes : cuda::kGeluErf;
    case FusedKind::kGeluTanh:
        return exact    ? "0.5f * v * (1.0f + tanhf(0.797884561f * (v + 0.044715f * v * v * v)))"
               : isByte ? cuda::kGeluTanhToBytes
                        : cuda::kGeluTanh;
    case FusedKind::kHardSwish:
        text = "v * ($a$ * v + $b$ > 1.0f ? 1.0f : $a$ * v + $b$ < 0.0f ? 0.0f : $a$ * v + $b$)";
        break;
    default:
        break;
    }
    switch (activation::Kind(f.kind)) {
    case activation::Kind::kRelu:
        return cuda::kRelu;
    case activation::Kind::kSigmoid:
        text = exact ? "1.0f / (1.0f + expf(-v))" : "sigmoidOf(v)";
        break;
    case activation::Kind::kTanh:
        text = "tanhf(v)";
        break;
    case activation::Kind::kLeakyRelu:
        text = "v >= 0.0f ? v : $a$ * v";
        break;
    case activation::Kind::kElu:
        text = "v >= 0.0f ? v : $a$ * expm1f(v)";
        break;
    case activation::Kind::kSelu:
        text = "v > 0.0f ? $b$ * v : $b$ * ($a$ * expm1f(v))";
        break;
    case activation::Kind::kSoftsign:
        text = "v / (1.0f + fabsf(v))";
        break;
    case activation::Kind::kSoftplus:
        text = "$a$ * (($b$ * v < 0.0f ? 0.0f : $b$ * v) + log1pf(" + std::string(exact ? "expf" : "__expf") +
               "(-fabsf($b$ * v))))";
        break;
    case activation::Kind::kClip:
        text = "(v > $b$ ? $b$ : v) < $a$ ? $a$ : (v > $b$ ? $b$ : v)";
        break;
    case activation::Kind::kHardSigmoid:
        text = "$a$ * v + $b$ > 1.0f ? 1.0f : $a$ * v + $b$ < 0.0f ? 0.0f : $a$ * v + $b$";
        break;
    case activation::Kind::kScaledTanh:
        text = "$a$ * tanhf($b$ * v)";
        break;
    case activation::Kind::kThresholdedRelu:
        text = "v > $a$ ? v : 0.0f";
        break;
    default:
        break;
    }
    return cuda::expand(text, {{"a", cuda::literal(f.alpha)}, {"b", cuda::literal(f.beta)}});
}

namespace {

std::string programSource(Epilogue const& e, bool hasResidual, DataType type, std::string const& name)
{
    return stepsSource(name + "Steps", e.expression(), hasResidual ? 2 : 1, type, false) + "TW_INLINE float " + name +
           "(float v, float r) { return " + name + (hasResidual ? "Steps(v, r); }\n" : "Steps(v); }\n");
}

} // namespace

std::string exactEpilogue(Epilogue const& e, bool hasResidual, char const* name)
{
    if (e.hasSteps())
        return programSource(e, hasResidual, DataType::kFloat, name);
    std::string const activate = std::string(name) + "Activation";
    return activationSource(activate.c_str(), e.activation.kind, e.activation.alpha, e.activation.beta) +
           "TW_INLINE float " + name + "(float v, float r) { return " + activate +
           (hasResidual ? "(v + r); }\n" : "(v); }\n");
}

void setEpilogue(cuda::Epilogue& to, Epilogue const& e, bool hasResidual, DataType type)
{
    to.residual = hasResidual;
    to.activation = epilogueActivation(e.activation, type);
    to.end = e.hasSteps() ? programSource(e, hasResidual, type, "epilogue") : std::string();
}

std::string packFloats(TensorSpec const& constant, int64_t count)
{
    std::vector<float> values(size_t(std::max<int64_t>(count, 0)), 0.0f);
    int64_t const known = std::min(
        {count, constant.dims.volume(), int64_t(constant.constant->sizeBytes()) / int64_t(sizeOf(constant.type))});
    withFloat(constant.type, [&](auto element) {
        auto const* const from = constant.constant->as<decltype(element)>();
        std::transform(from, from + known, values.begin(), [](auto v) { return loadElement(v); });
    });
    return std::string(reinterpret_cast<char const*>(values.data()), values.size() * sizeof(float));
}

} // namespace tw::ops
