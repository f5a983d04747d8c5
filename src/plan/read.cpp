// SPDX-License-Identifier: Apache-2.0
// Reads a plan that may be hostile: flatbuffers are verified first, then every index, number and range is checked where
// it is used, and the graph as a whole by ir::verify.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "ops/registry.h"
#include "plan/all_but_panels.h"
#include "plan/file.h"
#include "plan/plan.h"
#include "plan/verified.h"

namespace tw::plan {

namespace {

constexpr size_t kMaxProfiles = 1024;

// Copies texts and lists out of one section. Flatbuffers may share them, so that a few bytes could name gigabytes: what
// is copied is limited by the section's size.
class Copier
{
public:
    explicit Copier(uint64_t sectionBytes) : left_(kFree + kCopiesPerByte * sectionBytes) {}

    std::string text(flatbuffers::String const* s) { return spend(sizeOf(s)) && s ? s->str() : std::string(); }
    // The verifier checks the alignment of a list's length, not that of its elements.
    template <class T>
    std::vector<T> list(flatbuffers::Vector<T> const* v)
    {
        std::vector<T> out;
        if (!spend(uint64_t(sizeOf(v)) * sizeof(T)) || sizeOf(v) == 0)
            return out;
        out.resize(v->size());
        std::memcpy(out.data(), v->Data(), out.size() * sizeof(T));
        return out;
    }
    std::string bytes(flatbuffers::Vector<uint8_t> const* v)
    {
        return spend(sizeOf(v)) && v ? std::string(reinterpret_cast<char const*>(v->data()), v->size()) : std::string();
    }
    // Equal texts are parsed once.
    Result<ir::Dim> dim(flatbuffers::String const* s)
    {
        std::string const t = text(s);
        if (auto it = dims_.find(t); it != dims_.end())
            return it->second;
        spend(kDimCost * t.size());
        TW_TRY(status());
        TW_ASSIGN(ir::Dim d, ir::Dim::parse(t));
        return dims_[t] = d;
    }
    Result<void> status() const
    {
        if (spent_)
            return bad("its texts and lists are many times larger than the file");
        return {};
    }

private:
    static constexpr uint64_t kFree = 1 << 20, kCopiesPerByte = 256, kDimCost = 64;
    bool spend(uint64_t bytes)
    {
        spent_ = spent_ || bytes > left_;
        left_ -= spent_ ? 0 : bytes;
        return !spent_;
    }
    uint64_t left_;
    bool spent_ = false;
    std::map<std::string, ir::Dim> dims_;
};

Result<DataType> typeOf(uint8_t t)
{
    if (t >= kDataTypeCount)
        return bad("data type " + std::to_string(t) + " does not exist");
    return static_cast<DataType>(t);
}

class GraphReader
{
public:
    GraphReader(Section weights, std::shared_ptr<void const> owner, bool keepPanels, Copier& copy)
        : weights_(weights), owner_(std::move(owner)), keepPanels_(keepPanels), copy_(copy)
    {}
    // Of the constants read.
    std::map<ir::Value const*, ops::PanelOrder> panels;

    Result<std::unique_ptr<ir::Graph>> graph(fb::Graph const& in, int depth)
    {
        if (depth > kMaxNesting)
            return bad("graphs are nested deeper than " + std::to_string(kMaxNesting));
        auto g = std::make_unique<ir::Graph>();
        g->name = copy_.text(in.name());
        if (in.form() < 0 || in.form() > static_cast<int32_t>(ir::Form::kScheduled))
            return bad("graph form " + std::to_string(in.form()));
        g->form = static_cast<ir::Form>(in.form());
        for (flatbuffers::uoffset_t i = 0; i < sizeOf(in.symbols()); ++i) {
            fb::Symbol const* s = in.symbols()->Get(i);
            std::string const name = copy_.text(s->name());
            if (s->lo() > s->hi())
                return bad("symbol '" + name + "' has an empty range");
            g->symbols[name] = ir::Symbol{ir::Range{s->lo(), s->hi()}, s->bound_by_node()};
        }
        std::vector<ir::Value*> values;
        std::vector<fb::ValueKind> kinds;
        for (flatbuffers::uoffset_t i = 0; i < sizeOf(in.values()); ++i) {
            fb::Value const* v = in.values()->Get(i);
            TW_ASSIGN(ir::Value * made, value(*g, *v, depth));
            TW_TRY(copy_.status());
            values.push_back(made);
            kinds.push_back(v->kind());
        }
        auto pick = [&](flatbuffers::Vector<int32_t> const* list, bool optional) -> Result<std::vector<ir::Value*>> {
            std::vector<ir::Value*> out;
            for (int32_t const p : copy_.list(list)) {
                if (optional && p == -1) {
                    out.push_back(nullptr);
                    continue;
                }
                if (p < 0 || size_t(p) >= values.size())
                    return bad("value " + std::to_string(p) + " of " + std::to_string(values.size()));
                out.push_back(values[size_t(p)]);
            }
            return out;
        };
        TW_ASSIGN(g->inputs, pick(in.inputs(), false));
        std::set<ir::Value const*> const graphInputs(g->inputs.begin(), g->inputs.end());
        for (flatbuffers::uoffset_t i = 0; i < sizeOf(in.nodes()); ++i) {
            fb::Node const* n = in.nodes()->Get(i);
            TW_ASSIGN(auto inputs, pick(n->inputs(), true));
            TW_ASSIGN(auto outputs, pick(n->outputs(), false));
            TW_TRY(node(*g, *n, std::move(inputs), std::move(outputs), graphInputs, depth));
        }
        TW_ASSIGN(g->outputs, pick(in.outputs(), false));
        for (size_t i = 0; i < values.size(); ++i)
            if ((kinds[i] == fb::ValueKind_Produced) != (values[i]->producer != nullptr))
                return bad("value '" + values[i]->name + "' is not what its kind says");
        return g;
    }

private:
    Result<std::vector<ir::Dim>> dims(flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>> const* list)
    {
        std::vector<ir::Dim> out;
        for (flatbuffers::uoffset_t i = 0; i < sizeOf(list); ++i) {
            TW_ASSIGN(ir::Dim d, copy_.dim(list->Get(i)));
            out.push_back(std::move(d));
        }
        return out;
    }

