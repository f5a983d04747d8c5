// SPDX-License-Identifier: Apache-2.0
// y = f((x - mean) / sqrt(variance + epsilon) * gamma + beta), mean and variance of each set of x's numbers; with `rms`
// the mean counts as 0. x, y: f32 or f16, one shape. With `integers` what quantize makes of y (as it is stored) by the
// last input, a scale, f32 [] or [1], takes y's place (1) or is a second output (2).
// A set is what the dimensions from `axis` on hold together, those in `kept` apart: each of their positions has sets of
// its own. With groups > 1 dimension `channel` is cut into so many equal parts, each with sets of its own.
//   layer norm            axis = the first normalized dimension
//   channels-first        axis = 1, kept = {2, 3}
//   instance norm         axis = 2, channel = 1;                of NHWC axis = 1, kept = {3}, channel = 3
//   group norm            axis = 1, channel = 1, groups;        of NHWC axis = 1, channel = 3, groups
// gamma, beta: of x's type; either may be missing, and is no input then. [n], a number for each place in a set, the
// dimensions of which are neighbours; or, where there is a `channel`, [C], one for each position in that dimension.
// f: an activation, or nothing. Made by passes; the node's body holds the nodes it stands for.
#pragma once

#include "families/elementwise/activate.h"
#include "ir/attrs.h"

namespace tw::ops::layer_norm {

struct Attrs : ir::AttrsOf<Attrs>
{
    int64_t axis = 0; // 0 .. rank - 1
    double epsilon = 1e-5;
    bool hasGamma = true, hasBeta = true;
    int64_t kept = 0;     // bit i: dimension i, behind `axis`
    int64_t channel = -1; // negative: none
    int64_t groups = 1;
    bool rms = false;
    FusedActivation activation;
    int64_t integers = 0; // 0, 1 or 2

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "axis", axis);
        v.field(2, "epsilon", epsilon);
        v.field(3, "has_gamma", hasGamma);
        v.field(4, "has_beta", hasBeta);
        v.field(5, "kept", kept);
        v.field(6, "channel", channel);
        v.field(7, "groups", groups);
        v.field(8, "rms", rms);
        activation.visit(v, 9);
        v.field(12, "integers", integers);
    }

    int inputCount() const { return 1 + hasGamma + hasBeta + (integers != 0); }
    int scaleInput() const { return integers ? inputCount() - 1 : -1; }
    int integersOutput() const { return integers == 2 ? 1 : 0; } // where there are any
    bool keepsFloats() const { return integers != 1; }
    int gammaInput() const { return hasGamma ? 1 : -1; }
    int betaInput() const { return hasBeta ? 1 + hasGamma : -1; }
    bool isNormalized(int dimension) const { return dimension >= axis && !(kept >> dimension & 1); }
    // The last dimensions together, with numbers for each place: what other ops may end with.
    bool isOfRows() const { return kept == 0 && channel < 0 && groups == 1; }
};

} // namespace tw::ops::layer_norm
