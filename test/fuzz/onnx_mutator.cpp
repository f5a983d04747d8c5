// SPDX-License-Identifier: Apache-2.0
// Changes ONNX models as models: operators, edges, attributes, shapes, weights. Plain byte mutations break the protobuf
// nearly always; one in eight stays one.
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "fuzz/onnx_words.h"
#include "tw_onnx.pb.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t maxSize);

namespace {

using namespace tw::fuzz;
using namespace tw_onnx;

class Mutator
{
public:
    Mutator(ModelProto& model, unsigned seed) : model_(model), random_(seed), g_(graphOf(*model.mutable_graph())) {}

    void once()
    {
        switch (below(18)) {
        case 0:
            if (NodeProto* n = node())
                setAnyOp(*n);
            return;
        case 1:
            if (NodeProto* n = node(); n && n->input_size() > 0)
                n->set_input(int(below(size_t(n->input_size()))), anyName());
            return;
        case 2:
            if (NodeProto* n = node())
                n->add_input(anyName());
            return;
        case 3:
            if (NodeProto* n = node(); n && n->input_size() > 0)
                n->mutable_input()->RemoveLast();
            return;
        case 4:
        case 5:
            if (NodeProto* n = node())
                changeAttribute(*n);
            return;
        case 6:
            changeShape();
            return;
        case 7:
        case 8:
            if (g_.initializer_size() > 0)
                changeTensor(*g_.mutable_initializer(int(below(size_t(g_.initializer_size())))));
            return;
        case 9:
        case 10:
            addNode();
            return;
        case 11:
            if (g_.node_size() > 1)
                g_.mutable_node()->DeleteSubrange(int(below(size_t(g_.node_size()))), 1);
            return;
        case 12: {
            TensorProto& t = *g_.add_initializer();
            t.set_name("c" + std::to_string(below(1000)));
            t.set_data_type(below(3) ? TensorProto::INT64 : TensorProto::FLOAT);
            t.add_dims(int64_t(below(5)));
            for (int64_t i = 0; i < t.dims(0); ++i)
                t.data_type() == TensorProto::INT64 ? t.add_int64_data(number()) : t.add_float_data(float(number()));
            return;
        }
        case 13:
            if (g_.output_size() > 0)
                g_.mutable_output(int(below(size_t(g_.output_size()))))->set_name(anyName());
            return;
        case 14:
            if (model_.opset_import_size() > 0)
                model_.mutable_opset_import(0)->set_version(int64_t(1 + below(30)));
            return;
        case 15:
        case 16:
            addPair();
            return;
        default:
            if (NodeProto* n = node())
                n->add_output("v" + std::to_string(below(1000)));
        }
    }

private:
    // The graph, or one in it: of a loop or branch.
    GraphProto& graphOf(GraphProto& outer)
    {
        std::vector<GraphProto*> inner;
        for (NodeProto& n : *outer.mutable_node())
            for (AttributeProto& a : *n.mutable_attribute())
                if (a.has_g())
                    inner.push_back(a.mutable_g());
        return inner.empty() || below(2) ? outer : graphOf(*inner[below(inner.size())]);
    }
    size_t below(size_t n) { return n ? random_() % n : 0; }
    NodeProto* node() { return g_.node_size() ? g_.mutable_node(int(below(size_t(g_.node_size())))) : nullptr; }
    int64_t number()
    {
        static int64_t const odd[] = {0,       1,         2,         3,         4,          5,         7,
                                      8,       16,        64,        -1,        -2,         -3,        -4,
                                      1 << 16, INT32_MAX, INT32_MIN, 1ll << 32, -(1 << 20), INT64_MAX, INT64_MIN};
        return odd[below(4) ? below(14) : below(std::size(odd))];
    }
    std::string anyName()
    {
        std::vector<std::string const*> names;
        for (auto const& v : g_.input())
            names.push_back(&v.name());
        for (auto const& t : g_.initializer())
            names.push_back(&t.name());
        for (auto const& n : g_.node())
            for (auto const& o : n.output())
                names.push_back(&o);
        return names.empty() || below(32) == 0 ? std::string() : *names[below(names.size())];
    }
    void changeAttribute(NodeProto& n)
    {
        AttributeProto* a = nullptr;
        if (n.attribute_size() > 0 && below(3)) {
            a = n.mutable_attribute(int(below(size_t(n.attribute_size()))));
        } else {
            a = n.add_attribute();
            a->set_name(kAttributes[below(std::size(kAttributes))]);
            AttributeProto::AttributeType const types[] = {AttributeProto::INT, AttributeProto::INTS,
                                                           AttributeProto::FLOAT, AttributeProto::FLOATS,
                                                           AttributeProto::STRING};
            a->set_type(types[below(5)]);
        }
        switch (a->type()) {
        case AttributeProto::INT:
            a->set_i(number());
            break;
        case AttributeProto::FLOAT:
            a->set_f(float(number()) / (below(2) ? 1.f : 3.f));
            break;
        case AttributeProto::STRING:
            a->set_s(kWords[below(std::size(kWords))]);
            break;
        case AttributeProto::INTS:
            if (a->ints_size() > 0 && below(3))
                a->set_ints(int(below(size_t(a->ints_size()))), number());
            else if (below(2))
                a->add_ints(number());
            else if (a->ints_size() > 0)
                a->mutable_ints()->RemoveLast();
            break;
        case AttributeProto::FLOATS:
            a->add_floats(float(number()) / 2);
            break;
        case AttributeProto::TENSOR:
            changeTensor(*a->mutable_t());
            break;
        default:
            a->set_type(AttributeProto::INT);
        }
    }
    void changeShape()
    {
        if (g_.input_size() == 0)
            return;
        auto& t = *g_.mutable_input(int(below(size_t(g_.input_size()))))->mutable_type()->mutable_tensor_type();
        auto& s = *t.mutable_shape();
        switch (below(6)) {
        case 0:
            s.add_dim()->set_dim_value(number());
            break;
        case 1:
            if (s.dim_size() > 0)
                s.mutable_dim()->RemoveLast();
            break;
        case 2:
            t.set_elem_type(int(below(14)));
            break;
        default:
            if (s.dim_size() > 0) {
                auto& d = *s.mutable_dim(int(below(size_t(s.dim_size()))));
                below(3) ? d.set_dim_value(number()) : d.set_dim_param(below(2) ? "N" : "M");
            }
        }
    }
    void changeTensor(TensorProto& t)
    {
        switch (below(6)) {
        case 0:
            t.set_data_type(int(below(14)));
            return;
        case 1:
            if (t.dims_size() > 0)
                t.set_dims(int(below(size_t(t.dims_size()))), number());
            return;
        case 2: // another shape of the same size
            if (t.dims_size() > 1)
                t.mutable_dims()->SwapElements(0, t.dims_size() - 1);
            else
                t.add_dims(1);
            return;
        default:
            if (t.int64_data_size() > 0)
                t.set_int64_data(int(below(size_t(t.int64_data_size()))), number());
            else if (t.float_data_size() > 0)
                t.set_float_data(int(below(size_t(t.float_data_size()))), float(number()));
            else if (t.raw_data().size() >= 8) {
                int64_t const v = number();
                std::memcpy(t.mutable_raw_data()->data() + below(t.raw_data().size() / 8) * 8, &v, 8);
            }
        }
    }
    // An input of a node goes through a quantize and a dequantize node; scales are one number or, seldom, several.
    void addPair()
    {
        int const at = int(below(size_t(g_.node_size())));
        if (at >= g_.node_size() || g_.node(at).input_size() == 0)
            return;
        std::string const tail = std::to_string(below(100000));
        TensorProto &scale = *g_.add_initializer(), &zero = *g_.add_initializer();
        scale.set_name("s" + tail);
        scale.set_data_type(TensorProto::FLOAT);
        zero.set_name("z" + tail);
        zero.set_data_type(TensorProto::INT8);
        size_t const count = below(4) ? 1 : 1 + below(4);
        if (count > 1) {
            scale.add_dims(int64_t(count));
            zero.add_dims(int64_t(count));
        }
        for (size_t i = 0; i < count; ++i) {
            scale.add_float_data(float(1 + below(8)) / 16);
            zero.add_int32_data(0);
        }
        std::string& in = *g_.mutable_node(at)->mutable_input(int(below(size_t(g_.node(at).input_size()))));
        NodeProto &q = *g_.add_node(), &dq = *g_.add_node();
        q.set_op_type("QuantizeLinear");
        dq.set_op_type("DequantizeLinear");
        for (std::string const& name : {in, scale.name(), zero.name()})
            q.add_input(name);
        for (std::string const& name : {"q" + tail, scale.name(), zero.name()})
            dq.add_input(name);
        q.add_output("q" + tail);
        dq.add_output("d" + tail);
        for (NodeProto* made : {&q, &dq})
            if (count > 1) {
                AttributeProto& a = *made->add_attribute();
                a.set_name("axis");
                a.set_type(AttributeProto::INT);
                a.set_i(int64_t(below(3)));
            }
        in = dq.output(0);
        for (int made = 0; made < 2; ++made) // in front of their reader, dq first
            for (int i = g_.node_size() - 1; i > at; --i)
                g_.mutable_node()->SwapElements(i, i - 1);
    }
    void setAnyOp(NodeProto& n)
    {
        if (below(8) == 0) {
            n.set_op_type(kMicrosoftOps[below(std::size(kMicrosoftOps))]);
            n.set_domain("com.microsoft");
        } else {
            n.set_op_type(kOps[below(std::size(kOps))]);
            n.clear_domain();
        }
    }
    // A node after an old one: the outputs of the graph may name it.
    void addNode()
    {
        NodeProto& n = *g_.add_node();
        setAnyOp(n);
        for (size_t i = below(4); i > 0 || n.input_size() == 0; i -= i > 0)
            n.add_input(anyName());
        std::string const name = "v" + std::to_string(below(100000));
        n.add_output(name);
        if (g_.output_size() > 0 && below(2))
            g_.mutable_output(int(below(size_t(g_.output_size()))))->set_name(name);
        for (size_t i = below(3); i > 0; --i)
            changeAttribute(n);
    }

    ModelProto& model_;
    std::mt19937_64 random_;
    GraphProto& g_;
};

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t maxSize, unsigned seed)
{
    ModelProto model;
    std::string bytes;
    if (seed % 8 != 0 && model.ParsePartialFromArray(data, int(size)) && model.has_graph()) {
        Mutator mutator(model, seed);
        for (unsigned i = 0; i <= seed / 8 % 3; ++i)
            mutator.once();
        model.SerializePartialToString(&bytes);
    }
    if (bytes.empty() || bytes.size() > maxSize)
        return LLVMFuzzerMutate(data, size, maxSize);
    std::memcpy(data, bytes.data(), bytes.size());
    return bytes.size();
}
