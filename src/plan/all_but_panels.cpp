// SPDX-License-Identifier: Apache-2.0
#include "plan/all_but_panels.h"

#include "device/large_pages.h"
#include "plan/verified.h"

namespace tw::plan {

AllButPanels::AllButPanels(PageKeeper const& pages, std::vector<Section> const& sections) : pages_(pages)
{
    Section const *graph = find(sections, SectionKind::kGraph), *weights = find(sections, SectionKind::kWeights);
    if (!graph || !weights)
        return;
    auto const root = verified<fb::Graph>(*graph, "GRAPH");
    if (!root.ok())
        return;
    for (flatbuffers::uoffset_t i = 0; i < sizeOf((*root)->values()); ++i) {
        fb::Value const& v = *(*root)->values()->Get(i);
        bool const inside =
            v.weights_offset() <= weights->sizeBytes && v.weights_size() <= weights->sizeBytes - v.weights_offset();
        uintptr_t const begin = reinterpret_cast<uintptr_t>(weights->data) + v.weights_offset();
        if (v.panels() && inside)
            kept_.push_back({begin, begin + v.weights_size()});
    }
    std::sort(kept_.begin(), kept_.end());
    // Kernels will read them again and again: a file that is read from a disk now comes in large pages then.
    if (!kept_.empty())
        device::preferLargePages(reinterpret_cast<void const*>(kept_.front().first),
                                 kept_.back().second - kept_.front().first);
}

void AllButPanels::done(void const* data, size_t sizeBytes) const
{
    uintptr_t at = reinterpret_cast<uintptr_t>(data);
    uintptr_t const end = at + sizeBytes;
    for (auto const& [keptBegin, keptEnd] : kept_) {
        pass(at, std::min(keptBegin, end));
        at = std::max(at, keptEnd);
    }
    pass(at, end);
}

void AllButPanels::pass(uintptr_t begin, uintptr_t end) const
{
    // Less would tear large pages of the file apart that panels lie in too.
    if (begin < end && (kept_.empty() || end - begin >= device::kLargePageBytes))
        pages_.done(reinterpret_cast<void const*>(begin), end - begin);
}

} // namespace tw::plan
