// SPDX-License-Identifier: Apache-2.0
// Winograd's convolution F(m x m, 3x3), m = 2 or 4, over the last two of two or three axes, not transposed, stride 1
// and dilation 1 along them, one group, any padding, f32, channels-last, weights and bias constant. 2.25 and 4 times
// fewer multiplications.
//
// Error: relative to the largest output, on random data of 16 to 512 channels, 2e-7 to 6e-7 (m = 2) and 6e-7 to 3e-6
// (m = 4); test/ops/winograd_test.cpp holds it to 1e-6 and 4e-6. The ops' tolerance of 1e-5 admits both, and the
// builder checks each layer with its own weights.
#pragma once

#include "families/elementwise/activate.h"
#include "tactic/cpu_isa.h"
#include "tactic/packed_constants.h"
#include "tactic/panel_order.h"
#include "tactic/tactic.h"

namespace tw::ops {

// Config: {m, how, tiles, columns, piece}. The layer is processed in blocks of `tiles` tiles of m x m outputs and
// `columns` output channels, `piece` input channels at a time. how, bit 0: all workers transform the tiles of one
// block, then take blocks of columns; without it they take blocks of tiles, each transforms its own. Bit 1: weights
// stay as they are and are transformed each time they are used (once for each block of tiles): a quarter of the memory,
// and of what is read of it, for m = 4.
class WinogradTactic final : public CpuTactic, public PanelTactic, public PackingTactic
{
public:
    constexpr WinogradTactic(char const* name, int version, kernels::jit::Isa isa) : CpuTactic(name, version, isa) {}
    Traits traits() const override { return traitsWith(Rounding::kWinograd); }
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
};

} // namespace tw::ops
