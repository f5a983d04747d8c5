// SPDX-License-Identifier: Apache-2.0
// One layer beside the rules: what rules of all kinds of layers say with, and the files that have them.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "dla/limits.h"

namespace tw::dla {

// "3x3".
inline std::string str(nvinfer1::Dims const& d)
{
    std::string text;
    for (int i = 0; i < d.nbDims; ++i)
        text += (i ? "x" : "") + std::to_string(d.d[i]);
    return text;
}

class Check
{
public:
    using ILayer = nvinfer1::ILayer;
    using ITensor = nvinfer1::ITensor;
    using Dims = nvinfer1::Dims;

    Check(ILayer const& layer, Limits const& limits, Verdict& verdict)
        : layer_(layer), limits_(limits), s_(limits.settings()), v_(verdict)
    {
        v_.mayHalf = s_.half;
        v_.mayInt8 = s_.int8;
        if (!s_.whyNoInt8.empty())
            noInt8(s_.whyNoInt8);
    }
    virtual ~Check() = default;
    void run()
    {
        checkTensors();
        if (v_.findings.empty())
            checkKind();
        if (v_.findings.empty())
            checkPrecision(); // the kind of layer has said which it can have
    }

protected:
    virtual void checkKind() = 0;

    void find(Reason reason, std::string text) { v_.findings.push_back({reason, std::move(text)}); }
    void parameter(std::string text) { find(Reason::kParameters, std::move(text)); }
    void unsupported(std::string text) { find(Reason::kNotSupported, std::move(text)); }
    void noInt8(std::string why)
    {
        v_.mayInt8 = false;
        if (whyNoInt8_.empty())
            whyNoInt8_ = std::move(why);
    }
    void noHalf(std::string why)
    {
        v_.mayHalf = false;
        if (whyNoHalf_.empty())
            whyNoHalf_ = std::move(why);
    }

    void range(char const* what, int64_t value, int64_t least, int64_t most)
    {
        if (value < least || value > most)
            parameter(fmt::format("{} {}, allowed are {} to {}", what, value, least, most));
    }
    void each(char const* what, Dims const& values, int64_t least, int64_t most)
    {
        for (int i = 0; i < values.nbDims; ++i)
            if (values.d[i] < least || values.d[i] > most) {
                parameter(fmt::format("{} {}, allowed are {} to {}", what, str(values), least, most));
                return;
            }
    }
    void equals(char const* what, Dims const& values, int64_t only)
    {
        for (int i = 0; i < values.nbDims; ++i)
            if (values.d[i] != only) {
                parameter(fmt::format("{} {}, allowed is {}", what, str(values), only));
                return;
            }
    }
    bool isPlane(char const* what, Dims const& window)
    {
        if (window.nbDims == 2)
            return true;
        parameter(fmt::format("{} over {} spatial dimensions, allowed are 2", what, window.nbDims));
        return false;
    }

    ITensor* input(int i) const { return i < layer_.getNbInputs() ? layer_.getInput(i) : nullptr; }
    ITensor* output() const { return layer_.getOutput(0); }
    Sizes sizes(ITensor const& t) const { return sizesOf(t, limits_); }
    static std::string name(ITensor const& t) { return fmt::format("tensor '{}'", t.getName()); }

    bool hasRange(ITensor const& t) const { return t.dynamicRangeIsSet() || s_.hasCalibrator; }
    static float rangeOf(ITensor const& t)
    {
        return std::max(std::abs(t.getDynamicRangeMin()), std::abs(t.getDynamicRangeMax()));
    }
    // Of those that clients set: what calibration finds is made equal where it must be.
    void equalRanges(ITensor const& a, ITensor const& b)
    {
        if (a.dynamicRangeIsSet() && b.dynamicRangeIsSet() && rangeOf(a) != rangeOf(b))
            noInt8(fmt::format("INT8 needs equal ranges of '{}' ({}) and '{}' ({})", a.getName(), rangeOf(a),
                               b.getName(), rangeOf(b)));
    }

    // Kernels and biases are constants.
    void checkWeights(int first)
    {
        for (int i = first; i < layer_.getNbInputs(); ++i)
            if (ITensor const* t = input(i); t && !limits_.isConstant(*t))
                unsupported(
                    fmt::format("{} (input {}) is computed at run time, DLA takes constants there", name(*t), i));
    }

private:
    void checkTensors();
    void checkPrecision();

protected:
    ILayer const& layer_;
    Limits const& limits_;
    Settings const& s_;
    Verdict& v_;
    std::string whyNoInt8_, whyNoHalf_;
};

// Convolutions and pooling.
bool hasWindow(nvinfer1::LayerType type);
void checkWindow(nvinfer1::ILayer const& layer, Limits const& limits, Verdict& verdict);
// Every other kind.
bool hasKind(nvinfer1::LayerType type);
void checkLayer(nvinfer1::ILayer const& layer, Limits const& limits, Verdict& verdict);

} // namespace tw::dla
