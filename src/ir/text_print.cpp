// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/hash.h"
#include "base/tensor.h"
#include "ir/op_def.h"
#include "ir/text.h"

namespace tw::ir {

namespace {

constexpr int64_t kMaxListed = 64;        // elements written as numbers
constexpr int64_t kMaxInlineBytes = 1024; // when there is a table

std::string quoted(std::string const& s)
{
    static constexpr char kHex[] = "0123456789abcdef";
    std::string out = "\"";
    for (char c : s) {
        auto const u = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (c == '\n') {
            out += "\\n";
        } else if (u < 0x20 || u >= 0x7f) {
            out += "\\x";
            out += kHex[u >> 4];
            out += kHex[u & 15];
        } else {
            out += c;
        }
    }
    return out + "\"";
}

std::string hexBytes(void const* data, int64_t count)
{
    static constexpr char kHex[] = "0123456789abcdef";
    auto const* p = static_cast<unsigned char const*>(data);
    std::string out;
    out.reserve(size_t(count) * 2);
    for (int64_t i = 0; i < count; ++i) {
        out += kHex[p[i] >> 4];
        out += kHex[p[i] & 15];
    }
    return out;
}

std::string bitsText(uint64_t bits)
{
    char buffer[24];
    auto const r = std::to_chars(buffer, buffer + sizeof(buffer), bits, 16);
    return "0x" + std::string(buffer, r.ptr);
}

// The shortest text that reads back as the same number.
template <class F>
std::string realText(F v)
{
    char buffer[64];
    auto const r = std::to_chars(buffer, buffer + sizeof(buffer), v);
    return std::string(buffer, r.ptr);
}

std::string elementText(TensorRef const& t, int64_t i)
{
    if (isFloating(t.type)) {
        auto const v = float(t.get(i));
        if (!std::isnan(v))
            return realText(v);
        return isFullFloat(t.type) ? bitsText(t.as<uint32_t>()[i]) : bitsText(t.as<uint16_t>()[i]);
    }
    if (t.type == DataType::kBool)
        return std::to_string(int(t.as<uint8_t>()[i])); // the byte itself
    return std::to_string(t.getInt(i));
}

template <class List, class Text>
std::string listed(List const& list, Text text)
{
    std::string out = "[";
    for (size_t i = 0; i < list.size(); ++i) {
        out += i ? ", " : "";
        out += text(list[i]);
    }
    return out + "]";
}

std::string attrText(FieldValue const& f)
{
    auto real = [](double v) { return std::isnan(v) ? bitsText(std::bit_cast<uint64_t>(v)) : realText(v); };
    switch (f.kind) {
    case FieldValue::Kind::kInteger:
        return std::to_string(f.integers[0]);
    case FieldValue::Kind::kReal:
        return real(f.reals[0]);
    case FieldValue::Kind::kText:
        return quoted(f.text);
    case FieldValue::Kind::kIntegers:
        return listed(f.integers, [](int64_t v) { return std::to_string(v); });
    case FieldValue::Kind::kReals:
        return listed(f.reals, real);
    }
    return "?";
}

std::string user(bool byUser)
{
    return byUser ? " user" : "";
}

class Printer
{
public:
    explicit Printer(BlobTable* large) : large_(large) {}

    void graph(Graph const& g, std::string const& indent)
    {
        std::map<Value const*, int> outer;
        outer.swap(numbers_);
        out += "graph " + quoted(g.name) + " " + kFormNames[int(g.form)] + " {\n";
        std::string const in = indent + "  ";
        for (auto const& [name, symbol] : g.symbols)
            out += fmt::format("{}symbol {} {}..{}{}\n", in, name, symbol.range.lo, symbol.range.hi,
                               symbol.boundByNode ? " bound" : "");
        for (Value const* v : g.inputs) {
            out += in + "input " + value(*v);
            if (v->content)
                out += " content " + listed(*v->content, [](Dim const& d) { return d.str(); });
            out += "\n";
        }
        for (auto const& v : g.values())
            if (v->isConstant())
                out += in + "const " + value(*v) + " = " + constant(*v) + "\n";
        for (auto const& n : g.nodes)
            node(*n, in);
        for (Value const* v : g.outputs)
            out += in + "output " + use(v) + "\n";
        out += indent + "}\n";
        outer.swap(numbers_);
    }

