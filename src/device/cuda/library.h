// SPDX-License-Identifier: Apache-2.0
// Libraries that are opened at run time, when they are there: the CUDA driver, NVRTC, cuBLASLt, cuDNN.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace tw::cuda {

// Where to look, in this order; callers have read the environment.
struct SearchPath
{
    std::vector<std::string> given;  // files or folders that the user named; when there are any, no other is tried
    std::vector<std::string> before; // folders before the loader's own path: beside libnvinfer
    std::vector<std::string> after;  // and after it: toolkit and wheel folders
};

class Library
{
public:
    ~Library();
    Library(Library const&) = delete;
    Library& operator=(Library const&) = delete;
    // The first of `names` (file names, best first) that can be opened. The error lists what was tried and why not.
    static Result<std::unique_ptr<Library>> open(char const* what, std::initializer_list<char const*> names,
                                                 SearchPath const& path);
    void* symbol(char const* name) const; // null when there is none
    // Never unload it: for libraries with threads or exit handlers of their own.
    void keepOpen() const;
    std::string const& file() const { return file_; }
    // A second one with globals of its own, from a copy of the file in memory. Null where there can be none.
    std::unique_ptr<Library> copy() const;

private:
    Library(void* handle, std::string file, int memory = -1) : handle_(handle), memory_(memory), file_(std::move(file))
    {}
    void* handle_;
    int memory_; // a copy's file: open, for its number is the copy's name to the loader
    std::string file_;
};

// One of CUDA's libraries of version 13 or 12, "libnvrtc.so": that of this process's driver first, for code that a
// newer one brings or makes need not load there. Without a driver 13.
Result<std::unique_ptr<Library>> openLibraryOfDriver(char const* what, std::string const& name, SearchPath const& path);

} // namespace tw::cuda
