// SPDX-License-Identifier: Apache-2.0
#include "files.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.h"
#include "output_file.h"

namespace tw::trtexec {

namespace {

[[noreturn]] void failErrno(std::string const& what, std::string const& path)
{
    throw Failure("cannot " + what + " '" + path + "': " + std::strerror(errno));
}

struct Descriptor
{
    explicit Descriptor(int number) : fd(number) {}
    ~Descriptor()
    {
        if (fd >= 0)
            close(fd);
    }
    Descriptor(Descriptor const&) = delete;
    Descriptor& operator=(Descriptor const&) = delete;
    int fd;
};

// Opens a regular file and gives its size. A folder or a pipe is refused: their sizes mean nothing.
int openRegular(std::string const& path, uint64_t& sizeBytes)
{
    // Non-blocking, so that a named pipe without a writer is refused too, not waited for.
    int const fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        failErrno("open", path);
    struct stat info
    {};
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(fd);
        throw Failure("cannot read '" + path + "': not a regular file");
    }
    sizeBytes = static_cast<uint64_t>(info.st_size);
    return fd;
}

} // namespace

std::vector<std::byte> readFile(std::string const& path, uint64_t limitBytes)
{
    uint64_t size = 0;
    Descriptor const file(openRegular(path, size));
    if (size > limitBytes)
        throw Failure(fmt::format("cannot read '{}': {} bytes, the limit is {}", path, size, limitBytes));
    std::vector<std::byte> bytes(size);
    size_t done = 0;
    while (done < bytes.size()) {
        ssize_t const n = read(file.fd, bytes.data() + done, bytes.size() - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            failErrno("read", path);
        if (n == 0)
            break; // the file shrank since fstat
        done += static_cast<size_t>(n);
    }
    bytes.resize(done);
    return bytes;
}

FileLock::FileLock(std::string const& path)
{
    OutputFile const file = resolveOutput(path);
    if (file.isInPlace)
        return; // a device or a pipe: there is nothing to merge with
    std::string const lock = file.path + ".lock";
    fd_ = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0)
        failErrno("open lock file", lock);
    while (flock(fd_, LOCK_EX) != 0)
        if (errno != EINTR) {
            close(fd_);
            failErrno("lock", lock);
        }
}

FileLock::~FileLock()
{
    if (fd_ >= 0)
        close(fd_);
}

MappedFile::MappedFile(std::string const& path)
{
    uint64_t size = 0;
    Descriptor const file(openRegular(path, size));
    if (size == 0)
        throw Failure("'" + path + "' is empty");
    size_ = size;
    data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
    if (data_ == MAP_FAILED)
        failErrno("map", path);
}

MappedFile::~MappedFile()
{
    munmap(data_, size_);
}

TemporaryFolder::TemporaryFolder()
{
    std::string const place = std::filesystem::temp_directory_path().string();
    path_ = place + "/trtexec-XXXXXX";
    if (!mkdtemp(path_.data()))
        throw Failure("no folder can be made in '" + place + "': " + std::strerror(errno));
}

TemporaryFolder::~TemporaryFolder()
{
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

} // namespace tw::trtexec
