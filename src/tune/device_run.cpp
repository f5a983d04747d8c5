// SPDX-License-Identifier: Apache-2.0
#include "tune/device_run.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "device/cuda/device.h"
#include "device/cuda/target.h"
#include "ir/shape_values.h"
#include "tactic/cuda_tactic.h"
#include "tactic/parts.h"
#include "tune/alike_images.h"

namespace tw::tune {

namespace {

constexpr double kBatchMicroseconds = 250; // of work between two events, so that their resolution (0.5 us) is little
constexpr int kMostRuns = 100;
constexpr double kWorthCapturing = 50;   // microseconds
constexpr unsigned char kNaN = 0xff;     // every byte of a NaN, in any floating type
constexpr int64_t kMostAtOnce = 4 << 20; // bytes of an output that are copied for the sake of some of its elements

} // namespace

struct DeviceTensors::State
{
    std::shared_ptr<cuda::Device const> device;
    std::vector<cuda::Buffer> memory;
    std::vector<TensorRef> inputs, outputs;

    // In memory of its own, which is its last entry then.
    Result<TensorRef> place(TensorRef t, bool asPart)
    {
        TensorRef whole = asPart ? ops::widened(t) : t;
        TW_ASSIGN(cuda::Buffer b, cuda::Buffer::allocate(device, whole.sizeBytes()));
        whole.data = b.data();
        memory.push_back(std::move(b));
        return asPart ? ops::partOf(whole, t) : whole;
    }
    // From the host, which holds its originals alone where it consists of images.
    Result<void> fill(TensorRef const& whole, TensorRef const& from, AlikeImages const* images) const
    {
        cuda::Driver const& driver = device->driver();
        if (!images)
            return cuda::upload(driver, whole.data, from.data, size_t(whole.sizeBytes()));
        auto const size = size_t(whole.sizeBytes() / images->count());
        TW_TRY(cuda::upload(driver, whole.data, from.data, size * AlikeImages::kOriginals));
        uint64_t const at = cuda::addressOf(whole.data);
        for (int64_t n = AlikeImages::kOriginals; n < images->count(); ++n)
            TW_CUDA(driver, cuMemcpyDtoDAsync(at + uint64_t(n) * size, at + uint64_t(images->original(n)) * size, size,
                                              nullptr));
        return driver.check(driver.cuStreamSynchronize(nullptr), "cuStreamSynchronize");
    }
    // A host tensor to its part on the GPU, which was placed last. By way of a whole one there: millions of short rows
    // would take long from the host.
    Result<void> fillPart(TensorRef const& part, TensorRef from, AlikeImages const* images)
    {
        cuda::Driver const& driver = device->driver();
        TW_ASSIGN(cuda::Buffer const whole, cuda::Buffer::allocate(device, from.sizeBytes()));
        TensorRef dense = from;
        dense.data = whole.data();
        TW_TRY(fill(dense, from, images));
        from = dense;
        cuda::Buffer const& around = memory.back();
        TW_CUDA(driver, cuMemsetD8Async(cuda::addressOf(around.data()), kNaN, size_t(around.sizeBytes()), nullptr));
        TW_TRY(ops::copyPixels(driver, from, part, nullptr));
        return driver.check(driver.cuStreamSynchronize(nullptr), "cuStreamSynchronize");
    }
    cuda::Buffer const& memoryOf(size_t output) const { return memory[memory.size() - outputs.size() + output]; }
};

DeviceTensors::DeviceTensors() : state_(std::make_unique<State>()) {}

DeviceTensors::~DeviceTensors() = default;

Result<std::shared_ptr<DeviceTensors>> DeviceTensors::create(ops::Problem const& problem,
                                                             std::span<TensorRef const> inputs,
                                                             std::span<TensorRef const> outputs, bool asParts,
                                                             AlikeImages const* images)
{
    std::shared_ptr<DeviceTensors> tensors(new DeviceTensors);
    State& s = *tensors->state_;
    s.device = problem.target.cuda->device;
    cuda::Current const current(*s.device);
    for (size_t i = 0; i < inputs.size(); ++i) {
        TensorRef t = inputs[i];
        if (t.data && !ir::isShapeInput(*problem.node, i)) {
            bool const asPart = asParts && !problem.inputs[i].constant && ops::canBePart(t);
            TW_ASSIGN(t, s.place(t, asPart));
            AlikeImages const* const its = images && images->hasImages(i) ? images : nullptr;
            TW_TRY(asPart ? s.fillPart(t, inputs[i], its) : s.fill(t, inputs[i], its));
        }
        s.inputs.push_back(t);
    }
    for (TensorRef const& o : outputs) {
        TW_ASSIGN(TensorRef t, s.place(o, asParts && ops::canBePart(o)));
        s.outputs.push_back(t);
    }
    return tensors;
}

struct DeviceRun::State
{
    std::shared_ptr<cuda::Device const> device;
    std::shared_ptr<DeviceTensors> tensors;
    ops::Kernel const* kernel = nullptr;
    cuda::Buffer workspace;
    std::vector<TensorRef> inputs, outputs;
    std::vector<TensorRef> timed; // outputs where an engine has them: what is written in place lies over its input
    std::shared_ptr<ops::Prepared const> prepared;
    std::unique_ptr<cuda::Stream> stream;
    std::unique_ptr<cuda::Timer> timer;
    int runs = 0;          // between two events; 0: not known yet
    void* graph = nullptr; // of as many

