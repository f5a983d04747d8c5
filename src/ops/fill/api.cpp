// SPDX-License-Identifier: Apache-2.0
#include "api/network/setter.h"
#include "ops/fill/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct FillLayer final : LayerObject<nvinfer1::IFillLayer>
{
    nvinfer1::FillOperation operation = nvinfer1::FillOperation::kLINSPACE;
    nvinfer1::Dims dims{};
    double alpha = 0, beta = 1;

    int maxInputs() const override { return 3; } // dimensions, alpha, beta
    // A setter takes the place of the input that says the same.
    void dropInput(size_t i)
    {
        if (hasInput(i))
            inputs[i] = nullptr;
    }
    void set(double& field, size_t input, double value, char const* what)
    {
        change(*this, [&](FillLayer&) -> Result<void> {
            TW_TRY(refusal(*this, checkFinite(value, what)));
            dropInput(input);
            field = value;
            return {};
        });
    }

    Result<void> lower(LowerContext& ctx) override
    {
        ops::fill::Attrs a;
        a.operation = static_cast<ops::fill::Operation>(operation);
        if (!ctx.in(0)) {
            TW_TRY(checkDims(dims, 0, where("dimensions")));
            a.dims = toVector(dims);
        }
        a.alpha = alpha;
        a.beta = beta;
        if (outputTypes[0])
            a.outputType = toCore(*outputTypes[0]);
        return ctx.lowerTo(ops::fill::def(), std::move(a), {ctx.in(0), ctx.in(1), ctx.in(2)});
    }
};

// Entries are looked at when the layer is used: input 0 may replace them first.
std::string checkRank(nvinfer1::Dims const& dims)
{
    if (dims.nbDims >= -1 && dims.nbDims <= nvinfer1::Dims::MAX_DIMS)
        return {};
    return fmt::format("fill dimensions: nbDims {} must be in 0..{}", dims.nbDims, int(nvinfer1::Dims::MAX_DIMS));
}

TW_OBJECT(nvinfer1::IFillLayer, FillLayer)

} // namespace

namespace nvinfer1 {

IFillLayer* INetworkDefinition::addFill(Dims dimensions, FillOperation op) noexcept
{
    return addLayer<FillLayer>(*this, LayerType::kFILL, "Fill", {}, [&](FillLayer& l) -> Result<void> {
        if (l.network->implicitBatch)
            return invalidState("addFill: fill layers need an explicit batch network");
        l.dims = dimensions;
        l.operation = op;
        return checkAll("addFill", {checkRank(dimensions), checkEnum(op, "fill operation")});
    });
}

void IFillLayer::setDimensions(Dims dimensions) noexcept
{
    change(objectOf(*this), [&](FillLayer& l) -> Result<void> {
        TW_TRY(checkDims(dimensions, 0, l.where("dimensions")));
        l.dropInput(0);
        l.dims = dimensions;
        return {};
    });
}
TW_GETTER(IFillLayer, Dims, getDimensions, self.hasInput(0) ? noDims() : self.dims)
TW_PROPERTY(IFillLayer, FillOperation, setOperation, getOperation, operation, checkEnum(value, "fill operation"))
TW_SETTER(IFillLayer, double, setAlpha, self.set(self.alpha, 1, value, "alpha"))
TW_GETTER(IFillLayer, double, getAlpha, self.hasInput(1) ? -1.0 : self.alpha)
TW_SETTER(IFillLayer, double, setBeta, self.set(self.beta, 2, value, "beta"))
TW_GETTER(IFillLayer, double, getBeta, self.hasInput(2) ? -1.0 : self.beta)

} // namespace nvinfer1
