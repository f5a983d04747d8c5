// SPDX-License-Identifier: Apache-2.0
// OpDef: everything the system knows of one op. Defined as a constant in src/ops/<name>/op.cpp; src/ops/ops.def lists
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "base/tensor.h"
#include "ir/graph.h"
#include "ir/infer.h"

namespace tw::ops {
class RefContext;
class Tactic;
struct Tolerance;
struct Domain;
struct LayerFacts;
using TacticList = std::span<Tactic const* const>;
} // namespace tw::ops

namespace tw::ir {

class Signs;

// Storage that an input and output 0 can share, so that the node needs no work (all inputs of concatenations, or input
// 0 of views): the part starts `offset` elements into the whole.
struct Alias
{
    bool outputInInput = true; // output 0 is a part of input `input`; false: that input is a part of output 0
    int input = 0;
    int64_t offset = 0;
};

// Output `output` is input `input` but for what is written: the node runs where both lie at one address, too.
struct InPlace
{
    int input = 0, output = 0;
    bool isRepeatable = true; // a second run over what the first one wrote gives the same
};
inline constexpr InPlace kFirstInPlace[] = {{0, 0}};

// How the regions of a node run.
enum class RegionKind : int
{
    kNone,
    kBranch, // input 0 chooses one of them
    kLoop,   // again and again while a condition holds
};

struct InputCount
{
    int least = 1, most = 1; // -1: any number
};

struct OpDef
{
    char const* name; // snake_case, the folder's name
    std::unique_ptr<AttrsBase> (*makeAttrs)() = nullptr;
    // Validates attributes and inputs, sets type and shape of every output (and contents, where the op does shape
    // arithmetic). Used with symbolic shapes at build time and with concrete ones at run time.
    Result<void> (*infer)(InferContext&) = nullptr;
    // What the op means: plain loops in double or exact integers.
    Result<void> (*reference)(ops::RefContext&) = nullptr;
    // Best first; the last accepts everything that infer() accepts.
    ops::TacticList const* cpuTactics = nullptr;
    ops::TacticList const* cudaTactics = nullptr;

    InputCount inputs = {};
    int regionCount = 0;
    // Whether the elements of input i decide output shapes (reshape dimensions, slice bounds, ...): it is a shape
    // tensor. Null: no input's do.
    bool (*isShapeInput)(Node const&, size_t i) = nullptr;
    // Inputs on which the op is defined, for random tests and the tuner's check; null: uniform in [-1, 1].
    void (*domain)(Node const&, int input, ops::Domain&) = nullptr;
    // Allowed difference of a kernel from the reference; null: ops::Tolerance's defaults.
    ops::Tolerance (*tolerance)(Node const&, DataType) = nullptr;
    // Whether no element of output 0 is below 0 (NaN may be among them), as far as the signs of its inputs tell (ir/signs.h).
    // Null: nothing is known.
    bool (*isNonNegative)(Node const&, Signs&) = nullptr;
    // What the inspector says of a node under published names, from its attributes; null: the op's name alone.
    void (*inspect)(ops::LayerFacts&) = nullptr;
    // When every listed alias is realized, the kernel is not run. Empty: no alias for these shapes. Null: never.
    std::vector<Alias> (*aliases)(Node const&, std::span<TensorRef const> inputs,
                                  std::span<TensorRef const> outputs) = nullptr;
    // True for nodes that keep state from run to run (random fill): never folded or merged with an equal node. Null: no
    // node of the op does.
    bool (*stateful)(Node const&) = nullptr;
    // Multiplications and additions of its sums of products (two for each pair); null: it has none, and what it takes is
    // a matter of the bytes that it reads and writes.
    double (*operations)(Node const&, std::span<TensorRef const> inputs, std::span<TensorRef const> outputs) = nullptr;

    // What the engine asks instead of an op's name.
    RegionKind regions = RegionKind::kNone;
    bool readsDimsOnly = false;  // looks at the dimensions of its inputs, never at their elements
    bool convertsFormat = false; // the same elements in another format
    bool isElementwise = false;  // an element of y needs that element of the inputs alone
    bool isCheap = false;        // moves or combines elements: little more than reading and writing them
    bool mixesFloats = false;    // takes f32 and f16 inputs alike, each for itself
    bool readsPart = false;      // of input 0 at most as many elements as it writes
    bool computesShapes = false; // small ones, on the host: t in the guide's signatures of layers
    std::span<InPlace const> inPlace = {};
    // Of ops with regions: from this input of a region on they are inputs of the node as it is, the last of both. Null: from
    // the first on.
    size_t (*firstCapture)(Node const&) = nullptr;

    // Those of a GPU or of CPUs; none where the op has none.
    ops::TacticList tactics(bool onGpu) const
    {
        ops::TacticList const* list = onGpu ? cudaTactics : cpuTactics;
        return list ? *list : ops::TacticList();
    }
};

} // namespace tw::ir
