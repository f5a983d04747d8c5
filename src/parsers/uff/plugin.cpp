// SPDX-License-Identifier: Apache-2.0
// Operations whose name begins with an underscore are plugins: the creator of that name gets all fields of the node.
#include <algorithm>
#include <list>
#include <memory>

#include "parsers/uff/constants.h"
#include "parsers/uff/model.h"
#include "parsers/uff/node.h"
#include "parsers/uff/operations.h"
#include "tw_uff.pb.h"

namespace tw::uff {

namespace {

using nvinfer1::IPluginCreator;
using nvinfer1::PluginField;
using nvinfer1::PluginFieldType;

// What tools that rewrite graphs put behind the names of fields.
std::string withoutSuffix(std::string name)
{
    for (char const* suffix : {"_u_int", "_u_float", "_u_bool", "_u_str", "_u_ilist", "_u_flist"})
        if (name.ends_with(suffix))
            return name.substr(0, name.size() - std::char_traits<char>::length(suffix));
    return name;
}

// Element types of files as numbers of DataType.
int64_t dataTypeOf(int64_t number)
{
    switch (number) {
    case kFloat32:
        return int64_t(DataType::kFLOAT);
    case kFloat16:
        return int64_t(DataType::kHALF);
    case kInt8:
        return int64_t(DataType::kINT8);
    default:
        return int64_t(DataType::kINT32);
    }
}

// Fields with what they point to, in the types that the creator lists where it does.
class UffFields
{
public:
    explicit UffFields(nvinfer1::PluginFieldCollection const* asked) : asked_(asked) {}

    void add(std::string const& name, tw_uff::Data const& d)
    {
        names_.push_back(withoutSuffix(name));
        char const* const n = names_.back().c_str();
        switch (d.data_case()) {
        case tw_uff::Data::kS:
            return text(n, d.s());
        case tw_uff::Data::kBlob:
            return text(n, d.blob());
        case tw_uff::Data::kD:
            return numbers<float>(n, PluginFieldType::kFLOAT32, std::vector{d.d()});
        case tw_uff::Data::kDList:
            return numbers<float>(n, PluginFieldType::kFLOAT32, d.d_list().val());
        case tw_uff::Data::kB:
            return numbers<int32_t>(n, PluginFieldType::kINT32, std::vector<int>{d.b()});
        case tw_uff::Data::kBList:
            return numbers<int32_t>(n, PluginFieldType::kINT32, d.b_list().val());
        case tw_uff::Data::kI:
            return numbers<int32_t>(n, PluginFieldType::kINT32, std::vector{d.i()});
        case tw_uff::Data::kIList:
            return numbers<int32_t>(n, PluginFieldType::kINT32, d.i_list().val());
        case tw_uff::Data::kDtype:
            return numbers<int32_t>(n, PluginFieldType::kINT32, std::vector{dataTypeOf(d.dtype())});
        case tw_uff::Data::kDtypeList:
            return numbers<int32_t>(n, PluginFieldType::kINT32, mapped(d.dtype_list().val(), dataTypeOf));
        default: // orders, lists of texts: creators have no type for them
            return;
        }
    }
    nvinfer1::PluginFieldCollection collection() const { return {int32_t(fields_.size()), fields_.data()}; }

private:
    PluginFieldType typeFor(char const* name, PluginFieldType otherwise) const
    {
        for (int32_t i = 0; asked_ && asked_->fields && i < asked_->nbFields; ++i)
            if (asked_->fields[i].name && std::string_view(asked_->fields[i].name) == name)
                return asked_->fields[i].type;
        return otherwise;
    }
    template <class T>
    void keep(char const* name, PluginFieldType type, std::vector<T> values, size_t hidden = 0)
    {
        auto const kept = std::make_shared<std::vector<T>>(std::move(values));
        fields_.emplace_back(name, kept->empty() ? nullptr : kept->data(), type, int32_t(kept->size() - hidden));
        kept_.push_back(kept);
    }
    void text(char const* name, std::string const& s) // with a terminator, which the length leaves out
    {
        keep(name, PluginFieldType::kCHAR, std::vector<char>(s.c_str(), s.c_str() + s.size() + 1), 1);
    }
    template <class T>
    static std::vector<T> clamped(auto const& values)
    {
        return mapped<T>(values, [](auto v) {
            return T(
                std::clamp(double(v), double(std::numeric_limits<T>::lowest()), double(std::numeric_limits<T>::max())));
        });
    }
    template <class T>
    void numbers(char const* name, PluginFieldType own, auto const& values)
    {
        switch (typeFor(name, own)) {
        case PluginFieldType::kFLOAT32:
            return keep(name, PluginFieldType::kFLOAT32, mapped<float>(values, [](auto v) { return float(v); }));
        case PluginFieldType::kFLOAT64:
            return keep(name, PluginFieldType::kFLOAT64, mapped<double>(values, [](auto v) { return double(v); }));
        case PluginFieldType::kINT8:
            return keep(name, PluginFieldType::kINT8, clamped<int8_t>(values));
        case PluginFieldType::kCHAR:
            return keep(name, PluginFieldType::kCHAR, clamped<int8_t>(values));
        case PluginFieldType::kINT16:
            return keep(name, PluginFieldType::kINT16, clamped<int16_t>(values));
        case PluginFieldType::kINT32:
            return keep(name, PluginFieldType::kINT32, clamped<int32_t>(values));
        default:
            return keep(name, own, clamped<T>(values));
        }
    }

