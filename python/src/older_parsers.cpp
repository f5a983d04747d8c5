// SPDX-License-Identifier: Apache-2.0
// The parsers of Caffe and UFF models.
#include <memory>
#include <optional>
#include <string>

#include <NvCaffeParser.h>
#include <NvUffParser.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "enums.h"
#include "module.h"
#include "recorder.h"

namespace tw::python {

using namespace nvinfer1;

namespace {

// A network keeps the parser whose weights it uses.
template <class Parser>
struct Shared
{
    using Interface = Parser;
    std::shared_ptr<Parser> parser;
    Parser* operator->() const { return parser.get(); }
    Parser& operator*() const { return *parser; }

    void keepWith(nb::handle network) const
    {
        keepAlive(network, new std::shared_ptr<Parser>(parser),
                  [](void* kept) noexcept { delete static_cast<std::shared_ptr<Parser>*>(kept); });
    }
};

using Caffe = Shared<nvcaffeparser1::ICaffeParser>;
using Uff = Shared<nvuffparser::IUffParser>;
using Network = nb::pointer_and_handle<INetworkDefinition>;

template <class S>
void make(S* self, typename S::Interface* parser)
{
    if (!parser)
        throw std::runtime_error("the parser could not be made; the logger has the reason");
    new (self) S{std::shared_ptr<typename S::Interface>(parser)};
}

nb::object binaryProto(Caffe& self, char const* file)
{
    std::unique_ptr<nvcaffeparser1::IBinaryProtoBlob> const blob(self->parseBinaryProto(file));
    if (!blob) {
        // No builder or runtime is needed here, and without one there is no logger.
        if (!getLogger() && !self->getErrorRecorder() && !getPluginRegistry()->getErrorRecorder() &&
            PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                             "CaffeParser.parse_binary_proto: there is no array of '%.200s', and nobody to hear why: "
                             "create a Builder with a Logger first, or set error_recorder",
                             file) < 0)
            throw nb::python_error();
        return nb::none();
    }
    Dims const dims = blob->getDimensions();
    nb::list shape;
    int64_t count = 1;
    for (int32_t i = 0; i < dims.nbDims; ++i) {
        shape.append(dims.d[i]);
        count *= dims.d[i];
    }
    return arrayOfWeights({blob->getDataType(), blob->getData(), count}, nb::none())
        .attr("reshape")(nb::tuple(shape))
        .attr("copy")();
}

struct UffField
{
    std::string name;
    void* data;
    nvuffparser::FieldType type;
    int32_t length;
};

struct UffFields
{
    int32_t count = 0;
    std::shared_ptr<UffField> fields;
};

void defCaffe(nb::module_& m)
{
    using nvcaffeparser1::IBlobNameToTensor;
    nb::class_<IBlobNameToTensor>(m, "IBlobNameToTensor",
                                  "The tensors of an imported Caffe model by the names of its blobs.")
        .def("find", &IBlobNameToTensor::find, nb::arg("name"), nb::rv_policy::reference_internal,
             "The tensor of a blob, or None.");

    using Factory = nvcaffeparser1::IPluginFactoryV2;
    nb::class_<Factory>(m, "ICaffePluginFactoryV2", "Makes plugins for layers that the Caffe parser does not know.")
        .def("is_plugin_v2", &Factory::isPluginV2, nb::arg("layer_name"),
             "Whether create_plugin() shall be called for this layer.")
        .def(
            "create_plugin",
            [](Factory& self, char const* layer, std::vector<Weights> const& weights) {
                std::vector<nvinfer1::Weights> list;
                for (Weights const& w : weights)
                    list.push_back(w.description);
                return self.createPlugin(layer, list.data(), int32_t(list.size()));
            },
            nb::arg("layer_name"), nb::arg("weights"), nb::rv_policy::reference,
            "A plugin for the layer with its weights from the model.");

    nb::class_<Caffe> type(m, "CaffeParser", "Imports Caffe models into a network.");
    type.def(
            "__init__", [](Caffe* self) { make(self, nvcaffeparser1::createCaffeParser()); }, "A parser.")
        .def_prop_rw(
            "protobuf_buffer_size", nullptr, [](Caffe& self, size_t size) { self->setProtobufBufferSize(size); },
            "Largest message in bytes that is accepted. Write-only.")
        .def_prop_rw("plugin_factory_v2", nullptr,
                     replacing<Caffe, Factory>(
                         "factory", [](Caffe& self, Factory* factory) { self->setPluginFactoryV2(factory); }),
                     nb::for_setter(nb::arg("value").none()), "What makes plugins. Write-only.")
        .def_prop_rw(
            "plugin_namespace", nullptr, [](Caffe& self, char const* space) { self->setPluginNamespace(space); },
            "Namespace in which plugins are looked up. Write-only.")
        .def(
            "parse",
            [](Caffe& self, char const* deploy, std::optional<std::string> const& model, Network network,
               DataType type) {
                self.keepWith(network.h);
                return self->parse(deploy, model ? model->c_str() : nullptr, *network.p, type);
            },
            nb::arg("deploy"), nb::arg("model").none(), nb::arg("network"), nb::arg("dtype"), nb::rv_policy::reference,
            nb::keep_alive<0, 4>(),
            "Imports from files: deploy is the prototxt, model the weights, or None for random ones. None on error.")
        .def(
            "parse_buffer",
            [](Caffe& self, Buffer deploy, Buffer model, Network network, DataType type) {
                self.keepWith(network.h);
                return self->parseBuffers(static_cast<uint8_t const*>(deploy.data()), deploy.size(),
                                          static_cast<uint8_t const*>(model.data()), model.size(), *network.p, type);
            },
            nb::arg("deploy_buffer"), nb::arg("model_buffer"), nb::arg("network"), nb::arg("dtype"),
            nb::rv_policy::reference, nb::keep_alive<0, 4>(), "As parse(), from memory.")
        .def("parse_binary_proto", &binaryProto, nb::arg("filename"),
             "The array in a binaryproto file. None on error.");
    defRecorder(type);
    defDelete(type);
    m.def("shutdown_protobuf_library", &nvcaffeparser1::shutdownProtobufLibrary,
          "Of older releases; no parser can be used afterwards.");
}

void defUff(nb::module_& m)
{
    using nvuffparser::FieldType;
    using nvuffparser::UffInputOrder;
    plainEnum<UffInputOrder>(m, "UffInputOrder", "Order of an input's dimensions in the model.")
        .value("NCHW", UffInputOrder::kNCHW, "Batch, channels, height, width.")
        .value("NHWC", UffInputOrder::kNHWC, "Batch, height, width, channels.")
        .value("NC", UffInputOrder::kNC, "Batch, channels.");
    plainEnum<FieldType>(m, "FieldType", "Type of a field of a custom node.")
        .value("FLOAT", FieldType::kFLOAT, "float.")
        .value("INT32", FieldType::kINT32, "32-bit integer.")
        .value("CHAR", FieldType::kCHAR, "char.")
        .value("DIMS", FieldType::kDIMS, "Dims.")
        .value("DATATYPE", FieldType::kDATATYPE, "DataType.")
        .value("UNKNOWN", FieldType::kUNKNOWN, "Not said.");
    nb::class_<UffField>(m, "FieldMap", "One named parameter of a custom node.")
        .def(
            "__init__",
            [](UffField* self, char const* name, Address data, FieldType type, int32_t length) {
                new (self) UffField{name, data.pointer, type, length};
            },
            nb::arg("name"), nb::arg("data"), nb::arg("type"), nb::arg("length") = 1,
            "The parameter; data is the address of its elements.")
        .def_rw("name", &UffField::name, "Name of the parameter.")
        .def_prop_rw(
            "data", [](UffField const& self) { return self.data; },
            [](UffField& self, Address data) { self.data = data.pointer; }, "First element.")
        .def_rw("type", &UffField::type, "Type of an element.")
        .def_rw("length", &UffField::length, "Number of elements.");
    nb::class_<UffFields>(m, "FieldCollection", "Parameters of a custom node.")
        .def_rw("num_fields", &UffFields::count, "Number of parameters.")
        .def_prop_rw(
            "fields", [](UffFields const& self) { return self.fields; },
            [](UffFields& self, std::shared_ptr<UffField> fields) { self.fields = std::move(fields); },
            "First parameter.");

    nb::class_<Uff> type(m, "UffParser", "Imports UFF models into a network.");
    type.def(
            "__init__", [](Uff* self) { make(self, nvuffparser::createUffParser()); }, "A parser.")
        .def_prop_ro(
            "uff_required_version_major", [](Uff& self) { return self->getUffRequiredVersionMajor(); },
            "Major version of UFF that is read.")
        .def_prop_ro(
            "uff_required_version_minor", [](Uff& self) { return self->getUffRequiredVersionMinor(); },
            "Minor version of UFF that is read.")
        .def_prop_ro(
            "uff_required_version_patch", [](Uff& self) { return self->getUffRequiredVersionPatch(); },
            "Patch version of UFF that is read.")
        .def_prop_rw(
            "plugin_namespace", nullptr, [](Uff& self, char const* space) { self->setPluginNamespace(space); },
            "Namespace in which plugins are looked up. Write-only.")
        .def(
            "register_input",
            [](Uff& self, char const* name, Dims const& shape, UffInputOrder order) {
                return self->registerInput(name, shape, order);
            },
            nb::arg("name"), nb::arg("shape"), nb::arg("order") = UffInputOrder::kNCHW,
            "Declares an input of the model; the shape is without the batch. False on error.")
        .def(
            "register_output", [](Uff& self, char const* name) { return self->registerOutput(name); }, nb::arg("name"),
            "Declares an output of the model. False on error.")
        .def(
            "parse",
            [](Uff& self, char const* file, Network network, DataType type) {
                self.keepWith(network.h);
                return self->parse(file, *network.p, type);
            },
            nb::arg("file"), nb::arg("network"), nb::arg("weights_type") = DataType::kFLOAT,
            "Imports a file. False on error.")
        .def(
            "parse_buffer",
            [](Uff& self, Buffer bytes, Network network, DataType type) {
                self.keepWith(network.h);
                return self->parseBuffer(static_cast<char const*>(bytes.data()), bytes.size(), *network.p, type);
            },
            nb::arg("buffer"), nb::arg("network"), nb::arg("weights_type") = DataType::kFLOAT,
            "As parse(), from memory.");
    defRecorder(type);
    defDelete(type);
}

} // namespace

void bindOlderParsers(nb::module_& m)
{
    defUff(m);
    defCaffe(m);
}

} // namespace tw::python
