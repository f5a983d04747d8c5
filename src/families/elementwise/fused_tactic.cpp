// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/fused_tactic.h"

namespace tw::ops {

namespace {

class FusedKernel final : public Kernel
{
public:
    FusedKernel(std::unique_ptr<Kernel> head, FusedActivation const& activation)
        : head_(std::move(head)), activation_(activation)
    {}
    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const override
    {
        return head_->workspaceBytes(in, out);
    }
    Result<void> run(RunArgs& args) const override
    {
        TW_TRY(head_->run(args));
        TensorRef const& y = args.outputs[0];
        activateElements(activation_, y.type, y.data, y.count());
        return {};
    }

private:
    std::unique_ptr<Kernel> head_;
    FusedActivation activation_;
};

} // namespace

Result<std::unique_ptr<Kernel>> FusedTactic::load(Problem const& problem, Config const&, std::string const&) const
{
    TW_ASSIGN(auto head, head_().back()->load(problem, {}, {}));
    return std::unique_ptr<Kernel>(std::make_unique<FusedKernel>(std::move(head), activationOf_(*problem.node)));
}

} // namespace tw::ops
