// SPDX-License-Identifier: Apache-2.0
// The parts of the list of cases, which cases.cpp puts together.
#pragma once

#include "cases/cases.h"
#include "ops/convolution/op.h"

namespace tw::ops::convolution {

// What differs from strides and dilations of 1 without padding; one number stands for all axes.
struct Form
{
    std::vector<int64_t> pad, pre, post, strides, dilations; // pad: pre and post
    int64_t groups = 1;
    PaddingMode mode = PaddingMode::kExplicitRoundDown;

    Attrs attrs(int axes, bool transposed = false) const;
};
inline Form evenly(int64_t stride, int64_t pad, int64_t dilation = 1, int64_t groups = 1)
{
    return {.pad = {pad}, .strides = {stride}, .dilations = {dilation}, .groups = groups};
}
// The case of such a node; `known`: its weights are constants.
void add(CaseList& list, DataType type, std::string const& name, Extents const& x, Extents const& w, bool bias,
         Form const& form, bool transposed = false, bool known = true);

void epilogueCases(CaseList& list);
void programCases(CaseList& list);
void int8Cases(CaseList& list);
void transposedCases(CaseList& list);

} // namespace tw::ops::convolution
