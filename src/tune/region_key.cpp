// SPDX-License-Identifier: Apache-2.0
#include "tune/region_key.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <map>

#include "base/hash.h"
#include "device/cuda/compiler.h"
#include "device/cuda/driver.h"
#include "device/cuda/target.h"
#include "ir/op_def.h"
#include "tactic/cuda_library.h"
#include "tune/candidates.h"

namespace tw::tune {

namespace {

constexpr uint32_t kAllSources = bitOf(ops::Source::kOwn) | bitOf(ops::Source::kCublasLt) | bitOf(ops::Source::kCudnn);

std::string hex(uint64_t v)
{
    char text[16];
    return std::string(text, std::to_chars(text, text + sizeof text, v, 16).ptr);
}

// Exact: doubles by their bits, texts and lists with their lengths.
void putFields(std::string& key, ir::AttrsBase const& attrs)
{
    for (ir::FieldValue const& f : ir::fieldsOf(attrs)) {
        key += f.name + "=";
        for (int64_t v : f.integers)
            key += fmt::format("{},", v);
        for (double v : f.reals)
            key += "x" + hex(std::bit_cast<uint64_t>(v)) + ",";
        key += (f.text.empty() ? "" : fmt::format("{}:{}", f.text.size(), f.text)) + ";";
    }
}

// What generated code may rest on beside sizes: which dimensions are numbers, and which of the others are the same.
class Symbols
{
public:
    std::string str(ir::Shape const& shape)
    {
        std::string s = "(";
        for (ir::Dim const& d : shape)
            s += d.isConst() ? "." : fmt::format("{}.", numberOf(d));
        return s + ")";
    }

private:
    size_t numberOf(ir::Dim const& d)
    {
        auto const at = std::ranges::find(seen_, d);
        if (at != seen_.end())
            return size_t(at - seen_.begin());
        seen_.push_back(d);
        return seen_.size() - 1;
    }
    std::vector<ir::Dim> seen_;
};

void putTensors(std::string& key, std::vector<ops::TensorSpec> const& specs, std::vector<ir::Value*> const& values,
                Symbols& symbols)
{
    for (size_t i = 0; i < specs.size(); ++i) {
        ops::TensorSpec const& t = specs[i];
        for (int64_t k = 0; t.contents.data && k < t.contents.count(); ++k)
            key += fmt::format("{};", t.contents.getInt(k));
        key += t.format != Format::kLinear ? std::string(nameOf(t.format)) + ":" : "";
        key += t.present ? std::string(nameOf(t.type)) + t.dims.str() + t.maxDims.str() + (t.constant ? "c" : "") : "-";
        if (ir::Value const* v = i < values.size() ? values[i] : nullptr)
            key += ir::isStatic(v->shape) ? "" : symbols.str(v->shape);
        key += " ";
    }
}

constexpr size_t kMostConstantBytes = 4096; // of constants in a body whose elements count

// The nodes that a fused one stands for: what it computes step by step is what its kernels are compared with.
void hashBody(Hasher& h, ir::Graph const& body)
{
    std::map<ir::Value const*, uint64_t> numbers;
    auto put = [&](ir::Value const* v) {
        h.number(v ? numbers.try_emplace(v, numbers.size()).first->second : UINT64_MAX);
        if (!v)
            return;
        h.number(uint64_t(v->type));
        BlobPtr const data = v->constant ? v->constant->data : nullptr;
        if (data && data->sizeBytes() <= kMostConstantBytes)
            h.bytes(data->data(), data->sizeBytes());
    };
    for (ir::Value const* v : body.inputs)
        put(v);
    for (auto const& n : body.nodes) {
        h.text(n->op->name);
        h.number(ir::hashAttrs(*n->attrs));
        for (ir::Value const* v : n->inputs)
            put(v);
        for (ir::Value const* v : n->outputs)
            put(v);
        if (n->body)
            hashBody(h, *n->body);
    }
    for (ir::Value const* v : body.outputs)
        put(v);
}

} // namespace

std::string regionKey(ops::Problem const& problem, std::string const& device)
{
    ir::Node const& node = *problem.node;
    std::string key =
        device + "|" + (problem.threads > 1 ? fmt::format("{} threads|", problem.threads) : "") + node.op->name + "|";
    putFields(key, *node.attrs);
    Symbols symbols;
    key += "|";
    putTensors(key, problem.inputs, node.inputs, symbols);
    key += "|";
    putTensors(key, problem.outputs, node.outputs, symbols);
    if (node.body) {
        Hasher h;
        hashBody(h, *node.body);
        key += "|body " + hex(h.value());
    }
    return key;
}

std::string pointsKey(std::span<Point const> points)
{
    if (points.empty())
        return {};
    Hasher h;
    for (Point const& p : points)
        for (InputAt const& at : p.inputs) {
            h.text(at.dims.str());
            h.number(at.contents.data ? uint64_t(at.contents.count()) : UINT64_MAX);
            for (int64_t i = 0; at.contents.data && i < at.contents.count(); ++i)
                h.number(uint64_t(at.contents.getInt(i)));
        }
    return fmt::format("|checked at {} more {}", points.size(), hex(h.value()));
}

std::string choiceKey(ops::Problem const& problem, Options const& options)
{
    Hasher ids;
    bool const isSized = hasSizes(problem);
    for (ops::Tactic const* t : candidates(*problem.node, options))
        if (t->source() != ops::Source::kOwn || !isSized || ops::supportsFormats(*t, problem).ok)
            ids.number(t->id());
    return regionKey(problem, options.device) + "|tactics " + hex(ids.value());
}

std::string cacheKey(ops::Problem const& problem, Options const& options)
{
    bool const isCuda = options.backend == ops::Backend::kCuda;
    auto permitted = [&](char const* text, Permission p, bool is = true) {
        return std::string(options.permits.has(p) == is ? text : "");
    };
    uint32_t const libraries = isCuda ? options.sources & ~bitOf(ops::Source::kOwn) & kAllSources : 0;
    std::string key =
        choiceKey(problem, options) + permitted("|no winograd", Permission::kWinograd, false) +
        permitted("|tf32", Permission::kTf32) + permitted("|bf16", Permission::kBf16Factors) +
        permitted("|f16 weights", Permission::kHalfWeights) +
        (options.workspaceBytes < INT64_MAX ? fmt::format("|workspace {}", options.workspaceBytes) : "") +
        (libraries ? fmt::format("|libraries {}", libraries) : "") + pointsKey(options.points) +
        (options.mostCandidates < kMostCandidates ? fmt::format("|first {}", options.mostCandidates) : "");
    cuda::Target const* target = isCuda ? options.target.cuda : nullptr;
    if (!target)
        return key;
    if (target->device)
        key += fmt::format("|driver {}", target->device->driver().version());
    if (auto const compiler = target->compiler->get(); compiler.ok())
        key += fmt::format("|compiler {}", (*compiler)->version());
    uint32_t seen = bitOf(ops::Source::kOwn);
    for (ops::Tactic const* t : candidates(*problem.node, options))
        if (!(seen & bitOf(t->source()))) {
            seen |= bitOf(t->source());
            key += "|" + ops::versionOf(t->source(), *target);
        }
    return key;
}

} // namespace tw::tune
