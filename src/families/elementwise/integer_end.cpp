// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "families/elementwise/epilogue.h"
#include "tactic/blocks.h"

namespace tw::ops {

IntegerEnd::IntegerEnd(Epilogue const& epilogue, std::span<TensorRef const> inputs, TensorRef const& y)
    : activation_(epilogue.activation), y_(y)
{
    auto optional = [&](size_t i) { return i < inputs.size() ? inputs[i] : TensorRef{}; };
    residual_ = optional(Epilogue::kResidual);
    scale_ = inputs[Epilogue::kScale].as<float>();
    isOneScale_ = inputs[Epilogue::kScale].count() == 1;
    bias_ = optional(Epilogue::kBias).as<float>();
    residualScale_ = optional(Epilogue::kResidualScale).as<float>();
    outputScale_ = optional(Epilogue::kOutputScale).as<float>();
    innerScale_ = optional(Epilogue::kInnerScale).as<float>();
    table_ = optional(Epilogue::kTable).as<int8_t>();
}

void IntegerEnd::store(int32_t const* sums, int64_t n, int64_t at, int64_t k, int64_t kStep) const
{
    float buffer[kBlock], residual[kBlock];
    for (int64_t done = 0; done < n; done += kBlock) {
        int64_t const m = std::min(kBlock, n - done), first = k + done * kStep;
        float* const t = floatsAt(y_.type, y_.data, at + done, buffer);
        float const* const scale = scale_ + (isOneScale_ ? 0 : first);
        int64_t const scaleStep = isOneScale_ ? 0 : kStep;
        for (int64_t i = 0; i < m; ++i)
            t[i] = float(sums[done + i]) * scale[i * scaleStep];
        if (bias_)
            for (int64_t i = 0; i < m; ++i)
                t[i] += bias_[first + i * kStep];
        if (innerScale_)
            for (int64_t i = 0; i < m; ++i)
                t[i] = (std::isnan(t[i]) ? 0 : std::clamp(std::nearbyint(t[i]), -128.f, 127.f)) * *innerScale_;
        if (residual_.data) {
            float const* const r = loadFloats(residual_.type, residual_.data, at + done, 1, m, residual);
            float const by = residualScale_ ? *residualScale_ : 1.0f;
            for (int64_t i = 0; i < m; ++i)
                t[i] += r[i] * by;
        }
        if (activation_.any())
            activate(activation_, t, t, m);
        if (outputScale_)
            for (int64_t i = 0; i < m; ++i)
                t[i] *= *outputScale_;
        storeFloats(y_.type, y_.data, at + done, m, t);
        if (table_)
            for (int8_t *y = y_.as<int8_t>() + at + done, *end = y + m; y < end; ++y)
                *y = table_[*y + 128];
    }
}

} // namespace tw::ops
