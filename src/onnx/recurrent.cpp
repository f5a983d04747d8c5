// SPDX-License-Identifier: Apache-2.0
#include "onnx/recurrent.h"

#include <algorithm>
#include <map>

#include "importers/common/loops.h"

namespace tw::onnx {

namespace {

struct FunctionFacts
{
    bool alpha, beta; // takes them
    float defaultAlpha, defaultBeta;
};

std::map<std::string, FunctionFacts> const& knownFunctions()
{
    static std::map<std::string, FunctionFacts> const map{
        {"sigmoid", {false, false, 0, 0}},      {"tanh", {false, false, 0, 0}},
        {"relu", {false, false, 0, 0}},         {"affine", {true, true, 1, 0}},
        {"leakyrelu", {true, false, 0.01F, 0}}, {"thresholdedrelu", {true, false, 1, 0}},
        {"scaledtanh", {true, true, 1, 1}},     {"hardsigmoid", {true, true, 0.2F, 0.5F}},
        {"elu", {true, false, 1, 0}},           {"softsign", {false, false, 0, 0}},
        {"softplus", {false, false, 0, 0}},
    };
    return map;
}

std::string lower(std::string s)
{
    std::ranges::transform(s, s.begin(), [](unsigned char c) { return char(std::tolower(c)); });
    return s;
}

std::vector<std::string> defaultFunctions(Recurrent const& r)
{
    if (r.cell == Recurrent::Cell::kLstm)
        return {"Sigmoid", "Tanh", "Tanh"};
    if (r.cell == Recurrent::Cell::kGru)
        return {"Sigmoid", "Tanh"};
    return {"Tanh"};
}

void readFunctions(ImportContext& ctx, Recurrent& r)
{
    std::vector<std::string> names = ctx.attrStrings("activations");
    if (names.empty())
        for (int d = 0; d < r.directions; ++d)
            for (std::string const& name : defaultFunctions(r))
                names.push_back(name);
    size_t const wanted = size_t(r.functionsEach * r.directions);
    if (names.size() != wanted)
        ctx.invalid(fmt::format("activations has {} entries, but there must be {}", names.size(), wanted));
    // Alphas and betas are given for those functions that take them, in their order.
    std::vector<float> const alphas = ctx.attrFloats("activation_alpha"), betas = ctx.attrFloats("activation_beta");
    size_t alpha = 0, beta = 0;
    for (std::string const& name : names) {
        auto const found = knownFunctions().find(lower(name));
        if (found == knownFunctions().end())
            ctx.fail("activation '" + name + "' is not known");
        FunctionFacts const& f = found->second;
        r.functions.push_back({found->first, f.alpha && alpha < alphas.size() ? alphas[alpha++] : f.defaultAlpha,
                               f.beta && beta < betas.size() ? betas[beta++] : f.defaultBeta});
    }
}

void readDirection(ImportContext& ctx, Recurrent& r)
{
    std::string const direction = lower(ctx.attrString("direction", "forward"));
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
        ctx.invalid("direction '" + direction + "' is unknown (allowed: forward, reverse, bidirectional)");
    r.directions = direction == "bidirectional" ? 2 : 1;
    r.reverse = direction == "reverse";
}

// -1 in `wanted`: any size.
void checkDims(ImportContext& ctx, int input, char const* what, std::vector<int64_t> const& wanted)
{
    if (!ctx.hasInput(input))
        return;
    Dims const d = ctx.input(input).dims();
    bool good = d.nbDims == int(wanted.size());
    for (int i = 0; good && i < d.nbDims; ++i)
        good = d.d[i] < 0 || wanted[size_t(i)] < 0 || d.d[i] == wanted[size_t(i)];
    std::string text;
    for (int64_t v : wanted)
        text += (text.empty() ? "" : ",") + (v < 0 ? std::string("?") : std::to_string(v));
    if (!good)
        ctx.invalid(fmt::format("{} has dimensions {}, but must have [{}]", what, describe(d), text));
}

void checkInputs(ImportContext& ctx, Recurrent const& r)
{
    int64_t const d = r.directions, h = r.hidden, g = r.gates * h, batch = r.x.d[r.batchFirst ? 0 : 1];
    std::vector<int64_t> const state = r.batchFirst ? std::vector<int64_t>{batch, d, h} : std::vector{d, batch, h};
    checkDims(ctx, kInW, "W", {d, g, r.x.d[2]});
    checkDims(ctx, kInR, "R", {d, g, h});
    checkDims(ctx, kInB, "B", {d, 2 * g});
    checkDims(ctx, kInLengths, "sequence_lens", {batch});
    checkDims(ctx, kInH, "initial_h", state);
    checkDims(ctx, kInC, "initial_c", state);
    checkDims(ctx, kInP, "P", {d, 3 * h});
}

} // namespace

Recurrent readRecurrent(ImportContext& ctx, Recurrent::Cell cell)
{
    Recurrent r;
    r.cell = cell;
    r.gates = cell == Recurrent::Cell::kLstm ? 4 : cell == Recurrent::Cell::kGru ? 3 : 1;
    r.functionsEach = int(defaultFunctions(r).size());
    readDirection(ctx, r);
    Dims const weights = ctx.input(kInR).dims();
    if (weights.nbDims != 3 || weights.d[2] < 1)
        ctx.invalid("R has dimensions " + describe(weights) + ", but must have three, the last of them known");
    r.hidden = int(ctx.attrInt("hidden_size", weights.d[2]));
    r.batchFirst = ctx.attrInt("layout", 0) != 0;
    r.linearBeforeReset = ctx.attrInt("linear_before_reset", 0) != 0;
    r.inputForget = ctx.attrInt("input_forget", 0) != 0;
    r.clip = ctx.attrFloat("clip", 0);
    if (!(r.clip >= 0))
        ctx.invalid(fmt::format("clip {} must not be negative", r.clip));
    r.x = ctx.input(kInX).dims();
    if (r.x.nbDims != 3)
        ctx.invalid("X has dimensions " + describe(r.x) + ", but must have three");
    readFunctions(ctx, r);
    checkInputs(ctx, r);
    return r;
}

void setRecurrentOutputs(ImportContext& ctx, Recurrent const& r, ITensor& y, bool stepsFirst, ITensor& h, ITensor* c)
{
    if (ctx.wantsOutput(0)) {
        Sizes sizes = ctx.sizesOf(y);
        sizes.back() = Size(r.directions);
        sizes.emplace_back(r.hidden);
        ITensor& split = ctx.reshape(y, sizes); // [T,N,D,H], [N,T,D,H]
        std::vector<int> const perm = r.batchFirst ? (stepsFirst ? std::vector{1, 0, 2, 3} : std::vector{0, 1, 2, 3})
                                                   : (stepsFirst ? std::vector{0, 2, 1, 3} : std::vector{1, 2, 0, 3});
        ctx.setOutput(0, ctx.transpose(split, perm));
    }
    auto state = [&](int i, ITensor& t) {
        if (ctx.wantsOutput(i))
            ctx.setOutput(i, r.batchFirst ? ctx.identity(t) : ctx.transpose(t, {1, 0, 2}));
    };
    state(1, h);
    if (c)
        state(2, *c);
}

namespace {

using nvinfer1::ActivationType;
using nvinfer1::ElementWiseOperation;

// The cells of one direction, a loop over the steps.
class Spelled
{
public:
    Spelled(ImportContext& ctx, Recurrent const& r, int d) : ctx_(ctx), r_(r), d_(d)
    {
        ITensor& x = r.batchFirst ? ctx.transpose(ctx.tensor(kInX), {1, 0, 2}) : ctx.tensor(kInX);
        sizes_ = ctx.sizesOf(x);
        h_ = initial(kInH, x);
        c_ = r.cell == Recurrent::Cell::kLstm ? initial(kInC, x) : nullptr;
        ITensor& w = ofDirection(ctx.tensor(kInW)); // [1,G*H,E]
        recurrent_ = &ctx.squeeze(ofDirection(ctx.tensor(kInR)), {0});
        projected_ = &ctx.matmul(x, w, false, true);
        if (ctx.hasInput(kInB)) {
            ITensor& b = ofDirection(ctx.tensor(kInB)); // [1,2*G*H]
            projected_ = &sum(*projected_, ctx.unsqueeze(columns(b, 0, r.gates), {0}));
            bias_ = &columns(b, r.gates, r.gates);
        }
        if (ctx.hasInput(kInP))
            peepholes_ = &ofDirection(ctx.tensor(kInP));
        if (ctx.hasInput(kInLengths))
            lengths_ = &ctx.unsqueeze(ctx.cast(ctx.tensor(kInLengths), DataType::kINT32), {1}); // [N,1]
    }
    void run()
    {
        auto& loop = addLoop(ctx_, ctx_.name() + (d_ == 0 ? "" : " [reverse]"));
        ITensor& steps = ctx_.asScalar(sizes_[0]);
        ctx_.added(loop.addTripLimit(steps, nvinfer1::TripLimit::kCOUNT));
        bool const reverse = r_.isReverse(d_);
        Carried carried(ctx_, loop);
        h_ = &carried.add(*h_);
        c_ = c_ ? &carried.add(*c_) : nullptr;
        if (lengths_)
            addTime(carried);
        ITensor& y = step(ctx_.out(ctx_.added(loop.addIterator(*projected_, 0, reverse))));
        carried.setNext(0, *h_, "the state");
        if (c_)
            carried.setNext(1, *c_, "the cell state");
        ys = &stacked(ctx_, loop, y, 0, reverse, &steps);
        h_ = &carried.last(0);
        c_ = c_ ? &carried.last(1) : nullptr;
    }
    ITensor* ys = nullptr; // [T,N,H]
    ITensor& lastH() { return ctx_.unsqueeze(*h_, {1}); }
    ITensor& lastC() { return ctx_.unsqueeze(*c_, {1}); }

private:
    static Sizes ones(size_t n) { return Sizes(n, Size(1)); }
    // Entry d of the first dimension.
    ITensor& ofDirection(ITensor& t)
    {
        Sizes size = ctx_.sizesOf(t), start(size.size(), Size(0));
        if (size[0].known() && size[0].value == 1)
            return t;
        size[0] = Size(1);
        start[0] = Size(d_);
        return ctx_.slice(t, start, size, ones(size.size()));
    }
    // Gates [first, first + count) of the last dimension.
    ITensor& columns(ITensor& t, int first, int count)
    {
        Sizes size = ctx_.sizesOf(t), start(size.size(), Size(0));
        size.back() = Size(int64_t(count) * r_.hidden);
        start.back() = Size(int64_t(first) * r_.hidden);
        return ctx_.slice(t, start, size, ones(size.size()));
    }
    ITensor* initial(int input, ITensor& x)
    {
        if (!ctx_.hasInput(input))
            return &ctx_.expand(ctx_.scalar(0, x.getType(), 2), {sizes_[1], Size(r_.hidden)});
        ITensor& all = ctx_.tensor(input);
        ITensor& ordered = r_.batchFirst ? ctx_.transpose(all, {1, 0, 2}) : all;
        return &ctx_.squeeze(ofDirection(ordered), {0}); // [N,H]
    }
    ITensor& sum(ITensor& a, ITensor& b) { return ctx_.elementwise(a, b, ElementWiseOperation::kSUM); }
    ITensor& product(ITensor& a, ITensor& b) { return ctx_.elementwise(a, b, ElementWiseOperation::kPROD); }
    ITensor& lessThanOne(ITensor& a) // 1 - a
    {
        return ctx_.elementwise(ctx_.scalarLike(1, a), a, ElementWiseOperation::kSUB);
    }
    ITensor& apply(CellFunction const& f, ITensor& x)
    {
        static std::map<std::string, ActivationType> const kTypes{
            {"sigmoid", ActivationType::kSIGMOID},
            {"tanh", ActivationType::kTANH},
            {"relu", ActivationType::kRELU},
            {"leakyrelu", ActivationType::kLEAKY_RELU},
            {"thresholdedrelu", ActivationType::kTHRESHOLDED_RELU},
            {"scaledtanh", ActivationType::kSCALED_TANH},
            {"hardsigmoid", ActivationType::kHARD_SIGMOID},
            {"elu", ActivationType::kELU},
            {"softsign", ActivationType::kSOFTSIGN},
            {"softplus", ActivationType::kSOFTPLUS},
        };
        if (f.name == "affine")
            return sum(product(x, ctx_.scalarLike(f.alpha, x)), ctx_.scalarLike(f.beta, x));
        bool const plus = f.name == "softplus";
        return ctx_.activation(x, kTypes.at(f.name), plus ? 1 : f.alpha, plus ? 1 : f.beta);
    }
    ITensor& function(int i, ITensor& x)
    {
        ITensor& in = r_.clip > 0 ? ctx_.activation(x, ActivationType::kCLIP, -r_.clip, r_.clip) : x;
        return apply(r_.function(d_, i), in);
    }
    // [N, count * H] of the state, with its bias.
    ITensor& ofState(ITensor& h, int first, int count)
    {
        Sizes size{Size(int64_t(count) * r_.hidden), Size(r_.hidden)};
        ITensor& w = count == r_.gates
                         ? *recurrent_
                         : ctx_.slice(*recurrent_, {Size(int64_t(first) * r_.hidden), Size(0)}, size, ones(2));
        ITensor& y = ctx_.matmul(h, w, false, true);
        return bias_ ? sum(y, count == r_.gates ? *bias_ : columns(*bias_, first, count)) : y;
    }
    ITensor& withPeephole(ITensor& x, int which, ITensor& c)
    {
        return peepholes_ ? sum(x, product(columns(*peepholes_, which, 1), c)) : x;
    }
    ITensor& lstm(ITensor& x)
    {
        ITensor& all = sum(x, ofState(*h_, 0, 4));
        ITensor& in = function(0, withPeephole(columns(all, 0, 1), 0, *c_));
        ITensor& forget = r_.inputForget ? lessThanOne(in) : function(0, withPeephole(columns(all, 2, 1), 2, *c_));
        next_ = &sum(product(forget, *c_), product(in, function(1, columns(all, 3, 1))));
        ITensor& out = function(0, withPeephole(columns(all, 1, 1), 1, *next_));
        return product(out, apply(r_.function(d_, 2), *next_));
    }
    ITensor& gru(ITensor& x)
    {
        ITensor& both = function(0, sum(columns(x, 0, 2), ofState(*h_, 0, 2)));
        ITensor &z = columns(both, 0, 1), &reset = columns(both, 1, 1);
        ITensor& fromState =
            r_.linearBeforeReset ? product(reset, ofState(*h_, 2, 1)) : ofState(product(reset, *h_), 2, 1);
        ITensor& n = function(1, sum(columns(x, 2, 1), fromState));
        return sum(product(lessThanOne(z), n), product(z, *h_));
    }
    ITensor& cell(ITensor& x)
    {
        if (r_.cell == Recurrent::Cell::kLstm)
            return lstm(x);
        return r_.cell == Recurrent::Cell::kGru ? gru(x) : function(0, sum(x, ofState(*h_, 0, 1)));
    }
    // Of the step, [1,1].
    void addTime(Carried& carried)
    {
        bool const reverse = r_.isReverse(d_);
        ITensor& first = ctx_.asTensor(reverse ? ctx_.sub(sizes_[0], Size(1)) : Size(0));
        time_ = &carried.add(ctx_.unsqueeze(first, {1}));
        carried.setNext(c_ ? 2 : 1, sum(*time_, ctx_.scalar(reverse ? -1 : 1, DataType::kINT32, 2)), "the time");
    }
    // Sets the next states, and gives the output. x: [N,G*H].
    ITensor& step(ITensor& x)
    {
        ITensor* h = &cell(x);
        ITensor* y = h;
        if (lengths_) { // past its end a sequence keeps its states and gives 0
            ITensor& inside = ctx_.elementwise(*lengths_, *time_, ElementWiseOperation::kGREATER);
            y = &ctx_.select(inside, *h, ctx_.scalarLike(0, *h));
            h = &ctx_.select(inside, *h, *h_);
            if (c_)
                next_ = &ctx_.select(inside, *next_, *c_);
        }
        h_ = h;
        c_ = c_ ? next_ : nullptr;
        return *y;
    }

    ImportContext& ctx_;
    Recurrent const& r_;
    int const d_;
    Sizes sizes_; // T, N, E
    ITensor *h_ = nullptr, *c_ = nullptr, *next_ = nullptr;
    ITensor *recurrent_ = nullptr, *projected_ = nullptr, *bias_ = nullptr, *peepholes_ = nullptr, *lengths_ = nullptr,
            *time_ = nullptr;
};

} // namespace

void importSpelled(ImportContext& ctx, Recurrent const& r)
{
    std::vector<ITensor*> ofDirections, h, c;
    for (int d = 0; d < r.directions; ++d) {
        Spelled cells(ctx, r, d);
        cells.run();
        ofDirections.push_back(cells.ys);
        h.push_back(&cells.lastH());
        if (r.cell == Recurrent::Cell::kLstm)
            c.push_back(&cells.lastC());
    }
    setRecurrentOutputs(ctx, r, ctx.concat(ofDirections, 2), true, ctx.concat(h, 1),
                        c.empty() ? nullptr : &ctx.concat(c, 1));
}

} // namespace tw::onnx
