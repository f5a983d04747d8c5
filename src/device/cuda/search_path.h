// SPDX-License-Identifier: Apache-2.0
// Where the libraries are looked for that we open at run time: what the environment names, else beside libnvinfer, the
// loader's path, the toolkit's folders, Python's packages.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "device/cuda/library.h"

namespace tw::cuda {

struct SearchPlaces
{
    std::string given;                 // file or folder that the environment names; empty: none
    std::string own;                   // the folder of libnvinfer; empty: not known
    std::vector<std::string> prefixes; // of Python's environments, the likeliest first; empty ones are left out
};

// `packages`: folders below site-packages/nvidia that hold the library, best first.
SearchPath searchPathFor(SearchPlaces const& places, std::initializer_list<char const*> packages);

// Prefixes of the Python that a process is: none when its program, `file`, is no Python. `command` is what it was
// called: a virtual environment's python is a link to another one's file. `path` is PATH.
std::vector<std::string> pythonPrefixes(std::string const& file, std::string const& command, std::string const& path);

} // namespace tw::cuda
