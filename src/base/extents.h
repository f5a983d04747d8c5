// SPDX-License-Identifier: Apache-2.0
// Extents: concrete dimensions of a tensor, row-major, and index arithmetic on them.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include <fmt/core.h>

namespace tw {

inline constexpr int kMaxRank = 8;

struct Extents
{
    int rank = 0;
    std::array<int64_t, kMaxRank> d{};

    Extents() = default;
    Extents(std::initializer_list<int64_t> dims)
    {
        for (int64_t v : dims)
            d[rank++] = v;
    }
    static Extents ones(int rank)
    {
        Extents e;
        while (e.rank < rank)
            e.push(1);
        return e;
    }
    int64_t operator[](int i) const { return d[i]; }
    int64_t& operator[](int i) { return d[i]; }
    int64_t const* begin() const { return d.data(); }
    int64_t const* end() const { return d.data() + rank; }
    void push(int64_t v) { d[rank++] = v; }
    // Product of the dimensions in [from, to); 1 for an empty range. Callers have checked it against overflow.
    int64_t volume(int from, int to) const
    {
        int64_t v = 1;
        for (int i = from; i < to; ++i)
            v *= d[i];
        return v;
    }
    int64_t volume() const { return volume(0, rank); }
    bool operator==(Extents const& o) const
    {
        if (rank != o.rank)
            return false;
        for (int i = 0; i < rank; ++i)
            if (d[i] != o.d[i])
                return false;
        return true;
    }
    std::string str() const // "[2,3,4]"
    {
        std::string s = "[";
        for (int i = 0; i < rank; ++i)
            s += fmt::format("{}{}", i ? "," : "", d[i]);
        return s + "]";
    }
};

// Row-major strides in elements; a dimension of size 1 gets stride 0 when `broadcast` asks for it.
inline Extents stridesOf(Extents const& e, bool broadcast = false)
{
    Extents s;
    s.rank = e.rank;
    int64_t step = 1;
    for (int i = e.rank - 1; i >= 0; --i) {
        s[i] = broadcast && e[i] == 1 ? 0 : step;
        step *= e[i];
    }
    return s;
}

// Multi-dimensional counter over `e`: start at zero, next() advances the last dimension first and returns false at the
// end.
struct Counter
{
    explicit Counter(Extents const& e) : extents(e) { at.rank = e.rank; }
    bool next()
    {
        for (int i = extents.rank - 1; i >= 0; --i) {
            if (++at[i] < extents[i])
                return true;
            at[i] = 0;
        }
        return false;
    }
    int64_t offset(Extents const& strides) const
    {
        int64_t o = 0;
        for (int i = 0; i < at.rank; ++i)
            o += at[i] * strides[i];
        return o;
    }
    Extents extents;
    Extents at;
};

} // namespace tw
