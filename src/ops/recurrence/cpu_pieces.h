// SPDX-License-Identifier: Apache-2.0
// A layer's work in pieces that need nothing of each other within a step: all gates of a range of hidden units of one
// direction, for a range of sequences. What is known of a layer when it is loaded, and of one set of shapes.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "device/large_pages.h"
#include "kernels/cpu/gemm_jit.h"
#include "ops/recurrence/op.h"
#include "ops/recurrence/steps.h"

namespace tw::ops::recurrence {

// Hidden units [first, first + width) of a direction; width: whole vectors, the last may reach past the last unit.
// Columns of products: [gate][unit].
struct Units
{
    int direction = 0;
    int64_t first = 0, width = 0;
    device::PackedFloats w, bias;      // of all gates, of x; both biases, but that of the next line
    device::PackedFloats recurrent[2]; // of the gates of each phase
    device::PackedFloats stateBias;    // of GRU's hidden gate, where it is added before the reset gate acts
    device::PackedFloats peepholes;    // LSTM's, [3][width]
};

struct Layer
{
    Attrs attrs;
    StepKernels const* kernels = nullptr;
    kernels::GemmJitOptions product;             // of states; of x with a bias
    int64_t l1Bytes = 0, inputs = 0, stride = 0; // stride: hidden units in whole vectors
    bool hasW = false;                           // and something to multiply by it
    bool skips = false;                          // there is no w
    bool options = false;                        // of the kernels: clip, input_forget or peepholes
    bool sharesRows = false;                     // workers share the sequences, else the hidden units
    int threads = 1;
    std::vector<Units> units;

    int gates() const { return gatesOf(attrs.cell); }
    bool isTwoPhase() const { return attrs.cell == Cell::kGru && !attrs.linearBeforeReset; }
    int phases() const { return isTwoPhase() ? 2 : 1; } // of a step
    int gatesIn(int phase) const { return !isTwoPhase() ? gates() : phase == 0 ? 2 : 1; }
    int splits() const; // of each direction
    kernels::GemmJitOptions optionsOf(int64_t rowStride, bool bias) const;
};
// Input i where it is known; null where it is not, or absent.
Blob const* blobOf(Problem const& p, int i);
// Whether the fast tactics' kernels compute such cells, of known weights.
Support supportsKnownFloats(Problem const& p);
// Microseconds at `share` of what the instructions can do.
double estimateOf(Problem const& p, kernels::jit::Isa isa, double share);
StepKind stepKindOf(Attrs const& a, int phase);
// Whether it has what only the kernels with options know.
bool hasOptions(Attrs const& a, bool peepholes);
Result<Layer> layerOf(Problem const& p, kernels::jit::Isa isa, int vectors, bool sharesRows);

// Sequences [first, first + rows) of some units.
struct Piece
{
    Units const* units = nullptr;
    int64_t first = 0, rows = 0;
    // Of x for `chunk` steps and for those that are left at the end; of states.
    std::shared_ptr<kernels::GemmJit const> inputs, lastInputs, states[2];
    // In the workspace, in floats.
    int64_t product = 0, sums = 0, gathered = 0, pointers = 0, scratch = 0;
    int64_t chunk = 1; // steps whose products of x are computed at once
};

struct Pieces final : Prepared
{
    std::vector<Piece> list;
    int64_t states = 0, cells = 0, updates = 0, resets = 0, total = 0; // in the workspace, in floats
};
// For x of these dimensions. Without products, where only sizes are asked for.
Result<std::shared_ptr<Pieces>> piecesOf(Layer const& layer, Extents const& x, bool withProducts);

} // namespace tw::ops::recurrence
