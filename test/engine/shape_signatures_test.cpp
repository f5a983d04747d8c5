// SPDX-License-Identifier: Apache-2.0
// Which layers compute shapes (developer guide, "Formal inference rules"): where t stands on both sides of a layer's
// signature, what is wanted as a shape makes the layer's input a shape tensor; where E stands, it does not, and the
// elements come from the run.
#include "engine/engines.h"

using namespace tw::test;

namespace {

struct Signature
{
    char const* name;
    bool isShape; // the input becomes a shape tensor
    // From an input of two elements to the size of z, which is the corner of an 8 x 8 matrix.
    std::function<ITensor*(Maker&, ITensor*)> layer;
    std::vector<int32_t> expected; // of {2, 3}
};

constexpr int32_t kTwos[] = {2, 2}, kOneZero[] = {1, 0};

ITensor* constant(Maker& m, std::vector<int32_t> const& shape, int32_t const* values)
{
    return m.network->addConstant(dims(shape), {DataType::kINT32, values, volume(shape)})->getOutput(0);
}
ITensor* binary(Maker& m, ITensor* a, ITensor* b, ElementWiseOperation op)
{
    return m.network->addElementWise(*a, *b, op)->getOutput(0);
}
ITensor* column(Maker& m, ITensor* x)
{
    IShuffleLayer* l = m.network->addShuffle(*x);
    l->setReshapeDimensions(Dims2(2, 1));
    return l->getOutput(0);
}
ITensor* row(Maker& m, ITensor* x)
{
    IShuffleLayer* l = m.network->addShuffle(*x);
    l->setReshapeDimensions(dims({2}));
    return l->getOutput(0);
}
ITensor* slice(Maker& m, ITensor* x, int tensors)
{
    ISliceLayer* l = m.network->addSlice(*x, dims({0}), dims({2}), dims({1}));
    int32_t const* const values[] = {kOneZero + 1, kTwos, kOneZero};
    for (int i = 0; i < tensors; ++i)
        l->setInput(i + 1, *constant(m, {1}, values[i]));
    return l->getOutput(0);
}

std::vector<Signature> const kSignatures{
    {"concatenation",
     true,
     [](Maker& m, ITensor* s) {
         ISliceLayer *a = m.network->addSlice(*s, dims({1}), dims({1}), dims({1})),
                     *b = m.network->addSlice(*s, dims({0}), dims({1}), dims({1}));
         ITensor* const parts[] = {a->getOutput(0), b->getOutput(0)};
         IConcatenationLayer* l = m.network->addConcatenation(parts, 2);
         l->setAxis(0);
         return l->getOutput(0);
     },
     {3, 2}},
    {"activation",
     true,
     [](Maker& m, ITensor* s) { return m.cast(m.relu(m.cast(s, DataType::kFLOAT)), DataType::kINT32); },
     {2, 3}},
    {"element-wise", true, [](Maker& m, ITensor* s) { return m.add(s, constant(m, {2}, kTwos)); }, {4, 5}},
    {"fill",
     true,
     [](Maker& m, ITensor* s) { // as long as s says: its shape is s
         IFillLayer* l = m.network->addFill(Dims2(1, 1), FillOperation::kRANDOM_UNIFORM);
         l->setInput(0, *s);
         return m.network->addShape(*l->getOutput(0))->getOutput(0);
     },
     {2, 3}},
    {"gather",
     true,
     [](Maker& m, ITensor* s) { return m.network->addGather(*s, *constant(m, {2}, kOneZero), 0)->getOutput(0); },
     {3, 2}},
    {"identity", true, [](Maker& m, ITensor* s) { return m.network->addIdentity(*s)->getOutput(0); }, {2, 3}},
    {"reduce",
     true,
     [](Maker& m, ITensor* s) { // [s; s] summed over its rows
         ITensor* const parts[] = {column(m, s), column(m, s)};
         IConcatenationLayer* l = m.network->addConcatenation(parts, 2);
         l->setAxis(1);
         return m.network->addReduce(*l->getOutput(0), ReduceOperation::kSUM, 2, false)->getOutput(0);
     },
     {4, 6}},
    {"select",
     true,
     [](Maker& m, ITensor* s) {
         ITensor* twos = constant(m, {2}, kTwos);
         return m.network->addSelect(*binary(m, s, twos, ElementWiseOperation::kGREATER), *twos, *s)->getOutput(0);
     },
     {2, 2}},
    {"shuffle", true, [](Maker& m, ITensor* s) { return row(m, column(m, s)); }, {2, 3}},
    {"shuffle with dimensions",
     true,
     [](Maker& m, ITensor* s) {
         IShuffleLayer* l = m.network->addShuffle(*s);
         l->setInput(1, *m.network->addShape(*column(m, s))->getOutput(0));
         return row(m, l->getOutput(0));
     },
     {2, 3}},
    {"slice", true, [](Maker& m, ITensor* s) { return slice(m, s, 0); }, {2, 3}},
    {"slice with a start", true, [](Maker& m, ITensor* s) { return slice(m, s, 1); }, {2, 3}},
    {"slice with a size", true, [](Maker& m, ITensor* s) { return slice(m, s, 2); }, {2, 3}},
    {"slice with a stride", true, [](Maker& m, ITensor* s) { return slice(m, s, 3); }, {2, 3}},
    {"unary",
     true,
     [](Maker& m, ITensor* s) {
         ITensor* x = m.network->addUnary(*m.cast(s, DataType::kFLOAT), UnaryOperation::kCEIL)->getOutput(0);
         return m.cast(x, DataType::kINT32);
     },
     {2, 3}},
    {"shape",
     false,
     [](Maker& m, ITensor* s) {
         ITensor* n = m.network->addShape(*s)->getOutput(0); // [2]
         return m.add(n, constant(m, {2}, kTwos));
     },
     {4, 4}},
    {"matrix product",
     false,
     [](Maker& m, ITensor* s) {
         static float const half[] = {1, 0, 0, 1};
         ITensor* w = m.network->addConstant(Dims2(2, 2), {DataType::kFLOAT, half, 4})->getOutput(0);
         ITensor* x = m.cast(column(m, s), DataType::kFLOAT);
         auto const none = MatrixOperation::kNONE;
         return row(m, m.cast(m.network->addMatrixMultiply(*w, none, *x, none)->getOutput(0), DataType::kINT32));
     },
     {2, 3}},
    {"top k",
     false,
     [](Maker& m, ITensor* s) {
         ITopKLayer* l = m.network->addTopK(*m.cast(s, DataType::kFLOAT), TopKOperation::kMAX, 2, 1);
         return m.add(l->getOutput(1), constant(m, {2}, kTwos));
     },
     {3, 2}},
};

// Memory for z, and the size that the run found.
struct Keeper final : IOutputAllocator
{
    void* reallocateOutput(char const*, void*, uint64_t size, uint64_t) noexcept override
    {
        memory.resize(size / sizeof(float));
        return memory.data();
    }
    void notifyShape(char const*, Dims const& d) noexcept override { shape = list(d); }
    std::vector<float> memory;
    std::vector<int32_t> shape;
};

struct Signatures : testing::TestWithParam<Signature>
{};

TEST_P(Signatures, AreThoseOfTheGuide)
{
    Signature const& p = GetParam();
    Maker m;
    ITensor* x = m.input("x", {8, 8});
    ITensor* s = m.input("s", {2}, DataType::kINT32);
    ITensor* size = p.layer(m, s);
    ASSERT_TRUE(size) << m.errors();
    ISliceLayer* corner = m.network->addSlice(*x, Dims2(0, 0), Dims2(1, 1), Dims2(1, 1));
    EXPECT_FALSE(s->isShapeTensor() && p.name != std::string("fill")) << "nothing wants a shape yet";
    corner->setInput(2, *size);
    m.output(corner->getOutput(0), "z");
    EXPECT_TRUE(size->isShapeTensor());
    EXPECT_EQ(s->isShapeTensor(), p.isShape);
    EXPECT_TRUE(s->isExecutionTensor() || p.isShape);
    if (p.isShape)
        m.profile({}, {{"s", {1, 1}, {2, 2}, {3, 3}}});
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    EXPECT_EQ(engine->isShapeInferenceIO("s"), p.isShape);

    Context c = contextOf(*engine);
    std::vector<float> const in = ramp(64);
    std::vector<int32_t> values{2, 3};
    c->setTensorAddress("x", const_cast<float*>(in.data()));
    c->setTensorAddress("s", values.data());
    Keeper z;
    c->setOutputAllocator("z", &z);
    ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
    EXPECT_EQ(z.shape, p.expected);
    EXPECT_EQ(z.memory[size_t(p.expected[1])], 8) << "the second row begins there";
}

INSTANTIATE_TEST_SUITE_P(Layers, Signatures, testing::ValuesIn(kSignatures), [](auto const& info) {
    std::string name;
    for (char const* c = info.param.name; *c; ++c)
        name += *c == ' ' || *c == '-' ? '_' : *c;
    return name;
});

} // namespace
