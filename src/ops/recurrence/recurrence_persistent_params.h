// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/recurrence/recurrence_params.h"

namespace tw::ops::recurrence {

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
