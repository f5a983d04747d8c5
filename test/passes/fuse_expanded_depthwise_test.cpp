// SPDX-License-Identifier: Apache-2.0
#include "ops/activation/op.h"
#include "ops/convolution/op.h"
#include "pass_test.h"

namespace tw::test {

namespace {

constexpr int64_t kChannels = 3, kExpanded = 6, kRows = 5, kColumns = 4;
constexpr int64_t kExpandedBytes = kExpanded * kRows * kColumns * 4;

struct Expansion
{
    int64_t window = 1, groups = 1; // of the first convolution
    bool bias = true;
    bool shared = false; // others read what lies between
};

// The graph after fuse_activation: conv1 + relu1, dw.
void makeExpansion(GraphMaker& m, Expansion const& o = {})
{
    ir::Value* x = m.input("x", {ir::Dim::symbol("N"), kChannels, kRows, kColumns});
    auto first = ops::convolution::Attrs::plain(2), second = first;
    first.prePadding = first.postPadding = {o.window / 2, o.window / 2};
    first.groups = o.groups;
    std::vector<ir::Value*> in{x, m.constant("w1", {kExpanded, kChannels / o.groups, o.window, o.window})};
    if (o.bias)
        in.push_back(m.constant("b1", {kExpanded}));
    ir::Value* z = m.add(ops::convolution::def(), first, in, "conv1");
    z = m.add(ops::activation::def(), ops::activation::Attrs(ops::activation::Kind::kRelu), {z}, "relu1");
    second.groups = kExpanded;
    second.strides = {2, 2};
    second.prePadding = second.postPadding = {1, 1};
    ir::Value* y = m.add(ops::convolution::def(), second,
                         {z, m.constant("w2", {kExpanded, 1, 3, 3}), m.constant("b2", {kExpanded})}, "dw");
    m.output(y, "y");
    if (o.shared)
        m.output(z, "z");
    NullLog log;
    ASSERT_TRUE(passes::fuseActivation(m.g, passes::PassContext{{}, log}).ok());
}

// z takes more than twice that.
PassCheck onCpu(int64_t l2Bytes, passes::TargetInfo::Isa isa = passes::TargetInfo::Isa::kAvx2)
{
    PassCheck check;
    check.target = {passes::TargetInfo::Cpu{.isa = isa, .l2Bytes = l2Bytes}};
    return check;
}
PassCheck const kSmall = onCpu(kExpandedBytes / 2 - 1);

} // namespace

TEST(FuseExpandedDepthwise, OneNodeWithBothActivations)
{
    GraphMaker m;
    makeExpansion(m);
    checkPass(m.g, passes::fuseExpandedDepthwise, true, kSmall);
    EXPECT_EQ(nodesOf(m.g), "conv1 + relu1 + dw:expanded_depthwise");
    EXPECT_EQ(m.g.nodes[0]->layers, (std::vector<std::string>{"conv1", "relu1", "dw"}));
    EXPECT_EQ(nodesOf(*m.g.nodes[0]->body), "conv1 + relu1:convolution, dw:convolution");
    checkBody(*m.g.nodes[0]);
}

TEST(FuseExpandedDepthwise, LeavesOthersAlone)
{
    for (Expansion const& o :
         {Expansion{.window = 3}, Expansion{.groups = 3}, Expansion{.bias = false}, Expansion{.shared = true}}) {
        GraphMaker m;
        makeExpansion(m, o);
        checkPass(m.g, passes::fuseExpandedDepthwise, false, kSmall);
    }
}

TEST(FuseExpandedDepthwise, OnlyWhatDoesNotFitAndWhereKernelsAreEmitted)
{
    PassCheck gpu;
    gpu.target = kGpu;
    for (PassCheck const& check :
         {onCpu(kExpandedBytes / 2), onCpu(kExpandedBytes / 2 - 1, passes::TargetInfo::Isa::kBaseline), gpu}) {
        GraphMaker m;
        makeExpansion(m);
        checkPass(m.g, passes::fuseExpandedDepthwise, false, check);
    }
}

} // namespace tw::test
