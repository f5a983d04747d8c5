// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/library.h"

#include <utility>

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "device/cuda/driver.h"

namespace tw::cuda {

namespace {

// The file that the loader has found.
std::string pathOf(void* handle)
{
    link_map* map = nullptr;
    return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : "";
}

// A file in memory with what `path` holds; -1 where that fails.
int copyInMemory(std::string const& path)
{
    int const from = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    int to = from < 0 ? -1 : memfd_create("library", MFD_CLOEXEC);
    off_t const size = from < 0 ? 0 : lseek(from, 0, SEEK_END);
    for (off_t at = 0; to >= 0 && at < size;)
        if (sendfile(to, from, &at, size_t(size - at)) <= 0) {
            close(to);
            to = -1;
        }
    if (from >= 0)
        close(from);
    return to;
}

} // namespace

Library::~Library()
{
    dlclose(handle_);
    if (memory_ >= 0)
        close(memory_);
}

std::unique_ptr<Library> Library::copy() const
{
    int const memory = copyInMemory(pathOf(handle_));
    if (memory < 0)
        return nullptr;
    std::string const name = "/proc/self/fd/" + std::to_string(memory);
    if (void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))
        return std::unique_ptr<Library>(new Library(handle, file_, memory));
    close(memory);
    return nullptr;
}

Result<std::unique_ptr<Library>> Library::open(char const* what, std::initializer_list<char const*> names,
                                               SearchPath const& path)
{
    std::string tried;
    auto attempt = [&](std::string const& file) -> void* {
        if (file.find('/') != std::string::npos && access(file.c_str(), R_OK) != 0)
            return nullptr; // a folder without it is no news
        void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!handle) {
            char const* why = dlerror();
            tried += "\n  " + file + ": " + (why ? why : "it cannot be opened");
        }
        return handle;
    };
    auto attemptIn = [&](std::vector<std::string> const& folders) -> std::unique_ptr<Library> {
        for (std::string const& folder : folders)
            for (char const* name : names)
                if (void* handle = attempt(folder + "/" + name))
                    return std::unique_ptr<Library>(new Library(handle, folder + "/" + name));
        return nullptr;
    };
    if (!path.given.empty()) {
        if (auto library = attemptIn(path.given))
            return library;
        for (std::string const& file : path.given)
            if (void* handle = attempt(file))
                return std::unique_ptr<Library>(new Library(handle, file));
        return failedInitialization(std::string(what) + " is not at " + path.given.front() +
                                    ", which the environment names" + tried);
    }
    if (auto library = attemptIn(path.before))
        return library;
    for (char const* name : names)
        if (void* handle = attempt(name))
            return std::unique_ptr<Library>(new Library(handle, name));
    if (auto library = attemptIn(path.after))
        return library;
    return failedInitialization(std::string(what) + " (" + *names.begin() + ") was not found:" + tried);
}

void Library::keepOpen() const
{
    (void)dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
}

void* Library::symbol(char const* name) const
{
    return dlsym(handle_, name);
}

Result<std::unique_ptr<Library>> openLibraryOfDriver(char const* what, std::string const& name, SearchPath const& path)
{
    std::string first = name + ".13", second = name + ".12";
    if (auto const driver = Driver::open(); driver.ok() && (*driver)->version() / 1000 == 12)
        std::swap(first, second);
    return Library::open(what, {first.c_str(), second.c_str(), name.c_str()}, path);
}

} // namespace tw::cuda
