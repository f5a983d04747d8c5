// SPDX-License-Identifier: Apache-2.0
// Blob: constant bytes that are either owned or borrowed (weights of the caller, a mapped plan).
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

namespace tw {

class Blob
{
public:
    // `owner` keeps borrowed bytes alive; null means that the caller promised to.
    Blob(void const* data, size_t sizeBytes, std::shared_ptr<void const> owner = nullptr)
        : data_(data ? data : &kNothing), size_(data ? sizeBytes : 0), owner_(std::move(owner))
    {}
    static std::shared_ptr<Blob const> own(std::vector<std::byte> bytes)
    {
        auto keep = std::make_shared<std::vector<std::byte>>(std::move(bytes));
        return std::make_shared<Blob const>(keep->data(), keep->size(), keep);
    }
    static std::shared_ptr<Blob const> copy(void const* data, size_t sizeBytes)
    {
        std::vector<std::byte> bytes(sizeBytes);
        if (sizeBytes != 0)
            std::memcpy(bytes.data(), data, sizeBytes);
        return own(std::move(bytes));
    }

    void const* data() const { return data_; }
    size_t sizeBytes() const { return size_; }
    template <class T>
    T const* as() const
    {
        return static_cast<T const*>(data_);
    }

private:
    static constexpr char kNothing = 0; // empty blobs have an address too
    void const* data_;                  // never null
    size_t size_;
    std::shared_ptr<void const> owner_;
};

using BlobPtr = std::shared_ptr<Blob const>;

// Told which bytes of a large file have been read and are not needed for now, so that it can give their pages back.
class PageKeeper
{
public:
    virtual ~PageKeeper() = default;
    virtual void done(void const* /*data*/, size_t /*sizeBytes*/) const {}
};

} // namespace tw
