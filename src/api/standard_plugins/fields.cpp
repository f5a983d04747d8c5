// SPDX-License-Identifier: Apache-2.0
#include "api/standard_plugins/fields.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "NvInferPluginUtils.h"
#include "base/types.h"

namespace tw::api {

using nvinfer1::PluginField;
using nvinfer1::PluginFieldType;

namespace {

struct FieldType
{
    PluginFieldType type;
    char const* name;
    size_t bytes;
    nvinfer1::DataType weights; // of weights of that type
};
constexpr FieldType kTypes[] = {
    {PluginFieldType::kFLOAT16, "kFLOAT16", 2, nvinfer1::DataType::kHALF},
    {PluginFieldType::kFLOAT32, "kFLOAT32", 4, nvinfer1::DataType::kFLOAT},
    {PluginFieldType::kINT8, "kINT8", 1, nvinfer1::DataType::kINT8},
    {PluginFieldType::kINT32, "kINT32", 4, nvinfer1::DataType::kINT32},
    {PluginFieldType::kCHAR, "kCHAR", 1, nvinfer1::DataType::kINT8},
};
FieldType const* typeOf(PluginFieldType t)
{
    auto const it = std::find_if(std::begin(kTypes), std::end(kTypes), [&](FieldType const& k) { return k.type == t; });
    return it == std::end(kTypes) ? nullptr : it;
}

std::string nameOf(PluginFieldType t)
{
    FieldType const* const known = typeOf(t);
    return known ? known->name : fmt::format("type {}", int(t));
}

FieldSpec const* specOf(PluginFields::Specs specs, std::string_view name)
{
    auto const it = std::find_if(specs.begin(), specs.end(), [&](FieldSpec const& s) { return name == s.name; });
    return it == specs.end() ? nullptr : &*it;
}

double elementOf(std::byte const* at, PluginFieldType type)
{
    auto const as = [&](auto v) {
        std::memcpy(&v, at, sizeof v);
        return v;
    };
    switch (type) {
    case PluginFieldType::kFLOAT32:
        return as(float());
    case PluginFieldType::kFLOAT16:
        return halfToFloat(as(uint16_t()));
    case PluginFieldType::kINT32:
        return as(int32_t());
    default:
        return as(int8_t());
    }
}

// Numbers and texts of a plan, little-endian as the machine is.
class Writer
{
public:
    void number(uint64_t v) { out.append(reinterpret_cast<char const*>(&v), sizeof v); }
    void text(std::string_view t)
    {
        number(t.size());
        out.append(t);
    }
    std::string out;
};

class Reader
{
public:
    explicit Reader(std::string_view bytes) : left(bytes) {}
    std::optional<uint64_t> number()
    {
        uint64_t v = 0;
        if (left.size() < sizeof v)
            return std::nullopt;
        std::memcpy(&v, left.data(), sizeof v);
        left.remove_prefix(sizeof v);
        return v;
    }
    std::optional<std::string_view> text()
    {
        auto const size = number();
        if (!size || *size > left.size())
            return std::nullopt;
        std::string_view const t = left.substr(0, *size);
        left.remove_prefix(*size);
        return t;
    }
    std::string_view left;
};

} // namespace

PluginFields::Field const* PluginFields::find(std::string_view name) const
{
    auto const it = std::find_if(fields_.begin(), fields_.end(), [&](Field const& f) { return f.name == name; });
    return it == fields_.end() ? nullptr : &*it;
}

Result<void> PluginFields::checkRequired() const
{
    std::set<std::string> missing;
    for (FieldSpec const& s : specs_)
        if (s.need == kMust && !find(s.name))
            missing.insert(s.name);
    if (missing.empty())
        return {};
    std::string names;
    for (std::string const& name : missing)
        names += (names.empty() ? "" : ", ") + name;
    return invalidArgument("PluginFieldCollection missing required fields: {" + names + "}");
}

Result<PluginFields> PluginFields::read(Specs specs, nvinfer1::PluginFieldCollection const* given, bool checksTypes)
{
    PluginFields fields;
    fields.specs_ = specs;
    std::span<PluginField const> list;
    if (given && given->nbFields > 0) {
        if (!given->fields)
            return invalidArgument("{} fields at a null pointer", given->nbFields);
        list = {given->fields, size_t(given->nbFields)};
    }
    for (PluginField const& f : list) {
        FieldSpec const* const spec = f.name ? specOf(specs, f.name) : nullptr;
        if (!spec)
            continue;
        std::string const what = "field '" + std::string(f.name) + "'";
        bool const isWeights = spec->type == PluginFieldType::kUNKNOWN;
        FieldType const* const type = typeOf(f.type);
        if (!type || (checksTypes && !isWeights && f.type != spec->type))
            return invalidArgument(what + " is of " + nameOf(f.type) + "; " +
                                   (isWeights ? "weights are of kFLOAT32, kFLOAT16, kINT32 or kINT8"
                                              : "it must be of " + nameOf(spec->type)));
        if (spec->count == FieldSpec::Count::kTree) {
            if (auto const* const tree = static_cast<nvinfer1::plugin::softmaxTree const*>(f.data)) {
                if (tree->groups < 1 || tree->groups > (1 << 20) || !tree->groupSize)
                    return invalidArgument("{} has a tree of {} groups", what, tree->groups);
                auto const* const sizes = reinterpret_cast<std::byte const*>(tree->groupSize);
                fields.fields_.push_back({f.name, spec->type, {sizes, sizes + size_t(tree->groups) * sizeof(int32_t)}});
            }
            continue;
        }
        // Of one number clients often leave the length at 0, and nothing but the first element is read.
        int64_t const count = spec->count == kOne && !isWeights ? 1 : f.length;
        if (count < 0 || count > (int64_t(1) << 31))
            return invalidArgument("{} has the length {}", what, f.length);
        if (count > 0 && !f.data)
            return invalidArgument("{} has {} elements at a null pointer", what, count);
        Field field{f.name, isWeights ? f.type : spec->type, {}};
        size_t const bytes = size_t(count) * type->bytes;
        auto const* const from = static_cast<std::byte const*>(f.data);
        field.bytes.assign(from, from + bytes);
        if (!isWeights) // what is narrower than the plugin's type is its low bytes
            field.bytes.resize(size_t(count) * typeOf(spec->type)->bytes);
        std::erase_if(fields.fields_, [&](Field const& old) { return old.name == field.name; });
        fields.fields_.push_back(std::move(field));
    }
    TW_TRY(fields.checkRequired());
    return fields;
}

std::string PluginFields::serialize() const
{
    Writer to;
    to.number(fields_.size());
    for (Field const& f : fields_) {
        to.text(f.name);
        to.number(uint64_t(f.type));
        to.text({reinterpret_cast<char const*>(f.bytes.data()), f.bytes.size()});
    }
    return to.out;
}

Result<PluginFields> PluginFields::parse(Specs specs, std::string_view bytes)
{
    Error const broken = invalidArgument("the serialized plugin is damaged or was made by another library");
    Reader from(bytes);
    PluginFields fields;
    fields.specs_ = specs;
    auto const count = from.number();
    if (!count || *count > specs.size())
        return broken;
    for (uint64_t i = 0; i < *count; ++i) {
        auto const name = from.text();
        auto const type = from.number();
        auto const data = from.text();
        FieldSpec const* const spec = name ? specOf(specs, *name) : nullptr;
        if (!spec || !type || !data || fields.find(*name))
            return broken;
        FieldType const* const known = typeOf(PluginFieldType(*type));
        bool const isRight = spec->type == PluginFieldType::kUNKNOWN || uint64_t(spec->type) == *type;
        if (!known || !isRight || data->size() % known->bytes != 0 ||
            (spec->count == kOne && spec->type != PluginFieldType::kUNKNOWN && data->size() != known->bytes))
            return broken;
        auto const* const at = reinterpret_cast<std::byte const*>(data->data());
        fields.fields_.push_back({std::string(*name), known->type, {at, at + data->size()}});
    }
    if (!from.left.empty() || !fields.checkRequired().ok())
        return broken;
    return fields;
}

double PluginFields::number(char const* name) const
{
    Field const* const f = find(name);
    return f && !f->bytes.empty() ? elementOf(f->bytes.data(), f->type) : specOf(specs_, name)->absent;
}

std::vector<double> PluginFields::numbers(char const* name) const
{
    std::vector<double> result;
    if (Field const* const f = find(name))
        for (size_t at = 0; at < f->bytes.size(); at += typeOf(f->type)->bytes)
            result.push_back(elementOf(&f->bytes[at], f->type));
    return result;
}

nvinfer1::Weights PluginFields::weights(char const* name) const
{
    Field const* const f = find(name);
    if (!f)
        return {};
    FieldType const& type = *typeOf(f->type);
    return {type.weights, f->bytes.data(), int64_t(f->bytes.size() / type.bytes)};
}

} // namespace tw::api
