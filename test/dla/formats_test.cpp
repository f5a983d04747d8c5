// SPDX-License-Identifier: Apache-2.0
// Networks whose inputs and outputs are in DLA's formats, against plain sums over the numbers.
#include "dla/dla_maker.h"
#include "dla/half.h"

using namespace tw::test;

namespace {

uint32_t maskOf(TensorFormat f)
{
    return 1U << static_cast<int>(f);
}

// conv 1x1 of x [n, c, h, w] with k maps, then a relu; exact for the small whole numbers that are used.
struct Net
{
    int n, c, h, w, k;
    std::vector<float> weights, x;

    Net(int n_, int c_, int h_, int w_, int k_) : n(n_), c(c_), h(h_), w(w_), k(k_)
    {
        std::mt19937 random(uint32_t(n * 1000 + c * 100 + h * 10 + w));
        std::uniform_int_distribution<int> small(-3, 3);
        weights.resize(size_t(k) * size_t(c));
        x.resize(size_t(n) * size_t(c) * size_t(h) * size_t(w));
        for (float& v : weights)
            v = float(small(random));
        for (float& v : x)
            v = float(small(random));
    }
    void add(DlaMaker& m, TensorFormat in, TensorFormat out) const
    {
        ITensor* t = m.input("x", {n, c, h, w}, DataType::kHALF);
        t->setAllowedFormats(maskOf(in));
        auto* l = m.network->addConvolutionNd(*t, k, DimsHW(1, 1),
                                              {DataType::kFLOAT, weights.data(), int64_t(weights.size())},
                                              {DataType::kFLOAT, nullptr, 0});
        m.output(m.relu(l->getOutput(0)), "y");
        ITensor* y = m.network->getOutput(0);
        y->setType(DataType::kHALF);
        y->setAllowedFormats(maskOf(out));
    }
    float want(int in, int ik, int ih, int iw) const
    {
        float sum = 0;
        for (int ic = 0; ic < c; ++ic)
            sum += weights[size_t(ik * c + ic)] * x[size_t(((in * c + ic) * h + ih) * w + iw)];
        return std::max(sum, 0.F);
    }
};

int roundUp(int v, int to)
{
    return (v + to - 1) / to * to;
}

// Where an element lies, by the words of 8.5's guide; in elements.
struct Place
{
    TensorFormat format;
    int n, c, h, w;
    bool isOrin;

