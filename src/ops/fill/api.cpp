// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "api/network.h"
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
    bool hasInput(size_t i) const { return i < inputs.size() && inputs[i]; }
    // A setter takes the place of the input that says the same.
    void dropInput(size_t i)
    {
        changed();
        if (hasInput(i))
            inputs[i] = nullptr;
    }
    void set(double& field, size_t input, double value, char const* what)
    {
        guardedVoid(reporter(), [&]() -> Result<void> {
            if (!std::isfinite(value))
                return error(std::string(what) + " " + std::to_string(value) + " must be finite");
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
            TW_TRY(checkDims(dims, 0, "layer '" + name + "': dimensions"));
            a.dims = toVector(dims);
        }
        a.alpha = alpha;
        a.beta = beta;
        if (outputTypes[0])
            a.outputType = toCore(*outputTypes[0]);
        TW_ASSIGN(ir::Node * node, ctx.add(ops::fill::def(), std::move(a), {ctx.in(0), ctx.in(1), ctx.in(2)}));
        ctx.output(0, node->outputs[0]);
        return {};
    }
};

Result<void> checkOperation(nvinfer1::FillOperation operation)
{
    int const number = static_cast<int>(operation);
    if (number < 0 || number >= nvinfer1::EnumMax<nvinfer1::FillOperation>())
        return invalidArgument("fill operation " + std::to_string(number) + " does not exist");
    return {};
}
// Entries are looked at when the layer is used: input 0 may replace them first.
Result<void> checkRank(nvinfer1::Dims const& dims)
{
    if (dims.nbDims < -1 || dims.nbDims > nvinfer1::Dims::MAX_DIMS)
        return invalidArgument("fill dimensions: nbDims " + std::to_string(dims.nbDims) + " must be in 0.." +
                               std::to_string(int(nvinfer1::Dims::MAX_DIMS)));
    return {};
}
FillLayer& self(nvinfer1::IFillLayer* l)
{
    return static_cast<FillLayer&>(*l);
}
FillLayer const& self(nvinfer1::IFillLayer const* l)
{
    return static_cast<FillLayer const&>(*l);
}

} // namespace

namespace nvinfer1 {

IFillLayer* INetworkDefinition::addFill(Dims dimensions, FillOperation op) noexcept
{
    return addLayer<FillLayer>(*this, LayerType::kFILL, "Fill", {}, [&](FillLayer& l) -> Result<void> {
        if (l.network->implicitBatch)
            return invalidState("addFill: fill layers need an explicit batch network");
        TW_TRY(checkRank(dimensions));
        TW_TRY(checkOperation(op));
        l.dims = dimensions;
        l.operation = op;
        return {};
    });
}

void IFillLayer::setDimensions(Dims dimensions) noexcept
{
    guardedVoid(self(this).reporter(), [&]() -> Result<void> {
        TW_TRY(checkDims(dimensions, 0, "layer '" + self(this).name + "': dimensions"));
        self(this).dropInput(0);
        self(this).dims = dimensions;
        return {};
    });
}
Dims IFillLayer::getDimensions() const noexcept
{
    if (!self(this).hasInput(0))
        return self(this).dims;
    Dims unset{};
    unset.nbDims = -1;
    return unset;
}
void IFillLayer::setOperation(FillOperation op) noexcept
{
    guardedVoid(self(this).reporter(), [&]() -> Result<void> {
        TW_TRY(checkOperation(op));
        self(this).operation = op;
        self(this).changed();
        return {};
    });
}
FillOperation IFillLayer::getOperation() const noexcept
{
    return self(this).operation;
}
void IFillLayer::setAlpha(double alpha) noexcept
{
    self(this).set(self(this).alpha, 1, alpha, "alpha");
}
double IFillLayer::getAlpha() const noexcept
{
    return self(this).hasInput(1) ? -1.0 : self(this).alpha;
}
void IFillLayer::setBeta(double beta) noexcept
{
    self(this).set(self(this).beta, 2, beta, "beta");
}
double IFillLayer::getBeta() const noexcept
{
    return self(this).hasInput(2) ? -1.0 : self(this).beta;
}

} // namespace nvinfer1
