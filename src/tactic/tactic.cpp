// SPDX-License-Identifier: Apache-2.0
#include "tactic/tactic.h"

#include <algorithm>

#include "tactic/registry.h"

namespace tw::ops {

uint64_t Tactic::id() const
{
    return tacticId(name_, version_);
}

Formats linearFormats(Problem const& problem)
{
    return Formats{std::vector<Format>(problem.inputs.size(), Format::kLinear),
                   std::vector<Format>(problem.outputs.size(), Format::kLinear)};
}

Formats channelsLastFormats(Problem const& problem, Format format)
{
    Formats f = linearFormats(problem);
    for (size_t i = 0; i < f.inputs.size(); ++i)
        if (problem.inputs[i].present && problem.inputs[i].dims.rank >= 3 && !problem.inputs[i].constant)
            f.inputs[i] = format;
    for (size_t i = 0; i < f.outputs.size(); ++i)
        if (problem.outputs[i].dims.rank >= 3)
            f.outputs[i] = format;
    return f;
}

Formats formatsOf(Problem const& problem)
{
    Formats f;
    for (TensorSpec const& t : problem.inputs)
        f.inputs.push_back(t.present ? t.format : Format::kLinear);
    for (TensorSpec const& t : problem.outputs)
        f.outputs.push_back(t.format);
    return f;
}

void setFormats(Problem& problem, Formats const& formats)
{
    for (size_t i = 0; i < problem.inputs.size(); ++i)
        problem.inputs[i].format = formats.inputs[i];
    for (size_t i = 0; i < problem.outputs.size(); ++i)
        problem.outputs[i].format = formats.outputs[i];
}

Support takesOnly(DataType type, Problem const& problem, size_t inputs)
{
    for (TensorSpec const& t : std::span(problem.inputs).first(inputs))
        if (t.present && t.type != type)
            return Support::no(std::string("takes ") + nameOf(type) + " only");
    return Support::yes();
}

Support supportsFormats(Tactic const& tactic, Problem const& problem)
{
    Formats const wanted = formatsOf(problem);
    std::vector<Formats> const known = tactic.formats(problem);
    if (std::find(known.begin(), known.end(), wanted) == known.end())
        return Support::no("it does not work in these formats");
    return tactic.supports(problem);
}

std::unique_ptr<Kernel> kernelOf(ir::Node const& node, std::function<Result<void>(RunArgs&)> run,
                                 PlainTactic::Workspace workspace)
{
    class RunKernel final : public Kernel
    {
    public:
        RunKernel(ir::Node const& node, std::function<Result<void>(RunArgs&)> run, PlainTactic::Workspace workspace)
            : node_(node), run_(std::move(run)), workspace_(workspace)
        {}
        int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const override
        {
            return workspace_ ? workspace_(node_, in, out) : 0;
        }
        Result<void> run(RunArgs& args) const override { return run_(args); }

    private:
        ir::Node const& node_;
        std::function<Result<void>(RunArgs&)> run_;
        PlainTactic::Workspace workspace_;
    };
    return std::make_unique<RunKernel>(node, std::move(run), workspace);
}

Result<std::unique_ptr<Kernel>> PlainTactic::load(Problem const& problem, Config const&, std::string const&) const
{
    ir::Node const& node = *problem.node;
    return kernelOf(
        node, [&node, run = run_](RunArgs& args) { return run(node, args); }, workspace_);
}

} // namespace tw::ops
