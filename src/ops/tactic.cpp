// SPDX-License-Identifier: Apache-2.0
#include "ops/tactic.h"

namespace tw::ops {

namespace {

class PlainKernel final : public Kernel
{
public:
    PlainKernel(ir::Node const& node, PlainTactic::Run run, PlainTactic::Workspace workspace)
        : node_(node), run_(run), workspace_(workspace)
    {}
    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const override
    {
        return workspace_ ? workspace_(node_, in, out) : 0;
    }
    Result<void> run(RunArgs& args) const override { return run_(node_, args); }

private:
    ir::Node const& node_;
    PlainTactic::Run run_;
    PlainTactic::Workspace workspace_;
};

} // namespace

Result<std::unique_ptr<Kernel>> PlainTactic::load(Problem const& problem, Config const&, std::string const&) const
{
    return std::unique_ptr<Kernel>(std::make_unique<PlainKernel>(*problem.node, run_, workspace_));
}

} // namespace tw::ops
