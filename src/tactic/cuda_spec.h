// SPDX-License-Identifier: Apache-2.0
// Kernels of kernels/cuda that are one text, which a Spec describes: source(spec), and sharedBytes() of a block.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops {

template <class Spec>
CudaSource wholeSource(char const* name, Spec const& spec)
{
    return wholeSource(name, source(spec), spec.sharedBytes());
}

} // namespace tw::ops