    Result<ir::Value*> value(ir::Graph& g, fb::Value const& in, int depth)
    {
        std::string const name = copy_.text(in.name());
        TW_ASSIGN(DataType const type, typeOf(in.type()));
        if (sizeOf(in.shape()) > kMaxRank)
            return bad("value '" + name + "' has rank " + std::to_string(in.shape()->size()));
        TW_ASSIGN(ir::Shape shape, dims(in.shape()));
        ir::Value* v = g.newValue(name, type, shape);
        v->host = in.host();
        v->format = Format(in.format());
        if (!isKnown(v->format))
            return bad("value '" + name + "' has the unknown format " + std::to_string(in.format()));
        if (in.has_content()) {
            if (sizeOf(in.content()) > ir::kMaxContent)
                return bad("value '" + name + "' has too much content");
            TW_ASSIGN(v->content, dims(in.content()));
        }
        if (fb::Quantization const* q = in.quantization()) {
            if (q->origin() < 0 || q->origin() > static_cast<int32_t>(ir::Quantization::Origin::kCalibrated))
                return bad("value '" + name + "' has an unknown quantization");
            if (q->axis() < -1 || q->axis() >= v->rank())
                return bad("value '" + name + "' is quantized along axis " + std::to_string(q->axis()));
            v->quantization = ir::Quantization{copy_.list(q->scales()), q->axis(),
                                               static_cast<ir::Quantization::Origin>(q->origin())};
        }
        if (in.kind() != fb::ValueKind_Constant)
            return v;
        int64_t bytes = tw::sizeOf(type);
        for (ir::Dim const& d : shape) {
            if (!d.isConst() || d.value() < 0)
                return bad("constant '" + name + "' has the shape " + str(shape));
            bytes = ir::mulSat(bytes, d.value());
        }
        uint64_t const offset = in.weights_offset(), size = in.weights_size();
        if (offset % kAlignment != 0 || offset > weights_.sizeBytes || size > weights_.sizeBytes - offset ||
            size != uint64_t(bytes))
            return bad("constant '" + name + "' of " + std::to_string(bytes) + " bytes lies outside the weights");
        if (in.role() < 0 || in.role() > static_cast<int32_t>(ir::WeightsRole::kAny))
            return bad("constant '" + name + "' has an unknown role");
        auto c = std::make_shared<ir::Constant>();
        TW_ASSIGN(c->data, blob(offset, size, in.panels() != nullptr));
        if (fb::Panels const* p = in.panels()) {
            ops::PanelOrder order{copy_.list(p->panels()), p->channels(),    p->rows(), p->taps(),
                                  p->together(),           p->outputs_last()};
            TW_TRY(copy_.status());
            if (depth > 0)
                return bad("constant '" + name + "' of a region or body lies in panels");
            if (type != DataType::kFloat || !order.fits(bytes / int64_t(sizeof(float))))
                return bad("the panels of constant '" + name + "' do not fit its shape");
            if (!keepPanels_)
                c->data = plainOf(*c->data, order);
            panels.emplace(v, std::move(order));
        }
        c->layer = copy_.text(in.layer());
        c->role = static_cast<ir::WeightsRole>(in.role());
        c->weightsName = copy_.text(in.weights_name());
        v->constant = std::move(c);
        return v;
    }

