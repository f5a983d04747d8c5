// SPDX-License-Identifier: Apache-2.0
// One step of recurrent cells in FP32, for each instruction set: the product of states and recurrent weights of a range
// of hidden units, all gates of a unit at once, and the cell behind it in registers.
//
// Hidden units stand in blocks of a vector's width V; rows of states have `stride` numbers, whole blocks. r holds panels:
// [block][k of states][gate][V].
#pragma once

#include <cstdint>

namespace tw::ops::recurrence {

struct Step
{
    int64_t hidden = 0, stride = 0, rows = 0;
    int64_t gate = 0;              // of the input, from one gate to the next
    float const* h = nullptr;      // what is multiplied, [rows, stride]
    float const* before = nullptr; // states before the step
    float* to = nullptr;           // states behind it
    float* c = nullptr;            // cell states, in place
    float* z = nullptr;            // GRU in two phases: update gates from the first to the second
    float const* r = nullptr;      // panels
    float const* bias = nullptr;   // of the product of GRU's hidden gate, where it is added before the reset gate acts
    float clip = 0;                // the most and, negative, the least of what a function is applied to
    bool inputForget = false;      // LSTM
    float const* peepholes = nullptr; // LSTM's of i, o, f, one `peepholeRow` after the other; null: none
    int64_t peepholeRow = 0;
    float const* const* x = nullptr; // of each row, what gate g gets of its input at g * gate; null: past its end
    float* const* y = nullptr;       // of each row
    float const* sums = nullptr;     // where products were computed before: of row n, gate g: n * sumsRow + g * gate
    int64_t sumsRow = 0;
    int64_t begin = 0, end = 0; // blocks
    bool backwards = false;     // from the last block to the first
};

enum StepKind : int
{
    kStepTanh,
    kStepRelu,
    kStepLstm,
    kStepGruLinear, // all of a GRU whose reset gate acts behind the product
    kStepGruGates,  // the others: z and, in `to`, r * h
    kStepGruState,  // with h = r * h; x begins at the hidden gate
    kStepKinds,
};

using StepKernel = void (*)(Step const&);
struct StepKernels
{
    int floats; // V
    // Without and with clip, inputForget and peepholes.
    StepKernel step[2][kStepKinds];
    StepKernel cells[2][kStepKinds]; // the cells alone, of sums in memory; blocks from 0 on
};

} // namespace tw::ops::recurrence

namespace tw::avx2 {
extern ops::recurrence::StepKernels const kSteps;
}
namespace tw::avx512 {
extern ops::recurrence::StepKernels const kSteps;
}
