// SPDX-License-Identifier: Apache-2.0
// Orders of dimensions: dimension i of what is transposed is dimension p[i] of what it is made of; empty: the identity.
#pragma once

#include <cstdint>
#include <vector>

namespace tw::ir {

using Permutation = std::vector<int64_t>;

inline bool isIdentity(Permutation const& p)
{
    for (size_t i = 0; i < p.size(); ++i)
        if (p[i] != int64_t(i))
            return false;
    return true;
}

// First a, then b.
inline Permutation composed(Permutation const& a, Permutation const& b)
{
    if (a.empty() || b.empty())
        return a.empty() ? b : a;
    Permutation out;
    for (int64_t i : b)
        out.push_back(a[size_t(i)]);
    return out;
}

// Dimensions (a Shape, or Extents) after the permutation, and those before it.
template <class Dims>
Dims permuted(Dims const& from, Permutation const& p)
{
    Dims to = from;
    for (size_t i = 0; i < p.size(); ++i)
        to[i] = from[size_t(p[i])];
    return to;
}
template <class Dims>
Dims unpermuted(Dims const& from, Permutation const& p)
{
    Dims to = from;
    for (size_t i = 0; i < p.size(); ++i)
        to[size_t(p[i])] = from[i];
    return to;
}

} // namespace tw::ir
