// SPDX-License-Identifier: Apache-2.0
// Plugins of transformers. Tensors lie sequence first: [S, B, E, 1, 1], or rows of sequences of several lengths one after
// another, [T, E, 1, 1], with the row where each begins, i32 [B + 1].
#include <cmath>

#include "api/standard_plugins/standard_plugin.h"
#include "ops/attention/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/slice/op.h"
#include "tactic/registry.h"

namespace tw::api {

using enum nvinfer1::PluginFieldType;
using Binary = PluginLowering::Binary;
using Unary = PluginLowering::Unary;
using Value = ir::Value;
using Join = PluginLowering::Join;

namespace {

// 8.5 adds nothing to a variance; what is added here is nothing beside that of activations, and no half-precision zero.
constexpr double kEpsilon = 1e-6;

Value* layerNorm(PluginLowering& p, Value* x, int axis)
{
    auto const numbers = [&](char const* field) {
        nvinfer1::Weights const w = p.fields.weights(field);
        return p.along(p.weights(w, {w.count}, x->type, ir::WeightsRole::kConstant), axis, x->rank());
    };
    p.check(p.fields.weights("gamma").count == p.known(x, axis) && p.fields.weights("beta").count == p.known(x, axis),
            fmt::format("beta and gamma have {} and {} elements; dimension {} of {} has another size",
                        p.fields.weights("beta").count, p.fields.weights("gamma").count, axis, str(x->shape)));
    return p.sum(p.mul(p.normalized(x, {axis}, kEpsilon), numbers("gamma")), numbers("beta"));
}

// Of the hidden dimension: [S, B, E(, 1, 1)], [T, E, 1, 1] and [1, E, T, 1].
int hiddenAxis(Value const* x)
{
    return x->rank() == 4 ? 1 : 2;
}

template <bool givesSum>
void skipLayerNorm(PluginLowering& p)
{
    Value* x = p.in(0);
    p.check(x->rank() >= 3 && x->rank() <= 5, "its input " + str(x->shape) + " must have 3 to 5 dimensions");
    int const axis = hiddenAxis(x);
    // The bias first: then it is that of the product in front, and what is skipped its residual.
    if (p.fields.has("bias") && p.fields.weights("bias").count > 0) {
        nvinfer1::Weights const bias = p.fields.weights("bias");
        p.check(bias.count == p.known(x, axis), fmt::format("bias has {} elements for {}", bias.count, str(x->shape)));
        x = p.sum(x, p.along(p.weights(bias, {bias.count}, x->type, ir::WeightsRole::kBias), axis, x->rank()));
    }
    x = p.sum(x, p.in(1));
    p.outputs = {layerNorm(p, x, axis)};
    if (givesSum)
        p.outputs.push_back(x);
}

// x [N, B, K, 1, 1] W
void fullyConnected(PluginLowering& p)
{
    Value* const x = p.in(0, 5);
    int64_t const k = p.known(x, 2), n = p.fields.integer("out_dims");
    Value* const w = p.transpose(p.weights(p.fields.weights("W"), {k, n}, x->type, ir::WeightsRole::kKernel), {1, 0});
    p.outputs = {p.value(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs::fullyConnected(), {x, w})};
}

// The first S rows of a table [P, E], as [S, 1, E].
Value* rowsFromTheFirst(PluginLowering& p, Value* table, Value* ids)
{
    int64_t const e = p.known(table, 1), rows = p.known(table, 0);
    if (ids->shape[0].isConst()) {
        p.check(p.known(ids, 0) <= rows,
                fmt::format("sequences of {} tokens; there are {} positions", p.known(ids, 0), rows));
        return p.reshape(p.part(table, 0, 0, p.known(ids, 0)), {0, 1, e});
    }
    ops::slice::Attrs a;
    a.start = {0, 0};
    a.stride = {1, 1};
    Value* const size = p.concat({p.shapeOf(ids, 0, 1), p.constant({double(e)}, {1}, DataType::kInt32)}, 0);
    return p.reshape(p.value(ops::slice::def(), std::move(a), {table, nullptr, size}), {-1, 1, e});
}

struct Embeddings
{
    Value* sum = nullptr;    // of word, type and position, ids' dimensions and E
    Value* output = nullptr; // normalized
};
// `places`: of the table of positions and of ids the rows that belong to them.
Embeddings embeddings(PluginLowering& p, Value* ids, Value* types, Value* (*places)(PluginLowering&, Value*, Value*))
{
    // What output_fp16 says is what the outputs are told to be; the builder chooses types inside a network.
    int64_t const e = p.fields.weights("bert_embeddings_layernorm_beta").count;
    p.check(e > 0, "bert_embeddings_layernorm_beta is empty");
    int const rank = ids->rank();
    auto const table = [&](char const* field) {
        nvinfer1::Weights const w = p.fields.weights(field);
        return p.weights(w, {w.count / e, e}, DataType::kFloat, ir::WeightsRole::kConstant);
    };
    Value* const words = table("bert_embeddings_word_embeddings");
    Value* const kinds = table("bert_embeddings_token_type_embeddings");
    // Whether 0 <= at < rows: then rounded down, at / rows is 0.
    auto const isRowOf = [&](Value* rows, Value* at) {
        Value* const n = p.scalar(double(p.known(rows, 0)), at);
        return p.binary(Binary::kEqual, p.binary(Binary::kFloorDiv, at, n), p.scalar(0, at));
    };
    Value* const isKnown = p.binary(Binary::kAnd, isRowOf(words, ids), isRowOf(kinds, types));
    std::vector<int64_t> column(size_t(rank), 0);
    column.push_back(1);
    Embeddings result;
    result.sum = p.sum(p.sum(p.gather(words, ids, 0), p.gather(kinds, types, 0)),
                       places(p, table("bert_embeddings_position_embeddings"), ids));
    result.sum = p.mul(result.sum, p.reshape(p.cast(isKnown, DataType::kFloat), column));
    auto const numbers = [&](char const* field) {
        return p.along(p.weights(p.fields.weights(field), {e}, DataType::kFloat, ir::WeightsRole::kConstant), rank,
                       rank + 1);
    };
    result.output = p.sum(p.mul(p.normalized(result.sum, {rank}, kEpsilon), numbers("bert_embeddings_layernorm_gamma")),
                          numbers("bert_embeddings_layernorm_beta"));
    std::vector<int64_t> dims(size_t(rank), 0);
    dims.insert(dims.end(), {e, 1, 1});
    result.output = p.reshape(result.output, dims);
    result.sum = p.reshape(result.sum, dims);
    return result;
}

// Ids, types and mask of tokens, i32 [S, B]. The second output is the mask of keys, [B, S]: 1 for those that count. For
// attention in FP32 (mha_type_id 0) those in front of the first 0 count.
void embedFixed(PluginLowering& p)
{
    Value *const ids = p.in(0, 2), *mask = p.transpose(p.in(2, 2), {1, 0});
    p.outputs = {embeddings(p, ids, p.in(1, 2), rowsFromTheFirst).output};
    mask = p.binary(Binary::kEqual, mask, p.scalar(0, mask));
    if (p.fields.integer("mha_type_id") == 0)
        mask = p.binary(Binary::kGreater, p.runningSum(p.cast(mask, DataType::kInt32), 1),
                        p.constant({0}, {1, 1}, DataType::kInt32));
    p.outputs.push_back(p.cast(p.unary(Unary::kNot, mask), DataType::kFloat));
}

// For each of T rows the sequence that it belongs to, i32 [T]: how many end in front of it. `rows`: i32 [T].
Value* sequenceOf(PluginLowering& p, Value* rows, Value* begins)
{
    Value* const at = p.positions(rows, 0);
    Value* const isBehind = p.unary(Unary::kNot, p.binary(Binary::kGreater, p.along(begins, 1, 2), p.along(at, 0, 2)));
    return p.sub(p.reduce(Join::kSum, p.cast(isBehind, DataType::kInt32), {1}, false),
                 p.constant({1}, {1}, DataType::kInt32));
}

// Rows of sequences of several lengths. The mask that follows carries nothing: attention looks at where sequences begin.
template <bool givesSum>
void embedRows(PluginLowering& p)
{
    Value *const ids = p.in(0, 1), *const begins = p.in(2, 1);
    Embeddings const e = embeddings(p, ids, p.in(1, 1), [](PluginLowering& p, Value* table, Value* ids) {
        Value* const first = p.gather(p.in(2), sequenceOf(p, ids, p.in(2)), 0);
        return p.gather(table, p.sub(p.positions(ids, 0), first), 0);
    });
    p.outputs = {e.output};
    p.outputs.push_back(givesSum ? e.sum : p.cast(p.reshape(begins, {-1, 1}), DataType::kHalf));
}

// softmax(q k' / sqrt(H)) v of q, k, v [B, heads, S, H]; `keep`: bool, broadcast to [B, heads, S, S], or null.
Value* attention(PluginLowering& p, Value* q, Value* k, Value* v, Value* keep)
{
    double const scale = 1 / std::sqrt(double(p.known(q, 3)));
    Value* scores = p.matmul(q, k, false, true);
    scores = p.mul(scores, p.scalar(scale, scores));
    if (keep)
        scores = p.select(keep, scores, p.scalar(isNarrowFloat(scores->type) ? -65504 : -1e30, scores));
    return p.matmul(p.softmax(scores, 3), v);
}

// Position i of dimension `axis`, which goes.
Value* taken(PluginLowering& p, Value* x, int axis, int i)
{
    return p.gather(x, p.constant({double(i)}, {}, DataType::kInt32), axis);
}

struct Heads
{
    int64_t count, size;
};
Heads headsOf(PluginLowering& p)
{
    int64_t const heads = p.fields.integer("num_heads");
    return {heads, p.fields.integer("hidden_size") / heads};
}

// 0, 1, ... S - 1 of x [S, B, ...], i32 [1, S].
Value* positionsOf(PluginLowering& p, Value* x)
{
    if (!x->shape[0].isConst()) // counted along a column of x, whatever it holds
        return p.positions(p.reshape(taken(p, taken(p, p.reshape(x, {0, 0, p.known(x, 2)}), 2, 0), 1, 0), {1, -1}), 1);
    std::vector<double> all;
    for (int64_t i = 0; i < x->shape[0].value(); ++i)
        all.push_back(double(i));
    return p.constant(all, {1, int64_t(all.size())}, DataType::kInt32);
}

// qkv [S, B, 3E, 1, 1], where each head has its q, k and v side by side; mask f32 [B, S], 1 for keys that count, or i32 [B],
// how many count.
void attentionFixed(PluginLowering& p)
{
    Value* const x = p.in(0, 5);
    auto const [heads, size] = headsOf(p);
    p.check(p.known(x, 2) == 3 * heads * size,
            "its input " + str(x->shape) + " needs 3 times hidden_size in dimension 2");
    Value* const cut = p.transpose(p.reshape(x, {0, 0, heads, 3, size}), {3, 1, 2, 0, 4}); // [3, B, heads, S, size]
    Value *const q = taken(p, cut, 0, 0), *const k = taken(p, cut, 0, 1), *const v = taken(p, cut, 0, 2);
    Value* keep = nullptr;
    if (p.fields.flag("has_mask")) {
        Value* const mask = p.in(1);
        if (mask->type == DataType::kInt32) {
            p.check(mask->rank() == 1, "its mask " + str(mask->shape) + " must be [B]");
            Value* const at = positionsOf(p, x);
            keep = p.binary(Binary::kLess, at, p.reshape(mask, {-1, 1})); // [B, S]
        } else {
            p.check(mask->rank() == 2, "its mask " + str(mask->shape) + " must be [B, S]");
            keep = p.binary(Binary::kGreater, mask, p.scalar(0.5, mask));
        }
        keep = p.reshape(keep, {0, 1, 1, -1});
    }
    Value* const y = attention(p, q, k, v, keep);
    p.outputs = {p.reshape(p.transpose(y, {2, 0, 1, 3}), {0, 0, heads * size, 1, 1})};
}

// qkv [1, T, 3E], rows of all sequences, each head's q, k and v side by side: [1, T, E].
Value* attentionOfRows(PluginLowering& p, Value* x, Heads const& heads, Value* begins)
{
    ops::attention::Attrs a;
    a.heads = heads.count;
    a.size = a.valueSize = heads.size;
    a.scale = 1 / std::sqrt(double(heads.size));
    a.segments = true;
    ops::attention::Operand* const operands[] = {&a.q, &a.k, &a.v};
    for (int i = 0; i < 3; ++i)
        *operands[i] = {i * heads.size, 3 * heads.size};
    return p.value(ops::attention::def(), a, {x, x, x, begins});
}

void attentionVariable(PluginLowering& p)
{
    if (!p.fields.flag("var_seqlen"))
        return attentionFixed(p);
    Value* const x = p.in(0, 4);
    Heads const heads = headsOf(p);
    int64_t const width = heads.count * heads.size;
    p.check(p.known(x, 1) == 3 * width, "its input " + str(x->shape) + " needs 3 times hidden_size in dimension 1");
    Value* const y = attentionOfRows(p, p.reshape(x, {1, -1, 3 * width}), heads, p.in(2, 1));
    p.outputs = {p.reshape(y, {-1, width, 1, 1})};
}

// qkv [1, 3E, T, 1]
void attentionInterleaved(PluginLowering& p)
{
    Value* const x = p.in(0, 4);
    Heads const heads = headsOf(p);
    int64_t const width = heads.count * heads.size;
    p.check(p.known(x, 1) == 3 * width && x->shape[0].is(1) && x->shape[3].is(1),
            "its input " + str(x->shape) + " must be [1, 3 hidden_size, T, 1]");
    Value* const rows = p.transpose(p.reshape(x, {1, 3 * width, -1}), {0, 2, 1});
    Value* const y = attentionOfRows(p, rows, heads, p.in(1, 1));
    p.outputs = {p.reshape(p.transpose(y, {0, 2, 1}), {1, width, -1, 1})};
}

// qkv [B, S, heads, 3, H]
void selfAttention(PluginLowering& p)
{
    Value* const cut = p.transpose(p.in(0, 5), {3, 0, 2, 1, 4});
    p.check(p.known(p.in(0), 3) == 3, "dimension 3 of its input " + str(p.in(0)->shape) + " must be 3");
    Value* const y = attention(p, taken(p, cut, 0, 0), taken(p, cut, 0, 1), taken(p, cut, 0, 2), nullptr);
    p.outputs = {p.transpose(y, {0, 2, 1, 3})};
}

// q [B, Sq, heads, H]; kv [B, Skv, heads, 2, H]
void crossAttention(PluginLowering& p)
{
    Value* const q = p.transpose(p.in(0, 4), {0, 2, 1, 3});
    Value* const cut = p.transpose(p.in(1, 5), {3, 0, 2, 1, 4});
    p.check(p.known(p.in(1), 3) == 2, "dimension 3 of its input " + str(p.in(1)->shape) + " must be 2");
    p.outputs = {p.transpose(attention(p, q, taken(p, cut, 0, 0), taken(p, cut, 0, 1), nullptr), {0, 2, 1, 3})};
}

std::string checkHeads(PluginFields const& f)
{
    int64_t const hidden = f.integer("hidden_size"), heads = f.integer("num_heads");
    if (hidden > 0 && heads > 0 && hidden % heads == 0)
        return "";
    return fmt::format(
        "hidden_size is {}, num_heads is {}; both must be above 0, and the first a multiple of the second", hidden,
        heads);
}

std::string checkConnected(PluginFields const& f)
{
    int64_t const n = f.integer("out_dims"), count = f.weights("W").count;
    return n > 0 && count > 0 && count % n == 0 ? "" : fmt::format("out_dims is {}, W has {} elements", n, count);
}

std::string checkNorm(PluginFields const& f)
{
    int64_t const gamma = f.weights("gamma").count, beta = f.weights("beta").count;
    return gamma > 0 && gamma == beta ? "" : fmt::format("beta has {} elements, gamma {}", beta, gamma);
}

std::string checkEmbeddings(PluginFields const& f)
{
    int64_t const beta = f.weights("bert_embeddings_layernorm_beta").count;
    if (beta <= 0 || f.weights("bert_embeddings_layernorm_gamma").count != beta)
        return "beta and gamma of the layer norm must have a number for each hidden dimension";
    for (char const* table : {"bert_embeddings_word_embeddings", "bert_embeddings_token_type_embeddings",
                              "bert_embeddings_position_embeddings"})
        if (f.weights(table).count <= 0 || f.weights(table).count % beta != 0)
            return fmt::format("{} has {} elements; rows have {}", table, f.weights(table).count, beta);
    return "";
}

std::vector<FieldSpec> embeddingFields()
{
    return {{"bert_embeddings_layernorm_beta", kUNKNOWN, kMust},
            {"bert_embeddings_layernorm_gamma", kUNKNOWN, kMust},
            {"bert_embeddings_word_embeddings", kUNKNOWN, kMust},
            {"bert_embeddings_token_type_embeddings", kUNKNOWN, kMust},
            {"bert_embeddings_position_embeddings", kUNKNOWN, kMust},
            {"output_fp16", kINT32},
            {"full_mask", kINT32},
            {"mha_type_id", kINT32}};
}

char embeddingType(PluginFields const& f)
{
    return f.flag("output_fp16") ? 'h' : 'f';
}

} // namespace

void registerPlugins_transformers(StandardPlugins& list)
{
    using enum nvinfer1::TensorFormat;
    using nvinfer1::DataType::kINT8;
    static constexpr char kEmbed[] = "CustomEmbLayerNormPluginDynamic",
                          kAttention[] = "CustomQKVToContextPluginDynamic",
                          kSkip[] = "CustomSkipLayerNormPluginDynamic";
    list.push_back({.name = kEmbed,
                    .version = "1",
                    .fields = embeddingFields(),
                    .types = {"iii>ff"},
                    .lower = embedFixed,
                    .check = checkEmbeddings,
                    .outputLetter = [](PluginFields const& f, size_t o) { return o == 0 ? embeddingType(f) : 'f'; },
                    .checksTypes = false});
    list.push_back({.name = kEmbed,
                    .version = "2",
                    .fields = embeddingFields(),
                    .types = {"iii.>fh"},
                    .lower = embedRows<false>,
                    .check = checkEmbeddings,
                    .outputLetter = [](PluginFields const& f, size_t o) { return o == 0 ? embeddingType(f) : 'h'; },
                    .checksTypes = false});
    list.push_back({.name = kEmbed,
                    .version = "3",
                    .fields = embeddingFields(),
                    .types = {"iii.>ff"},
                    .lower = embedRows<true>,
                    .check = checkEmbeddings,
                    .outputLetter = [](PluginFields const& f, size_t) { return embeddingType(f); },
                    .checksTypes = false});

    std::vector<FieldSpec> const heads{{"hidden_size", kINT32, kMust},
                                       {"num_heads", kINT32, kMust},
                                       {"dq_probs", kFLOAT32, kMay, kOne, 1.0 / 127},
                                       {"use_int8_scale_max", kINT32, kMay, kOne, 1}};
    std::vector<FieldSpec> typed = heads;
    typed.insert(typed.begin(), {{"type_id", kINT32, kMust}, {"has_mask", kINT32, kMust}});
    list.push_back({.name = kAttention,
                    .version = "1",
                    .fields = typed,
                    .types = {"T.?>T"},
                    .lower = attentionFixed,
                    .check = checkHeads,
                    .checksTypes = false});
    typed.push_back({"var_seqlen", kINT32});
    list.push_back({.name = kAttention,
                    .version = "2",
                    .fields = typed,
                    .types = {"T.?i?.?>T"},
                    .lower = attentionVariable,
                    .check = checkHeads,
                    .formats = {{kINT8, kCHW32, {0}, {0}}, {kINT8, kCHW4, {0}, {0}}},
                    .checksTypes = false});
    list.push_back({.name = kAttention,
                    .version = "3",
                    .fields = heads,
                    .types = {"Ti.>T"},
                    .lower = attentionInterleaved,
                    .check = checkHeads,
                    .formats = {{kINT8, kCHW32, {0}, {0}}},
                    .checksTypes = false});

    std::vector<FieldSpec> const norm{{"beta", kUNKNOWN, kMust}, {"gamma", kUNKNOWN, kMust}};
    std::vector<FieldSpec> skip = norm;
    skip.insert(skip.end(), {{"type_id", kINT32, kMust}, {"bias", kUNKNOWN}});
    auto const addSkip = [&](char const* version, std::vector<FieldSpec> fields, char const* types,
                             void (*lower)(PluginLowering&), std::vector<PluginFormats> formats = {}) {
        list.push_back({.name = kSkip,
                        .version = version,
                        .fields = std::move(fields),
                        .types = {types},
                        .lower = lower,
                        .check = checkNorm,
                        .formats = std::move(formats),
                        .checksTypes = false});
    };
    std::vector<FieldSpec> first = skip;
    first.push_back({"ld", kINT32, kMust});
    addSkip("1", first, "TT>T", skipLayerNorm<false>);
    addSkip("2", skip, "TT>T", skipLayerNorm<false>);
    addSkip("3", norm, "TT>T", skipLayerNorm<false>, {{kINT8, kCHW32, {0, 1}, {0}}});
    addSkip("4", norm, "TT>TT", skipLayerNorm<true>, {{kINT8, kCHW32, {0, 1}, {0, 1}}});

    list.push_back({.name = "CustomFCPluginDynamic",
                    .version = "1",
                    .fields = {{"out_dims", kINT32, kMust}, {"type_id", kINT32, kMust}, {"W", kUNKNOWN, kMust}},
                    .lower = fullyConnected,
                    .check = checkConnected,
                    .checksTypes = false});
    list.push_back({.name = "fMHA_V2", .version = "1", .lower = selfAttention});
    list.push_back({.name = "fMHCA", .version = "1", .types = {"TT>T"}, .lower = crossAttention});
}

} // namespace tw::api