    std::string out;

private:
    std::string use(Value const* v) const
    {
        if (!v)
            return "_";
        auto const it = numbers_.find(v);
        return it == numbers_.end() ? "%unknown" : fmt::format("%{}", it->second);
    }
    // Where a value is made: number, name, type, shape and marks.
    std::string value(Value const& v)
    {
        numbers_.emplace(&v, int(numbers_.size()));
        std::string s = use(&v) + " " + quoted(v.name) + " " + nameOf(v.type) + str(v.shape);
        if (v.host)
            s += " host";
        if (v.format != Format::kLinear)
            s += std::string(" ") + nameOf(v.format);
        return s;
    }
    std::string constant(Value const& v)
    {
        Constant const& c = *v.constant;
        std::string tail;
        if (!c.layer.empty())
            tail += " layer " + quoted(c.layer);
        if (c.role != WeightsRole::kConstant)
            tail += fmt::format(" role {}", int(c.role));
        if (!c.weightsName.empty())
            tail += " weights " + quoted(c.weightsName);
        int64_t bytes = sizeOf(v.type);
        for (Dim const& d : v.shape)
            bytes = d.value() < 0 ? INT64_MAX : mulSat(bytes, d.value());
        if (!c.data || v.rank() > kMaxRank || int64_t(c.data->sizeBytes()) < bytes)
            return "missing" + tail; // an invalid graph still prints; this does not parse
        TensorRef const t{v.type, extentsOf(v.shape), const_cast<void*>(c.data->data())};
        return elements(t, c.data, bytes) + tail;
    }
    std::string elements(TensorRef const& t, BlobPtr const& data, int64_t bytes)
    {
        int64_t const count = t.count(), size = sizeOf(t.type);
        auto const* p = static_cast<char const*>(t.data);
        // All elements are equal when the bytes repeat with the period of one element.
        if (count > 1 && std::memcmp(p, p + size, size_t(bytes - size)) == 0)
            return "splat " + elementText(t, 0);
        if (count <= kMaxListed) {
            std::string s = "[";
            for (int64_t i = 0; i < count; ++i)
                s += (i ? ", " : "") + elementText(t, i);
            return s + "]";
        }
        if (!large_ || bytes <= kMaxInlineBytes)
            return "hex \"" + hexBytes(p, bytes) + "\"";
        uint64_t const hash = hashBytes(p, size_t(bytes));
        large_->emplace(hash, std::make_shared<Blob const>(p, size_t(bytes), data));
        return fmt::format("blob({}, {})", bitsText(hash), bytes);
    }
    void node(Node const& n, std::string const& indent)
    {
        std::string const in = indent + "  ";
        out += fmt::format("{}node {} {} {}(", indent, n.id, quoted(n.name), n.op ? n.op->name : "?");
        for (size_t i = 0; i < n.inputs.size(); ++i)
            out += (i ? ", " : "") + use(n.inputs[i]);
        out += ")";
        auto const fields = n.attrs ? fieldsOf(*n.attrs) : std::vector<FieldValue>{};
        for (size_t i = 0; i < fields.size(); ++i)
            out += (i ? ", " : " {") + fields[i].name + " = " + attrText(fields[i]);
        out += fields.empty() ? "\n" : "}\n";
        if (n.layers.size() != 1 || n.layers[0] != n.name)
            out += in + "layers " + listed(n.layers, quoted) + "\n";
        if (!(n.precision == Requested<DataType>{}))
            out += in + "precision " + nameOf(n.precision.value) + user(n.precision.byUser) + "\n";
        for (size_t i = 0; i < n.outputTypes.size(); ++i)
            if (!(n.outputTypes[i] == Requested<DataType>{}))
                out += fmt::format("{}wish {} {}{}\n", in, i, nameOf(n.outputTypes[i].value),
                                   user(n.outputTypes[i].byUser));
        if (!(n.device == Requested<DevicePlace>{}))
            out += fmt::format("{}device {}:{}{}\n", in, int(n.device.value.kind), n.device.value.core,
                               user(n.device.byUser));
        for (auto const& r : n.regions) {
            out += in + "region ";
            graph(*r, in);
        }
        if (n.body) {
            out += in + "body ";
            graph(*n.body, in);
        }
        out += in + "->";
        for (size_t i = 0; i < n.outputs.size(); ++i)
            out += (i ? ", " : " ") + value(*n.outputs[i]);
        out += "\n";
    }

    BlobTable* large_;
    std::map<Value const*, int> numbers_; // of the graph being printed
};

} // namespace

std::string print(Graph const& g, BlobTable* large)
{
    Printer p(large);
    p.graph(g, "");
    return std::move(p.out);
}

} // namespace tw::ir
