// SPDX-License-Identifier: Apache-2.0
// Settings, rules and numbers of the layers that sample and select: einsum, grid sample, non-maximum suppression,
// non-zero, ragged softmax, assertion.
#include <cmath>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "api/client.h"
#include "api/network/network.h"
#include "base/tensor.h"
#include "interp/interp.h"

using namespace nvinfer1;
using namespace tw::test;

namespace {

struct SamplingLayers : testing::Test
{
    KeepingLogger logger;
    CountingRecorder recorder;
    tw::api::Reporter reporter{&logger, &recorder};
    tw::api::NetworkObject object{reporter};
    INetworkDefinition& net = object;
    std::deque<std::vector<float>> floats; // values of constants
    std::deque<std::vector<int32_t>> integers;
    int64_t wildcard = 2; // what -1 is at run time
    int first = 0;        // of the numbers that inputs count up from

    ITensor& input(std::vector<int32_t> const& d, DataType type = DataType::kFLOAT)
    {
        return *net.addInput(("x" + std::to_string(net.getNbInputs())).c_str(), type, dims(d));
    }
    ITensor& constant(std::vector<int32_t> const& d, std::vector<float> v)
    {
        floats.push_back(std::move(v));
        Weights const w{DataType::kFLOAT, floats.back().data(), int64_t(floats.back().size())};
        return *net.addConstant(dims(d), w)->getOutput(0);
    }
    ITensor& constant(std::vector<int32_t> const& d, std::vector<int32_t> v)
    {
        integers.push_back(std::move(v));
        Weights const w{DataType::kINT32, integers.back().data(), int64_t(integers.back().size())};
        return *net.addConstant(dims(d), w)->getOutput(0);
    }
    static std::string shapeOf(ILayer* l, int i = 0)
    {
        return l ? tw::api::str(l->getOutput(i)->getDimensions()) : "no layer";
    }
    static bool fails(ILayer* l) { return l->getOutput(0)->getDimensions().nbDims < 0; }
    testing::AssertionResult says(char const* part)
    {
        std::string const last = logger.lastError();
        return contains(last, part) ? testing::AssertionSuccess() : testing::AssertionFailure() << last;
    }
    // What the network gives for inputs that count up; of the outputs of `l`.
    tw::Result<std::vector<tw::Tensor>> outputsOf(ILayer* l)
    {
        for (int i = 0; l && i < l->getNbOutputs(); ++i)
            net.markOutput(*l->getOutput(i));
        TW_ASSIGN(auto g, object.toGraph());
        std::vector<tw::Tensor> storage;
        std::vector<tw::TensorRef> in;
        for (tw::ir::Value const* v : g->inputs) {
            tw::Extents e;
            for (auto const& d : v->shape)
                e.push(d.isConst() ? d.value() : wildcard);
            storage.emplace_back(v->type, e);
            in.push_back(storage.back().ref());
            for (int64_t i = 0; i < in.back().count(); ++i)
                in.back().set(i, double(first + i));
        }
        return tw::interp::run(*g, in);
    }
    std::vector<double> run(ILayer* l, size_t output = 0)
    {
        auto out = outputsOf(l);
        EXPECT_TRUE(out.ok()) << out.error().message;
        std::vector<double> values;
        for (int64_t i = 0; out.ok() && i < (*out)[output].count(); ++i)
            values.push_back((*out)[output].ref().get(i));
        return values;
    }
    IEinsumLayer* einsum(std::vector<ITensor*> const& in, char const* equation)
    {
        return net.addEinsum(in.data(), int32_t(in.size()), equation);
    }
};

TEST_F(SamplingLayers, EinsumEquations)
{
    ITensor &a = input({2, 3}), &b = input({3, 4});
    IEinsumLayer* l = einsum({&a, &b}, "ij, jk -> ik");
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(l->getType(), LayerType::kEINSUM);
    EXPECT_STREQ(l->getEquation(), "ij, jk -> ik");
    EXPECT_EQ(shapeOf(l), "[2,4]");
    EXPECT_TRUE(l->setEquation("ij,jk"));
    EXPECT_EQ(shapeOf(l), "[2,4]") << "what stands there once, in alphabetical order";
    EXPECT_TRUE(l->setEquation("ij,jk->"));
    EXPECT_EQ(shapeOf(l), "[]");
    EXPECT_TRUE(l->setEquation("kz,za"));
    EXPECT_EQ(shapeOf(l), "[4,2]");
    EXPECT_EQ(logger.errors(), 0);
    char const* const wrong[] = {"ii,jk->ik", "...j,jk->ik", "ij,jk->ii", "ij,jk->iq", "ij->i", "ij,jk,kl->il",
                                 "Ij,jk->Ik", "ij;jk->ik",   "ij,jk-ik",  "i1,jk->ik", nullptr};
    for (char const* equation : wrong) {
        int const before = logger.errors();
        EXPECT_FALSE(l->setEquation(equation)) << (equation ? equation : "null");
        EXPECT_EQ(logger.errors(), before + 1) << (equation ? equation : "null");
    }
    EXPECT_STREQ(l->getEquation(), "kz,za") << "as it was";
    EXPECT_EQ(einsum({&a, &b, &b}, "ij,jk,jk->i"), nullptr);
    EXPECT_TRUE(says("one or two inputs"));
    EXPECT_EQ(einsum({&a}, "ii->i"), nullptr);
    EXPECT_TRUE(says("diagonals"));
    EXPECT_EQ(net.addEinsum(nullptr, 1, "i->i"), nullptr);
    EXPECT_TRUE(fails(einsum({&a, &b}, "ji,jk->ik"))) << "j is 2 and 3";
    EXPECT_TRUE(says("'j' is 2 and 3"));
    EXPECT_TRUE(fails(einsum({&a}, "ijk->i")));
    EXPECT_TRUE(says("a letter stands for each dimension"));
    EXPECT_TRUE(fails(einsum({&input({2}, DataType::kINT32)}, "i->")));
    EXPECT_TRUE(says("allowed: f32, f16"));
}

// Against sums over all labels, for equations of every kind.
TEST_F(SamplingLayers, EinsumNumbers)
{
    struct
    {
        char const* equation;
        std::vector<std::vector<int32_t>> shapes;
    } const cases[] = {
        {"ij,jk->ik", {{2, 3}, {3, 4}}},
        {"ij,jk->ki", {{2, 3}, {3, 4}}},
        {"ij->ji", {{2, 3}}},
        {"ij->", {{2, 3}}},
        {"ij->ij", {{2, 3}}},
        {"ijk->ki", {{2, 3, 4}}},
        {"i,j->ij", {{2}, {3}}},
        {"i,i->", {{4}, {4}}},
        {"i,i->i", {{4}, {4}}},
        {"bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}}},
        {"bhid,bhjd->bhij", {{2, 2, 3, 4}, {2, 2, 5, 4}}},
        {"bijd,jkd->bik", {{2, 3, 4, 2}, {4, 5, 2}}},
        {"abc,cde->abde", {{2, 3, 4}, {4, 2, 3}}},
        {"abc,dcb->ad", {{2, 3, 4}, {2, 4, 3}}},
        {"ab,cd->dbca", {{2, 3}, {4, 2}}},
        {"ab,bc->a", {{2, 3}, {3, 4}}},
        {",ij->ij", {{}, {2, 3}}},
        {",->", {{}, {}}},
        {"ij,kj->", {{2, 3}, {4, 3}}},
        {"bc,bchw->bhw", {{2, 3}, {2, 3, 2, 2}}},
        {"nctkv,kvw->nctw", {{2, 2, 3, 2, 3}, {2, 3, 3}}},
        {"i,ij->j", {{0}, {0, 3}}},
    };
    for (auto const& c : cases)
        for (bool dynamic : {false, true}) {
            tw::api::NetworkObject own{reporter};
            std::string const e = c.equation;
            std::string const left = e.substr(0, e.find("->")), output = e.substr(e.find("->") + 2);
            std::vector<std::string> terms{left.substr(0, left.find(','))};
            if (left.find(',') != std::string::npos)
                terms.push_back(left.substr(left.find(',') + 1));
            std::map<char, int64_t> sizes;
            std::vector<ITensor*> in;
            std::vector<tw::Tensor> storage;
            std::vector<tw::TensorRef> refs;
            for (size_t i = 0; i < terms.size(); ++i) {
                tw::Extents extents;
                for (size_t d = 0; d < terms[i].size(); ++d) {
                    sizes[terms[i][d]] = c.shapes[i][d];
                    extents.push(c.shapes[i][d]);
                }
                Dims given = dims(c.shapes[i]);
                for (int d = 0; dynamic && d < given.nbDims; ++d)
                    given.d[d] = -1;
                in.push_back(own.addInput(("x" + std::to_string(i)).c_str(), DataType::kFLOAT, given));
                storage.emplace_back(tw::DataType::kFloat, extents);
                refs.push_back(storage.back().ref());
                for (int64_t k = 0; k < refs[i].count(); ++k)
                    refs[i].set(k, double((k * 7 + int64_t(i)) % 11 - 4));
            }
            std::string labels;
            tw::Extents all;
            for (auto const& [label, size] : sizes) {
                labels += label;
                all.push(size);
            }
            auto offsetOf = [&](std::string const& term, tw::Counter const& at) {
                int64_t offset = 0;
                for (char label : term)
                    offset = offset * sizes[label] + at.at[int(labels.find(label))];
                return size_t(offset);
            };
            int64_t outputs = 1;
            for (char label : output)
                outputs *= sizes[label];
            std::vector<double> want(size_t(outputs), 0.0), got;
            tw::Counter at(all);
            if (all.volume() > 0)
                do {
                    double product = 1;
                    for (size_t i = 0; i < terms.size(); ++i)
                        product *= refs[i].get(int64_t(offsetOf(terms[i], at)));
                    want[offsetOf(output, at)] += product;
                } while (at.next());
            IEinsumLayer* l = own.addEinsum(in.data(), int32_t(in.size()), c.equation);
            ASSERT_NE(l, nullptr) << e;
            own.markOutput(*l->getOutput(0));
            auto g = own.toGraph();
            ASSERT_TRUE(g.ok()) << e << ": " << g.error().message;
            auto out = tw::interp::run(**g, refs);
            ASSERT_TRUE(out.ok()) << e << ": " << out.error().message;
            for (int64_t i = 0; i < (*out)[0].count(); ++i)
                got.push_back((*out)[0].ref().get(i));
            EXPECT_EQ(got, want) << e << (dynamic ? " dynamic" : "");
        }
}

TEST_F(SamplingLayers, EinsumOfTwoTypesIsFloat)
{
    IEinsumLayer* l = einsum({&input({2, 3}, DataType::kHALF), &input({3, 4})}, "ij,jk->ik");
    EXPECT_EQ(l->getOutput(0)->getType(), DataType::kFLOAT);
    IEinsumLayer* halves = einsum({&input({2, 3}, DataType::kHALF), &input({3, 4}, DataType::kHALF)}, "ij,jk->ik");
    EXPECT_EQ(halves->getOutput(0)->getType(), DataType::kHALF);
    EXPECT_EQ(logger.errors(), 0);
}

TEST_F(SamplingLayers, EinsumOverABatch)
{
    object.implicitBatch = true;
    IEinsumLayer* l = einsum({&input({2, 3}), &constant({3, 1}, std::vector<float>{1, 2, 3})}, "ij,jk->ki");
    EXPECT_EQ(shapeOf(l), "[1,2]");
    EXPECT_EQ(run(l), (std::vector<double>{8, 26, 44, 62}));
}

TEST_F(SamplingLayers, GridSample)
{
    IGridSampleLayer* l =
        net.addGridSample(input({1, 1, 2, 2}), constant({1, 1, 2, 2}, std::vector<float>{0, 0, 3, 0}));
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(l->getType(), LayerType::kGRID_SAMPLE);
    EXPECT_EQ(l->getInterpolationMode(), InterpolationMode::kLINEAR);
    EXPECT_EQ(l->getSampleMode(), SampleMode::kFILL);
    EXPECT_FALSE(l->getAlignCorners());
    EXPECT_EQ(shapeOf(l), "[1,1,1,2]");
    l->setInterpolationMode(InterpolationMode::kCUBIC);
    EXPECT_EQ(l->getInterpolationMode(), InterpolationMode::kCUBIC);
    l->setInterpolationMode(InterpolationMode::kLINEAR);
    l->setAlignCorners(true);
    EXPECT_TRUE(l->getAlignCorners());
    EXPECT_TRUE(l->setSampleMode(SampleMode::kREFLECT));
    EXPECT_TRUE(l->setSampleMode(SampleMode::kCLAMP));
    EXPECT_EQ(logger.errors(), 0);
    EXPECT_FALSE(l->setSampleMode(SampleMode::kWRAP));
    EXPECT_FALSE(l->setSampleMode(SampleMode::kSTRICT_BOUNDS));
    EXPECT_FALSE(l->setSampleMode(static_cast<SampleMode>(9)));
    l->setInterpolationMode(static_cast<InterpolationMode>(3));
    EXPECT_EQ(logger.errors(), 4);
    EXPECT_EQ(l->getSampleMode(), SampleMode::kCLAMP);
    EXPECT_EQ(run(l), (std::vector<double>{1.5, 2}));
}

TEST_F(SamplingLayers, GridSampleRules)
{
    EXPECT_TRUE(fails(net.addGridSample(input({1, 2, 3}), input({1, 2, 3, 2}))));
    EXPECT_TRUE(says("rank 4"));
    EXPECT_TRUE(fails(net.addGridSample(input({1, 2, 3, 3}), input({1, 2, 3, 3}))));
    EXPECT_TRUE(says("must be 2"));
    EXPECT_TRUE(fails(net.addGridSample(input({1, 2, 3, 3}), input({2, 2, 3, 2}))));
    EXPECT_TRUE(says("the same first dimension"));
    EXPECT_TRUE(fails(net.addGridSample(input({1, 2, 3, 3}, DataType::kINT32), input({1, 2, 3, 2}))));
    EXPECT_TRUE(says("must be f32 or f16"));
    IGridSampleLayer* nothing = net.addGridSample(input({1, 2, 0, 3}), input({1, 2, 3, 2}));
    EXPECT_FALSE(fails(nothing));
    nothing->setSampleMode(SampleMode::kCLAMP);
    EXPECT_TRUE(fails(nothing));
    EXPECT_TRUE(says("has no pixel"));
    EXPECT_EQ(shapeOf(net.addGridSample(input({-1, 2, 3, 3}), input({-1, -1, 3, 2}))), "[-1,2,-1,3]");
}

TEST_F(SamplingLayers, GridSampleOverABatch)
{
    object.implicitBatch = true;
    // Dimensions beside the batch are three.
    ITensor& grid = constant({1, 1, 2}, std::vector<float>{0, 0});
    IGridSampleLayer* l = net.addGridSample(input({1, 1, 2}), grid);
    EXPECT_EQ(shapeOf(l), "[1,1,1]");
    EXPECT_EQ(run(l), (std::vector<double>{0.5, 2.5}));
}

// Boxes 0 and 1 overlap by 0.6, box 2 lies apart, box 3 is box 0.
struct Suppression : SamplingLayers
{
    ITensor& boxes()
    {
        return constant({1, 4, 4}, std::vector<float>{0, 0, 4, 4, 1, 0, 5, 4, 10, 10, 12, 12, 4, 4, 0, 0});
    }
    ITensor& scores() { return constant({1, 4, 2}, std::vector<float>{0.9F, 0.1F, 0.8F, 0.7F, 0.5F, 0.2F, 0.3F, 0}); }
    ITensor& most(int32_t n) { return constant({}, std::vector<int32_t>{n}); }
    ITensor& threshold(float v) { return constant({}, std::vector<float>{v}); }
};

TEST_F(Suppression, Settings)
{
    INMSLayer* l = net.addNMS(boxes(), scores(), most(2));
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(l->getType(), LayerType::kNMS);
    EXPECT_EQ(l->getNbOutputs(), 2);
    EXPECT_EQ(l->getBoundingBoxFormat(), BoundingBoxFormat::kCORNER_PAIRS);
    EXPECT_EQ(l->getTopKBoxLimit(), 5000);
    EXPECT_EQ(shapeOf(l), "[-1,3]");
    EXPECT_EQ(shapeOf(l, 1), "[]");
    EXPECT_EQ(l->getOutput(0)->getType(), DataType::kINT32);
    l->setTopKBoxLimit(1);
    l->setBoundingBoxFormat(BoundingBoxFormat::kCENTER_SIZES);
    EXPECT_EQ(l->getBoundingBoxFormat(), BoundingBoxFormat::kCENTER_SIZES);
    EXPECT_EQ(logger.errors(), 0);
    l->setTopKBoxLimit(5001);
    l->setTopKBoxLimit(0);
    l->setBoundingBoxFormat(static_cast<BoundingBoxFormat>(2));
    EXPECT_EQ(logger.errors(), 3);
    EXPECT_EQ(l->getTopKBoxLimit(), 1);
}

// Thresholds of 0 when they are not set: whatever overlaps goes, and a score of 0 is none.
TEST_F(Suppression, Defaults)
{
    INMSLayer* l = net.addNMS(boxes(), scores(), most(10));
    EXPECT_EQ(run(l), (std::vector<double>{0, 0, 0, 0, 1, 1, 0, 0, 2, 0, 1, 2})) << "rows by falling score";
}
TEST_F(Suppression, Count)
{
    INMSLayer* l = net.addNMS(boxes(), scores(), most(10));
    EXPECT_EQ(run(l, 1), (std::vector<double>{4}));
}
TEST_F(Suppression, Thresholds)
{
    INMSLayer* l = net.addNMS(boxes(), scores(), most(10));
    l->setInput(3, threshold(0.7F));
    l->setInput(4, threshold(0.4F));
    EXPECT_EQ(run(l), (std::vector<double>{0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 2}));
}
TEST_F(Suppression, MostOfAClass)
{
    INMSLayer* l = net.addNMS(boxes(), scores(), most(1));
    EXPECT_EQ(run(l), (std::vector<double>{0, 0, 0, 0, 1, 1}));
}
TEST_F(Suppression, LimitOfCandidates)
{
    INMSLayer* l = net.addNMS(boxes(), scores(), most(10));
    l->setTopKBoxLimit(2); // boxes 0 and 1 of class 0: 1 goes
    EXPECT_EQ(run(l), (std::vector<double>{0, 0, 0, 0, 1, 1, 0, 1, 2}));
}

TEST_F(Suppression, Rules)
{
    EXPECT_TRUE(fails(net.addNMS(boxes(), constant({1, 3, 2}, std::vector<float>(6)), most(1))));
    EXPECT_TRUE(says("must agree"));
    EXPECT_TRUE(fails(net.addNMS(input({1, 4, 5}), scores(), most(1))));
    EXPECT_TRUE(says("[n, boxes, 4]"));
    EXPECT_TRUE(fails(net.addNMS(boxes(), input({4, 2}), most(1))));
    EXPECT_TRUE(says("[n, boxes, classes]"));
    EXPECT_TRUE(fails(net.addNMS(boxes(), scores(), input({1}, DataType::kINT32))));
    EXPECT_TRUE(says("must be a scalar"));
    EXPECT_TRUE(fails(net.addNMS(boxes(), scores(), input({}))));
    EXPECT_TRUE(says("must be i32"));
    EXPECT_TRUE(fails(net.addNMS(input({1, 4, 4}, DataType::kHALF), scores(), most(1))));
    EXPECT_TRUE(says("one type"));
    INMSLayer* l = net.addNMS(boxes(), scores(), most(1));
    l->setInput(3, threshold(1.5F));
    EXPECT_TRUE(fails(l));
    EXPECT_TRUE(says("allowed: 0 to 1"));
    EXPECT_EQ(shapeOf(net.addNMS(input({-1, 4, 2, 4}), input({-1, 4, 2}), most(1))), "[-1,3]");
}

TEST_F(SamplingLayers, NonZero)
{
    INonZeroLayer* l = net.addNonZero(input({2, 2}));
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(l->getType(), LayerType::kNON_ZERO);
    EXPECT_EQ(shapeOf(l), "[2,-1]");
    EXPECT_EQ(l->getOutput(0)->getType(), DataType::kINT32);
    for (DataType t : {DataType::kHALF, DataType::kINT32, DataType::kBOOL})
        EXPECT_EQ(shapeOf(net.addNonZero(input({3, 2, 2}, t))), "[3,-1]");
    EXPECT_EQ(shapeOf(net.addNonZero(input({}))), "[0,-1]");
    EXPECT_EQ(logger.errors(), 0);
    EXPECT_TRUE(fails(net.addNonZero(input({3}, DataType::kUINT8))));
    EXPECT_TRUE(says("allowed: f32, f16, i32, bool"));
}

TEST_F(SamplingLayers, NonZeroNumbers)
{
    EXPECT_EQ(run(net.addNonZero(input({2, 2}))), (std::vector<double>{0, 1, 1, 1, 0, 1}));
}

TEST_F(SamplingLayers, NeedAnExplicitBatch)
{
    object.implicitBatch = true;
    EXPECT_TRUE(fails(net.addNonZero(input({2, 2}))));
    EXPECT_TRUE(says("explicit batch"));
    EXPECT_TRUE(fails(net.addNMS(input({4, 4}), input({4, 2}), constant({}, std::vector<int32_t>{1}))));
    EXPECT_TRUE(says("explicit batch"));
}

TEST_F(SamplingLayers, RaggedSoftMax)
{
    IRaggedSoftMaxLayer* l = net.addRaggedSoftMax(input({-1, 3}), constant({4, 1}, std::vector<int32_t>{3, 1, 0, 2}));
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(l->getType(), LayerType::kRAGGED_SOFTMAX);
    EXPECT_EQ(logger.errors(), 0);
    wildcard = 4;
    std::vector<double> const y = run(l);
    double const e = std::exp(1.0), e2 = e * e, three = 1 + e + e2, two = 1 + e;
    std::vector<double> const want{1 / three, e / three, e2 / three, 1, 0, 0, 0, 0, 0, 1 / two, e / two, 0};
    ASSERT_EQ(y.size(), want.size());
    for (size_t i = 0; i < y.size(); ++i)
        EXPECT_NEAR(y[i], want[i], 1e-6) << i;
}

TEST_F(SamplingLayers, RaggedSoftMaxOfRowsOfAnyLength)
{
    wildcard = 3;
    EXPECT_EQ(run(net.addRaggedSoftMax(input({2, -1}), constant({2}, std::vector<int32_t>{1, 9})))[0], 1)
        << "lengths [z] mean the same as [z, 1]";
}

TEST_F(SamplingLayers, RaggedSoftMaxOverABatch)
{
    object.implicitBatch = true;
    IRaggedSoftMaxLayer* l = net.addRaggedSoftMax(input({2, 3}), constant({2, 1}, std::vector<int32_t>{1, 0}));
    EXPECT_EQ(run(l), (std::vector<double>{1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0}));
}

TEST_F(SamplingLayers, RaggedSoftMaxRules)
{
    EXPECT_TRUE(fails(net.addRaggedSoftMax(input({2, 3}), input({2, 3}, DataType::kINT32))));
    EXPECT_TRUE(says("must be 1"));
    EXPECT_TRUE(fails(net.addRaggedSoftMax(input({2, 3}), input({2, -1}, DataType::kINT32))));
    EXPECT_TRUE(says("must be 1"));
    EXPECT_TRUE(fails(net.addRaggedSoftMax(input({2, 3}), input({2, 1}))));
    EXPECT_TRUE(says("must be i32"));
    EXPECT_TRUE(fails(net.addRaggedSoftMax(input({2, 3}, DataType::kINT32), input({2, 1}, DataType::kINT32))));
    EXPECT_TRUE(says("must be f32 or f16"));
}

struct Assertions : SamplingLayers
{
    // Whether the first dimension of `x` is n.
    ITensor& isSize(ITensor& x, int32_t n)
    {
        ITensor& shape = *net.addShape(x)->getOutput(0);
        ITensor& size = *net.addSlice(shape, dims({0}), dims({1}), dims({1}))->getOutput(0);
        return *net.addElementWise(size, constant({1}, std::vector<int32_t>{n}), ElementWiseOperation::kEQUAL)
                    ->getOutput(0);
    }
};

TEST_F(Assertions, Settings)
{
    IAssertionLayer* l = net.addAssertion(isSize(input({-1, 3}), 2), "two rows");
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(l->getType(), LayerType::kASSERTION);
    EXPECT_EQ(l->getNbOutputs(), 0);
    EXPECT_EQ(l->getOutput(0), nullptr);
    EXPECT_STREQ(l->getMessage(), "two rows");
    l->setMessage("2");
    EXPECT_STREQ(l->getMessage(), "2");
    l->setMessage(nullptr);
    EXPECT_EQ(logger.errors(), 1);
    EXPECT_STREQ(l->getMessage(), "2");
    EXPECT_EQ(net.addAssertion(isSize(input({2}), 2), nullptr), nullptr);
}

TEST_F(Assertions, FailAtRunTime)
{
    ITensor& x = input({-1, 3});
    IAssertionLayer* l = net.addAssertion(isSize(x, 2), "two rows");
    l->setName("rows");
    ILayer* y = net.addActivation(x, ActivationType::kRELU);
    EXPECT_EQ(run(y).size(), 6U);
    wildcard = 5;
    net.unmarkOutput(*y->getOutput(0));
    auto const failed = outputsOf(y);
    ASSERT_FALSE(failed.ok());
    EXPECT_TRUE(contains(failed.error().message, "'rows'")) << failed.error().message;
    EXPECT_TRUE(contains(failed.error().message, "'two rows' does not hold")) << failed.error().message;
}

TEST_F(Assertions, ProvablyFalse)
{
    ITensor& x = input({3, 3});
    net.addAssertion(isSize(x, 2), "two rows")->setName("rows");
    auto const failed = outputsOf(net.addActivation(x, ActivationType::kRELU));
    ASSERT_FALSE(failed.ok());
    EXPECT_TRUE(contains(failed.error().message, "rows")) << failed.error().message;
    EXPECT_TRUE(contains(failed.error().message, "does not hold")) << failed.error().message;
}

TEST_F(Assertions, Rules)
{
    net.addAssertion(input({2, 2}, DataType::kBOOL), "");
    auto const matrix = outputsOf(net.addActivation(input({2}), ActivationType::kRELU));
    ASSERT_FALSE(matrix.ok());
    EXPECT_TRUE(contains(matrix.error().message, "rank 0 or 1")) << matrix.error().message;
}
TEST_F(Assertions, OfNumbers)
{
    net.addAssertion(input({2}, DataType::kINT32), "");
    auto const numbers = outputsOf(net.addActivation(input({2}), ActivationType::kRELU));
    ASSERT_FALSE(numbers.ok());
    EXPECT_TRUE(contains(numbers.error().message, "must be bool")) << numbers.error().message;
}
TEST_F(Assertions, TheirConditionIsAShapeTensor)
{
    ITensor& condition = input({2}, DataType::kBOOL);
    net.addAssertion(condition, "");
    EXPECT_TRUE(condition.isShapeTensor());
    EXPECT_FALSE(condition.isExecutionTensor());
}

} // namespace
