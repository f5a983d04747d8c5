// SPDX-License-Identifier: Apache-2.0
// What the files of attention's cases share.
#pragma once

#include <functional>

#include "cases/cases.h"
#include "ops/attention/op.h"

namespace tw::ops::attention {

// Masks behind queries, keys and values; what those of bools hide becomes `fill`.
inline auto masked(std::vector<CaseInput> masks, double fill = Attrs().fill, bool keepInverted = false)
{
    return [=](Attrs& t, std::vector<CaseInput>& in) {
        t.fill = fill;
        t.keepInverted = keepInverted;
        in.insert(in.end(), masks.begin(), masks.end());
    };
}

// Adds a case of tokens [batch, rows, heads * size] and as many keys and values as `columns`, which `change` changes.
using ChangeCase = std::function<void(Attrs&, std::vector<CaseInput>&)>;
using AddTokens = std::function<void(std::string const& name, int64_t batch, int64_t rows, int64_t columns,
                                     int64_t heads, int64_t size, ChangeCase const& change)>;

// What decoders have, alone and together; of queries of `type` and keys and values of `keys`.
void decoderCases(AddTokens const& add, DataType type, DataType keys);

} // namespace tw::ops::attention
