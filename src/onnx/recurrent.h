// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM of ONNX: what a node says, and its cells spelled out in layers, for what no recurrent layer can say.
#pragma once

#include <string>
#include <vector>

#include "onnx/importer.h"

namespace tw::onnx {

struct CellFunction
{
    std::string name; // as ONNX has it, in lower case
    float alpha = 0, beta = 0;
};

struct Recurrent
{
    enum class Cell
    {
        kRnn,
        kLstm,
        kGru,
    };
    Cell cell = Cell::kRnn;
    int gates = 1, functionsEach = 1, directions = 1;
    bool reverse = false; // one direction, from the last step to the first
    int hidden = 0;
    bool batchFirst = false;
    bool linearBeforeReset = false, inputForget = false;
    float clip = 0;                                       // 0: none
    std::vector<CellFunction> functions;                  // functionsEach of each direction
    Dims x{};                                             // of input 0
    int steps() const { return x.d[batchFirst ? 1 : 0]; } // -1: not known yet
    bool isReverse(int d) const { return reverse || d == 1; }
    CellFunction const& function(int d, int i) const { return functions[size_t(d * functionsEach + i)]; }
};

// Inputs and outputs of the node, in ONNX's order.
enum RecurrentInput : int
{
    kInX = 0,
    kInW = 1,
    kInR = 2,
    kInB = 3,
    kInLengths = 4,
    kInH = 5,
    kInC = 6,
    kInP = 7,
};

// Attributes and dimensions, checked.
Recurrent readRecurrent(ImportContext& ctx, Recurrent::Cell cell);
// Sets the outputs out of y [T,N,D*H] and states [N,D,H] (null: none).
void setRecurrentOutputs(ImportContext& ctx, Recurrent const& r, ITensor& y, bool stepsFirst, ITensor& h, ITensor* c);
// A loop over the steps for each direction, with a layer for each operation of a cell.
void importSpelled(ImportContext& ctx, Recurrent const& r);

} // namespace tw::onnx
