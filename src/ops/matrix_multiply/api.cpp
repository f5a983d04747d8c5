// SPDX-License-Identifier: Apache-2.0
#include "api/network/setter.h"
#include "ops/matrix_multiply/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct MatrixMultiplyLayer final : LayerObject<nvinfer1::IMatrixMultiplyLayer>
{
    nvinfer1::MatrixOperation operations[2]{nvinfer1::MatrixOperation::kNONE, nvinfer1::MatrixOperation::kNONE};

    Result<void> lower(LowerContext& ctx) override
    {
        ops::matrix_multiply::Attrs a;
        a.a = static_cast<ops::matrix_multiply::MatrixOperation>(operations[0]);
        a.b = static_cast<ops::matrix_multiply::MatrixOperation>(operations[1]);
        return ctx.lowerTo(ops::matrix_multiply::def(), std::move(a), {ctx.in(0), ctx.in(1)});
    }
};

std::string checkOperation(nvinfer1::MatrixOperation op)
{
    return checkEnum(op, "matrix operation");
}

struct FullyConnectedLayer final : LayerObject<nvinfer1::IFullyConnectedLayer>
{
    int32_t outputChannels = 0;
    nvinfer1::Weights kernelWeights{}, biasWeights{};

    int maxInputs() const override { return 2; } // data, kernel tensor
    std::vector<nvinfer1::Weights> heldWeights() const override { return {kernelWeights, biasWeights}; }
    Result<void> onSetInput(int index, TensorObject&) override
    {
        if (index == 1 && kernelWeights.count != 0)
            return error("kernel weights are set already; they must be empty when the tensor is an input");
        return {};
    }

    Result<void> lower(LowerContext& ctx) override
    {
        ir::Value* x = ctx.in(0);
        if (x->rank() - ctx.axisShift() < 3)
            return error("input '" + inputs[0]->name + "' with shape " + str(x->shape) +
                         " needs at least 3 dimensions besides the batch");
        int64_t volume = 1;
        for (size_t i = x->shape.size() - 3; i < x->shape.size(); ++i) {
            if (!x->shape[i].isConst())
                return error("the last three dimensions of input '" + inputs[0]->name + "' with shape " +
                             str(x->shape) + " must not be wildcards");
            volume = ir::mulSat(volume, x->shape[i].value());
        }
        if (volume > INT32_MAX)
            return error("the last three dimensions of input '" + inputs[0]->name + "' with shape " + str(x->shape) +
                         " have 2^31 elements or more");
        ir::Value* w = ctx.in(1);
        if (!w) {
            TW_ASSIGN(w, ctx.weights(kernelWeights, {outputChannels, volume}, x->type, ir::WeightsRole::kKernel));
        }
        ir::Value* b = nullptr;
        if (biasWeights.count != 0) {
            TW_ASSIGN(b, ctx.weights(biasWeights, {outputChannels}, x->type, ir::WeightsRole::kBias));
        }
        return ctx.lowerTo(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs::fullyConnected(), {x, w, b});
    }
};

TW_OBJECT(nvinfer1::IMatrixMultiplyLayer, MatrixMultiplyLayer)
TW_OBJECT(nvinfer1::IFullyConnectedLayer, FullyConnectedLayer)

constexpr char const* kOutputs = "the number of output channels";

} // namespace

namespace nvinfer1 {

IMatrixMultiplyLayer* INetworkDefinition::addMatrixMultiply(ITensor& input0, MatrixOperation op0, ITensor& input1,
                                                            MatrixOperation op1) noexcept
{
    return addLayer<MatrixMultiplyLayer>(
        *this, LayerType::kMATRIX_MULTIPLY, "Matrix Multiply", {&input0, &input1}, [&](MatrixMultiplyLayer& l) {
            l.operations[0] = op0;
            l.operations[1] = op1;
            return checkAll("addMatrixMultiply", {checkOperation(op0), checkOperation(op1)});
        });
}

void IMatrixMultiplyLayer::setOperation(int32_t index, MatrixOperation op) noexcept
{
    MatrixMultiplyLayer& l = objectOf(*this);
    setField(l, l.operations[index == 1], op, [&]() -> Result<void> {
        if (index != 0 && index != 1)
            return l.error("setOperation: input {} must be 0 or 1", index);
        return refusal(l, checkOperation(op));
    });
}
MatrixOperation IMatrixMultiplyLayer::getOperation(int32_t index) const noexcept
{
    return index == 0 || index == 1 ? objectOf(*this).operations[index] : MatrixOperation::kNONE;
}

IFullyConnectedLayer* INetworkDefinition::addFullyConnected(ITensor& input, int32_t nbOutputs, Weights kernelWeights,
                                                            Weights biasWeights) noexcept
{
    return addLayer<FullyConnectedLayer>(
        *this, LayerType::kFULLY_CONNECTED, "Fully Connected", {&input}, [&](FullyConnectedLayer& l) -> Result<void> {
            TW_TRY(checkAll("addFullyConnected", {checkPositive(nbOutputs, kOutputs)}));
            TW_TRY(checkWeights(kernelWeights, "addFullyConnected: kernel"));
            TW_TRY(checkWeights(biasWeights, "addFullyConnected: bias"));
            l.outputChannels = nbOutputs;
            l.kernelWeights = kernelWeights;
            l.biasWeights = biasWeights;
            return {};
        });
}

TW_PROPERTY(IFullyConnectedLayer, int32_t, setNbOutputChannels, getNbOutputChannels, outputChannels,
            checkPositive(value, kOutputs))
TW_PROPERTY(IFullyConnectedLayer, Weights, setKernelWeights, getKernelWeights, kernelWeights,
            checkWeights(value, self.where("kernel")))
TW_PROPERTY(IFullyConnectedLayer, Weights, setBiasWeights, getBiasWeights, biasWeights,
            checkWeights(value, self.where("bias")))

} // namespace nvinfer1
