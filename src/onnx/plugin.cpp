// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <list>
#include <memory>

#include "onnx/importer.h"
#include "tw_onnx.pb.h"

namespace tw::onnx {

using nvinfer1::PluginField;
using nvinfer1::PluginFieldType;
using tw_onnx::AttributeProto;

namespace {

std::string textAttribute(tw_onnx::NodeProto const& node, char const* name, char const* absent)
{
    for (AttributeProto const& a : node.attribute())
        if (a.name() == name)
            return a.s();
    return absent;
}

// Fields with what they point to. Integers are those of plugins, 32 bits; INT64 beyond that is clamped, as in tensors.
class Fields
{
public:
    explicit Fields(ImportContext& ctx) : ctx_(ctx) {}

    void add(char const* name)
    {
        Attribute const value = ctx_.attribute(name).value_or(Attribute());
        if (auto const* const f = std::get_if<float>(&value))
            return put(name, PluginFieldType::kFLOAT32, std::vector<float>{*f});
        if (auto const* const list = std::get_if<std::vector<float>>(&value))
            return put(name, PluginFieldType::kFLOAT32, *list);
        if (auto const* const i = std::get_if<int64_t>(&value))
            return put(name, PluginFieldType::kINT32, clamped({*i}));
        if (auto const* const list = std::get_if<std::vector<int64_t>>(&value))
            return put(name, PluginFieldType::kINT32, clamped(*list));
        if (auto const* const text =
                std::get_if<std::string>(&value)) // a terminator stands behind, which the length leaves out
            return put(name, PluginFieldType::kCHAR, std::vector<char>(text->c_str(), text->c_str() + text->size() + 1),
                       1);
        if (auto const* const c = std::get_if<Constant>(&value)) {
            fields_.emplace_back(name, c->count > 0 ? c->values : nullptr, typeOf(c->type), int32_t(c->count));
            return;
        }
        ctx_.fail(fmt::format("attribute '{}' is of a kind that plugins have no field for", name));
    }
    nvinfer1::PluginFieldCollection collection() const { return {int32_t(fields_.size()), fields_.data()}; }

private:
    template <class T>
    void put(char const* name, PluginFieldType type, std::vector<T> values, size_t hidden = 0)
    {
        auto const kept = std::make_shared<std::vector<T>>(std::move(values));
        // Of a single number plugins read the first element, whatever the length is: where there is none, there is no memory.
        fields_.emplace_back(name, kept->empty() ? nullptr : kept->data(), type, int32_t(kept->size() - hidden));
        kept_.push_back(kept);
    }
    static std::vector<int32_t> clamped(std::vector<int64_t> const& values)
    {
        auto result =
            mapped<int32_t>(values, [&](int64_t v) { return int32_t(std::clamp<int64_t>(v, INT32_MIN, INT32_MAX)); });
        return result;
    }
    static PluginFieldType typeOf(DataType t)
    {
        constexpr PluginFieldType kTypes[] = {PluginFieldType::kFLOAT32, PluginFieldType::kFLOAT16,
                                              PluginFieldType::kINT8, PluginFieldType::kINT32};
        return size_t(t) < std::size(kTypes) ? kTypes[size_t(t)] : PluginFieldType::kUNKNOWN;
    }

    ImportContext& ctx_;
    std::vector<PluginField> fields_;
    std::list<std::shared_ptr<void>> kept_;
};

// Those that the creator asks for; all of them where it lists none.
bool isField(nvinfer1::PluginFieldCollection const* asked, std::string const& name)
{
    if (name == "plugin_version" || name == "plugin_namespace")
        return false;
    if (!asked || !asked->fields)
        return !asked;
    return std::any_of(asked->fields, asked->fields + std::max(asked->nbFields, 0),
                       [&](PluginField const& f) { return f.name && name == f.name; });
}

} // namespace

std::string foreignPluginHint(std::string const& opType, std::string const& domain)
{
    if (domain != "mmdeploy" && opType != "TRTBatchedNMS" && opType != "TRTBatchedRotatedNMS")
        return "";
    return "; it is a plugin of mmdeploy's own library, not of TensorRT: load that library, or export with plugins of "
           "TensorRT (BatchedNMSDynamic_TRT or EfficientNMS_TRT for NMS, ROIAlign_TRT for regions)";
}

nvinfer1::IPluginCreator* findPlugin(tw_onnx::NodeProto const& node)
{
    return getPluginRegistry()->getPluginCreator(node.op_type().c_str(),
                                                 textAttribute(node, "plugin_version", "1").c_str(),
                                                 textAttribute(node, "plugin_namespace", "").c_str());
}

ITensor& standardPlugin(ImportContext& ctx, char const* type, std::span<nvinfer1::PluginField const> fields,
                        std::span<ITensor* const> inputs)
{
    nvinfer1::PluginFieldCollection const collection{int32_t(fields.size()), fields.data()};
    auto* const creator = getPluginRegistry()->getPluginCreator(type, "1", "tensorwright.standard");
    ctx.check(creator, std::string("this libnvinfer has no plugin ") + type);
    PluginPtr const plugin(creator->createPlugin(ctx.name().c_str(), &collection));
    ctx.check(plugin != nullptr, std::string("the plugin ") + type + " does not take its attributes");
    return ctx.out(ctx.added(ctx.network().addPluginV2(inputs.data(), int32_t(inputs.size()), *plugin)));
}

void importPlugin(ImportContext& ctx, tw_onnx::NodeProto const& node, nvinfer1::IPluginCreator& creator)
{
    Fields fields(ctx);
    auto const* asked = creator.getFieldNames();
    for (AttributeProto const& a : node.attribute())
        if (isField(asked, a.name())) {
            if (ctx.opType() == "Region_TRT" && a.name() == "smTree") // a struct of a program, which a model has not
                ctx.fail("attribute 'smTree' of plugin 'Region_TRT' is a pointer, which a model cannot hold");
            fields.add(a.name().c_str());
        }
    auto const collection = fields.collection();
    PluginPtr const plugin(creator.createPlugin(ctx.name().c_str(), &collection));
    if (!plugin)
        ctx.fail("createPlugin() of plugin '" + ctx.opType() + "' gave a null pointer for the attributes of the node");
    std::vector<ITensor*> inputs;
    for (int i = 0; i < ctx.nbInputs(); ++i)
        if (ctx.hasInput(i)) // a plugin has no inputs that are left out
            inputs.push_back(&ctx.tensor(i));
    auto& layer = ctx.added(ctx.network().addPluginV2(inputs.data(), int32_t(inputs.size()), *plugin));
    if (layer.getNbOutputs() < ctx.nbOutputs())
        ctx.fail(fmt::format("the node has {} outputs, the plugin {}", ctx.nbOutputs(), layer.getNbOutputs()));
    for (int i = 0; i < ctx.nbOutputs(); ++i)
        ctx.setOutput(i, &ctx.out(layer, i));
}

} // namespace tw::onnx
