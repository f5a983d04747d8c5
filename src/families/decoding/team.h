// SPDX-License-Identifier: Apache-2.0
// The host's side of team.cuh.
#pragma once

#include "kernels/cuda/common/launch.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::decoding {

constexpr int kTeam = 8, kTeamBlockThreads = 512; // blocks that share a row: as many as any cluster may have

inline Support supportsTeam(Problem const& problem)
{
    bool const is = problem.target.cuda && problem.target.cuda->capability >= 90;
    return is ? Support::yes() : Support::no("needs clusters of blocks, compute capability 9.0");
}
inline std::string teamSource(int team)
{
    return cuda::constant("TEAM", team) + cuda::constant("kThreads", kTeamBlockThreads);
}
// Kernel 0, on so many rows.
template <class Params>
Result<void> launchTeams(CudaLaunch const& launch, int64_t rows, int team, Params const& params)
{
    cuda::LaunchGeometry g;
    g.grid = rows * team;
    g.block = kTeamBlockThreads;
    g.cluster = team;
    return rows > 0 ? launch.withGeometry(0, g, {&params}) : Result<void>();
}

} // namespace tw::ops::decoding
