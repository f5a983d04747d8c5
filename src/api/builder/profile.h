// SPDX-License-Identifier: Apache-2.0
// An optimization profile: for each dynamic input the smallest, the usual and the largest shape, and for input shape
// tensors the same of their values. The builder owns profiles; configs only point to them.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "api/property.h"

namespace tw::api {

struct OptimizationProfileObject final : nvinfer1::IOptimizationProfile
{
    explicit OptimizationProfileObject(Reporter const& r) : reporter(r) {}
    ~OptimizationProfileObject() noexcept override = default;

    // Of an input, by OptProfileSelector; empty until set.
    using Points = std::array<std::optional<std::vector<int32_t>>, 3>;
    using Settings = std::map<std::string, Points, std::less<>>; // by input

    // What isValid() answers, with the reason.
    Result<void> validate() const;

    mutable Reporter reporter;
    Settings shapes, values;
    float extraMemoryTarget = 1;
};

TW_OBJECT(nvinfer1::IOptimizationProfile, OptimizationProfileObject)

} // namespace tw::api
