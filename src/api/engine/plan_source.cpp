// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/engine/engine.h"
#include "device/large_pages.h"
#include "device/memory_source.h"
#include "plan/file.h"

namespace tw::api {

namespace {

constexpr size_t kAlignment = plan::kAlignment;

class CopiedPlan final : public PlanSource
{
public:
    static Result<std::shared_ptr<PlanSource>> make(void const* bytes, size_t sizeBytes)
    {
        if (sizeBytes > SIZE_MAX - kAlignment)
            return invalidArgument("the plan's size {} is not possible", sizeBytes);
        size_t const rounded = (std::max<size_t>(sizeBytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
        auto plan = std::make_shared<CopiedPlan>();
        auto const source = device::SourceScope::current();
        void* const data = source ? source->allocate(rounded, kAlignment) : std::aligned_alloc(kAlignment, rounded);
        if (!data)
            return failedAllocation(
                "{}{} bytes", source ? "the IGpuAllocator gave no memory for a plan of " : "no memory for a plan of ",
                sizeBytes);
        plan->data_ = std::shared_ptr<std::byte>(static_cast<std::byte*>(data), [source](std::byte* p) {
            if (source)
                source->free(p);
            else
                std::free(p);
        });
        if (!source)
            device::preferLargePages(data, rounded); // kernels read weights there
        std::memcpy(plan->data_.get(), bytes, sizeBytes);
        plan->sizeBytes_ = sizeBytes;
        return std::shared_ptr<PlanSource>(std::move(plan));
    }
    void const* data() const override { return data_.get(); }
    size_t sizeBytes() const override { return sizeBytes_; }
    void close() override {} // there is no other place to get the bytes from
    BlobPtr keep(Blob const& constant, std::shared_ptr<PlanSource const> const& self) const override
    {
        if (!holds(constant))
            return nullptr;
        return std::make_shared<Blob const>(constant.data(), constant.sizeBytes(), self);
    }
    Result<std::string> bytes() const override
    {
        return std::string(reinterpret_cast<char const*>(data_.get()), sizeBytes_);
    }

private:
    std::shared_ptr<std::byte> data_;
    size_t sizeBytes_ = 0;
};

// Tables of which a run reads a few rows; smaller constants are not worth the dependence on the file.
constexpr size_t kLargeTable = size_t(1) << 20;

// The read-only mapping of a file that a range of memory lies in.
struct FileRange
{
    std::string path;
    dev_t device = 0;
    ino_t inode = 0;
    uint64_t offset = 0; // of the range in the file
};

// Part of a file of which single rows are read. Its distance from the alignment of large pages keeps the system from
// mapping 2 MiB around each row. Null when it cannot be mapped.
BlobPtr mapRows(int fd, uint64_t offset, size_t sizeBytes, size_t page)
{
    constexpr uint64_t kLargePage = uint64_t(2) << 20;
    uint64_t const first = offset / page * page;
    size_t const mapped = size_t(offset + sizeBytes - first), reserved = mapped + 2 * kLargePage;
    void* const space = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED)
        return nullptr;
    auto const owner = std::shared_ptr<void const>(space, [=](void* p) { munmap(p, reserved); });
    uint64_t const begin = reinterpret_cast<uintptr_t>(space);
    uint64_t const wanted = (first + kLargePage / 2) % kLargePage;
    void* const to = reinterpret_cast<void*>(begin + (wanted + kLargePage - begin % kLargePage) % kLargePage);
    if (mmap(to, mapped, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, off_t(first)) == MAP_FAILED)
        return nullptr;
    (void)madvise(to, mapped, MADV_RANDOM);
    return std::make_shared<Blob const>(static_cast<std::byte const*>(to) + (offset - first), sizeBytes, owner);
}

bool findFile(void const* bytes, size_t sizeBytes, FileRange& out)
{
    auto const begin = reinterpret_cast<uintptr_t>(bytes), end = begin + sizeBytes;
    std::FILE* maps = std::fopen("/proc/self/maps", "re");
    if (!maps)
        return false;
    bool found = false;
    char line[4096 + 256];
    while (!found && std::fgets(line, sizeof line, maps)) {
        unsigned long from = 0, to = 0, offset = 0, inode = 0;
        unsigned major = 0, minor = 0;
        char rights[8] = {};
        int path = 0;
        if (std::sscanf(line, "%lx-%lx %7s %lx %x:%x %lu %n", &from, &to, rights, &offset, &major, &minor, &inode,
                        &path) < 7)
            continue;
        if (begin < from || end > to || begin >= to)
            continue;
        std::string name(line + path);
        while (!name.empty() && name.back() == '\n')
            name.pop_back();
        if (inode == 0 || rights[1] != '-' || name.empty() || name[0] != '/')
            break;
        out.path = std::move(name);
        out.inode = ino_t(inode);
        out.offset = offset + (begin - from);
        found = true;
    }
    std::fclose(maps);
    return found;
}

class MappedPlan final : public PlanSource
{
public:
    // Null when the bytes are no part of a mapped file that can be opened again.
    static std::shared_ptr<PlanSource> make(void const* bytes, size_t sizeBytes)
    {
        FileRange range;
        long const page = sysconf(_SC_PAGESIZE);
        if (sizeBytes < sizeof(plan::FileHeader) || page <= 0 || !findFile(bytes, sizeBytes, range) ||
            range.offset % uint64_t(page) != 0)
            return nullptr;
        int const fd = open(range.path.c_str(), O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return nullptr;
        auto plan = std::make_shared<MappedPlan>();
        plan->fd_ = fd;
        plan->offset_ = range.offset;
        plan->sizeBytes_ = sizeBytes;
        struct stat st;
        if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_ino != range.inode ||
            uint64_t(st.st_size) < range.offset + sizeBytes)
            return nullptr;
        void* at = mmap(nullptr, sizeBytes, PROT_READ, MAP_PRIVATE, fd, off_t(range.offset));
        if (at == MAP_FAILED)
            return nullptr;
        plan->data_ = at;
        plan->page_ = size_t(page);
        // The header holds the hash of everything: the same header is the same plan.
        if (std::memcmp(at, bytes, sizeof(plan::FileHeader)) != 0)
            return nullptr;
        std::memcpy(&plan->header_, at, sizeof plan->header_);
        return plan;
    }
    ~MappedPlan() override
    {
        close();
        if (fd_ >= 0)
            ::close(fd_);
    }
    void const* data() const override { return data_; }
    size_t sizeBytes() const override { return sizeBytes_; }
    void close() override
    {
        if (data_)
            munmap(data_, sizeBytes_);
        data_ = nullptr;
    }
    BlobPtr keep(Blob const& constant, std::shared_ptr<PlanSource const> const&) const override
    {
        if (constant.sizeBytes() < kLargeTable || !holds(constant))
            return nullptr;
        uint64_t const at =
            offset_ + uint64_t(static_cast<std::byte const*>(constant.data()) - static_cast<std::byte const*>(data_));
        return mapRows(fd_, at, constant.sizeBytes(), page_);
    }
    void done(void const* data, size_t sizeBytes) const override
    {
        auto const begin = reinterpret_cast<uintptr_t>(data), end = begin + sizeBytes;
        auto const mine = reinterpret_cast<uintptr_t>(data_);
        if (!data_ || begin < mine || end > mine + sizeBytes_)
            return;
        uintptr_t const first = begin / page_ * page_, last = (end + page_ - 1) / page_ * page_;
        if (last > first) // a page that is needed again is mapped again
            (void)madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
    }
    Result<std::string> bytes() const override
    {
        std::string out(sizeBytes_, '\0');
        size_t at = 0;
        while (at < out.size()) {
            ssize_t const n = pread(fd_, out.data() + at, out.size() - at, off_t(offset_ + at));
            if (n <= 0)
                break;
            at += size_t(n);
        }
        plan::FileHeader now{};
        if (at == out.size())
            std::memcpy(&now, out.data(), sizeof now);
        if (at != out.size() || std::memcmp(&now, &header_, sizeof now) != 0 || header_.fileBytes > out.size() ||
            plan::fileHash(out.data(), size_t(header_.fileBytes), header_.minor) != header_.hash)
            return failedExecution("the engine cannot be serialized: the file that its plan was "
                                   "mapped from has changed since; keep the plan's bytes instead");
        return out;
    }

private:
    int fd_ = -1;
    void* data_ = nullptr;
    size_t sizeBytes_ = 0, page_ = 4096;
    uint64_t offset_ = 0;
    plan::FileHeader header_{};
};

} // namespace

Result<std::shared_ptr<PlanSource>> PlanSource::of(void const* bytes, size_t sizeBytes, bool copied)
{
    if (std::shared_ptr<PlanSource> mapped = copied ? nullptr : MappedPlan::make(bytes, sizeBytes))
        return mapped;
    return CopiedPlan::make(bytes, sizeBytes);
}

} // namespace tw::api
