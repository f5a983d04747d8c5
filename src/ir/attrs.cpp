// SPDX-License-Identifier: Apache-2.0
#include "ir/attrs.h"

#include <bit>

#include "base/hash.h"

namespace tw::ir {

namespace {

class FieldReader final : public AttrVisitor
{
public:
    std::vector<FieldValue> out;

    void integer(int number, char const* name, int64_t& v) override
    {
        add(number, name, FieldValue::Kind::kInteger).integers = {v};
    }
    void real(int number, char const* name, double& v) override
    {
        add(number, name, FieldValue::Kind::kReal).reals = {v};
    }
    void text(int number, char const* name, std::string& v) override
    {
        add(number, name, FieldValue::Kind::kText).text = v;
    }
    void integers(int number, char const* name, std::vector<int64_t>& v) override
    {
        add(number, name, FieldValue::Kind::kIntegers).integers = v;
    }
    void reals(int number, char const* name, std::vector<double>& v) override
    {
        add(number, name, FieldValue::Kind::kReals).reals = v;
    }

private:
    FieldValue& add(int number, char const* name, FieldValue::Kind kind)
    {
        out.push_back(FieldValue{number, name, kind, {}, {}, {}});
        return out.back();
    }
};

class FieldWriter final : public AttrVisitor
{
public:
    explicit FieldWriter(std::vector<FieldValue> const& f) : fields_(f), used(f.size()) {}

    void integer(int number, char const* name, int64_t& v) override
    {
        if (auto const* f = find(number, name, FieldValue::Kind::kInteger))
            v = f->integers.at(0);
    }
    void real(int number, char const* name, double& v) override
    {
        if (auto const* f = find(number, name, FieldValue::Kind::kReal))
            v = f->reals.at(0);
    }
    void text(int number, char const* name, std::string& v) override
    {
        if (auto const* f = find(number, name, FieldValue::Kind::kText))
            v = f->text;
    }
    void integers(int number, char const* name, std::vector<int64_t>& v) override
    {
        if (auto const* f = find(number, name, FieldValue::Kind::kIntegers))
            v = f->integers;
    }
    void reals(int number, char const* name, std::vector<double>& v) override
    {
        if (auto const* f = find(number, name, FieldValue::Kind::kReals))
            v = f->reals;
    }

private:
    FieldValue const* find(int number, char const* name, FieldValue::Kind kind)
    {
        for (size_t i = 0; i < fields_.size(); ++i) {
            FieldValue const& f = fields_[i];
            if (f.number != 0 ? f.number != number : f.name != name)
                continue;
            used[i] = true;
            bool const filled = (kind != FieldValue::Kind::kInteger || f.integers.size() == 1) &&
                                (kind != FieldValue::Kind::kReal || f.reals.size() == 1);
            if (f.kind != kind || !filled) {
                mismatch = name;
                return nullptr;
            }
            return &f;
        }
        return nullptr;
    }
    std::vector<FieldValue> const& fields_;

public:
    std::vector<bool> used;
    std::string mismatch;
};

} // namespace

std::vector<FieldValue> fieldsOf(AttrsBase const& attrs)
{
    FieldReader r;
    const_cast<AttrsBase&>(attrs).visit(r); // the reader does not write
    return std::move(r.out);
}

bool setFields(AttrsBase& attrs, std::vector<FieldValue> const& fields, std::string& why)
{
    FieldWriter w(fields);
    attrs.visit(w);
    if (!w.mismatch.empty()) {
        why = "field '" + w.mismatch + "' has another kind";
        return false;
    }
    for (size_t i = 0; i < fields.size(); ++i) {
        if (!w.used[i]) {
            why = fmt::format("no field '{}' (number {})", fields[i].name, fields[i].number);
            return false;
        }
    }
    return true;
}

uint64_t hashAttrs(AttrsBase const& attrs)
{
    Hasher h;
    for (auto const& f : fieldsOf(attrs)) {
        h.number(uint64_t(f.number));
        h.number(uint64_t(f.kind));
        h.number(f.integers.size());
        for (int64_t v : f.integers)
            h.number(uint64_t(v));
        h.number(f.reals.size());
        for (double v : f.reals)
            h.number(std::bit_cast<uint64_t>(v));
        h.text(f.text);
    }
    return h.value();
}

bool equalAttrs(AttrsBase const& a, AttrsBase const& b)
{
    auto const fa = fieldsOf(a), fb = fieldsOf(b);
    if (fa.size() != fb.size())
        return false;
    for (size_t i = 0; i < fa.size(); ++i) {
        FieldValue const &x = fa[i], &y = fb[i];
        if (x.number != y.number || x.kind != y.kind || x.integers != y.integers || x.text != y.text ||
            x.reals.size() != y.reals.size())
            return false;
        for (size_t j = 0; j < x.reals.size(); ++j)
            if (std::bit_cast<uint64_t>(x.reals[j]) != std::bit_cast<uint64_t>(y.reals[j]))
                return false;
    }
    return true;
}

} // namespace tw::ir
