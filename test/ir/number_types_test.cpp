// SPDX-License-Identifier: Apache-2.0
// The table of number types says what tensors of each do.
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "base/element.h"
#include "base/permissions.h"
#include "base/tensor.h"
#include "tactic/domain.h"

namespace tw {

namespace {

class NumberTypes : public testing::TestWithParam<int>
{
protected:
    DataType const t = DataType(GetParam());
    double stored(double v) const
    {
        Tensor x(t, {1});
        x.ref().set(0, v);
        return x.ref().get(0);
    }
    double storedReal(double v) const
    {
        Tensor x(t, {1});
        x.ref().setReal(0, v);
        return x.ref().get(0);
    }
};

TEST_P(NumberTypes, HoldTheirRange)
{
    EXPECT_EQ(stored(numberType(t).lowest), numberType(t).lowest);
    EXPECT_EQ(stored(numberType(t).largest), numberType(t).largest);
    EXPECT_EQ(sizeOf(t) * 8, numberType(t).bits);
    EXPECT_EQ(Tensor(t, {3}).ref().sizeBytes(), 3 * sizeOf(t));
}

TEST_P(NumberTypes, AreOneKind)
{
    EXPECT_EQ(isReal(t), isFloating(t) || isQuantized(t));
    EXPECT_EQ(isFloating(t), isNarrowFloat(t) || isFullFloat(t));
    EXPECT_FALSE(isNarrowFloat(t) && isFullFloat(t));
    EXPECT_FALSE(isFloating(t) && isQuantized(t));
    EXPECT_EQ(isFloating(t), numberType(t).mantissaBits > 0);
}

TEST_P(NumberTypes, FloatsStoreTheirMantissa)
{
    if (!isFloating(t))
        return;
    double const last = std::ldexp(1, -numberType(t).mantissaBits);
    EXPECT_EQ(stored(1 + last), 1 + last);
    EXPECT_EQ(stored(1 + last / 2), 1); // half to even
    EXPECT_EQ(stored(1 + last * 1.5), 1 + last * 2);
    EXPECT_EQ(stored(numberType(t).largest * 2), std::numeric_limits<double>::infinity());
    EXPECT_TRUE(std::isnan(stored(std::nan(""))));
    if (isNarrowFloat(t)) {
        EXPECT_GE(ops::Tolerance::forType(t).relative, last);
        EXPECT_LT(ops::Tolerance::forType(t).relative, last * 2);
    }
}

TEST_P(NumberTypes, RealNumbersAreRoundedAndSaturatedInIntegers)
{
    if (!isReal(t))
        return;
    double const nan = std::nan("");
    EXPECT_EQ(storedReal(3), 3);
    EXPECT_EQ(storedReal(2.5), isQuantized(t) ? 2 : 2.5);
    EXPECT_EQ(storedReal(-3.5), isQuantized(t) ? -4 : -3.5);
    if (isQuantized(t)) {
        EXPECT_EQ(storedReal(1000), numberType(t).largest);
        EXPECT_EQ(storedReal(-1000), numberType(t).lowest);
        EXPECT_EQ(storedReal(nan), 0);
    } else {
        EXPECT_TRUE(std::isnan(storedReal(nan)));
    }
}

TEST_P(NumberTypes, ElementsHaveACppType)
{
    if (!isReal(t))
        return;
    withReal(t, [&](auto element) {
        EXPECT_EQ(int64_t(sizeof(element)), sizeOf(t));
        Tensor x(t, {1});
        x.ref().set(0, 3);
        EXPECT_EQ(loadElement(x.ref().as<decltype(element)>()[0]), 3);
        storeElement(x.ref().as<decltype(element)>()[0], -5.0);
        EXPECT_EQ(x.ref().get(0), -5);
    });
}

INSTANTIATE_TEST_SUITE_P(All, NumberTypes, testing::Range(0, kDataTypeCount),
                         [](auto const& i) { return std::string(nameOf(DataType(i.param))); });

TEST(NumberTypesTable, NamesAreDistinct)
{
    std::set<std::string> names;
    for (NumberType const& t : kNumberTypes)
        EXPECT_TRUE(names.insert(t.name).second) << t.name;
    EXPECT_STREQ(nameOf(DataType(kDataTypeCount)), "?");
    EXPECT_STREQ(nameOf(DataType(-1)), "?");
}

TEST(NumberTypesTable, WhatMayBeStoredIsPermitted)
{
    EXPECT_EQ(needsOf(DataType::kFloat).bits(), Permissions{}.bits());
    EXPECT_EQ(needsOf(DataType::kInt32).bits(), Permissions{}.bits());
    EXPECT_EQ(needsOf(DataType::kHalf).bits(), Permissions{Permission::kHalf}.bits());
    EXPECT_EQ(needsOf(DataType::kInt8).bits(), Permissions{Permission::kInt8}.bits());
}

} // namespace

} // namespace tw
