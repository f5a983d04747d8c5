// SPDX-License-Identifier: Apache-2.0
// Binary Caffe files, written byte by byte.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace tw::test::wire {

inline std::string varint(uint64_t v)
{
    std::string s;
    for (; v >= 128; v >>= 7)
        s += char(v | 128);
    return s + char(v);
}
inline std::string bytes(int number, std::string const& content)
{
    return varint(uint64_t(number) << 3 | 2) + varint(content.size()) + content;
}
inline std::string integer(int number, uint64_t v)
{
    return varint(uint64_t(number) << 3) + varint(v);
}
template <class T>
std::string raw(std::vector<T> const& values)
{
    std::string s(values.size() * sizeof(T), '\0');
    if (!values.empty())
        std::memcpy(s.data(), values.data(), s.size());
    return s;
}
inline std::string shape(std::vector<int64_t> const& dims)
{
    std::string s;
    for (int64_t d : dims)
        s += varint(uint64_t(d));
    return bytes(7, bytes(1, s));
}
inline std::string blob(std::vector<int64_t> const& dims, std::vector<float> const& values)
{
    return shape(dims) + bytes(5, raw(values));
}
inline std::string layer(std::string const& name, std::vector<std::string> const& blobs)
{
    std::string s = bytes(1, name);
    for (std::string const& b : blobs)
        s += bytes(7, b);
    return bytes(100, s);
}

} // namespace tw::test::wire
