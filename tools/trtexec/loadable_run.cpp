// SPDX-License-Identifier: Apache-2.0
#include "loadable_run.h"

#include <algorithm>
#include <chrono>

#include <cudla.h>
#include <dlfcn.h>
#include <fmt/core.h>

#include "bindings.h"
#include "device_stream.h"
#include "output_file.h"
#include "outputs.h"
#include "report.h"

namespace tw::trtexec {

namespace {

// The functions of libcudla that a run takes.
class Cudla
{
public:
    Cudla() : library_(openLibrary("libcudla.so.1", "--safe")) {}
    template <class Function, class... Args>
    void call(char const* name, Args... args) const
    {
        auto* const function = reinterpret_cast<Function*>(dlsym(library_, name));
        if (!function)
            throw Failure(std::string("--safe: libcudla.so.1 has no ") + name);
        if (cudlaStatus const status = function(args...); status != cudlaSuccess)
            throw Failure(fmt::format("{} fails with cudlaStatus {}", name, static_cast<int>(status)));
    }

private:
    void* library_; // never closed: streams may still know it
};
#define TW_CUDLA(function, ...) cudla_.call<decltype(::function)>(#function __VA_OPT__(, ) __VA_ARGS__)

// As a tensor of a loadable lies in memory.
Layout layoutOf(cudlaModuleTensorDescriptor const& t, int32_t elementBytes)
{
    Layout layout;
    layout.linear = false;
    layout.dims = nvinfer1::Dims4(static_cast<int32_t>(t.n), static_cast<int32_t>(t.c), static_cast<int32_t>(t.h),
                                  static_cast<int32_t>(t.w));
    bool const hasVectors = t.dataFormat == CUDLA_DATA_FORMAT_NCxHWx;
    int32_t const unit = hasVectors ? static_cast<int32_t>(t.stride[0]) : elementBytes;
    layout.components = unit / elementBytes;
    layout.vectorDim = hasVectors ? 1 : -1;
    layout.strides.nbDims = 4;
    for (int32_t i = 0; i < 4; ++i) // of w, h, c, n there
        layout.strides.d[i] = static_cast<int32_t>(t.stride[3 - i]) / unit;
    layout.batchStride = layout.elements();
    return layout;
}

class LoadableRun
{
public:
    LoadableRun(Log& log, Options const& options, Workspace const& work) : log_(log), options_(options)
    {
        uint64_t cores = 0;
        TW_CUDLA(cudlaDeviceGetCount, &cores);
        checkDlaCore(options.system, static_cast<int32_t>(cores));
        TW_CUDLA(cudlaCreateDevice, static_cast<uint64_t>(options.system.dlaCore), &device_,
                 static_cast<uint32_t>(CUDLA_CUDA_DLA));
        TW_CUDLA(cudlaModuleLoadFromMemory, device_, static_cast<uint8_t const*>(work.planData()), work.planSize(),
                 &module_, 0U);
        log.info("DLA loadable loaded through libcudla (model, not the device)");
        for (bool const isInput : {true, false})
            addTensors(isInput);
        checkInputFiles(options, bindings_, "loadable");
    }
    ~LoadableRun()
    {
        try {
            TW_CUDLA(cudlaDestroyDevice, device_);
        } catch (Failure const& why) {
            log_.warning(why.what());
        }
    }
    LoadableRun(LoadableRun const&) = delete;
    LoadableRun& operator=(LoadableRun const&) = delete;

    RunTrace run()
    {
        log_.info("Starting inference");
        InferenceOptions const& inference = options_.inference;
        RunTrace trace;
        trace.warmUpMs = inference.warmUpMs;
        auto const start = Clock::now();
        auto const now = [&] { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); };
        double const end = inference.warmUpMs + inference.durationSec * 1000;
        for (int64_t measured = 0; measured < inference.iterations || now() < end;) {
            trace.queries.push_back(query(now));
            measured += trace.queries.back().startCompute >= inference.warmUpMs;
        }
        return trace;
    }
    std::vector<Binding> const& bindings() const { return bindings_; }

private:
    using Clock = std::chrono::steady_clock;

