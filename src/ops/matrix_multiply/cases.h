// SPDX-License-Identifier: Apache-2.0
// The parts of the list of cases, which cases.cpp puts together.
#pragma once

#include "cases/cases.h"

namespace tw::ops::matrix_multiply {

void epilogueCases(CaseList& list);
void programCases(CaseList& list);
void int8Cases(CaseList& list);
void sparseCases(CaseList& list);
void connectedCases(CaseList& list);
void normCases(CaseList& list);
void gatedCases(CaseList& list);
void fewRowsCases(CaseList& list);
void firstNormCases(CaseList& list);

} // namespace tw::ops::matrix_multiply
