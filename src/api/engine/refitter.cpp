// SPDX-License-Identifier: Apache-2.0
// IRefitter. An engine knows all weights that it was made of, so whatever part of them is set is complete: nothing is ever
// missing. Memory of the client is read by refitCudaEngine().
#include "api/engine/refitter.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>

#include "api/client_memory.h"
#include "api/object_methods.h"
#include "device/thread_pool.h"
#include "recipe/recipes.h"
#include "runtime/constants.h"

using namespace tw;
using namespace tw::api;

namespace tw::api {

namespace {

char const* nameOfRole(nvinfer1::WeightsRole role)
{
    constexpr char const* kNames[] = {"kernel", "bias", "shift", "scale", "constant", "any"};
    size_t const i = static_cast<size_t>(role);
    return i < std::size(kNames) ? kNames[i] : "unknown role";
}

// `count`: of the elements that are wanted. FP32 and FP16 are converted into each other.
Result<void> checkSourceWeights(RefitterObject::Source const& s, int64_t count, nvinfer1::Weights const& w)
{
    std::string const what = (s.name.empty() ? std::string() : "weights '" + s.name + "' of ") + "layer '" + s.layer +
                             "': its " + nameOfRole(s.role) + " weights ";
    if (w.count != count)
        return invalidArgument("{}are {} elements, {} are given", what, count, w.count);
    if (!isFloating(static_cast<DataType>(w.type))) {
        int32_t const number = static_cast<int32_t>(w.type);
        bool const isKnown = number >= 0 && number < kDataTypeCount;
        return invalidArgument("{}are of type {}, those given are of {}; convert them first", what, nameOf(s.type),
                               isKnown ? nameOf(static_cast<DataType>(number)) : std::to_string(number));
    }
    if (!w.values && w.count != 0)
        return invalidArgument("{}are given as a null pointer", what);
    return {};
}

// "W<mark>128/512": a part of array W (importers/common/network.h). False: the whole name is that of the weights.
bool readPart(char const* name, RefitterObject::Source& s)
{
    char const* const mark = std::strchr(name, recipe::kPartMark);
    long long begin = 0, all = 0;
    int end = 0;
    if (!mark || std::sscanf(mark + 1, "%lld/%lld%n", &begin, &all, &end) != 2 || mark[1 + end] || begin < 0 ||
        begin > all || s.count > all - begin)
        return false;
    s.name.assign(name, mark);
    s.begin = begin;
    s.ofArray = all;
    return true;
}

void addRange(std::vector<RefitterObject::Range>& ranges, char const* tensor, size_t constant)
{
    for (RefitterObject::Range& r : ranges)
        if (std::strcmp(r.tensor, tensor) == 0) {
            r.constants.push_back(constant);
            return;
        }
    ranges.push_back({tensor, {constant}, std::nullopt});
}

} // namespace

RefitterObject::RefitterObject(nvinfer1::ILogger* logger, std::shared_ptr<EngineState> s)
    : reporter(logger), use(logger), state(std::move(s))
{
    ir::Graph* const recipes = state->core->contents().recipes.get();
    if (!recipes)
        return;
    std::vector<ir::Value*> const constants = runtime::constantsOf(*recipes);
    for (size_t i = 0; i < constants.size(); ++i) {
        ir::Constant const& c = *constants[i]->constant;
        bool const isRange = c.role == ir::WeightsRole::kAny && isFullFloat(constants[i]->type) &&
                             ir::extentsOf(constants[i]->shape).volume() == 1;
        if (!c.layer.empty() && isRange)
            addRange(ranges, c.layer.c_str(), i);
        else if (!c.layer.empty())
            addSource(c, *constants[i], i);
    }
    for (Source& s : sources)
        s.hasTwins = std::ranges::any_of(sources, [&](Source const& other) {
            return &other != &s && other.role == s.role && std::strcmp(other.layer, s.layer) == 0 &&
                   (other.name != s.name || other.begin != s.begin);
        });
}

void RefitterObject::addSource(ir::Constant const& c, ir::Value const& v, size_t constant)
{
    int64_t const count = ir::extentsOf(v.shape).volume();
    Source s{c.layer.c_str(), c.weightsName, static_cast<nvinfer1::WeightsRole>(c.role), v.type, count, constant};
    s.ofArray = count;
    readPart(c.weightsName.c_str(), s);
    sources.push_back(std::move(s));
}

Result<void> RefitterObject::take(char const* method, std::vector<size_t> const& wanted,
                                  nvinfer1::Weights const& weights)
{
    for (size_t i : wanted)
        if (auto fits = checkSourceWeights(sources[i], sources[i].ofArray, weights); !fits.ok())
            return std::move(fits).error().in(method);
    for (size_t i : wanted) {
        Source const& s = sources[i];
        auto const* const bytes = static_cast<char const*>(weights.values);
        int64_t const size = sizeOf(static_cast<DataType>(weights.type));
        given[i] = {weights.type, bytes ? bytes + s.begin * size : nullptr, s.count};
    }
    return {};
}

Result<RefitterObject::Range*> RefitterObject::rangeOf(char const* method, char const* tensor)
{
    for (Range& r : ranges)
        if (tensor && std::strcmp(r.tensor, tensor) == 0)
            return &r;
    return invalidArgument("{}: no tensor '{}' of the engine is INT8 by a dynamic range; getTensorsWithDynamicRange() "
                           "lists those that are",
                           method, tensor ? tensor : "(null)");
}

float RefitterObject::largestOf(Range const& range) const
{
    if (range.given)
        return *range.given;
    auto const now = state->core->generation();
    ir::Graph const& recipes = now->recipes ? *now->recipes : *state->core->contents().recipes;
    ir::Value const& v = *runtime::constantsOf(const_cast<ir::Graph&>(recipes))[range.constants[0]];
    return *static_cast<float const*>(v.constant->data->data());
}

Result<void> RefitterObject::refit()
{
    device::ThreadPool& pool = device::processThreadPool();
    Workers& workers = maxThreads > 0 ? pool.workers(maxThreads) : pool.workers();
    std::vector<std::pair<Source const*, nvinfer1::Weights>> from;
    for (auto const& [i, w] : given)
        from.emplace_back(&sources[i], w);
    std::vector<std::shared_ptr<Tensor const>> copies(from.size());
    workers.run(int64_t(from.size()), [&](int64_t i, int) {
        auto const& [source, w] = from[size_t(i)];
        auto t = std::make_shared<Tensor>(source->type, Extents{source->count});
        copies[size_t(i)] = t;
        if (!t->data() || source->count == 0)
            return;
        TensorRef const as{static_cast<DataType>(w.type), Extents{source->count}, const_cast<void*>(w.values)};
        if (as.type == source->type)
            std::memcpy(t->data(), as.data, size_t(t->ref().sizeBytes()));
        else
            copyElements(as, t->ref());
    });
    runtime::NewWeights weights;
    for (size_t i = 0; i < from.size(); ++i) {
        if (!copies[i]->data())
            return failedAllocation("no memory for the new weights");
        weights[from[i].first->constant] =
            std::make_shared<Blob const>(copies[i]->data(), size_t(copies[i]->ref().sizeBytes()), copies[i]);
    }
    for (Range const& r : ranges)
        if (r.given)
            for (size_t constant : r.constants)
                weights[constant] = Blob::copy(&*r.given, sizeof *r.given);
    std::optional<cuda::Current> current;
    if (cuda::Target const* gpu = state->core->cuda())
        current.emplace(*gpu->device);
    nvinfer1::IGpuAllocator* const client = state->core->cuda() ? nullptr : state->allocator;
    device::SourceScope const memory(client ? std::make_shared<ClientMemory>(*client) : nullptr);
    TW_TRY(state->core->refit(weights, workers, &reporter));
    given.clear();
    for (Range& r : ranges)
        r.given.reset();
    return {};
}

} // namespace tw::api