    nvinfer1::PluginFieldCollection const* asked_;
    std::list<std::string> names_;
    std::list<std::shared_ptr<void>> kept_;
    std::vector<PluginField> fields_;
};

// Version 1, or whatever version there is.
IPluginCreator* creatorOf(std::string const& name, std::string const& space)
{
    nvinfer1::IPluginRegistry& registry = *getPluginRegistry();
    if (IPluginCreator* const creator = registry.getPluginCreator(name.c_str(), "1", space.c_str()))
        return creator;
    int32_t count = 0;
    IPluginCreator* const* const list = registry.getPluginCreatorList(&count);
    for (int32_t i = 0; list && i < count; ++i)
        if (name == list[i]->getPluginName() && space == list[i]->getPluginNamespace())
            return list[i];
    return nullptr;
}

} // namespace

IPluginCreator* findCreator(std::string const& operation, std::string const& pluginNamespace)
{
    std::string const name = operation.substr(1);
    if (name.empty() || name.find('\0') != std::string::npos)
        return nullptr;
    if (IPluginCreator* const creator = creatorOf(name, pluginNamespace))
        return creator;
    return pluginNamespace.empty() ? nullptr : creatorOf(name, "");
}

void importPlugin(UffNode& n)
{
    IPluginCreator& creator = *findCreator(n.opType(), n.model().pluginNamespace());
    UffFields fields(creator.getFieldNames());
    for (auto const& entry : n.message().fields())
        if (entry.key().find('\0') == std::string::npos)
            fields.add(entry.key(), n.model().resolved(entry.value()));
    auto const collection = fields.collection();
    PluginPtr const plugin(creator.createPlugin(n.name().c_str(), &collection));
    if (!plugin)
        n.fail("createPlugin() of plugin '" + shown(n.opType().substr(1)) +
               "' gave a null pointer for the fields of the node");
    std::vector<ITensor*> inputs;
    Layout held;
    for (int i = 0; i < n.count(); ++i) {
        Tensor const& t = n.in(i);
        if (!t.value.isTensor()) {
            inputs.push_back(&n.asTensor(t.value));
        } else if (n.hasOrders()) {
            Image const x = n.image(i);
            inputs.push_back(&x.tensor);
            held = held.order.empty() ? x.layout : held;
        } else {
            Tensor const x = n.asItIs(t);
            inputs.push_back(&x.value.tensor());
            held = held.order.empty() || isInOrder(held.order) ? x.layout : held;
        }
    }
    auto& layer = n.added(n.network().addPluginV2(inputs.data(), int32_t(inputs.size()), *plugin));
    // Images that stay images keep their order.
    for (int i = 0; i < layer.getNbOutputs(); ++i) {
        ITensor& y = n.out(layer, i);
        if (size_t(y.getDimensions().nbDims) == held.order.size() && held.units == 0)
            n.give(y, held);
        else
            n.give(y);
    }
}

} // namespace tw::uff