    int rowOfPixels() const
    {
        int const together = c == 1 ? 1 : 4;
        return roundUp(w, (isOrin ? 64 : 32) / together / 2);
    }
    size_t count() const
    {
        switch (format) {
        case TensorFormat::kDLA_LINEAR:
            return size_t(n * c * h * roundUp(w, 32));
        case TensorFormat::kDLA_HWC4:
            return size_t(n * h * rowOfPixels() * (c == 1 ? 1 : 4));
        default:
            return size_t(n * roundUp(c, 16) * h * w);
        }
    }
    size_t of(int in, int ic, int ih, int iw) const
    {
        switch (format) {
        case TensorFormat::kDLA_LINEAR:
            return size_t(((in * c + ic) * h + ih) * roundUp(w, 32) + iw);
        case TensorFormat::kDLA_HWC4:
            return size_t(((in * h + ih) * rowOfPixels() + iw) * (c == 1 ? 1 : 4) + ic);
        default:
            return size_t((((in * (roundUp(c, 16) / 16) + ic / 16) * h + ih) * w + iw) * 16 + ic % 16);
        }
    }
};

void run(char const* model, Net const& net, TensorFormat in, TensorFormat out, bool direct)
{
    std::string const what = std::string(model) + " " + std::to_string(net.c) + "x" + std::to_string(net.h) + "x" +
                             std::to_string(net.w) + " formats " + std::to_string(int(in)) + " " +
                             std::to_string(int(out));
    DlaMaker m(model);
    if (direct)
        m.config->setFlag(BuilderFlag::kDIRECT_IO);
    net.add(m, in, out);
    auto const engine = m.engine();
    ASSERT_NE(engine, nullptr) << what << m.errors();
    bool const isOrin = std::string(model) == "orin";
    Place const from{in, net.n, net.c, net.h, net.w, isOrin}, to{out, net.n, net.k, net.h, net.w, isOrin};
    EXPECT_EQ(engine->getTensorFormat("x"), in) << what;
    EXPECT_EQ(engine->getTensorFormat("y"), out) << what;
    EXPECT_EQ(list(engine->getTensorShape("x")), (Shape{net.n, net.c, net.h, net.w})) << what;
    EXPECT_EQ(list(engine->getBindingDimensions(1)), (Shape{net.n, net.k, net.h, net.w})) << what;
    Context const context = contextOf(*engine);
    EXPECT_EQ(list(context->getTensorShape("y")), (Shape{net.n, net.k, net.h, net.w})) << what;
    // What lies in gaps of inputs is nobody's.
    std::vector<uint16_t> x(from.count() + 1, 0x7E01), y(to.count() + 1, 0x7E01);
    for (int n = 0; n < net.n; ++n)
        for (int c = 0; c < net.c; ++c)
            for (int h = 0; h < net.h; ++h)
                for (int w = 0; w < net.w; ++w)
                    x[from.of(n, c, h, w)] = toHalf(net.x[size_t(((n * net.c + c) * net.h + h) * net.w + w)]);
    context->setTensorAddress("x", x.data());
    context->setTensorAddress("y", y.data());
    ASSERT_TRUE(context->enqueueV3(nullptr)) << what << m.errors();
    for (int n = 0; n < net.n; ++n)
        for (int k = 0; k < net.k; ++k)
            for (int h = 0; h < net.h; ++h)
                for (int w = 0; w < net.w; ++w)
                    ASSERT_EQ(toFloat(y[to.of(n, k, h, w)]), net.want(n, k, h, w)) << what << ' ' << n << k << h << w;
    EXPECT_EQ(y.back(), 0x7E01) << what << ": it writes behind its end";
    // Strides, as 8.5 gives them: of the formats that only DLA has in elements.
    if (in != TensorFormat::kCHW16) {
        Shape const strides = list(context->getTensorStrides("x"));
        EXPECT_EQ(strides, list(context->getStrides(0)));
        auto step = [&](int n, int c, int h, int w) { return int(from.of(n, c, h, w) - from.of(0, 0, 0, 0)); };
        EXPECT_EQ(strides, (Shape{step(1, 0, 0, 0), in == TensorFormat::kDLA_HWC4 ? 1 : step(0, 1, 0, 0),
                                  step(0, 0, 1, 0), step(0, 0, 0, 1)}))
            << what;
    }
    EXPECT_FALSE(context->setInputShape("x", dims({net.n + 1, net.c, net.h, net.w})));
    EXPECT_TRUE(context->setInputShape("x", dims({net.n, net.c, net.h, net.w}))) << m.errors();
}

TEST(DlaFormats, AgainstSums)
{
    using enum TensorFormat;
    for (char const* model : {"orin", "xavier"})
        for (int w : {1, 8, 9, 33})
            for (int c : {1, 3, 4}) {
                Net const net(2, c, 3, w, 5);
                run(model, net, kDLA_HWC4, kDLA_LINEAR, w % 2 == 0); // rows are the model's here alone
                if (std::string(model) == "orin" && c != 4)
                    for (TensorFormat in : {kDLA_LINEAR, kCHW16})
                        run(model, net, in, w == 9 ? kCHW16 : kDLA_LINEAR, w % 2 == 0);
            }
    run("orin", Net(1, 17, 2, 5, 33), kDLA_LINEAR, kDLA_LINEAR, true);
    run("orin", Net(1, 17, 2, 5, 33), kCHW16, kCHW16, true);
}

TEST(DlaFormats, WhatIsNotAllowed)
{
    using enum TensorFormat;
    struct Case
    {
        TensorFormat in, out;
        int channels;
        char const* part;
    };
    for (Case const& c : {Case{kLINEAR, kDLA_LINEAR, 3, "network input 'x' of type f16 and rank 4 can be in none"},
                          {kDLA_LINEAR, kLINEAR, 3, "network output 'y' of type f16"},
                          {kDLA_LINEAR, kHWC8, 3, "network output 'y'"},
                          {kCHW32, kDLA_LINEAR, 3, "network input 'x'"},
                          {kDLA_HWC4, kDLA_LINEAR, 2, "2 channels, allowed are 1, 3 and 4"},
                          {kDLA_HWC4, kDLA_LINEAR, 5, "5 channels"},
                          {kDLA_LINEAR, kDLA_HWC4, 3, "it is an output"}}) {
        DlaMaker m;
        Net(1, c.channels, 2, 3, 4).add(m, c.in, c.out);
        EXPECT_FALSE(m.plan());
        EXPECT_TRUE(m.oneError(c.part)) << int(c.in) << int(c.out);
    }
    DlaMaker floats; // FP32 has none of DLA's formats
    floats.input("x", {1, 3, 4, 4})->setAllowedFormats(maskOf(kDLA_LINEAR));
    floats.output(floats.relu(floats.network->getInput(0)), "y");
    EXPECT_FALSE(floats.plan());
    EXPECT_TRUE(floats.oneError("network input 'x' of type f32"));
    DlaMaker unset;
    unset.output(unset.relu(unset.input("x", {1, 3, 4, 4}, DataType::kHALF)), "y");
    EXPECT_FALSE(unset.plan());
    EXPECT_TRUE(unset.oneError("would be linear"));
    DlaMaker first; // an image is read by convolutions alone
    first.input("x", {1, 3, 4, 4}, DataType::kHALF)->setAllowedFormats(maskOf(kDLA_HWC4));
    first.output(first.relu(first.network->getInput(0)), "y");
    EXPECT_FALSE(first.plan());
    EXPECT_TRUE(first.oneError("allowed are convolutions"));
    for (int groups : {4, 8}) {
        // 4 channels have 4 groups at most: the limit of 4 follows from the format's channels.
        DlaMaker m;
        ITensor* x = m.input("x", {1, groups, 4, 4}, DataType::kHALF);
        x->setAllowedFormats(maskOf(kDLA_HWC4));
        m.output(m.convolution(x, 8, {1, 1}, groups)->getOutput(0), "y");
        ITensor* y = m.network->getOutput(0);
        y->setType(DataType::kHALF);
        y->setAllowedFormats(maskOf(kDLA_LINEAR));
        EXPECT_EQ(m.plan() != nullptr, groups == 4) << m.errors();
        if (groups == 8) {
            EXPECT_TRUE(contains(m.errors(), "8 groups, allowed are 1 to 4")) << m.errors();
        }
    }
    DlaMaker gpu; // no layer on DLA beside it
    gpu.config->setFlag(BuilderFlag::kGPU_FALLBACK);
    gpu.input("x", {1, 3, 4, 4}, DataType::kHALF)->setAllowedFormats(maskOf(kDLA_LINEAR));
    gpu.output(gpu.network->addUnary(*gpu.network->getInput(0), UnaryOperation::kEXP)->getOutput(0), "y");
    EXPECT_FALSE(gpu.plan());
    EXPECT_TRUE(gpu.oneError("no layer on a DLA is beside it"));
}

// What lies in padded rows is told in the shape that clients know.
TEST(DlaFormats, OutputAllocators)
{
    DlaMaker m;
    Net(1, 3, 2, 5, 4).add(m, TensorFormat::kDLA_HWC4, TensorFormat::kDLA_LINEAR);
    auto const engine = m.engine();
    ASSERT_NE(engine, nullptr) << m.errors();
    struct Allocator final : IOutputAllocator
    {
        void* reallocateOutput(char const*, void*, uint64_t size, uint64_t) noexcept override
        {
            bytes = size;
            memory.resize(size);
            return memory.data();
        }
        void notifyShape(char const*, Dims const& d) noexcept override { shape = list(d); }
        std::vector<uint8_t> memory;
        uint64_t bytes = 0;
        Shape shape;
    } output;
    Context const context = contextOf(*engine);
    std::vector<uint16_t> x(2 * 8 * 4);
    context->setTensorAddress("x", x.data());
    context->setOutputAllocator("y", &output);
    EXPECT_EQ(context->getMaxOutputSize("y"), 4 * 2 * 64);
    ASSERT_TRUE(context->enqueueV3(nullptr)) << m.errors();
    EXPECT_EQ(output.bytes, 4U * 2 * 64);
    EXPECT_EQ(output.shape, (Shape{1, 4, 2, 5}));
}

// With fallback everything may stay linear, and one of both formats may be DLA's.
TEST(DlaFormats, WithFallback)
{
    using enum TensorFormat;
    for (TensorFormat out : {kLINEAR, kDLA_LINEAR}) {
        DlaMaker m;
        m.config->setFlag(BuilderFlag::kGPU_FALLBACK);
        Net(1, 3, 2, 3, 4).add(m, kLINEAR, out);
        auto const engine = m.engine();
        ASSERT_NE(engine, nullptr) << m.errors();
        EXPECT_EQ(engine->getTensorFormat("x"), kLINEAR);
        EXPECT_EQ(engine->getTensorFormat("y"), out);
    }
    // Of several that are allowed, what needs no padding.
    DlaMaker m;
    m.config->setFlag(BuilderFlag::kGPU_FALLBACK);
    Net(1, 3, 2, 3, 4).add(m, kLINEAR, kDLA_LINEAR);
    m.network->getInput(0)->setAllowedFormats(maskOf(kLINEAR) | maskOf(kDLA_LINEAR));
    auto const engine = m.engine();
    ASSERT_NE(engine, nullptr) << m.errors();
    EXPECT_EQ(engine->getTensorFormat("x"), kLINEAR);
}

} // namespace
