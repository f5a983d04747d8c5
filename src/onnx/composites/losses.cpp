// SPDX-License-Identifier: Apache-2.0
// NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss: with l log probabilities [N, C, D..], t classes [N, D..], w weights of classes [C] (1
// when not given):
//   loss[n, d] = -w[t] l[n, t, d], and 0 where t is ignore_index; mean: over the weights of the classes that count
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using nvinfer1::ElementWiseOperation;
using nvinfer1::ReduceOperation;

// Of log probabilities; the other inputs and attributes are the node's.
ITensor& likelihoodLoss(ImportContext& ctx, ITensor& logs)
{
    std::string const reduction = ctx.attrString("reduction", "mean");
    if (reduction != "none" && reduction != "mean" && reduction != "sum")
        ctx.invalid("reduction is '" + reduction + "', allowed are none, mean and sum");
    int const rank = logs.getDimensions().nbDims;
    ITensor* classes = &ctx.cast(ctx.tensor(1), DataType::kINT32);
    if (rank < 2 || classes->getDimensions().nbDims != rank - 1)
        ctx.invalid(fmt::format("scores have shape {}, classes {}: they must be [N, C, D..] and [N, D..]",
                                describe(logs.getDimensions()), describe(classes->getDimensions())));
    // Of the classes that count; null: all do.
    ITensor* counts = nullptr;
    if (ctx.hasAttr("ignore_index")) {
        int64_t const ignored = ctx.requireInt("ignore_index");
        ITensor& number = ctx.scalar(double(ignored), DataType::kINT32, rank - 1);
        ITensor& isIgnored = ctx.elementwise(*classes, number, ElementWiseOperation::kEQUAL);
        counts = &ctx.unary(isIgnored, nvinfer1::UnaryOperation::kNOT);
        classes = &ctx.select(*counts, *classes, ctx.scalar(0, DataType::kINT32, rank - 1)); // one that there is
    }
    auto where = [&](ITensor& x) -> ITensor& { return counts ? ctx.select(*counts, x, ctx.scalarLike(0, x)) : x; };
    ITensor& own = ctx.squeeze(ctx.gather(logs, ctx.unsqueeze(*classes, {1}), nvinfer1::GatherMode::kELEMENT, 1), {1});
    ITensor* loss = &ctx.unary(own, nvinfer1::UnaryOperation::kNEG);
    ITensor* weights = nullptr; // null: all are 1
    if (ctx.hasInput(2)) {
        ITensor& ofClasses = ctx.cast(ctx.tensor(2), logs.getType());
        if (ofClasses.getDimensions().nbDims != 1)
            ctx.invalid("weights of classes have shape " + describe(ofClasses.getDimensions()) + " instead of [C]");
        weights = &where(ctx.gather(ofClasses, *classes, nvinfer1::GatherMode::kDEFAULT, 0));
        loss = &ctx.elementwise(*loss, *weights, ElementWiseOperation::kPROD);
    } else if (counts) {
        weights = &ctx.cast(*counts, logs.getType());
    }
    loss = &where(*loss);
    if (reduction == "none")
        return *loss;
    bool const isMean = reduction == "mean";
    std::vector<int> const axes = allAxes(rank - 1);
    if (isMean && !weights)
        return ctx.reduce(*loss, ReduceOperation::kAVG, axes, false);
    ITensor& sum = ctx.reduce(*loss, ReduceOperation::kSUM, axes, false);
    return isMean ? ctx.elementwise(sum, ctx.reduce(*weights, ReduceOperation::kSUM, axes, false),
                                    ElementWiseOperation::kDIV)
                  : sum;
}

void importSoftmaxCrossEntropyLoss(ImportContext& ctx)
{
    ITensor& logs = logSoftmax(ctx, ctx.tensor(0), 1);
    ctx.setOutput(0, likelihoodLoss(ctx, logs));
    if (ctx.wantsOutput(1))
        ctx.setOutput(1, logs);
}

} // namespace

void register_composites_losses(ImporterMap& map)
{
    map.add("NegativeLogLikelihoodLoss", [](auto& ctx) { ctx.setOutput(0, likelihoodLoss(ctx, ctx.tensor(0))); });
    map.add("SoftmaxCrossEntropyLoss", importSoftmaxCrossEntropyLoss);
}

} // namespace tw::onnx
