// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <map>
#include <tuple>

#include "base/check.h"
#include "ir/op_def.h"
#include "plan/file.h"
#include "plan/plan.h"
#include "plan_generated.h"
#include "tactic/packed_constants.h"

namespace tw::plan {

namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
template <class T>
using Vector = Offset<flatbuffers::Vector<T>>;

// Weights of all graphs, each blob once in each order. Where they lie is settled first; they are written when the file
// is there, so that there is no third copy of a large model beside the builder's and the file's.
class Weights
{
public:
    // panels: to store it in that order; null: as it is. The constant and the order outlive this.
    std::pair<uint64_t, uint64_t> add(BlobPtr const& blob, uint64_t sizeBytes, ops::PanelOrder const* panels)
    {
        ops::Recipe const order = panels ? ops::recipeOf(*panels) : ops::Recipe();
        auto [it, isNew] = known_.try_emplace({blob->data(), sizeBytes, order}, sizeBytes_);
        if (isNew) {
            places_.push_back({blob.get(), sizeBytes, panels, sizeBytes_});
            sizeBytes_ = (sizeBytes_ + sizeBytes + kBlobAlignment - 1) / kBlobAlignment * kBlobAlignment;
        }
        return {it->second, sizeBytes};
    }
    uint64_t sizeBytes() const { return sizeBytes_; }
    void write(char* to) const
    {
        for (Place const& p : places_)
            if (p.panels)
                ops::toPanels(*p.panels, p.blob->as<float>(), reinterpret_cast<float*>(to + p.offset));
            else
                std::memcpy(to + p.offset, p.blob->data(), size_t(p.sizeBytes));
    }

private:
    static constexpr size_t kBlobAlignment = 256;
    struct Place
    {
        Blob const* blob;
        uint64_t sizeBytes;
        ops::PanelOrder const* panels;
        uint64_t offset;
    };
    std::vector<Place> places_;
    uint64_t sizeBytes_ = 0;
    std::map<std::tuple<void const*, uint64_t, ops::Recipe>, uint64_t> known_;
};

class GraphWriter
{
public:
    GraphWriter(FlatBufferBuilder& b, Weights& w, Contents const& c) : b_(b), weights_(w), contents_(c) {}

    Offset<fb::Graph> graph(ir::Graph const& g)
    {
        std::map<ir::Value const*, int32_t> index;
        index[nullptr] = -1;
        std::vector<Offset<fb::Value>> values;
        for (auto const& v : g.values()) {
            index[v.get()] = int32_t(values.size());
            values.push_back(value(*v));
        }
        auto positions = [&](std::vector<ir::Value*> const& list) {
            auto out = mapped<int32_t>(list, [&](ir::Value const* v) { return index.at(v); });
            return b_.CreateVector(out);
        };
        std::vector<Offset<fb::Node>> nodes;
        for (auto const& n : g.nodes) {
            auto const inputs = positions(n->inputs), outputs = positions(n->outputs);
            nodes.push_back(node(*n, inputs, outputs));
        }
        std::vector<Offset<fb::Symbol>> symbols;
        for (auto const& [name, s] : g.symbols)
            symbols.push_back(fb::CreateSymbol(b_, b_.CreateString(name), s.range.lo, s.range.hi, s.boundByNode));
        auto const name = b_.CreateString(g.name);
        auto const symbolList = b_.CreateVector(symbols);
        auto const valueList = b_.CreateVector(values);
        auto const inputs = positions(g.inputs), outputs = positions(g.outputs);
        auto const nodeList = b_.CreateVector(nodes);
        return fb::CreateGraph(b_, name, static_cast<int32_t>(g.form), symbolList, valueList, inputs, outputs,
                               nodeList);
    }

