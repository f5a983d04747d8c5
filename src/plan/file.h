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
inline constexpr uint16_t kMinor = 5;
inline constexpr uint32_t kLibraryVersion[4] = {8, 5, 3, 1}; // what 8.5 calls major.minor.patch.build
inline constexpr uint64_t kAlignment = 256;                  // of every section
inline constexpr uint32_t kMaxSections = 64;

enum class SectionKind : uint32_t
{
    kMeta = 1,
    kGraph = 2,
    kWeights = 3,
    kTarget = 4, // one for each target
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

// Of a whole file, its hash field left out. `sizeBytes` is at least the header's. Tells `pages` what it has read.
//   minor 0: one hash over all. From minor 1 on: the bytes behind the header in pieces of 1 MiB, which workers share; a
//   piece has lanes that do not depend on each other: 4, each of every 4th word, or, from minor 3 on, 8, each of every
//   8th pair of words. The lanes' values are hashed in order, then what is left behind the last whole round of lanes.
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
