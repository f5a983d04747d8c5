// SPDX-License-Identifier: Apache-2.0
#include "runtime/context.h"

#include <utility>

#include "device/cuda/device.h"
#include "device/cuda/target.h"
#include "runtime/alias.h"
#include "runtime/execute_cuda.h"
#include "runtime/profile_shapes.h"
#include "tactic/per_context.h"

namespace tw::runtime {

namespace {

// On a CPU as many as decoders alternate between: steps of 64 sequences have 20 shapes, pieces of prompts as many as they have tokens. One takes a
// millisecond and 30 KiB for each layer of a decoder. On a GPU each has graphs.
constexpr size_t kCachedInstances = 64, kCachedInstancesCuda = 8;

plan::ProfileRange const* rangeOf(Engine const& e, int profile, std::string const& name)
{
    auto const& profiles = e.contents().profiles;
    if (profile < 0 || profile >= int(profiles.size()))
        return nullptr;
    auto it = profiles[size_t(profile)].inputs.find(name);
    return it == profiles[size_t(profile)].inputs.end() ? nullptr : &it->second;
}

} // namespace

Context::Context(std::shared_ptr<Engine const> engine) : engine_(std::move(engine)), generation_(engine_->generation())
{
    inputs_.resize(engine_->graph().inputs.size());
    setProfile(-1);
}

Result<void> Context::makeStates()
{
    return makeStates(*generation_, {});
}

Result<void> Context::makeStates(Generation const& now, States const& had)
{
    for (auto const& block : now.blocks)
        TW_TRY(makeStates(*block, had));
    return {};
}

// Objects of kernels that had one stay.
Result<void> Context::makeStates(LoadedBlock const& block, States const& had)
{
    for (LoadedStep const& step : block.steps) {
        auto const* kernel = dynamic_cast<ops::PerContext const*>(step.kernel.get());
        if (kernel && !states_.contains(step.kernel.get())) {
            if (auto const old = had.find(step.kernel.get()); old != had.end())
                states_.insert(*old);
            else
                TW_SET(states_[step.kernel.get()], kernel->makeState(sharedByStates_));
        }
        for (auto const& region : step.regions)
            TW_TRY(makeStates(*region, had));
    }
    return {};
}

void Context::lendStates(Instance& instance) const
{
    for (size_t i = 0; i < instance.block->steps.size(); ++i) {
        auto const state = states_.find(instance.block->steps[i].kernel.get());
        if (state != states_.end())
            instance.kept[i] = std::make_unique<ops::Lent>(state->second);
        for (auto const& region : instance.regions[i])
            if (region)
                lendStates(*region);
    }
}

void Context::setProfile(int profile)
{
    profile_ = profile;
    for (size_t i = 0; i < inputs_.size(); ++i) {
        ir::Value const& v = *engine_->graph().inputs[i];
        inputs_[i] = Input{};
        plan::ProfileRange const* range = rangeOf(*engine_, profile_, v.name);
        bool const isFixed = range && range->hasShape && range->min == range->max;
        if (isStatic(v.shape) || isFixed) {
            inputs_[i].dims = isStatic(v.shape) ? ir::extentsOf(v.shape) : range->min;
            inputs_[i].hasShape = true;
        }
    }
}

bool Context::needsContents(int input) const
{
    return engine_->graph().inputs[size_t(input)]->host;
}

Result<void> Context::setInputShape(int input, Extents const& dims)
{
    ir::Value const& v = *engine_->graph().inputs[size_t(input)];
    std::string const where = "input '" + v.name + "'";
    if (dims.rank != v.rank())
        return invalidArgument("{}: shape {} has {} dimensions, the engine has {}", where, dims.str(), dims.rank,
                               str(v.shape));
    plan::ProfileRange const* range = rangeOf(*engine_, profile_, v.name);
    if (!isStatic(v.shape) && profile_ < 0)
        return invalidState("{}: choose an optimization profile before setting shapes", where);
    for (int d = 0; d < dims.rank; ++d) {
        std::string const& name = v.shape[size_t(d)].isConst() ? std::string() : v.shape[size_t(d)].str();
        std::string const which = fmt::format("dimension {}{}", d, name.empty() ? "" : " (" + name + ")");
        if (v.shape[size_t(d)].isConst() && v.shape[size_t(d)].value() != dims[d])
            return invalidArgument("{}: {} is {}, the engine has {}", where, which, dims[d],
                                   v.shape[size_t(d)].value());
        if (range && range->hasShape && (dims[d] < range->min[d] || dims[d] > range->max[d]))
            return invalidArgument("{}: {} is {}, outside {}..{} of optimization profile {}", where, which, dims[d],
                                   range->min[d], range->max[d], profile_);
    }
    Input& in = inputs_[size_t(input)];
    if (!in.hasShape || !(in.dims == dims))
        in.contents.reset();
    in.dims = dims;
    in.hasShape = true;
    return {};
}

Result<void> Context::setInputContents(int input, TensorRef const& elements)
{
    ir::Value const& v = *engine_->graph().inputs[size_t(input)];
    Input& in = inputs_[size_t(input)];
    if (!in.hasShape)
        return invalidState("input '{}': set its shape before its values", v.name);
    auto copy = std::make_shared<Tensor>(v.type, in.dims);
    if (copy->ref().sizeBytes() > 0)
        std::memcpy(copy->data(), elements.data, size_t(copy->ref().sizeBytes()));
    if (plan::ProfileRange const* range = rangeOf(*engine_, profile_, v.name)) {
        for (size_t k = 0; k < range->minValues.size() && int64_t(k) < copy->count(); ++k) {
            int64_t const x = copy->ref().getInt(int64_t(k));
            if (x < range->minValues[k] || x > range->maxValues[k])
                return invalidArgument("input '{}': value {} at {} is outside {}..{} of optimization profile {}",
                                       v.name, x, k, range->minValues[k], range->maxValues[k], profile_);
        }
    }
    in.contents = std::move(copy);
    return {};
}

std::string Context::key() const
{
    std::string k = std::to_string(profile_);
    for (Input const& in : inputs_) {
        k += in.dims.str();
        if (in.contents)
            k.append(static_cast<char const*>(in.contents->data()), size_t(in.contents->ref().sizeBytes()));
    }
    return k;
}

Result<void> Context::follow()
{
    auto now = engine_->generation();
    if (now == generation_)
        return {};
    // The driver waits for what still uses memory before it frees it; a client's allocator may hand it out at once.
    if (cuda::Target const* gpu = engine_->cuda(); gpu && gpu->device->allocator()) {
        cuda::Current const current(*gpu->device);
        gpu->device->driver().cuCtxSynchronize();
    }
    cache_.clear();
    auto const before = std::exchange(generation_, std::move(now));
    States const had = std::exchange(states_, {});
    return had.empty() ? Result<void>() : makeStates(*generation_, had);
}

Result<std::shared_ptr<Instance>> Context::instance()
{
    TW_TRY(follow());
    std::vector<InputState> states;
    for (size_t i = 0; i < inputs_.size(); ++i) {
        if (!inputs_[i].hasShape)
            return invalidState("input '{}' has no shape: call setInputShape()", engine_->graph().inputs[i]->name);
        InputState s;
        s.dims = inputs_[i].dims;
        if (inputs_[i].contents)
            s.contents = inputs_[i].contents->ref();
        states.push_back(s);
    }
    std::string const k = key();
    for (auto it = cache_.begin(); it != cache_.end(); ++it) {
        if (it->first == k) {
            cache_.splice(cache_.begin(), cache_, it);
            return cache_.front().second;
        }
    }
    TW_TRY(checkEqualDims(engine_->graph(), states));
    TW_ASSIGN(auto fresh, resolve(generation_->block(profile_), states));
    std::shared_ptr<Instance> made = std::move(fresh);
    made->owner = generation_;
    TW_TRY(placeInArena(*made, {.like = generation_->example.get()}));
    if (made->arenaBytes > engine_->arenaBytes() && profile_ >= 0 && profile_ < int(generation_->largest.size()))
        placeLike(*made, *generation_->largest[size_t(profile_)]);
    if (engine_->cuda())
        TW_TRY(uploadContents(*made, engine_->cuda()->device));
    if (!states_.empty())
        lendStates(*made);
    cache_.emplace_front(k, made);
    if (cache_.size() > (engine_->cuda() ? kCachedInstancesCuda : kCachedInstances))
        cache_.pop_back();
    return made;
}

} // namespace tw::runtime
