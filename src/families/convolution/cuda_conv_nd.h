// SPDX-License-Identifier: Apache-2.0
// Convolutions over 2 and 3 axes and transposed ones, with any window, stride, dilation, padding and groups, constant
// filters: kernels/cuda/conv/mma_nd.h. x, residual and y pixel by pixel (kHWC8, kDHWC8; of i8 kHWC16).
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::conv_nd {

enum class Operand : int
{
    kHalf,
    kTf32,
    kTf32x3, // FP32 whose factors are three TF32 products
    kInt8,   // exact sums, whose end makes i8 or floats
};

struct Tactics
{
    static Support supports(Problem const& problem, Operand operand);
    static std::vector<Config> configs(Problem const& problem, Operand operand);
    static std::vector<Formats> formats(Problem const& problem);
    static double estimate(Problem const& problem, Config const& config, Operand operand);
    static std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config, Operand operand);
};

// `narrow`: the type of kHalf.
template <Operand operand, DataType narrow = DataType::kHalf>
constexpr CudaTactic tactic(char const* name)
{
    return CudaTactic(
        name, 1, [](Problem const& p, Config const& c) { return Tactics::generate(p, c, operand); },
        [](Problem const& p) {
            Support const s = Tactics::supports(p, operand);
            return s.ok && operand == Operand::kHalf ? takesOnly(narrow, p) : s;
        },
        [](Problem const& p) { return Tactics::configs(p, operand); }, Tactics::formats,
        [](Problem const& p, Config const& c) { return Tactics::estimate(p, c, operand); },
        Traits{.rounding = operand == Operand::kTf32 ? Rounding::kTf32 : Rounding::kPlain, .type = narrow});
}

} // namespace tw::ops::conv_nd

// Configs of convolution kernels with tiles, {tileM, tileN, stages, vector, split}, and their Specs (cuda::conv_2d,
// cuda::conv_nd), which have members of these names.
namespace tw::ops {

template <class Spec>
Config tileConfigOf(Spec const& s)
{
    return {s.tileM, s.tileN, s.stages, s.vector, s.split};
}

// Puts a config's numbers into the spec; false: the config has others.
template <class Spec>
bool setTile(Config const& c, Spec& s)
{
    if (!isConfig(c, tileConfigOf(s).size(), 0, 256))
        return false;
    s.tileM = int(c[0]);
    s.tileN = int(c[1]);
    s.stages = int(c[2]);
    s.vector = int(c[3]);
    s.split = int(c[4]);
    return true;
}

} // namespace tw::ops
