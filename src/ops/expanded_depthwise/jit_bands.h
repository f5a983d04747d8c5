// SPDX-License-Identifier: Apache-2.0
// Rows of z in a buffer that stays in L2: the convolution of one element fills it by a band of rows, the depthwise one
// reads it; rows that the next band needs too are moved to its front. Each worker has a buffer and works on bands that
// follow each other. Both are the emitted kernels of families/convolution/tactics.h.
// Config: {vectors of channels in a tile of z, in a block of y, KiB of a buffer (0: for all rows of a part)}.
#pragma once

#include "families/convolution/tactics.h"
#include "tactic/cpu_isa.h"

namespace tw::ops::expanded_depthwise {

class BandsTactic final : public CpuTactic
{
public:
    constexpr BandsTactic(char const* name, int version, kernels::jit::Isa isa) : CpuTactic(name, version, isa) {}
    Support supports(Problem const& problem) const override;
    std::vector<Formats> formats(Problem const& problem) const override { return {channelsLastFormats(problem)}; }
    std::vector<Config> configs(Problem const& problem) const override;
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const& config,
                                         std::string const& image) const override;
};

} // namespace tw::ops::expanded_depthwise
