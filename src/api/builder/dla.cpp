// SPDX-License-Identifier: Apache-2.0
#include "api/builder/dla.h"

#include <algorithm>
#include <bit>

#include "base/round.h"

namespace tw::api {

namespace {

using nvinfer1::BuilderFlag;
using nvinfer1::DeviceType;
using nvinfer1::LayerType;
using nvinfer1::MemoryPoolType;

constexpr int64_t kPageBytes = 4096;

DeviceType deviceOf(BuilderConfigObject const& c, nvinfer1::ILayer const& layer)
{
    auto const it = c.deviceTypes.find(&layer);
    return it == c.deviceTypes.end() ? c.defaultDeviceType : it->second;
}

// What wildcards in front of network inputs are in all profiles.
struct Batch
{
    int64_t size = 0; // 0: not known yet
    std::string lack; // why DLA cannot take the network
};
Batch batchOf(NetworkObject const& n, BuilderConfigObject const& c)
{
    Batch out;
    auto fix = [&](int64_t size, std::string const& input) {
        if (out.size != 0 && out.size != size && out.lack.empty())
            out.lack =
                fmt::format("network input '{}' has batch {} in an optimization profile, and there is another batch "
                            "{}; DLA takes one alone",
                            input, size, out.size);
        out.size = size;
    };
    for (auto const& t : n.inputs) {
        bool const isOpen = std::any_of(t->dims.d, t->dims.d + t->dims.nbDims, [](int32_t d) { return d < 0; });
        for (size_t p = 0; isOpen && p < c.profiles.size(); ++p) {
            auto const it = c.profiles[p]->shapes.find(t->name);
            if (it == c.profiles[p]->shapes.end())
                continue;
            auto const& [min, opt, max] = it->second;
            if (!min || !opt || !max || min->empty())
                continue;
            if ((*min != *opt || *opt != *max) && out.lack.empty())
                out.lack =
                    fmt::format("optimization profile {} gives network input '{}' a range of shapes; DLA takes one "
                                "alone, which is minimum, optimum and maximum",
                                p, t->name);
            fix(opt->front(), t->name);
        }
    }
    return out;
}

dla::Settings settingsOf(NetworkObject const& n, BuilderConfigObject const& c, int32_t maxBatch)
{
    dla::Settings s;
    s.model = c.device.dla;
    s.half = c.has(BuilderFlag::kFP16);
    s.int8 = c.has(BuilderFlag::kINT8);
    s.hearsPrecisions = constraintsOf(c) != passes::PrecisionConstraints::kIgnore;
    s.hasCalibrator = c.int8Calibrator != nullptr;
    if (s.int8 && s.hasCalibrator &&
        c.int8Calibrator->getAlgorithm() != nvinfer1::CalibrationAlgoType::kENTROPY_CALIBRATION_2)
        s.whyNoInt8 = "the calibrator is none of IInt8EntropyCalibrator2, which DLA needs";
    if (n.implicitBatch) {
        s.batch = maxBatch;
    } else {
        Batch const batch = batchOf(n, c);
        s.batch = batch.size;
        s.lack = batch.lack;
    }
    s.isSetToDla = [&c](nvinfer1::ILayer const& l) {
        auto const it = c.deviceTypes.find(&l);
        return it != c.deviceTypes.end() && it->second == DeviceType::kDLA;
    };
    return s;
}

std::string mebibytes(int64_t bytes)
{
    return fmt::format("{:.4g} MiB", double(bytes) / (1 << 20));
}

class Placing
{
public:
    Placing(NetworkObject const& n, BuilderConfigObject const& c, int32_t maxBatch, Reporter& log)
        : n_(n), c_(c), log_(log), limits_(n, settingsOf(n, c, maxBatch))
    {
        out_.model = c.device.dla;
        out_.core = std::max(c.dlaCore, 0);
    }

    Result<DlaPlacement> run()
    {
        for (auto const& l : n_.layers)
            judge(*l);
        if (wanted_ == 0)
            return std::move(out_);
        cut();
        TW_TRY(checkPools());
        for (Candidate& candidate : candidates_)
            compile(candidate);
        keepMost();
        if (refused_ > 0 && !c_.has(BuilderFlag::kGPU_FALLBACK))
            return unsupported("{} of {} layers for DLA cannot run there, as the lines before say; "
                               "BuilderFlag::kGPU_FALLBACK runs them on the GPU device",
                               refused_, wanted_);
        for (Candidate& candidate : candidates_)
            if (candidate.isCompiled) {
                for (LayerState const* l : candidate.layers)
                    out_.verdicts.emplace(l, verdicts_.at(l));
                out_.loadables.push_back({std::move(candidate.layers), candidate.need});
            }
        report();
        return std::move(out_);
    }

private:
    struct Candidate
    {
        std::vector<LayerState const*> layers;
        DlaNeed need;
        bool isCompiled = false;
    };

