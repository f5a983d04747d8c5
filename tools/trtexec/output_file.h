// SPDX-License-Identifier: Apache-2.0
// The one writer of files. A regular file is replaced in one step, so that a reader never sees half of one: written
// under a temporary name beside it and renamed; mode and owner stay. Links are followed, also to files that are not
// there yet. What exists and is no regular file (a device, a pipe) is written to.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tw::trtexec {

// What a path leads to.
struct OutputFile
{
    std::string path;       // without links; as given when isInPlace
    bool exists = false;    // a regular file, which is replaced
    bool isInPlace = false; // a device, a pipe, or a descriptor that a process has open (/dev/stdout)
};
// Throws Failure for a folder, and where links lead in a circle.
OutputFile resolveOutput(std::string const& path);

// Throws Failure, and leaves nothing after, when the bytes cannot all be written. Waits for a reader of a named pipe.
void writeFile(std::string const& path, void const* data, size_t sizeBytes);
inline void writeFile(std::string const& path, std::string_view text)
{
    writeFile(path, text.data(), text.size());
}

// Throws what writeFile() would throw for a place that takes no file, before hours of work depend on it.
void checkWritable(std::string const& path);

} // namespace tw::trtexec
