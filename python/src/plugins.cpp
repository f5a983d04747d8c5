// SPDX-License-Identifier: Apache-2.0
// Plugins are C++; Python finds their creators, makes them and gives them to networks.
#include <memory>
#include <unordered_set>

#include <NvInferPlugin.h>
#include <nanobind/stl/vector.h>

#include "module.h"
#include "plugin_fields.h"
#include "recorder.h"

namespace tw::python {

using namespace nvinfer1;

namespace {

// Plugins that belong to their Python object, with the GIL; the others belong to a network.
std::unordered_set<IPluginV2*>& owned()
{
    static auto& all = *new std::unordered_set<IPluginV2*>;
    return all;
}

void destroyOwned(void* plugin) noexcept
{
    auto* const object = static_cast<IPluginV2*>(plugin);
    if (owned().erase(object))
        object->destroy();
}

// An object that destroys the plugin when it is freed; None for null.
nb::typed<nb::object, IPluginV2> own(IPluginV2* plugin)
{
    if (!plugin)
        return nb::none();
    bool const isExt = (uint32_t(plugin->getTensorRTVersion()) >> 24U) >= uint32_t(PluginVersion::kV2_EXT);
    nb::object object = isExt ? nb::cast(static_cast<IPluginV2Ext*>(plugin), nb::rv_policy::reference)
                              : nb::cast(plugin, nb::rv_policy::reference);
    if (owned().insert(plugin).second)
        keepAlive(object, plugin, &destroyOwned);
    return object;
}

void destroy(nb::pointer_and_handle<IPluginV2> self)
{
    if (!owned().erase(self.p))
        throw std::runtime_error(std::string("plugin '") + self.p->getPluginType() +
                                 "' belongs to its network, which destroys it");
    self.p->destroy();
    nb::inst_set_state(self.h, false, false); // every later call is refused
}

Dims outputShape(IPluginV2& self, int32_t index, std::vector<Dims> const& inputs)
{
    if (index < 0 || index >= self.getNbOutputs())
        throw nb::index_error(("output " + std::to_string(index) + " is out of range: the plugin has " +
                               std::to_string(self.getNbOutputs()))
                                  .c_str());
    return self.getOutputDimensions(index, inputs.data(), int32_t(inputs.size()));
}

nb::object serialize(IPluginV2 const& self)
{
    nb::object const bytes = nb::steal(PyByteArray_FromStringAndSize(nullptr, Py_ssize_t(self.getSerializationSize())));
    self.serialize(PyByteArray_AsString(bytes.ptr()));
    return nb::steal(PyMemoryView_FromObject(bytes.ptr()));
}

int32_t execute(IPluginV2& self, int32_t batch, Addresses inputs, Addresses outputs, OptionalAddress workspace,
                Address stream)
{
    GilReleased const release;
    return self.enqueue(batch, inputs.pointers.data(), outputs.pointers.data(), workspace.pointer,
                        static_cast<cudaStream_t>(stream.pointer));
}

std::unique_ptr<bool[]> array(std::vector<bool> const& values)
{
    auto copy = std::make_unique<bool[]>(values.size());
    std::copy(values.begin(), values.end(), copy.get());
    return copy;
}

void configure(IPluginV2Ext& self, std::vector<Dims> const& inputs, std::vector<Dims> const& outputs,
               std::vector<DataType> const& inputTypes, std::vector<DataType> const& outputTypes,
               std::vector<bool> const& inputBroadcast, std::vector<bool> const& outputBroadcast, TensorFormat format,
               int32_t maxBatchSize)
{
    if (inputTypes.size() != inputs.size() || inputBroadcast.size() != inputs.size() ||
        outputTypes.size() != outputs.size() || outputBroadcast.size() != outputs.size())
        throw nb::value_error(
            "configure_plugin: shapes, types and broadcasts must be as many for all inputs, and for all outputs");
    self.configurePlugin(inputs.data(), int32_t(inputs.size()), outputs.data(), int32_t(outputs.size()),
                         inputTypes.data(), outputTypes.data(), array(inputBroadcast).get(),
                         array(outputBroadcast).get(), format, maxBatchSize);
}

// An object that Python derives from the class, or the address of one.
template <class T>
T* objectOrAddress(nb::handle given, char const* what)
{
    if (nb::isinstance<T>(given))
        return nb::cast<T*>(given);
    void* address = nullptr;
    if (!readAddress(given, true, address))
        throw nb::type_error((std::string(what) + ": an object, a capsule or None is expected").c_str());
    return static_cast<T*>(address);
}

void defPlugins(nb::module_& m)
{
    using P = IPluginV2;
    nb::class_<P>(m, "IPluginV2", "A layer written by the user, in C++.")
        .def_prop_ro("num_outputs", &P::getNbOutputs, "Number of outputs.")
        .def_prop_ro("tensorrt_version", &P::getTensorRTVersion,
                     "Version of the API that the plugin was compiled with; the top byte is its interface.")
        .def_prop_ro("plugin_type", &P::getPluginType, "Name under which the creator is registered.")
        .def_prop_ro("plugin_version", &P::getPluginVersion, "Version under which the creator is registered.")
        .def_prop_rw("plugin_namespace", &P::getPluginNamespace, &P::setPluginNamespace, "Namespace of the creator.")
        .def("get_output_shape", &outputShape, nb::arg("index"), nb::arg("input_shapes"),
             "Shape of an output, without the batch.")
        .def("supports_format", &P::supportsFormat, nb::arg("dtype"), nb::arg("format"),
             "Whether the plugin takes this type and format.")
        .def(
            "configure_with_format",
            [](P& self, std::vector<Dims> const& inputs, std::vector<Dims> const& outputs, DataType type,
               TensorFormat format, int32_t maxBatchSize) {
                self.configureWithFormat(inputs.data(), int32_t(inputs.size()), outputs.data(), int32_t(outputs.size()),
                                         type, format, maxBatchSize);
            },
            nb::arg("input_shapes"), nb::arg("output_shapes"), nb::arg("dtype"), nb::arg("format"),
            nb::arg("max_batch_size"), "Tells what was chosen, before initialize().")
        .def("initialize", &P::initialize, "Prepares execution. 0 means success.")
        .def("terminate", &P::terminate, "Releases what initialize() acquired.")
        .def("get_workspace_size", &P::getWorkspaceSize, nb::arg("max_batch_size"),
             "Bytes of scratch memory for batches up to max_batch_size.")
        .def("execute_async", &execute, nb::arg("batch_size"), nb::arg("inputs"), nb::arg("outputs"),
             nb::arg("workspace").none(), nb::arg("stream_handle"), "Puts the work on the stream. 0 means success.")
        .def_prop_ro("serialization_size", &P::getSerializationSize, "Bytes that serialize() gives.")
        .def("serialize", &serialize, "The plugin's state.")
        .def("destroy", &destroy,
             "Frees the plugin; its object cannot be used afterwards. Otherwise it is freed with its object.")
        .def(
            "clone", [](P const& self) { return own(self.clone()); }, "A copy with the same parameters.");
    using E = IPluginV2Ext;
    nb::class_<E, P>(m, "IPluginV2Ext",
                     "A plugin with a type for each output and with broadcast of inputs across the batch.")
        .def(
            "get_output_data_type",
            [](E const& self, int32_t index, std::vector<DataType> const& types) {
                return self.getOutputDataType(index, types.data(), int32_t(types.size()));
            },
            nb::arg("index"), nb::arg("input_types"), "Type of an output.")
        .def("configure_plugin", &configure, nb::arg("input_shapes"), nb::arg("output_shapes"), nb::arg("input_types"),
             nb::arg("output_types"), nb::arg("input_is_broadcasted"), nb::arg("output_is_broacasted"),
             nb::arg("format"), nb::arg("max_batch_size"), "Tells what was chosen, before initialize().")
        .def(
            "attach_to_context",
            [](E& self, OptionalAddress cudnn, OptionalAddress cublas, nb::handle allocator) {
                self.attachToContext(static_cast<cudnnContext*>(cudnn.pointer),
                                     static_cast<cublasContext*>(cublas.pointer),
                                     objectOrAddress<IGpuAllocator>(allocator, "allocator"));
            },
            nb::arg("cudnn").none(), nb::arg("cublas").none(), nb::arg("allocator").none(),
            "Gives the plugin the handles of its execution context.")
        .def("detach_from_context", &E::detachFromContext,
             "The handles of attach_to_context() are invalid from here on.")
        .def(
            "clone", [](E const& self) { return own(self.clone()); }, "A copy with the same parameters.");
}

void defCreators(nb::module_& m)
{
    using C = IPluginCreator;
    nb::class_<C>(m, "IPluginCreator", "Makes plugins of one type and version.")
        .def_prop_ro("tensorrt_version", &C::getTensorRTVersion,
                     "Version of the API that the creator was compiled with.")
        .def_prop_ro("name", &C::getPluginName, "Plugin type.")
        .def_prop_ro("plugin_version", &C::getPluginVersion, "Plugin version.")
        .def_prop_ro(
            "field_names", [](C& self) { return collectionOf(self.getFieldNames()); },
            "The parameters that create_plugin() understands.")
        .def_prop_rw("plugin_namespace", &C::getPluginNamespace, &C::setPluginNamespace,
                     "Namespace that the creator hands to its plugins.")
        .def(
            "create_plugin",
            [](C& self, char const* name, FieldCollection const& fields) {
                std::vector<PluginField> const list = descriptions(fields.fields);
                PluginFieldCollection const collection{int32_t(list.size()), list.data()};
                return own(self.createPlugin(name, &collection));
            },
            nb::arg("name"), nb::arg("field_collection"),
            "A new plugin from its parameters, or None. name is the layer's name.")
        .def(
            "deserialize_plugin",
            [](C& self, char const* name, Buffer bytes) {
                return own(self.deserializePlugin(name, bytes.data(), bytes.size()));
            },
            nb::arg("name"), nb::arg("serialized_plugin"),
            "A new plugin from what IPluginV2.serialize() gave, or None.");
}

std::vector<IPluginCreator*> creators(IPluginRegistry const& self)
{
    int32_t count = 0;
    IPluginCreator* const* const list = self.getPluginCreatorList(&count);
    return {list, list + count};
}

void defRegistry(nb::module_& m)
{
    using R = IPluginRegistry;
    nb::class_<R> type(m, "IPluginRegistry",
                       "All plugin creators known in the process, by type, version and namespace.");
    type.def_prop_ro("plugin_creator_list", &creators, nb::rv_policy::reference, "All creators.")
        .def(
            "register_creator",
            [](R& self, IPluginCreator& creator, std::string const& space) {
                return self.registerCreator(creator, space.c_str());
            },
            nb::arg("creator"), nb::arg("plugin_namespace") = "",
            "Adds a creator. False when the key is taken or incomplete.")
        .def("deregister_creator", &R::deregisterCreator, nb::arg("creator"),
             "Takes a creator out. False when it is not there.")
        .def("get_plugin_creator", &R::getPluginCreator, nb::arg("type"), nb::arg("version"),
             nb::arg("plugin_namespace") = "", nb::rv_policy::reference, "The creator with this key, or None.");
    defRecorder(type);
    m.def("get_plugin_registry", &::getPluginRegistry, nb::rv_policy::reference, "The registry of the process.");
    m.def("get_builder_plugin_registry", &nvinfer1::getBuilderPluginRegistry, nb::arg(), nb::rv_policy::reference,
          "The registry that a builder uses for engines of this capability.");
    m.def(
        "init_libnvinfer_plugins",
        [](nb::handle logger, char const* space) {
            return initLibNvInferPlugins(static_cast<void*>(objectOrAddress<ILogger>(logger, "logger")), space);
        },
        nb::arg("logger").none(), nb::arg("namespace"), "Registers the plugins that come with the library.");
}

} // namespace

void bindPlugins(nb::module_& m)
{
    bindFields(m);
    defPlugins(m);
    defCreators(m);
    defRegistry(m);
}

} // namespace tw::python
