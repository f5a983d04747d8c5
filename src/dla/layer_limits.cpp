// SPDX-License-Identifier: Apache-2.0
// The rules of 8.5's guide for layers without a window, one function for each kind.
#include <array>
#include <optional>

#include "dla/check.h"

namespace tw::dla {

using namespace nvinfer1;
using nvinfer1::DataType; // of the two that are in sight here

namespace {

class LayerCheck final : public Check
{
public:
    using Check::Check;

private:
    void checkKind() override
    {
        switch (layer_.getType()) {
        case LayerType::kACTIVATION:
            return checkActivation(static_cast<IActivationLayer const&>(layer_));
        case LayerType::kPARAMETRIC_RELU:
            return checkParametricRelu();
        case LayerType::kELEMENTWISE:
            return checkElementWise(static_cast<IElementWiseLayer const&>(layer_));
        case LayerType::kIDENTITY:
            return checkIdentity();
        case LayerType::kSCALE:
            return checkScale(static_cast<IScaleLayer const&>(layer_));
        case LayerType::kLRN:
            return checkLrn(static_cast<ILRNLayer const&>(layer_));
        case LayerType::kCONCATENATION:
            return checkConcatenation(static_cast<IConcatenationLayer const&>(layer_));
        case LayerType::kRESIZE:
            return checkResize(static_cast<IResizeLayer const&>(layer_));
        case LayerType::kUNARY:
            if (static_cast<IUnaryLayer const&>(layer_).getOperation() != UnaryOperation::kABS)
                unsupported("of unary operations DLA has kABS alone");
            return;
        case LayerType::kSLICE:
            return checkSlice(static_cast<ISliceLayer const&>(layer_));
        case LayerType::kSOFTMAX:
            return checkSoftMax(static_cast<ISoftMaxLayer const&>(layer_));
        case LayerType::kSHUFFLE:
            return checkShuffle(static_cast<IShuffleLayer const&>(layer_));
        default:
            return; // hasKind() knows all of them
        }
    }

    void checkActivation(IActivationLayer const& l)
    {
        switch (l.getActivationType()) {
        case ActivationType::kRELU:
        case ActivationType::kSIGMOID:
        case ActivationType::kTANH:
        case ActivationType::kLEAKY_RELU:
            return;
        case ActivationType::kCLIP:
            if (l.getAlpha() != 0)
                parameter(fmt::format("a lower value {} of kCLIP, allowed is 0", l.getAlpha()));
            if (!(l.getBeta() >= 1 && l.getBeta() <= 127))
                parameter(fmt::format("an upper value {} of kCLIP, allowed are 1 to 127", l.getBeta()));
            return;
        default:
            unsupported("of activations DLA has kRELU, kSIGMOID, kTANH, kCLIP and kLEAKY_RELU alone");
        }
    }

    void checkParametricRelu()
    {
        ITensor const& slopes = *input(1);
        if (!limits_.isConstant(slopes))
            return unsupported(
                fmt::format("the slopes '{}' are computed at run time, DLA takes constants", slopes.getName()));
        if (slopes.getDimensions().nbDims != input(0)->getDimensions().nbDims)
            parameter(fmt::format("slopes '{}' of rank {}, allowed is the input's, {}", slopes.getName(),
                                  slopes.getDimensions().nbDims, input(0)->getDimensions().nbDims));
    }

    void checkElementWise(IElementWiseLayer const& l)
    {
        switch (l.getOperation()) {
        case ElementWiseOperation::kSUM:
        case ElementWiseOperation::kSUB:
        case ElementWiseOperation::kPROD:
        case ElementWiseOperation::kMAX:
        case ElementWiseOperation::kMIN:
            if (output()->getType() == DataType::kBOOL)
                return unsupported("it works on booleans");
            if (!limits_.isConstant(*input(0)) && !limits_.isConstant(*input(1)))
                equalRanges(*input(0), *input(1));
            return;
        case ElementWiseOperation::kEQUAL:
            return checkEqual();
        default:
            unsupported("of elementwise operations DLA has kSUM, kSUB, kPROD, kMAX, kMIN and kEQUAL alone");
        }
    }

