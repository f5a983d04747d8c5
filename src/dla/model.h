// SPDX-License-Identifier: Apache-2.0
// The deep learning accelerator (DLA) that a client may ask for a model of: which, and what is the same for all layers.
// It is a model of what a DLA takes and how it rounds; the present device computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace tw::dla {

enum class Model : int32_t // numbers are those of plans and loadables
{
    kNone = 0, // as on a machine without one
    kXavier = 1,
    kOrin = 2,
};

// Of it, for people who read logs and reports.
inline constexpr char const* kNotTheDevice = "model, not the device";

// "xavier", "orin"; "" is none.
Result<Model> modelOf(std::string_view name);
char const* nameOf(Model model);
constexpr bool isKnown(int32_t number)
{
    return number >= 0 && number <= static_cast<int32_t>(Model::kOrin);
}

inline constexpr int kCores = 2;            // of either
inline constexpr int kMostLoadables = 16;   // a core
inline constexpr int64_t kMostBatch = 4096; // the product of all dimensions before C, H, W
inline constexpr int64_t kMostExtent = 8192;
inline constexpr int64_t kVectorBytes = 32;                  // of channels that lie together inside
inline constexpr int64_t kMostInnerBytes = int64_t(1) << 30; // of tensors within a subgraph: fewer than that
inline constexpr size_t kLeastPoolBytes = 4096;
inline constexpr size_t kLocalDramBytes = size_t(1) << 30, kGlobalDramBytes = size_t(512)
                                                                              << 20; // pools that nobody set

constexpr int coresOf(Model model)
{
    return model == Model::kNone ? 0 : kCores;
}
constexpr size_t sramBytesOf(Model model)
{
    return model == Model::kOrin ? size_t(512) << 10 : size_t(1) << 20;
}
// A row of pixels of the format kDLA_HWC4 is a multiple of that; one of kDLA_LINEAR of 64 on either.
constexpr int64_t imageRowBytesOf(Model model)
{
    return model == Model::kXavier ? 32 : 64;
}

// Why a layer does not run on DLA.
enum class Reason
{
    kNotSupported,
    kParameters,
    kBatch,
    kCombination,
    kNoDla,
};
char const* wordsOf(Reason reason);

} // namespace tw::dla