    void refuse(LayerState const& l, dla::Finding const& finding)
    {
        ++refused_;
        std::string const text = wordsOf(*const_cast<LayerState&>(l).asLayer(), finding);
        if (c_.has(BuilderFlag::kGPU_FALLBACK))
            log_.warning("{}; it runs on the GPU device", text);
        else
            log_.error(unsupported("{}, and BuilderFlag::kGPU_FALLBACK is not set", text));
    }

    void judge(LayerState& l)
    {
        nvinfer1::ILayer const& layer = *l.asLayer();
        if (deviceOf(c_, layer) != DeviceType::kDLA)
            return;
        dla::Verdict verdict = limits_.of(layer);
        if (verdict.isConstant)
            return;
        ++wanted_;
        if (!verdict.findings.empty())
            refuse(l, verdict.findings.front());
        else
            verdicts_.emplace(&l, std::move(verdict));
    }

    void cut()
    {
        std::map<LayerState const*, int> numbers;
        for (auto const& l : n_.layers)
            numbers.emplace(l.get(), int(numbers.size()));
        std::vector<dla::Item> items(n_.layers.size());
        bool isAll = true;
        for (size_t i = 0; i < items.size(); ++i) {
            LayerState const& l = *n_.layers[i];
            items[i].isOnDla = verdicts_.contains(&l);
            isAll = isAll && (items[i].isOnDla || limits_.isConstant(*const_cast<LayerState&>(l).asLayer()));
            for (size_t k = 0; k < l.inputs.size(); ++k)
                if (l.inputs[k] && l.inputs[k]->producer)
                    items[i].inputs.push_back(numbers.at(l.inputs[k]->producer));
        }
        std::vector<int> parts = dla::partition(items);
        if (isAll) // one loadable, although parts of it may have nothing to do with each other
            std::ranges::replace_if(
                parts, [](int p) { return p >= 0; }, 0);
        for (size_t i = 0; i < parts.size(); ++i)
            if (parts[i] >= 0) {
                candidates_.resize(std::max(candidates_.size(), size_t(parts[i]) + 1));
                candidates_[size_t(parts[i])].layers.push_back(n_.layers[i].get());
            }
    }

    Result<void> checkPools()
    {
        if (candidates_.empty())
            return {};
        constexpr std::pair<MemoryPoolType, char const*> kPools[] = {
            {MemoryPoolType::kDLA_MANAGED_SRAM, "kDLA_MANAGED_SRAM"},
            {MemoryPoolType::kDLA_LOCAL_DRAM, "kDLA_LOCAL_DRAM"},
            {MemoryPoolType::kDLA_GLOBAL_DRAM, "kDLA_GLOBAL_DRAM"}};
        for (auto const& [pool, name] : kPools) {
            size_t const size = c_.poolLimit(pool);
            if (size < dla::kLeastPoolBytes || !std::has_single_bit(size))
                return invalidArgument(
                    "memory pool {} has {} bytes; pools of DLA are powers of two of at least {} bytes, "
                    "else no loadable can be compiled (setMemoryPoolLimit())",
                    name, size, dla::kLeastPoolBytes);
        }
        return {};
    }

    int64_t elementBytes(LayerState const& l) const
    {
        auto const it = verdicts_.find(&l);
        return it != verdicts_.end() && it->second.mayInt8 ? 1 : 2;
    }

    // Weights of the layer, and what constants it reads. On Orin those of other layers than convolutions have 4 bytes, and
    // whole vectors of channels.
    int64_t weightBytes(LayerState const& l) const
    {
        bool const isConvolution = l.type == LayerType::kCONVOLUTION || l.type == LayerType::kDECONVOLUTION ||
                                   l.type == LayerType::kFULLY_CONNECTED;
        int64_t count = 0;
        for (nvinfer1::Weights const& w : l.heldWeights())
            count += std::max<int64_t>(w.count, 0);
        for (TensorObject const* t : l.inputs)
            if (t && limits_.isConstant(*t)) {
                int64_t elements = 1;
                nvinfer1::Dims const d = t->getDimensions();
                for (int i = 0; i < d.nbDims; ++i)
                    elements *= std::max(d.d[i], 0);
                count += elements;
            }
        if (isConvolution || out_.model != dla::Model::kOrin)
            return count * elementBytes(l);
        int64_t const together = dla::kVectorBytes / elementBytes(l);
        int64_t const channels = std::max<int64_t>(dla::sizesOf(*l.outputs[0], limits_).c, 1);
        return divideUp(count, channels) * roundUp(channels, together) * 4;
    }