    bool isSetToInt8(ILayer const& l) const
    {
        return s_.isSetToDla && s_.isSetToDla(l) && l.precisionIsSet() && l.getPrecision() == DataType::kINT8;
    }
    void checkEqual()
    {
        noHalf("kEQUAL is for INT8 alone");
        if (!isSetToInt8(layer_))
            return parameter("kEQUAL runs on DLA where device type kDLA and precision INT8 are set for it alone");
        auto const& readers = limits_.readersOf(*output());
        if (output()->isNetworkOutput())
            return parameter("kEQUAL as an output of the network, allowed is a cast (IIdentityLayer) behind it");
        if (readers.size() != 1 || readers[0]->getType() != LayerType::kIDENTITY)
            return parameter(
                fmt::format("kEQUAL with {} readers, allowed is one, a cast (IIdentityLayer)", readers.size()));
        DataType const to = readers[0]->getOutputType(0);
        if (!isSetToInt8(*readers[0]) || (to != DataType::kHALF && to != DataType::kINT8))
            parameter(fmt::format("the cast '{}' behind kEQUAL must make FP16 or INT8, and have device type kDLA and "
                                  "precision INT8 set",
                                  readers[0]->getName()));
        equalRanges(*input(0), *input(1));
    }
    void checkIdentity()
    {
        ILayer const* const maker = limits_.makerOf(*input(0));
        bool const follows =
            maker && maker->getType() == LayerType::kELEMENTWISE &&
            static_cast<IElementWiseLayer const*>(maker)->getOperation() == ElementWiseOperation::kEQUAL;
        if (!follows || !limits_.of(*maker).canRun())
            return unsupported("DLA has casts (IIdentityLayer) behind a kEQUAL on DLA alone");
        noHalf("the cast behind kEQUAL is for INT8 alone");
    }

    void checkScale(IScaleLayer const& l)
    {
        checkWeights(1);
        Weights const power = l.getPower();
        for (int64_t i = 0; i < power.count && power.values; ++i) {
            bool const isOne = power.type == DataType::kHALF ? static_cast<uint16_t const*>(power.values)[i] == 0x3C00
                                                             : static_cast<float const*>(power.values)[i] == 1.F;
            if (!isOne) {
                parameter(fmt::format("power {} of {} is not 1, allowed are scale and shift alone", i, power.count));
                return;
            }
        }
        int const channel = input(0)->getDimensions().nbDims - 3;
        int const axis = l.getChannelAxis();
        if (axis != channel && l.getMode() != ScaleMode::kUNIFORM)
            parameter(fmt::format("channel axis {}, allowed is {}: height and width stand behind it", axis, channel));
    }

    void checkLrn(ILRNLayer const& l)
    {
        int const window = l.getWindowSize();
        if (window != 3 && window != 5 && window != 7 && window != 9)
            parameter(fmt::format("window size {}, allowed are 3, 5, 7 and 9", window));
    }

    void checkConcatenation(IConcatenationLayer const& l)
    {
        range("number of inputs", layer_.getNbInputs(), 2, INT32_MAX);
        int const channel = output()->getDimensions().nbDims - 3;
        if (l.getAxis() != channel)
            parameter(fmt::format("axis {}, allowed is that of the channels, {}", l.getAxis(), channel));
        Sizes const y = sizes(*output());
        for (int i = 0; i < layer_.getNbInputs(); ++i) {
            Sizes const x = sizes(*input(i));
            if (x.h != y.h || x.w != y.w)
                parameter(fmt::format("{} has height {} and width {}, the output {} and {}: they must be the same",
                                      name(*input(i)), x.h, x.w, y.h, y.w));
            equalRanges(*input(i), *output());
        }
    }

    void checkResize(IResizeLayer const& l)
    {
        std::array<float, Dims::MAX_DIMS> scales{};
        int const count = layer_.getNbInputs() > 1 ? -1 : l.getScales(Dims::MAX_DIMS, scales.data());
        bool const isImplicit = limits_.network().hasImplicitBatchDimension();
        if (count != (isImplicit ? 3 : 4))
            return parameter("sizes that are not given as 4 scales (IResizeLayer::setScales())");
        int const channel = count - 3;
        for (int i = 0; i <= channel; ++i)
            if (scales[size_t(i)] != 1)
                return parameter(fmt::format("scale {} of dimension {}, allowed is 1", scales[size_t(i)], i));
        bool const isNearest = l.getResizeMode() == ResizeMode::kNEAREST;
        float const most = isNearest ? 32 : 4;
        for (int i = channel + 1; i < count; ++i)
            if (float const s = scales[size_t(i)]; s != std::floor(s) || s < 1 || s > most)
                return parameter(
                    fmt::format("scale {} of dimension {}, allowed are whole numbers from 1 to {}", s, i, most));
        using Transformation = ResizeCoordinateTransformation;
        Transformation const t = l.getCoordinateTransformation();
        bool const isFormula = l.getSelectorForSinglePixel() == ResizeSelector::kFORMULA;
        ResizeRoundMode const rounding = l.getNearestRounding();
        bool const isRounded = rounding == ResizeRoundMode::kHALF_DOWN || rounding == ResizeRoundMode::kHALF_UP;
        bool const fits =
            isNearest ? isFormula && ((t == Transformation::kASYMMETRIC && rounding == ResizeRoundMode::kFLOOR) ||
                                      (t == Transformation::kHALF_PIXEL && isRounded))
                      : t == Transformation::kHALF_PIXEL;
        if (!fits)
            parameter(isNearest
                          ? "another combination for kNEAREST than kASYMMETRIC, kFORMULA and kFLOOR, or kHALF_PIXEL, "
                            "kFORMULA and kHALF_DOWN or kHALF_UP"
                          : "another coordinate transformation for kLINEAR than kHALF_PIXEL");
    }

