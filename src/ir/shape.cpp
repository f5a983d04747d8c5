// SPDX-License-Identifier: Apache-2.0
// Shapes, which are lists of Dims.
#include <algorithm>

#include "base/check.h"
#include "ir/dim.h"

namespace tw::ir {

Dim volume(Shape const& s)
{
    Dim v = 1;
    for (auto const& d : s)
        v = v * d;
    return v;
}
bool isStatic(Shape const& s)
{
    return std::ranges::all_of(s, [](Dim const& d) { return d.isConst(); });
}
Extents extentsOf(Shape const& s)
{
    TW_CHECK(int(s.size()) <= kMaxRank && isStatic(s));
    Extents e;
    for (auto const& d : s)
        e.push(d.value());
    return e;
}
Shape shapeOf(Extents const& e)
{
    Shape s;
    for (int64_t v : e)
        s.emplace_back(v);
    return s;
}
std::string str(Shape const& s)
{
    std::string out = "[";
    for (size_t i = 0; i < s.size(); ++i)
        out += (i ? "," : "") + s[i].str();
    return out + "]";
}

} // namespace tw::ir
