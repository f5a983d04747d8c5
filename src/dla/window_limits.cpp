// SPDX-License-Identifier: Apache-2.0
// The rules of 8.5's guide for layers with a window over height and width.
#include <array>

#include "base/round.h"
#include "dla/check.h"

namespace tw::dla {

using namespace nvinfer1;
using nvinfer1::DataType; // of the two that are in sight here

namespace {

constexpr int64_t kBankBytes = 32 << 10; // of the buffer that a convolution reads from
constexpr int64_t kBanks = 16;           // of it

class WindowCheck final : public Check
{
public:
    using Check::Check;

private:
    void checkKind() override
    {
        switch (layer_.getType()) {
        case LayerType::kCONVOLUTION:
            return checkConvolution(static_cast<IConvolutionLayer const&>(layer_));
        case LayerType::kFULLY_CONNECTED:
            return checkFullyConnected(static_cast<IFullyConnectedLayer const&>(layer_));
        case LayerType::kDECONVOLUTION:
            return checkDeconvolution(static_cast<IDeconvolutionLayer const&>(layer_));
        default:
            return checkPooling(static_cast<IPoolingLayer const&>(layer_));
        }
    }

    // Before and after, of each dimension.
    struct Pads
    {
        Dims pre, post;
    };
    template <class Layer>
    Pads padsOf(Layer const& l, Dims const& window, Dims const& stride, Dims const& dilation) const
    {
        PaddingMode const mode = l.getPaddingMode();
        if (mode != PaddingMode::kSAME_UPPER && mode != PaddingMode::kSAME_LOWER)
            return {l.getPrePadding(), l.getPostPadding()};
        Sizes const x = sizes(*input(0));
        Pads pads{window, window};
        for (int i = 0; i < 2; ++i) {
            int64_t const size = i == 0 ? x.h : x.w, reach = int64_t(window.d[i] - 1) * dilation.d[i] + 1;
            int64_t const all =
                std::max<int64_t>((divideUp(size, int64_t(stride.d[i])) - 1) * stride.d[i] + reach - size, 0);
            int64_t const less = all / 2, more = all - less;
            pads.pre.d[i] = int32_t(mode == PaddingMode::kSAME_UPPER ? less : more);
            pads.post.d[i] = int32_t(mode == PaddingMode::kSAME_UPPER ? more : less);
        }
        return pads;
    }

    // What the convolution buffer must hold at least: the weights of one kernel, and the rows of the input that one row of
    // the output is made of. How DLA packs them is not published; this is the least that its vectors allow.
    void checkBuffer(int64_t channels, int64_t groups, int64_t r, int64_t s, int64_t dilation, int64_t width)
    {
        int64_t const bytes = v_.mayInt8 && !v_.mayHalf ? 1 : 2;
        int64_t const together = roundUp(channels * bytes, kVectorBytes);
        int64_t const ofGroup = roundUp(divideUp(channels, groups) * bytes, kVectorBytes);
        int64_t const weightBanks = divideUp(r * s * ofGroup, kBankBytes);
        int64_t const dataBanks = divideUp(((r - 1) * dilation + 1) * width * together, kBankBytes);
        if (weightBanks + dataBanks > kBanks)
            parameter(
                fmt::format("the convolution buffer has {} banks, the weights of one kernel take {} (kernel {}x{}, {} "
                            "channels) and the least of the data {} (width {})",
                            kBanks, weightBanks, r, s, channels, dataBanks, width));
    }

    void checkConvolution(IConvolutionLayer const& l)
    {
        checkWeights(1);
        Dims const kernel = l.getKernelSizeNd(), stride = l.getStrideNd(), dilation = l.getDilationNd();
        if (!isPlane("a convolution", kernel))
            return;
        each("kernel size", kernel, 1, 32);
        each("stride", stride, 1, 8);
        each("dilation", dilation, 1, 32);
        range("number of output maps", l.getNbOutputMaps(), 1, kMostExtent);
        range("number of groups", l.getNbGroups(), 1, kMostExtent);
        Pads const pads = padsOf(l, kernel, stride, dilation);
        for (auto const& [what, values] : {std::pair("padding in front", pads.pre), {"padding behind", pads.post}}) {
            each(what, values, 0, 31);
            for (int i = 0; i < 2; ++i)
                if (values.d[i] >= kernel.d[i] && values.d[i] <= 31) {
                    parameter(
                        fmt::format("{} {}, allowed is less than the kernel size {}", what, str(values), str(kernel)));
                    break;
                }
        }
        if (!v_.findings.empty())
            return;
        Sizes const x = sizes(*input(0));
        checkBuffer(x.c, l.getNbGroups(), kernel.d[0], kernel.d[1], dilation.d[0], x.w);
    }

