// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "api/network/network.h"
#include "api/plugin/exprs.h"
#include "api/plugin/kernel.h"
#include "api/standard_plugins/standard_plugin.h"
#include "ops/plugin/op.h"

using namespace tw;
using namespace tw::api;

namespace {

using nvinfer1::Dims;
using nvinfer1::DimsExprs;
using ops::plugin::Attrs;
using Interface = ops::plugin::Interface;

Result<std::string> keyPart(char const* text, std::string const& where, char const* method)
{
    constexpr size_t kMost = 1024; // a longer name is a missing terminator
    size_t const length = text ? strnlen(text, kMost) : kMost;
    if (length == kMost)
        return invalidArgument(where + ": " + method + "() gave " + (text ? "no terminated text" : "a null pointer"));
    return std::string(text, length);
}

struct PluginLayer final : LayerObject<nvinfer1::IPluginV2Layer>
{
    PluginPtr plugin;
    std::shared_ptr<StandardInstance const> standard; // null: a client's plugin
    int nbOutputs = 1;

    int outputCount() const override { return nbOutputs; }
    char const* pluginName() const override { return standard ? standard->plugin->name : nullptr; }
    nvinfer1::DataType naturalOutputType(int index) const override
    {
        std::vector<tw::DataType> types;
        for (TensorObject* t : inputs) {
            auto const v = network->lowered(*t);
            if (!v.ok())
                return nvinfer1::DataType::kFLOAT;
            types.push_back(t->typeOf(**v));
        }
        auto const out = plugin->outputTypes(types);
        return out.ok() && index < int(out->size()) ? toPublic((*out)[size_t(index)]) : nvinfer1::DataType::kFLOAT;
    }

    std::optional<nvinfer1::DataType> declaredOutputType(int index) const override
    {
        return standard ? std::optional(naturalOutputType(index)) : std::nullopt;
    }

    Result<void> take(nvinfer1::IPluginV2& given, int32_t nbInputs)
    {
        nvinfer1::IPluginV2* const copy = given.clone();
        if (copy == &given)
            return invalidState("addPluginV2: clone() gave the plugin itself; it must make a new one");
        TW_ASSIGN(plugin, PluginObject::own(copy, "(added by addPluginV2)"));
        standard = standardInstanceOf(plugin->get());
        nbOutputs = plugin->get().getNbOutputs();
        std::string const where = "addPluginV2: " + plugin->where();
        if (nbOutputs < 1 || nbOutputs + int64_t(nbInputs) > ops::plugin::kMaxTensors)
            return invalidArgument(
                "{}: getNbOutputs() gave {}; a plugin has at least one output, and with its inputs at most {}", where,
                nbOutputs, ops::plugin::kMaxTensors);
        if (plugin->isAskedOneByOne() &&
            nbOutputs + nbInputs > nvinfer1::IPluginV2DynamicExt::kFORMAT_COMBINATION_LIMIT)
            return invalidArgument("{}: {} inputs and outputs; the limit is {}", where, nbOutputs + nbInputs,
                                   nvinfer1::IPluginV2DynamicExt::kFORMAT_COMBINATION_LIMIT);
        if (network->implicitBatch && plugin->interface() == Interface::kDynamicExt)
            return invalidArgument(where + ": an IPluginV2DynamicExt plugin needs an explicit batch network "
                                           "(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH)");
        return {};
    }

