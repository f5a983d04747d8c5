// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/vector.h>

#include "module.h"
#include "owner.h"
#include "recorder.h"

namespace tw::python {

using namespace nvinfer1;

namespace {

void setShape(IOptimizationProfile& self, char const* input, Dims const& min, Dims const& opt, Dims const& max)
{
    std::pair<OptProfileSelector, Dims const&> const points[] = {
        {OptProfileSelector::kMIN, min}, {OptProfileSelector::kOPT, opt}, {OptProfileSelector::kMAX, max}};
    constexpr char const* kNames[] = {"min", "opt", "max"};
    for (size_t i = 0; i < 3; ++i)
        if (!self.setDimensions(input, points[i].first, points[i].second))
            throw nb::value_error(("input '" + std::string(input) + "': the shape given for " + kNames[i] +
                                   " does not go with the others (min <= opt <= max must hold in each dimension)")
                                      .c_str());
}

std::vector<Dims> shape(IOptimizationProfile const& self, char const* input)
{
    std::vector<Dims> points;
    for (OptProfileSelector point : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
        points.push_back(self.getDimensions(input, point));
    return points[0].nbDims < 0 ? std::vector<Dims>() : points;
}

void setShapeInput(IOptimizationProfile& self, char const* input, std::vector<int32_t> const& min,
                   std::vector<int32_t> const& opt, std::vector<int32_t> const& max)
{
    if (min.size() != opt.size() || opt.size() != max.size())
        throw nb::value_error(("input '" + std::string(input) + "': min, opt and max have " +
                               std::to_string(min.size()) + ", " + std::to_string(opt.size()) + " and " +
                               std::to_string(max.size()) + " values; the numbers must be equal")
                                  .c_str());
    std::pair<OptProfileSelector, std::vector<int32_t> const&> const points[] = {
        {OptProfileSelector::kMIN, min}, {OptProfileSelector::kOPT, opt}, {OptProfileSelector::kMAX, max}};
    for (auto const& [point, values] : points)
        if (!self.setShapeValues(input, point, values.data(), int32_t(values.size())))
            throw nb::value_error(("input '" + std::string(input) +
                                   "': the values do not go together (min <= opt <= max must hold for each)")
                                      .c_str());
}

std::vector<std::vector<int32_t>> shapeInput(IOptimizationProfile const& self, char const* input)
{
    std::vector<std::vector<int32_t>> points;
    int32_t const count = self.getNbShapeValues(input);
    for (OptProfileSelector point : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
        if (int32_t const* values = count >= 0 ? self.getShapeValues(input, point) : nullptr)
            points.emplace_back(values, values + count);
    return points;
}

void defProfile(nb::module_& m)
{
    using P = IOptimizationProfile;
    nb::class_<P>(m, "IOptimizationProfile",
                  "Ranges of the dynamic input dimensions and of the values of input shape tensors.")
        .def("set_shape", &setShape, nb::arg("input"), nb::arg("min"), nb::arg("opt"), nb::arg("max"),
             "The range of an input's shape; fixed dimensions must be repeated. ValueError unless min <= opt <= max.")
        .def("get_shape", &shape, nb::arg("input"), "[min, opt, max] of an input, or [] when not set.")
        .def("set_shape_input", &setShapeInput, nb::arg("input"), nb::arg("min"), nb::arg("opt"), nb::arg("max"),
             "The range of the values of an input shape tensor.")
        .def("get_shape_input", &shapeInput, nb::arg("input"),
             "[min, opt, max] of an input shape tensor's values, or [] when not set.")
        .def_prop_rw(
            "extra_memory_target", &P::getExtraMemoryTarget,
            [](P& self, float target) {
                if (!self.setExtraMemoryTarget(target))
                    throw nb::value_error("extra_memory_target must be 0 to 1");
            },
            "Extra device memory this profile may use, 0 to 1 as a share of the free memory. Default 1.")
        .def("__nonzero__", &P::isValid, "Whether the points that are set agree with each other.")
        .def("__bool__", &P::isValid, "Whether the points that are set agree with each other.");
}

void defBuilder(nb::module_& m)
{
    nb::class_<Builder> type(m, "Builder", "Makes networks and settings, and builds engines from them.");
    type.def(nb::init<ILogger&>(), nb::arg("logger"), nb::keep_alive<1, 2>(),
             "A builder whose messages go to the logger.")
        .def(
            "create_network", [](Builder& self, uint32_t flags) { return self->createNetworkV2(flags); },
            nb::arg("flags") = 0, nb::keep_alive<0, 1>(),
            "A new network; bit i of flags is the NetworkDefinitionCreationFlag of value i.")
        .def_prop_rw(
            "max_batch_size",
            [](Builder& self) {
                warnDeprecated("EXPLICIT_BATCH");
                return self->getMaxBatchSize();
            },
            [](Builder& self, int32_t size) {
                warnDeprecated("EXPLICIT_BATCH");
                self->setMaxBatchSize(size);
            },
            "Largest batch of implicit batch networks. No effect with explicit batch.")
        .def_prop_ro(
            "platform_has_tf32", [](Builder& self) { return self->platformHasTf32(); },
            "Whether the device has TF32 arithmetic.")
        .def_prop_ro(
            "platform_has_fast_fp16", [](Builder& self) { return self->platformHasFastFp16(); },
            "Whether the device computes HALF faster than FLOAT.")
        .def_prop_ro(
            "platform_has_fast_int8", [](Builder& self) { return self->platformHasFastInt8(); },
            "Whether the device computes INT8 faster than HALF or FLOAT.")
        .def_prop_ro(
            "max_DLA_batch_size", [](Builder& self) { return self->getMaxDLABatchSize(); },
            "Largest batch of a DLA core; 0 without DLA.")
        .def_prop_ro(
            "num_DLA_cores", [](Builder& self) { return self->getNbDLACores(); }, "Number of DLA cores.")
        .def_prop_rw(
            "gpu_allocator", nullptr,
            replacing<Builder, IGpuAllocator>(
                "allocator", [](Builder& self, IGpuAllocator* allocator) { self->setGpuAllocator(allocator); }),
            nb::for_setter(nb::arg("value").none()), "Source of device memory while building. Write-only.")
        .def(
            "create_optimization_profile", [](Builder& self) { return self->createOptimizationProfile(); },
            nb::rv_policy::reference_internal, "A new profile, owned by the builder.")
        .def(
            "create_builder_config", [](Builder& self) { return self->createBuilderConfig(); }, nb::keep_alive<0, 1>(),
            "New settings.")
        .def(
            "build_engine",
            [](nb::handle self, INetworkDefinition& network, IBuilderConfig& config) {
                warnDeprecated("build_serialized_network");
                Builder& builder = nb::cast<Builder&>(self);
                ICudaEngine* engine = nullptr;
                {
                    GilReleased const release;
                    engine = builder->buildEngineWithConfig(network, config);
                }
                return withAllocator(engine, self);
            },
            nb::arg("network"), nb::arg("config"), nb::keep_alive<0, 1>(),
            "Replaced by build_serialized_network() and Runtime.deserialize_cuda_engine().",
            nb::sig("def build_engine(self, network: INetworkDefinition, config: IBuilderConfig) -> ICudaEngine"))
        .def(
            "build_serialized_network",
            [](Builder& self, INetworkDefinition& network, IBuilderConfig& config) {
                GilReleased const release;
                return self->buildSerializedNetwork(network, config);
            },
            nb::arg("network"), nb::arg("config"),
            "The engine as bytes; None with a logged reason. Other threads of Python run meanwhile.")
        .def(
            "is_network_supported",
            [](Builder& self, INetworkDefinition& network, IBuilderConfig& config) {
                GilReleased const release;
                return self->isNetworkSupported(network, config);
            },
            nb::arg("network"), nb::arg("config"),
            "Whether the network fits the restrictions of the settings; faults are logged.")
        .def_prop_ro(
            "logger", [](Builder& self) { return self->getLogger(); }, "The logger that was given.")
        .def_prop_rw(
            "max_threads", [](Builder& self) { return self->getMaxThreads(); },
            [](Builder& self, int32_t count) { self->setMaxThreads(count); },
            "Most threads that building may use, the calling one included. Default 1.")
        .def(
            "reset", [](Builder& self) { self->reset(); }, "Back to the defaults.");
    defRecorder(type);
    defDelete(type);
}

} // namespace

void bindBuilder(nb::module_& m)
{
    defProfile(m);
    defBuilder(m);
}

} // namespace tw::python
