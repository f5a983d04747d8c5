// SPDX-License-Identifier: Apache-2.0
#include "api/builder/profile.h"

#include <algorithm>

#include "api/network/network.h"

using namespace tw;
using namespace tw::api;
using nvinfer1::Dims;
using nvinfer1::OptProfileSelector;

namespace {

constexpr char const* kPoint[] = {"kMIN", "kOPT", "kMAX"};
// Elements of a shape tensor at most.
constexpr int32_t kMaxShapeValues = 64;

std::string str(std::vector<int32_t> const& v)
{
    std::string s = "(";
    for (size_t i = 0; i < v.size(); ++i)
        s += (i ? "," : "") + std::to_string(v[i]);
    return s + ")";
}
std::string strOf(Dims const& d)
{
    return tw::api::str(d);
}
std::string strOf(std::vector<int32_t> const& v)
{
    return str(v);
}
int32_t countOf(Dims const& d)
{
    return d.nbDims;
}
int32_t countOf(std::vector<int32_t> const& v)
{
    return int32_t(v.size());
}
int32_t const* entriesOf(Dims const& d)
{
    return d.d;
}
int32_t const* entriesOf(std::vector<int32_t> const& v)
{
    return v.data();
}

// Whether kMIN <= kOPT <= kMAX in every entry, as far as the points are set, and all have one length.
template <class T>
Result<void> checkOrder(std::array<std::optional<T>, 3> const& at, std::string const& what)
{
    for (int low = 0; low < 3; ++low) {
        for (int high = low + 1; high < 3; ++high) {
            if (!at[low] || !at[high])
                continue;
            std::string const both =
                what + ": " + kPoint[low] + " " + strOf(*at[low]) + " and " + kPoint[high] + " " + strOf(*at[high]);
            if (countOf(*at[low]) != countOf(*at[high]))
                return invalidArgument(both + " need the same number of entries");
            for (int32_t i = 0; i < countOf(*at[low]); ++i)
                if (entriesOf(*at[low])[i] > entriesOf(*at[high])[i])
                    return invalidArgument(both + ": entry " + std::to_string(i) + " must not fall (" +
                                           std::to_string(entriesOf(*at[low])[i]) + " > " +
                                           std::to_string(entriesOf(*at[high])[i]) + ")");
        }
    }
    return {};
}

template <class T>
Result<void> checkComplete(std::array<std::optional<T>, 3> const& at, std::string const& what)
{
    for (int i = 0; i < 3; ++i)
        if (!at[i])
            return invalidState(what + ": " + kPoint[i] + " is not set; all of kMIN, kOPT and kMAX are needed");
    return checkOrder(at, what);
}

Result<int> pointOf(OptProfileSelector select, std::string const& what)
{
    int const i = static_cast<int>(select);
    if (i < 0 || i > 2)
        return invalidArgument(what + ": selector " + std::to_string(i) + " does not exist");
    return i;
}

} // namespace

namespace tw::api {

Result<void> OptimizationProfileObject::validate() const
{
    for (auto const& [name, shape] : shapes)
        TW_TRY(checkComplete(shape.at, "optimization profile: shape of input '" + name + "'"));
    for (auto const& [name, v] : values)
        TW_TRY(checkComplete(v.at, "optimization profile: values of input '" + name + "'"));
    return {};
}

} // namespace tw::api

namespace nvinfer1 {

bool IOptimizationProfile::setDimensions(char const* inputName, OptProfileSelector select, Dims dims) noexcept
{
    OptimizationProfileObject& p = objectOf(*this);
    return guarded<bool>(p.reporter, false, [&]() -> Result<bool> {
        TW_ASSIGN(std::string name, checkName(inputName, "IOptimizationProfile::setDimensions"));
        std::string const what = "optimization profile: shape of input '" + name + "'";
        TW_ASSIGN(int const point, pointOf(select, what));
        TW_TRY(checkDims(dims, 0, what));
        auto const it = p.shapes.find(name);
        OptimizationProfileObject::Shape changed;
        if (it != p.shapes.end())
            changed = it->second;
        for (int i = dims.nbDims; i < Dims::MAX_DIMS; ++i)
            dims.d[i] = 0;
        changed.at[size_t(point)] = dims;
        TW_TRY(checkOrder(changed.at, what));
        p.shapes[std::move(name)] = changed;
        return true;
    });
}

Dims IOptimizationProfile::getDimensions(char const* inputName, OptProfileSelector select) const noexcept
{
    int const point = static_cast<int>(select);
    if (!inputName || point < 0 || point > 2)
        return noDims();
    auto const it = objectOf(*this).shapes.find(std::string_view(inputName));
    return it == objectOf(*this).shapes.end() ? noDims() : it->second.at[size_t(point)].value_or(noDims());
}

bool IOptimizationProfile::setShapeValues(char const* inputName, OptProfileSelector select, int32_t const* values,
                                          int32_t nbValues) noexcept
{
    OptimizationProfileObject& p = objectOf(*this);
    return guarded<bool>(p.reporter, false, [&]() -> Result<bool> {
        TW_ASSIGN(std::string name, checkName(inputName, "IOptimizationProfile::setShapeValues"));
        std::string const what = "optimization profile: values of input '" + name + "'";
        TW_ASSIGN(int const point, pointOf(select, what));
        if (nbValues < 0 || nbValues > kMaxShapeValues)
            return invalidArgument(what + ": " + std::to_string(nbValues) + " values; a shape tensor has 0 to " +
                                   std::to_string(kMaxShapeValues) + " elements");
        if (!values && nbValues > 0)
            return invalidArgument(what + ": the values are a null pointer");
        auto const it = p.values.find(name);
        OptimizationProfileObject::Values changed;
        if (it != p.values.end())
            changed = it->second;
        changed.at[size_t(point)] = std::vector<int32_t>(values, values + nbValues);
        TW_TRY(checkOrder(changed.at, what));
        p.values[std::move(name)] = std::move(changed);
        return true;
    });
}

int32_t IOptimizationProfile::getNbShapeValues(char const* inputName) const noexcept
{
    if (!inputName)
        return -1;
    auto const it = objectOf(*this).values.find(std::string_view(inputName));
    if (it == objectOf(*this).values.end())
        return -1;
    for (auto const& v : it->second.at)
        if (v)
            return int32_t(v->size());
    return -1;
}

int32_t const* IOptimizationProfile::getShapeValues(char const* inputName, OptProfileSelector select) const noexcept
{
    int const point = static_cast<int>(select);
    if (!inputName || point < 0 || point > 2)
        return nullptr;
    auto const it = objectOf(*this).values.find(std::string_view(inputName));
    return it == objectOf(*this).values.end() || !it->second.at[size_t(point)] ? nullptr
                                                                               : it->second.at[size_t(point)]->data();
}

bool IOptimizationProfile::setExtraMemoryTarget(float target) noexcept
{
    OptimizationProfileObject& p = objectOf(*this);
    return guarded<bool>(p.reporter, false, [&]() -> Result<bool> {
        if (!(target >= 0 && target <= 1)) // not a number, too
            return invalidArgument("optimization profile: extra memory target " + std::to_string(target) +
                                   " must be in [0, 1]");
        p.extraMemoryTarget = target;
        return true;
    });
}
TW_GETTER(IOptimizationProfile, float, getExtraMemoryTarget, self.extraMemoryTarget)

bool IOptimizationProfile::isValid() const noexcept
{
    // A question, not an attempt: the reason is told when the profile is added to a config.
    try {
        return objectOf(*this).validate().ok();
    } catch (...) {
        return false;
    }
}

} // namespace nvinfer1
