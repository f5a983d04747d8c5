// SPDX-License-Identifier: Apache-2.0
// The parts of the list of cases, which cases.cpp puts together.
#pragma once

#include "cases/cases.h"

namespace tw::ops::convolution {

void epilogueCases(CaseList& list);
void programCases(CaseList& list);
void int8Cases(CaseList& list);
void sparseCases(CaseList& list);
void transposedCases(CaseList& list);
void windowCases(CaseList& list);

} // namespace tw::ops::convolution
