// SPDX-License-Identifier: Apache-2.0
// The C functions. Handles are looked up before use, so that one which is no more is an error and no crash.
#include "cudla.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "cudla/module.h"
#include "dla/model.h"

using namespace tw;

struct cudlaModule_t
{
    std::unique_ptr<cudla::Module> module;
};

struct cudlaDevHandle_t
{
    uint64_t core = 0;
    cudla::Logger logger;
    std::unique_ptr<nvinfer1::IRuntime> runtime;
    std::map<void const*, size_t> registered; // bytes by address
    std::vector<std::unique_ptr<cudlaModule_t>> modules;
};

namespace {

struct Process
{
    std::mutex mutex; // of everything: tasks are enqueued under it, and on a CPU run under it
    std::vector<std::unique_ptr<cudlaDevHandle_t>> devices;

    cudlaDevHandle_t* find(cudlaDevHandle handle) const
    {
        auto const it = std::ranges::find_if(devices, [&](auto const& d) { return d.get() == handle; });
        return it == devices.end() ? nullptr : it->get();
    }
    // The device that has the module; null: none.
    cudlaDevHandle_t* ownerOf(cudlaModule module) const
    {
        for (auto const& d : devices)
            for (auto const& m : d->modules)
                if (m.get() == module)
                    return d.get();
        return nullptr;
    }
    size_t modulesOf(uint64_t core) const
    {
        size_t count = 0;
        for (auto const& d : devices)
            count += d->core == core ? d->modules.size() : 0;
        return count;
    }
};
Process& process()
{
    static Process* const p = new Process; // never gone: clients may call until the very end
    return *p;
}

// No exception leaves a C function.
template <class Body>
cudlaStatus guarded(Body&& body) noexcept
{
    try {
        std::lock_guard const lock(process().mutex);
        return body(process());
    } catch (std::bad_alloc const&) {
        return cudlaErrorOutOfResources;
    } catch (...) {
        return cudlaErrorUnknown;
    }
}
template <class Body>
cudlaStatus onDevice(cudlaDevHandle handle, Body&& body) noexcept
{
    return guarded([&](Process& p) {
        cudlaDevHandle_t* const device = p.find(handle);
        return device ? body(p, *device) : cudlaErrorInvalidDevice;
    });
}

std::unique_ptr<nvinfer1::IRuntime> makeRuntime(nvinfer1::ILogger& logger)
{
    return std::unique_ptr<nvinfer1::IRuntime>(nvinfer1::createInferRuntime(logger));
}

// Addresses of one side of a task, all registered and large enough.
cudlaStatus collect(cudlaDevHandle_t const& device, std::vector<dla::LoadableTensor const*> const& tensors,
                    uint64_t* const* addresses, uint32_t count, std::vector<void*>& out)
{
    if (count != tensors.size() || (count > 0 && !addresses))
        return cudlaErrorInvalidParam;
    for (uint32_t i = 0; i < count; ++i) {
        auto const it = device.registered.find(addresses[i]);
        if (it == device.registered.end())
            return cudlaErrorInvalidAddress;
        if (it->second < size_t(tensors[i]->sizeBytes))
            return cudlaErrorInvalidParam;
        out.push_back(addresses[i]);
    }
    return cudlaSuccess;
}

} // namespace

