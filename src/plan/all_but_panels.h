// SPDX-License-Identifier: Apache-2.0
// Passes on which pages have been read, but for those that kernels will use where they lie.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/blob.h"
#include "plan/file.h"

namespace tw::plan {

class AllButPanels final : public PageKeeper
{
public:
    // Looks for constants in panels in a file that may still prove damaged: then it finds none, or others.
    AllButPanels(PageKeeper const& pages, std::vector<Section> const& sections);
    void done(void const* data, size_t sizeBytes) const override;

private:
    void pass(uintptr_t begin, uintptr_t end) const;
    PageKeeper const& pages_;
    std::vector<std::pair<uintptr_t, uintptr_t>> kept_; // in order
};

} // namespace tw::plan
