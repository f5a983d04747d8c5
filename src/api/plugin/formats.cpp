// SPDX-License-Identifier: Apache-2.0
// Types and formats of plugins' tensors: what they are told, and what they take.
#include <algorithm>
#include <functional>

#include "api/builder/parts.h"
#include "api/plugin/kernel.h"

namespace tw::api {

using nvinfer1::Dims;
using nvinfer1::PluginTensorDesc;
using ops::plugin::Attrs;
using Interface = ops::plugin::Interface;

namespace {

constexpr size_t kMostFormats = 16; // combinations that are offered to the build
constexpr int kMostQuestions = 20000;

// The k-th tensor's part of a flat list of dimensions, which has `before` entries in front of it.
Dims dimsAt(std::vector<int64_t> const& flat, size_t before, int rank, bool dropsBatch)
{
    Dims d{};
    for (int i = dropsBatch ? 1 : 0; i < rank && d.nbDims < Dims::MAX_DIMS; ++i)
        d.d[d.nbDims++] = int32_t(std::clamp<int64_t>(flat[before + size_t(i)], 0, INT32_MAX));
    return d;
}

struct TensorFacts
{
    DataType type;
    Format format;
    Extents opt, max; // where the ranges are not known
};

PluginTensors tensorsFrom(ir::Node const& node, std::vector<TensorFacts> const& facts, size_t inputs)
{
    auto const& a = node.attrsAs<Attrs>();
    PluginTensors t;
    t.inputs = int32_t(inputs);
    size_t total = 0, before = 0;
    for (TensorFacts const& f : facts)
        total += size_t(f.opt.rank);
    bool const hasRanges = a.least.size() == total && a.most.size() == total;
    for (size_t i = 0; i < facts.size(); ++i) {
        TensorFacts const& f = facts[i];
        int const rank = f.opt.rank;
        std::vector<int64_t> const opt(f.opt.begin(), f.opt.end()), max(f.max.begin(), f.max.end());
        Dims const least = hasRanges ? dimsAt(a.least, before, rank, a.dropsBatch) : dimsAt(opt, 0, rank, a.dropsBatch);
        Dims const most = hasRanges ? dimsAt(a.most, before, rank, a.dropsBatch) : dimsAt(max, 0, rank, a.dropsBatch);
        PluginTensorDesc d{};
        d.dims = least;
        for (int k = 0; k < d.dims.nbDims; ++k)
            d.dims.d[k] = least.d[k] == most.d[k] ? most.d[k] : -1;
        d.type = toPublic(f.type);
        d.format = static_cast<nvinfer1::TensorFormat>(f.format);
        d.scale = i < a.scales.size() ? a.scales[i] : 1.0F;
        t.descs.push_back(d);
        t.least.push_back(least);
        t.most.push_back(most);
        t.isBroadcast.push_back(a.isBroadcast(i));
        if (a.dropsBatch && rank > 0 && !a.isBroadcast(i))
            t.maxBatch =
                std::max(t.maxBatch, int32_t(std::clamp<int64_t>(hasRanges ? a.most[before] : f.max[0], 1, INT32_MAX)));
        before += size_t(rank);
    }
    return t;
}

} // namespace

PluginTensors tensorsOf(ops::Problem const& p)
{
    std::vector<TensorFacts> facts;
    for (auto const* list : {&p.inputs, &p.outputs})
        for (ops::TensorSpec const& s : *list)
            facts.push_back({s.type, s.format, s.dims, s.maxDims});
    return tensorsFrom(*p.node, facts, p.inputs.size());
}

PluginTensors tensorsOf(ir::Node const& node)
{
    std::vector<TensorFacts> facts;
    for (auto const* list : {&node.inputs, &node.outputs})
        for (ir::Value const* v : *list) {
            Extents dims;
            for (ir::Dim const& d : v->shape)
                dims.push(std::max<int64_t>(d.value(), 0));
            facts.push_back({v->type, v->format, dims, dims});
        }
    return tensorsFrom(node, facts, node.inputs.size());
}

namespace {

// The formats that tensor i may be in, linear first.
std::vector<Format> legalFormats(Dims const& d, bool dropsBatch, DataType type)
{
    std::vector<Format> list{Format::kLinear};
    int const rank = d.nbDims + (dropsBatch ? 1 : 0);
    for (Format f : kFormats)
        if (f != Format::kLinear && isLegal(f, type) && rank >= 3 && fitsRank(f, d.nbDims))
            list.push_back(f);
    return list;
}

// Goes through combinations until `found` says that it is enough.
class Search
{
public:
    using Options = std::vector<std::vector<std::pair<DataType, Format>>>;
    Search(PluginObject const& plugin, PluginTensors& tensors, Options options, std::function<bool()> found)
        : plugin_(plugin), tensors_(tensors), options_(std::move(options)), found_(std::move(found))
    {}
    // True: ended by `found`.
    bool run() { return plugin_.isAskedOneByOne() ? from(0) : together(); }

private:
    bool from(size_t position)
    {
        if (position == tensors_.descs.size())
            return found_();
        for (auto const& [type, format] : options_[position]) {
            if (++questions_ > kMostQuestions)
                return false;
            set(position, type, format);
            if (plugin_.accepts(tensors_, int32_t(position)) && from(position + 1))
                return true;
        }
        return false;
    }
    // One type and format for all that have floating types.
    bool together()
    {
        std::vector<std::pair<DataType, Format>> all;
        for (auto const& list : options_)
            for (auto const& o : list)
                if (isFloating(o.first) && !contains(all, o))
                    all.push_back(o);
        if (all.empty())
            all.emplace_back(DataType::kFloat, Format::kLinear);
        auto const floating =
            std::ranges::find_if(options_, [](auto const& list) { return isFloating(list[0].first); });
        auto const& first = floating == options_.end() ? all : *floating; // its order is the preference
        std::ranges::stable_sort(all, [&](auto const& a, auto const& b) {
            return std::ranges::find(first, a) < std::ranges::find(first, b);
        });
        for (auto const& o : all) {
            bool fits = true;
            for (size_t i = 0; fits && i < options_.size(); ++i) {
                auto const& list = options_[i];
                bool const isFree = !isFloating(list[0].first);
                fits = isFree || contains(list, o);
                set(i, isFree ? list[0].first : o.first, isFree ? Format::kLinear : o.second);
            }
            if (fits && plugin_.acceptsAll(tensors_) && found_())
                return true;
        }
        return false;
    }
    void set(size_t position, DataType type, Format format)
    {
        tensors_.descs[position].type = toPublic(type);
        tensors_.descs[position].format = static_cast<nvinfer1::TensorFormat>(format);
    }

