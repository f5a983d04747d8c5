// SPDX-License-Identifier: Apache-2.0
// Network inputs and outputs in every format: what the engine tells of them, where their elements lie, what is refused.
#include <cmath>
#include <cstring>

#include "engine/engines.h"

using namespace tw::test;

namespace {

uint32_t maskOf(TensorFormat f)
{
    return 1U << int(f);
}

// A format as the public documentation draws it.
struct Format
{
    TensorFormat format;
    DataType type;
    int vector;   // channels that lie together
    bool byPixel; // all channels of a pixel lie together
    int spatial;  // dimensions after the channels
    char const* words;
};
Format const kFormats[] = {
    {TensorFormat::kLINEAR, DataType::kFLOAT, 1, false, 2, "Row major linear FP32 format (kLINEAR)"},
    {TensorFormat::kLINEAR, DataType::kHALF, 1, false, 2, "Row major linear FP16 format (kLINEAR)"},
    {TensorFormat::kCHW2, DataType::kHALF, 2, false, 2, "Two wide channel vectorized row major FP16 format (kCHW2)"},
    {TensorFormat::kCHW4, DataType::kHALF, 4, false, 2, "Four wide channel vectorized row major FP16 format (kCHW4)"},
    {TensorFormat::kHWC8, DataType::kHALF, 8, true, 2, "Channel major FP16 format where channel % 8 == 0 (kHWC8)"},
    {TensorFormat::kCHW16, DataType::kHALF, 16, false, 2,
     "Sixteen wide channel vectorized row major FP16 format (kCHW16)"},
    {TensorFormat::kCHW32, DataType::kHALF, 32, false, 2,
     "Thirty-two wide channel vectorized row major FP16 format (kCHW32)"},
    {TensorFormat::kCHW32, DataType::kFLOAT, 32, false, 2,
     "Thirty-two wide channel vectorized row major FP32 format (kCHW32)"},
    {TensorFormat::kDHWC8, DataType::kHALF, 8, true, 3, "Channel major FP16 format where channel % 8 == 0 (kDHWC8)"},
    {TensorFormat::kCDHW32, DataType::kHALF, 32, false, 3,
     "Thirty-two wide channel vectorized row major FP16 format with 3 spatial dimensions (kCDHW32)"},
    {TensorFormat::kLINEAR, DataType::kINT8, 1, false, 2, "Row major linear INT8 format (kLINEAR)"},
    {TensorFormat::kCHW4, DataType::kINT8, 4, false, 2, "Four wide channel vectorized row major INT8 format (kCHW4)"},
    {TensorFormat::kCHW32, DataType::kINT8, 32, false, 2,
     "Thirty-two wide channel vectorized row major INT8 format (kCHW32)"},
    {TensorFormat::kCDHW32, DataType::kINT8, 32, false, 3,
     "Thirty-two wide channel vectorized row major INT8 format with 3 spatial dimensions (kCDHW32)"},
    {TensorFormat::kHWC, DataType::kFLOAT, 1, true, 2, "Channel major FP32 format (kHWC)"},
    {TensorFormat::kHWC16, DataType::kHALF, 16, true, 2, "Channel major FP16 format where channel % 16 == 0 (kHWC16)"},
};

int64_t roundUp(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}
int64_t volumeBetween(Shape const& s, size_t from, size_t to)
{
    int64_t v = 1;
    for (size_t i = from; i < to; ++i)
        v *= s[i];
    return v;
}

// Where elements lie, by the drawings; element i counts row-major.
struct Drawn
{
    Format const& kind;
    Shape shape;

