// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/library_of_driver.h"

#include <utility>

#include "device/cuda/driver.h"

namespace tw::cuda {

Result<std::unique_ptr<Library>> openLibraryOfDriver(char const* what, std::string const& name, SearchPath const& path)
{
    std::string first = name + ".13", second = name + ".12";
    if (auto const driver = Driver::open(); driver.ok() && (*driver)->version() / 1000 == 12)
        std::swap(first, second);
    return Library::open(what, {first.c_str(), second.c_str(), name.c_str()}, path);
}

} // namespace tw::cuda
