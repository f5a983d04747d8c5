// SPDX-License-Identifier: Apache-2.0
// Standard plugins as programs see them: objects of the four interfaces, and their creators.
#include <cstring>
#include <map>
#include <mutex>

#include "api/entry.h"
#include "api/network/network.h"
#include "api/plugin/exprs.h"
#include "api/standard_plugins/direct_run.h"
#include "api/standard_plugins/standard_plugin.h"

namespace tw::api {

using PublicType = nvinfer1::DataType;
using nvinfer1::Dims;
using nvinfer1::PluginFormat;
using nvinfer1::PluginTensorDesc;
using Interface = ops::plugin::Interface;
using InstancePtr = std::shared_ptr<StandardInstance const>;

namespace {

struct Live // objects by their address
{
    std::mutex mutex;
    std::map<nvinfer1::IPluginV2 const*, InstancePtr> objects;
};
Live& live()
{
    static Live& objects = *new Live; // never destroyed: clients' statics may hold plugins
    return objects;
}

// The body of a method, under the guard of all of them.
template <class T, class Body>
T answered(T failure, Body&& body) noexcept
{
    Reporter reporter(getLogger());
    return guarded<T>(reporter, failure, body);
}

// What tells serialized plugins apart.
std::string headOf(StandardPlugin const& p)
{
    return std::string("tensorwright ") + p.name + ' ' + p.version + '\n';
}

// What the four interfaces have in common.
template <class Interface>
class Common : public Interface
{
public:
    Common(InstancePtr instance, std::string nameSpace) : instance_(std::move(instance)), space_(std::move(nameSpace))
    {
        std::lock_guard lock(live().mutex);
        live().objects[this] = instance_;
    }
    ~Common() noexcept override
    {
        std::lock_guard lock(live().mutex);
        live().objects.erase(this);
    }

