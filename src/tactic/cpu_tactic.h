// SPDX-License-Identifier: Apache-2.0
// CPU tactics as data: a family's functions, for an instruction set and one of the family's variants.
#pragma once

#include "device/cpu.h"
#include "kernels/cpu/jit/emitter.h"
#include "kernels/cpu/jit/factors.h"
#include "tactic/packed_constants.h"
#include "tactic/panel_order.h"
#include "tactic/tactic.h"

namespace tw::ops {

// What tactics with emitted kernels ask of a CPU, in words for supports().
Support supportsIsa(device::CpuInfo const& cpu, kernels::jit::Isa isa);
Support supportsFactors(device::CpuInfo const& cpu, kernels::jit::Isa isa, kernels::jit::Factors factors);

// A tactic whose kernels are emitted for an instruction set, that of its name.
class IsaTactic : public Tactic
{
public:
    constexpr IsaTactic(char const* name, int version, kernels::jit::Isa isa)
        : Tactic(name, version, Backend::kCpu), isa_(isa)
    {}
    kernels::jit::Isa isa() const { return isa_; }
    Traits traits() const override { return {.isa = isa_ == kernels::jit::Isa::kAvx512 ? "avx512" : "avx2"}; }

protected:
    ~IsaTactic() = default;
    kernels::jit::Isa isa_;
};

class CpuTactic;

// What a tactic answers with, by the names in tactic.h and panel_order.h; null: as there.
struct CpuFunctions
{
    using Loaded = Result<std::unique_ptr<Kernel>>;

    Support (*supports)(CpuTactic const&, Problem const&) = nullptr; // asked where the CPU has the instructions
    std::vector<Formats> (*formats)(CpuTactic const&, Problem const&) = nullptr;
    std::vector<Config> (*configs)(CpuTactic const&, Problem const&) = nullptr;
    double (*estimate)(CpuTactic const&, Problem const&, Config const&) = nullptr;
    Loaded (*load)(CpuTactic const&, Problem const&, Config const&, PackedConstants& packed) = nullptr;
    // Of tactics that read panels, else null.
    std::optional<PanelOrder> (*panelOrder)(CpuTactic const&, Problem const&, Config const&) = nullptr;
    Loaded (*loadPanels)(CpuTactic const&, Problem const&, Config const&, BlobPtr const& panels) = nullptr;
};

class CpuTactic final : public IsaTactic, public PackingTactic, public PanelTactic
{
public:
    // `variant`: of an enum of the family.
    template <class Variant = int>
    constexpr CpuTactic(char const* name, int version, kernels::jit::Isa isa, CpuFunctions const& functions,
                        Variant variant = {}, Rounding rounding = Rounding::kPlain)
        : IsaTactic(name, version, isa), does_(functions), variant_(int(variant)), rounding_(rounding)
    {}
    template <class Variant>
    Variant variant() const
    {
        return Variant(variant_);
    }
    // Of a plan that is damaged; `allowed`: "{1..4}".
    Error wrongConfig(std::string const& allowed) const;

    Traits traits() const override;
    Support supports(Problem const& problem) const override;
    std::vector<Formats> formats(Problem const& p) const override
    {
        return does_.formats ? does_.formats(*this, p) : Tactic::formats(p);
    }
    std::vector<Config> configs(Problem const& p) const override
    {
        return does_.configs ? does_.configs(*this, p) : Tactic::configs(p);
    }
    double estimate(Problem const& p, Config const& config) const override
    {
        return does_.estimate ? does_.estimate(*this, p, config) : 0;
    }
    Result<std::unique_ptr<Kernel>> load(Problem const& p, Config const& config,
                                         std::string const& image) const override
    {
        PackedConstants alone;
        return loadShared(p, config, image, alone);
    }
    Result<std::unique_ptr<Kernel>> loadShared(Problem const& p, Config const& config, std::string const&,
                                               PackedConstants& packed) const override
    {
        return does_.load(*this, p, config, packed);
    }
    std::optional<PanelOrder> panelOrder(Problem const& p, Config const& config) const override
    {
        return does_.panelOrder ? does_.panelOrder(*this, p, config) : std::nullopt;
    }
    Result<std::unique_ptr<Kernel>> loadPanels(Problem const& p, Config const& config,
                                               BlobPtr const& panels) const override
    {
        return does_.loadPanels(*this, p, config, panels);
    }

private:
    CpuFunctions const& does_;
    int variant_;
    Rounding rounding_;
};

// For load functions.
template <class K, class... Args>
Result<std::unique_ptr<Kernel>> makeKernel(Args&&... args)
{
    return std::unique_ptr<Kernel>(std::make_unique<K>(std::forward<Args>(args)...));
}

// What several ops' tactics answer with: inputs whose positions have 31 bits; channels-last alone.
Support supportsPositions(CpuTactic const& tactic, Problem const& problem);
std::vector<Formats> allChannelsLast(CpuTactic const& tactic, Problem const& problem);

// Kernels of FP32 for tensors of BF16: what they read becomes FP32 in the workspace, and what they make is rounded
// from there, pixel by pixel where a tensor lies so. Constants become FP32 when a kernel is loaded. Such numbers are exact
// factors for kernels that round theirs to as many bits.

class WidenedTactic final : public Tactic
{
public:
    // `inner` asks of a constant whether it is known, and nothing about its elements, before it is loaded.
    constexpr WidenedTactic(char const* name, int version, CpuTactic const& inner)
        : Tactic(name, version, Backend::kCpu), inner_(inner)
    {}
    Traits traits() const override { return {.isa = inner_.traits().isa, .type = DataType::kBf16}; }
    Support supports(Problem const& problem) const override;
    std::vector<Formats> formats(Problem const& problem) const override;
    std::vector<Config> configs(Problem const& problem) const override;
    double estimate(Problem const& problem, Config const& config) const override;
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const& config,
                                         std::string const&) const override;

private:
    CpuTactic const& inner_;
};

} // namespace tw::ops
