// SPDX-License-Identifier: Apache-2.0
// Fields of standard plugins: what a creator was given, checked against what its plugin takes, and the bytes that a plugin
// is serialized to.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "base/result.h"

namespace tw::api {

struct FieldSpec
{
    enum class Need
    {
        kMay,
        kMust,
    };
    enum class Count // of elements
    {
        kOne,
        kAny,
        kTree, // the data are a softmaxTree, of which the sizes of its groups are kept
    };

    char const* name;
    nvinfer1::PluginFieldType type; // kUNKNOWN: weights, of any type
    Need need = Need::kMay;
    Count count = Count::kOne;
    double absent = 0; // of one number
};
inline constexpr auto kMust = FieldSpec::Need::kMust;
inline constexpr auto kMay = FieldSpec::Need::kMay;
inline constexpr auto kAny = FieldSpec::Count::kAny;
inline constexpr auto kOne = FieldSpec::Count::kOne;

// The values of a plugin's fields. Getters take the name of a field of the plugin; absent numbers are what the
// specification says, absent lists are empty.
class PluginFields
{
public:
    using Specs = std::span<FieldSpec const>;
    // Unknown fields are left out. `checksTypes`: a field of another type than the plugin's is an error; else its first
    // bytes are read as what the plugin takes. An error too: fields that must be there and are not, by their names.
    static Result<PluginFields> read(Specs specs, nvinfer1::PluginFieldCollection const* given, bool checksTypes);
    static Result<PluginFields> parse(Specs specs, std::string_view bytes); // of serialize(), from anywhere
    std::string serialize() const;

    bool has(char const* name) const { return find(name) != nullptr; }
    double number(char const* name) const;
    int64_t integer(char const* name) const { return int64_t(number(name)); }
    bool flag(char const* name) const { return number(name) != 0; }
    std::vector<double> numbers(char const* name) const;
    // Elements of any type as they are; count 0: absent.
    nvinfer1::Weights weights(char const* name) const;

private:
    struct Field
    {
        std::string name;
        nvinfer1::PluginFieldType type{};
        std::vector<std::byte> bytes;
    };
    Field const* find(std::string_view name) const;
    Result<void> checkRequired() const;

    Specs specs_;
    std::vector<Field> fields_;
};

} // namespace tw::api
