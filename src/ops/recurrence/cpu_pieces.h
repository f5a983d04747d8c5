// SPDX-License-Identifier: Apache-2.0
// A layer's work in pieces that need nothing of each other within a step: all gates of a range of hidden units of one
// direction, for a range of sequences. What is known of a layer when it is loaded, and of one set of shapes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/workers.h"
#include "device/large_pages.h"
#include "kernels/cpu/gemm_jit.h"
#include "ops/recurrence/op.h"
#include "ops/recurrence/steps.h"
#include "tactic/cpu_tactic.h"

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
    // Of hidden units [first, first + width) of direction d, of which those that exist are written.
    // Rows of gates [firstGate, firstGate + count) of a matrix that has k numbers for each gate and hidden unit:
    // [count][width][k].
    void copyRows(int d, int64_t first, int64_t width, float const* matrix, int64_t k, int firstGate, int count,
                  float* to) const;
    // Both biases, [gates][width], but the recurrent one of the gate whose product the reset gate acts on, [width].
    void copyBias(int d, int64_t first, int64_t width, float const* bias, float* to, float* stateBias) const;
    void copyPeepholes(int d, int64_t first, int64_t width, float const* peepholes, float* to) const; // [3][width]
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
// Without units.
Result<Layer> layerOf(CpuTactic const& tactic, Problem const& p, int vectors);
Result<Layer> dividedLayerOf(CpuTactic const& tactic, Problem const& p, int vectors, bool sharesRows);

// What a run of a layer has of its arguments; states lie in rows of the layer's stride, [direction][sequence].
struct LayerRun
{
    RunArgs& args;
    Sizes const s;
    int64_t const stride;
    float* const floats; // the workspace

    LayerRun(Layer const& layer, RunArgs& runArgs)
        : args(runArgs), s(sizesOf(layer.attrs, runArgs.inputs[kX].dims)), stride(layer.stride),
          floats(static_cast<float*>(runArgs.workspace))
    {}
    TensorRef const* input(int i) const // null: there is none
    {
        return i < int(args.inputs.size()) && args.inputs[size_t(i)].data ? &args.inputs[size_t(i)] : nullptr;
    }
    int64_t stateFloats() const { return s.directions * s.batch * stride; }
    void loadStates(int i, float* to) const; // zeros without the input
    void storeStates(int output, float const* from) const;
};

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

// Work in phases that workers share, each phase when all of the one before is done.
inline constexpr int kMostParts = 64;

// Calls body(phase, part) once for each phase in order and each part of it. A part has a worker whose own it is,
// so that what it reads stays in that one's cache; but whoever has nothing else to do takes a part that nobody has begun:
// no phase waits for a worker that does not come. parts <= kMostParts.
void runPhases(Workers& workers, int64_t phases, int parts, FunctionRef<void(int64_t phase, int part)> body);

} // namespace tw::ops::recurrence
