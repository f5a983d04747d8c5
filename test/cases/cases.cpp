// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <algorithm>

#include "base/check.h"
#include "ir/text.h"
#include "tactic/registry.h"

namespace tw::ops {

std::function<std::vector<std::unique_ptr<ir::Graph>>()> textRegions(std::vector<std::string> texts)
{
    return [texts = std::move(texts)] {
        std::vector<std::unique_ptr<ir::Graph>> regions;
        for (std::string const& text : texts) {
            auto g = ir::parse(text, find);
            if (!g.ok())
                checkFailed(g.error().message.c_str(), __FILE__, __LINE__);
            regions.push_back(std::move(*g));
        }
        return regions;
    };
}

namespace {

// Attributes that say FP16 say `type`.
class TypeSetter final : public ir::AttrVisitor
{
public:
    explicit TypeSetter(DataType type) : type_(type) {}
    void integer(int, char const* name, int64_t& v) override
    {
        if (std::string_view(name) == "output_type" && v == int64_t(DataType::kHalf)) {
            v = int64_t(type_);
            any = true;
        }
    }
    void real(int, char const*, double&) override {}
    void text(int, char const*, std::string&) override {}
    void integers(int, char const*, std::vector<int64_t>&) override {}
    void reals(int, char const*, std::vector<double>&) override {}
    bool any = false;

private:
    DataType type_;
};

// What holds of FP16 holds of every narrow type, but for results by hand, which are rounded to more or fewer bits, and sums
// of integers, which no other one stands beside.
void addNarrow(CaseList& list, DataType type)
{
    for (size_t i = 0, count = list.cases.size(); i < count; ++i) {
        Case c = list.cases[i];
        bool const sumsIntegers = c.inputs.size() > 1 && isQuantized(c.inputs[0].type) && isQuantized(c.inputs[1].type);
        if (c.regions || sumsIntegers)
            continue;
        c.attrs = c.attrs->clone();
        TypeSetter setter(type);
        c.attrs->visit(setter);
        bool isNarrow = setter.any;
        for (CaseInput& in : c.inputs)
            if (in.type == DataType::kHalf) {
                in.type = type;
                isNarrow = true;
            }
        if (!isNarrow)
            continue;
        c.name += std::string("_") + nameOf(type);
        c.expected.clear();
        c.isConstant = true; // outputs move in FP16; fewer digits may be the same
        list.cases.push_back(std::move(c));
    }
}

} // namespace

CaseList casesOf(std::string_view op)
{
    CaseList list;
    for (OpCases const& c : allCases())
        if (op == c.op)
            c.add(list);
    for (int t = 0; t < kDataTypeCount; ++t)
        if (isNarrowFloat(DataType(t)) && DataType(t) != DataType::kHalf && op != "plugin") // which knows 8.5's types
            addNarrow(list, DataType(t));
    return list;
}

} // namespace tw::ops