    static BlobPtr plainOf(Blob const& inPanels, ops::PanelOrder const& order)
    {
        std::vector<std::byte> plain(inPanels.sizeBytes());
        ops::fromPanels(order, inPanels.as<float>(), reinterpret_cast<float*>(plain.data()));
        return Blob::own(std::move(plain));
    }

    // A range of the weights that several constants name is kept once; ranges that overlap otherwise are no plan of
    // ours and could ask for any amount of memory. One in panels is never shared: each reader might unfold its own.
    Result<BlobPtr> blob(uint64_t offset, uint64_t size, bool inPanels)
    {
        auto [it, isNew] = blobs_.try_emplace({offset, size});
        if (!isNew && !inPanels && !alone_.contains(offset))
            return it->second;
        if (!isNew || size > weights_.sizeBytes - blobBytes_)
            return bad("constants overlap in the weights");
        if (inPanels)
            alone_.insert(offset);
        blobBytes_ += size;
        void const* data = static_cast<char const*>(weights_.data) + offset;
        bool const inPlace = owner_ && reinterpret_cast<uintptr_t>(data) % alignof(float) == 0; // the widest type
        it->second =
            inPlace ? std::make_shared<Blob const>(data, size_t(size), owner_) : Blob::copy(data, size_t(size));
        return it->second;
    }

    Result<void> node(ir::Graph& g, fb::Node const& in, std::vector<ir::Value*> inputs, std::vector<ir::Value*> outputs,
                      std::set<ir::Value const*> const& graphInputs, int depth)
    {
        auto n = std::make_unique<ir::Node>();
        n->id = in.id();
        n->name = copy_.text(in.name());
        n->op = ops::find(copy_.text(in.op()));
        if (!n->op)
            return bad("node '" + n->name + "' is of op '" + copy_.text(in.op()) +
                       "', which this library does not have");
        n->attrs = n->op->makeAttrs();
        std::vector<ir::FieldValue> fields;
        for (flatbuffers::uoffset_t i = 0; i < sizeOf(in.fields()); ++i) {
            fb::Field const* f = in.fields()->Get(i);
            if (f->kind() > static_cast<uint8_t>(ir::FieldValue::Kind::kReals) || f->number() <= 0)
                return bad("node '" + n->name + "' has an unknown attribute");
            fields.push_back(ir::FieldValue{f->number(), std::to_string(f->number()),
                                            static_cast<ir::FieldValue::Kind>(f->kind()), copy_.list(f->integers()),
                                            copy_.list(f->reals()), copy_.bytes(f->text())});
        }
        std::string why;
        if (!ir::setFields(*n->attrs, fields, why))
            return bad("node '" + n->name + "' (" + n->op->name + "): " + why);
        n->inputs = std::move(inputs);
        n->outputs = std::move(outputs);
        for (size_t i = 0; i < n->outputs.size(); ++i) {
            ir::Value* v = n->outputs[i];
            if (v->producer || v->isConstant() || graphInputs.contains(v))
                return bad("value '" + v->name + "' is made twice");
            v->producer = n.get();
            v->producerIndex = int(i);
        }
        for (flatbuffers::uoffset_t i = 0; i < sizeOf(in.regions()); ++i) {
            TW_ASSIGN(auto region, graph(*in.regions()->Get(i), depth + 1));
            n->regions.push_back(std::move(region));
        }
        if (in.body()) {
            TW_ASSIGN(n->body, graph(*in.body(), depth + 1));
        }
        for (flatbuffers::uoffset_t i = 0; i < sizeOf(in.layers()); ++i)
            n->layers.push_back(copy_.text(in.layers()->Get(i)));
        if (in.precision()) {
            TW_ASSIGN(DataType const type, typeOf(in.precision()->type()));
            n->precision = {type, in.precision()->by_user()};
        }
        for (flatbuffers::uoffset_t i = 0; i < sizeOf(in.output_types()); ++i) {
            TW_ASSIGN(DataType const type, typeOf(in.output_types()->Get(i)->type()));
            n->outputTypes.push_back({type, in.output_types()->Get(i)->by_user()});
        }
        if (n->outputTypes.size() != n->outputs.size())
            return bad("node '" + n->name + "' has another number of output types than outputs");
        if (in.device_kind() < 0 || in.device_kind() > static_cast<int32_t>(ir::DeviceKind::kDla))
            return bad("node '" + n->name + "' is placed on an unknown device");
        n->device = {{static_cast<ir::DeviceKind>(in.device_kind()), in.device_core()}, in.device_by_user()};
        g.adoptNode(std::move(n));
        return copy_.status();
    }

