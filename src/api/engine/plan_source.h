// SPDX-License-Identifier: Apache-2.0
// Where an engine's plan comes from, and how to get its bytes again.
#pragma once

#include <memory>
#include <string>

#include "base/blob.h"
#include "base/result.h"

namespace tw::api {

// The engine reads from data() while it is loaded; then close() gives the memory back where the bytes can be had again.
// Clients that map a plan file read-only pay for its pages once at most: the file is opened here again, and pages are
// dropped as they have been packed; large tables that kernels read as they are (embeddings) and weights in the order of
// their kernels stay in the file, so it may be replaced or removed while the engine lives, but not changed or shortened
// in place. Other memory is copied, since the caller may free it, and the copy is kept.
class PlanSource : public PageKeeper
{
public:
    // `copied`: also what lies in a file.
    static Result<std::shared_ptr<PlanSource>> of(void const* bytes, size_t sizeBytes, bool copied = false);

    // 256-byte aligned, as sections of a plan expect; null after close().
    virtual void const* data() const = 0;
    virtual size_t sizeBytes() const = 0;
    virtual void close() = 0;
    // A constant in data() for use after close(), without a copy; null where a copy is better. `self` is this source.
    virtual BlobPtr keep(Blob const& constant, std::shared_ptr<PlanSource const> const& self) const = 0;
    // The plan's bytes, at any time. An error when its file has changed since.
    virtual Result<std::string> bytes() const = 0;

protected:
    bool holds(Blob const& constant) const
    {
        auto const begin = reinterpret_cast<uintptr_t>(data()), at = reinterpret_cast<uintptr_t>(constant.data());
        return begin != 0 && at >= begin && at - begin <= sizeBytes() &&
               constant.sizeBytes() <= sizeBytes() - (at - begin);
    }
};

} // namespace tw::api
