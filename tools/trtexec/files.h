// SPDX-License-Identifier: Apache-2.0
// Whole files: read with a limit, written to a temporary name and renamed, so that a reader never sees half of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tw::trtexec {

// Throws Failure when the file cannot be read or is larger than `limitBytes`.
std::vector<std::byte> readFile(const std::string& path, uint64_t limitBytes = uint64_t{1} << 40);
// Throws Failure, and leaves nothing behind, when the bytes cannot all be written.
void writeFile(const std::string& path, const void* data, size_t sizeBytes);
inline void writeFile(const std::string& path, std::string_view text)
{
    writeFile(path, text.data(), text.size());
}

// Throws what writeFile() would throw for a folder that takes no files, before hours of work depend on it.
void checkWritable(const std::string& path);

// Holds an exclusive lock on `path` (created when missing) while it lives; waits for other holders.
class FileLock
{
public:
    explicit FileLock(const std::string& path);
    ~FileLock();
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;

private:
    int fd_ = -1;
};

// A file mapped read-only, for plans that are too large to hold twice.
class MappedFile
{
public:
    explicit MappedFile(const std::string& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    const void* data() const { return data_; }
    size_t size() const { return size_; }

private:
    void* data_ = nullptr;
    size_t size_ = 0;
};

} // namespace tw::trtexec
