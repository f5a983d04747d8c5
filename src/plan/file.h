// SPDX-License-Identifier: Apache-2.0
// The container of a plan: header and section table, little endian. docs/formats/plan.md describes it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/blob.h"
#include "base/result.h"
#include "base/workers.h"

namespace tw::plan {

inline constexpr char kMagic[8] = {'T', 'W', 'P', 'L', 'A', 'N', '\r', '\n'};
inline constexpr uint16_t kMajor = 1;
inline constexpr uint16_t kMinor = 10;
inline constexpr uint32_t kLibraryVersion[4] = {8, 5, 3, 1}; // what 8.5 calls major.minor.patch.build
inline constexpr uint64_t kAlignment = 256;                  // of every section
inline constexpr uint32_t kMaxSections = 64;

enum class SectionKind : uint32_t
{
    kMeta = 1,
    kGraph = 2,
    kWeights = 3,
    kTarget = 4,  // one for each target
    kRecipes = 5, // since 1.7: of refittable engines
};

struct FileHeader
{
    char magic[8];
    uint16_t major, minor;
    uint32_t library[4];
    uint32_t sectionCount;
    uint64_t fileBytes;
    uint64_t hash; // fileHash()
};
static_assert(sizeof(FileHeader) == 48);

struct SectionEntry
{
    uint32_t kind;
    uint32_t reserved;
    uint64_t offset; // from the file's start
    uint64_t sizeBytes;
};
static_assert(sizeof(SectionEntry) == 24);

struct Section
{
    SectionKind kind;
    void const* data = nullptr;
    uint64_t sizeBytes = 0;
};

// What follows the header, in pieces of 1 MiB that workers share.
inline constexpr size_t kPieceBytes = size_t(1) << 20;
struct PieceAt
{
    size_t offset, sizeBytes; // in the file
};
std::vector<PieceAt> piecesOf(size_t fileBytes);
// Each piece once. Tells `pages` what has been read.
void readPieces(char const* file, std::vector<PieceAt> const& pieces, PageKeeper const* pages, Workers& workers,
                FunctionRef<void(size_t piece)> read);

// Of a whole file, its hash field left out: XXH3 (64 bits) of the header as far as that field and of the pieces' XXH3,
// in order. Minors before 6: old_hash.h. `sizeBytes` is at least the header's.
uint64_t fileHash(void const* bytes, size_t sizeBytes, uint16_t minor, PageKeeper const* pages = nullptr,
                  Workers& workers = serialWorkers());
// Sections in the order given. `fill` writes those without data where they shall lie; what it leaves is zero.
std::string packFile(std::vector<Section> const& sections,
                     std::function<void(Section const&, char* to)> const& fill = nullptr);
// Checks magic, versions, sizes, offsets and hash; the sections point into `bytes`.
Result<std::vector<Section>> unpackFile(void const* bytes, size_t sizeBytes, bool strictVersion,
                                        PageKeeper const* pages = nullptr, Workers& workers = serialWorkers());
// Of a file whose hash has not been compared yet: for what may turn out wrong.
Result<std::vector<Section>> listSections(void const* bytes, size_t sizeBytes);

} // namespace tw::plan
