// SPDX-License-Identifier: Apache-2.0
// FP16 convolutions transposed whose windows lie side by side (stride = window, no padding): x and y in Format::kHWC8,
// constant filters. Each position of the window is a product of its own, which writes every stride-th pixel. wgmma,
// compute capability 9.0.
#pragma once

#include "families/convolution/kernel_window.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::deconv_f16 {

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config);
Support supports(Problem const& problem);
std::vector<Config> configs(Problem const& problem);
std::vector<Formats> formats(Problem const& problem);

// What they share with FP32. x, w, y of a problem or a run as numbers.
KernelWindowGeometry geometryOf(ir::Node const& node, Extents const& x, Extents const& w, Extents const& y);
KernelWindowGeometry geometryOf(Problem const& problem, bool atMaximum);
// Convolutions transposed, without a residual.
Support supportsTransposed(Problem const& problem);
// w [c, k, r, s] as [r, s, k, c]: `filters` rows of `each` channels for every position, zeros after w's.
std::string packTransposed(TensorSpec const& w, int64_t filters, int64_t each);
// Whether windows of at most so many positions in each direction lie side by side.
bool areBeside(KernelWindowGeometry const& geometry, int64_t mostWindow);

} // namespace tw::ops::deconv_f16

// FP32 transposed convolutions whose windows lie side by side, exact or with factors rounded to TF32: each position of
// the window is a product of its own, all in one launch. x and y in Format::kHWC8.
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
