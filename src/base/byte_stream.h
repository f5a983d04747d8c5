// SPDX-License-Identifier: Apache-2.0
// Numbers and texts one behind the other, as they lie in memory: what caches are written in and, from untrusted bytes, read.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tw {

static_assert(std::endian::native == std::endian::little, "the bytes are written as they lie in memory");

struct ByteWriter
{
    std::string out;

    template <class T>
    void put(T value)
    {
        out.append(reinterpret_cast<char const*>(&value), sizeof value);
    }
    void putText(std::string_view text)
    {
        put(uint32_t(text.size()));
        out += text;
    }
};

// Reads on as long as the bytes last; `ok` is false from the first missing byte on.
struct ByteReader
{
    char const* at;
    char const* end;
    bool ok = true;

    bool has(size_t n) const { return n <= size_t(end - at); }
    bool isAtEnd() const { return ok && at == end; }
    template <class T>
    T get()
    {
        T value{};
        if (!ok || !has(sizeof value)) {
            ok = false;
            return value;
        }
        std::memcpy(&value, at, sizeof value);
        at += sizeof value;
        return value;
    }
    std::string getText(size_t limit)
    {
        auto const n = get<uint32_t>();
        if (!ok || n > limit || !has(n)) {
            ok = false;
            return {};
        }
        std::string text(at, n);
        at += n;
        return text;
    }
};

} // namespace tw
