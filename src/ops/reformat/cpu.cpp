// SPDX-License-Identifier: Apache-2.0
#include "ops/convert_format.h"
#include "ops/reformat/op.h"

namespace tw::ops::reformat {

namespace {

class PlainKernel final : public Kernel
{
public:
    Result<void> run(RunArgs& args) const override
    {
        convertFormat(args.inputs[0], args.outputs[0]);
        return {};
    }
};

class Plain final : public Tactic
{
public:
    constexpr Plain() : Tactic("reformat_plain", 1, Backend::kCpu) {}
    std::vector<Formats> formats(Problem const& problem) const override
    {
        std::vector<Formats> list{linearFormats(problem)};
        if (problem.inputs[0].dims.rank >= 3)
            for (Format from : {Format::kLinear, Format::kChannelsLast})
                for (Format to : {Format::kLinear, Format::kChannelsLast})
                    if (from != Format::kLinear || to != Format::kLinear)
                        list.push_back(Formats{{from}, {to}});
        return list;
    }
    Result<std::unique_ptr<Kernel>> load(Problem const&, Config const&, std::string const&) const override
    {
        return std::unique_ptr<Kernel>(std::make_unique<PlainKernel>());
    }
};

constexpr Plain kPlain;

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::reformat
