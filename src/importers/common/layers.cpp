// SPDX-License-Identifier: Apache-2.0
// ImportContext: constants and the layers that importers combine.
#include <algorithm>
#include <limits>

#include "base/tensor.h"
#include "importers/common/node.h"

namespace tw::importers {

using nvinfer1::ElementWiseOperation;
using nvonnxparser::ErrorCode;

std::string ImportContext::layerName()
{
    return to_.uniqueLayerName(name_);
}

void ImportContext::nameLayer(nvinfer1::ILayer& layer)
{
    layer.setName(layerName().c_str());
}

namespace {

// "inputs 'x' [1,3], 'w' [3,4]": the network's reason may be cut in front of them.
std::string describeInputs(nvinfer1::ILayer const& layer)
{
    std::string text = "inputs";
    for (int i = 0; i < layer.getNbInputs(); ++i)
        if (ITensor const* const t = layer.getInput(i))
            text += (i ? ", '" : " '") + std::string(t->getName()) + "' " + describe(t->getDimensions());
    return layer.getNbInputs() > 0 ? text : "no inputs";
}

} // namespace

ITensor& ImportContext::out(nvinfer1::ILayer& layer, int i, Where where) const
{
    ITensor* t = layer.getOutput(i);
    if (!t || t->getDimensions().nbDims < 0)
        refused("layer '" + std::string(layer.getName()) + "' is not valid for " + describeInputs(layer), where);
    return *t;
}

// ---- constants

void* ImportContext::allocate(int64_t sizeBytes, Where where) const
{
    void* p = to_.memory().allocate(sizeBytes);
    if (!p)
        throw ImportError{ErrorCode::kMEM_ALLOC_FAILED, fmt::format("no memory for {} bytes of weights", sizeBytes),
                          where};
    return p;
}

Constant ImportContext::newConstant(DataType type, Dims const& dims, Where where) const
{
    Constant c;
    c.type = type;
    c.dims = dims;
    c.count = volume(dims);
    if (c.count < 0 || c.count > std::numeric_limits<int32_t>::max())
        fail("a constant of shape " + describe(dims) + " is too large for the API (2^31 - 1 elements)", where);
    if (!to_.takeComputed(c.count * sizeOf(type)))
        fail(fmt::format("the constants that the importers of this model compute need more than {} MiB",
                         to_.mostComputedBytes() >> 20),
             where);
    c.values = allocate(c.count * sizeOf(type), where);
    return c;
}

void ImportContext::store(Constant& c, int64_t i, double v)
{
    auto const type = static_cast<tw::DataType>(c.type);
    NumberType const limits = numberType(type);
    if (isFloating(c.type))
        v = double(float(v)); // from which a narrow type is rounded
    else if (c.type != DataType::kBOOL)
        v = v != v ? 0 : std::clamp(v, limits.lowest, limits.largest);
    TensorRef{type, {}, const_cast<void*>(c.values)}.set(i, v);
}

Constant ImportContext::intConstant(std::vector<int64_t> const& values) const
{
    Constant c = newConstant(DataType::kINT32, Dims{1, {int32_t(values.size())}});
    for (size_t i = 0; i < values.size(); ++i)
        store(c, int64_t(i), double(values[i]));
    return c;
}

Constant ImportContext::intScalar(int64_t value) const
{
    return filled(double(value), DataType::kINT32, Dims{0, {}});
}

Constant ImportContext::floatConstant(std::vector<float> const& values, Dims const& dims) const
{
    Constant c = newConstant(DataType::kFLOAT, dims);
    if (c.count != int64_t(values.size()))
        invalid(fmt::format("{} numbers do not fill shape {}", values.size(), describe(dims)));
    std::ranges::copy(values, static_cast<float*>(const_cast<void*>(c.values)));
    return c;
}

Constant ImportContext::filled(double value, DataType type, Dims const& dims, Where where) const
{
    Constant c = newConstant(type, dims, where);
    for (int64_t i = 0; i < c.count; ++i)
        store(c, i, value);
    return c;
}

Constant ImportContext::converted(Constant const& from, DataType type, Where where) const
{
    if (from.type == type)
        return from;
    Constant c = newConstant(type, from.dims, where);
    c.name = from.name;
    for (int64_t i = 0; i < c.count; ++i)
        store(c, i, from.floatAt(i));
    return c;
}

Constant ImportContext::reshaped(Constant c, Dims const& dims) const
{
    if (volume(dims) != c.count)
        invalid("a constant of shape " + describe(c.dims) + " cannot take shape " + describe(dims));
    c.dims = dims;
    return c;
}

ITensor& ImportContext::asTensor(Value const& value, Where where)
{
    if (value.isTensor())
        return value.tensor();
    if (value.isNull())
        invalid("an input is missing", where);
    if (!value.isConstant())
        invalid(value.isSequence() ? "a sequence stands where a tensor is needed"
                                   : "an optional value that is not there stands where a tensor is needed",
                where);
    Constant const& c = value.constant();
    if (c.computed) {
        if (ITensor* const t = c.computed->layers(); t && volume(t->getDimensions()) == c.count)
            return toVector(t->getDimensions()) == toVector(c.dims) ? *t : reshape(*t, c.dims);
        decideBy(value);
    }
    constexpr int kMostDims = 7; // of constant layers
    if (c.dims.nbDims > kMostDims)
        return reshape(asTensor(Value(reshaped(c, Dims{1, {int32_t(c.count)}})), where), c.dims);
    // Constant layers hold real numbers and INT32; truth values take the way through INT32.
    Constant const held = c.type == DataType::kBOOL ? converted(c, DataType::kINT32, where) : c;
    auto& layer = added(network().addConstant(held.dims, held.weights()), where);
    nameWeights(Value(held));
    ITensor& t = out(layer, 0, where);
    return c.type == DataType::kBOOL ? cast(t, DataType::kBOOL) : t;
}

void ImportContext::nameWeights(Value const& value) const
{
    if (value.isConstant() && value.constant().count > 0)
        to_.nameWeights(value.constant().weights(), value.constant().name, "");
}

void ImportContext::nameWeights(Constant const& whole, int64_t at, nvinfer1::Weights const& part) const
{
    if (part.count > 0)
        to_.nameWeights(part, whole.name, fmt::format("{}{}/{}", kPartMark, at, whole.count));
}

Value ImportContext::asWeights(Value const& value)
{
    return value.isConstant() && value.constant().computed ? Value(asTensor(value)) : value;
}

void ImportContext::decideBy(Value const& value) const
{
    if (!value.isConstant())
        return;
    if (!value.constant().name.empty())
        to_.decideBy(value.constant().name);
    if (value.constant().computed)
        for (Value const& input : value.constant().computed->inputs)
            decideBy(input);
}

Constant ImportContext::computed(Constant c)
{
    auto const follows = [](Value const& v) {
        return v.isConstant() && isFloating(v.type()) && (v.constant().computed || !v.constant().name.empty());
    };
    if (asLayers_ || std::ranges::none_of(inputs_, follows))
        return c;
    // In other dimensions it is the initializer still.
    bool const isSame = std::ranges::any_of(inputs_, [&](Value const& v) {
        return follows(v) && v.constant().values == c.values && v.constant().type == c.type;
    });
    if (isSame)
        return c;
    if (!isFloating(c.type)) {
        for (Value const& v : inputs_)
            if (follows(v))
                decideBy(v);
        return c;
    }
    c.name.clear();
    c.computed = std::make_shared<Computed>(Computed{inputs_, again()});
    return c;
}

ITensor& ImportContext::scalar(double value, DataType type, int rank)
{
    Dims d{rank, {}};
    for (int i = 0; i < rank; ++i)
        d.d[i] = 1;
    return asTensor(filled(value, type, d));
}

// ---- single layers

ITensor& ImportContext::cast(ITensor& x, DataType type)
{
    if (x.getType() == type)
        return x;
    auto& layer = added(network().addIdentity(x));
    layer.setOutputType(0, type);
    return out(layer);
}

ITensor& ImportContext::identity(ITensor& x)
{
    auto& layer = added(network().addIdentity(x));
    layer.setOutputType(0, x.getType());
    return out(layer);
}

ITensor& ImportContext::elementwise(ITensor& a, ITensor& b, ElementWiseOperation op)
{
    ITensor *x = &a, *y = &b;
    broadcast(x, y);
    return out(added(network().addElementWise(*x, *y, op)));
}

ITensor& ImportContext::unary(ITensor& x, nvinfer1::UnaryOperation op)
{
    return out(added(network().addUnary(x, op)));
}

ITensor& ImportContext::activation(ITensor& x, nvinfer1::ActivationType type, float alpha, float beta)
{
    auto& layer = added(network().addActivation(x, type));
    layer.setAlpha(alpha);
    layer.setBeta(beta);
    return out(layer);
}

ITensor& ImportContext::gather(ITensor& x, ITensor& indices, nvinfer1::GatherMode mode, int axis)
{
    auto& layer = added(network().addGatherV2(x, indices, mode));
    layer.setGatherAxis(axis);
    return out(layer);
}

ITensor& ImportContext::select(ITensor& condition, ITensor& a, ITensor& b)
{
    std::vector<ITensor*> t{&condition, &a, &b};
    broadcast(t);
    return out(added(network().addSelect(*t[0], *t[1], *t[2])));
}

ITensor& ImportContext::reduce(ITensor& x, nvinfer1::ReduceOperation op, std::vector<int> const& axes, bool keepDims)
{
    uint32_t mask = 0;
    for (int a : axes)
        mask |= 1u << a;
    if (mask == 0)
        return x;
    return out(added(network().addReduce(x, op, mask, keepDims)));
}

ITensor& ImportContext::matmul(ITensor& a, ITensor& b, bool transposeA, bool transposeB)
{
    using nvinfer1::MatrixOperation;
    auto op = [](bool t) { return t ? MatrixOperation::kTRANSPOSE : MatrixOperation::kNONE; };
    return out(added(network().addMatrixMultiply(a, op(transposeA), b, op(transposeB))));
}

ITensor& ImportContext::concat(std::vector<ITensor*> const& parts, int axis)
{
    if (parts.size() == 1)
        return *parts[0];
    auto& layer = added(network().addConcatenation(parts.data(), int32_t(parts.size())));
    layer.setAxis(axis);
    return out(layer);
}

ITensor& ImportContext::transpose(ITensor& x, std::vector<int> const& perm)
{
    if (perm == allAxes(int(perm.size())))
        return x;
    auto& layer = added(network().addShuffle(x));
    nvinfer1::Permutation p{};
    std::ranges::copy(perm, p.order);
    layer.setFirstTranspose(p);
    return out(layer);
}

ITensor& ImportContext::reshape(ITensor& x, Dims const& dims)
{
    auto& layer = added(network().addShuffle(x));
    layer.setZeroIsPlaceholder(false);
    layer.setReshapeDimensions(dims);
    return out(layer);
}

ITensor& ImportContext::reshape(ITensor& x, Sizes const& sizes)
{
    check(sizes.size() <= size_t(Dims::MAX_DIMS),
          fmt::format("a tensor of rank {} is above the highest rank of the API, 8", sizes.size()));
    if (allKnown(sizes)) {
        Dims d{int32_t(sizes.size()), {}};
        for (size_t i = 0; i < sizes.size(); ++i)
            d.d[i] = int32_t(sizes[i].value);
        return reshape(x, d);
    }
    auto& layer = added(network().addShuffle(x));
    layer.setZeroIsPlaceholder(false);
    layer.setInput(1, asTensor(sizes));
    return out(layer);
}

ITensor& ImportContext::asScalar(ITensor& x)
{
    Dims const d = x.getDimensions();
    if (isStatic(d) && volume(d) != 1)
        invalid("a tensor of shape " + describe(d) + " stands where one number is needed");
    return d.nbDims == 0 ? x : reshape(x, Dims{0, {}});
}

ITensor& ImportContext::unsqueeze(ITensor& x, std::vector<int> const& axes)
{
    if (axes.empty())
        return x;
    Dims const d = x.getDimensions();
    int const rank = d.nbDims + int(axes.size());
    check(rank <= Dims::MAX_DIMS, fmt::format("a tensor of rank {} is above the highest rank of the API, 8", rank));
    auto isNew = [&](int i) { return contains(axes, i); };
    if (isStatic(d)) {
        Dims y{rank, {}};
        for (int i = 0, from = 0; i < rank; ++i)
            y.d[i] = isNew(i) ? 1 : d.d[from++];
        return reshape(x, y);
    }
    Sizes const have = sizesOf(x);
    Sizes y;
    int nbUnknown = 0;
    for (int i = 0, from = 0; i < rank; ++i) {
        y.push_back(isNew(i) ? Size(1) : have[size_t(from++)]);
        nbUnknown += !y.back().known();
    }
    return reshape(x, y);
}

ITensor& ImportContext::squeeze(ITensor& x, std::vector<int> const& axes)
{
    if (axes.empty())
        return x;
    Sizes const have = sizesOf(x);
    Sizes y;
    for (int i = 0; i < int(have.size()); ++i)
        if (!contains(axes, i))
            y.push_back(have[size_t(i)]);
        else if (have[size_t(i)].known() && have[size_t(i)].value != 1)
            invalid(
                fmt::format("dimension {} of shape {} cannot be removed: it is not 1", i, describe(x.getDimensions())));
    return reshape(x, y);
}

ITensor& ImportContext::slice(ITensor& x, Sizes const& start, Sizes const& size, Sizes const& stride,
                              nvinfer1::SliceMode mode, ITensor* fill)
{
    auto fixed = [](Sizes const& s) {
        Dims d{int32_t(s.size()), {}};
        for (size_t i = 0; i < s.size(); ++i)
            d.d[i] = s[i].known() ? int32_t(std::clamp<int64_t>(s[i].value, INT32_MIN, INT32_MAX)) : 0;
        return d;
    };
    auto& layer = added(network().addSlice(x, fixed(start), fixed(size), fixed(stride)));
    layer.setMode(mode);
    if (!allKnown(start))
        layer.setInput(1, asTensor(start));
    if (!allKnown(size))
        layer.setInput(2, asTensor(size));
    if (!allKnown(stride))
        layer.setInput(3, asTensor(stride));
    if (fill)
        layer.setInput(4, *fill);
    return out(layer);
}

ITensor& ImportContext::expand(ITensor& x, Sizes const& sizes)
{
    ITensor* t = &x;
    int const missing = int(sizes.size()) - t->getDimensions().nbDims;
    if (missing > 0)
        t = &unsqueeze(*t, allAxes(missing));
    Sizes const have = sizesOf(*t);
    bool same = true;
    Sizes start, stride;
    for (size_t i = 0; i < have.size(); ++i) {
        same = same && have[i].known() && sizes[i].known() && have[i].value == sizes[i].value;
        start.emplace_back(0);
        // Stride 0 repeats a dimension of 1; one that is only known at run time gives min(size - 1, 1).
        stride.push_back(have[i].known() ? Size(have[i].value == 1 ? 0 : 1) : min(sub(have[i], 1), 1));
    }
    return same ? *t : slice(*t, start, sizes, stride);
}

void ImportContext::broadcast(std::vector<ITensor*>& tensors)
{
    int rank = 0;
    for (ITensor* t : tensors)
        rank = std::max(rank, t->getDimensions().nbDims);
    for (ITensor*& t : tensors)
        t = &unsqueeze(*t, allAxes(rank - t->getDimensions().nbDims));
}

void ImportContext::broadcast(ITensor*& a, ITensor*& b)
{
    std::vector<ITensor*> t{a, b};
    broadcast(t);
    a = t[0];
    b = t[1];
}

} // namespace tw::importers
