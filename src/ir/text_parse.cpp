// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <exception>
#include <set>

#include "base/element.h"
#include "base/hash.h"
#include "base/tensor.h"
#include "ir/op_def.h"
#include "ir/text.h"
#include "ir/text_reader.h"

namespace tw::ir {

namespace {

using text::TokenKind;

constexpr int kMaxDepth = 32;                        // of regions and bodies
constexpr int64_t kMaxSplatBytes = int64_t(1) << 28; // of all splats together: a short text must not fill the memory
constexpr int kMaxNodeId = 1 << 30;

class Parser : private text::Reader
{
public:
    Parser(std::string const& text, OpResolver resolve, BlobTable const* large)
        : Reader(text), resolve_(resolve), large_(large)
    {}

    Result<std::unique_ptr<Graph>> document()
    {
        TW_ASSIGN(auto g, graph(0));
        if (token_.kind != TokenKind::kEnd)
            return bad("text behind the end of the graph");
        TW_TRY(verify(*g));
        return g;
    }

private:
    using Values = std::map<int64_t, Value*>;

    // A value where it is made; `v` gets all but the constant.
    Result<int64_t> value(Value& v)
    {
        TW_TRY(expectMark("%"));
        TW_ASSIGN(int64_t const number, integer("value number", 0, INT32_MAX));
        TW_ASSIGN(v.name, string("name of the value"));
        TW_ASSIGN(v.type, dataType());
        TW_ASSIGN(v.shape, dims(size_t(kMaxRank)));
        v.host = takeWord("host");
        for (Format f : kFormats)
            if (f != Format::kLinear && takeWord(nameOf(f)))
                v.format = f;
        return number;
    }
    static Result<void> define(Values& values, int64_t number, Value* v, int line)
    {
        if (!values.emplace(number, v).second)
            return badAt(line, fmt::format("value %{} is made twice", number));
        return {};
    }
    Result<Value*> use(Values const& values)
    {
        int const line = token_.line;
        TW_TRY(expectMark("%"));
        TW_ASSIGN(int64_t const number, integer("value number", 0, INT32_MAX));
        auto const it = values.find(number);
        if (it == values.end())
            return badAt(line, fmt::format("value %{} is used before it is made", number));
        return it->second;
    }

    Result<std::unique_ptr<Graph>> graph(int depth)
    {
        if (depth > kMaxDepth)
            return bad(fmt::format("graphs are nested deeper than {}", kMaxDepth));
        if (!takeWord("graph"))
            return bad("'graph' expected");
        auto g = std::make_unique<Graph>();
        TW_ASSIGN(g->name, string("name of the graph"));
        TW_ASSIGN(g->form, form());
        TW_TRY(expectMark("{"));
        Values values;
        std::set<int> ids;
        SymbolTable symbols;
        while (!takeMark("}")) {
            int const line = token_.line;
            if (takeWord("symbol")) {
                TW_TRY(symbol(symbols));
                g->symbols = symbols;
            } else if (takeWord("input")) {
                TW_TRY(input(*g, values, line));
            } else if (takeWord("const")) {
                TW_TRY(constant(*g, values, line));
            } else if (takeWord("node")) {
                TW_TRY(node(*g, values, ids, depth, line));
            } else if (takeWord("output")) {
                TW_ASSIGN(Value* const v, use(values));
                g->outputs.push_back(v);
            } else {
                return bad("'symbol', 'input', 'const', 'node', 'output' or '}' expected");
            }
        }
        // Inference gave symbols that nodes bind their first range; the text's may be narrower.
        for (auto const& [name, s] : symbols)
            g->symbols[name] = s;
        return g;
    }
    Result<Form> form()
    {
        for (size_t i = 0; i < std::size(kFormNames); ++i)
            if (takeWord(kFormNames[i]))
                return Form(i);
        return bad("form expected (imported, canonical, fused, placed or scheduled)");
    }
    Result<void> symbol(SymbolTable& symbols)
    {
        int const line = token_.line;
        TW_ASSIGN(std::string const name, word("symbol"));
        auto const self = Dim::parse(name);
        if (!self.ok() || self->isConst())
            return badAt(line, "'" + name + "' cannot name a symbol");
        TW_ASSIGN(std::string const range, word("range"));
        size_t const dots = range.find("..");
        Symbol s;
        auto number = [](std::string const& text, int64_t& to) {
            auto const r = std::from_chars(text.data(), text.data() + text.size(), to);
            return r.ec == std::errc() && r.ptr == text.data() + text.size();
        };
        if (dots == std::string::npos || !number(range.substr(0, dots), s.range.lo) ||
            !number(range.substr(dots + 2), s.range.hi) || s.range.lo > s.range.hi)
            return badAt(line, "range lo..hi expected, got '" + range + "'");
        s.boundByNode = takeWord("bound");
        if (!symbols.emplace(name, s).second)
            return badAt(line, "symbol '" + name + "' is given twice");
        return {};
    }
    Result<void> input(Graph& g, Values& values, int line)
    {
        Value v;
        TW_ASSIGN(int64_t const number, value(v));
        Value* to = g.addInput(v.name, v.type, v.shape);
        to->host = v.host;
        to->format = v.format;
        if (takeWord("content"))
            TW_SET(to->content, dims(size_t(kMaxContent)));
        return define(values, number, to, line);
    }