namespace nvinfer1 {

namespace {

// The weights that go by a name, those without one left out.
std::vector<char const*> namesOf(RefitterObject const& r)
{
    std::vector<char const*> names;
    for (RefitterObject::Source const& s : r.sources)
        if (!s.name.empty() && std::ranges::none_of(names, [&](char const* known) { return s.name == known; }))
            names.push_back(s.name.c_str());
    return names;
}

bool checkSize(RefitterObject const& r, int32_t size, char const* method)
{
    if (size >= 0)
        return true;
    r.reporter.error(invalidArgument("{}: size {} is negative", method, size));
    return false;
}

// The tensor's largest magnitude; NaN where it has none.
float largest(IRefitter const* refitter, char const* method, char const* tensor)
{
    auto& r = const_cast<RefitterObject&>(objectOf(*refitter));
    return guarded<float>(r.reporter, std::numeric_limits<float>::quiet_NaN(), [&]() -> Result<float> {
        TW_ASSIGN(RefitterObject::Range * range, r.rangeOf(method, tensor));
        return r.largestOf(*range);
    });
}

} // namespace

bool IRefitter::setWeights(char const* layerName, WeightsRole role, Weights weights) noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](RefitterObject& r) -> Result<bool> {
        if (!layerName)
            return invalidArgument("setWeights: the layer's name is a null pointer");
        std::vector<size_t> wanted;
        bool isLayer = false;
        for (size_t i = 0; i < r.sources.size(); ++i) {
            bool const isOfLayer = std::strcmp(r.sources[i].layer, layerName) == 0;
            isLayer = isLayer || isOfLayer;
            if (!isOfLayer || r.sources[i].role != role)
                continue;
            if (r.sources[i].hasTwins)
                return invalidArgument("setWeights: layer '{}' has several weights in the role {}; setNamedWeights() "
                                       "takes each by its name, such as '{}'",
                                       layerName, nameOfRole(role), r.sources[i].name);
            wanted.push_back(i);
        }
        if (wanted.empty())
            return invalidArgument("setWeights: {}{}'{}; getAll() lists what can",
                                   isLayer ? "the weights of layer '"
                                           : "there is no layer with weights to refit of "
                                             "the name '",
                                   layerName,
                                   isLayer ? std::string(" in the role ") + nameOfRole(role) + " cannot be refitted"
                                           : std::string());
        TW_TRY(r.take("setWeights", wanted, weights));
        return true;
    });
}

