// SPDX-License-Identifier: Apache-2.0
// What cases of sums of i8 end with (families/elementwise/epilogue.h).
#pragma once

#include <optional>
#include <vector>

#include "cases/cases.h"
#include "cases/draw.h"
#include "families/elementwise/epilogue.h"

namespace tw::ops {

struct IntegerSums
{
    DataType type = DataType::kInt8; // of y
    FusedActivation f;
    std::optional<DataType> residual;
    bool bias = true, scaleEach = true, outputScale = false, innerScale = false, table = false;
    bool constants = true; // scales and bias
};

// Sets what the attributes say of it, and adds inputs from position 2 on; y: of so many channels (columns).
inline void endIntegers(Epilogue& epilogue, std::vector<CaseInput>& in, IntegerSums const& s, Extents const& y,
                        int64_t channels)
{
    epilogue.activation = s.f;
    epilogue.outputType = int32_t(s.type);
    auto weights = [&](int64_t n) {
        return s.constants ? constant(DataType::kFloat, {n}) : input(DataType::kFloat, {n});
    };
    in.push_back(s.bias ? weights(channels) : absent());
    in.push_back(s.residual ? input(*s.residual, y) : absent());
    in.insert(in.end(), 2, absent());
    in.push_back(weights(s.scaleEach ? channels : 1));
    bool const residualScale = s.residual == DataType::kInt8;
    in.push_back(residualScale ? weights(1) : absent());
    in.push_back(s.outputScale ? weights(1) : absent());
    in.push_back(s.innerScale ? weights(1) : absent());
    if (s.table)
        in.push_back(s.constants ? constant(DataType::kInt8, {256}) : input(DataType::kInt8, {256}));
    while (in.size() > Epilogue::kScale + 1 && !in.back().present)
        in.pop_back();
}

// Any of them; activations that are no more than comparisons and products, of numbers that go up to about 100 where
// y is i8.
inline IntegerSums integerSums(Draw& d)
{
    using activation::Kind;
    IntegerSums s;
    s.type = d.chance(60) ? DataType::kInt8 : d.chance(70) ? DataType::kFloat : DataType::kHalf;
    float const most = s.type == DataType::kInt8 ? 50 : 0.75F;
    s.f = d.chance(40)   ? FusedActivation()
          : d.chance(50) ? FusedActivation(Kind::kRelu)
          : d.chance(50) ? FusedActivation(Kind::kClip, d.chance(50) ? 0 : -0.3F * most, most)
                         : FusedActivation(Kind::kLeakyRelu, 0.3F);
    if (d.chance(40))
        s.residual = d.chance(60)                ? DataType::kInt8
                     : s.type == DataType::kInt8 ? (d.chance(60) ? DataType::kFloat : DataType::kHalf)
                                                 : s.type;
    s.bias = d.chance(60);
    s.scaleEach = d.chance(70);
    s.innerScale = d.chance(25);
    s.table = s.type == DataType::kInt8 && d.chance(25);
    return s;
}

} // namespace tw::ops