    Section weights_;
    std::shared_ptr<void const> owner_;
    bool keepPanels_;
    Copier& copy_;
    std::map<std::pair<uint64_t, uint64_t>, BlobPtr> blobs_; // (offset, size)
    std::set<uint64_t> alone_;                               // offsets of those that one constant may name
    uint64_t blobBytes_ = 0;
};

Result<Extents> extents(std::vector<int64_t> const& list)
{
    if (list.size() > kMaxRank)
        return bad("a profile has a shape of rank " + std::to_string(list.size()));
    Extents e;
    int64_t elements = 1;
    for (int64_t d : list) {
        if (d < 0 || d > INT32_MAX)
            return bad("a profile has the dimension " + std::to_string(d));
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
            return bad("tensor '" + io.name + "' has " + std::to_string(t->dimension_names()->size()) +
                       " dimension names");
        for (flatbuffers::uoffset_t k = 0; k < sizeOf(t->dimension_names()); ++k)
            io.dimensionNames.push_back(copy.text(t->dimension_names()->Get(k)));
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
    for (flatbuffers::uoffset_t i = 0; i < sizeOf(m.notes()); ++i)
        c.notes[copy.text(m.notes()->Get(i)->key())] = copy.text(m.notes()->Get(i)->value());
    // Numbers of public enumerations with three values each.
    if (c.profilingVerbosity < 0 || c.profilingVerbosity > 2 || c.engineCapability < 0 || c.engineCapability > 2)
        return bad("an unknown profiling verbosity or engine capability");
    if (c.maxBatchSize < 1)
        return bad("maximum batch size " + std::to_string(c.maxBatchSize));
    if (c.profiles.empty() || c.profiles.size() > kMaxProfiles)
        return bad(std::to_string(c.profiles.size()) + " optimization profiles");
    return copy.status();
}

Result<Block> readBlock(fb::Block const& in, ir::Graph const& g, Copier& copy, int depth)
{
    if (depth > kMaxNesting)
        return bad("blocks are nested deeper than " + std::to_string(kMaxNesting));
    Block out;
    if (sizeOf(in.steps()) != g.nodes.size())
        return bad("a block has another number of steps than its graph has nodes");
    for (flatbuffers::uoffset_t i = 0; i < sizeOf(in.steps()); ++i) {
        fb::Step const* s = in.steps()->Get(i);
        if (s->node() != int32_t(i))
            return bad("step " + std::to_string(i) + " runs node " + std::to_string(s->node()));
        Step step;
        step.node = s->node();
        if (fb::Choice const* c = s->choice())
            step.choice = Choice{c->tactic(),
                                 copy.text(c->name()),
                                 c->version(),
                                 copy.list(c->config()),
                                 copy.bytes(c->image()),
                                 c->microseconds(),
                                 {}};
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
    for (flatbuffers::uoffset_t i = 0; i < sizeOf(in.slots()); ++i) {
        std::vector<Slot> list;
        auto const* slots = in.slots()->Get(i)->slots();
        if (sizeOf(slots) > g.values().size())
            return bad("a block has more memory slots than values");
        for (flatbuffers::uoffset_t k = 0; k < sizeOf(slots); ++k) {
            Slot const s{slots->Get(k)->value(), slots->Get(k)->offset(), slots->Get(k)->size_bytes()};
            if (s.value < 0 || size_t(s.value) >= g.values().size() || s.offset < 0 || s.sizeBytes < 0)
                return bad("a memory slot is out of range");
            list.push_back(s);
        }
        out.slots.push_back(std::move(list));
    }
    out.arenaBytes = copy.list(in.arena_bytes());
    TW_TRY(copy.status());
    return out;
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
    for (size_t p = 0; p < c.profiles.size(); ++p) {
        for (auto const& [name, r] : c.profiles[p].inputs) {
            std::string const where = "optimization profile " + std::to_string(p) + ": input '" + name + "'";
            auto it = inputs.find(name);
            if (it == inputs.end())
                return bad(where + " is not in the graph");
            ir::Value const& v = *it->second;
            if (r.hasShape && r.max.rank != v.rank())
                return bad(where + " has rank " + std::to_string(r.max.rank) + ", the graph has " + str(v.shape));
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
                return bad(where + " has " + std::to_string(r.optValues.size()) + " values, the graph has " +
                           nameOf(v.type) + str(v.shape));
        }
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
    Copier graphCopy(graph->sizeBytes);
    c.panelsKept = options.keepPanels;
    GraphReader reader(*weights, aligned.empty() ? options.owner : nullptr, c.panelsKept, graphCopy);
    TW_ASSIGN(c.graph, reader.graph(*g, 0));
    c.panels = std::move(reader.panels);
    TW_TRY(ir::verify(*c.graph));
    TW_TRY(checkAgainstGraph(c));
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
        c.targets.push_back(std::move(target));
    }
    return c;
}

} // namespace tw::plan
