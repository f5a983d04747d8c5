// SPDX-License-Identifier: Apache-2.0
// Planted faults: each is one that real kernels have had. All are refused, whatever their speed; what is allowed is
// not.
#include <cmath>

#include <gtest/gtest.h>

#include "ops/activation/op.h"
#include "tactic/registry.h"
#include "tune/check.h"

namespace tw::tune {

namespace {

using ops::activation::Kind;

// A kernel for images [n, c, h, w] in channels-last with one fault.
enum class Fault
{
    kNone,
    kWritesGaps, // allowed: they are nobody's
    kOffByOneTail,
    kLastChannelOfLastPixel,
    kFirstImageOnly,
    kBatchOfOneStrides,
    kMaskedTailForgotten,
    kReadsGaps,
    kWritesBeyondOutput,
    kWritesBeforeOutput,
    kWritesBeyondWorkspace,
    kOverwritesInput,
    kOverflows,
    kSwapsTwoPixels,
    kDoesNothing,
};

float sigmoid(float x, Fault fault)
{
    // e^x / (1 + e^x) is inf / inf from 89 on.
    return fault == Fault::kOverflows ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

class Faulty final : public ops::Kernel
{
public:
    explicit Faulty(Fault fault) : fault_(fault) {}
    int64_t workspaceBytes(std::span<TensorRef const>, std::span<TensorRef const>) const override { return 100; }
    Result<void> run(ops::RunArgs& args) const override
    {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        if (fault_ == Fault::kDoesNothing)
            return {};
        int64_t const n = fault_ == Fault::kFirstImageOnly ? 1 : y.dims[0], c = y.dims[1];
        int64_t const pixels = y.dims[2] * y.dims[3], step = y.pixelStride();
        bool const isLast = y.format == Format::kChannelsLast;
        auto at = [&](int64_t i, int64_t k, int64_t p) {
            return isLast ? (i * pixels + p) * step + k : (i * c + k) * pixels + p;
        };
        for (int64_t i = 0; i < n; ++i)
            for (int64_t p = 0; p < pixels; ++p)
                for (int64_t k = 0; k < c; ++k) {
                    int64_t const from = fault_ == Fault::kBatchOfOneStrides
                                             ? at(0, k, p)
                                             : at(i, k, fault_ == Fault::kSwapsTwoPixels ? p ^ 1 : p);
                    if (fault_ == Fault::kSwapsTwoPixels && (pixels & 1) && p + 1 == pixels)
                        continue;
                    y.as<float>()[at(i, k, p)] = sigmoid(x.as<float>()[from], fault_);
                }
        spoil(args, n, c, pixels, step, at);
        return {};
    }

private:
    template <class At>
    void spoil(ops::RunArgs& args, int64_t n, int64_t c, int64_t pixels, int64_t step, At at) const
    {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        float* out = y.as<float>();
        bool const isLast = y.format == Format::kChannelsLast;
        switch (fault_) {
        case Fault::kWritesGaps:
            for (int64_t p = 0; isLast && p < n * pixels; ++p)
                for (int64_t k = c; k < step; ++k)
                    out[p * step + k] = -1;
            break;
        case Fault::kOffByOneTail:
            out[at(n - 1, c - 1, pixels - 1)] = 0;
            break;
        case Fault::kLastChannelOfLastPixel:
            for (int64_t i = 0; i < n; ++i)
                out[at(i, c - 1, pixels - 1)] += 0.01f;
            break;
        case Fault::kMaskedTailForgotten:
            for (int64_t p = 0; p < pixels; ++p)
                for (int64_t k = c / 8 * 8; k < c; ++k)
                    out[at(0, k, p)] = 0;
            break;
        case Fault::kReadsGaps:
            if (isLast && step > c)
                out[at(0, 0, 0)] += 0 * x.as<float>()[c];
            break;
        case Fault::kWritesBeyondOutput:
            out[y.sizeBytes() / 4] = 1;
            break;
        case Fault::kWritesBeforeOutput:
            out[-1] = 1;
            break;
        case Fault::kWritesBeyondWorkspace:
            static_cast<char*>(args.workspace)[100] = 1;
            break;
        case Fault::kOverwritesInput:
            x.as<float>()[at(0, 0, 0)] = 5;
            break;
        default:
            break;
        }
    }
    Fault fault_;
};

struct Sigmoid
{
    ir::Graph graph;
    ops::Problem problem;

    Sigmoid(Extents const& dims, Extents const& maxDims, Format format)
    {
        ir::Shape shape;
        for (int64_t d : dims)
            shape.push_back(ir::Dim(d));
        ir::Value* x = graph.addInput("x", DataType::kFloat, shape);
        problem.node = *graph.addNode(ops::activation::def(), std::make_unique<ops::activation::Attrs>(Kind::kSigmoid),
                                      {x}, "sigmoid");
        ops::TensorSpec spec;
        spec.dims = dims;
        spec.maxDims = maxDims;
        spec.present = true;
        spec.format = format;
        problem.inputs = problem.outputs = {spec};
    }
    Result<tune::Checked> check(Fault fault) const { return checkKernel(problem, Faulty(fault), "test_faulty"); }
};

constexpr Format kLinear = Format::kLinear, kLast = Format::kChannelsLast;

} // namespace

TEST(Fault, EveryOneIsRefused)
{
    Fault const faults[] = {Fault::kOffByOneTail,
                            Fault::kLastChannelOfLastPixel,
                            Fault::kFirstImageOnly,
                            Fault::kBatchOfOneStrides,
                            Fault::kMaskedTailForgotten,
                            Fault::kReadsGaps,
                            Fault::kWritesBeyondOutput,
                            Fault::kWritesBeforeOutput,
                            Fault::kWritesBeyondWorkspace,
                            Fault::kOverwritesInput,
                            Fault::kOverflows,
                            Fault::kSwapsTwoPixels,
                            Fault::kDoesNothing};
    int refused = 0, planted = 0;
    for (Format format : {kLinear, kLast})
        for (Extents const& dims :
             {Extents{2, 3, 5, 7}, Extents{2, 17, 6, 6}, Extents{3, 67, 33, 31}, Extents{24, 13, 80, 80}}) {
            Sigmoid const s(dims, dims, format);
            for (Fault f : {Fault::kNone, Fault::kWritesGaps}) {
                auto const checked = s.check(f);
                ASSERT_TRUE(checked.ok()) << checked.error().message;
                ASSERT_TRUE(checked->isRight());
            }
            for (Fault f : faults) {
                if (format == kLinear && f == Fault::kReadsGaps)
                    continue; // no gaps
                ++planted;
                refused += !s.check(f).ok();
                EXPECT_FALSE(s.check(f).ok()) << "fault " << int(f) << ", " << dims.str() << " " << nameOf(format);
            }
        }
    EXPECT_EQ(refused, planted);
    EXPECT_EQ(planted, 4 * 13 + 4 * 12);
}

// Right for the optimum, one image, and wrong for the maximum: engines run both.
TEST(Fault, OnlyAtTheMaximumShape)
{
    for (Format format : {kLinear, kLast})
        for (Fault f : {Fault::kFirstImageOnly, Fault::kBatchOfOneStrides}) {
            EXPECT_TRUE(Sigmoid({1, 19, 8, 8}, {1, 19, 8, 8}, format).check(f).ok());
            auto const checked = Sigmoid({1, 19, 8, 8}, {4, 19, 8, 8}, format).check(f);
            ASSERT_FALSE(checked.ok());
            EXPECT_NE(checked.error().message.find("at the maximum shapes"), std::string::npos)
                << checked.error().message;
        }
}

TEST(Fault, MessagesSayWhatIsWrong)
{
    Sigmoid const s({1, 3, 4, 4}, {1, 3, 4, 4}, kLast);
    auto has = [&](Fault f, char const* text) {
        auto const checked = s.check(f);
        return !checked.ok() && checked.error().message.find(text) != std::string::npos;
    };
    EXPECT_TRUE(has(Fault::kWritesBeyondOutput, "writes beyond output 0"));
    EXPECT_TRUE(has(Fault::kWritesBeyondWorkspace, "writes beyond its workspace"));
    EXPECT_TRUE(has(Fault::kOverwritesInput, "writes to its input 0"));
    EXPECT_TRUE(has(Fault::kOverflows, "on large values"));
}

} // namespace tw::tune
