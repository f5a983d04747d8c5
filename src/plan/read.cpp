// SPDX-License-Identifier: Apache-2.0
// Reads a plan that may be hostile: flatbuffers are verified first, then every index, number and range is checked where
// it is used, and the graph as a whole by ir::verify.
#include <algorithm>

#include "ops/registry.h"
#include "plan/file.h"
#include "plan/plan.h"
#include "plan_generated.h"

namespace tw::plan {

namespace {

constexpr int kMaxNesting = 32;
constexpr size_t kMaxTables = 4'000'000; // flatbuffers tables in one section

Error bad(std::string const& what)
{
    return Error{ErrorCode::kFailedInitialization, "the plan is damaged: " + what};
}

std::string text(flatbuffers::String const* s)
{
    return s ? s->str() : std::string();
}

template <class V>
auto sizeOf(V const* v) -> flatbuffers::uoffset_t
{
    return v ? v->size() : 0;
}

template <class T>
std::vector<T> listOf(flatbuffers::Vector<T> const* v)
{
    return v ? std::vector<T>(v->begin(), v->end()) : std::vector<T>();
}

std::string bytesOf(flatbuffers::Vector<uint8_t> const* v)
{
    return v ? std::string(reinterpret_cast<char const*>(v->data()), v->size()) : std::string();
}

Result<DataType> typeOf(uint8_t t)
{
    if (t >= kDataTypeCount)
        return bad("data type " + std::to_string(t) + " does not exist");
    return static_cast<DataType>(t);
}

class GraphReader
{
public:
    GraphReader(Section weights, std::shared_ptr<void const> owner) : weights_(weights), owner_(std::move(owner)) {}

