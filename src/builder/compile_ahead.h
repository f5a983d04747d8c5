// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "builder/build.h"
#include "builder/points.h"
#include "runtime/block.h"

namespace tw::builder {

// Compiles on all workers what the choice of tactics will ask for: the compiler keeps each source. Failures show again
// when the tactic is tried.
void compileAhead(runtime::LoadedBlock const& block, runtime::Instance const& opt, runtime::Instance const& max,
                  ShapePoints const& points, Options const& options);
// The same for nodes in the types that they are tried in.
void compileAhead(runtime::LoadedBlock const& block, runtime::Instance const& opt, runtime::Instance const& max,
                  Variants const& variants, Originals const& originals, ShapePoints const& points,
                  Options const& options);

} // namespace tw::builder
