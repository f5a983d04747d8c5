// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/kernel_cache.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "base/byte_stream.h"
#include "device/cuda/compiler.h"

namespace tw::cuda {

namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'T', 'W', 'K', 'E', 'R', 'N', 'E', 'L'};
constexpr uint32_t kFormat = 1;
constexpr char const* kEnding = ".kernel";
constexpr uint32_t kMostKernels = 4096; // of one source
constexpr int64_t kMostFileBytes = 64 << 20;
constexpr auto kUsedLately = std::chrono::hours(24); // a file that is used is as young as this

// Header: magic, format, key, hash of the rest. The rest: kernels (name, registers, spilled and shared bytes), then the code.
struct Header
{
    char magic[8];
    uint32_t format, zero;
    uint64_t low, high, hash;
};

} // namespace

std::string writeKernelFile(Compiled const& compiled, Hash128 const& key)
{
    ByteWriter to;
    to.put(uint32_t(compiled.kernels.size()));
    for (KernelResources const& k : compiled.kernels) {
        to.putText(k.kernel);
        for (int const n : {k.registers, k.spillBytes, k.sharedBytes})
            to.put(n);
    }
    to.putText(compiled.cubin);
    Header h{{}, kFormat, 0, key.low, key.high, hashText(to.out)};
    std::memcpy(h.magic, kMagic, sizeof kMagic);
    return std::string(reinterpret_cast<char const*>(&h), sizeof h) + to.out;
}

Result<Compiled> readKernelFile(std::string_view bytes, Hash128 const& key)
{
    Header h{};
    if (bytes.size() < sizeof h)
        return invalidArgument("its header is cut off");
    std::memcpy(&h, bytes.data(), sizeof h);
    bytes.remove_prefix(sizeof h);
    if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0 || h.format != kFormat)
        return invalidArgument("it is no file of kernels of format {}", kFormat);
    if (h.low != key.low || h.high != key.high)
        return invalidArgument("it holds another source's kernels");
    if (h.hash != hashText(bytes))
        return invalidArgument("the hash does not fit the contents");
    ByteReader in{bytes.data(), bytes.data() + bytes.size()};
    Compiled out;
    auto const count = in.get<uint32_t>();
    for (uint32_t i = 0; in.ok && i < std::min(count, kMostKernels); ++i) {
        KernelResources k;
        k.kernel = in.getText(bytes.size());
        for (int* const n : {&k.registers, &k.spillBytes, &k.sharedBytes})
            *n = in.get<int32_t>();
        out.kernels.push_back(std::move(k));
    }
    out.cubin = in.getText(bytes.size());
    if (count > kMostKernels || !in.isAtEnd() || out.cubin.empty())
        return invalidArgument("its contents are none");
    return out;
}

KernelCache::KernelCache(std::string folder, int64_t mostBytes) : folder_(std::move(folder)), mostBytes_(mostBytes) {}

std::string KernelCache::fileOf(Hash128 const& key) const
{
    return fmt::format("{}/{:016x}{:016x}{}", folder_, key.high, key.low, kEnding);
}

std::optional<Compiled> KernelCache::find(Hash128 const& key)
{
    if (folder_.empty() || !isOurs())
        return {};
    std::string const file = fileOf(key);
    std::error_code failed;
    auto const size = fs::file_size(file, failed);
    if (failed || int64_t(size) > kMostFileBytes)
        return {};
    std::ifstream in(file, std::ios::binary);
    std::string const bytes((std::istreambuf_iterator<char>(in)), {});
    auto read = readKernelFile(bytes, key);
    if (!read.ok()) {
        complain(fmt::format("{}: {}", file, read.error().message));
        fs::remove(file, failed);
        return {};
    }
    if (auto const now = fs::file_time_type::clock::now(); fs::last_write_time(file, failed) + kUsedLately < now)
        fs::last_write_time(file, now, failed);
    ++found_;
    return std::move(*read);
}

void KernelCache::keep(Hash128 const& key, Compiled const& compiled)
{
    {
        std::lock_guard lock(mutex_);
        if (folder_.empty() || isBroken_)
            return;
    }
    auto broken = [&](std::string const& what) {
        complain(what);
        std::lock_guard lock(mutex_);
        isBroken_ = true;
    };
    std::error_code failed;
    if (!fs::exists(folder_, failed)) {
        fs::create_directories(folder_, failed);
        fs::permissions(folder_, fs::perms::owner_all, failed);
        std::lock_guard lock(mutex_);
        isOurs_.reset();
    }
    if (!isOurs())
        return;
    tidy();
    // Under a name of its own first: whoever reads sees the whole file or none.
    static std::atomic<int> written = 0;
    std::string const file = fileOf(key), fresh = fmt::format("{}.{}.{}", file, ::getpid(), ++written);
    std::ofstream out(fresh, std::ios::binary);
    out << writeKernelFile(compiled, key);
    out.close();
    if (!out.good()) {
        fs::remove(fresh, failed);
        return broken(folder_ + " cannot be written to");
    }
    fs::rename(fresh, file, failed);
    if (failed) {
        broken(fmt::format("{} cannot be renamed: {}", fresh, failed.message()));
        fs::remove(fresh, failed);
    }
}

bool KernelCache::isOurs()
{
    std::lock_guard lock(mutex_);
    if (isOurs_)
        return *isOurs_;
    struct stat is = {};
    if (::stat(folder_.c_str(), &is) != 0)
        return false; // it may come
    bool const isFolder = S_ISDIR(is.st_mode);
    isOurs_ = isFolder && is.st_uid == ::geteuid() && (is.st_mode & (S_IWGRP | S_IWOTH)) == 0;
    if (!*isOurs_)
        note(folder_ + (isFolder ? " may be written to by others" : " is no folder"));
    return *isOurs_;
}

void KernelCache::tidy()
{
    {
        std::lock_guard lock(mutex_);
        if (isTidy_)
            return;
        isTidy_ = true;
    }
    struct File
    {
        fs::file_time_type time;
        int64_t bytes;
        fs::path path;
    };
    std::vector<File> files;
    int64_t sum = 0;
    std::error_code failed;
    for (fs::directory_iterator at(folder_, failed), end; !failed && at != end; at.increment(failed)) {
        if (at->path().string().find(kEnding) == std::string::npos)
            continue;
        std::error_code gone; // another process may be at it
        File const f{at->last_write_time(gone), int64_t(at->file_size(gone)), at->path()};
        if (gone)
            continue;
        sum += f.bytes;
        files.push_back(f);
    }
    if (sum <= mostBytes_)
        return;
    std::ranges::sort(files, {}, &File::time);
    for (File const& f : files) {
        if (sum <= mostBytes_ / 2)
            return;
        fs::remove(f.path, failed);
        sum -= f.bytes;
    }
}

void KernelCache::complain(std::string const& what)
{
    std::lock_guard lock(mutex_);
    note(what);
}

void KernelCache::note(std::string const& what)
{
    if (!hasComplained_)
        complaint_ = what;
    hasComplained_ = true;
}

std::string KernelCache::takeComplaint()
{
    std::lock_guard lock(mutex_);
    return std::exchange(complaint_, {});
}

} // namespace tw::cuda
