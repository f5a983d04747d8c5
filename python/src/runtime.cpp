// SPDX-License-Identifier: Apache-2.0
#include "module.h"
#include "owner.h"
#include "recorder.h"

namespace tw::python {

using namespace nvinfer1;

void bindRuntime(nb::module_& m)
{
    nb::class_<Runtime> type(m, "Runtime", "Loads serialized engines.");
    type.def(nb::init<ILogger&>(), nb::arg("logger"), nb::keep_alive<1, 2>(),
             "A runtime whose messages go to the logger.")
        .def(
            "deserialize_cuda_engine",
            [](nb::handle self, Buffer plan) {
                Runtime& runtime = nb::cast<Runtime&>(self);
                ICudaEngine* engine = nullptr;
                {
                    GilReleased const release;
                    engine = runtime->deserializeCudaEngine(plan.data(), plan.size());
                }
                return withAllocator(engine, self);
            },
            nb::arg("serialized_engine"), nb::keep_alive<0, 1>(),
            "The engine in the bytes; None with a logged reason. The bytes may be freed after the call.",
            nb::sig("def deserialize_cuda_engine(self, serialized_engine: collections.abc.Buffer) -> ICudaEngine"))
        .def_prop_rw(
            "DLA_core", [](Runtime& self) { return self->getDLACore(); },
            [](Runtime& self, int32_t core) { self->setDLACore(core); }, "DLA core for engines loaded after the call.")
        .def_prop_ro(
            "num_DLA_cores", [](Runtime& self) { return self->getNbDLACores(); },
            "Number of DLA cores, 0 where there are none.")
        .def_prop_rw(
            "gpu_allocator", nullptr,
            replacing<Runtime, IGpuAllocator>(
                "allocator", [](Runtime& self, IGpuAllocator* allocator) { self->setGpuAllocator(allocator); }),
            nb::for_setter(nb::arg("value").none()),
            "Source of device memory for engines loaded after the call. Write-only.")
        .def_prop_ro(
            "logger", [](Runtime& self) { return self->getLogger(); }, "The logger that was given.")
        .def_prop_rw(
            "max_threads", [](Runtime& self) { return self->getMaxThreads(); },
            [](Runtime& self, int32_t count) { self->setMaxThreads(count); },
            "Most threads that loading may use, the calling one included. Default 1.");
    defRecorder(type);
    defDelete(type);
}

} // namespace tw::python
