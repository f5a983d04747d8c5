// SPDX-License-Identifier: Apache-2.0
// DFT, STFT: products with a matrix of cosines and sines; MelWeightMatrix.
//   X[k] = sum over i of x[i] exp(-2 pi j i k / n), with + and a factor 1 / n when inverse.
// Complex numbers are the last dimension, of size 2; 1 there means real ones. Of real x the X[k] and X[n - k] are conjugate:
// one side, k <= n / 2, has all of them, and gives real numbers when inverse.
#include <cmath>

#include "onnx/importer.h"

namespace tw::onnx {

namespace {

constexpr int64_t kMostElements = int64_t(1) << 26; // of the matrix

struct Transform
{
    int64_t length; // n
    int64_t bins;   // k < bins
    int64_t parts;  // of an element: 1 or 2
    bool isInverse;
    bool isFromOneSide = false; // bins -> length real numbers

    int64_t inputs() const { return isFromOneSide ? bins : length; }
    int64_t outputs() const { return isFromOneSide ? length : bins; }
    int64_t outputParts() const { return isFromOneSide ? 1 : 2; }
};

Transform transformOf(ImportContext& ctx, int64_t length, int64_t parts, bool isInverse, bool isOneSided)
{
    if (length < 1 || length > INT32_MAX)
        ctx.invalid(fmt::format("the length of the transform is {}", length));
    Transform const t{length, isOneSided ? length / 2 + 1 : length, parts, isInverse, isInverse && isOneSided};
    ctx.check(t.bins <= kMostElements / (t.length * 2 * parts),
              fmt::format("a transform of {} elements has a matrix of more than {} numbers", length, kMostElements));
    return t;
}

// [bins * parts, length]: x[i] is a sum over all k, of which those beyond n / 2 add what their mirror images do.
ITensor& matrixFromOneSide(ImportContext& ctx, Transform const& t)
{
    Constant m = ctx.newConstant(DataType::kFLOAT, makeDims({t.bins * t.parts, t.length}));
    int64_t to = 0;
    for (int64_t k = 0; k < t.bins; ++k)
        for (int64_t part = 0; part < t.parts; ++part)
            for (int64_t i = 0; i < t.length; ++i) {
                double const angle = 2 * M_PI * double(i * k % t.length) / double(t.length);
                double const factor = (k == 0 || 2 * k == t.length ? 1 : 2) / double(t.length);
                ctx.store(m, to++, factor * (part == 0 ? std::cos(angle) : -std::sin(angle)));
            }
    return ctx.asTensor(Value(m));
}

// [length * parts, bins * 2]: rows of real and imaginary parts of x in turn, columns of those of X.
ITensor& matrixOf(ImportContext& ctx, Transform const& t)
{
    if (t.isFromOneSide)
        return matrixFromOneSide(ctx, t);
    Constant m = ctx.newConstant(DataType::kFLOAT, makeDims({t.length * t.parts, t.bins * 2}));
    int64_t to = 0;
    for (int64_t i = 0; i < t.length; ++i)
        for (int64_t part = 0; part < t.parts; ++part)
            for (int64_t k = 0; k < t.bins; ++k) {
                double const angle = 2 * M_PI * double(i * k % t.length) / double(t.length);
                double const factor = t.isInverse ? 1 / double(t.length) : 1;
                double const c = std::cos(angle) * factor, s = (t.isInverse ? 1 : -1) * std::sin(angle) * factor;
                ctx.store(m, to++, part == 0 ? c : -s);
                ctx.store(m, to++, part == 0 ? s : c);
            }
    return ctx.asTensor(Value(m));
}

// x: [rest..., length, parts] -> [rest..., bins, 2], or from one side [rest..., bins, parts] -> [rest..., length, 1]
ITensor& transformed(ImportContext& ctx, ITensor& x, Transform const& t)
{
    Sizes to = ctx.sizesOf(x);
    to.resize(to.size() - 2);
    ITensor& rows = ctx.reshape(ctx.cast(x, DataType::kFLOAT), Sizes{ctx.product(to), Size(t.inputs() * t.parts)});
    ITensor& y = ctx.cast(ctx.matmul(rows, matrixOf(ctx, t)), x.getType());
    to.emplace_back(t.outputs());
    to.emplace_back(t.outputParts());
    return ctx.reshape(y, to);
}

int64_t scalarInput(ImportContext& ctx, int i, char const* what)
{
    std::vector<int64_t> const v = ctx.constantInts(i, what);
    if (v.size() != 1)
        ctx.invalid(fmt::format("{} has {} elements, it must have one", what, v.size()));
    return v[0];
}

int64_t partsOf(ImportContext& ctx, ITensor& x)
{
    Dims const d = x.getDimensions();
    int64_t const parts = d.nbDims > 0 ? d.d[d.nbDims - 1] : -1;
    ctx.check(isFloating(x.getType()) && d.nbDims >= 2 && (parts == 1 || parts == 2),
              fmt::format("the signal is {}{}; floats whose last dimension is 1 (real) or 2 (complex) can be imported",
                          typeName(x.getType()), describe(d)));
    return parts;
}

void importDft(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    int64_t const parts = partsOf(ctx, x);
    Dims const d = x.getDimensions();
    int const rank = d.nbDims;
    int64_t const given = ctx.opset() < 20  ? ctx.attrInt("axis", 1)
                          : ctx.hasInput(2) ? scalarInput(ctx, 2, "axis")
                                            : -2;
    int const axis = ctx.axis(given, rank);
    if (axis == rank - 1)
        ctx.invalid(fmt::format("axis {} is that of real and imaginary parts", given));
    bool const isInverse = ctx.attrInt("inverse", 0) != 0, isOneSided = ctx.attrInt("onesided", 0) != 0;
    ctx.check(ctx.hasInput(1) || d.d[axis] >= 0, fmt::format("axis {} has no fixed size; give dft_length", given));
    int64_t const length = ctx.hasInput(1)           ? scalarInput(ctx, 1, "dft_length")
                           : isInverse && isOneSided ? 2 * (int64_t(d.d[axis]) - 1)
                                                     : int64_t(d.d[axis]);
    Transform const t = transformOf(ctx, length, parts, isInverse, isOneSided);
    std::vector<int> there, back(size_t(rank), 0); // the axis stands before the last
    for (int i = 0; i < rank - 1; ++i)
        if (i != axis)
            there.push_back(i);
    there.push_back(axis);
    there.push_back(rank - 1);
    for (int i = 0; i < rank; ++i)
        back[size_t(there[size_t(i)])] = i;
    ITensor* signal = &ctx.transpose(x, there);
    if (d.d[axis] != t.inputs()) { // cut, or filled with zeros
        Sizes size = ctx.sizesOf(*signal);
        size[size_t(rank - 2)] = Size(t.inputs());
        signal = &ctx.slice(*signal, Sizes(size.size(), Size(0)), size, Sizes(size.size(), Size(1)),
                            nvinfer1::SliceMode::kFILL);
    }
    ctx.setOutput(0, ctx.transpose(transformed(ctx, *signal, t), back));
}

// Frames of the signal [batch, length, parts], each times the window.
void importStft(ImportContext& ctx)
{
    ITensor* x = &ctx.tensor(0);
    if (x->getDimensions().nbDims == 2)
        x = &ctx.unsqueeze(*x, {2});
    int64_t const parts = partsOf(ctx, *x);
    Dims const d = x->getDimensions();
    ctx.check(d.nbDims == 3 && d.d[1] >= 0,
              "signals [batch, length, parts] of a known length can be imported, this one is " + describe(d));
    int64_t const step = scalarInput(ctx, 1, "frame_step");
    int64_t const window = ctx.hasInput(2) && ctx.input(2).rank() == 1 ? int64_t(ctx.input(2).dims().d[0]) : -1;
    int64_t const length = ctx.hasInput(3) ? scalarInput(ctx, 3, "frame_length") : window;
    if (step < 1 || length < 1 || length > d.d[1])
        ctx.invalid(
            fmt::format("frames of {} elements with a step of {} do not fit a signal of {}", length, step, d.d[1]));
    if (ctx.hasInput(2) && window != length)
        ctx.invalid(
            fmt::format("the window has shape {}, frames have {} elements", describe(ctx.input(2).dims()), length));
    int64_t const frames = (d.d[1] - length) / step + 1;
    ctx.check(frames <= kMostElements / length,
              fmt::format("there are {} frames of {} elements, which is too many", frames, length));
    Transform const t = transformOf(ctx, length, parts, false, ctx.attrInt("onesided", 1) != 0);
    Constant places = ctx.newConstant(DataType::kINT32, makeDims({frames, length}));
    for (int64_t i = 0; i < frames * length; ++i)
        ctx.store(places, i, double(i / length * step + i % length));
    ITensor* cut = &ctx.out(ctx.added(ctx.network().addGather(*x, ctx.asTensor(Value(places)), 1)));
    if (ctx.hasInput(2)) {
        ITensor& factors = ctx.unsqueeze(ctx.cast(ctx.tensor(2), x->getType()), {0, 1, 3});
        cut = &ctx.elementwise(*cut, factors, nvinfer1::ElementWiseOperation::kPROD);
    }
    ctx.setOutput(0, transformed(ctx, *cut, t));
}

// Triangles over the bins of a spectrum, whose corners are at equal distances on the mel scale.
void importMelWeightMatrix(ImportContext& ctx)
{
    int64_t const mels = scalarInput(ctx, 0, "num_mel_bins"), length = scalarInput(ctx, 1, "dft_length"),
                  rate = scalarInput(ctx, 2, "sample_rate");
    auto edge = [&](int i, char const* what) {
        std::vector<float> const v = ctx.constantFloats(i, what);
        if (v.size() != 1)
            ctx.invalid(fmt::format("{} has {} elements, it must have one", what, v.size()));
        return 2595 * std::log10(1 + double(v[0]) / 700);
    };
    double const low = edge(3, "lower_edge_hertz"), high = edge(4, "upper_edge_hertz");
    if (mels < 1 || length < 1 || rate < 1 || mels > kMostElements / (length / 2 + 1))
        ctx.invalid(fmt::format("num_mel_bins {}, dft_length {}, sample_rate {} make no matrix", mels, length, rate));
    ctx.check(ctx.attrInt("output_datatype", 1) == 1, "output_datatype must be FLOAT");
    int64_t const bins = length / 2 + 1;
    std::vector<int64_t> corners;
    for (int64_t i = 0; i < mels + 2; ++i) {
        double const mel = low + double(i) * (high - low) / double(mels + 2);
        double const bin = std::floor(double(length + 1) * 700 * (std::pow(10, mel / 2595) - 1) / double(rate));
        if (!(bin >= 0 && bin < double(bins)))
            ctx.invalid(fmt::format("an edge of the triangles is beyond the {} bins of the spectrum", bins));
        corners.push_back(int64_t(bin));
    }
    Constant m = ctx.newConstant(DataType::kFLOAT, makeDims({bins, mels}));
    for (int64_t i = 0; i < mels; ++i) {
        int64_t const a = corners[size_t(i)], b = corners[size_t(i + 1)], c = corners[size_t(i + 2)];
        for (int64_t j = a; j <= b; ++j)
            ctx.store(m, j * mels + i, a == b ? 1 : double(j - a) / double(b - a));
        for (int64_t j = b; j < c; ++j)
            ctx.store(m, j * mels + i, double(c - j) / double(c - b));
    }
    ctx.setOutput(0, Value(m));
}

} // namespace

void register_composites_fourier(ImporterMap& map)
{
    map.add("DFT", importDft);
    map.add("STFT", importStft);
    map.add("MelWeightMatrix", importMelWeightMatrix);
}

} // namespace tw::onnx