    // Where the bytes of a constant lie; the first time they are put there.
    std::pair<uint64_t, uint64_t> store(ir::Value const& v)
    {
        return weights_.add(v.constant->data, uint64_t(ir::extentsOf(v.shape).volume() * sizeOf(v.type)),
                            contents_.panelsKept ? nullptr : orderOf(v));
    }

private:
    ops::PanelOrder const* orderOf(ir::Value const& v) const
    {
        auto const order = contents_.panels.find(&v);
        return order == contents_.panels.end() ? nullptr : &order->second;
    }
    Vector<Offset<flatbuffers::String>> dims(std::vector<ir::Dim> const& list)
    {
        auto out =
            mapped<Offset<flatbuffers::String>>(list, [&](ir::Dim const& d) { return b_.CreateSharedString(d.str()); });
        return b_.CreateVector(out);
    }
    Offset<fb::Value> value(ir::Value const& v)
    {
        auto const name = b_.CreateString(v.name);
        auto const shape = dims(v.shape);
        Offset<fb::Quantization> q;
        if (auto const at = contents_.scales.find(&v); at != contents_.scales.end())
            q = fb::CreateQuantization(b_, b_.CreateVector(&at->second, 1), -1);
        Vector<Offset<flatbuffers::String>> content;
        if (v.content)
            content = dims(*v.content);
        uint64_t offset = 0, size = 0;
        Offset<flatbuffers::String> layer, weightsName;
        Offset<fb::Panels> panels;
        int32_t role = 0, made = 0;
        if (v.isConstant()) {
            if (ops::PanelOrder const* const wanted = orderOf(v))
                panels = fb::CreatePanels(b_, b_.CreateVector(wanted->panels), wanted->channels, wanted->rows,
                                          wanted->taps, wanted->together, wanted->outputsLast);
            std::tie(offset, size) = store(v);
            layer = b_.CreateString(v.constant->layer);
            weightsName = b_.CreateString(v.constant->weightsName);
            role = static_cast<int32_t>(v.constant->role);
            if (auto const it = contents_.made.find(&v); it != contents_.made.end())
                made = it->second + 1;
        }
        auto const kind = v.isConstant() ? fb::ValueKind_Constant
                          : v.producer   ? fb::ValueKind_Produced
                                         : fb::ValueKind_Input;
        return fb::CreateValue(b_, name, static_cast<uint8_t>(v.type), shape, kind, v.host, q, content,
                               v.content.has_value(), offset, size, layer, role, weightsName,
                               static_cast<int32_t>(v.format), panels, made);
    }
    Offset<fb::Node> node(ir::Node const& n, Vector<int32_t> inputs, Vector<int32_t> outputs)
    {
        std::vector<Offset<fb::Field>> fields;
        for (auto const& f : ir::fieldsOf(*n.attrs)) {
            auto const integers = b_.CreateVector(f.integers);
            auto const reals = b_.CreateVector(f.reals);
            auto const text = b_.CreateVector(reinterpret_cast<uint8_t const*>(f.text.data()), f.text.size());
            fields.push_back(fb::CreateField(b_, f.number, static_cast<uint8_t>(f.kind), integers, reals, text));
        }
        auto regions = mapped<Offset<fb::Graph>>(n.regions, [&](auto const& r) { return graph(*r); });
        Offset<fb::Graph> body;
        if (n.body)
            body = graph(*n.body);
        auto layers =
            mapped<Offset<flatbuffers::String>>(n.layers, [&](auto const& l) { return b_.CreateSharedString(l); });
        auto wish = [&](ir::Requested<DataType> const& w) {
            return fb::CreateTypeWish(b_, static_cast<uint8_t>(w.value), w.byUser);
        };
        auto const precision = wish(n.precision);
        auto types = mapped<Offset<fb::TypeWish>>(n.outputTypes, [&](auto const& w) { return wish(w); });
        auto const op = b_.CreateSharedString(n.op->name);
        auto const name = b_.CreateString(n.name);
        auto const fieldList = b_.CreateVector(fields);
        auto const regionList = b_.CreateVector(regions);
        auto const layerList = b_.CreateVector(layers);
        auto const typeList = b_.CreateVector(types);
        return fb::CreateNode(b_, n.id, op, name, fieldList, inputs, outputs, regionList, body, layerList, precision,
                              typeList, static_cast<int32_t>(n.device.value.kind), n.device.value.core,
                              n.device.byUser);
    }
    FlatBufferBuilder& b_;
    Weights& weights_;
    Contents const& contents_;
};

std::vector<int64_t> listOf(Extents const& e)
{
    return {e.begin(), e.end()};
}

Offset<fb::Meta> meta(FlatBufferBuilder& b, Contents const& c)
{
    std::vector<Offset<fb::IoTensor>> io;
    for (IoTensor const& t : c.io) {
        auto const name = b.CreateString(t.name);
        auto const names = b.CreateVectorOfStrings(t.dimensionNames);
        auto const dims = b.CreateVector(listOf(t.dlaDims));
        io.push_back(fb::CreateIoTensor(b, name, t.isInput, t.isShapeTensor, t.isExecution, t.broadcastAcrossBatch,
                                        names, static_cast<int32_t>(t.dlaLayout), dims));
    }
    std::vector<Offset<fb::Profile>> profiles;
    for (Profile const& p : c.profiles) {
        std::vector<Offset<fb::ProfileInput>> inputs;
        for (auto const& [name, r] : p.inputs)
            inputs.push_back(fb::CreateProfileInput(b, b.CreateString(name), r.hasShape, b.CreateVector(listOf(r.min)),
                                                    b.CreateVector(listOf(r.opt)), b.CreateVector(listOf(r.max)),
                                                    b.CreateVector(r.minValues), b.CreateVector(r.optValues),
                                                    b.CreateVector(r.maxValues)));
        profiles.push_back(fb::CreateProfile(b, b.CreateVector(inputs)));
    }
    std::vector<Offset<fb::Note>> notes;
    for (auto const& [key, text] : c.notes)
        notes.push_back(fb::CreateNote(b, b.CreateString(key), b.CreateString(text)));
    auto const name = b.CreateString(c.engineName);
    auto const ioList = b.CreateVector(io);
    auto const profileList = b.CreateVector(profiles);
    auto const noteList = b.CreateVector(notes);
    return fb::CreateMeta(b, name, ioList, profileList, c.implicitBatch, c.maxBatchSize, c.refittable,
                          c.profilingVerbosity, c.engineCapability, c.tacticSources, noteList,
                          static_cast<int32_t>(c.dlaModel), c.dlaCore, c.dlaLoadables);
}

Result<Offset<fb::Block>> block(FlatBufferBuilder& b, Block const& in, ir::Graph const& g)
{
    std::vector<Offset<fb::Step>> steps;
    for (Step const& s : in.steps) {
        if (s.node < 0 || size_t(s.node) >= g.nodes.size() ||
            s.regions.size() != g.nodes[size_t(s.node)]->regions.size())
            return internalError("a step of the plan does not fit its graph");
        std::vector<Offset<fb::Block>> regions;
        for (size_t r = 0; r < s.regions.size(); ++r) {
            TW_ASSIGN(auto region, block(b, s.regions[r], *g.nodes[size_t(s.node)]->regions[r]));
            regions.push_back(region);
        }
        Choice const& c = s.choice;
        auto const name = b.CreateSharedString(c.name);
        auto const config = b.CreateVector(c.config);
        auto const image = b.CreateVector(reinterpret_cast<uint8_t const*>(c.image.data()), c.image.size());
        std::vector<Offset<fb::Rival>> rivals;
        for (Rival const& r : c.rivals) {
            auto const rivalName = b.CreateSharedString(r.name);
            rivals.push_back(fb::CreateRival(b, rivalName, r.microseconds, b.CreateSharedString(r.reason)));
        }
        Vector<Offset<fb::Rival>> const rivalList = rivals.empty() ? 0 : b.CreateVector(rivals);
        auto const lack = c.lack.empty() ? 0 : b.CreateSharedString(c.lack);
        auto const choice = fb::CreateChoice(b, c.tactic, name, c.version, config, image, c.microseconds, rivalList,
                                             c.limitMicroseconds, lack);
        steps.push_back(fb::CreateStep(b, s.node, choice, b.CreateVector(regions)));
    }
    return fb::CreateBlock(b, b.CreateVector(steps));
}

Section sectionOf(SectionKind kind, FlatBufferBuilder const& b)
{
    return Section{kind, b.GetBufferPointer(), b.GetSize()};
}

} // namespace