    char const* getPluginType() const noexcept override { return plugin().name; }
    char const* getPluginVersion() const noexcept override { return plugin().version; }
    int32_t getNbOutputs() const noexcept override { return plugin().outputCount(instance_->fields); }
    int32_t initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    size_t getSerializationSize() const noexcept override { return bytes().size(); }
    void serialize(void* buffer) const noexcept override
    {
        std::string const b = bytes();
        std::memcpy(buffer, b.data(), b.size());
    }
    void destroy() noexcept override { delete this; }
    void setPluginNamespace(char const* space) noexcept override { space_ = space ? space : ""; }
    char const* getPluginNamespace() const noexcept override { return space_.c_str(); }

protected:
    StandardPlugin const& plugin() const { return *instance_->plugin; }
    std::string bytes() const { return headOf(plugin()) + instance_->fields.serialize(); }
    // Tensors in front of `position` have been asked about before.
    bool takes(size_t position, size_t inputs, PluginTensorDesc const* tensors) const
    {
        return isTaken(position, inputs, tensors, {}) ||
               std::ranges::any_of(plugin().formats, [&](PluginFormats const& f) {
                   return hasRank(tensors[position], f) && isTaken(position, inputs, tensors, f);
               });
    }
    // With the format of some tensors, all in front of `position` included.
    bool isTaken(size_t position, size_t inputs, PluginTensorDesc const* tensors, PluginFormats const& f) const
    {
        auto const letterOf = [&](size_t i) {
            return i < inputs ? plugin().types.input(i, inputs) : outputLetter(i - inputs);
        };
        auto const isVector = [&](size_t i) {
            return i < inputs ? contains(f.inputs, i) : contains(f.outputs, i - inputs);
        };
        for (size_t i = 0; i <= position; ++i)
            if (isVector(i) ? tensors[i].format != f.format || tensors[i].type != f.type
                            : tensors[i].format != PluginFormat::kLINEAR)
                return false;
        PluginTensorDesc const& t = tensors[position];
        auto const letter = letterOf(position);
        if (!letter || isVector(position))
            return letter.has_value();
        if (*letter == '.')
            return t.type == PublicType::kFLOAT || t.type == PublicType::kHALF || t.type == PublicType::kINT32;
        if (!isShared(*letter))
            return t.type == typeOf(*letter, t.type);
        if (!f.outputs.empty() && f.type != PublicType::kINT8)
            return t.type == f.type;
        for (size_t i = 0; i < position; ++i)
            if (letterOf(i) == letter && !isVector(i))
                return t.type == tensors[i].type;
        return t.type == PublicType::kFLOAT || t.type == PublicType::kHALF ||
               (letter == 'A' && t.type == PublicType::kINT32);
    }
    static bool hasRank(PluginTensorDesc const& t, PluginFormats const& f)
    {
        bool const isDeep = f.format == PluginFormat::kDHWC8 || f.format == PluginFormat::kCDHW32;
        return !isDeep || t.dims.nbDims == 5;
    }
    static PublicType typeOf(char letter, PublicType floating)
    {
        return letter == 'i'   ? PublicType::kINT32
               : letter == 'f' ? PublicType::kFLOAT
               : letter == 'h' ? PublicType::kHALF
                               : floating;
    }
    std::optional<char> outputLetter(size_t o) const { return plugin().output(instance_->fields, o); }
    static bool isShared(char letter) { return letter == 'T' || letter == 'A'; }
    // Of all T; FP32 without one.
    PublicType floatingOf(PublicType const* types, size_t inputs) const
    {
        for (size_t i = 0; i < inputs; ++i)
            if (isShared(plugin().types.input(i, inputs).value_or('i')))
                return types[i];
        return PublicType::kFLOAT;
    }
    PublicType outputType(size_t o, PublicType const* inputs, size_t count) const
    {
        return typeOf(outputLetter(o).value_or('T'), floatingOf(inputs, count));
    }
    std::vector<ir::Shape> shapesOf(std::vector<ir::Shape> const& inputs) const
    {
        return answered<std::vector<ir::Shape>>({}, [&]() -> Result<std::vector<ir::Shape>> {
            std::vector<tw::DataType> types;
            for (size_t i = 0; i < inputs.size(); ++i)
                types.push_back(
                    toCore(typeOf(plugin().types.input(i, inputs.size()).value_or('T'), PublicType::kFLOAT)));
            auto shapes = plugin().shapes(instance_->fields, types, inputs);
            return shapes.ok() ? std::move(shapes) : std::move(shapes).error().in(plugin().describe());
        });
    }
    int32_t run(std::vector<DirectTensor> const& inputs, std::vector<DirectTensor> const& outputs,
                cudaStream_t stream) noexcept
    {
        return answered<int32_t>(1, [&]() -> Result<int32_t> {
            TW_TRY(direct_.run(*this, inputs, outputs, stream));
            return 0;
        });
    }