    Result<void> lower(LowerContext& ctx) override
    {
        Attrs a;
        std::vector<ir::Value*> in;
        for (int i = 0; i < ctx.inputCount(); ++i)
            in.push_back(ctx.in(i));
        if (standard)
            return lowerStandard(ctx, std::move(in));
        a.interface = plugin->interface();
        a.dropsBatch = a.interface != Interface::kDynamicExt;
        a.instance = id;
        TW_TRY(describe(a.state));
        if (ctx.implicitBatch())
            TW_TRY(broadcast(ctx, a, in));
        std::vector<tw::DataType> types;
        for (ir::Value const* v : in) {
            types.push_back(v->type);
            a.inputTypes.push_back(int64_t(v->type));
            a.inputRanks.push_back(v->rank());
        }
        TW_ASSIGN(auto const outTypes, plugin->outputTypes(types));
        for (tw::DataType t : outTypes)
            a.outputTypes.push_back(int64_t(t));
        if (int(outTypes.size()) != nbOutputs)
            return error("getNbOutputs() gave {}, and before {}", outTypes.size(), nbOutputs);
        TW_ASSIGN(auto const shapes, a.dropsBatch ? staticShapes(a, in) : dynamicShapes(in));
        a.shapes = ops::plugin::textOf(shapes);
        plugin->setLayer(name);
        a.object = std::make_shared<NetworkPlugin>(plugin);
        TW_ASSIGN(ir::Node * node, ctx.add(ops::plugin::def(), std::move(a), std::move(in)));
        for (int i = 0; i < nbOutputs; ++i)
            ctx.output(i, node->outputs[size_t(i)]);
        return {};
    }

private:
    // As the ops that it stands for.
    Result<void> lowerStandard(LowerContext& ctx, std::vector<ir::Value*> in)
    {
        plugin->setLayer(name);
        TW_TRY(ctx.shareBatch(in));
        auto outputs = standard->plugin->lowered(
            ctx.graph(), standard->fields, std::move(in), name,
            [&](ir::OpDef const& op, std::unique_ptr<ir::AttrsBase> attrs, std::vector<ir::Value*> inputs,
                std::string const& part) { return ctx.add(op, std::move(attrs), std::move(inputs), part); });
        if (!outputs.ok())
            return std::move(outputs).error().in(plugin->where());
        for (int i = 0; i < nbOutputs; ++i)
            ctx.output(i, (*outputs)[size_t(i)]);
        return {};
    }
    Result<void> describe(ir::OpaqueBytes& s) const
    {
        nvinfer1::IPluginV2& p = plugin->get();
        std::string const where = "layer '" + name + "'";
        TW_ASSIGN(s.type, keyPart(p.getPluginType(), where, "getPluginType"));
        TW_ASSIGN(s.version, keyPart(p.getPluginVersion(), where, "getPluginVersion"));
        char const* const space = p.getPluginNamespace(); // a client that never set one may give null
        TW_ASSIGN(s.nameSpace, keyPart(space ? space : "", where, "getPluginNamespace"));
        return {};
    }

    // Implicit batch: what is the same for the whole batch stays one where the plugin can read it so.
    Result<void> broadcast(LowerContext& ctx, Attrs& a, std::vector<ir::Value*>& in) const
    {
        size_t const count = in.size();
        bool const isAnyBatched = std::any_of(in.begin(), in.end(), hasBatch);
        std::vector<char> isOne(count);
        for (size_t i = 0; i < count; ++i) {
            isOne[i] = in[i]->rank() > 0 && in[i]->shape[0].is(1) && !hasBatch(in[i]);
            bool const canStay =
                a.interface != Interface::kV2 && plugin->ext().canBroadcastInputAcrossBatch(int32_t(i));
            if (isOne[i] && isAnyBatched && !canStay) {
                TW_ASSIGN(in[i], overBatch(ctx.graph(), in[i], fmt::format("{} input {}", name, i), name));
                isOne[i] = false;
            }
        }
        a.broadcast.assign(isOne.begin(), isOne.end());
        static_assert(sizeof(bool) == sizeof(char));
        for (int32_t o = 0; o < nbOutputs; ++o)
            a.broadcast.push_back(a.interface != Interface::kV2 &&
                                  plugin->ext().isOutputBroadcastAcrossBatch(
                                      o, reinterpret_cast<bool const*>(isOne.data()), int32_t(count)));
        return {};
    }

