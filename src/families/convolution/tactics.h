// SPDX-License-Identifier: Apache-2.0
// Tactics with emitted kernels for f(conv(x, w) + bias + residual) in f32, conv a convolution or a transposed one, one
// object for each instruction set.
// Inputs: 0 x [n, c, (d,) h, w], 1 w and 2 bias (optional), both constants, 3 residual (optional).
#pragma once

#include <optional>

#include "families/elementwise/activate_jit.h"
#include "kernels/cpu/jit/factors.h"
#include "ops/convolution/op.h"
#include "tactic/cpu_isa.h"
#include "tactic/packed_constants.h"
#include "tactic/panel_order.h"
#include "tactic/tactic.h"

namespace tw::ops {

constexpr int64_t kPartsPerThread = 4; // so that threads end at about the same time
constexpr int64_t kMaxPointers = 2048; // that padded tactics keep on the stack

// What all of them ask: instruction set, f32, windows of so many dimensions at most, one batch dimension, weights and
// bias that are constants (or, with kAny, need not be), sizes that offsets of 32 bits reach.
enum class Weights
{
    kConstant,
    kAny,
};
Support supportsConvolution(Problem const& problem, kernels::jit::Isa isa, int mostAxes = 2,
                            Weights weights = Weights::kConstant);
// The same, and that nothing is transposed.
Support supportsForward(Problem const& problem, kernels::jit::Isa isa);
bool isTransposed(ir::Node const& node);
convolution::Geometry convolutionGeometry(ir::Node const& node, Extents const& x, Extents const& w, Extents const& y);
// What stands after the sums.
std::optional<kernels::jit::Activation> jitActivation(ir::Node const& node);

// One filter for each channel; channels-last. Config: {vectors of channels at a time, 1: with prefetches}.
class DepthwiseTactic final : public CpuTactic, public PackingTactic
{
public:
    constexpr DepthwiseTactic(char const* name, int version, kernels::jit::Isa isa) : CpuTactic(name, version, isa) {}
    Support supports(Problem const& problem) const override;
    std::vector<Formats> formats(Problem const& problem) const override { return {channelsLastFormats(problem)}; }
    std::vector<Config> configs(Problem const& problem) const override;
    double estimate(Problem const& problem, Config const& config) const override;
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const& config,
                                         std::string const& image) const override;
    Result<std::unique_ptr<Kernel>> loadShared(Problem const& problem, Config const& config, std::string const& image,
                                               PackedConstants& packed) const override;
};

// Everything else, as a product of matrices. Config: {vectors of output channels in a tile, 1: inputs of a block of
// pixels stay in L1 instead of L2}.
class DirectTactic final : public CpuTactic, public PanelTactic, public PackingTactic
{
public:
    enum Input
    {
        kNhwc, // channels-last
        kNchw, // linear, few channels: the first convolution of a network; not transposed
    };

    constexpr DirectTactic(char const* name, int version, kernels::jit::Isa isa, Input input)
        : CpuTactic(name, version, isa), input_(input)
    {}
    Support supports(Problem const& problem) const override;
    std::vector<Formats> formats(Problem const& problem) const override;
    std::vector<Config> configs(Problem const& problem) const override;
    double estimate(Problem const& problem, Config const& config) const override;
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const& config,
                                         std::string const& image) const override;
    Result<std::unique_ptr<Kernel>> loadShared(Problem const& problem, Config const& config, std::string const& image,
                                               PackedConstants& packed) const override;
    std::optional<PanelOrder> panelOrder(Problem const& problem, Config const& config) const override;
    Result<std::unique_ptr<Kernel>> loadPanels(Problem const& problem, Config const& config,
                                               BlobPtr const& panels) const override;

private:
    // Of filters in panels, or packed ones.
    Result<std::unique_ptr<Kernel>> make(Problem const& problem, Config const& config, BlobPtr const& panels,
                                         PackedConstants* packed) const;
    Input input_;
};

// What direct convolutions leave: long filter rows, many of them, weights that are no constants; and all whose factors
// are rounded to BF16, with constant weights. Not transposed. Config: {vectors of output channels in a tile}.
class PaddedTactic final : public CpuTactic, public PackingTactic
{
public:
    constexpr PaddedTactic(char const* name, int version, kernels::jit::Isa isa,
                           kernels::jit::Factors factors = kernels::jit::Factors::kFloat)
        : CpuTactic(name, version, isa), factors_(factors)
    {}
    Traits traits() const override { return traitsWith(isPairs(factors_) ? Rounding::kBf16 : Rounding::kPlain); }
    Support supports(Problem const& problem) const override;
    std::vector<Formats> formats(Problem const& problem) const override;
    std::vector<Config> configs(Problem const& problem) const override;
    double estimate(Problem const& problem, Config const& config) const override;
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const& config,
                                         std::string const& image) const override;
    Result<std::unique_ptr<Kernel>> loadShared(Problem const& problem, Config const& config, std::string const& image,
                                               PackedConstants& packed) const override;

private:
    kernels::jit::Factors factors_;
};

} // namespace tw::ops
