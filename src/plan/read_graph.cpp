// SPDX-License-Identifier: Apache-2.0
#include "plan/read_graph.h"

#include <optional>
#include <set>
#include <utility>

#include "plan/old.h"
#include "tactic/registry.h"

namespace tw::plan {

namespace {

Result<DataType> typeOf(uint8_t t)
{
    if (t >= kDataTypeCount)
        return bad("data type {} does not exist", t);
    return static_cast<DataType>(t);
}

class GraphReader
{
public:
    GraphReader(Section weights, std::shared_ptr<void const> owner, bool keepPanels, Copier& copy)
        : weights_(weights), owner_(std::move(owner)), keepPanels_(keepPanels), copy_(copy)
    {}
    std::map<ir::Value const*, ops::PanelOrder> panels;
    std::map<ir::Value const*, int32_t> made;
    std::map<ir::Value const*, double> scales;

    Result<std::unique_ptr<ir::Graph>> graph(fb::Graph const& in, int depth)
    {
        if (depth > kMaxNesting)
            return bad("graphs are nested deeper than {}", kMaxNesting);
        auto g = std::make_unique<ir::Graph>();
        g->name = copy_.text(in.name());
        if (in.form() < 0 || in.form() > static_cast<int32_t>(ir::Form::kScheduled))
            return bad("graph form {}", in.form());
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
                    return bad("value {} of {}", p, values.size());
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
            return bad("value '{}' has rank {}", name, in.shape()->size());
        TW_ASSIGN(ir::Shape shape, dims(in.shape()));
        ir::Value* v = g.newValue(name, type, shape);
        v->host = in.host();
        v->format = Format(in.format());
        if (!isKnown(v->format))
            return bad("value '{}' has the unknown format {}", name, in.format());
        if (in.has_content()) {
            if (sizeOf(in.content()) > ir::kMaxContent)
                return bad("value '" + name + "' has too much content");
            TW_ASSIGN(v->content, dims(in.content()));
        }
        if (fb::Quantization const* q = in.quantization(); q && sizeOf(q->scales()) == 1)
            scales[v] = q->scales()->Get(0);
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
            return bad("constant '{}' of {} bytes lies outside the weights", name, bytes);
        if (in.role() < 0 || in.role() > static_cast<int32_t>(ir::WeightsRole::kAny))
            return bad("constant '" + name + "' has an unknown role");
        auto c = std::make_shared<ir::Constant>();
        std::optional<ops::PanelOrder> order;
        if (fb::Panels const* p = in.panels()) {
            order = ops::PanelOrder{copy_.list(p->panels()), p->channels(),    p->rows(), p->taps(),
                                    p->together(),           p->outputs_last()};
            TW_TRY(copy_.status());
            if (depth > 0)
                return bad("constant '" + name + "' of a region or body lies in panels");
            if (!isFullFloat(type) || !order->fits(bytes / int64_t(sizeof(float))))
                return bad("the panels of constant '" + name + "' do not fit its shape");
        }
        TW_ASSIGN(c->data, blob(offset, size, order));
        if (order)
            panels.emplace(v, std::move(*order));
        c->layer = copy_.text(in.layer());
        c->role = static_cast<ir::WeightsRole>(in.role());
        c->weightsName = copy_.text(in.weights_name());
        v->constant = std::move(c);
        if (in.made() != 0)
            made[v] = in.made() - 1;
        return v;
    }

    static BlobPtr plainOf(Blob const& inPanels, ops::PanelOrder const& order)
    {
        std::vector<std::byte> plain(inPanels.sizeBytes());
        ops::fromPanels(order, inPanels.as<float>(), reinterpret_cast<float*>(plain.data()));
        return Blob::own(std::move(plain));
    }

    // A range of the weights that several constants name is kept once; all of them see it in the same order. Ranges
    // that overlap otherwise are no plan of ours and could ask for any amount of memory.
    Result<BlobPtr> blob(uint64_t offset, uint64_t size, std::optional<ops::PanelOrder> const& order)
    {
        auto [it, isNew] = ranges_.try_emplace({offset, size}, Range{nullptr, order});
        BlobPtr& made = it->second.data;
        if (!isNew && it->second.order == order)
            return made;
        if (!isNew || size > weights_.sizeBytes - rangeBytes_)
            return bad("constants overlap in the weights");
        rangeBytes_ += size;
        void const* data = static_cast<char const*>(weights_.data) + offset;
        bool const inPlace = owner_ && reinterpret_cast<uintptr_t>(data) % alignof(float) == 0; // the widest type
        made = inPlace ? std::make_shared<Blob const>(data, size_t(size), owner_) : Blob::copy(data, size_t(size));
        if (order && !keepPanels_)
            made = plainOf(*made, *order);
        return made;
    }

    Result<void> node(ir::Graph& g, fb::Node const& in, std::vector<ir::Value*> inputs, std::vector<ir::Value*> outputs,
                      std::set<ir::Value const*> const& graphInputs, int depth)
    {
        auto n = std::make_unique<ir::Node>();
        n->id = in.id();
        n->name = copy_.text(in.name());
        std::string op = copy_.text(in.op());
        std::vector<ir::FieldValue> fields;
        for (flatbuffers::uoffset_t i = 0; i < sizeOf(in.fields()); ++i) {
            fb::Field const* f = in.fields()->Get(i);
            if (f->kind() > static_cast<uint8_t>(ir::FieldValue::Kind::kReals) || f->number() <= 0)
                return bad("node '" + n->name + "' has an unknown attribute");
            fields.push_back(ir::FieldValue{f->number(), std::to_string(f->number()),
                                            static_cast<ir::FieldValue::Kind>(f->kind()), copy_.list(f->integers()),
                                            copy_.list(f->reals()), copy_.bytes(f->text())});
        }
        renewNode(op, fields, inputs);
        n->op = ops::find(op);
        if (!n->op)
            return bad("node '" + n->name + "' is of op '" + op + "', which this library does not have");
        n->attrs = n->op->makeAttrs();
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
        if (in.body())
            TW_SET(n->body, graph(*in.body(), depth + 1));
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
    struct Range
    {
        BlobPtr data;
        std::optional<ops::PanelOrder> order; // none: that of the shape
    };
    std::map<std::pair<uint64_t, uint64_t>, Range> ranges_; // by offset and size
    uint64_t rangeBytes_ = 0;
};

} // namespace

Result<ReadGraph> readGraph(fb::Graph const& in, fb::Graph const* recipes, Section const& weights,
                            std::shared_ptr<void const> owner, bool keepPanels, Copier& copy)
{
    GraphReader reader(weights, std::move(owner), keepPanels, copy);
    ReadGraph out;
    TW_ASSIGN(out.graph, reader.graph(in, 0));
    out.made = std::exchange(reader.made, {});
    out.panels = std::exchange(reader.panels, {});
    out.scales = std::move(reader.scales);
    if (recipes) {
        TW_ASSIGN(out.recipes, reader.graph(*recipes, 0));
        if (!reader.panels.empty())
            return bad("constants of recipes lie in panels");
    }
    return out;
}

} // namespace tw::plan