    Result<void> launch(std::span<TensorRef> out, uint64_t* randomState)
    {
        ops::RunArgs args{inputs, out, workspace.data(), randomState};
        args.prepared = prepared.get();
        args.stream = stream->handle();
        return kernel->run(args);
    }
    // Of output 0, to the host. Each copy takes longer than some 100 KiB do.
    Result<void> copyElements(TensorRef const& from, std::span<int64_t const> wanted, TensorRef const& list) const
    {
        cuda::Driver const& driver = device->driver();
        int64_t const size = sizeOf(from.type);
        cuda::Buffer const& whole = tensors->state_->memoryOf(0);
        if (whole.sizeBytes() > kMostAtOnce) {
            for (size_t k = 0; k < wanted.size(); ++k)
                TW_CUDA(driver, cuMemcpyDtoHAsync(list.as<char>() + int64_t(k) * size,
                                                  cuda::addressOf(from.as<char>() + from.place(wanted[k]) * size),
                                                  size_t(size), stream->handle()));
            return {};
        }
        std::string bytes(size_t(whole.sizeBytes()), 0);
        TW_CUDA(driver, cuMemcpyDtoHAsync(bytes.data(), cuda::addressOf(whole.data()), bytes.size(), stream->handle()));
        TW_TRY(stream->synchronize());
        char const* const begin = bytes.data() + (from.as<char>() - static_cast<char const*>(whole.data()));
        for (size_t k = 0; k < wanted.size(); ++k)
            std::memcpy(list.as<char>() + int64_t(k) * size, begin + from.place(wanted[k]) * size, size_t(size));
        return {};
    }
    Result<void> launches(int count)
    {
        uint64_t randomState = 1;
        for (int i = 0; i < count; ++i) {
            std::vector<TensorRef> out = timed;
            TW_TRY(launch(out, &randomState));
        }
        return {};
    }
    void place(ir::OpDef const& op)
    {
        timed = outputs;
        for (ir::InPlace const& p : op.inPlace) {
            TensorRef const& x = inputs[size_t(p.input)];
            TensorRef& y = timed[size_t(p.output)];
            if (p.isRepeatable && x.data && x.dims == y.dims && x.stride == y.stride)
                y.data = x.data;
        }
    }
    Result<double> timeRuns(int count)
    {
        TW_TRY(timer->begin(stream->handle()));
        TW_TRY(graph ? device->driver().check(device->driver().cuGraphLaunch(graph, stream->handle()), "cuGraphLaunch")
                     : launches(count));
        TW_TRY(timer->end(stream->handle()));
        TW_ASSIGN(double const ms, timer->milliseconds());
        return ms * 1000 / count;
    }
    // Small kernels take less time than their launches: as a graph, which engines run too. A kernel that cannot be
    // captured is timed with its launches.
    void capture(int count)
    {
        cuda::Driver const& d = device->driver();
        if (!d.cuStreamBeginCapture || !d.cuStreamEndCapture || !d.cuGraphInstantiate || !d.cuGraphLaunch ||
            !d.cuGraphExecDestroy || !d.cuGraphDestroy ||
            d.cuStreamBeginCapture(stream->handle(), cuda::kCaptureRelaxed) != cuda::kSuccess)
            return;
        bool const ran = launches(count).ok();
        void* captured = nullptr;
        bool const ended = d.cuStreamEndCapture(stream->handle(), &captured) == cuda::kSuccess;
        if (!ran || !ended || !captured || d.cuGraphInstantiate(&graph, captured, 0) != cuda::kSuccess)
            graph = nullptr;
        if (captured)
            d.cuGraphDestroy(captured);
    }
    ~State()
    {
        if (!graph)
            return;
        cuda::Current const current(*device);
        device->driver().cuGraphExecDestroy(graph);
    }
};

DeviceRun::DeviceRun() : state_(std::make_unique<State>()) {}

DeviceRun::~DeviceRun() = default;

Result<std::unique_ptr<DeviceRun>> DeviceRun::create(ops::Problem const& problem, ops::Kernel const& kernel,
                                                     std::shared_ptr<DeviceTensors> tensors)
{
    std::unique_ptr<DeviceRun> run(new DeviceRun);
    State& s = *run->state_;
    s.device = problem.target.cuda->device;
    s.kernel = &kernel;
    s.inputs = tensors->state_->inputs;
    s.outputs = tensors->state_->outputs;
    s.tensors = std::move(tensors);
    s.place(*problem.node->op);
    cuda::Current const current(*s.device);
    TW_ASSIGN(s.workspace, cuda::Buffer::allocate(s.device, kernel.workspaceBytes(s.inputs, s.outputs)));
    TW_ASSIGN(s.prepared, kernel.prepare(s.inputs, s.outputs));
    TW_ASSIGN(s.stream, cuda::Stream::create(s.device));
    TW_ASSIGN(s.timer, cuda::Timer::create(s.device));
    return run;
}

Result<void> DeviceRun::run(std::span<TensorRef> outputs, std::span<int64_t const> wanted, TensorRef const& list,
                            uint64_t* randomState)
{
    State& s = *state_;
    cuda::Driver const& driver = s.device->driver();
    cuda::Current const current(*s.device);
    CUstream_st* const stream = s.stream->handle();
    std::vector<TensorRef> out = s.outputs;
    for (size_t i = 0; i < out.size(); ++i)
        if (cuda::Buffer const& m = s.tensors->state_->memoryOf(i); m.sizeBytes() > 0)
            TW_CUDA(driver, cuMemsetD8Async(cuda::addressOf(m.data()), kUnwritten, size_t(m.sizeBytes()), stream));
    TW_TRY(s.launch(out, randomState));
    for (size_t i = 0; i < out.size(); ++i) {
        outputs[i].dims = out[i].dims;
        if (out[i].sizeBytes() == 0)
            continue;
        if (i == 0 && !wanted.empty()) {
            if (out[i].dims != s.outputs[i].dims)
                return internalError("it gives {} as output 0, which is {}", out[i].dims.str(),
                                     s.outputs[i].dims.str());
            TW_TRY(s.copyElements(out[i], wanted, list));
            continue;
        }
        TensorRef dense = out[i];
        cuda::Buffer copied;
        if (out[i].stride > 0) {
            dense.stride = 0;
            TW_ASSIGN(copied, cuda::Buffer::allocate(s.device, dense.sizeBytes()));
            dense.data = copied.data();
            TW_TRY(ops::copyPixels(driver, out[i], dense, stream));
        }
        TW_CUDA(driver,
                cuMemcpyDtoHAsync(outputs[i].data, cuda::addressOf(dense.data), size_t(dense.sizeBytes()), stream));
        if (copied.data())
            TW_TRY(s.stream->synchronize()); // it goes
    }
    return s.stream->synchronize();
}

Result<double> DeviceRun::microseconds(int leastRuns)
{
    State& s = *state_;
    cuda::Current const current(*s.device);
    if (s.runs == 0) {
        TW_ASSIGN(double const first, s.timeRuns(1)); // warms up
        TW_ASSIGN(double const one, s.timeRuns(1));
        s.runs = std::clamp(int(kBatchMicroseconds / std::max(std::min(first, one), 1.0)), 1, kMostRuns);
        if (std::min(first, one) < kWorthCapturing) {
            s.capture(s.runs);
            TW_TRY(s.timeRuns(s.runs)); // the first launch of a graph uploads it
        }
    }
    int const batches = std::max((leastRuns + s.runs - 1) / s.runs, 1);
    double sum = 0;
    for (int i = 0; i < batches; ++i) {
        TW_ASSIGN(double const one, s.timeRuns(s.runs));
        sum += one;
    }
    return sum / batches;
}

} // namespace tw::tune