Result<std::string> write(Contents const& contents)
{
    if (!contents.graph)
        return internalError("a plan needs a graph");
    FlatBufferBuilder metaBuffer, graphBuffer, recipesBuffer;
    metaBuffer.Finish(meta(metaBuffer, contents));
    Weights weights;
    for (auto const& [value, order] : contents.panels)
        if (!isFullFloat(value->type) || !order.fits(ir::extentsOf(value->shape).volume()))
            return internalError("the panels of constant '{}' do not fit its shape", value->name);
    GraphWriter writer(graphBuffer, weights, contents);
    // Together: what is used where it lies, what is copied last of all, then what is dropped as it is packed.
    for (auto const& v : contents.graph->values())
        if (contents.panels.contains(v.get()))
            writer.store(*v);
    constexpr size_t kSmallBytes = 4096;
    for (auto const& v : contents.graph->values())
        if (v->isConstant() && v->constant->data->sizeBytes() <= kSmallBytes)
            writer.store(*v);
    graphBuffer.Finish(writer.graph(*contents.graph));
    if (contents.recipes)
        recipesBuffer.Finish(GraphWriter(recipesBuffer, weights, contents).graph(*contents.recipes));
    std::vector<FlatBufferBuilder> targets(contents.targets.size());
    for (size_t i = 0; i < targets.size(); ++i) {
        Target const& t = contents.targets[i];
        FlatBufferBuilder& b = targets[i];
        TW_ASSIGN(auto root, block(b, t.root, *contents.graph));
        std::vector<Offset<fb::Block>> others;
        for (Block const& of : t.others) {
            TW_ASSIGN(auto other, block(b, of, *contents.graph));
            others.push_back(other);
        }
        Vector<Offset<fb::Block>> const otherList = others.empty() ? 0 : b.CreateVector(others);
        auto const backend = b.CreateString(t.backend);
        auto const fingerprint = b.CreateString(t.fingerprint);
        b.Finish(fb::CreateTarget(b, backend, fingerprint, root, otherList));
    }
    std::vector<Section> sections{sectionOf(SectionKind::kMeta, metaBuffer),
                                  sectionOf(SectionKind::kGraph, graphBuffer)};
    if (contents.recipes)
        sections.push_back(sectionOf(SectionKind::kRecipes, recipesBuffer));
    for (FlatBufferBuilder const& b : targets)
        sections.push_back(sectionOf(SectionKind::kTarget, b));
    sections.push_back(Section{SectionKind::kWeights, nullptr, weights.sizeBytes()});
    return packFile(sections, [&](Section const&, char* to) { weights.write(to); });
}

} // namespace tw::plan
