// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/search_path.h"

#include <algorithm>
#include <string_view>

#include <dirent.h>

namespace tw::cuda {

namespace {

// lib/python3.11 and the like of a virtual environment, the newest first.
std::vector<std::string> pythonsOf(std::string const& virtualEnvironment)
{
    std::vector<std::string> list;
    std::string const lib = virtualEnvironment + "/lib";
    if (DIR* folder = opendir(lib.c_str())) {
        while (dirent const* entry = readdir(folder))
            if (std::string_view(entry->d_name).starts_with("python"))
                list.push_back(lib + "/" + entry->d_name);
        closedir(folder);
    }
    auto isNewer = [](std::string const& a, std::string const& b) {
        return a.size() != b.size() ? a.size() > b.size() : a > b;
    };
    std::sort(list.begin(), list.end(), isNewer);
    return list;
}

} // namespace

SearchPath searchPathFor(SearchPlaces const& places, std::initializer_list<char const*> packages)
{
    SearchPath path;
    if (!places.given.empty())
        path.given = {places.given};
    if (!places.own.empty())
        path.before = {places.own};
    path.after = {"/usr/local/cuda/lib64", "/usr/local/cuda/lib"};
    auto addPackages = [&](std::string const& folder) {
        for (char const* package : packages)
            path.after.push_back(folder + "/nvidia/" + package);
    };
    // We may lie in a wheel ourselves.
    for (char const* name : {"/site-packages", "/dist-packages"})
        if (size_t const at = places.own.find(name); at != std::string::npos)
            addPackages(places.own.substr(0, at) + name);
    if (!places.virtualEnvironment.empty())
        for (std::string const& python : pythonsOf(places.virtualEnvironment))
            addPackages(python + "/site-packages");
    return path;
}

} // namespace tw::cuda
