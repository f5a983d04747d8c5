// SPDX-License-Identifier: Apache-2.0
// Plans as bytes.
#pragma once

#include <cstring>

#include <gtest/gtest.h>

#include "plan/plan.h"
#include "support/op_case.h"

namespace tw::test {

inline std::string planOf(plan::Contents const& c)
{
    auto bytes = plan::write(c);
    EXPECT_TRUE(bytes.ok()) << bytes.error().message;
    return bytes.ok() ? *bytes : std::string();
}

// As the runtime reads it: in memory that is aligned and kept by those who use it, panels as they lie.
inline Result<plan::Contents> readKept(std::string const& bytes)
{
    auto const held = std::make_shared<Tensor>(DataType::kInt8, Extents{int64_t(bytes.size())});
    std::memcpy(held->data(), bytes.data(), bytes.size());
    plan::ReadOptions options;
    options.owner = held;
    options.keepPanels = true;
    return plan::read(held->data(), bytes.size(), options);
}

} // namespace tw::test
