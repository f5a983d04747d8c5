// SPDX-License-Identifier: Apache-2.0
// Tactics with emitted kernels for convolutions of i8, transposed or not, one object for each instruction set; what
// follows the sums is part of the kernels (families/elementwise/epilogue.h).
// Inputs: 0 x [n, c, (d,) h, w], 1 w, then those of the epilogue.
#pragma once

#include "families/convolution/tactics.h"
#include "families/elementwise/int8_ends.h"
#include "kernels/cpu/jit/int8_kernel.h"
#include "tactic/cpu_isa.h"

namespace tw::ops {

// What all of them ask: instruction set, i8, windows of so many dimensions at most, one batch dimension, constant
// weights (or, with kAny, any), sizes that offsets of 32 bits reach, an epilogue that kernels have.
Support supportsInt8Convolution(Problem const& problem, kernels::jit::Isa isa, int mostAxes, Weights weights);

// What kernels of a convolution end with.
Int8Ends int8Ends(Problem const& problem, kernels::jit::Isa isa);

// Vectors of output channels in a tile that are worth a try, where a group has so many: tiles of one or two rows wait
// for each other's sums.
std::vector<int64_t> int8TileVectors(kernels::jit::Isa isa, int64_t vectorsOfGroup);

// How this CPU multiplies bytes with vectors of `isa`.
kernels::jit::Dots dotsOfThisCpu(kernels::jit::Isa isa);

class Int8ConvolutionTactic : public CpuTactic, public PackingTactic
{
public:
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const& config,
                                         std::string const& image) const final
    {
        PackedConstants alone;
        return loadShared(problem, config, image, alone);
    }

protected:
    constexpr Int8ConvolutionTactic(char const* name, int version, kernels::jit::Isa isa)
        : CpuTactic(name, version, isa)
    {}
    ~Int8ConvolutionTactic() = default;
};

// Channels-last, windows of two dimensions. Config as of DirectTactic.
class Int8DirectTactic final : public Int8ConvolutionTactic
{
public:
    constexpr Int8DirectTactic(char const* name, int version, kernels::jit::Isa isa)
        : Int8ConvolutionTactic(name, version, isa)
    {}
    Support supports(Problem const& problem) const override;
    std::vector<Formats> formats(Problem const& problem) const override { return {channelsLastFormats(problem)}; }
    std::vector<Config> configs(Problem const& problem) const override;
    double estimate(Problem const& problem, Config const& config) const override;
    Result<std::unique_ptr<Kernel>> loadShared(Problem const& problem, Config const& config, std::string const& image,
                                               PackedConstants& packed) const override;
};

// Over a copy of the image with its padding, which takes any window; x channels-last, or linear where it has few
// channels. Config: {vectors of output channels in a tile}.
class Int8PaddedTactic final : public Int8ConvolutionTactic
{
public:
    constexpr Int8PaddedTactic(char const* name, int version, kernels::jit::Isa isa)
        : Int8ConvolutionTactic(name, version, isa)
    {}
    Support supports(Problem const& problem) const override;
    std::vector<Formats> formats(Problem const& problem) const override;
    std::vector<Config> configs(Problem const& problem) const override;
    double estimate(Problem const& problem, Config const& config) const override;
    Result<std::unique_ptr<Kernel>> loadShared(Problem const& problem, Config const& config, std::string const& image,
                                               PackedConstants& packed) const override;
};

// One filter for each channel; channels-last. Weights, scale and bias are constants. Config: {1: with prefetches}.
class Int8DepthwiseTactic final : public Int8ConvolutionTactic
{
public:
    constexpr Int8DepthwiseTactic(char const* name, int version, kernels::jit::Isa isa)
        : Int8ConvolutionTactic(name, version, isa)
    {}
    Support supports(Problem const& problem) const override;
    std::vector<Formats> formats(Problem const& problem) const override { return {channelsLastFormats(problem)}; }
    std::vector<Config> configs(Problem const& problem) const override;
    double estimate(Problem const& problem, Config const& config) const override;
    Result<std::unique_ptr<Kernel>> loadShared(Problem const& problem, Config const& config, std::string const& image,
                                               PackedConstants& packed) const override;
};

} // namespace tw::ops
