// SPDX-License-Identifier: Apache-2.0
// Regions of the cases, written value by value.
#pragma once

#include <string>
#include <vector>

#include "cases/cases.h"
#include "ops/elementwise/op.h"
#include "ops/loop/op.h"

namespace tw::ops::loop {

class RegionText
{
public:
    RegionText(std::string const& name, std::vector<std::string> const& inputTypes)
        : text_("graph \"" + name + "\" imported {")
    {
        for (std::string const& t : inputTypes)
            input(t);
    }

    // Types as the text form has them: f32[2,3].
    int input(std::string const& type)
    {
        text_ += fmt::format(" input {} \"v{}\" {}", id(next_), next_, type);
        return next_++;
    }
    int constant(std::string const& type, std::string const& values)
    {
        text_ += fmt::format(" const {} \"c{}\" {} = {}", id(next_), next_, type, values);
        return next_++;
    }
    int apply(elementwise::Operation op, int a, int b, std::string const& type)
    {
        text_ += fmt::format(" node {} \"n{}\" elementwise({}, {}) {{operation = {}}} -> {} \"v{}\" {}", nodes_++,
                             next_, id(a), id(b), int(op), id(next_), next_, type);
        return next_++;
    }
    // Rows of u behind those of x that an index for each image, of the same shift, leaves in front.
    int update(int x, int u, int64_t axis, int64_t images, int64_t shift, std::string const& type)
    {
        std::string list;
        for (int64_t n = 0; n < images; ++n)
            list += fmt::format("{}{}", n > 0 ? ", " : "", shift + n);
        int const index = constant(fmt::format("i32[{}]", images), "[" + list + "]");
        text_ += fmt::format(" node {} \"n{}\" cache_update({}, {}, {}) {{axis = {}}} -> {} \"v{}\" {}", nodes_++,
                             next_, id(x), id(u), id(index), axis, id(next_), next_, type);
        return next_++;
    }
    RegionText& output(int v)
    {
        text_ += " output " + id(v);
        return *this;
    }
    std::string str() const { return text_ + " }"; }

private:
    static std::string id(int v) { return fmt::format("%{}", v); }
    std::string text_;
    int next_ = 0, nodes_ = 0;
};

// The condition of a loop that a count ends.
inline std::string always(std::vector<std::string> const& types)
{
    RegionText r("condition", types);
    return r.output(r.constant("b[]", "[1]")).str();
}
// v < n of two of the region's inputs.
inline std::string lessThan(std::vector<std::string> const& types, int v, int n)
{
    RegionText r("condition", types);
    return r.output(r.apply(elementwise::Operation::kLess, v, n, "b[]")).str();
}

} // namespace tw::ops::loop
