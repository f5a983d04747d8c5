// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/library.h"

namespace tw::cuda {

// One of CUDA's libraries of version 13 or 12, "libnvrtc.so": that of this process's driver first, for code that a
// newer one brings or makes need not load there. Without a driver 13.
Result<std::unique_ptr<Library>> openLibraryOfDriver(char const* what, std::string const& name, SearchPath const& path);

} // namespace tw::cuda
