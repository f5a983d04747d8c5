// SPDX-License-Identifier: Apache-2.0
// CPU builds do not make this op: a plan that was built for a GPU may bring it.
#include <algorithm>

#include "base/round.h"
#include "ops/append_attention/op.h"
#include "tactic/registry.h"

namespace tw::ops::append_attention {

namespace {

constexpr int64_t kAlignment = 64;

// The plain kernels of the parts, one behind the other.
class PartsKernel final : public Kernel
{
public:
    explicit PartsKernel(Attrs const& a) : attrs_(a)
    {
        set(Part::kRotation, rotary::def(), a.rotation());
        set(Part::kKeyUpdate, cache_update::def(), a.keyUpdate());
        set(Part::kValueUpdate, cache_update::def(), a.valueUpdate());
        set(Part::kAttention, attention::def(), a.attending());
    }
    Result<void> load()
    {
        for (Step& s : steps_) {
            Problem problem;
            problem.node = &s.node;
            TW_ASSIGN(s.kernel, s.node.op->cpuTactics->back()->load(problem, {}, ""));
        }
        return {};
    }
    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const override
    {
        int64_t most = 0;
        auto const measured =
            forParts(attrs_, in, out, nullptr, [&](Part part, auto const& inputs, TensorRef const& y) -> Result<void> {
                TensorRef const outputs[] = {y};
                most = std::max(most, kernelOf(part).workspaceBytes(inputs, outputs));
                return {};
            });
        (void)measured.ok(); // nothing in it fails
        return roundUp(turnedBytes(attrs_, in), kAlignment) + most;
    }
    Result<void> run(RunArgs& args) const override
    {
        int64_t const turned = roundUp(turnedBytes(attrs_, args.inputs), kAlignment);
        return forParts(attrs_, args.inputs, args.outputs, args.workspace,
                        [&](Part part, auto const& inputs, TensorRef const& y) {
                            TensorRef outputs[] = {y};
                            RunArgs own = args;
                            own.inputs = inputs;
                            own.outputs = outputs;
                            own.workspace = static_cast<std::byte*>(args.workspace) + turned;
                            return kernelOf(part).run(own);
                        });
    }

private:
    struct Step
    {
        ir::Node node;
        std::unique_ptr<Kernel> kernel;
    };
    void set(Part part, ir::OpDef const& op, ir::AttrsBase const& attrs)
    {
        ir::Node& node = steps_[size_t(part)].node;
        node.op = &op;
        node.attrs = attrs.clone();
    }
    Kernel const& kernelOf(Part part) const { return *steps_[size_t(part)].kernel; }

    Attrs const& attrs_;
    std::array<Step, size_t(Part::kAttention) + 1> steps_;
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
