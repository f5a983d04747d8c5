// SPDX-License-Identifier: Apache-2.0
// What hosts hand to the kernels of this folder.
#pragma once

#include "kernels/cuda/common/types.h"

namespace tw::ops::recurrence {

// Null: an optional input that is not given. Strides as in Sizes (op.h).
struct Params
{
    void const *x = nullptr, *w = nullptr, *r = nullptr, *bias = nullptr, *h0 = nullptr, *c0 = nullptr,
               *peepholes = nullptr;
    int const* lengths = nullptr;
    void *y = nullptr, *h = nullptr, *c = nullptr;
    float* rows = nullptr; // workspace: kRows rows of `hidden` numbers for each block
    cuda::i64 steps = 0, batch = 0, inputs = 0, hidden = 0;
    cuda::i64 xStep = 0, xRow = 0, yStep = 0, yRow = 0, stateDir = 0, stateRow = 0;
};

struct PersistentParams : Params
{
    // What gates get of x, of step t, sequence n, direction d, gate g: these strides in elements, without biases.
    void const* products = nullptr;
    cuda::i64 productStep = 0, productRow = 0, productDir = 0, productGate = 0;
    // States of even and odd steps (and r * h): [direction][group][2 or 3][groupSize][kPadded]; unused in clusters.
    void* exchange = nullptr;
    cuda::u32* counters = nullptr;      // of each barrier, kCounterWords apart; 0 at the start
    int firstDirection = 0, blocks = 1; // blocks of one direction and group
    int groups = 1, groupSize = 1;      // sequences that have blocks of their own
};

constexpr int kCounterWords = 32;

} // namespace tw::ops::recurrence
