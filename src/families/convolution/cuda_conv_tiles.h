// SPDX-License-Identifier: Apache-2.0
// Configs of convolution kernels with tiles, {tileM, tileN, stages, vector, split}, and their Specs (cuda::conv_2d,
// cuda::conv_nd), which have members of these names.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops {

template <class Spec>
Config tileConfigOf(Spec const& s)
{
    return {s.tileM, s.tileN, s.stages, s.vector, s.split};
}

// Puts a config's numbers into the spec; false: the config has others.
template <class Spec>
bool setTile(Config const& c, Spec& s)
{
    if (!isConfig(c, tileConfigOf(s).size(), 0, 256))
        return false;
    s.tileM = int(c[0]);
    s.tileN = int(c[1]);
    s.stages = int(c[2]);
    s.vector = int(c[3]);
    s.split = int(c[4]);
    return true;
}

} // namespace tw::ops
