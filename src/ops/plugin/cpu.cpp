// SPDX-License-Identifier: Apache-2.0
// Both backends' tactics: the object knows which memory it works on.

#include "ops/plugin/op.h"
#include "tactic/tactic.h"

namespace tw::ops::plugin {

namespace {

Object const* objectOf(Problem const& problem)
{
    return problem.node->attrsAs<Attrs>().object.get();
}

class PluginTactic final : public Tactic, public UntunedTactic
{
public:
    using Tactic::Tactic;

    Support supports(Problem const& problem) const override
    {
        Object const* const object = objectOf(problem);
        if (!object)
            return Support::no("the plugin itself is not there");
        if (object->isOnHost() == (problem.target.cuda != nullptr))
            return Support::no("the plugin works on the other device's memory");
        return Support::yes();
    }
    std::vector<Formats> formats(Problem const& problem) const override
    {
        Object const* const object = objectOf(problem);
        return object && object->isOnHost() == !problem.target.cuda ? object->formats(problem) : std::vector<Formats>();
    }
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const&, std::string const&) const override
    {
        if (Support const s = supports(problem); !s.ok)
            return unsupported(describe(*problem.node) + ": " + s.reason);
        return objectOf(problem)->load(problem);
    }
};

constexpr PluginTactic kCpu{"plugin_any_plain_cpu", 1, Backend::kCpu};
constexpr PluginTactic kCuda{"plugin_any_plain_cuda", 1, Backend::kCuda};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kCpu>;

extern constinit TacticList const cudaTactics = kTactics<kCuda>;

} // namespace tw::ops::plugin
