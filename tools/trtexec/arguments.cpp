// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"

#include <algorithm>

#include "failure.h"
#include "value_syntax.h"

namespace tw::trtexec {

Arguments::Arguments(int argc, char const* const* argv)
{
    for (int i = 1; i < argc; ++i) {
        std::string_view const text = argv[i];
        size_t const equals = text.find('=');
        Argument arg;
        arg.name = text.substr(0, equals);
        arg.hasValue = equals != std::string_view::npos;
        if (arg.hasValue)
            arg.value = text.substr(equals + 1);
        args_.push_back(std::move(arg));
    }
}

std::optional<Argument> Arguments::takeFirst(std::string_view name)
{
    auto const it = std::find_if(args_.begin(), args_.end(), [&](Argument const& a) { return a.name == name; });
    if (it == args_.end())
        return std::nullopt;
    Argument taken = std::move(*it);
    args_.erase(it);
    return taken;
}

bool Arguments::takeFlag(std::string_view name)
{
    return takeFirst(name).has_value();
}

std::optional<std::string> Arguments::takeText(std::string_view name)
{
    std::optional<Argument> arg = takeFirst(name);
    if (!arg)
        return std::nullopt;
    if (arg->value.empty())
        throw UsageError(arg->name + " needs a value: write " + arg->name + "=<value>");
    return std::move(arg->value);
}

std::optional<int32_t> Arguments::takeInteger(std::string_view name, int32_t low, int32_t high)
{
    std::optional<std::string> const text = takeText(name);
    if (!text)
        return std::nullopt;
    return parseInteger(name, *text, low, high);
}

std::optional<double> Arguments::takeNumber(std::string_view name, double low, double high)
{
    std::optional<std::string> const text = takeText(name);
    if (!text)
        return std::nullopt;
    return parseNumber(name, *text, low, high);
}

std::vector<std::string> Arguments::takeEach(std::string_view name)
{
    std::vector<std::string> values;
    while (std::optional<std::string> text = takeText(name))
        values.push_back(std::move(*text));
    return values;
}

} // namespace tw::trtexec
