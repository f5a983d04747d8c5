// SPDX-License-Identifier: Apache-2.0
// Reads a plan that may be untrusted: flatbuffers are verified first, then every index, number and range is checked where
// it is used, and the graph as a whole by ir::verify.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "device/large_pages.h"
#include "dla/layout.h"
#include "ir/op_def.h"
#include "plan/file.h"
#include "plan/old.h"
#include "plan/plan.h"
#include "plan/read_graph.h"
#include "plan/verified.h"

namespace tw::plan {

namespace {

constexpr size_t kMaxProfiles = 1024;

Result<Extents> extents(std::vector<int64_t> const& list)
{
    if (list.size() > kMaxRank)
        return bad("a profile has a shape of rank {}", list.size());
    Extents e;
    int64_t elements = 1;
    for (int64_t d : list) {
        if (d < 0 || d > INT32_MAX)
            return bad("a profile has the dimension {}", d);
        e.push(d);
        elements = ir::mulSat(elements, d);
    }
    if (elements > INT32_MAX)
        return bad("a profile has the shape " + e.str() + " of 2^31 elements or more");
    return e;
}

Result<void> readMeta(fb::Meta const& m, Copier& copy, Contents& c)
{
    c.engineName = copy.text(m.engine_name());
    for (flatbuffers::uoffset_t i = 0; i < sizeOf(m.io()); ++i) {
        fb::IoTensor const* t = m.io()->Get(i);
        IoTensor io{copy.text(t->name()),        t->is_input(),
                    t->is_shape_tensor(),        t->is_execution(),
                    t->broadcast_across_batch(), {}};
        if (sizeOf(t->dimension_names()) > kMaxRank)
            return bad("tensor '{}' has {} dimension names", io.name, t->dimension_names()->size());
        for (flatbuffers::uoffset_t k = 0; k < sizeOf(t->dimension_names()); ++k)
            io.dimensionNames.push_back(copy.text(t->dimension_names()->Get(k)));
        if (!dla::isLayout(t->dla_format()))
            return bad("tensor '{}' is in the DLA format {}, which does not exist", io.name, t->dla_format());
        io.dlaLayout = static_cast<dla::Layout>(t->dla_format());
        TW_ASSIGN(io.dlaDims, extents(copy.list(t->dla_dims())));
        TW_TRY(copy.status());
        c.io.push_back(std::move(io));
    }
    for (flatbuffers::uoffset_t i = 0; i < sizeOf(m.profiles()); ++i) {
        Profile p;
        auto const* inputs = m.profiles()->Get(i)->inputs();
        for (flatbuffers::uoffset_t k = 0; k < sizeOf(inputs); ++k) {
            fb::ProfileInput const* in = inputs->Get(k);
            ProfileRange r;
            r.hasShape = in->has_shape();
            TW_ASSIGN(r.min, extents(copy.list(in->min())));
            TW_ASSIGN(r.opt, extents(copy.list(in->opt())));
            TW_ASSIGN(r.max, extents(copy.list(in->max())));
            r.minValues = copy.list(in->min_values());
            r.optValues = copy.list(in->opt_values());
            r.maxValues = copy.list(in->max_values());
            bool const even = r.min.rank == r.opt.rank && r.opt.rank == r.max.rank &&
                              r.minValues.size() == r.optValues.size() && r.optValues.size() == r.maxValues.size();
            TW_TRY(copy.status());
            if (!even)
                return bad("a profile's minimum, optimum and maximum differ in rank");
            p.inputs[copy.text(in->name())] = std::move(r);
        }
        c.profiles.push_back(std::move(p));
    }
    c.implicitBatch = m.implicit_batch();
    c.maxBatchSize = m.max_batch_size();
    c.refittable = m.refittable();
    c.profilingVerbosity = m.profiling_verbosity();
    c.engineCapability = m.engine_capability();
    c.tacticSources = m.tactic_sources();
    if (!dla::isKnown(m.dla_model()) || m.dla_core() < 0 || m.dla_core() >= dla::kCores || m.dla_loadables() < 0 ||
        m.dla_loadables() > dla::kMostLoadables)
        return bad("a DLA, core or number of loadables that does not exist");
    c.dlaModel = static_cast<dla::Model>(m.dla_model());
    c.dlaCore = m.dla_core();
    c.dlaLoadables = m.dla_loadables();
    for (flatbuffers::uoffset_t i = 0; i < sizeOf(m.notes()); ++i)
        c.notes[copy.text(m.notes()->Get(i)->key())] = copy.text(m.notes()->Get(i)->value());
    // Numbers of public enumerations with three values each.
    if (c.profilingVerbosity < 0 || c.profilingVerbosity > 2 || c.engineCapability < 0 || c.engineCapability > 2)
        return bad("an unknown profiling verbosity or engine capability");
    if (c.maxBatchSize < 1)
        return bad("maximum batch size {}", c.maxBatchSize);
    if (c.profiles.empty() || c.profiles.size() > kMaxProfiles)
        return bad("{} optimization profiles", c.profiles.size());
    return copy.status();
}

Result<Block> readBlock(fb::Block const& in, ir::Graph const& g, Copier& copy, int depth)
{
    if (depth > kMaxNesting)
        return bad("blocks are nested deeper than {}", kMaxNesting);
    Block out;
    if (sizeOf(in.steps()) != g.nodes.size())
        return bad("a block has another number of steps than its graph has nodes");
    for (flatbuffers::uoffset_t i = 0; i < sizeOf(in.steps()); ++i) {
        fb::Step const* s = in.steps()->Get(i);
        if (s->node() != int32_t(i))
            return bad("step {} runs node {}", i, s->node());
        Step step;
        step.node = s->node();
        if (fb::Choice const* c = s->choice())
            step.choice = Choice{c->tactic(),
                                 copy.text(c->name()),
                                 c->version(),
                                 copy.list(c->config()),
                                 copy.bytes(c->image()),
                                 c->microseconds(),
                                 {},
                                 c->limit(),
                                 copy.text(c->lack())};
        renewTactic(step.choice.tactic, step.choice.name, step.choice.version);
        for (flatbuffers::uoffset_t r = 0; s->choice() && r < sizeOf(s->choice()->rivals()); ++r) {
            fb::Rival const* rival = s->choice()->rivals()->Get(r);
            step.choice.rivals.push_back({copy.text(rival->name()), rival->microseconds(), copy.text(rival->reason())});
        }
        ir::Node const& n = *g.nodes[i];
        if (sizeOf(s->regions()) != n.regions.size())
            return bad("a step has another number of regions than its node");
        for (flatbuffers::uoffset_t r = 0; r < sizeOf(s->regions()); ++r) {
            TW_ASSIGN(Block region, readBlock(*s->regions()->Get(r), *n.regions[r], copy, depth + 1));
            step.regions.push_back(std::move(region));
        }
        out.steps.push_back(std::move(step));
    }
    TW_TRY(copy.status());
    return out;
}

// A tensor in a format that only DLA has must be the memory of what clients are told.
Result<void> checkLayout(IoTensor const& t, Contents const& c)
{
    if (t.dlaLayout == dla::Layout::kNone)
        return t.dlaDims.rank == 0 ? Result<void>() : bad("tensor '{}' has dimensions of no DLA format", t.name);
    auto const isIt = [&](ir::Value const* v) { return v->name == t.name; };
    auto const& list = t.isInput ? c.graph->inputs : c.graph->outputs;
    ir::Value const& v = **std::ranges::find_if(list, isIt);
    if (c.dlaModel == dla::Model::kNone || v.host || v.format != Format::kLinear || !ir::isStatic(v.shape))
        return bad("tensor '{}' is in a DLA format, and its plan or value is not", t.name);
    Extents const memory = dla::memoryDims(t.dlaLayout, c.dlaModel, v.type, t.dlaDims);
    if (memory.rank == 0 || memory != ir::extentsOf(v.shape))
        return bad("tensor '{}' with DLA dimensions {} is {} in the graph", t.name, t.dlaDims.str(), str(v.shape));
    return {};
}

// Inputs and outputs, and what profiles say about inputs, must fit the graph.
Result<void> checkAgainstGraph(Contents const& c)
{
    std::map<std::string, ir::Value const*> inputs;
    std::set<std::string> names, listed;
    for (ir::Value const* v : c.graph->inputs) {
        inputs[v->name] = v;
        names.insert(v->name);
    }
    for (ir::Value const* v : c.graph->outputs)
        names.insert(v->name);
    size_t const count = c.graph->inputs.size() + c.graph->outputs.size();
    if (names.size() != count)
        return bad("inputs and outputs of the graph do not have names of their own");
    for (IoTensor const& t : c.io)
        if (!names.contains(t.name) || t.isInput != inputs.contains(t.name) || !listed.insert(t.name).second)
            return bad("tensor '" + t.name + "' is not what the graph has");
    if (listed.size() != count)
        return bad("it does not list every input and output of its graph");
    for (IoTensor const& t : c.io)
        TW_TRY(checkLayout(t, c));
    for (size_t p = 0; p < c.profiles.size(); ++p) {
        for (auto const& [name, r] : c.profiles[p].inputs) {
            std::string const where = fmt::format("optimization profile {}: input '{}'", p, name);
            auto it = inputs.find(name);
            if (it == inputs.end())
                return bad(where + " is not in the graph");
            ir::Value const& v = *it->second;
            if (r.hasShape && r.max.rank != v.rank())
                return bad("{} has rank {}, the graph has {}", where, r.max.rank, str(v.shape));
            for (int d = 0; r.hasShape && d < v.rank(); ++d) {
                bool const ordered = r.min[d] <= r.opt[d] && r.opt[d] <= r.max[d];
                bool const fits =
                    !v.shape[size_t(d)].isConst() || (v.shape[size_t(d)].is(r.min[d]) && r.min[d] == r.max[d]);
                if (!ordered || !fits)
                    return bad(where + " ranges over " + r.min.str() + ", " + r.opt.str() + ", " + r.max.str() +
                               ", the graph has " + str(v.shape));
            }
            if (!r.optValues.empty() &&
                (!isStatic(v.shape) || ir::extentsOf(v.shape).volume() != int64_t(r.optValues.size())))
                return bad("{} has {} values, the graph has {}{}", where, r.optValues.size(), nameOf(v.type),
                           str(v.shape));
        }
    }
    return {};
}

// Constants that recipes make must be what comes out of them.
Result<void> checkMade(Contents const& c)
{
    size_t const count = c.recipes ? c.recipes->outputs.size() : 0;
    for (auto const& [v, at] : c.made) {
        if (at < 0 || size_t(at) >= count)
            return bad("constant '{}' is made by recipe {} of {}", v->name, at, count);
        ir::Value const& from = *c.recipes->outputs[size_t(at)];
        if (from.type != v->type || !ir::isStatic(from.shape) ||
            ir::extentsOf(from.shape).volume() != ir::extentsOf(v->shape).volume())
            return bad("constant '" + v->name + "' is no " + nameOf(from.type) + str(from.shape) +
                       ", which its recipe makes");
    }
    return {};
}

// A graph of constants, whose nodes make tensors of known sizes: as large as the weights together at most.
Result<void> checkRecipes(ir::Graph const& g, uint64_t weightBytes)
{
    if (!g.inputs.empty())
        return bad("recipes have inputs");
    for (auto const& n : g.nodes)
        if (!n->regions.empty() || n->body || (n->op->stateful && n->op->stateful(*n)))
            return bad("recipe '" + n->name + "' (" + n->op->name + ") needs more than constants");
    for (auto const& v : g.values()) {
        if (!ir::isStatic(v->shape))
            return bad("recipe '" + v->name + "' has the shape " + str(v->shape));
        constexpr uint64_t kFree = 1 << 20, kGrowth = 4;
        int64_t const bytes = ir::mulSat(ir::extentsOf(v->shape).volume(), tw::sizeOf(v->type));
        if (bytes < 0 || uint64_t(bytes) / kGrowth > weightBytes + kFree)
            return bad("recipe '{}' makes {} bytes", v->name, bytes);
    }
    return {};
}

} // namespace

Result<Contents> read(void const* bytes, size_t sizeBytes, ReadOptions const& options)
{
    // Sections are read in place, so they must be aligned; a blob from a client may lie anywhere.
    std::string aligned;
    if (reinterpret_cast<uintptr_t>(bytes) % 16 != 0) {
        aligned.assign(static_cast<char const*>(bytes), sizeBytes);
        bytes = aligned.data();
    }
    std::optional<AllButPanels> pages;
    if (auto listed = listSections(bytes, sizeBytes); listed.ok() && aligned.empty() && options.pages)
        pages.emplace(*options.pages, *listed);
    TW_ASSIGN(std::vector<Section> sections,
              unpackFile(bytes, sizeBytes, options.strictVersion, pages ? &*pages : nullptr, *options.workers));
    Section const *meta = find(sections, SectionKind::kMeta), *graph = find(sections, SectionKind::kGraph),
                  *weights = find(sections, SectionKind::kWeights);
    if (!meta || !graph || !weights)
        return bad("a section is missing");
    Contents c;
    TW_ASSIGN(fb::Meta const* m, verified<fb::Meta>(*meta, "META"));
    Copier metaCopy(meta->sizeBytes);
    TW_TRY(readMeta(*m, metaCopy, c));
    TW_ASSIGN(fb::Graph const* g, verified<fb::Graph>(*graph, "GRAPH"));
    fb::Graph const* r = nullptr;
    Section const* const recipes = c.refittable ? find(sections, SectionKind::kRecipes) : nullptr;
    if (recipes)
        TW_SET(r, verified<fb::Graph>(*recipes, "RECIPES"));
    Copier graphCopy(graph->sizeBytes + (recipes ? recipes->sizeBytes : 0));
    c.panelsKept = options.keepPanels && !c.refittable; // what refit computes is in the order of its shape
    TW_ASSIGN(ReadGraph made,
              readGraph(*g, r, *weights, aligned.empty() ? options.owner : nullptr, c.panelsKept, graphCopy));
    c.graph = std::move(made.graph);
    c.panels = std::move(made.panels);
    c.scales = std::move(made.scales);
    TW_TRY(ir::verify(*c.graph));
    TW_TRY(checkAgainstGraph(c));
    if (c.refittable) {
        c.made = std::move(made.made);
        c.recipes = std::move(made.recipes);
        if (c.recipes)
            TW_TRY(ir::verify(*c.recipes));
        if (c.recipes)
            TW_TRY(checkRecipes(*c.recipes, weights->sizeBytes));
        TW_TRY(checkMade(c));
    }
    for (Section const& s : sections) {
        if (s.kind != SectionKind::kTarget)
            continue;
        TW_ASSIGN(fb::Target const* t, verified<fb::Target>(s, "TARGET"));
        if (!t->root())
            return bad("section TARGET has no steps");
        Copier copy(s.sizeBytes);
        Target target;
        target.backend = copy.text(t->backend());
        target.fingerprint = copy.text(t->fingerprint());
        TW_ASSIGN(target.root, readBlock(*t->root(), *c.graph, copy, 0));
        if (sizeOf(t->others()) != 0 && sizeOf(t->others()) + 1 != c.profiles.size())
            return bad("section TARGET has choices for {} of {} optimization profiles", sizeOf(t->others()) + 1,
                       c.profiles.size());
        for (flatbuffers::uoffset_t p = 0; p < sizeOf(t->others()); ++p) {
            TW_ASSIGN(Block other, readBlock(*t->others()->Get(p), *c.graph, copy, 0));
            target.others.push_back(std::move(other));
        }
        c.targets.push_back(std::move(target));
    }
    return c;
}

AllButPanels::AllButPanels(PageKeeper const& pages, std::vector<Section> const& sections) : pages_(pages)
{
    Section const *graph = find(sections, SectionKind::kGraph), *weights = find(sections, SectionKind::kWeights);
    if (!graph || !weights)
        return;
    auto const root = verified<fb::Graph>(*graph, "GRAPH");
    if (!root.ok())
        return;
    for (flatbuffers::uoffset_t i = 0; i < sizeOf((*root)->values()); ++i) {
        fb::Value const& v = *(*root)->values()->Get(i);
        bool const inside =
            v.weights_offset() <= weights->sizeBytes && v.weights_size() <= weights->sizeBytes - v.weights_offset();
        uintptr_t const begin = reinterpret_cast<uintptr_t>(weights->data) + v.weights_offset();
        if (v.panels() && inside)
            kept_.push_back({begin, begin + v.weights_size()});
    }
    std::ranges::sort(kept_);
    // Kernels will read them again and again: a file that is read from a disk now comes in large pages then.
    if (!kept_.empty())
        device::preferLargePages(reinterpret_cast<void const*>(kept_.front().first),
                                 kept_.back().second - kept_.front().first);
}

void AllButPanels::done(void const* data, size_t sizeBytes) const
{
    uintptr_t at = reinterpret_cast<uintptr_t>(data);
    uintptr_t const end = at + sizeBytes;
    for (auto const& [keptBegin, keptEnd] : kept_) {
        pass(at, std::min(keptBegin, end));
        at = std::max(at, keptEnd);
    }
    pass(at, end);
}

void AllButPanels::pass(uintptr_t begin, uintptr_t end) const
{
    // Less would tear large pages of the file apart that panels lie in too.
    if (begin < end && (kept_.empty() || end - begin >= device::kLargePageBytes))
        pages_.done(reinterpret_cast<void const*>(begin), end - begin);
}

} // namespace tw::plan
