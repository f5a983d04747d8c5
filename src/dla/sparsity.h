// SPDX-License-Identifier: Apache-2.0
// Structured sparsity of convolutions on DLA: 2 of each 4 weights along the channels are 0.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>

#include <fmt/core.h>

#include "dla/model.h"

namespace tw::dla {

struct SparseConvolution
{
    bool isInt8 = false, readsImage = false; // kDLA_HWC4
    int64_t channels = 0, maps = 0, weights = 0;
};

// Why DLA computes it as a dense one, though its weights are sparse; empty: it does not.
inline std::string whyDense(Model model, SparseConvolution const& c)
{
    constexpr int64_t kMostWeights = 256 << 10, kLeastChannels = 65;
    constexpr int64_t kRests[] = {0, 1, 2, 4, 8, 16, 32};
    if (model != Model::kOrin)
        return "Orin's DLA alone has sparsity";
    if (!c.isInt8)
        return "it is not in INT8";
    if (c.readsImage)
        return "its input is in kDLA_HWC4";
    if (c.channels < kLeastChannels)
        return fmt::format("it has {} channels, at least {} are needed", c.channels, kLeastChannels);
    if (c.weights > kMostWeights)
        return fmt::format("it has {} weights, at most {} are taken", c.weights, kMostWeights);
    if (std::find(std::begin(kRests), std::end(kRests), c.maps % 64) == std::end(kRests))
        return fmt::format("its {} output maps modulo 64 are {}, allowed are 0, 1, 2, 4, 8, 16 and 32", c.maps,
                           c.maps % 64);
    return {};
}

} // namespace tw::dla
