// SPDX-License-Identifier: Apache-2.0
// --safe with --useDLACore: a DLA loadable, run through libcudla, which is opened by name.
#pragma once

#include "build.h"

namespace tw::trtexec {

// False when outputs lie beyond the tolerance of --compare.
bool runLoadable(Log& log, Options const& options, Workspace const& work);

} // namespace tw::trtexec
