// SPDX-License-Identifier: Apache-2.0
// LinearAttention, CausalConvWithState (opset 27): what layers with a state in place of keys and values are made of.
#include <cmath>

#include "importers/common/loops.h"
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using nvinfer1::ActivationType;
using Op = nvinfer1::ElementWiseOperation;

// S: [B, heads, dk, dv], in FP32. Of each step, with g in the log and where they are there:
//   S = exp(g) S;  v = beta (v - S' k);  S = S + k v';  y = scale S' q
class LinearAttention
{
public:
    explicit LinearAttention(ImportContext& ctx) : ctx_(ctx)
    {
        std::string const rule = ctx.attrString("update_rule", "gated_delta");
        hasDecay_ = rule == "gated" || rule == "gated_delta";
        hasBeta_ = rule == "delta" || rule == "gated_delta";
        if (!hasDecay_ && !hasBeta_ && rule != "linear")
            ctx.invalid("update_rule '" + rule + "' is unknown (allowed: linear, gated, delta, gated_delta)");
        if (ctx.hasInput(4) != hasDecay_ || ctx.hasInput(5) != hasBeta_)
            ctx.invalid(fmt::format("update_rule '{}' wants {} decay (input 4) and {} beta (input 5)", rule,
                                    hasDecay_ ? "a" : "no", hasBeta_ ? "a" : "no"));
        heads_ = ctx.requireInt("kv_num_heads");
        int64_t const queries = ctx.requireInt("q_num_heads");
        if (heads_ < 1 || queries < 1 || queries % heads_ != 0)
            ctx.invalid(fmt::format("there are {} heads of queries and {} of keys", queries, heads_));
        perKey_ = queries / heads_;
        keySize_ = sizeOf(0, queries);
        if (sizeOf(1, heads_) != keySize_)
            ctx.invalid(fmt::format("heads of queries have size {}, of keys {}", keySize_, sizeOf(1, heads_)));
        valueSize_ = sizeOf(2, heads_);
        Sizes const s = ctx.sizesOf(ctx.tensor(0));
        batch_ = s[0];
        length_ = s[1];
    }
    void run()
    {
        double const given = ctx_.attrFloat("scale", 0), scale = given != 0 ? given : 1 / std::sqrt(double(keySize_));
        ITensor& q = stepsOf(0, perKey_, keySize_); // of each step [B, heads, rows, columns]
        std::vector<ITensor*> inputs{&ctx_.elementwise(q, ctx_.scalarLike(scale, q), Op::kPROD),
                                     &stepsOf(1, 1, keySize_), &stepsOf(2, 1, valueSize_)};
        if (hasDecay_)
            inputs.push_back(&ctx_.unary(decays(), nvinfer1::UnaryOperation::kEXP));
        if (hasBeta_)
            inputs.push_back(&betas());
        ITensor* state = &first();
        ITensor* y = nullptr;
        if (length_.known() && length_.value == 1) {
            for (ITensor*& t : inputs)
                t = &ctx_.squeeze(*t, {0});
            y = &ctx_.unsqueeze(step(inputs, state), {0});
        } else {
            auto& loop = addLoop(ctx_, ctx_.name());
            ITensor& steps = ctx_.asScalar(length_);
            ctx_.added(loop.addTripLimit(steps, nvinfer1::TripLimit::kCOUNT));
            Carried carried(ctx_, loop);
            state = &carried.add(*state);
            for (ITensor*& t : inputs)
                t = &ctx_.out(ctx_.added(loop.addIterator(*t, 0)));
            ITensor& each = step(inputs, state);
            carried.setNext(0, *state, "the state");
            y = &stacked(ctx_, loop, each, 0, false, &steps);
            state = &carried.last(0);
        }
        y = &ctx_.transpose(*y, {1, 0, 2, 3, 4}); // [B, T, heads, queries of a head, dv]
        y = &ctx_.reshape(*y, Sizes{batch_, length_, Size(heads_ * perKey_ * valueSize_)});
        DataType const type = ctx_.tensor(0).getType();
        ctx_.setOutput(0, ctx_.cast(*y, type));
        if (ctx_.wantsOutput(1))
            ctx_.setOutput(1, ctx_.cast(*state, ctx_.hasInput(3) ? ctx_.tensor(3).getType() : type));
    }

private:
    ITensor& checked(int input, int rank)
    {
        ITensor& t = ctx_.tensor(input);
        Dims const d = t.getDimensions();
        if (!isFloating(t.getType()) || d.nbDims != rank)
            ctx_.invalid(fmt::format("input {} is {} of shape {}, not FLOAT or HALF of {} dimensions", input,
                                     typeName(t.getType()), describe(d), rank));
        return t;
    }
    int64_t width(int input)
    {
        Dims const d = checked(input, 3).getDimensions();
        ctx_.check(d.d[2] > 0,
                   fmt::format("input {} has shape {}; its last dimension must be known", input, describe(d)));
        return d.d[2];
    }
    int64_t sizeOf(int input, int64_t heads)
    {
        int64_t const w = width(input);
        if (w % heads != 0)
            ctx_.invalid(fmt::format("input {} has {} columns for {} heads", input, w, heads));
        return w / heads;
    }
    // [B, T, heads * rows * columns] -> [T, B, heads, rows, columns], FP32.
    ITensor& stepsOf(int input, int64_t heads, int64_t rows, int64_t columns)
    {
        ITensor& x = ctx_.cast(checked(input, 3), DataType::kFLOAT);
        Sizes const parts{batch_, length_, Size(heads), Size(rows), Size(columns)};
        return ctx_.transpose(ctx_.reshape(x, parts), {1, 0, 2, 3, 4});
    }
    ITensor& stepsOf(int input, int64_t rows, int64_t columns) { return stepsOf(input, heads_, rows, columns); }
    ITensor& decays() // of each key's element, or of each head
    {
        int64_t const w = width(4);
        if (w != heads_ && w != heads_ * keySize_)
            ctx_.invalid(
                fmt::format("input 4, the decay, has {} columns (allowed: {}, {})", w, heads_, heads_ * keySize_));
        return stepsOf(4, w / heads_, 1);
    }
    ITensor& betas()
    {
        int64_t const w = width(5);
        if (w != heads_ && w != 1)
            ctx_.invalid(fmt::format("input 5, beta, has {} columns (allowed: 1, {})", w, heads_));
        return stepsOf(5, w, 1, 1);
    }
    ITensor& first()
    {
        Sizes const sizes{batch_, Size(heads_), Size(keySize_), Size(valueSize_)};
        if (!ctx_.hasInput(3))
            return ctx_.expand(ctx_.scalar(0, DataType::kFLOAT, 4), sizes);
        ITensor& s = ctx_.cast(checked(3, 4), DataType::kFLOAT);
        Dims const d = s.getDimensions();
        for (int i = 1; i < 4; ++i)
            if (d.d[i] >= 0 && d.d[i] != sizes[size_t(i)].value)
                ctx_.invalid(fmt::format("input 3, the state, has shape {} instead of [batch, {}, {}, {}]", describe(d),
                                         heads_, keySize_, valueSize_));
        return s;
    }
    ITensor& step(std::vector<ITensor*> const& in, ITensor*& state)
    {
        ITensor *s = state, *v = in[2];
        if (hasDecay_)
            s = &ctx_.elementwise(*s, *in[3], Op::kPROD);
        if (hasBeta_)
            v = &ctx_.elementwise(ctx_.elementwise(*v, ctx_.matmul(*in[1], *s), Op::kSUB), *in.back(), Op::kPROD);
        state = &ctx_.elementwise(*s, ctx_.matmul(*in[1], *v, true), Op::kSUM);
        return ctx_.matmul(*in[0], *state);
    }