extern "C" {

cudlaStatus cudlaGetVersion(uint64_t* version)
{
    if (!version)
        return cudlaErrorInvalidParam;
    *version = CUDLA_VER_MAJOR * 1000000ULL + CUDLA_VER_MINOR * 1000ULL + CUDLA_VER_PATCH;
    return cudlaSuccess;
}

cudlaStatus cudlaDeviceGetCount(uint64_t* count)
{
    return guarded([&](Process&) {
        if (!count)
            return cudlaErrorInvalidParam;
        cudla::Logger logger;
        auto const runtime = makeRuntime(logger);
        if (!runtime)
            return cudlaErrorUmd;
        *count = uint64_t(runtime->getNbDLACores());
        return cudlaSuccess;
    });
}

cudlaStatus cudlaCreateDevice(uint64_t device, cudlaDevHandle* handle, uint32_t flags)
{
    return guarded([&](Process& p) {
        if (!handle || flags > CUDLA_STANDALONE)
            return cudlaErrorInvalidParam;
        if (flags == CUDLA_STANDALONE)
            return cudlaErrorUnsupportedOperation; // there is no NvSci
        auto made = std::make_unique<cudlaDevHandle_t>();
        made->core = device;
        made->runtime = makeRuntime(made->logger);
        if (!made->runtime)
            return cudlaErrorCreationFailed;
        if (device >= uint64_t(made->runtime->getNbDLACores()))
            return cudlaErrorInvalidDevice;
        made->runtime->setDLACore(int32_t(device));
        *handle = made.get();
        p.devices.push_back(std::move(made));
        return cudlaSuccess;
    });
}

cudlaStatus cudlaDestroyDevice(cudlaDevHandle handle)
{
    return onDevice(handle, [&](Process& p, cudlaDevHandle_t& device) {
        device.modules.clear(); // before their runtime
        std::erase_if(p.devices, [&](auto const& d) { return d.get() == &device; });
        return cudlaSuccess;
    });
}

cudlaStatus cudlaDeviceGetAttribute(cudlaDevHandle handle, cudlaDevAttributeType attribute, cudlaDevAttribute* out)
{
    return onDevice(handle, [&](Process&, cudlaDevHandle_t&) {
        if (!out)
            return cudlaErrorInvalidParam;
        if (attribute == CUDLA_UNIFIED_ADDRESSING)
            out->unifiedAddressingSupported = 1;
        else if (attribute == CUDLA_DEVICE_VERSION)
            out->deviceVersion = 0; // a model, not the device
        else
            return cudlaErrorInvalidAttribute;
        return cudlaSuccess;
    });
}

cudlaStatus cudlaGetLastError(cudlaDevHandle handle)
{
    return onDevice(handle, [](Process&, cudlaDevHandle_t&) { return cudlaSuccess; }); // submission has told all
}

cudlaStatus cudlaSetTaskTimeoutInMs(cudlaDevHandle handle, uint32_t timeout)
{
    constexpr uint32_t kMostMs = 1000;
    return onDevice(handle, [&](Process&, cudlaDevHandle_t&) {
        return timeout > 0 && timeout <= kMostMs ? cudlaSuccess : cudlaErrorInvalidParam; // nothing here hangs
    });
}

cudlaStatus cudlaMemRegister(cudlaDevHandle handle, uint64_t const* ptr, size_t size, uint64_t** out, uint32_t flags)
{
    return onDevice(handle, [&](Process&, cudlaDevHandle_t& device) {
        if (!ptr || size == 0 || !out || flags > (CUDLA_READ_ONLY_PERM | CUDLA_TASK_STATISTICS))
            return cudlaErrorInvalidParam;
        if (!device.registered.emplace(ptr, size).second)
            return cudlaErrorMemoryRegistered;
        *out = const_cast<uint64_t*>(ptr);
        return cudlaSuccess;
    });
}

cudlaStatus cudlaMemUnregister(cudlaDevHandle handle, uint64_t const* ptr)
{
    return onDevice(handle, [&](Process&, cudlaDevHandle_t& device) {
        return device.registered.erase(ptr) > 0 ? cudlaSuccess : cudlaErrorInvalidAddress;
    });
}

cudlaStatus cudlaImportExternalMemory(cudlaDevHandle handle, cudlaExternalMemoryHandleDesc const*, uint64_t**, uint32_t)
{
    return onDevice(handle, [](Process&, cudlaDevHandle_t&) { return cudlaErrorUnsupportedOperation; });
}
cudlaStatus cudlaImportExternalSemaphore(cudlaDevHandle handle, cudlaExternalSemaphoreHandleDesc const*, uint64_t**,
                                         uint32_t)
{
    return onDevice(handle, [](Process&, cudlaDevHandle_t&) { return cudlaErrorUnsupportedOperation; });
}
cudlaStatus cudlaGetNvSciSyncAttributes(uint64_t*, uint32_t)
{
    return cudlaErrorUnsupportedOperation;
}

cudlaStatus cudlaModuleLoadFromMemory(cudlaDevHandle handle, uint8_t const* bytes, size_t sizeBytes, cudlaModule* out,
                                      uint32_t flags)
{
    return onDevice(handle, [&](Process& p, cudlaDevHandle_t& device) {
        if (!bytes || sizeBytes == 0 || !out || flags > CUDLA_MODULE_ENABLE_FAULT_DIAGNOSTICS)
            return cudlaErrorInvalidParam;
        if (flags != CUDLA_MODULE_DEFAULT)
            return cudlaErrorUnsupportedOperation;
        if (p.modulesOf(device.core) >= size_t(dla::kMostLoadables))
            return cudlaErrorOutOfResources;
        auto loaded = cudla::Module::load(*device.runtime, bytes, sizeBytes);
        if (!loaded.ok()) {
            device.logger.log(nvinfer1::ILogger::Severity::kERROR, ("cuDLA: " + loaded.error().message).c_str());
            return cudlaErrorUmd;
        }
        device.modules.push_back(std::make_unique<cudlaModule_t>(cudlaModule_t{std::move(*loaded)}));
        *out = device.modules.back().get();
        return cudlaSuccess;
    });
}

cudlaStatus cudlaModuleGetAttributes(cudlaModule module, cudlaModuleAttributeType type, cudlaModuleAttribute* out)
{
    return guarded([&](Process& p) {
        if (!p.ownerOf(module))
            return cudlaErrorInvalidModule;
        if (!out)
            return cudlaErrorInvalidParam;
        if (type < CUDLA_NUM_INPUT_TENSORS || type > CUDLA_OUTPUT_TENSOR_DESCRIPTORS)
            return cudlaErrorInvalidAttribute;
        bool const isInput = type == CUDLA_NUM_INPUT_TENSORS || type == CUDLA_INPUT_TENSOR_DESCRIPTORS;
        auto const tensors = module->module->side(isInput);
        if (type == CUDLA_NUM_INPUT_TENSORS || type == CUDLA_NUM_OUTPUT_TENSORS) {
            (isInput ? out->numInputTensors : out->numOutputTensors) = uint32_t(tensors.size());
            return cudlaSuccess;
        }
        cudlaModuleTensorDescriptor* const list = isInput ? out->inputTensorDesc : out->outputTensorDesc;
        if (!list)
            return cudlaErrorInvalidParam;
        for (size_t i = 0; i < tensors.size(); ++i)
            list[i] = cudla::describe(*tensors[i]);
        return cudlaSuccess;
    });
}

cudlaStatus cudlaModuleUnload(cudlaModule module, uint32_t flags)
{
    return guarded([&](Process& p) {
        cudlaDevHandle_t* const device = p.ownerOf(module);
        if (!device)
            return cudlaErrorInvalidModule;
        if (flags != 0)
            return cudlaErrorInvalidParam;
        std::erase_if(device->modules, [&](auto const& m) { return m.get() == module; });
        return cudlaSuccess;
    });
}

cudlaStatus cudlaSubmitTask(cudlaDevHandle handle, cudlaTask const* tasks, uint32_t count, void* stream, uint32_t flags)
{
    return onDevice(handle, [&](Process& p, cudlaDevHandle_t& device) {
        constexpr uint32_t kKnown = CUDLA_SUBMIT_NOOP | CUDLA_SUBMIT_SKIP_LOCK_ACQUIRE | CUDLA_SUBMIT_DIAGNOSTICS_TASK;
        if (!tasks || count == 0 || (flags & ~kKnown) != 0)
            return cudlaErrorInvalidParam;
        if ((flags & CUDLA_SUBMIT_DIAGNOSTICS_TASK) != 0)
            return cudlaErrorUnsupportedOperation;
        // All are checked before the first is enqueued.
        std::vector<std::vector<void*>> addresses(count);
        for (uint32_t i = 0; i < count; ++i) {
            cudlaTask const& task = tasks[i];
            if (p.ownerOf(task.moduleHandle) != &device)
                return cudlaErrorInvalidModule;
            if (task.waitEvents || task.signalEvents)
                return cudlaErrorUnsupportedOperation; // fences are NvSciSync's
            cudla::Module const& module = *task.moduleHandle->module;
            for (bool isInput : {true, false}) {
                cudlaStatus const status =
                    collect(device, module.side(isInput), isInput ? task.inputTensor : task.outputTensor,
                            isInput ? task.numInputTensors : task.numOutputTensors, addresses[i]);
                if (status != cudlaSuccess)
                    return status;
            }
        }
        for (uint32_t i = 0; i < count && (flags & CUDLA_SUBMIT_NOOP) == 0; ++i)
            if (!tasks[i].moduleHandle->module->enqueue(addresses[i], static_cast<cudaStream_t>(stream)))
                return cudlaErrorCuda;
        return cudlaSuccess;
    });
}

} // extern "C"