    Result<void> constant(Graph& g, Values& values, int line)
    {
        Value v;
        TW_ASSIGN(int64_t const number, value(v));
        int64_t count = 1;
        for (Dim const& d : v.shape) {
            if (!d.isConst() || d.value() < 0)
                return badAt(line, "a constant needs a static shape, not " + str(v.shape));
            count = mulSat(count, d.value());
        }
        if (count > INT32_MAX)
            return badAt(line, "constant " + str(v.shape) + " has 2^31 elements or more");
        TW_TRY(expectMark("="));
        auto c = std::make_shared<Constant>();
        TW_ASSIGN(c->data, elements(v.type, count));
        if (takeWord("layer"))
            TW_SET(c->layer, string("layer"));
        if (takeWord("role")) {
            TW_ASSIGN(int64_t const role, integer("role", 0, int(WeightsRole::kAny)));
            c->role = WeightsRole(role);
        }
        if (takeWord("weights"))
            TW_SET(c->weightsName, string("name of the weights"));
        Value* to = g.addConstant(v.name, v.type, extentsOf(v.shape), std::move(c));
        to->host = v.host;
        to->format = v.format;
        return define(values, number, to, line);
    }
    Result<BlobPtr> elements(DataType type, int64_t count)
    {
        int const line = token_.line;
        int64_t const bytes = count * sizeOf(type);
        std::vector<std::byte> data;
        if (isMark("[")) {
            TW_TRY(list([&]() -> Result<void> { return element(type, data); }));
            if (int64_t(data.size()) != bytes)
                return badAt(line, fmt::format("{} elements given, the shape needs {}",
                                               int64_t(data.size()) / sizeOf(type), count));
        } else if (takeWord("splat")) {
            splatBytes_ = addSat(splatBytes_, bytes);
            if (splatBytes_ > kMaxSplatBytes)
                return badAt(line, fmt::format("splats take more than {} bytes together", kMaxSplatBytes));
            std::vector<std::byte> one;
            TW_TRY(element(type, one));
            for (data.reserve(size_t(bytes)); int64_t(data.size()) < bytes;)
                data.insert(data.end(), one.begin(), one.end());
        } else if (takeWord("hex")) {
            TW_ASSIGN(std::string const text, string("bytes"));
            if (int64_t(text.size()) != 2 * bytes)
                return badAt(line, fmt::format("{} bytes given, the shape needs {}", text.size() / 2, bytes));
            for (size_t i = 0; i < text.size(); i += 2) {
                uint8_t b = 0;
                auto const r = std::from_chars(text.data() + i, text.data() + i + 2, b, 16);
                if (r.ec != std::errc() || r.ptr != text.data() + i + 2)
                    return badAt(line, "hex digits expected");
                data.push_back(std::byte(b));
            }
        } else if (takeWord("blob")) {
            return blob(bytes, line);
        } else {
            return bad("elements expected: a list, splat, hex or blob");
        }
        return Blob::own(std::move(data));
    }
    Result<BlobPtr> blob(int64_t bytes, int line)
    {
        TW_TRY(expectMark("("));
        TW_ASSIGN(std::string const w, word("hash"));
        TW_ASSIGN(uint64_t const hash, bits(w, line));
        TW_TRY(expectMark(","));
        TW_ASSIGN(int64_t const size, integer("size in bytes", 0, INT64_MAX));
        TW_TRY(expectMark(")"));
        if (size != bytes)
            return badAt(line, fmt::format("a blob of {} bytes, the shape needs {}", size, bytes));
        auto const it = large_ ? large_->find(hash) : BlobTable::const_iterator{};
        if (!large_ || it == large_->end() || int64_t(it->second->sizeBytes()) != size)
            return badAt(line, fmt::format("the blob {} of {} bytes is not at hand", w, size));
        return it->second;
    }
    Result<void> element(DataType type, std::vector<std::byte>& to)
    {
        auto append = [&](auto v) {
            auto const* p = reinterpret_cast<std::byte const*>(&v);
            to.insert(to.end(), p, p + sizeof(v));
        };
        if (isNarrowFloat(type)) {
            if (token_.kind == TokenKind::kWord && token_.text.starts_with("0x")) {
                TW_ASSIGN(uint64_t const b, bits(token_.text, token_.line));
                if (b > UINT16_MAX)
                    return bad("more bits than the type");
                append(uint16_t(b));
                advance();
            } else {
                TW_ASSIGN(float const v, (real<float, uint32_t>()));
                withNarrow(type, [&](auto element) {
                    storeElement(element, v);
                    append(element);
                });
            }
            return {};
        }
        switch (type) {
        case DataType::kFloat: {
            TW_ASSIGN(float const v, (real<float, uint32_t>()));
            append(v);
            break;
        }
        case DataType::kInt32: {
            TW_ASSIGN(int64_t const v, integer("i32 element", INT32_MIN, INT32_MAX));
            append(int32_t(v));
            break;
        }
        case DataType::kInt8: {
            TW_ASSIGN(int64_t const v, integer("i8 element", INT8_MIN, INT8_MAX));
            append(int8_t(v));
            break;
        }
        default: {
            TW_ASSIGN(int64_t const v, integer("element", 0, UINT8_MAX));
            append(uint8_t(v));
            break;
        }
        }
        return {};
    }

