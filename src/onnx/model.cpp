// SPDX-License-Identifier: Apache-2.0
#include "onnx/model.h"

#include <algorithm>

#include "onnx/few_bits.h"
#include "onnx/fold.h"
#include "onnx/importer.h"
#include "onnx/integers.h"
#include "tw_onnx.pb.h"

namespace tw::onnx {

using nvinfer1::ILogger;
using nvonnxparser::ErrorCode;

ParserError::ParserError(ErrorCode code, std::string desc, SourceLocation where, int node)
    : code_(code), desc_(std::move(desc)), func_(where.function), line_(int(where.line)), node_(node)
{
    file_ = where.file;
    // Paths of the machine that built the library are nobody's business.
    if (size_t const at = file_.rfind("src/"); at != std::string::npos)
        file_ = file_.substr(at);
}

ModelImporter::ModelImporter(nvinfer1::INetworkDefinition& network, ILogger& logger, ImporterMap const& importers,
                             Memory& memory, Models& kept)
    : ImportedNetwork(network, logger, memory, "ONNX parser"), importers_(importers),
      weights_(memory, [this](std::string const& m) { log(ILogger::Severity::kWARNING, m); }), kept_(kept)
{}

// ---- the graph as a whole

void ModelImporter::checkModel(tw_onnx::ModelProto const& model)
{
    if (!model.has_graph())
        fail(ErrorCode::kINVALID_GRAPH, "the model has no graph");
    if (network().hasImplicitBatchDimension())
        fail(ErrorCode::kINVALID_VALUE, "ONNX models need a network with explicit batch; create it with "
                                        "NetworkDefinitionCreationFlag::kEXPLICIT_BATCH");
    findFunctions(model);
    opset_ = 0;
    for (auto const& set : model.opset_import())
        if (isDefaultDomain(set.domain()))
            opset_ = int(std::clamp<int64_t>(set.version(), 0, INT32_MAX));
    if (opset_ == 0) {
        // Files of IR version 1 and 2 do not name their operator set; it is the first one.
        if (model.ir_version() >= 3 && model.opset_import_size() == 0)
            fail(ErrorCode::kINVALID_GRAPH, "the model imports no operator set");
        opset_ = 1;
    }
    if (opset_ < 7)
        log(ILogger::Severity::kWARNING,
            fmt::format("the model uses opset {}; opsets below 7 are imported where they mean the same as opset 7",
                        opset_));
    constexpr int kNewestKnown = 28;
    if (opset_ > kNewestKnown)
        log(ILogger::Severity::kWARNING,
            fmt::format("the model uses opset {}; operators are imported with their meaning in opset {}", opset_,
                        kNewestKnown));
    if (model.graph().sparse_initializer_size() > 0)
        fail(ErrorCode::kUNSUPPORTED_GRAPH,
             "sparse initializers ('" + model.graph().sparse_initializer(0).values().name() + "') cannot be imported");
}

void ModelImporter::importInputs(tw_onnx::GraphProto const& graph)
{
    for (auto const& input : graph.input()) {
        std::string const& name = input.name();
        if (values().count(name)) {
            if (values()[name].isTensor())
                fail(ErrorCode::kINVALID_GRAPH, "input '" + name + "' is listed twice");
            continue; // its default value is an initializer, which stands for it
        }
        std::string const what = "input '" + name + "'";
        if (name.empty() || name.size() > 4095 || name.find('\0') != std::string::npos)
            fail(ErrorCode::kINVALID_GRAPH, what + ": a network input needs a name of 1 to 4095 bytes");
        bool const isOptional = input.type().has_optional_type();
        tw_onnx::TypeProto const& given = isOptional ? input.type().optional_type().elem_type() : input.type();
        if (!given.has_tensor_type())
            fail(ErrorCode::kUNSUPPORTED_GRAPH,
                 what + " is not a tensor; inputs of a network are tensors, not sequences or maps");
        if (isOptional)
            log(ILogger::Severity::kWARNING, what + " is an optional tensor in the model; the network always has it");
        auto const& type = given.tensor_type();
        DataType dataType;
        if (!dataTypeOf(type.elem_type(), dataType))
            fail(ErrorCode::kUNSUPPORTED_GRAPH,
                 what + " has element type " + onnxTypeName(type.elem_type()) + ", which cannot be imported");
        Integers const integers = integersOf(type.elem_type());
        if (type.elem_type() == tw_onnx::TensorProto::INT64 || type.elem_type() == tw_onnx::TensorProto::DOUBLE ||
            (integers != Integers::kOfType && dataType != DataType::kUINT8))
            log(ILogger::Severity::kWARNING, what + " is " + onnxTypeName(type.elem_type()) + " in the model and " +
                                                 typeName(dataType) + " in the network");
        if (!type.has_shape())
            fail(ErrorCode::kUNSUPPORTED_GRAPH, what + " has no shape; the network needs at least its rank");
        if (type.shape().dim_size() > Dims::MAX_DIMS)
            fail(ErrorCode::kUNSUPPORTED_GRAPH,
                 fmt::format("{} has rank {}, above the highest rank of the API, 8", what, type.shape().dim_size()));
        Dims dims{type.shape().dim_size(), {}};
        for (int i = 0; i < dims.nbDims; ++i) {
            auto const& d = type.shape().dim(i);
            int64_t const v = d.has_dim_value() ? d.dim_value() : numberIn(d.dim_param()).value_or(-1);
            if (v < -1 || v > INT32_MAX)
                fail(ErrorCode::kINVALID_VALUE, fmt::format("{}: dimension {} is {}", what, i, v));
            dims.d[i] = int32_t(v);
        }
        ITensor* tensor = network().addInput(name.c_str(), dataType, dims);
        if (!tensor)
            fail(ErrorCode::kINVALID_GRAPH,
                 "the network refused " + what + " of shape " + describe(dims) + ": " + reason());
        for (int i = 0; i < dims.nbDims; ++i)
            if (std::string const& param = type.shape().dim(i).dim_param(); !param.empty() && dims.d[i] < 0)
                tensor->setDimensionName(i, cleanName(param).c_str());
        values()[name] = Value(*tensor, integers);
        tensorNames_.insert(name);
        named_.insert(tensor);
    }
}

void ModelImporter::nameTensor(ITensor& tensor, std::string const& wanted)
{
    if (named_.count(&tensor))
        return;
    std::string const clean = cleanName(wanted);
    if (clean.empty() || !tensorNames_.insert(clean).second)
        return;
    tensor.setName(clean.c_str());
    named_.insert(&tensor);
}

void ModelImporter::tryPlugin(OnnxNode& ctx)
{
    for (tw_onnx::AttributeProto const& a : ctx.node().attribute())
        if (a.has_g() || a.graphs_size() > 0)
            ctx.fail("operator '" + ctx.opType() + "' runs subgraphs (attribute '" + cleanName(a.name()) +
                     "'); of such operators If, Loop and Scan can be imported");
    // Forms of quantized tensors are the importer's own.
    for (int i = 0; i < ctx.nbInputs(); ++i)
        if (Value const v = ctx.optionalInput(i);
            v.isTensor() && v.integers() != Integers::kOfType && v.type() != DataType::kUINT8)
            ctx.replaceInput(i, Value(wholeIntegers(ctx, v), v.integers()));
    if (nvinfer1::IPluginCreator* const creator = findPlugin(ctx.node()))
        return importPlugin(ctx, ctx.node(), *creator);
    std::string const version = ctx.attrString("plugin_version", "1");
    ctx.fail(fmt::format(
        "no importer for operator '{}'{} in opset {}; getPluginCreator() could not find Plugin {} version {}{}",
        ctx.opType(), isDefaultDomain(ctx.node().domain()) ? "" : " of domain '" + ctx.node().domain() + "'", opset_,
        ctx.opType(), version, foreignPluginHint(ctx.opType(), ctx.node().domain())));
}

namespace {

// Sequences and optional values are lists of the importer: tensors are what other operators take.
void checkKinds(ImportContext const& ctx)
{
    static std::set<std::string> const kTake{"Identity",    "SequenceAt",         "SequenceInsert",     "SequenceErase",
                                             "SequenceMap", "SequenceLength",     "ConcatFromSequence", "Optional",
                                             "Loop",        "OptionalGetElement", "OptionalHasElement"};
    for (int i = 0; i < ctx.nbInputs() && !kTake.contains(ctx.opType()); ++i)
        if (Value const v = ctx.optionalInput(i); v.isSequence() || v.isMissing())
            ctx.fail(fmt::format("input {} is {}; the operator takes tensors", i,
                                 v.isSequence() ? "a sequence" : "an optional value that is not there"));
}

} // namespace

void ModelImporter::prepareIntegers(OnnxNode& ctx)
{
    std::set<DataType> forms;
    for (int i = 0; i < ctx.nbInputs(); ++i)
        if (Value const v = ctx.optionalInput(i); v.isOneTensor() && v.integers() != Integers::kOfType)
            forms.insert(v.type());
    if (forms.empty())
        return;
    IntegerForm const form = formTaken(ctx.opType());
    bool const isMoved =
        form == IntegerForm::kMoved || (form == IntegerForm::kMovedFloat && !forms.contains(DataType::kINT32));
    if (form == IntegerForm::kAny || (isMoved && forms.size() == 1 && !forms.contains(DataType::kUINT8)))
        return;
    for (int i = 0; i < ctx.nbInputs(); ++i) {
        Value const v = ctx.optionalInput(i);
        if (!v.isOneTensor() || v.integers() == Integers::kOfType || (v.isConstant() && v.constant().later))
            continue;
        if (form == IntegerForm::kFloat || form == IntegerForm::kMovedFloat) {
            ctx.replaceInput(i, Value(wholeFloats(ctx, v), v.integers()));
        } else if (v.isTensor() && v.type() != DataType::kINT32) {
            ITensor* inside = nullptr; // of loops and conditionals it is made each time
            ITensor*& made = scopes_.size() == 1 ? asInt32_[&v.tensor()] : inside;
            if (!made)
                made = &wholeIntegers(ctx, v);
            ctx.replaceInput(i, Value(*made, v.integers()));
        }
    }
}

void ModelImporter::finishIntegers(OnnxNode& ctx)
{
    for (int i = 0; i < int(ctx.outputs().size()); ++i) {
        Value const& v = ctx.outputs()[size_t(i)];
        Integers const integers = resultIntegers(ctx, i);
        if (integers == Integers::kOfType || !v.isOneTensor() || v.integers() != Integers::kOfType ||
            v.type() == DataType::kBOOL || v.type() == DataType::kHALF)
            continue;
        if (v.isConstant()) {
            Constant c = v.constant();
            c.integers = integers;
            ctx.replaceOutput(i, Value(c));
        } else if (v.type() == DataType::kINT32 && leavesRange(ctx.opType())) {
            ctx.replaceOutput(i, Value(wrapped(ctx, v.tensor(), integers), integers));
        } else {
            ctx.replaceOutput(i, Value(v.tensor(), integers));
        }
    }
}

// An operator that is imported as such is not one, whatever the model says of it.
tw_onnx::FunctionProto const* ModelImporter::functionOf(tw_onnx::NodeProto const& node) const
{
    auto const it = functions_.find({node.domain(), node.op_type()});
    if (it == functions_.end())
        return nullptr;
    bool const isDefault = isDefaultDomain(node.domain());
    bool const isImported = isDefault ? importers_.find(node.op_type(), opset_) != nullptr
                                      : importers_.find(node.op_type(), 1, node.domain()) != nullptr;
    return isImported ? nullptr : it->second;
}

namespace {

// Whether the operator's importer knows constants without values (Constant::later) as this input.
bool takesLater(tw_onnx::NodeProto const& node, size_t input)
{
    std::string const& op = node.op_type();
    if (!isDefaultDomain(node.domain()))
        return node.domain() == kMicrosoft && op == "MatMulNBits" && (input == 1 || input == 3);
    return ((op == "DequantizeLinear" || op == "Transpose") && input == 0) ||
           ((op == "MatMul" || op == "Gemm") && input == 1);
}

// Whether the output is a constant without values, as an input is; others have values then, but those of DequantizeLinear and products.
bool keepsIntegers(OnnxNode& ctx)
{
    for (int i = 0; i < ctx.nbInputs(); ++i) {
        Value const v = ctx.optionalInput(i);
        if (!v.isConstant() || !v.constant().later)
            continue;
        if (keptInteger(ctx))
            return true;
        bool const isProduct = v.constant().later->matrix && ctx.opType() != "Transpose" && !ctx.isConstant(0);
        if (!isProduct && ctx.opType() != "DequantizeLinear")
            ctx.withValues(i);
    }
    return false;
}

} // namespace

void ModelImporter::importNode(tw_onnx::GraphProto const& graph, int index)
{
    tw_onnx::NodeProto const& node = graph.node(index);
    std::vector<Value> inputs;
    for (std::string const& name : node.input())
        inputs.push_back(name.empty() ? Value() : find(name, takesLater(node, inputs.size())));
    OnnxNode ctx(*this, node, std::move(inputs), opset_, false, index);
    tw_onnx::FunctionProto const* const function = functionOf(node);
    bool const known = isDefaultDomain(node.domain()) && !function;
    if (known)
        checkKinds(ctx);
    if (function) {
        importFunction(ctx, *function);
    } else if (known && keepsIntegers(ctx)) {
        // its output is set
    } else if (!known || !fold(ctx)) {
        if (known)
            prepareIntegers(ctx);
        Importer const run =
            known ? importers_.find(node.op_type(), opset_) : importers_.find(node.op_type(), 1, node.domain());
        if (!run)
            tryPlugin(ctx);
        else if (!importOptionalSqueeze(ctx))
            run(ctx);
    }
    if (known)
        finishIntegers(ctx);
    for (int i = 0; i < node.output_size(); ++i) {
        std::string const& name = node.output(i);
        if (name.empty())
            continue;
        Value const& v = ctx.outputs()[size_t(i)];
        if (v.isNull())
            ctx.fail(fmt::format("output {} ('{}') cannot be imported", i, name));
        if (v.isTensor())
            nameTensor(v.tensor(), name);
        values()[name] = v;
    }
}

ITensor* ModelImporter::layersOf(tw_onnx::NodeProto const& node, std::vector<Value> const& inputs, int opset,
                                 ITensor*& made)
{
    bool const isOutside = scopes_.size() == 1;
    if (made && isOutside)
        return made;
    Importer const run = importers_.find(node.op_type(), opset);
    if (!run)
        return nullptr;
    try {
        OnnxNode ctx(*this, node, inputs, opset, true);
        run(ctx);
        Value const& v = ctx.outputs().at(0);
        ITensor* const t = v.isNull() ? nullptr : &ctx.asTensor(v);
        if (isOutside)
            made = t;
        return t;
    } catch (ImportError const&) {
        return nullptr; // the constant itself stands for it
    }
}

// As 8.5 does it.
void ModelImporter::renameInput(ITensor& input)
{
    std::string const old = input.getName();
    std::string name = "__" + old;
    while (tensorNames_.count(name) || values().count(name))
        name = "__" + name;
    log(ILogger::Severity::kWARNING, "input '" + old +
                                         "' is an output, too; a network has tensors of its own for both, " +
                                         "so the input is named '" + name + "'");
    input.setName(name.c_str());
    tensorNames_.erase(old);
    tensorNames_.insert(name);
}

void ModelImporter::markOutputs(tw_onnx::GraphProto const& graph)
{
    std::unordered_set<ITensor*> used;
    for (int i = 0; i < network().getNbInputs(); ++i)
        used.insert(network().getInput(i));
    std::unordered_set<std::string> listed;
    for (auto const& output : graph.output()) {
        if (!listed.insert(output.name()).second) {
            log(ILogger::Severity::kWARNING, "output '" + output.name() + "' is listed twice; the network has it once");
            continue;
        }
        auto it = values().find(output.name());
        if (it == values().end() || it->second.isNull())
            fail(ErrorCode::kINVALID_GRAPH, "output '" + output.name() + "' is defined by no node");
        auto const& type = output.type();
        withValues(it->second);
        if (it->second.isSequence()) { // one output for each element
            std::vector<Value> const elements = it->second.elements();
            int const elementType = type.sequence_type().elem_type().tensor_type().elem_type();
            for (size_t i = 0; i < elements.size(); ++i)
                markOutput(fmt::format("{}_{}", output.name(), i), elements[i], elementType, used);
            log(ILogger::Severity::kWARNING,
                fmt::format("output '{}' is a sequence; the network has its {} elements as outputs '{}_0' and so on",
                            output.name(), elements.size(), output.name()));
            continue;
        }
        markOutput(output.name(), it->second,
                   (type.has_optional_type() ? type.optional_type().elem_type() : type).tensor_type().elem_type(),
                   used);
    }
}

void ModelImporter::markOutput(std::string const& name, Value const& value, int onnxType,
                               std::unordered_set<ITensor*>& used)
{
    if (!value.isOneTensor())
        fail(ErrorCode::kUNSUPPORTED_GRAPH,
             "output '" + name + "' is " + (value.isSequence() ? "a sequence" : "an optional value that is not there") +
                 "; outputs of a network are tensors");
    tw_onnx::NodeProto helper;
    helper.set_name(name);
    helper.set_op_type("output");
    OnnxNode ctx(*this, helper, {}, opset_);
    ITensor* tensor = &ctx.asTensor(value);
    if (tensor->isNetworkInput() && tensor->getName() == cleanName(name))
        renameInput(*tensor);
    // A network input, or one tensor under two names: an output needs a tensor of its own.
    if (used.count(tensor) || (named_.count(tensor) && tensor->getName() != cleanName(name)))
        tensor = &ctx.identity(*tensor);
    used.insert(tensor);
    // UINT8 leaves the network only by the last conversion (from kINT32 or a floating type), and INT8 as INT8.
    DataType const type = tensor->getType();
    Integers const integers = value.integers();
    if (onnxType == tw_onnx::TensorProto::UNDEFINED) // then it is that of the value
        onnxType = integers == Integers::kUint8  ? int(tw_onnx::TensorProto::UINT8)
                   : integers == Integers::kInt8 ? int(tw_onnx::TensorProto::INT8)
                                                 : onnxType;
    bool const leavesAsUint8 =
        onnxType == tw_onnx::TensorProto::UINT8 &&
        (isFloating(type) || type == DataType::kINT32 || (type == DataType::kINT8 && integers == Integers::kUint8));
    bool const leavesAsInt8 =
        onnxType == tw_onnx::TensorProto::INT8 && type != DataType::kINT8 && integers == Integers::kInt8;
    if (leavesAsUint8 || leavesAsInt8) {
        named_.erase(tensor);
        tensorNames_.erase(tensor->getName());
        Value const numbers(*tensor, integers);
        tensor = leavesAsUint8 ? &asUint8(ctx, numbers) : &asInt8(ctx, numbers);
    }
    if (!named_.count(tensor)) {
        tensor->setName(cleanName(name).c_str());
        tensorNames_.insert(cleanName(name));
        named_.insert(tensor);
    }
    network().markOutput(*tensor);
}

namespace {

bool isQuantizedOp(tw_onnx::NodeProto const& node)
{
    return isDefaultDomain(node.domain())
               ? contains(kQuantizedOps, node.op_type())
               : node.domain() == kMicrosoft && contains(kMicrosoftQuantizedOps, node.op_type());
}

} // namespace

void ModelImporter::import(tw_onnx::ModelProto const& model, std::string const& modelPath)
{
    nbImported_ = 0;
    weights_.setModelPath(modelPath);
    checkModel(model);
    tw_onnx::GraphProto const& graph = model.graph();
    std::vector<int> const order = topologicalOrder(graph);
    takeZeroPoints(importers_.contains(kQuantizedOps[0]));
    readInitializers(graph);
    importInputs(graph);
    readSums(graph);
    for (int index : order) {
        try {
            importNode(graph, index);
        } catch (ImportError& e) {
            tw_onnx::NodeProto const& node = graph.node(index);
            if (isQuantizedOp(node) && !importers_.contains(kQuantizedOps[0]))
                e.message += "; the model has operators on quantized tensors, which TensorRT 8.5 does not import: a "
                             "parser does that is made with TENSORWRIGHT_ONNX_QUANTIZED_OPS=1 in the environment";
            throw NodeError{std::move(e), index, node.name(), node.op_type()};
        }
        ++nbImported_;
    }
    markOutputs(graph);
    setWeightsNames();
}

} // namespace tw::onnx
