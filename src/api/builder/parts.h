// SPDX-License-Identifier: Apache-2.0
// What a build does of its configuration, each in a file of its own: calibration, the algorithm selector, explicit
// quantization, precisions, profiles, formats of inputs and outputs.
#pragma once

#include <memory>
#include <string>

#include "NvInfer.h"
#include "api/builder/config.h"
#include "api/builder/profile.h"
#include "api/network/network.h"
#include "builder/formats.h"
#include "calibrate/network.h"
#include "passes/caches/fixed_caches.h"
#include "passes/pass.h"
#include "plan/plan.h"
#include "tune/selector.h"

namespace tw::cuda {
struct Target;
}

namespace tw::api {

// Implicit quantization: ranges that clients set on tensors, and calibrators.

// The scale of each tensor that has one, by name: what the calibrator's cache or its batches give, replaced by
// ITensor::setDynamicRange() where that was called. Empty without BuilderFlag::kINT8, and for networks with layers that
// quantize, which say everything themselves. `contents`: before passes, with the build's profiles. `gpu`: where the client's
// batches lie; null: on the host.
Result<passes::Ranges> rangesOf(NetworkObject const& n, BuilderConfigObject const& c, plan::Contents const& contents,
                                calibrate::NetworkOptions const& options, cuda::Target const* gpu, Reporter& log);

// IAlgorithmSelector: the client's choice among the tactics of each layer.

// `rejectEmpty`: an empty answer is an error, else it means any.
std::unique_ptr<tune::Selector> adaptSelector(nvinfer1::IAlgorithmSelector& selector, bool rejectEmpty);

// The rules of networks with quantize and dequantize layers that no layer can check by itself: flags, precisions, where
// scales for each channel may stand, and what may read INT8 tensors.

// Whether the network has such layers. INT8 inputs and outputs with a dynamic range are none.
bool isExplicit(NetworkObject const& n);
// `g`: the network's graph as it was imported. Nothing where it has no such layer.
Result<void> checkExplicitQuantization(NetworkObject const& n, ir::Graph const& g, BuilderConfigObject const& c);

// Reduced precision as a build is asked for it: permissions that have no effect yet are warnings, demands are errors.
passes::PrecisionConstraints constraintsOf(BuilderConfigObject const& c);
// What the device has no kernels for yet. A GPU has them for FP16: the pass lower_precision answers for each layer.
Result<void> checkPrecisions(NetworkObject const& n, BuilderConfigObject const& c, bool onGpu, Reporter& log);

// EngineCapability::kSAFETY and BuilderFlag::kSAFETY_SCOPE. An error, after a line for each place, when the network is outside of the
// limits that are known. `graph`: what it became.
Result<void> checkSafety(NetworkObject& network, ir::Graph const& graph, BuilderConfigObject const& config,
                         Reporter& log);
// Adds the tensors of base/safety.h.
Result<void> countErrors(ir::Graph& graph);

// An optimization profile as the plan holds it.

// Inputs that have values for a shape tensor in some profile.
InputNames inputsWithValues(std::vector<OptimizationProfileObject const*> const& profiles);

// Profile `index` of the builder's configuration, for this network's inputs, which are those of `graph`; an error names
// what it lacks.
Result<plan::Profile> toProfile(NetworkObject const& n, ir::Graph const& graph, OptimizationProfileObject const& p,
                                size_t index);

// Caches of a capacity that the environment asks for, in place of those that get longer (passes/caches/fixed_caches.h). `contents` has the
// graph, and no inputs and outputs yet.
Result<std::vector<passes::FixedCache>> fixCaches(plan::Contents& contents, BuilderConfigObject const& c,
                                                  passes::CacheSizes const& sizes, passes::PassSettings const& settings,
                                                  Reporter& log);
// Lengths of what has no length any more in the shapes of a profile; and the shape of the caches' lengths.
Result<void> fixProfile(plan::Profile& profile, ir::Graph const& graph, std::vector<passes::FixedCache> const& caches);

// Formats of network inputs and outputs: which ones a type can be in, and how they are told to clients.

// In the words of 8.5: "Two wide channel vectorized row major FP16 format". `type`: how the type is called there.
std::string formatWords(Format format, std::string const& type);
// "kCHW2".
std::string publicNameOf(Format format);

// Whether a tensor of the type can be in the format where clients see it: table 1 of 8.5's guide, for devices that are no
// DLA. Types without a column there are linear only.
bool isLegal(Format format, DataType type);

// A network input or output beside layers on DLA, which takes formats of its own.
struct DlaTensor
{
    bool isStrict = false;  // it is in one of them: nothing but DLA runs, so nothing converts it
    std::string whyNoImage; // empty: it may be in kDLA_HWC4, as far as its readers go
};
using DlaTensors = std::map<std::string, DlaTensor>; // by name

// What the build may choose from for the network's inputs and outputs. `graph` is what the network became: it has the
// types. An error names a tensor that can be in none of the formats that it was allowed. `layouts`: where those in formats
// that only DLA has go, by name; the build takes them for linear ones.
Result<builder::IoFormats> ioFormatsOf(NetworkObject const& network, ir::Graph const& graph, bool isDirect,
                                       DlaTensors const& onDla = {},
                                       std::map<std::string, dla::Layout>* layouts = nullptr);

// Per dimension, in vectors of the format (elements where it has none); -1 after what is not known.
nvinfer1::Dims stridesOf(Format format, Extents const& dims);

} // namespace tw::api
