// SPDX-License-Identifier: Apache-2.0
// Where the libraries are looked for that we open at run time: what the environment names, else beside libnvinfer, the
// loader's path, the toolkit's folders, Python's packages.
#pragma once

#include <initializer_list>
#include <string>

#include "device/cuda/library.h"

namespace tw::cuda {

struct SearchPlaces
{
    std::string given;              // file or folder that the environment names; empty: none
    std::string own;                // the folder of libnvinfer; empty: not known
    std::string virtualEnvironment; // of Python; empty: none
};

// `packages`: folders below site-packages/nvidia that hold the library, best first.
SearchPath searchPathFor(SearchPlaces const& places, std::initializer_list<char const*> packages);

} // namespace tw::cuda
