// SPDX-License-Identifier: Apache-2.0
// Planted faults of convolutions and products: each is one that real kernels have had. All are refused, on outputs
// that are compared whole and on those of which samples are; the same kernels without a fault are not.
#include <gtest/gtest.h>

#include "interp/interp.h"
#include "ops/convolution/op.h"
#include "ops/matrix_multiply/op.h"
#include "support/case_problem.h"
#include "support/faulty_kernels.h"
#include "tactic/registry.h"

namespace tw::test {

namespace {

struct Planted
{
    int planted = 0, refused = 0;
};

template <class MakeKernel>
void plant(char const* op, ops::Case const& c, std::span<Fault const> faults, bool channelsLastToo, Planted& count,
           MakeKernel makeKernel)
{
    SCOPED_TRACE(c.name);
    auto g = makeCase(*ops::find(op), c);
    ASSERT_TRUE(g.ok()) << g.error().message;
    auto made = caseProblem(**g);
    ASSERT_TRUE(made.ok()) << made.error().message;
    ops::Problem& problem = *made;
    std::vector<ops::Formats> formats{ops::linearFormats(problem)};
    if (channelsLastToo)
        formats.push_back(ops::channelsLastFormats(problem));
    tune::Checker checker(problem);
    for (ops::Formats const& f : formats) {
        ops::setFormats(problem, f);
        auto check = [&](Fault fault) {
            auto const kernel = makeKernel(*(*g)->node, fault);
            return checker.check(problem, *kernel, "test_faulty", serialWorkers());
        };
        auto const right = check(Fault::kNone);
        ASSERT_TRUE(right.ok()) << right.error().message;
        ASSERT_TRUE(right->isRight()) << "nothing was compared";
        for (Fault fault : faults) {
            bool const isRefused = !check(fault).ok();
            EXPECT_TRUE(isRefused) << "fault " << int(fault) << " to " << nameOf(f.outputs[0]);
            ++count.planted;
            count.refused += isRefused;
        }
    }
}

} // namespace

TEST(WindowFault, ConvolutionsAreRefused)
{
    Planted count;
    struct Shape
    {
        char const* name;
        Extents x, w;
        int64_t groups, stride, dilation, pad;
    };
    for (Shape const& s : {Shape{"3x3", {2, 3, 5, 7}, {4, 3, 3, 3}, 1, 1, 1, 1},
                           Shape{"groups", {2, 6, 9, 8}, {10, 3, 3, 3}, 2, 1, 1, 1},
                           Shape{"strided", {3, 4, 11, 13}, {18, 2, 5, 5}, 2, 2, 1, 2},
                           Shape{"dilated", {2, 2, 12, 9}, {3, 2, 3, 3}, 1, 1, 2, 2},
                           Shape{"sampled", {2, 4, 31, 37}, {34, 2, 3, 3}, 2, 1, 1, 1}}) {
        ops::convolution::Attrs a = ops::convolution::Attrs::plain(2);
        a.groups = s.groups;
        a.strides.assign(2, s.stride);
        a.dilations.assign(2, s.dilation);
        a.prePadding.assign(2, s.pad);
        a.postPadding.assign(2, s.pad);
        std::vector<Fault> faults;
        for (Fault f : kConvolutionFaults)
            if (s.groups > 1 || (f != Fault::kWrongGroup && f != Fault::kNextGroupsWeights)) // one group: no fault
                faults.push_back(f);
        ops::CaseList list;
        list.add(s.name, a,
                 {ops::f32(s.x), ops::constant(DataType::kFloat, s.w), ops::constant(DataType::kFloat, {s.w[0]})});
        plant("convolution", list.cases[0], faults, true, count,
              [](ir::Node const& node, Fault f) { return std::make_unique<Convolution>(node, f); });
    }
    EXPECT_EQ(count.refused, count.planted);
    EXPECT_EQ(count.planted, 2 * (5 * 15 - 2 * 2));
}

TEST(WindowFault, ProductsAreRefused)
{
    Planted count;
    for (int64_t n : {5, 16, 33, 300}) { // 300: 3 x 60 x 300 outputs are sampled
        ops::CaseList list;
        list.add("n" + std::to_string(n), ops::matrix_multiply::Attrs(),
                 {ops::f32({3, n == 300 ? 60 : 7, 19}), ops::f32({3, 19, n})});
        plant("matrix_multiply", list.cases[0], kProductFaults, false, count,
              [](ir::Node const&, Fault f) { return std::make_unique<Product>(f); });
    }
    EXPECT_EQ(count.refused, count.planted);
    EXPECT_EQ(count.planted, 4 * 8);
}

} // namespace tw::test