    Result<std::unique_ptr<ir::Graph>> graph(fb::Graph const& in, int depth)
    {
        if (depth > kMaxNesting)
            return bad("graphs are nested deeper than " + std::to_string(kMaxNesting));
        auto g = std::make_unique<ir::Graph>();
        g->name = text(in.name());
        if (in.form() < 0 || in.form() > static_cast<int32_t>(ir::Form::kScheduled))
            return bad("graph form " + std::to_string(in.form()));
        g->form = static_cast<ir::Form>(in.form());
        for (flatbuffers::uoffset_t i = 0; i < sizeOf(in.symbols()); ++i) {
            fb::Symbol const* s = in.symbols()->Get(i);
            g->symbols[text(s->name())] = ir::Symbol{ir::Range{s->lo(), s->hi()}, s->bound_by_node()};
        }
        std::vector<ir::Value*> values;
        std::vector<fb::ValueKind> kinds;
        for (flatbuffers::uoffset_t i = 0; i < sizeOf(in.values()); ++i) {
            fb::Value const* v = in.values()->Get(i);
            TW_ASSIGN(ir::Value * made, value(*g, *v));
            values.push_back(made);
            kinds.push_back(v->kind());
        }
        auto pick = [&](flatbuffers::Vector<int32_t> const* list, bool optional) -> Result<std::vector<ir::Value*>> {
            std::vector<ir::Value*> out;
            for (flatbuffers::uoffset_t i = 0; i < sizeOf(list); ++i) {
                int32_t const p = list->Get(i);
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
        for (flatbuffers::uoffset_t i = 0; i < sizeOf(in.nodes()); ++i) {
            fb::Node const* n = in.nodes()->Get(i);
            TW_ASSIGN(auto inputs, pick(n->inputs(), true));
            TW_ASSIGN(auto outputs, pick(n->outputs(), false));
            TW_TRY(node(*g, *n, std::move(inputs), std::move(outputs), depth));
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
            TW_ASSIGN(ir::Dim d, ir::Dim::parse(list->Get(i)->str()));
            out.push_back(std::move(d));
        }
        return out;
    }

    Result<ir::Value*> value(ir::Graph& g, fb::Value const& in)
    {
        std::string const name = text(in.name());
        TW_ASSIGN(DataType const type, typeOf(in.type()));
        if (sizeOf(in.shape()) > kMaxRank)
            return bad("value '" + name + "' has rank " + std::to_string(in.shape()->size()));
        TW_ASSIGN(ir::Shape shape, dims(in.shape()));
        ir::Value* v = g.newValue(name, type, shape);
        v->host = in.host();
        if (in.has_content()) {
            if (sizeOf(in.content()) > ir::kMaxContent)
                return bad("value '" + name + "' has too much content");
            TW_ASSIGN(v->content, dims(in.content()));
        }
        if (fb::Quantization const* q = in.quantization()) {
            if (q->origin() < 0 || q->origin() > static_cast<int32_t>(ir::Quantization::Origin::kCalibrated))
                return bad("value '" + name + "' has an unknown quantization");
            v->quantization =
                ir::Quantization{listOf(q->scales()), q->axis(), static_cast<ir::Quantization::Origin>(q->origin())};
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
        if (offset > weights_.sizeBytes || size > weights_.sizeBytes - offset || size != uint64_t(bytes))
            return bad("constant '" + name + "' of " + std::to_string(bytes) + " bytes lies outside the weights");
        if (in.role() < 0 || in.role() > static_cast<int32_t>(ir::WeightsRole::kAny))
            return bad("constant '" + name + "' has an unknown role");
        auto c = std::make_shared<ir::Constant>();
        void const* data = static_cast<char const*>(weights_.data) + offset;
        c->data = owner_ ? std::make_shared<Blob const>(data, size_t(size), owner_) : Blob::copy(data, size_t(size));
        c->layer = text(in.layer());
        c->role = static_cast<ir::WeightsRole>(in.role());
        c->weightsName = text(in.weights_name());
        v->constant = std::move(c);
        return v;
    }

    Result<void> node(ir::Graph& g, fb::Node const& in, std::vector<ir::Value*> inputs, std::vector<ir::Value*> outputs,
                      int depth)
    {
        auto n = std::make_unique<ir::Node>();
        n->id = in.id();
        n->name = text(in.name());
        n->op = ops::find(text(in.op()));
        if (!n->op)
            return bad("node '" + n->name + "' is of op '" + text(in.op()) + "', which this library does not have");
        n->attrs = n->op->makeAttrs();
        std::vector<ir::FieldValue> fields;
        for (flatbuffers::uoffset_t i = 0; i < sizeOf(in.fields()); ++i) {
            fb::Field const* f = in.fields()->Get(i);
            if (f->kind() > static_cast<uint8_t>(ir::FieldValue::Kind::kReals) || f->number() <= 0)
                return bad("node '" + n->name + "' has an unknown attribute");
            fields.push_back(ir::FieldValue{f->number(), std::to_string(f->number()),
                                            static_cast<ir::FieldValue::Kind>(f->kind()), listOf(f->integers()),
                                            listOf(f->reals()), bytesOf(f->text())});
        }
        std::string why;
        if (!ir::setFields(*n->attrs, fields, why))
            return bad("node '" + n->name + "' (" + n->op->name + "): " + why);
        n->inputs = std::move(inputs);
        n->outputs = std::move(outputs);
        for (size_t i = 0; i < n->outputs.size(); ++i) {
            ir::Value* v = n->outputs[i];
            if (v->producer || v->isConstant() || std::find(g.inputs.begin(), g.inputs.end(), v) != g.inputs.end())
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
            n->layers.push_back(in.layers()->Get(i)->str());
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
        return {};
    }

    Section weights_;
    std::shared_ptr<void const> owner_;
};

Result<Extents> extents(flatbuffers::Vector<int64_t> const* list)
{
    if (sizeOf(list) > kMaxRank)
        return bad("a profile has a shape of rank " + std::to_string(list->size()));
    Extents e;
    for (flatbuffers::uoffset_t i = 0; i < sizeOf(list); ++i) {
        if (list->Get(i) < 0 || list->Get(i) > INT32_MAX)
            return bad("a profile has the dimension " + std::to_string(list->Get(i)));
        e.push(list->Get(i));
    }
    return e;
}

Result<void> readMeta(fb::Meta const& m, Contents& c)
{
    c.engineName = text(m.engine_name());
    for (flatbuffers::uoffset_t i = 0; i < sizeOf(m.io()); ++i) {
        fb::IoTensor const* t = m.io()->Get(i);
        IoTensor io{
            text(t->name()), t->is_input(), t->is_shape_tensor(), t->is_execution(), t->broadcast_across_batch(), {}};
        for (flatbuffers::uoffset_t k = 0; k < sizeOf(t->dimension_names()); ++k)
            io.dimensionNames.push_back(t->dimension_names()->Get(k)->str());
        c.io.push_back(std::move(io));
    }
    for (flatbuffers::uoffset_t i = 0; i < sizeOf(m.profiles()); ++i) {
        Profile p;
        auto const* inputs = m.profiles()->Get(i)->inputs();
        for (flatbuffers::uoffset_t k = 0; k < sizeOf(inputs); ++k) {
            fb::ProfileInput const* in = inputs->Get(k);
            ProfileRange r;
            r.hasShape = in->has_shape();
            TW_ASSIGN(r.min, extents(in->min()));
            TW_ASSIGN(r.opt, extents(in->opt()));
            TW_ASSIGN(r.max, extents(in->max()));
            r.minValues = listOf(in->min_values());
            r.optValues = listOf(in->opt_values());
            r.maxValues = listOf(in->max_values());
            bool const even = r.min.rank == r.opt.rank && r.opt.rank == r.max.rank &&
                              r.minValues.size() == r.optValues.size() && r.optValues.size() == r.maxValues.size();
            if (!even)
                return bad("a profile's minimum, optimum and maximum differ in rank");
            p.inputs[text(in->name())] = std::move(r);
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
        c.notes[text(m.notes()->Get(i)->key())] = text(m.notes()->Get(i)->value());
    return {};
}

Result<Block> readBlock(fb::Block const& in, ir::Graph const& g, int depth)
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
            step.choice = Choice{c->tactic(),         text(c->name()),     c->version(),
                                 listOf(c->config()), bytesOf(c->image()), c->microseconds()};
        ir::Node const& n = *g.nodes[i];
        if (sizeOf(s->regions()) != n.regions.size())
            return bad("a step has another number of regions than its node");
        for (flatbuffers::uoffset_t r = 0; r < sizeOf(s->regions()); ++r) {
            TW_ASSIGN(Block region, readBlock(*s->regions()->Get(r), *n.regions[r], depth + 1));
            step.regions.push_back(std::move(region));
        }
        out.steps.push_back(std::move(step));
    }
    for (flatbuffers::uoffset_t i = 0; i < sizeOf(in.slots()); ++i) {
        std::vector<Slot> list;
        auto const* slots = in.slots()->Get(i)->slots();
        for (flatbuffers::uoffset_t k = 0; k < sizeOf(slots); ++k) {
            Slot const s{slots->Get(k)->value(), slots->Get(k)->offset(), slots->Get(k)->size_bytes()};
            if (s.value < 0 || size_t(s.value) >= g.values().size() || s.offset < 0 || s.sizeBytes < 0)
                return bad("a memory slot is out of range");
            list.push_back(s);
        }
        out.slots.push_back(std::move(list));
    }
    out.arenaBytes = listOf(in.arena_bytes());
    return out;
}

template <class Table>
Result<Table const*> verified(Section const& s, char const* name)
{
    flatbuffers::Verifier v(static_cast<uint8_t const*>(s.data), size_t(s.sizeBytes), 4 * kMaxNesting, kMaxTables);
    if (s.sizeBytes < 8 || !v.VerifyBuffer<Table>(nullptr))
        return bad(std::string("section ") + name + " is malformed");
    return flatbuffers::GetRoot<Table>(s.data);
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
    TW_ASSIGN(std::vector<Section> sections, unpackFile(bytes, sizeBytes, options.strictVersion));
    auto find = [&](SectionKind kind) -> Section const* {
        auto it = std::find_if(sections.begin(), sections.end(), [&](Section const& s) { return s.kind == kind; });
        return it == sections.end() ? nullptr : &*it;
    };
    Section const *meta = find(SectionKind::kMeta), *graph = find(SectionKind::kGraph),
                  *weights = find(SectionKind::kWeights);
    if (!meta || !graph || !weights)
        return bad("a section is missing");
    Contents c;
    TW_ASSIGN(fb::Meta const* m, verified<fb::Meta>(*meta, "META"));
    TW_TRY(readMeta(*m, c));
    TW_ASSIGN(fb::Graph const* g, verified<fb::Graph>(*graph, "GRAPH"));
    GraphReader reader(*weights, aligned.empty() ? options.owner : nullptr);
    TW_ASSIGN(c.graph, reader.graph(*g, 0));
    TW_TRY(ir::verify(*c.graph));
    for (Section const& s : sections) {
        if (s.kind != SectionKind::kTarget)
            continue;
        TW_ASSIGN(fb::Target const* t, verified<fb::Target>(s, "TARGET"));
        if (!t->root())
            return bad("section TARGET has no steps");
        Target target;
        target.backend = text(t->backend());
        target.fingerprint = text(t->fingerprint());
        TW_ASSIGN(target.root, readBlock(*t->root(), *c.graph, 0));
        c.targets.push_back(std::move(target));
    }
    return c;
}

} // namespace tw::plan