    ImportContext& ctx_;
    bool hasDecay_, hasBeta_;
    int64_t heads_, perKey_, keySize_, valueSize_; // heads of keys; of queries on each
    Size batch_, length_;
};

// A convolution of each channel over the positions up to its own; the last ones are kept for the next call.
void importCausalConv(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    Value const w = ctx.asWeights(ctx.input(1));
    Dims const k = w.dims(), d = x.getDimensions();
    if (d.nbDims != 3 || k.nbDims != 3 || (k.d[1] >= 0 && k.d[1] != 1) ||
        (d.d[1] >= 0 && k.d[0] >= 0 && d.d[1] != k.d[0]))
        ctx.invalid(fmt::format("a kernel of shape {} does not fit an input of shape {}: [channels, 1, size] and "
                                "[batch, channels, length] do",
                                describe(k), describe(d)));
    ctx.check(isStatic(k) && volume(k) > 0, "the kernel's dimensions must be known, they are " + describe(k));
    std::string const activation = ctx.attrString("activation", "none");
    if (activation != "none" && activation != "silu" && activation != "swish")
        ctx.invalid("activation '" + activation + "' is unknown (allowed: none, silu, swish)");
    int64_t const kept = k.d[2] - 1;
    Sizes const sizes = ctx.sizesOf(x), ones(3, Size(1));
    Sizes longer = sizes, state = sizes;
    longer[2] = ctx.add(sizes[2], kept);
    state[2] = Size(kept);
    ITensor& whole = ctx.hasInput(3)
                         ? ctx.concat({&ctx.tensor(3), &x}, 2)
                         : ctx.slice(x, {Size(0), Size(0), Size(-kept)}, longer, ones, nvinfer1::SliceMode::kFILL);
    if (ctx.wantsOutput(1))
        ctx.setOutput(1, ctx.slice(whole, {Size(0), Size(0), sizes[2]}, state, ones));
    WindowAttrs const window{{k.d[2]}, {1}, {1}, {0}, {0}};
    ITensor& y = convolved(ctx, whole, w, ctx.asWeights(ctx.optionalInput(2)), window, k.d[0]);
    ctx.setOutput(0, activation == "none" ? y
                                          : ctx.elementwise(y, ctx.activation(y, ActivationType::kSIGMOID), Op::kPROD));
}

} // namespace

void register_composites_linear_attention(ImporterMap& map)
{
    map.add(
        "LinearAttention", [](auto& ctx) { LinearAttention(ctx).run(); }, 27);
    map.add("CausalConvWithState", importCausalConv, 27);
}

} // namespace tw::onnx
