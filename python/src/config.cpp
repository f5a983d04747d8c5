// SPDX-License-Identifier: Apache-2.0
#include "module.h"

namespace tw::python {

using namespace nvinfer1;

void bindConfig(nb::module_& m)
{
    nb::class_<ITimingCache>(m, "ITimingCache", "Measured times of kernels, kept over builds.")
        .def("serialize", &ITimingCache::serialize, "The cache as bytes for IBuilderConfig.create_timing_cache().")
        .def("combine", &ITimingCache::combine, nb::arg("input_cache"), nb::arg("ignore_mismatch"),
             "Adds the entries of another cache. False if it is of another device, unless ignore_mismatch.")
        .def("reset", &ITimingCache::reset, "Forgets all entries.");

    using C = IBuilderConfig;
    nb::class_<C> type(m, "IBuilderConfig", "All settings of one build.");
    type.def_prop_rw("min_timing_iterations", deprecatedGetter(&C::getMinTimingIterations, "get_avg_timing_iterations"),
                     deprecatedSetter(&C::setMinTimingIterations, "set_avg_timing_iterations"),
                     "Replaced by avg_timing_iterations. Default 1.")
        .def_prop_rw("avg_timing_iterations", &C::getAvgTimingIterations, &C::setAvgTimingIterations,
                     "Runs over which a candidate's time is averaged. Default 1.")
        .def_prop_rw("int8_calibrator", &C::getInt8Calibrator, replacing("calibrator", &C::setInt8Calibrator),
                     nb::for_getter(nb::rv_policy::reference), nb::for_setter(nb::arg("value").none()),
                     "What feeds sample batches for INT8, or None.")
        .def_prop_rw("engine_capability", &C::getEngineCapability, &C::setEngineCapability,
                     "What kind of system the engine is for. Default STANDARD.")
        .def_prop_rw("max_workspace_size", deprecatedGetter(&C::getMaxWorkspaceSize, "get_memory_pool_limit"),
                     deprecatedSetter(&C::setMaxWorkspaceSize, "set_memory_pool_limit"),
                     "Replaced by set_memory_pool_limit(MemoryPoolType.WORKSPACE, ...).")
        .def("set_memory_pool_limit", &C::setMemoryPoolLimit, nb::arg("pool"), nb::arg("pool_size"),
             "Limit in bytes. DLA pools: powers of two of at least 4 KiB.")
        .def("get_memory_pool_limit", &C::getMemoryPoolLimit, nb::arg("pool"), "The limit in bytes.")
        .def_prop_rw("flags", &C::getFlags, &C::setFlags, "Bit i is the BuilderFlag of value i.")
        .def_prop_rw("default_device_type", &C::getDefaultDeviceType, &C::setDefaultDeviceType,
                     "Device of layers without their own. Default GPU.")
        .def_prop_rw("DLA_core", &C::getDLACore, &C::setDLACore, "DLA core for the engine. Default -1: none chosen.")
        .def("clear_flag", &C::clearFlag, nb::arg("flag"), "Turns an option off.")
        .def("set_flag", &C::setFlag, nb::arg("flag"), "Turns an option on.")
        .def("get_flag", &C::getFlag, nb::arg("flag"), "Whether an option is on.")
        .def_prop_rw("quantization_flags", &C::getQuantizationFlags, &C::setQuantizationFlags,
                     "Bit i is the QuantizationFlag of value i.")
        .def("clear_quantization_flag", &C::clearQuantizationFlag, nb::arg("flag"),
             "Turns an option of INT8 building off.")
        .def("set_quantization_flag", &C::setQuantizationFlag, nb::arg("flag"), "Turns an option of INT8 building on.")
        .def("get_quantization_flag", &C::getQuantizationFlag, nb::arg("flag"),
             "Whether an option of INT8 building is on.")
        .def("reset", &C::reset, "Back to the defaults.")
        .def_prop_rw(
            "profile_stream", [](C const& self) { return Address{self.getProfileStream()}; },
            [](C& self, Address stream) { self.setProfileStream(static_cast<cudaStream_t>(stream.pointer)); },
            "Stream on which candidates are timed. Default 0.")
        .def("add_optimization_profile", &C::addOptimizationProfile, nb::arg("profile"), nb::keep_alive<1, 2>(),
             "Adds a profile and gives its index, or -1 if it is not valid.")
        .def("set_calibration_profile", &C::setCalibrationProfile, nb::arg("profile"), nb::keep_alive<1, 2>(),
             "Profile whose optimal shapes calibration uses; False if it is not valid.")
        .def("get_calibration_profile", &C::getCalibrationProfile, nb::rv_policy::reference_internal,
             "That profile, or None.")
        .def_prop_ro("num_optimization_profiles", &C::getNbOptimizationProfiles, "Number of profiles.")
        .def("set_device_type", &C::setDeviceType, nb::arg("layer"), nb::arg("device_type"),
             "Device of one layer, instead of the default device.")
        .def("get_device_type", &C::getDeviceType, nb::arg("layer"), "Device of a layer.")
        .def("is_device_type_set", &C::isDeviceTypeSet, nb::arg("layer"), "Whether a layer has a device of its own.")
        .def("reset_device_type", &C::resetDeviceType, nb::arg("layer"), "Takes a layer's device away.")
        .def("can_run_on_DLA", &C::canRunOnDLA, nb::arg("layer"), "Whether DLA can run this layer with these settings.")
        .def_prop_rw("profiling_verbosity", &C::getProfilingVerbosity, &C::setProfilingVerbosity,
                     "What the engine knows of its layers. Default LAYER_NAMES_ONLY.")
        .def_prop_rw("algorithm_selector", &C::getAlgorithmSelector, replacing("selector", &C::setAlgorithmSelector),
                     nb::for_getter(nb::rv_policy::reference), nb::for_setter(nb::arg("value").none()),
                     "What chooses the algorithm of each layer, or None.")
        .def("set_tactic_sources", &C::setTacticSources, nb::arg("tactic_sources"),
             "Allowed sources: bit i is the TacticSource of value i. False for unknown bits.")
        .def("get_tactic_sources", &C::getTacticSources, "Allowed sources.")
        .def(
            "create_timing_cache",
            [](C const& self, Buffer bytes) { return self.createTimingCache(bytes.data(), bytes.size()); },
            nb::arg("serialized_timing_cache"),
            "A cache from the bytes of ITimingCache.serialize(), or an empty one of b\"\". None if the bytes are "
            "damaged.")
        .def("set_timing_cache", &C::setTimingCache, nb::arg("cache"), nb::arg("ignore_mismatch"),
             nb::keep_alive<1, 2>(),
             "Cache to read and extend. False if it is of another device, unless ignore_mismatch.")
        .def("get_timing_cache", &C::getTimingCache, nb::rv_policy::reference_internal, "That cache, or None.")
        .def("set_preview_feature", &C::setPreviewFeature, nb::arg("feature"), nb::arg("enable"),
             "Turns a feature on or off.")
        .def("get_preview_feature", &C::getPreviewFeature, nb::arg("feature"), "Whether a feature is on.");
    defDelete(type);
}

} // namespace tw::python
