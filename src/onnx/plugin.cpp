// SPDX-License-Identifier: Apache-2.0
#include "onnx/plugin.h"

#include <algorithm>
#include <list>
#include <memory>

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

    void add(AttributeProto const& a)
    {
        char const* const name = a.name().c_str();
        switch (kindOf(a)) {
        case AttributeProto::FLOAT:
            return put(name, PluginFieldType::kFLOAT32, std::vector<float>{a.f()});
        case AttributeProto::FLOATS:
            return put(name, PluginFieldType::kFLOAT32, ctx_.attrFloats(name));
        case AttributeProto::INT:
            return put(name, PluginFieldType::kINT32, std::vector<int32_t>{clamped(a.i())});
        case AttributeProto::INTS: {
            std::vector<int32_t> values;
            for (int64_t v : ctx_.attrInts(name))
                values.push_back(clamped(v));
            return put(name, PluginFieldType::kINT32, std::move(values));
        }
        case AttributeProto::STRING:
            // A terminator stands behind, which the length leaves out.
            return put(name, PluginFieldType::kCHAR, std::vector<char>(a.s().c_str(), a.s().c_str() + a.s().size() + 1),
                       1);
        case AttributeProto::TENSOR: {
            Constant const c = ctx_.attrTensor(name);
            fields_.emplace_back(name, c.values, typeOf(c.type), int32_t(c.count));
            return;
        }
        default:
            ctx_.fail("attribute '" + a.name() + "' is of a kind that plugins have no field for");
        }
    }
    nvinfer1::PluginFieldCollection collection() const { return {int32_t(fields_.size()), fields_.data()}; }

private:
    template <class T>
    void put(char const* name, PluginFieldType type, std::vector<T> values, size_t hidden = 0)
    {
        auto const kept = std::make_shared<std::vector<T>>(std::move(values));
        fields_.emplace_back(name, kept->data(), type, int32_t(kept->size() - hidden));
        kept_.push_back(kept);
    }
    static int32_t clamped(int64_t v) { return int32_t(std::clamp<int64_t>(v, INT32_MIN, INT32_MAX)); }
    static PluginFieldType typeOf(DataType t)
    {
        switch (t) {
        case DataType::kFLOAT:
            return PluginFieldType::kFLOAT32;
        case DataType::kHALF:
            return PluginFieldType::kFLOAT16;
        case DataType::kINT8:
            return PluginFieldType::kINT8;
        case DataType::kINT32:
            return PluginFieldType::kINT32;
        default:
            return PluginFieldType::kUNKNOWN;
        }
    }
    // The type field is missing in files of the first IR versions.
    static AttributeProto::AttributeType kindOf(AttributeProto const& a)
    {
        if (a.has_type() && a.type() != AttributeProto::UNDEFINED)
            return a.type();
        return a.has_f()             ? AttributeProto::FLOAT
               : a.has_i()           ? AttributeProto::INT
               : a.has_s()           ? AttributeProto::STRING
               : a.has_t()           ? AttributeProto::TENSOR
               : a.floats_size() > 0 ? AttributeProto::FLOATS
                                     : AttributeProto::INTS;
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

struct Destroy
{
    template <class Plugin>
    void operator()(Plugin* p) const
    {
        p->destroy();
    }
};

} // namespace

nvinfer1::IPluginCreator* findPlugin(tw_onnx::NodeProto const& node)
{
    return getPluginRegistry()->getPluginCreator(node.op_type().c_str(),
                                                 textAttribute(node, "plugin_version", "1").c_str(),
                                                 textAttribute(node, "plugin_namespace", "").c_str());
}

void importPlugin(ImportContext& ctx, tw_onnx::NodeProto const& node, nvinfer1::IPluginCreator& creator)
{
    Fields fields(ctx);
    auto const* asked = creator.getFieldNames();
    for (AttributeProto const& a : node.attribute())
        if (isField(asked, a.name()))
            fields.add(a);
    auto const collection = fields.collection();
    auto* const made = creator.createPlugin(ctx.name().c_str(), &collection);
    std::unique_ptr<std::remove_pointer_t<decltype(made)>, Destroy> const plugin(made);
    if (!plugin)
        ctx.fail("createPlugin() of plugin '" + ctx.opType() + "' gave a null pointer for the attributes of the node");
    std::vector<ITensor*> inputs;
    for (int i = 0; i < ctx.nbInputs(); ++i)
        if (ctx.hasInput(i)) // a plugin has no inputs that are left out
            inputs.push_back(&ctx.tensor(i));
    auto& layer = ctx.added(ctx.network().addPluginV2(inputs.data(), int32_t(inputs.size()), *plugin));
    if (layer.getNbOutputs() < ctx.nbOutputs())
        ctx.fail("the node has " + std::to_string(ctx.nbOutputs()) + " outputs, the plugin " +
                 std::to_string(layer.getNbOutputs()));
    for (int i = 0; i < ctx.nbOutputs(); ++i)
        ctx.setOutput(i, &ctx.out(layer, i));
}

} // namespace tw::onnx
