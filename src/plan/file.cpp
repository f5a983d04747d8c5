// SPDX-License-Identifier: Apache-2.0
#include "plan/file.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/hash.h"
#include "device/large_pages.h"
#include "plan/old.h"

namespace tw::plan {

namespace {

uint64_t aligned(uint64_t v)
{
    return (v + kAlignment - 1) / kAlignment * kAlignment;
}

std::string text(uint32_t const* v)
{
    return fmt::format("{}.{}.{}.{}", v[0], v[1], v[2], v[3]);
}

Error damaged(std::string const& what)
{
    return failedInitialization("the plan is damaged or no plan: " + what);
}

} // namespace

std::vector<PieceAt> piecesOf(size_t sizeBytes)
{
    std::vector<PieceAt> pieces;
    for (size_t at = sizeof(FileHeader); at < sizeBytes; at += kPieceBytes)
        pieces.push_back({at, std::min(sizeBytes - at, kPieceBytes)});
    return pieces;
}

void readPieces(char const* file, std::vector<PieceAt> const& pieces, PageKeeper const* pages, Workers& workers,
                FunctionRef<void(size_t piece)> read)
{
    size_t const fileBytes = pieces.empty() ? sizeof(FileHeader) : pieces.back().offset + pieces.back().sizeBytes;
    // Two pieces at a time: what large pages of the file have mapped goes back as a whole.
    workers.run(int64_t(pieces.size() + 1) / 2, [&](int64_t pair, int) {
        size_t const first = size_t(pair) * 2, end = std::min(first + 2, pieces.size());
        for (size_t i = first; i < end; ++i)
            read(i);
        // From whole page to whole page of the file: pieces begin after its header.
        if (pages)
            pages->done(file + first * kPieceBytes, std::min(end * kPieceBytes, fileBytes) - first * kPieceBytes);
    });
}

uint64_t fileHash(void const* bytes, size_t sizeBytes, uint16_t minor, PageKeeper const* pages, Workers& workers)
{
    if (minor < 6)
        return oldFileHash(bytes, sizeBytes, minor, pages, workers);
    auto const* p = static_cast<char const*>(bytes);
    std::vector<PieceAt> const pieces = piecesOf(sizeBytes);
    std::vector<uint64_t> hashes(pieces.size());
    readPieces(p, pieces, pages, workers,
               [&](size_t i) { hashes[i] = hashBytes(p + pieces[i].offset, pieces[i].sizeBytes); });
    Hasher h;
    h.bytes(p, offsetof(FileHeader, hash));
    h.bytes(hashes.data(), hashes.size() * sizeof(uint64_t));
    return h.value();
}

std::string packFile(std::vector<Section> const& sections, std::function<void(Section const&, char* to)> const& fill)
{
    uint64_t at = aligned(sizeof(FileHeader) + sections.size() * sizeof(SectionEntry));
    std::vector<SectionEntry> table;
    for (Section const& s : sections) {
        table.push_back(SectionEntry{static_cast<uint32_t>(s.kind), 0, at, s.sizeBytes});
        at = aligned(at + s.sizeBytes);
    }
    std::string out;
    out.reserve(size_t(at));
    device::preferLargePages(out.data(), size_t(at));
    out.resize(size_t(at));
    FileHeader h{};
    std::memcpy(h.magic, kMagic, sizeof kMagic);
    h.major = kMajor;
    h.minor = kMinor;
    std::memcpy(h.library, kLibraryVersion, sizeof h.library);
    h.sectionCount = uint32_t(sections.size());
    h.fileBytes = at;
    std::memcpy(out.data() + sizeof h, table.data(), table.size() * sizeof(SectionEntry));
    for (size_t i = 0; i < sections.size(); ++i)
        if (!sections[i].data && fill)
            fill(sections[i], out.data() + table[i].offset);
        else if (sections[i].sizeBytes > 0)
            std::memcpy(out.data() + table[i].offset, sections[i].data, size_t(sections[i].sizeBytes));
    std::memcpy(out.data(), &h, sizeof h);
    h.hash = fileHash(out.data(), out.size(), h.minor);
    std::memcpy(out.data(), &h, sizeof h);
    return out;
}

namespace {

uint64_t tableEnd(FileHeader const& h)
{
    return sizeof h + uint64_t(h.sectionCount) * sizeof(SectionEntry);
}

// What is read before the hash is known to be right; the section table fits.
Result<FileHeader> headerOf(void const* bytes, size_t sizeBytes, bool strictVersion)
{
    FileHeader h;
    if (!bytes)
        return damaged("it is a null pointer");
    if (sizeBytes < sizeof h)
        return damaged(fmt::format("it has {} bytes, fewer than its header", sizeBytes));
    std::memcpy(&h, bytes, sizeof h);
    if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0)
        return damaged("it does not begin with a plan's magic bytes");
    if (h.major != kMajor || h.minor > kMinor)
        return failedInitialization("the plan is not compatible with this version of TensorRT, expecting format "
                                    "version {}.{} got {}.{}, please rebuild",
                                    kMajor, kMinor, h.major, h.minor);
    if (strictVersion && std::memcmp(h.library, kLibraryVersion, sizeof h.library) != 0)
        return failedInitialization(
            "the plan is not compatible with this version of TensorRT, expecting library version " +
            text(kLibraryVersion) + " got " + text(h.library) + ", please rebuild");
    if (h.fileBytes > sizeBytes)
        return damaged(fmt::format("it is truncated: {} of {} bytes", sizeBytes, h.fileBytes));
    if (h.sectionCount > kMaxSections)
        return damaged(fmt::format("it lists {} sections", h.sectionCount));
    if (h.fileBytes < tableEnd(h))
        return damaged("its section table does not fit");
    return h;
}

Result<std::vector<Section>> sectionsOf(FileHeader const& h, char const* p)
{
    std::vector<Section> sections;
    for (uint32_t i = 0; i < h.sectionCount; ++i) {
        SectionEntry e;
        std::memcpy(&e, p + sizeof h + i * sizeof e, sizeof e);
        if (e.offset < tableEnd(h) || e.offset > h.fileBytes || e.sizeBytes > h.fileBytes - e.offset ||
            e.offset % kAlignment != 0)
            return damaged(fmt::format("section {} lies outside the file", i));
        bool const oneOf = e.kind == static_cast<uint32_t>(SectionKind::kRecipes) ||
                           (e.kind >= static_cast<uint32_t>(SectionKind::kMeta) &&
                            e.kind < static_cast<uint32_t>(SectionKind::kTarget));
        if ((!oneOf && e.kind != static_cast<uint32_t>(SectionKind::kTarget)) || e.reserved != 0)
            return damaged(fmt::format("section {} is of the unknown kind {}", i, e.kind));
        for (Section const& s : sections)
            if (oneOf && static_cast<uint32_t>(s.kind) == e.kind)
                return damaged(fmt::format("section {} repeats kind {}", i, e.kind));
        sections.push_back(Section{static_cast<SectionKind>(e.kind), p + e.offset, e.sizeBytes});
    }
    return sections;
}

} // namespace

Result<std::vector<Section>> listSections(void const* bytes, size_t sizeBytes)
{
    TW_ASSIGN(FileHeader const h, headerOf(bytes, sizeBytes, false));
    return sectionsOf(h, static_cast<char const*>(bytes));
}

Result<std::vector<Section>> unpackFile(void const* bytes, size_t sizeBytes, bool strictVersion,
                                        PageKeeper const* pages, Workers& workers)
{
    TW_ASSIGN(FileHeader const h, headerOf(bytes, sizeBytes, strictVersion));
    if (fileHash(bytes, size_t(h.fileBytes), h.minor, pages, workers) != h.hash)
        return damaged("its contents do not match their hash");
    return sectionsOf(h, static_cast<char const*>(bytes));
}

} // namespace tw::plan
