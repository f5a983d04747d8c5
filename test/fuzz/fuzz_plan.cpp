// SPDX-License-Identifier: Apache-2.0
// Plan reader from untrusted bytes: what is read can be written, stays the same, and is loaded and run or refused. The
// mutator changes bytes inside the sections and sets the hash right, so that the checks behind it are reached.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "plan/file.h"
#include "plan/plan.h"
#include "runtime/engine.h"
#include "support/run_small.h"

extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t maxSize);

using namespace tw;

extern "C" int LLVMFuzzerTestOneInput(uint8_t const* data, size_t size)
{
    auto contents = plan::read(data, size);
    if (!contents.ok()) {
        if (contents.error().message.empty())
            std::abort();
        return 0;
    }
    auto bytes = plan::write(*contents);
    if (!bytes.ok())
        std::abort();
    auto again = plan::read(bytes->data(), bytes->size());
    if (!again.ok())
        std::abort();
    auto same = plan::write(*again);
    if (!same.ok() || *same != *bytes)
        std::abort();
    // As the runtime does it: weights in panels are used where they lie.
    auto const held = std::make_shared<Tensor>(DataType::kInt8, Extents{int64_t(size)});
    std::memcpy(held->data(), data, size);
    plan::ReadOptions options;
    options.owner = held;
    options.keepPanels = true;
    auto kept = plan::read(held->data(), size, options);
    if (!kept.ok())
        std::abort();
    for (plan::Contents* c : {&*again, &*kept})
        if (auto engine = runtime::Engine::load(std::move(*c), runtime::LoadOptions{{}, "fuzz", nullptr});
            engine.ok()) {
            test::runSmall(*engine);
            if (test::refitSmall(**engine))
                test::runSmall(*engine);
        }
    return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t maxSize, unsigned seed)
{
    std::mt19937 random(seed);
    plan::FileHeader h{};
    size_t const first = sizeof h + sizeof(plan::SectionEntry);
    if (size < first || random() % 32 == 0) {
        size = LLVMFuzzerMutate(data, size, maxSize);
        if (size < sizeof h)
            return size;
    }
    std::memcpy(&h, data, sizeof h);
    std::memcpy(h.magic, plan::kMagic, sizeof h.magic);
    h.major = plan::kMajor;
    h.minor = plan::kMinor;
    h.fileBytes = size;
    h.sectionCount = std::min<uint32_t>(h.sectionCount, plan::kMaxSections);
    // A section in place (its length stays, so that the others keep their offsets), now and then the table.
    uint32_t const which = h.sectionCount ? uint32_t(random()) % h.sectionCount : 0;
    size_t const at = sizeof h + which * sizeof(plan::SectionEntry);
    if (h.sectionCount > 0 && at + sizeof(plan::SectionEntry) <= size) {
        plan::SectionEntry e;
        std::memcpy(&e, data + at, sizeof e);
        bool const inside = e.offset < size && e.sizeBytes <= size - e.offset && e.sizeBytes > 0;
        if (inside && random() % 16 != 0) {
            size_t const part = std::min<size_t>(e.sizeBytes, 1 + random() % 64), skip = random() % e.sizeBytes;
            size_t const n = std::min<size_t>(part, e.sizeBytes - skip);
            LLVMFuzzerMutate(data + e.offset + skip, n, n);
        } else {
            LLVMFuzzerMutate(data + at, sizeof e, sizeof e);
        }
    }
    std::memcpy(data, &h, sizeof h);
    h.hash = plan::fileHash(data, size, h.minor);
    std::memcpy(data, &h, sizeof h);
    return size;
}
