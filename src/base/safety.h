// SPDX-License-Identifier: Apache-2.0
// What libnvinfer_safe and libnvinfer_checker, clients of include/, and libnvinfer have agreed on beside it.
#pragma once

#include <cstdint>
#include <string_view>

namespace tw::safety {

// What a runtime is for. The libraries say it in the version that they hand to createInferRuntime_INTERNAL().
enum class Purpose : int32_t
{
    kStandard = 0, // of a client: runs what is no safety engine
    kSafe = 1,     // of libnvinfer_safe: runs safety engines alone
    kCheck = 2,    // of libnvinfer_checker: the same, and asks the checkers of plugins
};
inline constexpr int32_t kVersionsOfAPurpose = 1'000'000;
constexpr int32_t versionFor(Purpose purpose, int32_t version)
{
    return int32_t(purpose) * kVersionsOfAPurpose + version;
}

// Tensors that the builder adds to a safety engine: counts [NaN, infinite] so far, INT32, and the same with those of
// this run. Both may have one address; a context has memory of its own for them until it is given another.
inline constexpr char const kErrorsBefore[] = "tensorwright.floating_point_errors";
inline constexpr char const kErrorsAfter[] = "tensorwright.floating_point_errors.sum";
constexpr bool isErrorCount(std::string_view tensor)
{
    return tensor == kErrorsBefore || tensor == kErrorsAfter;
}

// Of inputs and outputs of safety engines, by the numbers of nvinfer1::TensorFormat and DataType: kLINEAR, kCHW2, kHWC8,
// kCHW4, kCHW16, kCHW32; kFLOAT, kHALF, kINT8.
inline constexpr uint32_t kFormats = 0b111111;
inline constexpr uint32_t kTypes = 0b111;

} // namespace tw::safety