    InstancePtr const instance_;
    std::string space_;
    DirectRun direct_; // of this object alone
};

Dims withBatch(Dims const& d, int32_t batch)
{
    Dims r{};
    r.nbDims = std::min(d.nbDims, Dims::MAX_DIMS - 1) + 1;
    r.d[0] = batch;
    std::copy_n(d.d, r.nbDims - 1, r.d + 1);
    return r;
}

// Those that see tensors without the batch.
template <class Base>
class Batched : public Common<Base>
{
public:
    using Common<Base>::Common;
    Dims getOutputDimensions(int32_t index, Dims const* inputs, int32_t count) noexcept override
    {
        std::vector<ir::Shape> shapes;
        for (int32_t i = 0; i < count; ++i) {
            ir::Shape shape{1};
            shape.insert(shape.end(), inputs[i].d, inputs[i].d + std::clamp(inputs[i].nbDims, 0, Dims::MAX_DIMS));
            shapes.push_back(std::move(shape));
        }
        auto const out = this->shapesOf(shapes);
        return index >= 0 && size_t(index) < out.size() ? toPublic(out[size_t(index)], 1) : noDims();
    }
    size_t getWorkspaceSize(int32_t) const noexcept override { return 0; }
    int32_t enqueue(int32_t batch, void const* const* inputs, void* const* outputs, void*,
                    cudaStream_t stream) noexcept override
    {
        std::vector<DirectTensor> in, out;
        for (size_t i = 0; i < configured_.size(); ++i) {
            bool const isInput = int32_t(i) < inputs_;
            PluginTensorDesc d = configured_[i];
            d.dims = withBatch(d.dims, isInput && (this->plugin().shared >> i & 1) != 0 ? 1 : batch);
            (isInput ? in : out).push_back({d, isInput ? inputs[i] : outputs[i - size_t(inputs_)]});
        }
        return this->run(in, out, stream);
    }

protected:
    void configure(Dims const* inputs, int32_t count, Dims const* outputs, int32_t outputCount, PublicType const* types,
                   PublicType const* outputTypes, PluginFormat format)
    {
        configured_.clear();
        for (int32_t i = 0; i < count; ++i)
            configured_.push_back({inputs[i], types[i], format, 1});
        for (int32_t i = 0; i < outputCount; ++i)
            configured_.push_back({outputs[i], outputTypes[i], format, 1});
        inputs_ = count;
    }
    bool supports(PublicType type, PluginFormat format) const
    {
        bool const isInteger = type == PublicType::kINT32 && std::strchr(this->plugin().types.text, 'i');
        return format == PluginFormat::kLINEAR &&
               (type == PublicType::kFLOAT || type == PublicType::kHALF || isInteger);
    }

