// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/types.h"

namespace tw::ops::pooling {

// Text of what a thread computes with in windows of linear images. T: an element in memory. Cell: two columns of FP16
// whose maximum is sought, or one column as a float; PER: its columns. NOTHING: a word of elements that change no
// result. join() of two cells, cellOf() column i * PER of words, pick() columns a and b of cells; AVERAGES.
std::string cellsText(DataType type, bool averages);

// Whether cells are pairs.
inline bool hasPairs(DataType type, bool averages)
{
    return type == DataType::kHalf && !averages;
}

} // namespace tw::ops::pooling
