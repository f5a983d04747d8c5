// SPDX-License-Identifier: Apache-2.0
#include "fuzz/random_network.h"

#include <algorithm>

namespace tw::fuzz {

using namespace nvinfer1;

namespace {

constexpr float kMost = 50; // of a number, either sign
constexpr int64_t kMostElements = 512;
constexpr int kRows = 3; // of x, at most

Dims dims(std::vector<int32_t> const& d)
{
    Dims out{};
    for (int32_t v : d)
        out.d[out.nbDims++] = v;
    return out;
}
bool isSmall(Dims const& d)
{
    int64_t n = 1;
    for (int i = 0; i < d.nbDims; ++i)
        n *= d.d[i] < 0 ? 4 : d.d[i];
    return d.nbDims >= 0 && n <= kMostElements;
}
bool isEqual(Dims const& a, Dims const& b)
{
    return a.nbDims == b.nbDims && std::equal(a.d, a.d + std::max(a.nbDims, 0), b.d);
}

// Sizes are equal, or one of them is 1.
bool canBroadcast(Dims const& a, Dims const& b)
{
    bool fits = a.nbDims == b.nbDims;
    for (int i = 0; fits && i < a.nbDims; ++i)
        fits = a.d[i] == b.d[i] || a.d[i] == 1 || b.d[i] == 1;
    return fits;
}

} // namespace

ITensor* RandomNetwork::out(ILayer* layer, int i)
{
    ITensor* t = layer ? layer->getOutput(i) : nullptr;
    isRefused_ = isRefused_ || !t || t->getDimensions().nbDims < 0;
    return t ? t : s_;
}
ITensor* RandomNetwork::clip(ITensor* x)
{
    IActivationLayer* l = net_.addActivation(*x, ActivationType::kCLIP);
    if (l) {
        l->setAlpha(-kMost);
        l->setBeta(kMost);
    }
    return out(l);
}
ITensor* RandomNetwork::cast(ITensor* x, DataType type)
{
    IIdentityLayer* l = net_.addIdentity(*x);
    if (l)
        l->setOutputType(0, type);
    return out(l);
}
ITensor* RandomNetwork::binary(ITensor* a, ITensor* b, ElementWiseOperation op)
{
    return out(net_.addElementWise(*a, *b, op));
}
ITensor* RandomNetwork::total(ITensor* x)
{
    int const rank = x->getDimensions().nbDims;
    return rank <= 0 ? x : clip(out(net_.addReduce(*x, ReduceOperation::kSUM, (1U << rank) - 1, false)));
}
ITensor* RandomNetwork::integers(std::vector<int32_t> const& shape, std::vector<int32_t> const& values)
{
    integers_.push_back(values);
    return out(net_.addConstant(dims(shape), {DataType::kINT32, integers_.back().data(), int64_t(values.size())}));
}
Weights RandomNetwork::drawn(std::string const& name, WeightsRole role, int64_t count)
{
    floats_.emplace_back();
    std::vector<float>& v = floats_.back();
    for (int64_t i = 0; i < count; ++i)
        v.push_back(float(bytes_->upTo(4) - 2));
    weights_[{name, role}] = &v;
    return {DataType::kFLOAT, v.data(), count};
}
ITensor* RandomNetwork::constant(std::vector<int32_t> const& shape)
{
    std::string const name = "c" + std::to_string(constants_++);
    int64_t count = 1;
    for (int32_t d : shape)
        count *= d;
    IConstantLayer* l = net_.addConstant(dims(shape), drawn(name, WeightsRole::kCONSTANT, count));
    if (l)
        l->setName(name.c_str());
    return out(l);
}
ITensor* RandomNetwork::pick(Scope const& scope)
{
    return scope[scope.size() - 1 - size_t(bytes_->upTo(int(std::min<size_t>(scope.size(), 200)) - 1))];
}
bool RandomNetwork::mayGrow(ITensor* x)
{
    Dims const d = x->getDimensions();
    return std::none_of(d.d, d.d + std::max(d.nbDims, 0), [](int32_t e) { return e < 0; }) || growth_-- > 0;
}
ITensor* RandomNetwork::partnerOf(ITensor* x, Scope const& scope)
{
    ITensor* t = pickOfRank(scope, x->getDimensions().nbDims);
    return canBroadcast(x->getDimensions(), t->getDimensions()) || bytes_->upTo(31) == 1 ? t : x;
}
ITensor* RandomNetwork::pickOfRank(Scope const& scope, int rank)
{
    ITensor* t = pick(scope);
    for (size_t i = scope.size(); i > 0 && t->getDimensions().nbDims != rank; --i)
        t = scope[i - 1]->getDimensions().nbDims == rank ? scope[i - 1] : t;
    return t;
}
void RandomNetwork::add(Scope& scope, ITensor* t)
{
    if (t && !isRefused_ && isSmall(t->getDimensions()))
        scope.push_back(t->getType() == DataType::kFLOAT ? t : cast(t, DataType::kFLOAT));
}

// ---- layers

ITensor* RandomNetwork::layer(Scope const& scope, int kind)
{
    ITensor* x = pick(scope);
    int const rank = x->getDimensions().nbDims;
    switch (kind) {
    case 0:
    case 1: {
        ElementWiseOperation const ops[] = {ElementWiseOperation::kSUM, ElementWiseOperation::kSUB,
                                            ElementWiseOperation::kMAX, ElementWiseOperation::kMIN,
                                            ElementWiseOperation::kPROD};
        ITensor* other = mayGrow(x) ? partnerOf(x, scope) : x;
        return clip(binary(x, other, ops[bytes_->upTo(4)]));
    }
    case 2: {
        UnaryOperation const ops[] = {UnaryOperation::kABS, UnaryOperation::kNEG, UnaryOperation::kFLOOR,
                                      UnaryOperation::kCEIL, UnaryOperation::kSIGN};
        return out(net_.addUnary(*x, ops[bytes_->upTo(4)]));
    }
    case 3:
        return out(net_.addActivation(*x, ActivationType::kRELU));
    case 4: {
        ReduceOperation const ops[] = {ReduceOperation::kSUM, ReduceOperation::kMAX, ReduceOperation::kMIN};
        return clip(
            out(net_.addReduce(*x, ops[bytes_->upTo(2)], 1U << bytes_->upTo(std::max(rank - 1, 0)), bytes_->flip())));
    }
    case 5: {
        x = rank < 2 ? pickOfRank(scope, 2) : x;
        if (!mayGrow(x))
            return x;
        ITensor* other = partnerOf(x, scope);
        int const last = std::max(x->getDimensions().nbDims - 1, 0);
        other = x->getDimensions().d[last] == other->getDimensions().d[last] ? other : x;
        return clip(out(net_.addMatrixMultiply(*x, MatrixOperation::kNONE, *other, MatrixOperation::kTRANSPOSE)));
    }
    case 6:
        return cast(cast(x, DataType::kINT32), DataType::kFLOAT);
    case 7: {
        if (!mayGrow(x))
            return x;
        ITensor* const both[] = {x, x};
        char const* const equations[] = {"a,a->", "a,b->ba", "ab,cb->ac", "ab,ab->b", "abc,dbc->ad", "abc,abc->cb"};
        return clip(out(net_.addEinsum(both, 2, equations[std::clamp(2 * rank - 2, 0, 4) + bytes_->upTo(1)])));
    }
    default: {
        std::vector<int32_t> shape(size_t(std::max(rank, 0)), 1);
        if (!shape.empty())
            shape.back() = 1 + bytes_->upTo(2);
        return constant(shape);
    }
    }
}

ITensor* RandomNetwork::movement(Scope const& scope, int kind)
{
    ITensor* x = pick(scope);
    Dims const d = x->getDimensions();
    int const rank = d.nbDims;
    switch (kind) {
    case 0: {
        Dims start{rank, {}}, size{rank, {}}, stride{rank, {}};
        for (int i = 0; i < rank; ++i) {
            start.d[i] = bytes_->upTo(1);
            size.d[i] = bytes_->upTo(3);
            stride.d[i] = 1 + bytes_->upTo(1);
        }
        ISliceLayer* l = net_.addSlice(*x, start, size, stride);
        SliceMode const modes[] = {SliceMode::kCLAMP, SliceMode::kFILL, SliceMode::kWRAP, SliceMode::kREFLECT,
                                   SliceMode::kSTRICT_BOUNDS};
        if (l)
            l->setMode(modes[bytes_->upTo(4)]);
        return out(l);
    }
    case 1: {
        IShuffleLayer* l = net_.addShuffle(*x);
        Permutation p{};
        for (int i = 0; i < rank; ++i)
            p.order[i] = rank - 1 - i;
        if (l && bytes_->flip())
            l->setFirstTranspose(p);
        Dims const shapes[] = {dims({-1}), dims({1, -1}), dims({-1, 1}), dims({0, -1}), dims({1, 1, 1, -1})};
        if (l && bytes_->flip())
            l->setReshapeDimensions(shapes[bytes_->upTo(4)]);
        return out(l);
    }
    case 2: {
        int const axis = bytes_->upTo(std::max(rank - 1, 0));
        if (!mayGrow(x))
            return x;
        ITensor* other = pickOfRank(scope, rank);
        for (int i = 0; i < rank; ++i) // where the others differ, this is refused: seldom
            other = i == axis || other->getDimensions().nbDims != rank || other->getDimensions().d[i] == d.d[i] ||
                            bytes_->upTo(31) == 1
                        ? other
                        : x;
        ITensor* const parts[] = {x, other};
        IConcatenationLayer* l = net_.addConcatenation(parts, 2);
        if (l)
            l->setAxis(axis);
        return out(l);
    }
    case 3: {
        ITensor* at = bytes_->flip()
                          ? integers({2}, {bytes_->upTo(2), bytes_->upTo(2)})
                          : cast(out(net_.addActivation(*pick(scope), ActivationType::kRELU)), DataType::kINT32);
        return out(net_.addGather(*x, *at, bytes_->upTo(std::max(rank - 1, 0))));
    }
    case 4: {
        ITensor* rows = integers({1, 1}, {bytes_->upTo(2)});
        ITensor* updates = rank == 2 ? out(net_.addSlice(*x, Dims2(0, 0), dims({1, d.d[1]}), Dims2(1, 1))) : x;
        return out(net_.addScatter(*x, *rows, *updates, ScatterMode::kND));
    }
    case 5:
        return out(net_.addShape(*x));
    case 6: {
        IFillLayer* l = net_.addFill(dims({0}), FillOperation::kLINSPACE);
        ITensor* const size = rank == 1 ? out(net_.addShape(*x)) : integers({1}, {bytes_->upTo(4)});
        if (l) {
            l->setAlpha(double(bytes_->upTo(3)));
            l->setBeta(1);
            l->setInput(0, *size);
        }
        return out(l);
    }
    default: {
        if (!mayGrow(x))
            return x;
        IResizeLayer* l = net_.addResize(*x);
        std::vector<float> const twice(size_t(std::max(rank, 0)), 2.0F);
        if (l)
            l->setScales(twice.data(), rank);
        return out(l);
    }
    }
}

ITensor* RandomNetwork::choosing(Scope const& scope, int kind)
{
    ITensor* x = pick(scope);
    int const rank = x->getDimensions().nbDims;
    switch (kind) {
    case 0: {
        ITensor* other = partnerOf(x, scope);
        return out(net_.addSelect(*binary(x, other, ElementWiseOperation::kLESS), *x, *other));
    }
    case 1: {
        int const axis = bytes_->upTo(std::max(rank - 1, 0));
        int const k = x->getDimensions().d[axis] > 1 ? 1 + bytes_->upTo(1) : 1;
        ITopKLayer* l = net_.addTopK(*x, bytes_->flip() ? TopKOperation::kMAX : TopKOperation::kMIN, k, 1U << axis);
        return out(l, bytes_->upTo(1));
    }
    case 2: // as many columns as there are numbers that are not 0
        return out(net_.addNonZero(*x));
    default: {
        ITensor* limit = cast(integers({}, {int32_t(kMost) + (bytes_->upTo(15) ? 1 : -40)}), DataType::kFLOAT);
        ITensor* holds = binary(total(x), limit, ElementWiseOperation::kLESS);
        isRefused_ = isRefused_ || !net_.addAssertion(*holds, "the sum is small");
        return x;
    }
    }
}

ITensor* RandomNetwork::weighted(Scope const& scope, int kind)
{
    std::string const name = "w" + std::to_string(constants_++);
    Weights const none{DataType::kFLOAT, nullptr, 0};
    ITensor* x = pickOfRank(scope, kind == 0 ? 4 : 3);
    Dims const d = x->getDimensions();
    if (kind == 0 && d.nbDims == 4 && d.d[1] > 0) {
        int const maps = 1 + bytes_->upTo(2), columns = 1 + bytes_->upTo(1);
        Weights const kernel = drawn(name, WeightsRole::kKERNEL, int64_t(maps) * d.d[1] * columns);
        Weights const bias = bytes_->flip() ? drawn(name, WeightsRole::kBIAS, maps) : none;
        IConvolutionLayer* l = net_.addConvolutionNd(*x, maps, Dims2(1, columns), kernel, bias);
        if (l)
            l->setName(name.c_str());
        return clip(out(l));
    }
    if (kind == 1 && d.nbDims == 3 && d.d[1] > 0 && d.d[2] > 0) {
        int const hidden = 1 + bytes_->upTo(2);
        IRNNv2Layer* l = net_.addRNNv2(*x, 1, hidden, d.d[1], RNNOperation::kRELU);
        for (bool isInput : {true, false}) {
            std::string const gate = name + (isInput ? "i" : "h");
            Weights const w = drawn(gate, WeightsRole::kKERNEL, hidden * (isInput ? d.d[2] : hidden));
            weights_.erase({gate, WeightsRole::kKERNEL}); // not by these names
            if (l)
                l->setWeightsForGate(0, RNNGateType::kINPUT, isInput, w);
        }
        return clip(out(l));
    }
    if (kind == 2 && plugin_) {
        ITensor* in = pick(scope);
        return clip(out(net_.addPluginV2(&in, 1, *plugin_)));
    }
    if (kind == 2) { // what the plugin does
        ITensor* in = pick(scope);
        std::vector<int32_t> const ones(size_t(std::max(in->getDimensions().nbDims, 0)), 1);
        ITensor* one = cast(integers(ones, {1}), DataType::kFLOAT);
        return clip(binary(binary(in, in, ElementWiseOperation::kSUM), one, ElementWiseOperation::kSUM));
    }
    return layer(scope, 8);
}

// ---- regions

void RandomNetwork::loop(Scope& scope, int depth)
{
    ILoop* loop = net_.addLoop();
    Scope inner = scope;
    std::vector<IIteratorLayer*> iterators;
    for (int n = bytes_->upTo(2); n > 0; --n) {
        ITensor* t = pick(scope);
        iterators.push_back(
            loop->addIterator(*t, bytes_->upTo(std::max(t->getDimensions().nbDims - 1, 0)), bytes_->upTo(3) == 1));
        add(inner, out(iterators.back()));
    }
    ITensor* count = nullptr;
    switch (bytes_->upTo(4)) {
    case 0:
        count = s_;
        break;
    case 1: // as the data say
        count =
            cast(binary(total(pick(scope)), cast(integers({}, {kRows}), DataType::kFLOAT), ElementWiseOperation::kMIN),
                 DataType::kINT32);
        break;
    case 2: { // as the first dimension of something
        ISliceLayer* l = net_.addSlice(*out(net_.addShape(*pick(scope))), dims({0}), dims({1}), dims({1}));
        IShuffleLayer* scalar = net_.addShuffle(*out(l));
        if (scalar)
            scalar->setReshapeDimensions(Dims{});
        count = binary(out(scalar), integers({}, {4}), ElementWiseOperation::kMIN);
        break;
    }
    default:
        count = integers({}, {bytes_->upTo(3)});
    }
    isRefused_ = isRefused_ || !loop->addTripLimit(*count, TripLimit::kCOUNT);
    std::vector<IRecurrenceLayer*> carried;
    for (int n = bytes_->upTo(3); n > 0; --n) {
        carried.push_back(loop->addRecurrence(*pick(scope)));
        add(inner, out(carried.back()));
    }
    if (bytes_->upTo(3) == 0 && !carried.empty()) {
        ITensor* sum = total(out(carried.back()));
        ITensor* goOn = binary(sum, cast(integers({}, {20}), DataType::kFLOAT), ElementWiseOperation::kLESS);
        isRefused_ = isRefused_ || !loop->addTripLimit(*goOn, TripLimit::kWHILE);
    }
    Scope const results = block(inner, 2, depth + 1);
    for (IRecurrenceLayer* r : carried) {
        ITensor* now = out(r);
        ITensor* next = pick(results);
        if (!isEqual(now->getDimensions(), next->getDimensions()) && bytes_->upTo(63))
            next = clip(binary(now, now, ElementWiseOperation::kSUM));
        r->setInput(1, *next);
        if (bytes_->upTo(3))
            add(scope, out(loop->addLoopOutput(*now, LoopOutput::kLAST_VALUE)));
    }
    for (int n = bytes_->upTo(2); n > 0 && !isRefused_; --n) {
        ITensor* t = pick(results);
        ILoopOutputLayer* l = loop->addLoopOutput(*t, bytes_->flip() ? LoopOutput::kCONCATENATE : LoopOutput::kREVERSE,
                                                  bytes_->upTo(std::max(t->getDimensions().nbDims, 0)));
        if (l && bytes_->flip())
            l->setInput(1, bytes_->flip() ? *count : *integers({}, {4}));
        add(scope, out(l));
    }
}

void RandomNetwork::conditional(Scope& scope, int depth)
{
    IIfConditional* c = net_.addIfConditional();
    ITensor* limit = cast(integers({}, {bytes_->upTo(6) - 3}), DataType::kFLOAT);
    isRefused_ = isRefused_ || !c->setCondition(*binary(total(pick(scope)), limit, ElementWiseOperation::kLESS));
    Scope results[2];
    for (Scope& branch : results) {
        Scope inner;
        for (size_t i = scope.size() - std::min<size_t>(scope.size(), 4); i < scope.size(); ++i)
            inner.push_back(bytes_->upTo(3) ? out(c->addInput(*scope[i])) : scope[i]);
        if (isRefused_)
            return;
        branch = block(inner, 2, depth + 1);
    }
    Scope made;
    for (size_t i = 0; i < 2; ++i) {
        ITensor *then = results[0][i], *otherwise = results[1][i];
        if (!isEqual(then->getDimensions(), otherwise->getDimensions()) && bytes_->upTo(63))
            then = otherwise = pick(scope);
        add(made, out(c->addOutput(*then, *otherwise)));
    }
    scope.insert(scope.end(), made.begin(), made.end());
}

void RandomNetwork::statement(Scope& scope, int depth)
{
    int const kind = bytes_->upTo(31);
    if (depth < 3 && kind >= 26)
        return kind >= 29 ? loop(scope, depth) : conditional(scope, depth);
    ITensor* t = kind < 9    ? layer(scope, kind)
                 : kind < 17 ? movement(scope, kind - 9)
                 : kind < 21 ? choosing(scope, kind - 17)
                 : kind < 24 ? weighted(scope, kind - 21)
                 : kind < 26 ? quantized(scope, bytes_->upTo(2))
                             : layer(scope, 0);
    add(scope, t);
}

RandomNetwork::Scope RandomNetwork::block(Scope scope, int results, int depth)
{
    for (int n = 1 + bytes_->upTo(3); n > 0 && budget_ > 0 && !isRefused_; --n, --budget_)
        statement(scope, depth);
    Scope out;
    for (int i = 0; i < results; ++i)
        out.push_back(pick(scope));
    return out;
}

bool RandomNetwork::make(Bytes& bytes)
{
    bytes_ = &bytes;
    isDynamic_ = bytes.flip();
    ITensor* x = net_.addInput("x", DataType::kFLOAT, Dims2(isDynamic_ ? -1 : kRows, 2));
    s_ = net_.addInput("s", DataType::kINT32, Dims{});
    Scope scope{x, out(net_.addIdentity(*x))};
    while (!bytes.isEmpty() && budget_ > 0 && !isRefused_) {
        statement(scope, 0);
        --budget_;
    }
    if (isRefused_)
        return false;
    for (int i = 0; i < 3; ++i) {
        ITensor* y = clip(scope[scope.size() - 1 - size_t(i) % scope.size()]);
        y->setName(("y" + std::to_string(i)).c_str());
        net_.markOutput(*y);
    }
    net_.markOutput(*out(net_.addIdentity(*s_)));
    return !isRefused_;
}

} // namespace tw::fuzz
