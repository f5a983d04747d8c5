// SPDX-License-Identifier: Apache-2.0
#include "files.h"

#include "failure.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tw::trtexec {

namespace {

[[noreturn]] void failErrno(const std::string& what, const std::string& path)
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
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int fd;
};

// Opens a regular file and gives its size. A folder or a pipe is refused: their sizes mean nothing.
int openRegular(const std::string& path, uint64_t& sizeBytes)
{
    // Non-blocking, so that a named pipe without a writer is refused too, not waited for.
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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

std::vector<std::byte> readFile(const std::string& path, uint64_t limitBytes)
{
    uint64_t size = 0;
    const Descriptor file(openRegular(path, size));
    if (size > limitBytes)
        throw Failure("cannot read '" + path + "': " + std::to_string(size) + " bytes, the limit is " +
                      std::to_string(limitBytes));
    std::vector<std::byte> bytes(size);
    size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t n = read(file.fd, bytes.data() + done, bytes.size() - done);
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

namespace {

std::string temporaryName(const std::string& path)
{
    return path + ".tmp" + std::to_string(getpid());
}

int openTemporary(const std::string& path)
{
    const int fd = open(temporaryName(path).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        failErrno("write", path);
    return fd;
}

} // namespace

void checkWritable(const std::string& path)
{
    close(openTemporary(path));
    unlink(temporaryName(path).c_str());
}

void writeFile(const std::string& path, const void* data, size_t sizeBytes)
{
    const std::string temporary = temporaryName(path);
    const int fd = openTemporary(path);
    const char* next = static_cast<const char*>(data);
    bool good = true;
    for (size_t left = sizeBytes; left > 0 && good;) {
        const ssize_t n = write(fd, next, left);
        if (n < 0 && errno == EINTR)
            continue;
        good = n > 0;
        if (good) {
            next += n;
            left -= static_cast<size_t>(n);
        }
    }
    int reason = good ? 0 : errno;
    if (close(fd) != 0 && good) {
        good = false;
        reason = errno;
    }
    if (good && rename(temporary.c_str(), path.c_str()) != 0) {
        good = false;
        reason = errno;
    }
    if (!good) {
        unlink(temporary.c_str());
        errno = reason;
        failErrno("write", path);
    }
}

FileLock::FileLock(const std::string& path)
{
    fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0)
        failErrno("open lock file", path);
    while (flock(fd_, LOCK_EX) != 0)
        if (errno != EINTR) {
            close(fd_);
            failErrno("lock", path);
        }
}

FileLock::~FileLock()
{
    close(fd_);
}

MappedFile::MappedFile(const std::string& path)
{
    uint64_t size = 0;
    const Descriptor file(openRegular(path, size));
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

} // namespace tw::trtexec
