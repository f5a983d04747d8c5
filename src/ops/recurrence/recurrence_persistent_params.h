// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/recurrence/recurrence_params.h"

namespace tw::ops::recurrence {

struct PersistentParams : Params
{
    // What gates get of x, of step t, sequence n, direction d, gate g: these strides in elements, without biases.
    void const* products = nullptr;
    cuda::i64 productStep = 0, productRow = 0, productDir = 0, productGate = 0;
    void* exchange = nullptr;           // states of even and odd steps (and r * h): [direction][2 or 3][batch][kPadded]
    cuda::u32* counters = nullptr;      // of each direction's barrier, kCounterWords apart; 0 at the start
    int firstDirection = 0, blocks = 1; // blocks of one direction
};

constexpr int kCounterWords = 32;

} // namespace tw::ops::recurrence
