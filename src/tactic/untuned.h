// SPDX-License-Identifier: Apache-2.0
// Tactics of the user's own code. What it computes is the user's matter and running it may have effects: the tuner takes
// the first of them that works in the formats, without a run.
#pragma once

namespace tw::ops {

class UntunedTactic
{
protected:
    ~UntunedTactic() = default;
};

} // namespace tw::ops