    std::vector<PluginTensorDesc> configured_; // inputs, then outputs
    int32_t inputs_ = 0;
};

class PluginV2 final : public Batched<nvinfer1::IPluginV2>
{
public:
    using Batched::Batched;
    nvinfer1::IPluginV2* clone() const noexcept override { return new PluginV2(*this); }
    PluginV2(PluginV2 const& o) : Batched(o.instance_, o.space_) { configured_ = o.configured_, inputs_ = o.inputs_; }
    bool supportsFormat(PublicType type, PluginFormat format) const noexcept override { return supports(type, format); }
    void configureWithFormat(Dims const* inputs, int32_t count, Dims const* outputs, int32_t outputCount,
                             PublicType type, PluginFormat format, int32_t) noexcept override
    {
        std::vector<PublicType> const types(size_t(std::max({count, outputCount, 0})), type);
        configure(inputs, count, outputs, outputCount, types.data(), types.data(), format);
    }
};

class PluginExt final : public Batched<nvinfer1::IPluginV2Ext>
{
public:
    using Batched::Batched;
    nvinfer1::IPluginV2Ext* clone() const noexcept override { return new PluginExt(*this); }
    PluginExt(PluginExt const& o) : Batched(o.instance_, o.space_) { configured_ = o.configured_, inputs_ = o.inputs_; }
    bool supportsFormat(PublicType type, PluginFormat format) const noexcept override { return supports(type, format); }
    PublicType getOutputDataType(int32_t index, PublicType const* types, int32_t count) const noexcept override
    {
        return outputType(size_t(index), types, size_t(count));
    }
    bool isOutputBroadcastAcrossBatch(int32_t, bool const*, int32_t) const noexcept override { return false; }
    bool canBroadcastInputAcrossBatch(int32_t) const noexcept override { return false; }
    void configurePlugin(Dims const* inputs, int32_t count, Dims const* outputs, int32_t outputCount,
                         PublicType const* types, PublicType const* outputTypes, bool const*, bool const*,
                         PluginFormat format, int32_t) noexcept override
    {
        configure(inputs, count, outputs, outputCount, types, outputTypes, format);
    }
};

class PluginIOExt final : public Batched<nvinfer1::IPluginV2IOExt>
{
public:
    using Batched::Batched;
    nvinfer1::IPluginV2Ext* clone() const noexcept override { return new PluginIOExt(*this); }
    PluginIOExt(PluginIOExt const& o) : Batched(o.instance_, o.space_)
    {
        configured_ = o.configured_, inputs_ = o.inputs_;
    }
    PublicType getOutputDataType(int32_t index, PublicType const* types, int32_t count) const noexcept override
    {
        return outputType(size_t(index), types, size_t(count));
    }
    bool isOutputBroadcastAcrossBatch(int32_t, bool const*, int32_t) const noexcept override { return false; }
    bool canBroadcastInputAcrossBatch(int32_t) const noexcept override { return false; }
    bool supportsFormatCombination(int32_t position, PluginTensorDesc const* tensors, int32_t inputs,
                                   int32_t) const noexcept override
    {
        return takes(size_t(position), size_t(inputs), tensors);
    }
    void configurePlugin(PluginTensorDesc const* inputs, int32_t count, PluginTensorDesc const* outputs,
                         int32_t outputCount) noexcept override
    {
        configured_.assign(inputs, inputs + std::max(count, 0));
        configured_.insert(configured_.end(), outputs, outputs + std::max(outputCount, 0));
        inputs_ = count;
    }
};

class PluginDynamicExt final : public Common<nvinfer1::IPluginV2DynamicExt>
{
public:
    using Common::Common;
    PluginDynamicExt(PluginDynamicExt const& o) : Common(o.instance_, o.space_), inputCount_(o.inputCount_) {}
    nvinfer1::IPluginV2DynamicExt* clone() const noexcept override { return new PluginDynamicExt(*this); }
    PublicType getOutputDataType(int32_t index, PublicType const* types, int32_t count) const noexcept override
    {
        return outputType(size_t(index), types, size_t(count));
    }
    nvinfer1::DimsExprs getOutputDimensions(int32_t index, nvinfer1::DimsExprs const* inputs, int32_t count,
                                            nvinfer1::IExprBuilder& builder) noexcept override
    {
        std::vector<ir::Shape> shapes;
        for (int32_t i = 0; i < count; ++i) {
            ir::Shape shape;
            for (int32_t d = 0; d < inputs[i].nbDims; ++d)
                shape.push_back(dimOf(*inputs[i].d[d]));
            shapes.push_back(std::move(shape));
        }
        auto const out = shapesOf(shapes);
        nvinfer1::DimsExprs result{};
        result.nbDims = -1;
        if (index < 0 || size_t(index) >= out.size())
            return result;
        result.nbDims = int32_t(out[size_t(index)].size());
        for (int32_t d = 0; d < result.nbDims; ++d)
            result.d[d] = static_cast<ExprBuilder&>(builder).make(out[size_t(index)][size_t(d)]);
        return result;
    }
    bool supportsFormatCombination(int32_t position, PluginTensorDesc const* tensors, int32_t inputs,
                                   int32_t) noexcept override
    {
        return takes(size_t(position), size_t(inputs), tensors);
    }
    void configurePlugin(nvinfer1::DynamicPluginTensorDesc const*, int32_t inputs,
                         nvinfer1::DynamicPluginTensorDesc const*, int32_t) noexcept override
    {
        inputCount_ = size_t(std::max(inputs, 0));
    }
    size_t getWorkspaceSize(PluginTensorDesc const*, int32_t, PluginTensorDesc const*, int32_t) const noexcept override
    {
        return 0;
    }
    int32_t enqueue(PluginTensorDesc const* inputDescs, PluginTensorDesc const* outputDescs, void const* const* inputs,
                    void* const* outputs, void*, cudaStream_t stream) noexcept override
    {
        std::vector<DirectTensor> in, out;
        // How many there are was said before; clients that did not configure the plugin bring those that it must have.
        for (size_t i = 0, n = inputCount_ ? inputCount_ : plugin().types.leastInputs(); i < n; ++i)
            in.push_back({inputDescs[i], inputs[i]});
        for (int32_t i = 0; i < getNbOutputs(); ++i)
            out.push_back({outputDescs[i], outputs[i]});
        return run(in, out, stream);
    }

private:
    size_t inputCount_ = 0;
};

nvinfer1::IPluginV2* newObject(InstancePtr instance, std::string const& space)
{
    switch (instance->plugin->interface) {
    case Interface::kV2:
        return new PluginV2(std::move(instance), space);
    case Interface::kExt:
        return new PluginExt(std::move(instance), space);
    case Interface::kIOExt:
        return new PluginIOExt(std::move(instance), space);
    default:
        return new PluginDynamicExt(std::move(instance), space);
    }
}

class Creator final : public nvinfer1::IPluginCreator
{
public:
    explicit Creator(StandardPlugin const& plugin) : plugin_(plugin)
    {
        for (FieldSpec const& s : plugin.fields)
            list_.emplace_back(s.name, nullptr, s.type, s.count == kOne ? 1 : 0);
        fields_ = {int32_t(list_.size()), list_.data()};
    }
    StandardPlugin const& plugin() const { return plugin_; }
    char const* getPluginName() const noexcept override { return plugin_.name; }
    char const* getPluginVersion() const noexcept override { return plugin_.version; }
    nvinfer1::PluginFieldCollection const* getFieldNames() noexcept override
    {
        return plugin_.isMade ? &fields_ : nullptr;
    }
    nvinfer1::IPluginV2* createPlugin(char const*, nvinfer1::PluginFieldCollection const* given) noexcept override
    {
        return made([&]() -> Result<PluginFields> {
            if (!plugin_.isMade)
                return invalidArgument("it is made by deserializePlugin() alone");
            return PluginFields::read(plugin_.fields, given, plugin_.checksTypes);
        });
    }
    nvinfer1::IPluginV2* deserializePlugin(char const*, void const* data, size_t size) noexcept override
    {
        return made([&]() -> Result<PluginFields> {
            std::string_view bytes(static_cast<char const*>(data), data ? size : 0);
            std::string const head = headOf(plugin_);
            if (!bytes.starts_with(head))
                return invalidArgument("the serialized plugin is damaged or was made by another library");
            return PluginFields::parse(plugin_.fields, bytes.substr(head.size()));
        });
    }
    void setPluginNamespace(char const* space) noexcept override { space_ = space ? space : ""; }
    char const* getPluginNamespace() const noexcept override { return space_.c_str(); }

private:
    template <class Read>
    nvinfer1::IPluginV2* made(Read const& read) noexcept
    {
        return answered<nvinfer1::IPluginV2*>(nullptr, [&]() -> Result<nvinfer1::IPluginV2*> {
            auto fields = read();
            if (!fields.ok())
                return std::move(fields).error().in(plugin_.describe());
            if (plugin_.check)
                if (std::string const wrong = plugin_.check(*fields); !wrong.empty())
                    return invalidArgument(plugin_.describe() + ": " + wrong);
            return newObject(std::make_shared<StandardInstance>(StandardInstance{&plugin_, *std::move(fields)}),
                             space_);
        });
    }

    StandardPlugin const& plugin_;
    std::vector<nvinfer1::PluginField> list_;
    nvinfer1::PluginFieldCollection fields_{};
    std::string space_;
};

} // namespace

InstancePtr standardInstanceOf(nvinfer1::IPluginV2 const& plugin)
{
    std::lock_guard lock(live().mutex);
    auto const it = live().objects.find(&plugin);
    return it == live().objects.end() ? nullptr : it->second;
}

nvinfer1::IPluginCreator* standardCreator(std::string_view name, std::string_view version)
{
    static auto& creators = *[] {
        auto* const list = new std::vector<std::unique_ptr<Creator>>; // never destroyed, as the registry
        for (StandardPlugin const& p : standardPlugins())
            list->push_back(std::make_unique<Creator>(p));
        return list;
    }();
    for (auto const& c : creators)
        if (c->getPluginName() == name && c->getPluginVersion() == version)
            return c.get();
    return nullptr;
}

} // namespace tw::api
