// SPDX-License-Identifier: Apache-2.0
// Types of network inputs and outputs: the layers keep theirs, the engine converts. And what FP16 permissions and
// precisions of layers do on a device without kernels for them.
#include <cmath>
#include <cstdint>

#include "engine/engines.h"

using namespace tw::test;

namespace {

// Bits of FP16 numbers that it holds exactly, of normal size or 0.
uint16_t half(float v)
{
    if (v == 0)
        return 0;
    int exponent = 0;
    float const m = std::frexp(std::fabs(v), &exponent);
    return uint16_t((v < 0 ? 0x8000 : 0) | (exponent + 14) << 10 | (int(m * 2048) & 1023));
}
std::vector<uint16_t> halves(std::vector<float> const& v)
{
    std::vector<uint16_t> out;
    for (float f : v)
        out.push_back(half(f));
    return out;
}

// y = x w + 1 with w the identity doubled; x: [4,8], weights in FP32.
struct IoTypes : testing::Test
{
    Maker m;
    ITensor *x = nullptr, *y = nullptr;
    std::vector<float> w = std::vector<float>(64, 0), one = std::vector<float>(8, 1);
    std::vector<float> in = ramp(32, -10), out;

    void make(DataType defined = DataType::kFLOAT)
    {
        for (size_t i = 0; i < 8; ++i)
            w[9 * i] = 2;
        for (float v : in)
            out.push_back(2 * v + 1);
        x = m.input("x", {4, 8}, defined);
        ITensor* weights = m.network->addConstant(Dims2(8, 8), {DataType::kFLOAT, w.data(), 64})->getOutput(0);
        ITensor* bias = m.network->addConstant(Dims2(1, 8), {DataType::kFLOAT, one.data(), 8})->getOutput(0);
        y = m.add(
            m.network->addMatrixMultiply(*x, MatrixOperation::kNONE, *weights, MatrixOperation::kNONE)->getOutput(0),
            bias);
        m.output(y, "y");
    }
    template <class In, class Out>
    std::vector<Out> run(std::vector<In> input)
    {
        auto const engine = m.engine();
        EXPECT_TRUE(engine) << m.errors();
        if (!engine)
            return {};
        EXPECT_EQ(engine->getBindingDataType(0), x->getType());
        EXPECT_EQ(engine->getTensorDataType("y"), y->getType());
        std::vector<Out> result(32);
        Context c = contextOf(*engine);
        void* bindings[] = {input.data(), result.data()};
        EXPECT_TRUE(c->executeV2(bindings)) << m.errors();
        return result;
    }
};

TEST_F(IoTypes, HalfAtBothEnds)
{
    make();
    x->setType(DataType::kHALF);
    y->setType(DataType::kHALF);
    EXPECT_EQ(x->getType(), DataType::kHALF);
    EXPECT_EQ((run<uint16_t, uint16_t>(halves(in))), halves(out));
    EXPECT_EQ(m.logger.warnings(), 0);
}

TEST_F(IoTypes, HalfAtOneEnd)
{
    make();
    x->setType(DataType::kHALF);
    EXPECT_EQ((run<uint16_t, float>(halves(in))), out);
    x->setType(DataType::kFLOAT); // and back
    y->setType(DataType::kHALF);
    EXPECT_EQ((run<float, uint16_t>(in)), halves(out));
    y->setType(DataType::kINT32);
    EXPECT_EQ((run<float, int32_t>(in)), std::vector<int32_t>(out.begin(), out.end()));
}

TEST_F(IoTypes, FormatsAreLinear)
{
    make();
    x->setType(DataType::kHALF);
    x->setAllowedFormats(1u << int(TensorFormat::kLINEAR));
    y->setAllowedFormats(1u << int(TensorFormat::kLINEAR));
    EXPECT_EQ((run<uint16_t, float>(halves(in))), out);
}

// One tensor in, straight out.
TEST_F(IoTypes, InputThatIsConvertedOnly)
{
    x = m.input("x", {4, 8});
    y = m.network->addIdentity(*x)->getOutput(0);
    m.output(y, "y");
    x->setType(DataType::kHALF);
    EXPECT_EQ((run<uint16_t, float>(halves(in))), in);
    y->setType(DataType::kHALF);
    EXPECT_EQ((run<uint16_t, uint16_t>(halves(in))), halves(in));
}

TEST_F(IoTypes, Int8NeedsAScale)
{
    make();
    y->setType(DataType::kINT8);
    EXPECT_FALSE(m.engine());
    EXPECT_TRUE(m.oneError("'y'"));
}

TEST_F(IoTypes, Int8InputsAreNeverSilent)
{
    x = m.input("x", {4, 8}, DataType::kINT8);
    IShuffleLayer* turned = m.network->addShuffle(*x);
    turned->setFirstTranspose(Permutation{1, 0});
    y = turned->getOutput(0);
    m.output(y, "y");
    y->setType(DataType::kINT8);
    EXPECT_TRUE(m.engine()) << m.errors();
    EXPECT_EQ(m.logger.warnings(), 2); // neither a flag nor a range
    m.takeErrors();
    x->setDynamicRange(-127, 127);
    EXPECT_FALSE(m.engine());
    EXPECT_TRUE(m.oneError("'y'")); // numbers now, which need a range to become INT8 again
    y->setDynamicRange(-127, 127);
    EXPECT_TRUE(m.engine()) << m.errors();
    EXPECT_EQ(m.logger.warnings(), 1);
}

TEST_F(IoTypes, PermissionIsOneWarningOnTheCpu)
{
    make();
    m.config->setFlag(BuilderFlag::kFP16);
    EXPECT_EQ((run<float, float>(in)), out);
    EXPECT_EQ(m.logger.warnings(), 1);
}

TEST_F(IoTypes, PrecisionsOfLayersOnTheCpu)
{
    make();
    ILayer* sum = m.network->getLayer(m.network->getNbLayers() - 1);
    sum->setName("sum");
    sum->setPrecision(DataType::kHALF);
    EXPECT_EQ((run<float, float>(in)), out); // a wish
    EXPECT_EQ(m.logger.warnings(), 0);
    m.config->setFlag(BuilderFlag::kPREFER_PRECISION_CONSTRAINTS);
    EXPECT_EQ((run<float, float>(in)), out);
    EXPECT_EQ(m.logger.warnings(), 1);
    m.config->clearFlag(BuilderFlag::kPREFER_PRECISION_CONSTRAINTS);
    m.takeErrors();
    m.config->setFlag(BuilderFlag::kSTRICT_TYPES); // its old name
    EXPECT_EQ((run<float, float>(in)), out);
    EXPECT_EQ(m.logger.warnings(), 1);
    m.config->setFlag(BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
    m.takeErrors();
    EXPECT_FALSE(m.engine());
    EXPECT_TRUE(m.oneError("'sum' asks for f16"));
    sum->resetPrecision();
    sum->setOutputType(0, DataType::kHALF);
    EXPECT_FALSE(m.engine());
    EXPECT_TRUE(m.oneError("'sum' asks for f16"));
    sum->resetOutputType(0);
    EXPECT_EQ((run<float, float>(in)), out) << "nothing is asked for";
}

} // namespace