    void addTensors(bool isInput)
    {
        cudlaModuleAttribute attribute{};
        TW_CUDLA(cudlaModuleGetAttributes, module_, isInput ? CUDLA_NUM_INPUT_TENSORS : CUDLA_NUM_OUTPUT_TENSORS,
                 &attribute);
        std::vector<cudlaModuleTensorDescriptor> tensors(attribute.numInputTensors);
        attribute.inputTensorDesc = tensors.data();
        TW_CUDLA(cudlaModuleGetAttributes, module_,
                 isInput ? CUDLA_INPUT_TENSOR_DESCRIPTORS : CUDLA_OUTPUT_TENSOR_DESCRIPTORS, &attribute);
        for (cudlaModuleTensorDescriptor const& t : tensors) {
            Binding b;
            b.name = t.name;
            b.input = isInput;
            bool const isHalf = t.dataType == CUDLA_DATA_TYPE_HALF;
            b.type = isHalf ? nvinfer1::DataType::kHALF : nvinfer1::DataType::kINT8;
            b.layout = layoutOf(t, isHalf ? 2 : 1);
            allocate(b);
            if (b.sizeBytes() != t.size)
                throw Failure("tensor '" + b.name + "' of the loadable has another size than its strides say");
            if (isInput)
                fillInput(log_, b, options_, nullptr, bindings_.size(), true);
            uint64_t* registered = nullptr;
            TW_CUDLA(cudlaMemRegister, device_, static_cast<uint64_t const*>(b.device.data()), b.sizeBytes(),
                     &registered, 0U);
            (isInput ? inputs_ : outputs_).push_back(registered);
            bindings_.push_back(std::move(b));
        }
    }

    template <class Now>
    QueryTimes query(Now const& now)
    {
        QueryTimes q;
        bool const copies = options_.inference.transfers;
        q.startEnq = q.startH2d = now();
        if (copies || isFirst_)
            for (Binding& b : bindings_)
                if (b.input)
                    copyToDevice(b.device.data(), b.host.data(), b.sizeBytes(), stream_.handle());
        isFirst_ = false;
        stream_.synchronize();
        q.endH2d = q.startCompute = now();
        cudlaTask task{};
        task.moduleHandle = module_;
        task.inputTensor = inputs_.data();
        task.numInputTensors = static_cast<uint32_t>(inputs_.size());
        task.outputTensor = outputs_.data();
        task.numOutputTensors = static_cast<uint32_t>(outputs_.size());
        TW_CUDLA(cudlaSubmitTask, device_, &task, 1U, stream_.handle(), 0U);
        stream_.synchronize();
        q.endCompute = q.startD2h = now();
        for (Binding& b : bindings_)
            if (!b.input)
                copyFromDevice(b.host.data(), b.device.data(), b.sizeBytes(), stream_.handle());
        stream_.synchronize();
        q.endD2h = q.endEnq = now();
        return q;
    }

    Log& log_;
    Options const& options_;
    Cudla cudla_;
    DeviceStream stream_;
    cudlaDevHandle device_ = nullptr;
    cudlaModule module_ = nullptr;
    std::vector<Binding> bindings_;
    std::vector<uint64_t*> inputs_, outputs_;
    bool isFirst_ = true;
};

} // namespace

bool runLoadable(Log& log, Options const& options, Workspace const& work)
{
    ReportingOptions const& reporting = options.reporting;
    if (reporting.profiles() || reporting.dumpLayerInfo || !reporting.exportLayerInfo.empty())
        throw Failure("A loadable tells nothing of its layers: --dumpProfile, --exportProfile, --dumpLayerInfo and "
                      "--exportLayerInfo are for engines");
    if (options.inference.streams > 1 || options.inference.cudaGraph)
        log.warning("A loadable runs on one stream, and in no graph of its own");
    LoadableRun run(log, options, work);
    RunTrace const trace = run.run();
    reportPerformance(log, trace, reporting);
    if (!reporting.exportTimes.empty())
        writeFile(reporting.exportTimes, timesJson(measuredQueries(trace)));
    if (reporting.dumpOutput)
        dumpOutputs(log, run.bindings());
    if (!reporting.exportOutput.empty())
        writeFile(reporting.exportOutput, outputsJson(run.bindings()));
    return reporting.compare.empty() || compareOutputs(log, run.bindings(), reporting);
}

} // namespace tw::trtexec