bool IRefitter::setNamedWeights(char const* name, Weights weights) noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](RefitterObject& r) -> Result<bool> {
        std::vector<size_t> wanted;
        for (size_t i = 0; name && *name && i < r.sources.size(); ++i)
            if (r.sources[i].name == name)
                wanted.push_back(i);
        if (wanted.empty())
            return invalidArgument("setNamedWeights: no weights that can be refitted have the name '{}'; "
                                   "getAllWeights() lists those that do",
                                   name ? name : "(null)");
        TW_TRY(r.take("setNamedWeights", wanted, weights));
        return true;
    });
}

bool IRefitter::refitCudaEngine() noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](RefitterObject& r) -> Result<bool> {
        TW_TRY(r.refit());
        return true;
    });
}

int32_t IRefitter::getMissing(int32_t size, char const** /*layerNames*/, WeightsRole* /*roles*/) noexcept
{
    checkSize(objectOf(*this), size, "getMissing");
    return 0;
}

int32_t IRefitter::getMissingWeights(int32_t size, char const** /*weightsNames*/) noexcept
{
    checkSize(objectOf(*this), size, "getMissingWeights");
    return 0;
}

int32_t IRefitter::getAll(int32_t size, char const** layerNames, WeightsRole* roles) noexcept
{
    RefitterObject const& r = objectOf(*this);
    if (!checkSize(r, size, "getAll"))
        return 0;
    size_t count = 0;
    for (RefitterObject::Source const& s : r.sources) {
        if (s.hasTwins)
            continue;
        if (layerNames && count < size_t(size))
            layerNames[count] = s.layer;
        if (roles && count < size_t(size))
            roles[count] = s.role;
        ++count;
    }
    return int32_t(count);
}

int32_t IRefitter::getAllWeights(int32_t size, char const** weightsNames) noexcept
{
    RefitterObject const& r = objectOf(*this);
    if (!checkSize(r, size, "getAllWeights"))
        return 0;
    return guarded<int32_t>(r.reporter, 0, [&]() -> Result<int32_t> {
        std::vector<char const*> const names = namesOf(r);
        for (size_t i = 0; weightsNames && i < std::min(size_t(size), names.size()); ++i)
            weightsNames[i] = names[i];
        return int32_t(names.size());
    });
}

bool IRefitter::setDynamicRange(char const* tensorName, float min, float max) noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](RefitterObject& r) -> Result<bool> {
        TW_ASSIGN(RefitterObject::Range * range, r.rangeOf("setDynamicRange", tensorName));
        float const largest = std::max(std::fabs(min), std::fabs(max));
        if (!std::isfinite(min) || !std::isfinite(max) || min > max || !std::isnormal(largest / 127))
            return invalidArgument("setDynamicRange: tensor '{}': the range {}, {} must be finite with min <= max; its "
                                   "largest magnitude, divided by 127, must be a normal FP32 number above 0",
                                   tensorName, min, max);
        range->given = largest;
        return true;
    });
}
float IRefitter::getDynamicRangeMin(char const* tensorName) const noexcept
{
    return -largest(this, "getDynamicRangeMin", tensorName);
}
float IRefitter::getDynamicRangeMax(char const* tensorName) const noexcept
{
    return largest(this, "getDynamicRangeMax", tensorName);
}
int32_t IRefitter::getTensorsWithDynamicRange(int32_t size, char const** tensorNames) const noexcept
{
    RefitterObject const& r = objectOf(*this);
    if (!checkSize(r, size, "getTensorsWithDynamicRange"))
        return 0;
    for (size_t i = 0; tensorNames && i < std::min(size_t(size), r.ranges.size()); ++i)
        tensorNames[i] = r.ranges[i].tensor;
    return int32_t(r.ranges.size());
}

TW_OBJECT_METHODS(IRefitter)

} // namespace nvinfer1

extern "C" void* createInferRefitter_INTERNAL(void* engine, void* logger, int32_t version) noexcept
{
    auto* log = static_cast<nvinfer1::ILogger*>(logger);
    if (!checkClientVersion(log, version, "createInferRefitter"))
        return nullptr;
    Reporter reporter(log);
    return guarded<nvinfer1::IRefitter*>(reporter, nullptr, [&]() -> Result<nvinfer1::IRefitter*> {
        if (!engine)
            return invalidArgument("createInferRefitter: the engine is a null pointer");
        EngineObject& e = objectOf(*static_cast<nvinfer1::ICudaEngine*>(engine));
        if (!e.contents().refittable)
            return invalidState("createInferRefitter: the engine is not refittable; build it with BuilderFlag::kREFIT");
        return static_cast<nvinfer1::IRefitter*>(new RefitterObject(log, e.state));
    });
}