    PluginObject const& plugin_;
    PluginTensors& tensors_;
    Options options_;
    std::function<bool()> found_;
    int questions_ = 0;
};

Search::Options optionsFor(PluginObject const& plugin, PluginTensors const& t,
                           std::vector<std::vector<DataType>> const& types)
{
    bool const dropsBatch = plugin.interface() != Interface::kDynamicExt;
    Search::Options options(t.descs.size());
    for (size_t i = 0; i < t.descs.size(); ++i)
        for (DataType type : types[i])
            for (Format f : legalFormats(t.descs[i].dims, dropsBatch, type))
                options[i].emplace_back(type, f);
    return options;
}

} // namespace

bool settleTypes(PluginObject const& plugin, PluginTensors& tensors, std::vector<std::vector<DataType>> const& types)
{
    return Search(plugin, tensors, optionsFor(plugin, tensors, types), [] { return true; }).run();
}

std::vector<ops::Formats> BuildPlugin::formats(ops::Problem const& problem) const
{
    PluginTensors t = tensorsOf(problem);
    auto types = mapped(t.descs, [&](PluginTensorDesc const& d) { return std::vector<DataType>{toCore(d.type)}; });
    Search::Options options = optionsFor(*plugin, t, types);
    for (size_t i = 0; i < problem.inputs.size(); ++i)
        if (problem.inputs[i].constant || problem.node->inputs[i]->host)
            options[i].resize(1); // linear: constants and shapes are
    std::vector<ops::Formats> out;
    auto take = [&] {
        ops::Formats f;
        for (size_t i = 0; i < t.descs.size(); ++i)
            (int32_t(i) < t.inputs ? f.inputs : f.outputs).push_back(static_cast<Format>(t.descs[i].format));
        if (!contains(out, f))
            out.push_back(std::move(f));
        return out.size() >= kMostFormats;
    };
    // Everything in one format first: where a plugin takes many, what differs from tensor to tensor is left out.
    for (Format one : kFormats) {
        Search::Options uniform = options;
        for (auto& list : uniform)
            if (std::ranges::any_of(list, [&](auto const& o) { return o.second == one; }))
                std::erase_if(list, [&](auto const& o) { return o.second != one; });
        Search(*plugin, t, std::move(uniform), [&] { return take(), true; }).run();
    }
    Search(*plugin, t, std::move(options), take).run();
    return out;
}

} // namespace tw::api
