// SPDX-License-Identifier: Apache-2.0
// --maxLoss: which layers to compute in FP32 so that the outputs lose no more than stated, and the engine stays as fast as it
// can.
#pragma once

#include "accuracy_report.h"
#include "build.h"

namespace tw::trtexec {

// Builds engines of the options' precisions with more and more layers in FP32 and runs them on the recorded inputs. The loss
// of an engine is the largest of its outputs' relative errors (root of sum (out - ref)^2 / sum ref^2); ref: what --compare
// names, else the model in FP32. Layers are ranked by the loss that each takes away alone (a build for each), then the
// fewest of them in that order that suffice are found by bisection, then those go that are not needed. The chosen engine's
// plan is left in `work`, as buildPlan() would.
PrecisionSearch searchPrecisions(Log& log, LibraryLogger& logger, Options const& options, Workspace& work);

} // namespace tw::trtexec