    // What a setter or a constant layer at input `i` says; nothing where it is computed.
    std::optional<Dims> staticDims(int i, Dims const& set) const
    {
        ITensor const* const t = input(i);
        if (!t)
            return set;
        ILayer const* const maker = limits_.makerOf(*t);
        if (!maker || maker->getType() != LayerType::kCONSTANT)
            return {};
        Weights const w = static_cast<IConstantLayer const*>(maker)->getWeights();
        if (w.type != DataType::kINT32 || !w.values || w.count < 0 || w.count > Dims::MAX_DIMS)
            return {};
        Dims d{};
        d.nbDims = int32_t(w.count);
        std::copy_n(static_cast<int32_t const*>(w.values), w.count, d.d);
        return d;
    }
    void checkSlice(ISliceLayer const& l)
    {
        noInt8("a slice runs on DLA in FP16 alone");
        checkWeights(1);
        if (l.getMode() != SliceMode::kSTRICT_BOUNDS)
            return parameter("another mode than kSTRICT_BOUNDS (kDEFAULT)");
        ITensor const &x = *input(0), &y = *output();
        Sizes const from = sizes(x), to = sizes(y);
        if (from.rank != 4)
            return parameter(fmt::format("an input of rank {}, allowed is 4", from.rank));
        bool const isImplicit = limits_.network().hasImplicitBatchDimension();
        auto const start = staticDims(1, l.getStart()), stride = staticDims(3, l.getStride());
        if (!start || !stride)
            return parameter("starts or strides that are computed of constants, allowed are constants");
        equals("stride", *stride, 1);
        if (!isImplicit && (from.batch != to.batch || (start->nbDims > 0 && start->d[0] != 0)))
            parameter("a slice of the first dimension, allowed are the others");
    }

    void checkSoftMax(ISoftMaxLayer const& l)
    {
        if (s_.model != Model::kOrin)
            return unsupported("Xavier's DLA has no SoftMax");
        noInt8("SoftMax runs on DLA in FP16 alone");
        int const rank = input(0)->getDimensions().nbDims;
        Sizes const x = sizes(*input(0));
        uint32_t const axes = l.getAxes();
        int const first = rank - 3;
        for (int i = 0; i < 3; ++i) {
            if (axes != 1u << (first + i))
                continue;
            std::array<int64_t, 3> const sizes{x.c, x.h, x.w};
            int64_t const axis = sizes[size_t(i)];
            int64_t const others = x.c * x.h * x.w / std::max<int64_t>(axis, 1);
            if (others > 1 && axis > 1024)
                parameter(
                    fmt::format("an axis of {} with other dimensions that are not 1, allowed are 1 to 1024", axis));
            return;
        }
        parameter(fmt::format("axes 0x{:x}, allowed is one of channels, height and width", axes));
    }

    void checkShuffle(IShuffleLayer const& l)
    {
        checkWeights(1);
        Sizes const x = sizes(*input(0)), y = sizes(*output());
        if (x.rank != 4 || y.rank != 4)
            return parameter(fmt::format("an input of rank {} and an output of rank {}, allowed is 4", x.rank, y.rank));
        if (limits_.network().hasImplicitBatchDimension())
            return;
        if (l.getFirstTranspose().order[0] != 0 || l.getSecondTranspose().order[0] != 0 || x.batch != y.batch)
            parameter("the batch takes part in the transpose or reshape, allowed are the other dimensions");
    }
};

} // namespace

bool hasKind(LayerType type)
{
    constexpr LayerType kKinds[] = {LayerType::kACTIVATION,    LayerType::kPARAMETRIC_RELU, LayerType::kELEMENTWISE,
                                    LayerType::kIDENTITY,      LayerType::kSCALE,           LayerType::kLRN,
                                    LayerType::kCONCATENATION, LayerType::kRESIZE,          LayerType::kUNARY,
                                    LayerType::kSLICE,         LayerType::kSOFTMAX,         LayerType::kSHUFFLE};
    return hasWindow(type) || std::ranges::find(kKinds, type) != std::end(kKinds);
}

void checkLayer(ILayer const& layer, Limits const& limits, Verdict& verdict)
{
    LayerCheck(layer, limits, verdict).run();
}

} // namespace tw::dla