    size_t axis() const { return shape.size() - size_t(kind.spatial) - 1; }
    int64_t pixels() const { return volumeBetween(shape, axis() + 1, shape.size()); }
    int64_t padded() const { return roundUp(shape[axis()], kind.vector); }
    int64_t count() const { return volumeBetween(shape, 0, shape.size()); }
    int64_t storage() const { return volumeBetween(shape, 0, axis()) * padded() * pixels(); }
    int64_t place(int64_t i) const
    {
        int64_t const pixel = i % pixels(), c = i / pixels() % shape[axis()], n = i / pixels() / shape[axis()];
        if (kind.byPixel)
            return (n * pixels() + pixel) * padded() + c;
        return ((n * (padded() / kind.vector) + c / kind.vector) * pixels() + pixel) * kind.vector + c % kind.vector;
    }
};

// The same by what the engine reports: (coordinates, in vectors, times strides) * vector + place in the vector.
int64_t reportedPlace(Shape const& shape, Dims const& strides, int vectorDim, int components, int64_t i)
{
    int64_t vectors = 0, inVector = 0;
    for (int d = int(shape.size()) - 1; d >= 0; --d) {
        int64_t const at = i % shape[size_t(d)];
        i /= shape[size_t(d)];
        if (d == vectorDim) {
            vectors += at / components * strides.d[d];
            inVector = at % components;
        } else {
            vectors += at * strides.d[d];
        }
    }
    return vectors * (vectorDim < 0 ? 1 : components) + inVector;
}

uint16_t halfOf(int small) // an integer in 0..2047, exact
{
    if (small == 0)
        return 0;
    int const e = int(std::log2(small));
    return uint16_t((e + 15) << 10 | ((small << 10 >> e) & 0x3ff));
}

// Memory of a tensor with garbage in its gaps and after it.
struct Memory
{
    DataType type;
    std::vector<uint8_t> bytes;
    static constexpr uint8_t kGarbage = 0x37;

