// SPDX-License-Identifier: Apache-2.0
#include "output_file.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>

#include <fcntl.h>
#include <fmt/core.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.h"

namespace tw::trtexec {

namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40; // what Linux follows

[[noreturn]] void fail(std::string const& path, int reason)
{
    throw Failure("cannot write '" + path + "': " + std::strerror(reason));
}

// Links of /proc/<process>/fd name what a descriptor is open on; their text need not be a path.
bool namesDescriptor(fs::path const& link)
{
    std::error_code ignored;
    std::string const folder = fs::canonical(link.parent_path(), ignored).string();
    return folder.starts_with("/proc/") && folder.ends_with("/fd");
}

// 0, or errno.
int writeAll(int fd, void const* data, size_t sizeBytes)
{
    char const* next = static_cast<char const*>(data);
    for (size_t left = sizeBytes; left > 0;) {
        ssize_t const n = write(fd, next, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        if (n == 0)
            return ENOSPC;
        next += n;
        left -= static_cast<size_t>(n);
    }
    return 0;
}

int writeAndClose(int fd, void const* data, size_t sizeBytes)
{
    int const reason = writeAll(fd, data, sizeBytes);
    return close(fd) != 0 && reason == 0 ? errno : reason;
}

// A pipe whose reader has gone gives an error here, not a signal that ends the program.
class NoPipeSignal
{
public:
    NoPipeSignal()
    {
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~NoPipeSignal()
    {
        timespec const atOnce{0, 0};
        while (sigtimedwait(&pipe_, nullptr, &atOnce) == SIGPIPE) {
        }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    NoPipeSignal(NoPipeSignal const&) = delete;
    NoPipeSignal& operator=(NoPipeSignal const&) = delete;

private:
    sigset_t pipe_, before_;
};

// 0, or errno.
int writeInPlace(std::string const& path, int flags, void const* data, size_t sizeBytes)
{
    NoPipeSignal const quiet;
    int const fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | flags);
    return fd < 0 ? errno : writeAndClose(fd, data, sizeBytes);
}

// A file of its own in the folder of `path`; its name does not grow with that of `path`, which may be as long as names
// get. Returns -1 and errno on failure.
int openTemporary(std::string const& path, std::string& temporary)
{
    std::string const folder = fs::path(path).parent_path().string();
    std::string const stem = fmt::format("{}/.trtexec{}.", folder.empty() ? "." : folder, getpid());
    for (int i = 0; i < 100; ++i) { // left over by another process of this number
        temporary = fmt::format("{}{}.tmp", stem, i);
        int const fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

// The new file gets the mode and the owner of the old one. False: it cannot.
bool keepOwner(int fd, struct stat const& old)
{
    struct stat made
    {};
    if (fstat(fd, &made) != 0)
        return false;
    if ((made.st_uid != old.st_uid || made.st_gid != old.st_gid) && fchown(fd, old.st_uid, old.st_gid) != 0)
        return false;
    return fchmod(fd, old.st_mode & 07777) == 0;
}

// 0, or errno. isPossible is false where the file can only be written in place: its folder takes no other file, its
// owner cannot be kept, or it is a mount of its own.
int replace(OutputFile const& file, void const* data, size_t sizeBytes, bool& isPossible)
{
    struct stat old
    {};
    bool const exists = file.exists && stat(file.path.c_str(), &old) == 0;
    std::string temporary;
    int const fd = openTemporary(file.path, temporary);
    if (fd < 0) {
        isPossible = !exists;
        return errno;
    }
    isPossible = !exists || keepOwner(fd, old);
    int reason = 0;
    if (isPossible)
        reason = writeAndClose(fd, data, sizeBytes);
    else
        close(fd);
    if (isPossible && reason == 0 && rename(temporary.c_str(), file.path.c_str()) != 0) {
        reason = errno;
        isPossible = !exists || reason != EBUSY;
    }
    if (!isPossible || reason != 0)
        unlink(temporary.c_str());
    return reason;
}

} // namespace

OutputFile resolveOutput(std::string const& path)
{
    OutputFile file{path, false, false};
    for (int links = 0; links <= kMaxLinks; ++links) {
        struct stat info
        {};
        if (lstat(file.path.c_str(), &info) != 0) {
            if (errno == ENOENT)
                return file; // also where the folder is missing: opening says so
            fail(path, errno);
        }
        if (S_ISDIR(info.st_mode))
            fail(path, EISDIR);
        if (S_ISREG(info.st_mode)) {
            file.exists = true;
            return file;
        }
        if (!S_ISLNK(info.st_mode) || namesDescriptor(file.path)) {
            struct stat opened
            {};
            if (stat(file.path.c_str(), &opened) != 0)
                fail(path, errno);
            if (S_ISDIR(opened.st_mode))
                fail(path, EISDIR);
            file.isInPlace = true;
            return file;
        }
        std::error_code error;
        fs::path const to = fs::read_symlink(file.path, error);
        if (error)
            fail(path, error.value());
        file.path = (fs::path(file.path).parent_path() / to).string(); // an absolute `to` stands alone
    }
    fail(path, ELOOP);
}

void writeFile(std::string const& path, void const* data, size_t sizeBytes)
{
    OutputFile const file = resolveOutput(path);
    int reason = 0;
    if (file.isInPlace) {
        // What else the process writes to its descriptor stays, where that is a regular file.
        reason = writeInPlace(file.path, O_APPEND, data, sizeBytes);
    } else if (file.exists && access(file.path.c_str(), W_OK) != 0) {
        reason = errno;
    } else {
        bool isPossible = true;
        reason = replace(file, data, sizeBytes, isPossible);
        if (!isPossible)
            reason = writeInPlace(file.path, O_TRUNC, data, sizeBytes);
    }
    if (reason != 0)
        fail(path, reason);
}

void checkWritable(std::string const& path)
{
    OutputFile const file = resolveOutput(path);
    if (file.isInPlace || file.exists) {
        if (access(file.path.c_str(), W_OK) != 0)
            fail(path, errno);
        return;
    }
    std::string temporary;
    int const fd = openTemporary(file.path, temporary);
    if (fd < 0)
        fail(path, errno);
    close(fd);
    unlink(temporary.c_str());
}

} // namespace tw::trtexec
