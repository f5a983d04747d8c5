// SPDX-License-Identifier: Apache-2.0
// What a context keeps between runs: its optimization profile, and shapes that follow from what the client set.
#include <algorithm>
#include <cstring>

#include "api/engine/engine.h"

namespace tw::api {

ContextObject::ContextObject(Reporter const& r, nvinfer1::ICudaEngine const& e, std::shared_ptr<EngineState> s)
    : reporter(r), engine(&e), state(s), context(s->core), io(size_t(s->ioCount())),
      nvtxVerbosity(static_cast<nvinfer1::ProfilingVerbosity>(state->core->contents().profilingVerbosity)),
      alive(std::make_shared<ContextObject*>(this))
{
    late = std::make_shared<std::function<void(Error const&)> const>(
        [weak = std::weak_ptr(alive)](Error const& e) noexcept {
            if (auto const context = weak.lock()) {
                guardedVoid((*context)->reporter, [&]() -> Result<void> { return e; });
                (*context)->hadLateError = true;
            }
        });
    // The first context, or one that has no other beside it, has profile 0 without asking; with static shapes every
    // context does.
    std::lock_guard lock(state->mutex);
    bool const first = state->liveContexts++ == 0;
    if (!state->isDynamic()) {
        context.setProfile(0);
    } else if (first) {
        context.setProfile(0);
        state->profilesInUse.insert(0);
    }
}

Result<void> ContextObject::makeErrors()
{
    constexpr int64_t kCountsBytes = 2 * sizeof(int32_t);
    for (char const* tensor : {safety::kErrorsBefore, safety::kErrorsAfter}) {
        int const at = state->core->ioIndex(tensor);
        if (at < 0)
            return {};
        if (!errors.data())
            TW_TRY(errors.allocate(kCountsBytes, state->allocator, state->core->cuda()));
        io[size_t(at)].address = errors.data();
    }
    if (!state->core->cuda())
        std::memset(errors.data(), 0, kCountsBytes);
    return {};
}

ContextObject::~ContextObject()
{
    std::lock_guard lock(state->mutex);
    --state->liveContexts;
    if (state->isDynamic())
        state->profilesInUse.erase(context.profile());
}

Result<void> ContextObject::chooseProfile(int profile)
{
    int const count = int(std::max<size_t>(state->core->contents().profiles.size(), 1));
    if (profile < 0 || profile >= count)
        return invalidArgument("optimization profile {} does not exist; the engine has {}", profile, count);
    if (profile == context.profile())
        return {};
    std::lock_guard lock(state->mutex);
    if (state->isDynamic()) {
        if (state->profilesInUse.contains(profile))
            return invalidState("optimization profile {} is in use by another execution context; each context needs a "
                                "profile of its own",
                                profile);
        state->profilesInUse.erase(context.profile());
        state->profilesInUse.insert(profile);
    }
    context.setProfile(profile);
    return {};
}

Result<int> ContextObject::ioOf(int32_t binding, char const* method) const
{
    TW_ASSIGN(int const io, state->ioOf(binding, method));
    int const count = state->ioCount(), of = binding / count;
    if (context.profile() < 0 || of == context.profile())
        return io;
    if (of != 0)
        return invalidArgument("{}: binding '{}' belongs to optimization profile {}, the context uses profile {}",
                               method, state->bindingNames[size_t(binding)], of, context.profile());
    reporter.warning("{}: binding index {} belongs to profile 0 and was corrected to {}", method, binding,
                     binding + count * context.profile());
    return io;
}

int ContextObject::inputPosition(int index) const
{
    auto const& inputs = state->core->graph().inputs;
    auto it = std::ranges::find(inputs, &state->core->ioValue(index));
    return it == inputs.end() ? -1 : int(it - inputs.begin());
}

Result<void> ContextObject::needProfile() const
{
    if (context.profile() >= 0)
        return {};
    std::string inputs;
    for (ir::Value const* v : state->core->graph().inputs)
        if (v->host || !ir::isStatic(v->shape))
            inputs += (inputs.empty() ? "'" : ", '") + v->name + "'";
    return invalidState("the context has no optimization profile: call setOptimizationProfileAsync() first, for inputs "
                        "{} (the engine has profiles 0..{})",
                        inputs, state->ranges.size() - 1);
}

Result<void> ContextObject::readContents(int index)
{
    int const in = inputPosition(index);
    void* const address = io[size_t(index)].address;
    if (in < 0 || !address || !context.needsContents(in) || !context.hasInputShape(in))
        return {};
    if (cuda::Target const* const gpu = state->core->cuda())
        TW_TRY(checkOnHost(*gpu->device, address, state->core->ioValue(index).name));
    return context.setInputContents(in, TensorRef{state->core->ioValue(index).type, context.inputShape(in), address});
}

Result<std::shared_ptr<runtime::Instance>> ContextObject::prepare()
{
    TW_TRY(needProfile());
    for (int i = 0; i < state->ioCount(); ++i) {
        TW_TRY(readContents(i));
        int const in = inputPosition(i);
        if (in >= 0 && context.needsContents(in) && context.hasInputShape(in) && !context.hasInputContents(in))
            return invalidState("shape tensor '{}' has no values: call setTensorAddress() or setInputShapeBinding()",
                                state->core->ioValue(i).name);
    }
    return context.instance();
}

} // namespace tw::api
