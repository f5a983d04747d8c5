// SPDX-License-Identifier: Apache-2.0
// A layer of recurrent cells over whole sequences: y, h_n (and c_n of LSTM) = recurrence(x, r, w?, bias?, lengths?, h0?,
// c0?, peepholes?). T steps, N sequences, E numbers for each step, H hidden units, D directions, G gates.
//   x [T,N...,E], y [T,N...,D*H], h0, c0, h_n, c_n [D,N...,H]; batch first: x [N...,T,E], y [N...,T,D*H], h0, ...
//   [N...,D,H]; r [D,G*H,H], w [D,G*H,E] (none: x is added to every gate, E = H), bias [D,2*G*H] (of w, then of r),
//   lengths i32 [N...], peepholes [D,3*H] (of i, o, f)
// Gates stand in the order i of RNN; i, o, f, c of LSTM; z, r, h of GRU. With P = W x + b of the gate, clipped to
// [-clip, clip] with all that is added before a function:
//   RNN   h' = f(P_i + R_i h)
//   LSTM  i, f = f(P + R h + p c); c' = f * c + i * g(P_c + R_c h); o = f(P_o + R_o h + p_o c'); h' = o * h(c')
//         input_forget: f = 1 - i
//   GRU   z, r = f(P + R h); n = g(P_h + R_h (r * h)); h' = (1 - z) * n + z * h
//         linear_before_reset: n = g(W_h x + b + r * (R_h h + b'))
// A sequence of length l (clamped to 0..T) has steps 0..l - 1; reverse takes them from l - 1 to 0. y is 0 in steps past
// it, h_n and c_n are the state after its last step.
#pragma once

#include "ir/attrs.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::recurrence {

enum class Cell : int
{
    kRnn = 0,
    kLstm = 1,
    kGru = 2,
};
enum class Direction : int
{
    kForward = 0,
    kReverse = 1,
    kBoth = 2, // forward, then reverse
};
enum class Function : int
{
    kSigmoid = 0,
    kTanh = 1,
    kRelu = 2,
    kAffine = 3,          // alpha x + beta
    kLeakyRelu = 4,       // x >= 0 ? x : alpha x
    kThresholdedRelu = 5, // x > alpha ? x : 0
    kScaledTanh = 6,      // alpha tanh(beta x)
    kHardSigmoid = 7,     // min(max(alpha x + beta, 0), 1)
    kElu = 8,             // x >= 0 ? x : alpha (exp x - 1)
    kSoftsign = 9,        // x / (1 + |x|)
    kSoftplus = 10,       // log(1 + exp x)
};
inline constexpr int kFunctions = 11;

enum Input : int
{
    kX = 0,
    kR = 1,
    kW = 2, // none: x is added to every gate, E = H
    kBias = 3,
    kLengths = 4,
    kH0 = 5,
    kC0 = 6,
    kPeepholes = 7,
    kInputs = 8,
};

struct Attrs : ir::AttrsOf<Attrs>
{
    Cell cell = Cell::kRnn;
    Direction direction = Direction::kForward;
    int64_t hidden = 1;
    // For each direction f (RNN); f, g (GRU); f, g, h (LSTM). Empty: tanh; sigmoid, tanh; sigmoid, tanh, tanh.
    std::vector<int64_t> functions;
    std::vector<double> alpha, beta; // as many as functions
    double clip = 0;                 // 0: none
    bool linearBeforeReset = false;
    bool inputForget = false;
    bool batchFirst = false;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "cell", cell);
        v.field(2, "direction", direction);
        v.field(3, "hidden", hidden);
        v.field(4, "functions", functions);
        v.field(5, "alpha", alpha);
        v.field(6, "beta", beta);
        v.field(7, "clip", clip);
        v.field(8, "linear_before_reset", linearBeforeReset);
        v.field(9, "input_forget", inputForget);
        v.field(10, "batch_first", batchFirst);
    }
};

inline constexpr int gatesOf(Cell cell)
{
    return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1;
}
inline constexpr int functionsOf(Cell cell) // of one direction
{
    return cell == Cell::kLstm ? 3 : cell == Cell::kGru ? 2 : 1;
}
inline constexpr int directionsOf(Attrs const& a)
{
    return a.direction == Direction::kBoth ? 2 : 1;
}

struct Activation
{
    Function function = Function::kTanh;
    double alpha = 0, beta = 0;
};
// Function i of direction d, the default one where none is given.
Activation activationOf(Attrs const& a, int d, int i);
// Whether all functions are the default ones.
bool hasDefaultFunctions(Attrs const& a);

// Numbers of one run, and where things lie, in elements.
struct Sizes
{
    int64_t steps = 0, batch = 0, inputs = 0, hidden = 0;
    int directions = 1, gates = 1;
    int64_t xStep = 0, xRow = 0;        // x of step t and sequence n: t * xStep + n * xRow
    int64_t yStep = 0, yRow = 0;        // y likewise; direction d is hidden * d further
    int64_t stateDir = 0, stateRow = 0; // states of direction d and sequence n: d * stateDir + n * stateRow

    bool isReverse(Attrs const& a, int d) const { return a.direction == Direction::kReverse || d == 1; }
};
Sizes sizesOf(Attrs const& a, Extents const& x);

// Axes [begin, end) of input or output i that count sequences; none: it is the same for all of them.
struct RowAxes
{
    int begin = 0, end = 0;
};
RowAxes rowAxes(ir::Node const& node, bool isOutput, int i);

} // namespace tw::ops::recurrence
