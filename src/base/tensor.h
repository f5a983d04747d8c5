// SPDX-License-Identifier: Apache-2.0
// TensorRef: a typed view of elements that somebody else owns, row-major without gaps if not said otherwise. Tensor:
// one that owns them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/element.h"
#include "base/extents.h"
#include "base/format.h"
#include "base/types.h"

namespace tw {

// Value rounded to `t` as a store does: floats to nearest even, integers truncated toward zero and wrapped to the
// width, bool from "not zero". NaN and infinities become 0 in integers.
struct TensorRef
{
    DataType type = DataType::kFloat;
    Extents dims;
    void* data = nullptr;
    Format format = Format::kLinear;
    // Elements from pixel to pixel, in a format by pixels, of a tensor that is a part of a larger one; 0: the format's
    // own.
    int64_t stride = 0;

    int64_t count() const { return dims.volume(); }
    // Of its storage, gaps included (of the whole, where it is a part).
    int64_t sizeBytes() const
    {
        if (stride > 0 && isByPixel(format)) {
            int const axis = std::max(channelAxis(format, dims.rank), 0);
            return dims.volume(0, axis) * dims.volume(axis + 1, dims.rank) * stride * sizeOf(type);
        }
        return storageCount(format, type, dims) * sizeOf(type);
    }
    int64_t pixelStride() const
    {
        int const axis = channelAxis(format, dims.rank);
        return stride > 0 || axis < 0 ? stride : pixelStrideOf(format, type, dims[axis]);
    }

    template <class T>
    T* as() const
    {
        return static_cast<T*>(data);
    }

    // Where element i (in row-major order) lies, for every format.
    int64_t place(int64_t i) const
    {
        if (format == Format::kLinear)
            return i;
        int const axis = std::max(channelAxis(format, dims.rank), 0);
        int64_t const pixels = dims.volume(axis + 1, dims.rank), channels = dims[axis], image = channels * pixels;
        int64_t const outer = i / image, pixel = i % pixels, channel = i % image / pixels;
        if (isByPixel(format))
            return (outer * pixels + pixel) * pixelStride() + channel;
        int64_t const vector = vectorOf(format), vectors = (channels + vector - 1) / vector;
        return ((outer * vectors + channel / vector) * pixels + pixel) * vector + channel % vector;
    }

    // Element i of its storage as a double: exact for every type.
    double get(int64_t i) const
    {
        if (type == DataType::kFloat)
            return as<float>()[i];
        if (!isFloating(type))
            return double(getInt(i));
        return withNarrow(type, [&](auto element) { return double(loadElement(as<decltype(element)>()[i])); });
    }
    int64_t getInt(int64_t i) const
    {
        if (isFloating(type))
            return toInt(get(i));
        return type == DataType::kInt32  ? as<int32_t>()[i]
               : type == DataType::kInt8 ? as<int8_t>()[i]
               : type == DataType::kBool ? as<uint8_t>()[i] != 0
                                         : as<uint8_t>()[i];
    }
    void set(int64_t i, double v) const
    {
        if (type == DataType::kFloat)
            as<float>()[i] = static_cast<float>(v);
        else if (type == DataType::kBool)
            as<uint8_t>()[i] = v != 0;
        else if (isNarrowFloat(type))
            withNarrow(type, [&](auto element) { storeElement(as<decltype(element)>()[i], roundedToOdd(v)); });
        else
            setInt(i, toInt(v));
    }
    void setInt(int64_t i, int64_t v) const
    {
        if (isFloating(type))
            set(i, static_cast<double>(v));
        else if (type == DataType::kInt32)
            as<int32_t>()[i] = static_cast<int32_t>(static_cast<uint64_t>(v));
        else // of i8 and u8 the same bits
            as<uint8_t>()[i] = type == DataType::kBool ? v != 0 : static_cast<uint8_t>(v);
    }
    // A real number: half to even and saturated where elements are quantized, NaN being 0 there.
    void setReal(int64_t i, double v) const
    {
        if (isQuantized(type))
            v = std::isnan(v) ? 0 : std::clamp(std::nearbyint(v), numberType(type).lowest, numberType(type).largest);
        set(i, v);
    }
    static int64_t toInt(double v)
    {
        if (!(v > -9.2e18 && v < 9.2e18)) // NaN too
            return v >= 9.2e18 ? INT64_MAX : v <= -9.2e18 ? INT64_MIN : 0;
        return static_cast<int64_t>(v);
    }
    // A float that is rounded to odd: what rounds it to narrower types then does so as of `v`, once.
    static float roundedToOdd(double v)
    {
        float f = static_cast<float>(v);
        if (static_cast<double>(f) != v && std::isfinite(f)) {
            uint32_t bits;
            std::memcpy(&bits, &f, 4);
            if (std::fabs(static_cast<double>(f)) > std::fabs(v))
                bits -= 1; // toward zero
            bits |= 1;     // and the sticky bit
            std::memcpy(&f, &bits, 4);
        }
        return f;
    }
};

// Each element of `from`, as `to` has elements; both in one format.
inline void copyElements(TensorRef const& from, TensorRef const& to)
{
    for (int64_t i = 0, n = from.count(); i < n; ++i)
        to.set(i, from.get(i));
}

// The first element that is infinite or no number; -1: there is none.
inline int64_t firstNotFinite(TensorRef const& t)
{
    for (int64_t i = 0, n = isFloating(t.type) ? t.count() : 0; i < n; ++i)
        if (!std::isfinite(t.get(i)))
            return i;
    return -1;
}

// Owned elements, 64-byte aligned, zero at first.
class Tensor
{
public:
    Tensor() = default;
    Tensor(DataType type, Extents const& dims, Format format = Format::kLinear)
    {
        ref_.type = type;
        ref_.dims = dims;
        ref_.format = format;
        size_t const bytes = static_cast<size_t>(ref_.sizeBytes());
        size_t const rounded = (bytes + 63) / 64 * 64 + 64; // never empty: an empty tensor has an address too
        store_.reset(static_cast<std::byte*>(std::aligned_alloc(64, rounded)));
        if (store_)
            std::memset(store_.get(), 0, rounded);
        ref_.data = store_.get();
    }
    TensorRef const& ref() const { return ref_; }
    DataType type() const { return ref_.type; }
    Extents const& dims() const { return ref_.dims; }
    int64_t count() const { return ref_.count(); }
    void* data() const { return ref_.data; }

private:
    struct Free
    {
        void operator()(std::byte* p) const { std::free(p); }
    };
    std::unique_ptr<std::byte, Free> store_;
    TensorRef ref_;
};

} // namespace tw
