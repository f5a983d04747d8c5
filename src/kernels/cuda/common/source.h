// SPDX-License-Identifier: Apache-2.0
// Device code lies in files, CUDA C++ below src/ (.cuh) and the structs that host and kernels share (*params.h), whose
// text the build embeds (cmake/embed.cmake). The source of a kernel is some constants and the file that reads them:
//
//     constant("kTile", 128) + type("T", "f16") + include("ops/lrn/lrn.cuh")
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tw::cuda {

struct SourceFile
{
    std::string_view path; // below src/
    std::string_view text;
};
std::span<SourceFile const> sourceFiles();

// A line that stands for the text of a file.
std::string include(char const* path);
// `source` with the text of each file at the first line that includes it; later ones give nothing. What is compiled.
std::string withIncludes(std::string_view source);

// Constants, lines before the file that reads them: int, long long, bool, float, and the name of a type.
std::string constant(char const* name, int64_t value);
std::string longConstant(char const* name, int64_t value);
std::string flag(char const* name, bool value);
std::string number(char const* name, float value);
std::string type(char const* name, std::string const& of);

} // namespace tw::cuda
