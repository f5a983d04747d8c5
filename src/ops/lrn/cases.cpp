// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include "cases/draw.h"
#include "ops/lrn/op.h"

namespace tw::ops::lrn {

void cases(CaseList& list)
{
    auto lrn = [&](std::string name, int64_t window, float alpha, float beta, float k, CaseInput x,
                   std::vector<std::vector<double>> expected = {}) {
        Attrs a;
        a.window = window;
        a.alpha = alpha;
        a.beta = beta;
        a.k = k;
        list.add(std::move(name), a, {std::move(x)}, std::move(expected));
    };
    // Squares 1, 4, 9; windows of 3 clipped at the ends sum to 5, 14, 13; alpha / W = 1.
    lrn("by_hand", 3, 3, 1, 1, f32({3, 1, 1}, {1, 2, 3}), {{1.0 / 6, 2.0 / 15, 3.0 / 14}});
    lrn("square_root_by_hand", 1, 1, 0.5f, 16, f32({1, 1, 2}, {3, -3}), {{0.6, -0.6}});
    lrn("usual", 5, 1e-4f, 0.75f, 1, f32({2, 9, 5, 5}));
    lrn("strong", 5, 2, 0.75f, 1.5f, f32({2, 9, 17, 16}));
    lrn("beta_0.6", 3, 2, 0.6f, 0.5f, f32({2, 4, 3, 3}));
    lrn("window_beyond_channels", 15, 3, 0.75f, 1, f32({1, 4, 3, 3}));
    lrn("window_1", 1, 3, 2, 1, f32({1, 4, 3, 3}));
    lrn("negative_alpha", 3, -0.5f, 1.5f, 2, f32({1, 4, 3, 3}));
    lrn("rank_5", 3, 1, 0.75f, 1, f32({2, 2, 4, 3, 3}));
    lrn("half", 5, 2, 0.75f, 1, input(DataType::kHalf, {1, 8, 4, 4}));
    lrn("empty", 3, 1, 0.75f, 1, f32({2, 0, 3, 3}));
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    a.window = 2 * d.from(0, 7) + 1;
    a.alpha = float(d.from(0, 8)) / 4;
    a.beta = float(d.from(1, 8)) / 4;
    a.k = float(d.from(1, 8)) / 4;
    list.add(name, a, {input(d.type(), d.extents(int(d.from(3, 4)), 24))});
}

} // namespace tw::ops::lrn
