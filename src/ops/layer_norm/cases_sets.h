// SPDX-License-Identifier: Apache-2.0
// Cases of norms over other sets than the last dimensions.
#pragma once

namespace tw::ops {
class CaseList;
}

namespace tw::ops::layer_norm {

void addSets(CaseList& list);

} // namespace tw::ops::layer_norm
