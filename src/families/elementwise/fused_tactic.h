// SPDX-License-Identifier: Apache-2.0
// The plain tactic of a fused op "head, then activation" whose attributes derive from the head's: runs the head's plain
// kernel, then the activation in place.
#pragma once

#include "families/elementwise/activate.h"
#include "tactic/tactic.h"

namespace tw::ops {

class FusedTactic final : public Tactic
{
public:
    using Head = std::span<Tactic const* const> (*)();
    using ActivationOf = FusedActivation const& (*)(ir::Node const&);

    constexpr FusedTactic(char const* name, int version, Head head, ActivationOf activationOf)
        : Tactic(name, version, Backend::kCpu), head_(head), activationOf_(activationOf)
    {}
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const&, std::string const&) const override;

private:
    Head head_;
    ActivationOf activationOf_;
};

} // namespace tw::ops
