// SPDX-License-Identifier: Apache-2.0
// Whole files that are read, and locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tw::trtexec {

// Throws Failure when the file cannot be read or is larger than `limitBytes`.
std::vector<std::byte> readFile(std::string const& path, uint64_t limitBytes = uint64_t{1} << 40);

// Holds an exclusive lock on the file that `path` leads to while it lives, by another one beside it, "<file>.lock"
// (created when missing); waits for other holders. A device or a pipe is not locked.
class FileLock
{
public:
    explicit FileLock(std::string const& path);
    ~FileLock();
    FileLock(FileLock const&) = delete;
    FileLock& operator=(FileLock const&) = delete;

private:
    int fd_ = -1;
};

// A folder of its own in the place for temporary files; goes with all that is in it.
class TemporaryFolder
{
public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(TemporaryFolder const&) = delete;
    TemporaryFolder& operator=(TemporaryFolder const&) = delete;
    std::string const& path() const { return path_; }

private:
    std::string path_;
};

// A file mapped read-only, for plans that are too large to hold twice.
class MappedFile
{
public:
    explicit MappedFile(std::string const& path);
    ~MappedFile();
    MappedFile(MappedFile const&) = delete;
    MappedFile& operator=(MappedFile const&) = delete;

    void const* data() const { return data_; }
    size_t size() const { return size_; }

private:
    void* data_ = nullptr;
    size_t size_ = 0;
};

} // namespace tw::trtexec
