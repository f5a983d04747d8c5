// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/search_path.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <dirent.h>
#include <unistd.h>

namespace tw::cuda {

namespace {

// lib/python3.11 and the like of an environment, the newest first.
std::vector<std::string> pythonsOf(std::string const& prefix)
{
    std::vector<std::string> list;
    std::string const lib = prefix + "/lib";
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
    std::set<std::string> seen;
    for (std::string const& prefix : places.prefixes) {
        if (prefix.empty() || !seen.insert(prefix).second)
            continue;
        path.after.push_back(prefix + "/lib"); // Conda's packages are no wheels
        for (std::string const& python : pythonsOf(prefix))
            for (char const* name : {"/site-packages", "/dist-packages"}) // Debian's name comes second
                if (access((python + name).c_str(), R_OK) == 0)
                    addPackages(python + name);
    }
    return path;
}

std::vector<std::string> pythonPrefixes(std::string const& file, std::string const& command, std::string const& path)
{
    std::vector<std::string> list;
    // PREFIX/bin/python3.11 -> PREFIX
    auto add = [&](std::string const& program) {
        size_t const name = program.rfind('/');
        if (name == std::string::npos || name == 0 || !std::string_view(program).substr(name + 1).starts_with("python"))
            return false;
        size_t const folder = program.rfind('/', name - 1);
        if (folder == std::string::npos || program.substr(folder, name - folder) != "/bin")
            return false;
        list.push_back(program.substr(0, folder));
        if (list.back() == "/usr")
            list.emplace_back("/usr/local"); // where Debian's pip puts packages for all users
        return true;
    };
    if (!std::string_view(file).substr(file.rfind('/') + 1).starts_with("python"))
        return list;
    if (command.find('/') != std::string::npos) {
        add(command);
    } else {
        for (size_t at = 0; at < path.size();) {
            size_t const end = std::min(path.find(':', at), path.size());
            std::string const program = path.substr(at, end - at) + "/" + command;
            if (access(program.c_str(), X_OK) == 0 && add(program))
                break;
            at = end + 1;
        }
    }
    add(file);
    return list;
}

} // namespace tw::cuda
