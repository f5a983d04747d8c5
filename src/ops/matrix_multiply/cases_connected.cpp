// SPDX-License-Identifier: Apache-2.0
// Cases of fully connected layers.
#include "ops/matrix_multiply/cases.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops::matrix_multiply {

void connectedCases(CaseList& list)
{
    auto add = [&](std::string const& name, Attrs a, std::vector<CaseInput> in,
                   std::vector<std::vector<double>> expected = {}) {
        list.add("connected_" + name, std::move(a), std::move(in), std::move(expected));
    };
    auto connect = [&](char const* name, DataType t, Extents const& x, Extents const& w, bool bias) {
        std::vector<CaseInput> in{input(t, x), constant(t, w)};
        if (bias)
            in.push_back(constant(t, {w[0]}));
        add(name, Attrs::fullyConnected(), in);
    };
    add("by_hand", Attrs::fullyConnected(),
        {f32({1, 2, 1, 2}, {1, 2, 3, 4}), constant(DataType::kFloat, {2, 4}, {1, 1, 1, 1, 1, 0, -1, 0}),
         constant(DataType::kFloat, {2}, {0, 10})},
        {{10, 8}});
    connect("rank_3", DataType::kFloat, {3, 4, 5}, {7, 60}, true);
    connect("batch_1", DataType::kFloat, {1, 3, 4, 5}, {33, 60}, true);
    connect("batch_9", DataType::kFloat, {9, 3, 4, 5}, {33, 60}, false);
    connect("kernel_4d", DataType::kFloat, {5, 3, 4, 5}, {8, 3, 4, 5}, true);
    connect("batch_dims", DataType::kFloat, {2, 3, 4, 1, 1}, {5, 4}, true);
    connect("one_output", DataType::kFloat, {6, 40, 1, 1}, {1, 40}, true);
    connect("large", DataType::kFloat, {5, 10, 6, 7}, {260, 420}, true);
    connect("inner_huge", DataType::kFloat, {15, 5001, 1, 1}, {34, 5001}, true);
    connect("empty_batch", DataType::kFloat, {0, 3, 2, 2}, {5, 12}, true);
    connect("no_channels", DataType::kFloat, {2, 0, 2, 2}, {5, 0}, true);
    connect("half_1", DataType::kHalf, {1, 3, 4, 5}, {9, 60}, true);
    connect("half_rows", DataType::kHalf, {131, 8, 5, 5}, {72, 200}, true);
    connect("half_1000", DataType::kHalf, {1, 512, 1, 1}, {1000, 512}, true);
    connect("half_no_bias", DataType::kHalf, {2, 3, 8, 3, 3}, {71, 8, 3, 3}, false);
    connect("half_6", DataType::kHalf, {6, 3, 4, 5}, {9, 60}, false);
    using activation::Kind;
    add("epilogue_relu_by_hand", Attrs::fullyConnected(Kind::kRelu),
        {f32({1, 2, 1, 1}, {1, -2}), constant(DataType::kFloat, {2, 2}, {1, 1, 3, 1}),
         constant(DataType::kFloat, {2}, {0.5, 0})},
        {{0, 1}});
    for (int k = FusedActivation::kNone; k < kFusedKindCount; ++k) {
        FusedActivation const f(FusedKind(k), 0.3F, 1.25F);
        add("epilogue_kind" + std::to_string(k + 1), Attrs::fullyConnected(f),
            {f32({3, 4, 5, 2}), constant(DataType::kFloat, {9, 40}), constant(DataType::kFloat, {9})});
    }
    add("epilogue_half", Attrs::fullyConnected(Kind::kSigmoid),
        {input(DataType::kHalf, {2, 3, 4, 5}), constant(DataType::kHalf, {7, 60}), constant(DataType::kHalf, {7})});
    add("epilogue_half_rows", Attrs::fullyConnected(FusedActivation(FusedKind::kHardSwish, 0.25f, 0.5f)),
        {input(DataType::kHalf, {70, 8, 5, 5}), constant(DataType::kHalf, {136, 200}),
         constant(DataType::kHalf, {136})});
    for (DataType t : {DataType::kHalf, DataType::kFloat})
        add(isNarrowFloat(t) ? "epilogue_half_residual" : "epilogue_residual", Attrs::fullyConnected(Kind::kRelu),
            {input(t, {3, 4, 5, 2}), constant(t, {9, 40}), constant(t, {9}), input(t, {3, 9, 1, 1})});
    add("epilogue_one", Attrs::fullyConnected(Kind::kTanh),
        {input(DataType::kHalf, {6, 1, 1, 1}), constant(DataType::kHalf, {1, 1}), constant(DataType::kHalf, {1})});
}

} // namespace tw::ops::matrix_multiply