    Result<void> attrs(AttrsBase& to)
    {
        auto const known = fieldsOf(to);
        std::vector<FieldValue> fields;
        for (bool first = true; !takeMark("}"); first = false) {
            if (!first)
                TW_TRY(expectMark(","));
            int const line = token_.line;
            FieldValue f;
            TW_ASSIGN(f.name, word("attribute"));
            FieldValue const* k = nullptr;
            for (auto const& candidate : known)
                if (candidate.name == f.name)
                    k = &candidate;
            if (!k)
                return badAt(line, "the op has no attribute '" + f.name + "'");
            for (auto const& other : fields)
                if (other.name == f.name)
                    return badAt(line, "attribute '" + f.name + "' is given twice");
            f.number = k->number;
            f.kind = k->kind;
            TW_TRY(expectMark("="));
            auto oneInteger = [&]() -> Result<void> {
                TW_ASSIGN(int64_t const v, integer("integer"));
                f.integers.push_back(v);
                return {};
            };
            auto oneReal = [&]() -> Result<void> {
                TW_ASSIGN(double const v, (real<double, uint64_t>()));
                f.reals.push_back(v);
                return {};
            };
            switch (f.kind) {
            case FieldValue::Kind::kInteger:
                TW_TRY(oneInteger());
                break;
            case FieldValue::Kind::kReal:
                TW_TRY(oneReal());
                break;
            case FieldValue::Kind::kText: {
                TW_ASSIGN(f.text, string("text"));
                break;
            }
            case FieldValue::Kind::kIntegers:
                TW_TRY(list(oneInteger));
                break;
            case FieldValue::Kind::kReals:
                TW_TRY(list(oneReal));
                break;
            }
            fields.push_back(std::move(f));
        }
        std::string why;
        if (!setFields(to, fields, why))
            return bad(why);
        return {};
    }