    void checkFullyConnected(IFullyConnectedLayer const& l)
    {
        checkWeights(1);
        range("number of output channels", l.getNbOutputChannels(), 1, kMostExtent);
        Sizes const x = sizes(*input(0));
        if (x.h > 32 || x.w > 32)
            parameter(fmt::format("an input of height {} and width {}, which is the kernel size, allowed are 1 to 32",
                                  x.h, x.w));
        if (v_.findings.empty())
            checkBuffer(x.c, 1, x.h, x.w, 1, x.w);
    }

    void checkDeconvolution(IDeconvolutionLayer const& l)
    {
        checkWeights(1);
        Dims const kernel = l.getKernelSizeNd(), stride = l.getStrideNd(), dilation = l.getDilationNd();
        if (!isPlane("a deconvolution", kernel))
            return;
        for (auto const& [what, size] : {std::pair("kernel size", kernel), {"stride", stride}}) {
            auto isLong = [](int32_t v) { return v == 64 || v == 96 || v == 128; };
            bool const isRow = (size.d[0] == 1 && isLong(size.d[1])) || (isLong(size.d[0]) && size.d[1] == 1);
            bool const isSmall =
                std::ranges::all_of(std::array{size.d[0], size.d[1]}, [](int32_t v) { return v >= 1 && v <= 32; });
            if (!isRow && !isSmall)
                parameter(fmt::format("{} {}, allowed are 1 to 32, and 64, 96 or 128 beside a 1", what, str(size)));
            else if (size.d[0] == size.d[1] && size.d[0] >= 23)
                parameter(fmt::format("{} {}, squares of 23 to 32 are not allowed", what, str(size)));
        }
        Pads const pads = padsOf(l, kernel, stride, dilation);
        equals("padding in front", pads.pre, 0);
        equals("padding behind", pads.post, 0);
        equals("dilation", dilation, 1);
        range("number of groups", l.getNbGroups(), 1, 1);
        range("number of input channels", sizes(*input(0)).c, 1, kMostExtent);
        range("number of output channels", l.getNbOutputMaps(), 1, kMostExtent);
    }

    void checkPooling(IPoolingLayer const& l)
    {
        PoolingType const type = l.getPoolingType();
        if (type != PoolingType::kMAX && type != PoolingType::kAVERAGE)
            return unsupported("of pooling types DLA has kMAX and kAVERAGE alone");
        Dims const window = l.getWindowSizeNd(), stride = l.getStrideNd();
        if (!isPlane("pooling", window))
            return;
        each("window size", window, 1, 8);
        each("stride", stride, 1, 16);
        Dims ones = window;
        ones.d[0] = ones.d[1] = 1;
        Pads const pads = padsOf(l, window, stride, ones);
        each("padding in front", pads.pre, 0, 7);
        each("padding behind", pads.post, 0, 7);
        if (s_.model == Model::kXavier && type == PoolingType::kAVERAGE && l.getAverageCountExcludesPadding())
            parameter("averages that leave the padding out, Xavier's count it (setAverageCountExcludesPadding(false))");
        equalRanges(*input(0), *output());
    }
};

} // namespace

bool hasWindow(LayerType type)
{
    return type == LayerType::kCONVOLUTION || type == LayerType::kFULLY_CONNECTED ||
           type == LayerType::kDECONVOLUTION || type == LayerType::kPOOLING;
}

void checkWindow(ILayer const& layer, Limits const& limits, Verdict& verdict)
{
    WindowCheck(layer, limits, verdict).run();
}

} // namespace tw::dla
