// SPDX-License-Identifier: Apache-2.0
// Which constants the plan holds in the order that the chosen kernels read.
#pragma once

#include "plan/plan.h"
#include "runtime/block.h"
#include "runtime/unfold_panels.h"

namespace tw::builder {

// Those that steps read, all in the same order, and nothing else. The block's kernels are loaded; instances of profile
// 0.
runtime::Panels choosePanels(ir::Graph const& graph, runtime::LoadedBlock const& block, plan::Block const& chosen,
                             runtime::Instance const& opt, runtime::Instance const& max, int threads);

} // namespace tw::builder
