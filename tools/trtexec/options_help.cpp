// SPDX-License-Identifier: Apache-2.0
#include "flags.h"
#include "options.h"

namespace tw::trtexec {

namespace {

std::string_view heading(FlagGroup group)
{
    switch (group) {
    case FlagGroup::kModel:
        return "=== Model Options ===";
    case FlagGroup::kBuild:
        return "=== Build Options ===";
    case FlagGroup::kInference:
        return "=== Inference Options ===";
    case FlagGroup::kReporting:
        return "=== Reporting Options ===";
    case FlagGroup::kSystem:
        return "=== System Options ===";
    case FlagGroup::kHelp:
        return "=== Help ===";
    }
    return {};
}

constexpr size_t kHelpColumn = 36;

void appendFlag(std::string& text, Flag const& flag)
{
    std::string line = "  " + std::string(flag.name) + std::string(flag.syntax);
    std::string_view help = flag.help;
    while (true) {
        line.resize(std::max(line.size() + 1, kHelpColumn), ' ');
        size_t const end = help.find('\n');
        text += line + std::string(help.substr(0, end)) + "\n";
        if (end == std::string_view::npos)
            return;
        help.remove_prefix(end + 1);
        line.clear();
    }
}

} // namespace

std::string helpText()
{
    std::string text;
    FlagGroup group = FlagGroup::kHelp;
    for (Flag const& flag : allFlags()) {
        if (flag.help.empty())
            continue;
        if (text.empty() || flag.group != group) {
            group = flag.group;
            text += (text.empty() ? "" : "\n") + std::string(heading(group)) + "\n";
        }
        appendFlag(text, flag);
    }
    return text;
}

} // namespace tw::trtexec