    // Without the batch, which is the first dimension of the first input that has one.
    Result<std::vector<ir::Shape>> staticShapes(Attrs const& a, std::vector<ir::Value*> const& in)
    {
        std::vector<Dims> dims;
        ir::Dim batch = 1;
        bool hasBatchDim = false;
        for (size_t i = 0; i < in.size(); ++i) {
            ir::Shape const& x = in[i]->shape;
            if (x.empty())
                return error("input {} ('{}') is a scalar; plugins that are no IPluginV2DynamicExt take the first "
                             "dimension of each input for the batch",
                             i, in[i]->name);
            for (size_t d = 1; d < x.size(); ++d)
                if (!x[d].isConst())
                    return error(
                        "input {} ('{}') has the shape {}: only IPluginV2DynamicExt plugins take dimensions that vary",
                        i, in[i]->name, str(x));
            dims.push_back(toPublic(x, 1));
            if (!hasBatchDim && !a.isBroadcast(i)) {
                hasBatchDim = true;
                batch = x[0].isConst() ? x[0] : ir::Dim::symbol(ops::plugin::symbolOf(i, 0));
            }
        }
        std::vector<ir::Shape> shapes;
        for (int32_t o = 0; o < nbOutputs; ++o) {
            Dims const y = plugin->get().getOutputDimensions(o, dims.data(), int32_t(dims.size()));
            TW_TRY(checkDims(y, 0, fmt::format("layer '{}': getOutputDimensions({})", name, o)));
            if (y.nbDims >= Dims::MAX_DIMS)
                return error("getOutputDimensions({}) gave {} dimensions, and the batch is one more; the most is {}", o,
                             y.nbDims, int(Dims::MAX_DIMS));
            ir::Shape shape{a.isBroadcast(in.size() + size_t(o)) ? ir::Dim(1) : batch};
            for (int d = 0; d < y.nbDims; ++d)
                shape.emplace_back(y.d[d]);
            shapes.push_back(std::move(shape));
        }
        return shapes;
    }

    Result<std::vector<ir::Shape>> dynamicShapes(std::vector<ir::Value*> const& in)
    {
        ExprBuilder builder;
        std::vector<DimsExprs> inputs;
        for (size_t i = 0; i < in.size(); ++i) {
            DimsExprs e{};
            for (ir::Dim const& d : in[i]->shape) {
                size_t const at = size_t(e.nbDims++);
                e.d[at] = builder.make(d.isConst() ? d : ir::Dim::symbol(ops::plugin::symbolOf(i, at)));
            }
            inputs.push_back(e);
        }
        std::vector<ir::Shape> shapes;
        for (int32_t o = 0; o < nbOutputs; ++o) {
            DimsExprs const y =
                plugin->dynamicExt().getOutputDimensions(o, inputs.data(), int32_t(inputs.size()), builder);
            std::string const what = fmt::format("getOutputDimensions({})", o);
            if (y.nbDims < 0 || y.nbDims > Dims::MAX_DIMS)
                return error("{} gave {} dimensions (allowed: 0..{})", what, y.nbDims, int(Dims::MAX_DIMS));
            ir::Shape shape;
            for (int32_t d = 0; d < y.nbDims; ++d) {
                if (!builder.owns(y.d[d]))
                    return error("{}: dimension {}{}", what, d,
                                 y.d[d] ? " is no expression of the builder that was given" : " is a null pointer");
                shape.push_back(dimOf(*y.d[d]));
            }
            shapes.push_back(std::move(shape));
        }
        return shapes;
    }
};

} // namespace

namespace nvinfer1 {

IPluginV2Layer* INetworkDefinition::addPluginV2(ITensor* const* inputs, int32_t nbInputs, IPluginV2& plugin) noexcept
{
    NetworkObject& network = objectOf(*this);
    if (nbInputs < 0 || nbInputs > ops::plugin::kMaxTensors || (nbInputs > 0 && !inputs)) {
        network.reporter.error(
            invalidArgument("addPluginV2: {} inputs{}", nbInputs, inputs ? "" : " at a null pointer"));
        return nullptr;
    }
    std::vector<ITensor*> const list(inputs, inputs + nbInputs);
    return addLayer<PluginLayer>(*this, LayerType::kPLUGIN_V2, "PluginV2", list,
                                 [&](PluginLayer& l) -> Result<void> { return l.take(plugin, nbInputs); });
}

IPluginV2& IPluginV2Layer::getPlugin() noexcept
{
    return static_cast<PluginLayer*>(this)->plugin->get();
}

} // namespace nvinfer1
