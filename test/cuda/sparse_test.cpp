// SPDX-License-Identifier: Apache-2.0
// Tactics for weights that follow 2:4: where they are candidates, what they refuse, and what a refit may bring them. On a
// fake driver and a compiler that compiles nothing.
#include <algorithm>

#include <gtest/gtest.h>

#include "cuda/cuda_cases.h"
#include "cuda/fake_target.h"
#include "tactic/sparsity.h"
#include "tune/candidates.h"
#include "tune/region_key.h"

namespace tw::test {

namespace {

struct SparseTactics : testing::Test
{
    std::shared_ptr<cuda::Target const> target;
    CudaCase layer;
    ops::Tactic const* tactic = nullptr;

    void SetUp() override
    {
        auto made = fakeTarget();
        ASSERT_TRUE(made.ok()) << made.error().message;
        target = *made;
    }
    // The case by its whole name, and its op's sparse tactic in that one's formats.
    void take(std::string const& name)
    {
        int failures = 0;
        std::vector<CudaCase> cases = cudaCases(name, failures, Results::kNone);
        ASSERT_EQ(failures, 0);
        auto const found = std::find_if(cases.begin(), cases.end(), [&](CudaCase const& c) { return c.name == name; });
        ASSERT_NE(found, cases.end()) << name;
        layer = std::move(*found);
        layer.problem.target.cuda = target.get();
        tactic = nullptr;
        char const* const type = layer.problem.inputs[0].type == DataType::kInt8 ? "_i8_sparse_" : "_f16_sparse_";
        for (ops::Tactic const* t : *layer.op->cudaTactics)
            if (std::string(t->name()).find(type) != std::string::npos) {
                EXPECT_TRUE(t->traits().isSparse);
                tactic = t;
            }
        ASSERT_NE(tactic, nullptr);
        auto const formats = tactic->formats(layer.problem);
        ASSERT_EQ(formats.size(), 1U);
        ops::setFormats(layer.problem, formats[0]);
    }
    // The same layer with a one in all places of the weights.
    BlobPtr withoutPattern() const
    {
        Blob const& weights = *layer.problem.inputs[1].constant;
        std::vector<uint16_t> const ones((weights.sizeBytes() + 1) / 2, 0x3c3c); // FP16 or i8
        return Blob::copy(ones.data(), weights.sizeBytes());
    }
};

TEST_F(SparseTactics, TakeWeightsThatFollow)
{
    for (char const* name : {"matrix_multiply.sparse_37x72x64_n", "matrix_multiply.sparse_129x136x200_t_residual",
                             "matrix_multiply.sparse_batch", "convolution.sparse_1x1_wide",
                             "matrix_multiply.sparse_int8_37x80x128_t_scales", "convolution.sparse_int8_1x1",
                             "convolution.sparse_3x3_channels_100_residual", "convolution.sparse_1x1_stride2"}) {
        take(name);
        SCOPED_TRACE(name);
        ops::Support const s = tactic->supports(layer.problem);
        EXPECT_TRUE(s.ok) << s.reason;
        std::vector<ops::Config> const configs = tactic->configs(layer.problem);
        EXPECT_FALSE(configs.empty());
        for (ops::Config const& c : configs)
            EXPECT_GT(tactic->estimate(layer.problem, c), 0);
    }
}

TEST_F(SparseTactics, RefuseOthers)
{
    for (auto const& [name, why] : std::vector<std::pair<char const*, char const*>>{
             {"matrix_multiply.sparse_other_axis", "does not follow 2:4"},
             {"matrix_multiply.sparse_transposed_a", "transposed"},
             {"matrix_multiply.sparse_odd_columns", "rows of y"},
             {"matrix_multiply.sparse_batch_of_weights", "their own second operands"},
             {"matrix_multiply.epilogue_residual_half", "fewer than 32"},
             {"matrix_multiply.sparse_int8_37x80x128_n_to_f16", "make i8"},
             {"convolution.sparse_other_axis", "do not follow 2:4"},
             {"convolution.sparse_int8_1x1_odd", "64 channels or more"},
             {"convolution.sparse_groups", "one group"}}) {
        take(name);
        ops::Support const s = tactic->supports(layer.problem);
        EXPECT_FALSE(s.ok) << name;
        EXPECT_NE(s.reason.find(why), std::string::npos) << name << ": " << s.reason;
    }
}

TEST_F(SparseTactics, AreCandidatesByPermission)
{
    take("convolution.sparse_1x1_odd");
    for (bool permitted : {false, true}) {
        tune::Options options;
        options.backend = ops::Backend::kCuda;
        options.target.cuda = target.get();
        options.permits.set(Permission::kSparse, permitted);
        auto const list = tune::candidates(*layer.problem.node, options);
        EXPECT_EQ(std::count(list.begin(), list.end(), tactic), permitted);
        // Weights alone tell two problems apart, where that matters.
        std::string const one = tune::cacheKey(layer.problem, options);
        BlobPtr const dense = withoutPattern();
        ops::Problem other = layer.problem;
        other.inputs[1].constant = dense.get();
        EXPECT_EQ(one == tune::cacheKey(other, options), !permitted);
        EXPECT_EQ(tune::choiceKey(layer.problem, options) == tune::choiceKey(other, options), !permitted)
            << "a dense layer's choice within one build is not that of the sparse one behind it";
    }
}

// A refit runs load() again.
TEST_F(SparseTactics, LoadRefusesWeightsWithoutThePattern)
{
    for (char const* name : {"convolution.sparse_3x3_dilated", "matrix_multiply.sparse_37x72x64_t_relu",
                             "convolution.sparse_int8_1x1_odd"}) {
        take(name);
        SCOPED_TRACE(name);
        ops::Config const config = tactic->configs(layer.problem).at(0);
        auto const image = tactic->build(layer.problem, config);
        ASSERT_TRUE(image.ok()) << image.error().message;
        auto const loaded = tactic->load(layer.problem, config, *image);
        EXPECT_TRUE(loaded.ok()) << loaded.error().message;
        BlobPtr const dense = withoutPattern();
        ops::Problem other = layer.problem;
        other.inputs[1].constant = dense.get();
        auto const refused = tactic->load(other, config, *image);
        ASSERT_FALSE(refused.ok());
        EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
        for (std::string const& part : {"layer '" + layer.problem.node->name + "'", std::string("2:4")})
            EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
    }
}

} // namespace

} // namespace tw::test
