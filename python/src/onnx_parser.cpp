// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <NvOnnxParser.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "enums.h"
#include "module.h"
#include "owner.h"
#include "vector.h"

NB_MAKE_OPAQUE(std::vector<size_t>)
NB_MAKE_OPAQUE(SubGraphCollection_t)

namespace tw::python {

using namespace nvonnxparser;

namespace {

// The network's weights lie in the parser, so the network keeps it; the parser's object keeps the network. What they share
// holds no Python object of the network, or neither would ever be freed.
struct OnnxParser
{
    std::shared_ptr<IParser> parser;
    IParser* operator->() const { return parser.get(); }
};

void makeParser(OnnxParser* self, nb::pointer_and_handle<nvinfer1::INetworkDefinition> network,
                nb::pointer_and_handle<nvinfer1::ILogger> logger)
{
    std::shared_ptr<IParser> parser(createParser(*network.p, *logger.p));
    if (!parser)
        throw std::runtime_error("the parser could not be made; the logger has the reason");
    keptIfFirst(*logger.p);
    keepAlive(network.h, new std::shared_ptr<IParser>(parser),
              [](void* kept) noexcept { delete static_cast<std::shared_ptr<IParser>*>(kept); });
    keepAlive(network.h, logger.h);
    new (self) OnnxParser{std::move(parser)};
}

// A copy: the parser's own are gone with its next call.
struct ParserError
{
    explicit ParserError(IParserError const& error)
        : code(error.code()), desc(error.desc()), file(error.file()), line(error.line()), func(error.func()),
          node(error.node())
    {}
    ErrorCode code;
    std::string desc, file;
    int line;
    std::string func;
    int node;
};

std::string describe(ParserError const& error)
{
    return "In node " + std::to_string(error.node) + " (" + error.func + "): " + error.desc;
}

void defError(nb::module_& m)
{
    plainEnum<ErrorCode>(m, "ErrorCode", "Kind of a parser error.")
        .value("SUCCESS", ErrorCode::kSUCCESS, "No error.")
        .value("INTERNAL_ERROR", ErrorCode::kINTERNAL_ERROR, "A fault inside the parser.")
        .value("MEM_ALLOC_FAILED", ErrorCode::kMEM_ALLOC_FAILED, "Host memory could not be had.")
        .value("MODEL_DESERIALIZE_FAILED", ErrorCode::kMODEL_DESERIALIZE_FAILED, "The bytes are not an ONNX model.")
        .value("INVALID_VALUE", ErrorCode::kINVALID_VALUE, "A value in the model is not allowed.")
        .value("INVALID_GRAPH", ErrorCode::kINVALID_GRAPH, "The graph is not well formed.")
        .value("INVALID_NODE", ErrorCode::kINVALID_NODE, "A node is not well formed.")
        .value("UNSUPPORTED_GRAPH", ErrorCode::kUNSUPPORTED_GRAPH, "The graph has a form that cannot be imported.")
        .value("UNSUPPORTED_NODE", ErrorCode::kUNSUPPORTED_NODE, "A node cannot be imported.");
    using E = ParserError;
    nb::class_<E>(m, "ParserError", "One reason why a model was not imported.")
        .def(
            "code", [](E const& self) { return self.code; }, "Kind of the error.")
        .def(
            "desc", [](E const& self) { return self.desc; }, "What is wrong.")
        .def(
            "file", [](E const& self) { return self.file; }, "Source file of the parser in which the error arose.")
        .def(
            "line", [](E const& self) { return self.line; }, "Line in that file.")
        .def(
            "func", [](E const& self) { return self.func; }, "Function in that file.")
        .def(
            "node", [](E const& self) { return self.node; }, "Index of the node in the model, or -1.")
        .def("__str__", &describe, "The error as a sentence.")
        .def("__repr__", &describe, "The error as a sentence.");
}

} // namespace

void bindOnnxParser(nb::module_& m)
{
    bindVector<std::vector<size_t>, true>(m, "NodeIndices", "Indices of nodes.")
        .def(
            "__repr__",
            [](std::vector<size_t> const& self) {
                return "NodeIndices" + nb::cast<std::string>(nb::repr(listOf(self)));
            },
            "The indices.");
    bindVector<SubGraphCollection_t, true>(m, "SubGraphCollection",
                                           "Parts of a model: the nodes, and whether they can be imported.");
    defError(m);
    nb::class_<OnnxParser> type(m, "OnnxParser", "Imports ONNX models into a network.");
    type.def("__init__", &makeParser, nb::arg("network"), nb::arg("logger"), nb::keep_alive<1, 2>(),
             "A parser for one network.")
        .def(
            "parse",
            [](OnnxParser& self, Buffer model, std::optional<std::string> const& path) {
                GilReleased const release;
                return self->parse(model.data(), model.size(), path ? path->c_str() : nullptr);
            },
            nb::arg("model"), nb::arg("path") = nb::none(),
            "Imports the bytes of a model. path is its own: files with weights are looked up beside it. False on "
            "error, see get_error().")
        .def(
            "parse_with_weight_descriptors",
            [](OnnxParser& self, Buffer model) {
                GilReleased const release;
                return self->parseWithWeightDescriptors(model.data(), model.size());
            },
            nb::arg("model"), "As parse(), for a model whose weights stay in the caller's memory.")
        .def(
            "parse_from_file",
            [](OnnxParser& self, std::string const& file) {
                GilReleased const release;
                return self->parseFromFile(file.c_str(), int(nvinfer1::ILogger::Severity::kWARNING));
            },
            nb::arg("model"), "Imports a model file. False on error, see get_error().")
        .def(
            "supports_operator", [](OnnxParser& self, char const* name) { return self->supportsOperator(name); },
            nb::arg("op_name"), "Whether the parser knows the operator.")
        .def(
            "supports_model",
            [](OnnxParser& self, Buffer model, std::optional<std::string> const& path) {
                SubGraphCollection_t parts;
                bool isSupported = false;
                {
                    GilReleased const release;
                    isSupported =
                        self->supportsModel(model.data(), model.size(), parts, path ? path->c_str() : nullptr);
                }
                return std::make_pair(isSupported, std::move(parts));
            },
            nb::arg("model"), nb::arg("path") = nb::none(),
            "Whether the whole model can be imported, and its supported and unsupported parts.")
        .def_prop_ro(
            "num_errors", [](OnnxParser& self) { return self->getNbErrors(); }, "Number of errors.")
        .def(
            "get_error",
            [](OnnxParser& self, int index) {
                IParserError const* error = self->getError(index);
                if (!error)
                    throw nb::index_error(("error " + std::to_string(index) + " is out of range: there are " +
                                           std::to_string(self->getNbErrors()))
                                              .c_str());
                return ParserError(*error);
            },
            nb::arg("index"), "An error.")
        .def(
            "clear_errors", [](OnnxParser& self) { self->clearErrors(); }, "Forgets all errors.");
    defDelete(type);
    m.def("get_nv_onnx_parser_version", &getNvOnnxParserVersion,
          "Version of the parser: major * 10000 + minor * 100 + patch.");
}

} // namespace tw::python
