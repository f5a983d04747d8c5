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

using Points = OptimizationProfileObject::Points;
using Numbers = std::vector<int32_t>;

// What is set of an input.
struct Kind
{
    OptimizationProfileObject::Settings OptimizationProfileObject::*settings;
    char const *name, *brackets; // in messages
};
constexpr Kind kShapes{&OptimizationProfileObject::shapes, "shape", "[]"};
constexpr Kind kValues{&OptimizationProfileObject::values, "values", "()"};

std::string describe(Kind const& kind, std::string const& input)
{
    return fmt::format("optimization profile: {} of input '{}'", kind.name, input);
}
std::string str(Kind const& kind, Numbers const& v)
{
    std::string s;
    for (int32_t number : v)
        s += fmt::format("{}{}", s.empty() ? "" : ",", number);
    return kind.brackets[0] + s + kind.brackets[1];
}

// Whether kMIN <= kOPT <= kMAX in every entry, as far as the points are set, and all have one length.
Result<void> checkOrder(Points const& at, Kind const& kind, std::string const& input)
{
    for (size_t low = 0; low < 3; ++low) {
        for (size_t high = low + 1; high < 3; ++high) {
            if (!at[low] || !at[high])
                continue;
            Numbers const &least = *at[low], &most = *at[high];
            std::string const both = describe(kind, input) + ": " + kPoint[low] + " " + str(kind, least) + " and " +
                                     kPoint[high] + " " + str(kind, most);
            if (least.size() != most.size())
                return invalidArgument("{} need the same number of entries", both);
            for (size_t i = 0; i < least.size(); ++i)
                if (least[i] > most[i])
                    return invalidArgument("{}: entry {} must not fall ({} > {})", both, i, least[i], most[i]);
        }
    }
    return {};
}

// numbers(what): what the client gave, checked.
template <class Of>
Result<bool> set(OptimizationProfileObject& p, Kind const& kind, char const* method, char const* inputName,
                 OptProfileSelector select, Of const& numbers)
{
    TW_ASSIGN(std::string name, checkName(inputName, method));
    std::string const what = describe(kind, name);
    size_t const point = static_cast<size_t>(select);
    if (point > 2)
        return invalidArgument("{}: selector {} does not exist", what, static_cast<int>(select));
    auto& settings = p.*kind.settings;
    auto const known = settings.find(name);
    Points changed = known == settings.end() ? Points() : known->second;
    TW_ASSIGN(changed[point], numbers(what));
    TW_TRY(checkOrder(changed, kind, name));
    settings[std::move(name)] = std::move(changed);
    return true;
}

// Null: not set.
Numbers const* find(OptimizationProfileObject const& p, Kind const& kind, char const* inputName,
                    OptProfileSelector select)
{
    size_t const point = static_cast<size_t>(select);
    if (!inputName || point > 2)
        return nullptr;
    auto const it = (p.*kind.settings).find(std::string_view(inputName));
    return it == (p.*kind.settings).end() || !it->second[point] ? nullptr : &*it->second[point];
}

} // namespace

namespace tw::api {

Result<void> OptimizationProfileObject::validate() const
{
    for (Kind const& kind : {kShapes, kValues})
        for (auto const& [name, at] : this->*kind.settings) {
            for (size_t i = 0; i < at.size(); ++i)
                if (!at[i])
                    return invalidState("{}: {} is not set; all of kMIN, kOPT and kMAX are needed",
                                        describe(kind, name), kPoint[i]);
            TW_TRY(checkOrder(at, kind, name));
        }
    return {};
}

} // namespace tw::api

namespace nvinfer1 {

bool IOptimizationProfile::setDimensions(char const* inputName, OptProfileSelector select, Dims dims) noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](OptimizationProfileObject& p) {
        return set(p, kShapes, "IOptimizationProfile::setDimensions", inputName, select,
                   [&](std::string const& what) -> Result<Numbers> {
                       TW_TRY(checkDims(dims, 0, what));
                       return Numbers(dims.d, dims.d + dims.nbDims);
                   });
    });
}

Dims IOptimizationProfile::getDimensions(char const* inputName, OptProfileSelector select) const noexcept
{
    Numbers const* const found = find(objectOf(*this), kShapes, inputName, select);
    if (!found)
        return noDims();
    Dims d{int32_t(found->size()), {}};
    std::ranges::copy(*found, d.d);
    return d;
}

bool IOptimizationProfile::setShapeValues(char const* inputName, OptProfileSelector select, int32_t const* values,
                                          int32_t nbValues) noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](OptimizationProfileObject& p) {
        return set(p, kValues, "IOptimizationProfile::setShapeValues", inputName, select,
                   [&](std::string const& what) -> Result<Numbers> {
                       if (nbValues < 0 || nbValues > kMaxShapeValues)
                           return invalidArgument("{}: {} values; a shape tensor has 0 to {} elements", what, nbValues,
                                                  kMaxShapeValues);
                       if (!values && nbValues > 0)
                           return invalidArgument("{}: the values are a null pointer", what);
                       return Numbers(values, values + nbValues);
                   });
    });
}

int32_t IOptimizationProfile::getNbShapeValues(char const* inputName) const noexcept
{
    for (int i = 0; i < EnumMax<OptProfileSelector>(); ++i)
        if (Numbers const* const found = find(objectOf(*this), kValues, inputName, OptProfileSelector(i)))
            return int32_t(found->size());
    return -1;
}

int32_t const* IOptimizationProfile::getShapeValues(char const* inputName, OptProfileSelector select) const noexcept
{
    Numbers const* const found = find(objectOf(*this), kValues, inputName, select);
    return found ? found->data() : nullptr;
}

bool IOptimizationProfile::setExtraMemoryTarget(float target) noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](OptimizationProfileObject& p) -> Result<bool> {
        if (!(target >= 0 && target <= 1)) // not a number, too
            return invalidArgument("optimization profile: extra memory target {} must be in [0, 1]", target);
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