    void compile(Candidate& candidate)
    {
        std::set<LayerState const*> const within(candidate.layers.begin(), candidate.layers.end());
        int64_t inner = 0, largest = 0, weights = 0;
        for (LayerState const* l : candidate.layers) {
            weights += weightBytes(*l);
            for (auto const& t : l->outputs) {
                bool isInner = !t->isOutput;
                for (nvinfer1::ILayer const* reader : limits_.readersOf(*t))
                    isInner = isInner && within.contains(&tw::api::objectOf(*reader));
                if (!isInner)
                    continue;
                dla::Sizes const s = dla::sizesOf(*t, limits_);
                int64_t const bytes =
                    std::max<int64_t>(s.batch, 1) * roundUp(s.c * elementBytes(*l), dla::kVectorBytes) * s.h * s.w;
                inner += bytes;
                largest = std::max(largest, bytes);
            }
        }
        candidate.need.local = roundUp(inner, kPageBytes);
        candidate.need.global = roundUp(weights, kPageBytes);
        candidate.need.sram =
            std::min<int64_t>(roundUp(largest, kPageBytes), int64_t(c_.poolLimit(MemoryPoolType::kDLA_MANAGED_SRAM)));
        std::string lack;
        auto check = [&](MemoryPoolType pool, char const* name, int64_t need) {
            if (need > int64_t(c_.poolLimit(pool)) && lack.empty())
                lack = fmt::format("memory pool {} has {}, the subgraph {} needs {} (setMemoryPoolLimit())", name,
                                   mebibytes(int64_t(c_.poolLimit(pool))), nameOf(candidate), mebibytes(need));
        };
        if (inner >= dla::kMostInnerBytes)
            lack = fmt::format("the tensors inside the subgraph {} take {}, allowed is less than {}", nameOf(candidate),
                               mebibytes(inner), mebibytes(dla::kMostInnerBytes));
        check(MemoryPoolType::kDLA_LOCAL_DRAM, "kDLA_LOCAL_DRAM", candidate.need.local);
        check(MemoryPoolType::kDLA_GLOBAL_DRAM, "kDLA_GLOBAL_DRAM", candidate.need.global);
        candidate.isCompiled = lack.empty();
        if (!lack.empty())
            drop(candidate, lack);
    }

    void drop(Candidate& candidate, std::string const& lack)
    {
        candidate.isCompiled = false;
        for (LayerState const* l : candidate.layers)
            refuse(*l, {dla::Reason::kCombination, lack});
    }

    // The largest subgraphs of those that are too many for one core.
    void keepMost()
    {
        std::vector<Candidate*> compiled;
        for (Candidate& candidate : candidates_)
            if (candidate.isCompiled)
                compiled.push_back(&candidate);
        std::ranges::stable_sort(compiled, [](auto a, auto b) { return a->layers.size() > b->layers.size(); });
        for (size_t i = dla::kMostLoadables; i < compiled.size(); ++i)
            drop(*compiled[i], fmt::format("the network has {} subgraphs, allowed are {} loadables a core",
                                           compiled.size(), dla::kMostLoadables));
    }

    static std::string nameOf(Candidate const& candidate) { return nameOf(candidate.layers); }
    static std::string nameOf(std::vector<LayerState const*> const& layers)
    {
        std::string const &first = layers.front()->name, &last = layers.back()->name;
        return "{ForeignNode[" + first + (layers.size() > 1 ? "..." + last : "") + "]}";
    }

    void report()
    {
        if (out_.model == dla::Model::kNone) {
            log_.warning("no DLA on this platform (0 cores): {} layers run on the GPU device", refused_);
            return;
        }
        log_.info("DLA: {} of {} subgraph candidates compiled to loadables for core {} of {} ({})",
                  out_.loadables.size(), candidates_.size(), out_.core, dla::nameOf(out_.model), dla::kNotTheDevice);
        log_.info("---------- Layers Running on DLA ----------");
        DlaNeed sum;
        for (DlaLoadable const& l : out_.loadables) {
            log_.info("[DlaLayer] {}", nameOf(l.layers));
            std::string list;
            for (LayerState const* layer : l.layers)
                list += (list.empty() ? "" : ", ") + layer->name;
            log_.verbose("{}: managed SRAM {}, local DRAM {}, global DRAM {}; layers: {}", nameOf(l.layers),
                         mebibytes(l.need.sram), mebibytes(l.need.local), mebibytes(l.need.global), list);
            sum.sram += l.need.sram;
            sum.local += l.need.local;
            sum.global += l.need.global;
        }
        log_.info("---------- Layers Running on GPU ----------");
        for (auto const& l : n_.layers)
            if (!out_.has(l.get()) && !limits_.isConstant(*l->asLayer()))
                log_.info("[GpuLayer] {}: {}", dla::nameOf(l->type), l->name);
        log_.info("Memory of all DLA loadables ({}): managed SRAM {}, local DRAM {}, global DRAM {}",
                  dla::kNotTheDevice, mebibytes(sum.sram), mebibytes(sum.local), mebibytes(sum.global));
    }

