// SPDX-License-Identifier: Apache-2.0
#include "tune/limit.h"

#include <algorithm>
#include <cstdio>

#include "ir/op_def.h"
#include "tune/candidates.h"

namespace tw::tune {

namespace {

constexpr double kStartOnCpu = 5, kStartOnGpu = 2; // microseconds
constexpr size_t kMostReasons = 3, kMostReasonBytes = 160;

std::vector<TensorRef> refsOf(std::vector<ops::TensorSpec> const& specs)
{
    auto refs = mapped<TensorRef>(specs, [&](ops::TensorSpec const& t) {
        return t.present ? TensorRef{t.type, t.dims, t.contents.data, t.format} : TensorRef{};
    });
    return refs;
}

double tensorBytes(ops::TensorSpec const& t)
{
    return t.present ? double(t.dims.volume()) * double(sizeOf(t.type)) : 0;
}

// What kept a tactic out that supports the problem: the tuner's words. That it is for other formats says little.
std::string whyNot(ops::Tactic const& tactic, ops::Problem const& problem, plan::Choice const& choice)
{
    std::string const name = tactic.name(), inTheseFormats = ops::supportsFormats(tactic, problem).reason;
    for (plan::Rival const& r : choice.rivals) // after the name: config, formats
        if (r.name.compare(0, name.size(), name) == 0 && r.reason != inTheseFormats &&
            (r.name.size() == name.size() || r.name[name.size()] == '[' || r.name[name.size()] == ' ')) {
            char time[40] = "";
            if (r.microseconds > 0)
                std::snprintf(time, sizeof time, "%.3g us, ", r.microseconds);
            return time + r.reason;
        }
    return inTheseFormats.empty() ? "it was not tried" : inTheseFormats;
}

// In any of its formats.
ops::Support supportsAtAll(ops::Tactic const& tactic, ops::Problem problem)
{
    ops::Support first = ops::Support::no("it has no formats for these tensors");
    bool isFirst = true;
    for (ops::Formats const& f : tactic.formats(problem)) {
        ops::setFormats(problem, f);
        ops::Support const s = tactic.supports(problem);
        if (s.ok)
            return s;
        if (isFirst)
            first = s;
        isFirst = false;
    }
    return first;
}

// Each reason once, with the first tactic that has it: those that could have been taken first.
std::string reasonsAgainst(std::vector<ops::Tactic const*> const& others, ops::Problem const& problem,
                           plan::Choice const& choice)
{
    std::vector<std::string> seen, kept, refused;
    for (ops::Tactic const* t : others) {
        ops::Support const support = supportsAtAll(*t, problem);
        std::string const reason =
            (support.ok ? whyNot(*t, problem, choice) : support.reason).substr(0, kMostReasonBytes);
        if (contains(seen, reason))
            continue;
        seen.push_back(reason);
        (support.ok ? kept : refused).push_back(std::string(t->name()) + ": " + reason);
    }
    kept.insert(kept.end(), refused.begin(), refused.end());
    std::string text;
    for (size_t i = 0; i < std::min(kept.size(), kMostReasons); ++i)
        text += (i ? "; " : "") + kept[i];
    return text + (kept.size() > kMostReasons ? fmt::format("; and {} more", kept.size() - kMostReasons) : "");
}

} // namespace

double startOf(ops::Backend backend)
{
    return backend == ops::Backend::kCuda ? kStartOnGpu : kStartOnCpu;
}

double bytesOf(ops::Problem const& problem)
{
    ir::Node const& node = *problem.node;
    double written = 0, read = 0;
    for (ops::TensorSpec const& t : problem.outputs)
        written += tensorBytes(t);
    for (size_t i = 0; i < problem.inputs.size() && !node.op->readsDimsOnly; ++i) {
        bool const isAgain = std::find(node.inputs.begin(), node.inputs.begin() + long(i), node.inputs[i]) !=
                             node.inputs.begin() + long(i);
        double const bytes = tensorBytes(problem.inputs[i]);
        if (!isAgain)
            read += i == 0 && node.op->readsPart ? std::min(bytes, written) : bytes;
    }
    return read + written;
}

double operationsOf(ops::Problem const& problem)
{
    auto const operations = problem.node->op->operations;
    std::vector<TensorRef> const in = refsOf(problem.inputs), out = refsOf(problem.outputs);
    return operations ? operations(*problem.node, in, out) : 0;
}

double limitOf(ops::Problem const& problem, Rates& rates)
{
    double const copied = rates.bytes();
    if (copied <= 0)
        return 0;
    double us = bytesOf(problem) / copied;
    if (problem.node->op->operations) {
        double const rate = rates.operations(problem.inputs[0].type);
        if (rate <= 0)
            return 0;
        us = std::max(us, operationsOf(problem) / rate);
    }
    return us + startOf(problem.target.cuda ? ops::Backend::kCuda : ops::Backend::kCpu);
}

std::string lackOf(ops::Problem const& problem, plan::Choice const& choice, Options const& options, bool isBusy)
{
    // What the clock says of less is noise, and nobody waits for it.
    if (choice.microseconds > 0 && choice.microseconds < startOf(options.backend))
        return {};
    if (choice.limitMicroseconds > 0 && choice.microseconds <= kNear * choice.limitMicroseconds)
        return {};
    ops::TacticList const own = problem.node->op->tactics(problem.target.cuda);
    // Where a list holds one tactic, no other could have been taken: its time alone tells.
    if (own.size() > 1 && own.back()->id() == choice.tactic) {
        std::vector<ops::Tactic const*> others = candidates(*problem.node, options);
        std::erase_if(others, [&](ops::Tactic const* t) { return t->id() == choice.tactic; });
        std::string const reasons = reasonsAgainst(others, problem, choice);
        return reasons.empty() ? "the plain kernel is the only one that is allowed" : reasons;
    }
    if (!isBusy && choice.limitMicroseconds > 0 && choice.microseconds > kSlow * choice.limitMicroseconds) {
        char text[120];
        std::snprintf(text, sizeof text, "%.3g us are %.1f times its limit of %.3g us", choice.microseconds,
                      choice.microseconds / choice.limitMicroseconds, choice.limitMicroseconds);
        return text;
    }
    return {};
}

} // namespace tw::tune
