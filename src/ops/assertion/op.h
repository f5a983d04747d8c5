// SPDX-License-Identifier: Apache-2.0
// No output: an error where an element of x is false.   x: bool, a shape tensor of rank 0 or 1.
// What can be known when the network is built is an error there; else the run, or the setting of shapes, fails.
#pragma once

#include "ir/attrs.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::assertion {

struct Attrs : ir::AttrsOf<Attrs>
{
    std::string message;

    Attrs() = default;
    explicit Attrs(std::string message) : message(std::move(message)) {}
    void visit(ir::AttrVisitor& v) override { v.field(1, "message", message); }
    // What the error says of element i of `count`.
    std::string failure(int64_t i, int64_t count) const;
};

} // namespace tw::ops::assertion
