// SPDX-License-Identifier: Apache-2.0
// The order in which matrix kernels read constant weights. A plan that was built for a CPU holds them in this order
// (see docs/adr/0003-weights-in-panels.md), so that its kernels use them where they lie in the file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/blob.h"
#include "tactic/tactic.h"

namespace tw::ops {

// f32 weights of K outputs and D products each, D = channels * rows * taps.
//   plain:  [K][channels][rows][taps], or [D][K]
//   stored: one panel after the other: [rows][channels / together][taps][together][K of the panel], where the channels
//           that are left over follow after those of the same row, as [channels % together][taps][K of the panel]
struct PanelOrder
{
    std::vector<int32_t> panels; // outputs of each; their sum is K
    int32_t channels = 1, rows = 1, taps = 1, together = 1;
    bool outputsLast = false; // plain is [D][K]; channels alone make up D

    bool operator==(PanelOrder const&) const = default;
    int64_t outputs() const;
    int64_t depth() const { return int64_t(channels) * rows * taps; }
    // Whether it is an order of `count` elements; the other functions are for such.
    bool fits(int64_t count) const;
};

// Panels of `most` outputs; the last may have fewer.
std::vector<int32_t> panelsOf(int64_t outputs, int64_t most);
void toPanels(PanelOrder const& order, float const* plain, float* panels);
void fromPanels(PanelOrder const& order, float const* panels, float* plain);

// A tactic that reads constant input kPanelInput in panels.
class PanelTactic
{
public:
    static constexpr size_t kPanelInput = 1;
    // Null: it reads other orders. The problem is one that the tactic supports; the config may be anything.
    virtual std::optional<PanelOrder> panelOrder(Problem const& problem, Config const& config) const = 0;
    // As load(), with the constant in panelOrder(), 64-byte aligned; the kernel may keep `panels`.
    virtual Result<std::unique_ptr<Kernel>> loadPanels(Problem const& problem, Config const& config,
                                                       BlobPtr const& panels) const = 0;

protected:
    constexpr PanelTactic() = default;
    ~PanelTactic() = default;
};

} // namespace tw::ops
