// SPDX-License-Identifier: Apache-2.0
// Attrs: the parameters of a node. Each op has one struct that lists its fields, with numbers, in visit(); equality,
// hash, text, plan fields and cache keys all come from that list. Never reuse a number.
//
//   struct Attrs : ir::AttrsOf<Attrs>
//   {
//       std::vector<int64_t> strides;
//       void visit(ir::AttrVisitor& v) override { v.field(1, "strides", strides); }
//   };
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/types.h"

namespace tw::ir {

// Opaque bytes with a type, version and namespace (plugins).
struct OpaqueBytes
{
    std::string type, version, nameSpace;
    std::string bytes;
    bool operator==(OpaqueBytes const&) const = default;
};

// A visitor reads or writes each field in place.
class AttrVisitor
{
public:
    virtual ~AttrVisitor() = default;
    virtual void integer(int number, char const* name, int64_t& v) = 0;
    virtual void real(int number, char const* name, double& v) = 0;
    virtual void text(int number, char const* name, std::string& v) = 0;
    virtual void integers(int number, char const* name, std::vector<int64_t>& v) = 0;
    virtual void reals(int number, char const* name, std::vector<double>& v) = 0;

    // Front ends for the types that Attrs structs use: all integers, bools and enums are stored as int64.
    template <class T>
    void field(int number, char const* name, T& v)
    {
        if constexpr (std::is_same_v<T, std::string>) {
            text(number, name, v);
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
            integers(number, name, v);
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
            reals(number, name, v);
        } else if constexpr (std::is_floating_point_v<T>) {
            double const before = v;
            double d = before;
            real(number, name, d);
            if (std::bit_cast<int64_t>(d) != std::bit_cast<int64_t>(before)) // several threads may read
                v = static_cast<T>(d);
        } else {
            static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
            int64_t const before = static_cast<int64_t>(v);
            int64_t i = before;
            integer(number, name, i);
            if (i != before)
                v = static_cast<T>(i);
        }
    }
    void field(int number, char const* name, OpaqueBytes& v)
    {
        text(number, (std::string(name) + ".type").c_str(), v.type);
        text(number + 1, (std::string(name) + ".version").c_str(), v.version);
        text(number + 2, (std::string(name) + ".namespace").c_str(), v.nameSpace);
        text(number + 3, (std::string(name) + ".bytes").c_str(), v.bytes);
    }
};

struct AttrsBase
{
    virtual ~AttrsBase() = default;
    virtual void visit(AttrVisitor& v) = 0;
    virtual std::unique_ptr<AttrsBase> clone() const = 0;
};

template <class Self>
struct AttrsOf : AttrsBase
{
    std::unique_ptr<AttrsBase> clone() const override
    {
        return std::make_unique<Self>(static_cast<Self const&>(*this));
    }
};

// For ops without parameters.
struct NoAttrs : AttrsOf<NoAttrs>
{
    void visit(AttrVisitor&) override {}
};

// One field, out of its struct: what text form and plan carry.
struct FieldValue
{
    enum class Kind : uint8_t
    {
        kInteger,
        kReal,
        kText,
        kIntegers,
        kReals
    };
    int number = 0;
    std::string name;
    Kind kind = Kind::kInteger;
    std::vector<int64_t> integers;
    std::vector<double> reals;
    std::string text;
};

std::vector<FieldValue> fieldsOf(AttrsBase const& attrs);
// Sets every field of `attrs` that `fields` has (matched by number, or by name when the number is 0). Fields that are
// missing keep their default. False when a field's kind does not match or `attrs` has no such field; `why` says which.
bool setFields(AttrsBase& attrs, std::vector<FieldValue> const& fields, std::string& why);
uint64_t hashAttrs(AttrsBase const& attrs);
bool equalAttrs(AttrsBase const& a, AttrsBase const& b);

} // namespace tw::ir
