// SPDX-License-Identifier: Apache-2.0
// CPU builds do not make this op: a plan that was built for a GPU may bring it.
#include "ops/append_attention/run_parts.h"
#include "tactic/registry.h"

namespace tw::ops::append_attention {

namespace {

// The plain kernels of the parts, one behind the other.
class PartsKernel final : public Kernel
{
public:
    explicit PartsKernel(Attrs const& a) : attrs_(a) {}
    Result<void> load()
    {
        for (size_t p = 0; p < kParts; ++p) {
            nodes_[p] = nodeOf(attrs_, Part(p));
            Problem problem;
            problem.node = &nodes_[p];
            TW_ASSIGN(kernels_[p], nodes_[p].op->cpuTactics->back()->load(problem, {}, ""));
        }
        return {};
    }
    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const override
    {
        return workspaceOfParts(attrs_, in, out, [&](Part part, auto const& inputs, auto const& outputs) {
            return kernels_[size_t(part)]->workspaceBytes(inputs, outputs);
        });
    }
    Result<void> run(RunArgs& args) const override
    {
        return runParts(attrs_, args, [&](Part part, RunArgs& own) { return kernels_[size_t(part)]->run(own); });
    }

private:
    Attrs const& attrs_;
    std::array<ir::Node, kParts> nodes_;
    std::array<std::unique_ptr<Kernel>, kParts> kernels_;
};

class PartsTactic final : public Tactic
{
public:
    constexpr PartsTactic(char const* name, int version) : Tactic(name, version, Backend::kCpu) {}
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const&, std::string const&) const override
    {
        auto kernel = std::make_unique<PartsKernel>(problem.node->attrsAs<Attrs>());
        TW_TRY(kernel->load());
        return std::unique_ptr<Kernel>(std::move(kernel));
    }
};

constexpr PartsTactic kPlain{"append_attention_any_plain_cpu", 1};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kPlain>;

} // namespace tw::ops::append_attention