    Result<void> node(Graph& g, Values& values, std::set<int>& ids, int depth, int line)
    {
        auto node = std::make_unique<Node>();
        Node& n = *node;
        TW_ASSIGN(int64_t const id, integer("node number", 0, kMaxNodeId));
        if (!ids.insert(int(id)).second)
            return badAt(line, fmt::format("node number {} is given twice", id));
        TW_ASSIGN(n.name, string("name of the node"));
        TW_ASSIGN(std::string const opName, word("op"));
        n.op = resolve_(opName);
        if (!n.op || !n.op->makeAttrs)
            return badAt(line, "unknown op '" + opName + "'");
        n.id = int(id);
        n.attrs = n.op->makeAttrs();
        n.layers = {n.name};
        TW_TRY(expectMark("("));
        for (bool first = true; !takeMark(")"); first = false) {
            if (!first)
                TW_TRY(expectMark(","));
            if (takeWord("_")) {
                n.inputs.push_back(nullptr);
            } else {
                TW_ASSIGN(Value* const v, use(values));
                n.inputs.push_back(v);
            }
        }
        if (takeMark("{"))
            TW_TRY(attrs(*n.attrs));
        std::map<int64_t, Requested<DataType>> wishes;
        while (!takeMark("->")) {
            if (takeWord("layers")) {
                n.layers.clear();
                TW_TRY(list([&]() -> Result<void> {
                    TW_ASSIGN(std::string s, string("layer"));
                    n.layers.push_back(std::move(s));
                    return {};
                }));
            } else if (takeWord("precision")) {
                TW_ASSIGN(n.precision.value, dataType());
                n.precision.byUser = takeWord("user");
            } else if (takeWord("wish")) {
                TW_ASSIGN(int64_t const i, integer("output", 0, INT32_MAX));
                TW_ASSIGN(wishes[i].value, dataType());
                wishes[i].byUser = takeWord("user");
            } else if (takeWord("device")) {
                TW_ASSIGN(int64_t const kind, integer("device kind", 0, int(DeviceKind::kDla)));
                TW_TRY(expectMark(":"));
                TW_ASSIGN(int64_t const core, integer("device core", -1, INT32_MAX));
                n.device = {DevicePlace{DeviceKind(kind), int32_t(core)}, takeWord("user")};
            } else if (takeWord("region")) {
                TW_ASSIGN(auto r, graph(depth + 1));
                n.regions.push_back(std::move(r));
            } else if (takeWord("body")) {
                TW_ASSIGN(n.body, graph(depth + 1));
            } else {
                return bad("'layers', 'precision', 'wish', 'device', 'region', 'body' or '->' expected");
            }
        }
        std::vector<Shape> shapes;
        std::vector<DataType> types;
        while (isMark("%") || isMark(",")) {
            if (!shapes.empty())
                TW_TRY(expectMark(","));
            int const valueLine = token_.line;
            Value v;
            TW_ASSIGN(int64_t const number, value(v));
            shapes.push_back(v.shape);
            types.push_back(v.type);
            Value* to = g.newValue(v.name, v.type, v.shape);
            to->host = v.host;
            to->format = v.format;
            to->producer = &n;
            to->producerIndex = int(n.outputs.size());
            n.outputs.push_back(to);
            TW_TRY(define(values, number, to, valueLine));
        }
        n.outputTypes.resize(n.outputs.size());
        for (auto const& [i, wish] : wishes) {
            if (i >= int64_t(n.outputs.size()))
                return badAt(line, fmt::format("a wish for output {} of {}", i, n.outputs.size()));
            n.outputTypes[size_t(i)] = wish;
        }
        g.adoptNode(std::move(node));
        return inferAndCompare(g, n, types, shapes, line);
    }
    // Inference must agree with the text; the text's shape then stays, for it may say more than inference does.
    static Result<void> inferAndCompare(Graph& g, Node& n, std::vector<DataType> const& types,
                                        std::vector<Shape> const& shapes, int line)
    {
        if (n.regions.size() != size_t(n.op->regionCount))
            return badAt(line,
                         fmt::format("{} regions given, {} has {}", n.regions.size(), n.op->name, n.op->regionCount));
        if (auto inferred = g.inferNode(n); !inferred.ok())
            return badAt(line, inferred.error().message);
        for (size_t i = 0; i < shapes.size(); ++i) {
            Value& v = *n.outputs[i];
            Shape const& text = shapes[i];
            bool equal = v.type == types[i] && v.shape.size() == text.size();
            for (size_t d = 0; equal && d < text.size(); ++d)
                equal = !v.shape[d].isConst() || !text[d].isConst() || v.shape[d] == text[d];
            if (!equal)
                return badAt(line, fmt::format("output {} of node '{}' is {}{} in the text, inference gives {}{}", i,
                                               n.name, nameOf(types[i]), str(text), nameOf(v.type), str(v.shape)));
            v.shape = text;
        }
        return {};
    }

    OpResolver resolve_;
    BlobTable const* large_;
    int64_t splatBytes_ = 0;
};

} // namespace

Result<std::unique_ptr<Graph>> parse(std::string const& text, OpResolver resolve, BlobTable const* large)
{
    try {
        return Parser(text, resolve, large).document();
    } catch (std::exception const& e) { // out of memory, or one of our checks
        return internalError("graph text: {}", e.what());
    }
}

} // namespace tw::ir
