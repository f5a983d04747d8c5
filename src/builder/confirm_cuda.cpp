// SPDX-License-Identifier: Apache-2.0
#include "builder/confirm_cuda.h"

#include <algorithm>

#include "device/cuda/target.h"
#include "device/cuda/upload.h"
#include "runtime/execute_cuda.h"
#include "tune/check.h"

namespace tw::builder {

namespace {

constexpr int kFirstRuns = 3; // the second is captured as a graph, which the third uploads
constexpr double kBatchMicroseconds = 2000;
constexpr int kMostRuns = 50;

} // namespace

struct CudaRunnable::State
{
    std::shared_ptr<cuda::Device const> device;
    runtime::LoadedBlock* block = nullptr;
    std::unique_ptr<runtime::Instance> instance;
    std::vector<cuda::Buffer> memory;
    std::vector<TensorRef> inputs, outputs;
    void* arena = nullptr;
    std::unique_ptr<cuda::Stream> stream;
    std::unique_ptr<cuda::Timer> timer;
    int runs = 0; // between two events; 0: not known yet
    uint64_t random = 1;

    Result<void*> allocate(int64_t bytes)
    {
        TW_ASSIGN(cuda::Buffer b, cuda::Buffer::allocate(device, bytes));
        memory.push_back(std::move(b));
        return memory.back().data();
    }
    Result<void> takeInput(ir::Value const& v, runtime::InputState const& in, size_t i)
    {
        inputs.push_back(in.contents);
        if (in.contents.data)
            return {};
        Tensor const random_(v.type, in.dims, v.format);
        if (!random_.data())
            return Error{ErrorCode::kFailedAllocation, "no memory to time the engine"};
        // Integers are indices as a rule: 0 and 1 are in range almost everywhere.
        tune::fillRandom(random_.ref(), isFloating(v.type) ? ops::Domain{} : ops::Domain{0, 1, true, false}, i);
        TensorRef t = random_.ref();
        TW_ASSIGN(t.data, allocate(t.sizeBytes()));
        inputs.back() = t;
        return cuda::upload(device->driver(), t.data, random_.data(), size_t(t.sizeBytes()));
    }
    Result<void> takeOutput(ir::Value const& v)
    {
        runtime::ValueState const& s = instance->values[size_t(block->indexOf(&v))];
        if (v.host || !s.exact)
            return unsupported("output '" + v.name + "' is on the host or has a size that depends on data");
        TensorRef t{v.type, s.dims, nullptr, v.format};
        TW_ASSIGN(t.data, allocate(t.sizeBytes()));
        outputs.push_back(t);
        return {};
    }
    Result<double> timeRuns(int count)
    {
        TW_TRY(timer->begin(stream->handle()));
        for (int i = 0; i < count; ++i) {
            std::vector<TensorRef> out = outputs;
            runtime::ExecuteArgs args{arena, inputs, out, &random};
            args.device = &device;
            args.stream = stream->handle();
            TW_TRY(runtime::execute(*instance, args));
        }
        TW_TRY(timer->end(stream->handle()));
        TW_ASSIGN(double const ms, timer->milliseconds());
        return ms * 1000 / count;
    }
};

CudaRunnable::CudaRunnable() : state_(std::make_unique<State>()) {}

CudaRunnable::~CudaRunnable()
{
    if (!state_->block)
        return;
    if (state_->stream)
        (void)state_->stream->synchronize().ok();
    state_->block->deviceConstants.clear(); // they go with this
    state_->block->constantMemory.clear();
}

Result<std::unique_ptr<CudaRunnable>>
CudaRunnable::make(Attempt const& attempt, std::vector<runtime::InputState> const& inputs, cuda::Target const& target)
{
    std::unique_ptr<CudaRunnable> r(new CudaRunnable);
    State& s = *r->state_;
    s.device = target.device;
    s.block = attempt.block.get();
    cuda::Current const current(*s.device);
    TW_TRY(runtime::uploadConstants(*s.block, nullptr, s.device));
    TW_ASSIGN(s.instance, runtime::resolve(*s.block, inputs));
    TW_TRY(runtime::placeInArena(*s.instance));
    TW_TRY(runtime::uploadContents(*s.instance, s.device));
    TW_ASSIGN(s.arena, s.allocate(s.instance->arenaBytes));
    for (ir::Value const* v : attempt.graph->outputs)
        TW_TRY(s.takeOutput(*v));
    for (size_t i = 0; i < inputs.size(); ++i)
        TW_TRY(s.takeInput(*attempt.graph->inputs[i], inputs[i], i));
    TW_ASSIGN(s.stream, cuda::Stream::create(s.device));
    TW_ASSIGN(s.timer, cuda::Timer::create(s.device));
    return r;
}

Result<double> CudaRunnable::microseconds()
{
    State& s = *state_;
    cuda::Current const current(*s.device);
    if (s.runs == 0) {
        double one = 0;
        for (int i = 0; i < kFirstRuns; ++i) {
            TW_ASSIGN(one, s.timeRuns(1));
        }
        s.runs = std::clamp(int(kBatchMicroseconds / std::max(one, 1.0)), 1, kMostRuns);
    }
    return s.timeRuns(s.runs);
}

} // namespace tw::builder