    Memory(DataType t, int64_t elements) : type(t), bytes(size_t(elements) * size(t) + 64, kGarbage) {}
    static size_t size(DataType t) { return t == DataType::kFLOAT ? 4 : t == DataType::kHALF ? 2 : 1; }
    void set(int64_t at, int v)
    {
        float const f = float(v);
        uint16_t const h = halfOf(v);
        auto const b = int8_t(v);
        void const* from = type == DataType::kFLOAT  ? static_cast<void const*>(&f)
                           : type == DataType::kHALF ? static_cast<void const*>(&h)
                                                     : &b;
        std::memcpy(bytes.data() + size_t(at) * size(type), from, size(type));
    }
    bool is(int64_t at, int v) const
    {
        Memory one(type, 1);
        one.set(0, v);
        return std::memcmp(one.bytes.data(), bytes.data() + size_t(at) * size(type), size(type)) == 0;
    }
    bool isIntactFrom(int64_t at) const
    {
        return std::all_of(bytes.begin() + at * int64_t(size(type)), bytes.end(),
                           [](uint8_t b) { return b == kGarbage; });
    }
};

int valueOf(int64_t i)
{
    return int(i * 7 % 120 + 1);
}

// y = relu(x), both as `kind`.
void roundTrip(Format const& kind, Shape const& shape)
{
    SCOPED_TRACE(std::string(kind.words) + ", " + std::to_string(shape[shape.size() - size_t(kind.spatial) - 1]) +
                 " channels");
    Maker m;
    ITensor* x = m.input("x", shape, kind.type);
    x->setAllowedFormats(maskOf(kind.format));
    ITensor* y = m.relu(x);
    m.output(y, "y");
    y->setType(kind.type);
    y->setAllowedFormats(maskOf(kind.format));
    std::unique_ptr<ICudaEngine> engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Drawn const drawn{kind, shape};
    bool const isVector = kind.vector > 1;
    for (char const* name : {"x", "y"}) {
        int const binding = engine->getBindingIndex(name);
        EXPECT_EQ(engine->getTensorFormat(name), kind.format);
        EXPECT_EQ(engine->getBindingFormat(binding), kind.format);
        EXPECT_STREQ(engine->getTensorFormatDesc(name), kind.words);
        EXPECT_STREQ(engine->getBindingFormatDesc(binding), kind.words);
        EXPECT_EQ(engine->getTensorBytesPerComponent(name), int(Memory::size(kind.type)));
        EXPECT_EQ(engine->getTensorComponentsPerElement(name), isVector ? kind.vector : -1);
        EXPECT_EQ(engine->getBindingComponentsPerElement(binding), isVector ? kind.vector : -1);
        EXPECT_EQ(engine->getTensorVectorizedDim(name), isVector ? int(drawn.axis()) : -1);
        EXPECT_EQ(engine->getBindingVectorizedDim(binding), isVector ? int(drawn.axis()) : -1);
        EXPECT_EQ(list(engine->getTensorShape(name)), shape) << "dimensions are those without padding";
    }
    Context c = contextOf(*engine);
    Dims const strides = c->getTensorStrides("x");
    EXPECT_EQ(list(c->getStrides(0)), list(strides));
    EXPECT_EQ(list(c->getTensorStrides("y")), list(strides));
    EXPECT_EQ(c->getMaxOutputSize("y"), drawn.storage() * int64_t(Memory::size(kind.type)));
    Memory in(kind.type, drawn.storage()), out(kind.type, drawn.storage());
    for (int64_t i = 0; i < drawn.count(); ++i) {
        in.set(drawn.place(i), valueOf(i));
        ASSERT_EQ(reportedPlace(shape, strides, engine->getTensorVectorizedDim("x"), kind.vector, i), drawn.place(i));
    }
    c->setTensorAddress("x", in.bytes.data());
    c->setTensorAddress("y", out.bytes.data());
    ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
    std::vector<bool> isElement(size_t(drawn.storage()), false);
    for (int64_t i = 0; i < drawn.count(); ++i) {
        ASSERT_TRUE(out.is(drawn.place(i), valueOf(i))) << "element " << i;
        isElement[size_t(drawn.place(i))] = true;
    }
    for (int64_t i = 0; i < drawn.storage(); ++i)
        ASSERT_TRUE(isElement[size_t(i)] || out.is(i, 0)) << "padding at " << i << " is not zero";
    EXPECT_TRUE(out.isIntactFrom(drawn.storage()));
    EXPECT_EQ(m.errors(), "");
}

TEST(IoFormats, EveryFormatThereAndBack)
{
    for (Format const& k : kFormats)
        for (int channels : {1, 3, 8, 33, 64}) {
            Shape shape{2, channels, 3, 5};
            if (k.spatial == 3)
                shape.insert(shape.begin() + 2, 2);
            roundTrip(k, shape);
        }
}

TEST(IoFormats, WithoutABatch)
{
    for (Format const& k : kFormats)
        roundTrip(k, k.spatial == 3 ? Shape{5, 2, 3, 4} : Shape{5, 3, 4});
}

// Of all formats only the illegal ones: refused by tensor, with what there is.
TEST(IoFormats, OnlyWhatTheTypeAndRankAllow)
{
    auto isLegal = [](TensorFormat f, DataType t, int rank) {
        if (f == TensorFormat::kLINEAR)
            return true;
        for (Format const& k : kFormats)
            if (k.format == f && k.type == t && rank > k.spatial)
                return true;
        return false;
    };
    for (DataType t : {DataType::kFLOAT, DataType::kHALF, DataType::kINT32, DataType::kBOOL})
        for (Shape const& shape : {Shape{2, 3}, Shape{2, 3, 4}, Shape{2, 3, 4, 5}})
            for (int f = 0; f < EnumMax<TensorFormat>(); ++f) {
                SCOPED_TRACE(std::to_string(int(t)) + " rank " + std::to_string(shape.size()) + " format " +
                             std::to_string(f));
                Maker m;
                ITensor* x = m.input("x", shape, t);
                x->setAllowedFormats(1U << f);
                m.output(m.network->addIdentity(*x)->getOutput(0), "y");
                bool const good = isLegal(TensorFormat(f), t, int(shape.size()));
                EXPECT_EQ(m.builder->isNetworkSupported(*m.network, *m.config), good);
                m.takeErrors();
                EXPECT_EQ(m.plan() != nullptr, good);
                if (good)
                    EXPECT_EQ(m.errors(), "");
                else
                    EXPECT_TRUE(m.oneError("'x'"));
            }
    Maker m;
    ITensor* x = m.input("x", {2, 3, 4, 4});
    m.output(m.relu(x), "y");
    m.network->getOutput(0)->setAllowedFormats(maskOf(TensorFormat::kHWC8) | maskOf(TensorFormat::kCHW4));
    EXPECT_FALSE(m.plan());
    EXPECT_TRUE(m.oneError("none of its allowed formats (kHWC8, kCHW4); it can be in kLINEAR, kCHW32, kHWC"));
    m.network->getOutput(0)->setAllowedFormats(maskOf(TensorFormat::kDLA_LINEAR));
    EXPECT_FALSE(m.plan());
    EXPECT_TRUE(m.oneError("DLA"));
}

TEST(IoFormats, OneOfSeveral)
{
    Maker m;
    ITensor* x = m.input("x", {1, 16, 6, 6});
    x->setAllowedFormats(maskOf(TensorFormat::kCHW32) | maskOf(TensorFormat::kHWC) | maskOf(TensorFormat::kHWC8));
    ITensor* y = m.relu(x);
    m.output(y, "y");
    y->setAllowedFormats(maskOf(TensorFormat::kLINEAR) | maskOf(TensorFormat::kCHW32));
    std::unique_ptr<ICudaEngine> engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    TensorFormat const in = engine->getTensorFormat("x");
    EXPECT_TRUE(in == TensorFormat::kCHW32 || in == TensorFormat::kHWC);
    TensorFormat const out = engine->getTensorFormat("y");
    EXPECT_TRUE(out == TensorFormat::kLINEAR || out == TensorFormat::kCHW32);
}

TEST(IoFormats, AllAllowedIsLinear)
{
    Maker m;
    m.output(m.relu(m.input("x", {1, 16, 6, 6})), "y");
    std::unique_ptr<ICudaEngine> engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    EXPECT_EQ(engine->getTensorFormat("x"), TensorFormat::kLINEAR);
    EXPECT_EQ(engine->getTensorFormat("y"), TensorFormat::kLINEAR);
}

// An input with several readers, an output that is read on, an input that is an output, a constant output.
TEST(IoFormats, EveryKindOfBoundary)
{
    Maker m;
    Shape const shape{2, 5, 3, 4};
    ITensor* x = m.input("x", shape);
    x->setAllowedFormats(maskOf(TensorFormat::kCHW32));
    ITensor* a = m.relu(x);
    m.output(a, "a");
    a->setAllowedFormats(maskOf(TensorFormat::kHWC));
    ITensor* b = m.add(a, x);
    m.output(b, "b");
    ITensor* copy = m.network->addIdentity(*x)->getOutput(0);
    m.output(copy, "copy");
    copy->setAllowedFormats(maskOf(TensorFormat::kHWC));
    std::vector<float> const values = ramp(60, 1);
    ITensor* k = m.network->addConstant(dims({1, 5, 3, 4}), {DataType::kFLOAT, values.data(), 60})->getOutput(0);
    m.output(k, "k");
    k->setAllowedFormats(maskOf(TensorFormat::kHWC));
    std::unique_ptr<ICudaEngine> engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Format const wide{TensorFormat::kCHW32, DataType::kFLOAT, 32, false, 2, ""};
    Format const pixels{TensorFormat::kHWC, DataType::kFLOAT, 1, true, 2, ""};
    Drawn const dx{wide, shape}, dp{pixels, shape}, dk{pixels, {1, 5, 3, 4}};
    std::vector<float> in(size_t(dx.storage()), 1e9F);
    for (int64_t i = 0; i < 120; ++i)
        in[size_t(dx.place(i))] = float(i) - 50;
    std::vector<float> ya(120, -1), yb(120, -1), yc(120, -1), yk(60, -1);
    Context c = contextOf(*engine);
    c->setTensorAddress("x", in.data());
    c->setTensorAddress("a", ya.data());
    c->setTensorAddress("b", yb.data());
    c->setTensorAddress("copy", yc.data());
    c->setTensorAddress("k", yk.data());
    ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
    for (int64_t i = 0; i < 120; ++i) {
        float const v = float(i) - 50, r = std::max(v, 0.0F);
        ASSERT_EQ(ya[size_t(dp.place(i))], r) << i;
        ASSERT_EQ(yb[size_t(i)], r + v) << i;
        ASSERT_EQ(yc[size_t(dp.place(i))], v) << i;
    }
    for (int64_t i = 0; i < 60; ++i)
        ASSERT_EQ(yk[size_t(dk.place(i))], float(i + 1)) << i;
}

TEST(IoFormats, DynamicShapesAndAllocators)
{
    Maker m;
    ITensor* x = m.input("x", {-1, -1, -1, 4});
    x->setAllowedFormats(maskOf(TensorFormat::kCHW32));
    ITensor* y = m.relu(x);
    m.output(y, "y");
    y->setAllowedFormats(maskOf(TensorFormat::kHWC));
    m.profile({{"x", {1, 1, 1, 4}, {2, 8, 4, 4}, {4, 70, 8, 4}}});
    std::unique_ptr<ICudaEngine> engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    EXPECT_EQ(engine->getTensorVectorizedDim("x"), 1);
    Context c = contextOf(*engine);
    EXPECT_EQ(list(c->getTensorStrides("x")), (Shape{-1, -1, 4, 1})) << "nothing is known behind a wildcard";
    for (Shape const& shape : {Shape{1, 1, 1, 4}, Shape{2, 8, 4, 4}, Shape{3, 33, 2, 4}, Shape{4, 70, 8, 4}}) {
        Format const wide{TensorFormat::kCHW32, DataType::kFLOAT, 32, false, 2, ""};
        Format const pixels{TensorFormat::kHWC, DataType::kFLOAT, 1, true, 2, ""};
        Drawn const dx{wide, shape}, dy{pixels, shape};
        ASSERT_TRUE(c->setInputShape("x", dims(shape)));
        EXPECT_EQ(c->getTensorStrides("x").d[0], (shape[1] + 31) / 32 * shape[2] * 4);
        EXPECT_EQ(c->getMaxOutputSize("y"), dy.storage() * 4);
        std::vector<float> in(size_t(dx.storage()), 1e9F), out(size_t(dy.storage()) + 1, -1);
        for (int64_t i = 0; i < dx.count(); ++i)
            in[size_t(dx.place(i))] = float(valueOf(i));
        c->setTensorAddress("x", in.data());
        c->setTensorAddress("y", out.data());
        ASSERT_TRUE(c->enqueueV3(nullptr)) << m.errors();
        for (int64_t i = 0; i < dx.count(); ++i)
            ASSERT_EQ(out[size_t(dy.place(i))], float(valueOf(i)));
        EXPECT_EQ(out.back(), -1);
    }
}

TEST(IoFormats, ImplicitBatch)
{
    Maker m{0};
    m.builder->setMaxBatchSize(3);
    ITensor* x = m.input("x", {5, 2, 3});
    x->setAllowedFormats(maskOf(TensorFormat::kCHW32));
    ITensor* y = m.relu(x);
    m.output(y, "y");
    y->setAllowedFormats(maskOf(TensorFormat::kHWC));
    std::unique_ptr<ICudaEngine> engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    EXPECT_EQ(engine->getBindingVectorizedDim(0), 0);
    Context c = contextOf(*engine);
    EXPECT_EQ(list(c->getStrides(0)), (Shape{6, 3, 1}));
    EXPECT_EQ(list(c->getStrides(1)), (Shape{1, 15, 5}));
    Format const wide{TensorFormat::kCHW32, DataType::kFLOAT, 32, false, 2, ""};
    Format const pixels{TensorFormat::kHWC, DataType::kFLOAT, 1, true, 2, ""};
    Drawn const dx{wide, {2, 5, 2, 3}}, dy{pixels, {2, 5, 2, 3}};
    std::vector<float> in(size_t(dx.storage()), 1e9F), out(61, -1);
    for (int64_t i = 0; i < 60; ++i)
        in[size_t(dx.place(i))] = float(valueOf(i));
    void* bindings[] = {in.data(), out.data()};
    ASSERT_TRUE(c->execute(2, bindings)) << m.errors();
    for (int64_t i = 0; i < 60; ++i)
        ASSERT_EQ(out[size_t(dy.place(i))], float(valueOf(i)));
    EXPECT_EQ(out[60], -1);
    // Two dimensions and the batch are no picture.
    Maker flat{0};
    ITensor* f = flat.input("x", {5, 2});
    f->setAllowedFormats(maskOf(TensorFormat::kHWC));
    flat.output(flat.relu(f), "y");
    EXPECT_FALSE(flat.plan());
    EXPECT_TRUE(flat.oneError("rank 2"));
}

TEST(IoFormats, DirectIo)
{
    auto make = [](Maker& m, TensorFormat in, TensorFormat out) {
        ITensor* x = m.input("x", {1, 5, 4, 4});
        x->setAllowedFormats(maskOf(in));
        IActivationLayer* relu = m.network->addActivation(*x, ActivationType::kSELU);
        relu->setName("the_only_layer");
        m.output(relu->getOutput(0), "y");
        relu->getOutput(0)->setAllowedFormats(maskOf(out));
        m.config->setFlag(BuilderFlag::kDIRECT_IO);
        return m.engine();
    };
    {
        Maker m;
        EXPECT_TRUE(make(m, TensorFormat::kLINEAR, TensorFormat::kLINEAR)) << m.errors();
    }
    {
        Maker m;
        EXPECT_FALSE(make(m, TensorFormat::kCHW32, TensorFormat::kLINEAR));
        EXPECT_TRUE(m.oneError("layer 'the_only_layer': no tactic reads network input 'x'"));
    }
    {
        Maker m;
        EXPECT_FALSE(make(m, TensorFormat::kLINEAR, TensorFormat::kHWC));
        EXPECT_TRUE(m.oneError("layer 'the_only_layer': no tactic writes network output 'y'"));
    }
    { // Only tensors with formats of their own are meant.
        Maker m;
        m.output(m.relu(m.input("x", {1, 5, 4, 4})), "y");
        m.config->setFlag(BuilderFlag::kDIRECT_IO);
        EXPECT_TRUE(m.engine()) << m.errors();
    }
    { // With a choice, one that fits is taken.
        Maker m;
        ITensor* x = m.input("x", {1, 5, 4, 4});
        x->setAllowedFormats(maskOf(TensorFormat::kHWC) | maskOf(TensorFormat::kLINEAR));
        m.output(m.relu(x), "y");
        m.config->setFlag(BuilderFlag::kDIRECT_IO);
        std::unique_ptr<ICudaEngine> engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        EXPECT_EQ(engine->getTensorFormat("x"), TensorFormat::kLINEAR);
    }
}

TEST(IoFormats, ShapeTensorsAreLinear)
{
    Maker m;
    ITensor* x = m.input("x", {2, 3, 4});
    ITensor* s = m.input("s", {3}, DataType::kINT32);
    IShuffleLayer* shuffle = m.network->addShuffle(*x);
    shuffle->setInput(1, *s);
    m.output(shuffle->getOutput(0), "y");
    m.profile({}, {{"s", {4, 3, 2}, {4, 3, 2}, {4, 3, 2}}});
    s->setAllowedFormats(maskOf(TensorFormat::kHWC));
    EXPECT_FALSE(m.plan());
    EXPECT_TRUE(m.oneError("'s'"));
    s->setAllowedFormats(maskOf(TensorFormat::kLINEAR) | maskOf(TensorFormat::kHWC));
    EXPECT_TRUE(m.plan()) << m.errors();
}

} // namespace
