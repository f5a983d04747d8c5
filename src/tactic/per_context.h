// SPDX-License-Identifier: Apache-2.0
// Kernels that have an object of their own for each execution context. The context has it made, before the first run, and
// lends it to all its instances (RunArgs::kept); a kernel that finds none lent makes one for itself.
#pragma once

#include <memory>

#include "base/result.h"
#include "tactic/tactic.h"

namespace tw::ops {

struct Lent final : Kept
{
    explicit Lent(std::shared_ptr<Kept> s) : state(std::move(s)) {}
    std::shared_ptr<Kept> state;
};

class PerContext
{
public:
    // `shared` belongs to the context: what the objects of one context have in common, made by the first that wants it.
    // Null: this kernel needs none.
    virtual Result<std::shared_ptr<Kept>> makeState(std::shared_ptr<void>& shared) const = 0;

protected:
    ~PerContext() = default;
};

} // namespace tw::ops
