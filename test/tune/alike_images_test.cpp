// SPDX-License-Identifier: Apache-2.0
// Large batches are checked with few images, repeated: where an image of the output depends on that image of the inputs alone, and
// nowhere else.
#include <gtest/gtest.h>

#include "ops/activation/op.h"
#include "ops/cumulative_sum/op.h"
#include "ops/elementwise/op.h"
#include "ops/softmax/op.h"
#include "tactic/registry.h"
#include "tune/check_set.h"

namespace tw::tune {

namespace {

constexpr int64_t kBatch = 40;

class AlikeImagesTest : public testing::Test
{
protected:
    ir::Value* input(Extents const& dims)
    {
        std::vector<ir::Dim> shape;
        for (int64_t d : dims)
            shape.push_back(ir::Dim(d));
        return graph.addInput("x" + std::to_string(graph.inputs.size()), DataType::kFloat, shape);
    }
    // The set of the node at its inputs' sizes.
    CheckSet setOf(ir::OpDef const& op, std::unique_ptr<ir::AttrsBase> attrs, std::vector<ir::Value*> const& inputs)
    {
        ops::Problem p;
        p.node = *graph.addNode(op, std::move(attrs), inputs, "node");
        auto const spec = [](ir::Value const* v) {
            ops::TensorSpec s;
            s.type = v->type;
            s.dims = s.maxDims = ir::extentsOf(v->shape);
            s.present = true;
            return s;
        };
        for (ir::Value const* v : p.node->inputs)
            p.inputs.push_back(spec(v));
        for (ir::Value const* v : p.node->outputs)
            p.outputs.push_back(spec(v));
        CheckSet set;
        auto const done = set.fill(p, CheckSet::Values::kFirst);
        EXPECT_TRUE(done.ok()) << done.error().message;
        EXPECT_EQ(set.incomparable(), "");
        return set;
    }
    // Output 0, whole: what the op's reference makes of the repeated images, and that the set accepts it and nothing else.
    void expectRight(CheckSet& set, float (*f)(float))
    {
        ASSERT_TRUE(set.images());
        EXPECT_EQ(set.inputs()[0].dims[0], AlikeImages::kOriginals);
        Tensor x(DataType::kFloat, set.outputs()[0].dims), y(DataType::kFloat, set.outputs()[0].dims);
        set.images()->repeat(set.inputs()[0], x.ref(), serialWorkers());
        for (int64_t i = 0; i < y.count(); ++i)
            y.ref().as<float>()[i] = f(x.ref().as<float>()[i]);
        EXPECT_EQ(set.compare(0, y.ref(), ops::Rounding::kPlain), "");
        int64_t const image = y.count() / kBatch;
        for (int64_t n = 0; n < kBatch; ++n) { // each image has samples
            std::vector<float> const kept(y.ref().as<float>() + n * image, y.ref().as<float>() + (n + 1) * image);
            for (int64_t i = 0; i < image; ++i)
                y.ref().as<float>()[n * image + i] += 1;
            isMissed += set.compare(0, y.ref(), ops::Rounding::kPlain).empty();
            std::copy(kept.begin(), kept.end(), y.ref().as<float>() + n * image);
        }
    }

    ir::Graph graph;
    int isMissed = 0; // images whose faults no sample shows
};

float relu(float v)
{
    return v > 0 ? v : 0;
}

TEST_F(AlikeImagesTest, ImagesOfTheirOwn)
{
    CheckSet set = setOf(ops::activation::def(), std::make_unique<ops::activation::Attrs>(ops::activation::Kind::kRelu),
                         {input({kBatch, 4, 96, 96})});
    expectRight(set, relu);
    EXPECT_LE(isMissed, 2);
    std::vector<int> count(AlikeImages::kOriginals, 0);
    for (int64_t n = 0; n < kBatch; ++n) {
        ++count[size_t(set.images()->original(n))];
        EXPECT_TRUE(n == 0 || set.images()->original(n) != set.images()->original(n - 1)); // neighbours differ
    }
    for (int c : count)
        EXPECT_GT(c, kBatch / 8);
}

TEST_F(AlikeImagesTest, SoftmaxOverImagesIsWhole)
{
    for (int64_t axis : {0, 1, 3}) {
        auto attrs = std::make_unique<ops::softmax::Attrs>();
        attrs->axis = axis;
        CheckSet const set = setOf(ops::softmax::def(), std::move(attrs), {input({kBatch, 4, 96, 96})});
        EXPECT_EQ(set.images() != nullptr, axis != 0) << axis;
        EXPECT_EQ(set.inputs()[0].dims[0], axis == 0 ? kBatch : AlikeImages::kOriginals);
    }
}

TEST_F(AlikeImagesTest, SumsOverImagesAreWhole)
{
    for (int64_t axis : {0, 2})
        for (bool reverse : {false, true}) {
            auto attrs = std::make_unique<ops::cumulative_sum::Attrs>();
            attrs->axis = axis;
            attrs->reverse = reverse;
            CheckSet const set = setOf(ops::cumulative_sum::def(), std::move(attrs), {input({kBatch, 4, 96, 96})});
            EXPECT_EQ(set.images() != nullptr, axis != 0) << axis;
        }
}

TEST_F(AlikeImagesTest, SecondInputs)
{
    using ops::elementwise::Attrs;
    ir::Value* const x = input({kBatch, 4, 96, 96});
    CheckSet const both = setOf(ops::elementwise::def(), std::make_unique<Attrs>(), {x, input({kBatch, 4, 96, 96})});
    ASSERT_TRUE(both.images());
    EXPECT_TRUE(both.images()->hasImages(0) && both.images()->hasImages(1));
    CheckSet const spread = setOf(ops::elementwise::def(), std::make_unique<Attrs>(), {x, input({1, 4, 96, 96})});
    ASSERT_TRUE(spread.images());
    EXPECT_TRUE(spread.images()->hasImages(0) && !spread.images()->hasImages(1));
}

TEST_F(AlikeImagesTest, SmallTensorsAreWhole)
{
    CheckSet const set =
        setOf(ops::activation::def(), std::make_unique<ops::activation::Attrs>(ops::activation::Kind::kRelu),
              {input({kBatch, 4, 16, 16})});
    EXPECT_FALSE(set.images());
}

} // namespace
} // namespace tw::tune
