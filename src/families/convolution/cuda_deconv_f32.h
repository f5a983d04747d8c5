// SPDX-License-Identifier: Apache-2.0
// FP32 transposed convolutions whose windows lie side by side, exact or with factors rounded to TF32: each position of
// the window is a product of its own, all in one launch. x and y in Format::kHWC8.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::deconv_f32 {

template <bool tf32>
struct Beside
{
    static std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config);
    static Support supports(Problem const& problem);
    static std::vector<Config> configs(Problem const& problem);
    static std::vector<Formats> formats(Problem const& problem);
    static double estimate(Problem const& problem, Config const& config);
};
extern template struct Beside<false>;
extern template struct Beside<true>;

template <bool tf32>
constexpr CudaTactic tactic(char const* name)
{
    using Kind = Beside<tf32>;
    return CudaTactic(name, 2, Kind::generate, Kind::supports, Kind::configs, Kind::formats, Kind::estimate,
                      Traits{.rounding = tf32 ? Rounding::kTf32 : Rounding::kPlain});
}

} // namespace tw::ops::deconv_f32
