// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/source.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <set>

#include "base/check.h"

namespace tw::cuda {

namespace {

SourceFile const* find(std::string_view path)
{
    auto const files = sourceFiles();
    auto const at = std::find_if(files.begin(), files.end(), [&](SourceFile const& f) { return f.path == path; });
    return at == files.end() ? nullptr : &*at;
}

// The file that a line includes; none: it is another line.
SourceFile const* fileOf(std::string_view line)
{
    constexpr std::string_view kBegin = "#include \"";
    if (!line.starts_with(kBegin) || !line.ends_with('"'))
        return nullptr;
    return find(line.substr(kBegin.size(), line.size() - kBegin.size() - 1));
}

void append(std::string& out, std::string_view text, std::set<std::string_view>& done)
{
    while (!text.empty()) {
        size_t const length = std::min(text.find('\n'), text.size() - 1) + 1;
        std::string_view const line = text.substr(0, length);
        text.remove_prefix(length);
        SourceFile const* const file = fileOf(line.ends_with('\n') ? line.substr(0, length - 1) : line);
        if (!file) {
            if (!line.starts_with("#pragma once"))
                out += line;
        } else if (done.insert(file->path).second) {
            append(out, file->text, done);
        }
    }
}

} // namespace

std::string include(char const* path)
{
    TW_CHECK(find(path));
    return std::string("#include \"") + path + "\"\n";
}

std::string withIncludes(std::string_view source)
{
    std::string out;
    std::set<std::string_view> done;
    append(out, source, done);
    return out;
}

std::string constant(char const* name, int64_t value)
{
    return fmt::format("constexpr int {} = {};\n", name, value);
}

std::string longConstant(char const* name, int64_t value)
{
    return fmt::format("constexpr long long {} = {}ll;\n", name, value);
}

std::string flag(char const* name, bool value)
{
    return "constexpr bool " + std::string(name) + " = " + (value ? "true" : "false") + ";\n";
}

std::string number(char const* name, float value)
{
    char text[64]; // nine digits tell any two floats apart
    if (std::isfinite(value))
        std::snprintf(text, sizeof(text), "%.8ef", double(value));
    else // NVRTC knows no names for these that are constant expressions
        std::snprintf(text, sizeof(text), "__builtin_bit_cast(float, 0x%08xu)", std::bit_cast<uint32_t>(value));
    return "constexpr float " + std::string(name) + " = " + text + ";\n";
}

std::string type(char const* name, std::string const& of)
{
    return "using " + std::string(name) + " = " + of + ";\n";
}

} // namespace tw::cuda