    NetworkObject const& n_;
    BuilderConfigObject const& c_;
    Reporter& log_;
    dla::Limits limits_;
    std::map<LayerState const*, dla::Verdict> verdicts_; // of layers that can run
    std::vector<Candidate> candidates_;
    int wanted_ = 0, refused_ = 0;
    DlaPlacement out_;
};

} // namespace

dla::Verdict verdictOf(nvinfer1::ILayer const& layer, BuilderConfigObject const& c)
{
    NetworkObject const& n = *objectOf(layer).network;
    return dla::Limits(n, settingsOf(n, c, 1)).of(layer);
}

std::string wordsOf(nvinfer1::ILayer const& layer, dla::Finding const& f)
{
    LayerState const& l = objectOf(layer);
    return fmt::format("layer '{}' ({}) cannot run on DLA ({}): {}", l.name, l.typeName, dla::wordsOf(f.reason),
                       f.text);
}

Result<DlaPlacement> placeOnDla(NetworkObject const& n, BuilderConfigObject const& c, int32_t maxBatch, Reporter& log)
{
    bool const isWanted =
        c.defaultDeviceType == DeviceType::kDLA ||
        std::ranges::any_of(c.deviceTypes, [](auto const& d) { return d.second == DeviceType::kDLA; });
    return isWanted ? Placing(n, c, maxBatch, log).run() : DlaPlacement();
}

DlaTensors dlaTensorsOf(NetworkObject const& n, BuilderConfigObject const& c, DlaPlacement const& placement)
{
    DlaTensors out;
    if (placement.isEmpty())
        return out;
    bool const isStrict = !c.has(BuilderFlag::kGPU_FALLBACK);
    auto isOnDla = [&](LayerState const* l) { return placement.has(l); };
    for (auto const& t : n.inputs) {
        std::vector<LayerState const*> readers;
        for (auto const& l : n.layers)
            if (contains(l->inputs, t.get()))
                readers.push_back(l.get());
        if (readers.empty() || !std::ranges::all_of(readers, isOnDla))
            continue;
        DlaTensor& tensor = out[t->name];
        tensor.isStrict = isStrict;
        for (LayerState const* l : readers) {
            if (l->type != LayerType::kCONVOLUTION || l->inputs[0] != t.get()) {
                tensor.whyNoImage =
                    fmt::format("layer '{}' ({}) reads it, allowed are convolutions", l->name, l->typeName);
                continue;
            }
            auto const& layer = *const_cast<LayerState*>(l)->asLayer();
            int const groups = static_cast<nvinfer1::IConvolutionLayer const&>(layer).getNbGroups();
            if (groups > 4)
                tensor.whyNoImage = fmt::format("convolution '{}' has {} groups, allowed are 1 to 4", l->name, groups);
        }
    }
    for (TensorObject const* t : n.allOutputs())
        if (t->producer && isOnDla(t->producer))
            out[t->name] = {isStrict, "it is an output"};
    return out;
}

Result<void> checkStandalone(NetworkObject const& n, BuilderConfigObject const& c)
{
    if (c.engineCapability != nvinfer1::EngineCapability::kDLA_STANDALONE)
        return {};
    constexpr char const* kWhat = "EngineCapability::kDLA_STANDALONE";
    if (c.device.dla == dla::Model::kNone)
        return unsupported("{}: no DLA on this platform (0 cores)", kWhat);
    if (c.defaultDeviceType != DeviceType::kDLA)
        return invalidState("{} needs the default device type kDLA (setDefaultDeviceType())", kWhat);
    if (!c.has(BuilderFlag::kFP16) && !c.has(BuilderFlag::kINT8))
        return invalidState("{} needs BuilderFlag::kFP16 or kINT8", kWhat);
    if (!c.has(BuilderFlag::kDIRECT_IO))
        return invalidState("{} needs BuilderFlag::kDIRECT_IO: loadables have no reformats", kWhat);
    if (c.has(BuilderFlag::kGPU_FALLBACK))
        return invalidState("{}: a loadable runs on DLA alone; clear BuilderFlag::kGPU_FALLBACK", kWhat);
    for (auto const& l : n.layers)
        if (deviceOf(c, *l->asLayer()) != DeviceType::kDLA && l->type != LayerType::kCONSTANT)
            return invalidState("{}: the device type kGPU is set for layer '{}'; a loadable runs on DLA alone", kWhat,
                                l->name);
    return {};
}

} // namespace tw::api
