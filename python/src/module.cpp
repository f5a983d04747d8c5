// SPDX-License-Identifier: Apache-2.0
#include "module.h"

NB_MODULE(tensorrt, m)
{
    using namespace tw::python;
    m.doc() = "Builds and runs engines: the API of TensorRT 8.5 on CPUs and GPUs.";
    // What a program still holds when it ends is its own affair.
    nb::set_leak_warnings(false);
    nb::set_implicit_cast_warnings(false);

    bindRuntimeEnums(m);
    bindNetworkEnums(m);
    bindDims(m);
    bindWeights(m);
    bindLogger(m);
    bindRecorder(m);
    bindAllocators(m);
    bindPlugins(m);
    bindCalibrators(m);
    bindTensors(m);
    bindWindowLayers(m);
    bindArithmeticLayers(m);
    bindShapeLayers(m);
    bindFlowLayers(m);
    bindNetwork(m);
    bindAlgorithms(m);
    bindConfig(m);
    bindBuilder(m);
    bindEngine(m);
    bindContext(m);
    bindRuntime(m);
    bindRefitter(m);
    bindOnnxParser(m);
    bindOlderParsers(m);
}
