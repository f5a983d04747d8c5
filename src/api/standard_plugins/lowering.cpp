// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "api/network/network.h"
#include "api/standard_plugins/standard_plugin.h"
#include "ops/concatenation/op.h"
#include "ops/cumulative_sum/op.h"
#include "ops/gather/op.h"
#include "ops/identity/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/select/op.h"
#include "ops/shape/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "ops/softmax/op.h"

namespace tw::api {

using Value = ir::Value;

namespace {

template <class T>
T orThrow(Result<T> r)
{
    if (!r.ok())
        throw PluginLowering::Failed{r.error()};
    return std::move(r).value();
}

} // namespace

ir::Node* PluginLowering::added(ir::OpDef const& op, std::unique_ptr<ir::AttrsBase> attrs, Values in,
                                std::string const& part)
{
    return orThrow(add_(op, std::move(attrs), std::move(in), part));
}

Value* PluginLowering::in(size_t i, int rank) const
{
    check(i < inputs.size(), fmt::format("there are {} inputs; input {} is missing", inputs.size(), i));
    check(rank < 0 || inputs[i]->rank() == rank,
          fmt::format("input {} ('{}') has the shape {}; it needs {} dimensions with the batch", i, inputs[i]->name,
                      str(inputs[i]->shape), rank));
    return inputs[i];
}

int64_t PluginLowering::known(Value const* v, int dimension) const
{
    check(dimension >= 0 && dimension < v->rank(),
          fmt::format("'{}' {} has no dimension {}", v->name, str(v->shape), dimension));
    ir::Dim const& d = v->shape[size_t(dimension)];
    check(d.isConst(), fmt::format("dimension {} of '{}' {} must be known when the engine is built", dimension, v->name,
                                   str(v->shape)));
    return d.value();
}

void PluginLowering::checkNumbers(std::initializer_list<int64_t> sizes) const
{
    int64_t count = 1;
    for (int64_t size : sizes) {
        check(size <= 0 || count <= kMostNumbers / size,
              fmt::format("fields and sizes ask for more than {} numbers that it brings along", kMostNumbers));
        count *= std::max<int64_t>(size, 1);
    }
}

Value* PluginLowering::constant(std::vector<double> const& values, Extents const& dims, DataType type)
{
    Tensor t(type, dims);
    for (size_t i = 0; i < values.size(); ++i)
        t.ref().set(int64_t(i), values[i]);
    return graph_.addConstant(layer_ + " [constant]", type, dims, t.data());
}

Value* PluginLowering::scalar(double value, Value const* like)
{
    Extents ones;
    for (int i = 0; i < like->rank(); ++i)
        ones.push(1);
    return constant({value}, ones, like->type);
}

Value* PluginLowering::weights(nvinfer1::Weights const& w, Extents const& dims, DataType type, ir::WeightsRole role)
{
    int64_t const count = std::accumulate(dims.begin(), dims.end(), int64_t(1), std::multiplies<>());
    check(w.count == count,
          fmt::format("weights have {} elements; {} are needed (shape {})", w.count, count, dims.str()));
    auto c = std::make_shared<ir::Constant>();
    Tensor t(type, dims);
    copyElements(TensorRef{toCore(w.type), dims, const_cast<void*>(w.values)}, t.ref());
    c->data = Blob::copy(t.data(), size_t(count * sizeOf(type)));
    c->layer = layer_;
    c->role = role;
    return graph_.addConstant(layer_ + " [weights]", type, dims, std::move(c));
}

Value* PluginLowering::binary(Binary op, Value* a, Value* b)
{
    auto const widened = [&](Value* v, int rank) {
        if (v->rank() == rank)
            return v;
        std::vector<int64_t> dims(size_t(rank - v->rank()), 1);
        for (ir::Dim const& d : v->shape)
            dims.push_back(d.isConst() ? d.value() : -1);
        return reshape(v, dims);
    };
    int const rank = std::max(a->rank(), b->rank());
    return value(ops::elementwise::def(), ops::elementwise::Attrs(op), {widened(a, rank), widened(b, rank)});
}

Value* PluginLowering::unary(Unary op, Value* x)
{
    return value(ops::unary::def(), ops::unary::Attrs(op), {x});
}

Value* PluginLowering::activation(Function kind, Value* x, float alpha, float beta)
{
    return value(ops::activation::def(), ops::activation::Attrs(kind, alpha, beta), {x});
}

Value* PluginLowering::cast(Value* x, DataType type)
{
    return x->type == type ? x : value(ops::identity::def(), ops::identity::Attrs(type), {x});
}

Value* PluginLowering::reduce(Join kind, Value* x, std::vector<int> const& axes, bool keepDims)
{
    ops::reduce::Attrs a;
    a.kind = kind;
    for (int axis : axes)
        a.axes |= int64_t(1) << axis;
    a.keepDims = keepDims;
    return value(ops::reduce::def(), a, {x});
}

Value* PluginLowering::softmax(Value* x, int axis)
{
    ops::softmax::Attrs a;
    a.axis = axis;
    return value(ops::softmax::def(), a, {x});
}

Value* PluginLowering::select(Value* condition, Value* a, Value* b)
{
    return added(ops::select::def(), std::make_unique<ir::NoAttrs>(), {condition, a, b}, "")->outputs[0];
}

Value* PluginLowering::matmul(Value* a, Value* b, bool transposeA, bool transposeB)
{
    using enum ops::matrix_multiply::MatrixOperation;
    return value(ops::matrix_multiply::def(),
                 ops::matrix_multiply::Attrs(transposeA ? kTranspose : kNone, transposeB ? kTranspose : kNone), {a, b});
}

Value* PluginLowering::gather(Value* data, Value* indices, int axis)
{
    ops::gather::Attrs a;
    a.axis = axis;
    return value(ops::gather::def(), a, {data, indices});
}

Value* PluginLowering::reshape(Value* x, std::vector<int64_t> const& dims)
{
    ops::shuffle::Attrs a;
    a.hasReshape = true;
    a.reshape = dims;
    return value(ops::shuffle::def(), std::move(a), {x});
}

Value* PluginLowering::transpose(Value* x, std::vector<int64_t> const& order)
{
    ops::shuffle::Attrs a;
    a.firstTranspose = order;
    return value(ops::shuffle::def(), std::move(a), {x});
}

Value* PluginLowering::concat(Values const& parts, int axis)
{
    return parts.size() == 1 ? parts[0] : value(ops::concatenation::def(), ops::concatenation::Attrs(axis), parts);
}

Value* PluginLowering::part(Value* x, int axis, int64_t begin, int64_t end)
{
    check(axis < x->rank() && begin <= end,
          fmt::format("'{}' {} has no part {} to {} of dimension {}", x->name, str(x->shape), begin, end, axis));
    if (isStatic(x->shape))
        return value(ops::slice::def(), ops::slice::partOf(x->shape, axis, begin, end - begin), {x});
    checkNumbers({end - begin});
    std::vector<double> rows(size_t(end - begin));
    std::iota(rows.begin(), rows.end(), double(begin));
    return gather(x, constant(rows, {end - begin}, DataType::kInt32), axis);
}

Value* PluginLowering::normalized(Value* x, std::vector<int> const& axes, double epsilon)
{
    Value* const centred = sub(x, reduce(Join::kAvg, x, axes));
    Value* const variance = reduce(Join::kAvg, mul(centred, centred), axes);
    return div(centred, unary(Unary::kSqrt, sum(variance, scalar(epsilon, x))));
}

Value* PluginLowering::along(Value* numbers, int axis, int rank)
{
    std::vector<int64_t> dims(size_t(rank), 1);
    dims[size_t(axis)] = -1;
    return reshape(numbers, dims);
}

Value* PluginLowering::shapeOf(Value* x, int begin, int end)
{
    Value* const all = added(ops::shape::def(), std::make_unique<ir::NoAttrs>(), {x}, "shape")->outputs[0];
    return part(all, 0, begin, end);
}

Value* PluginLowering::reshapeLike(Value* x, Value* like)
{
    if (isStatic(like->shape)) {
        std::vector<int64_t> dims;
        for (ir::Dim const& d : like->shape)
            dims.push_back(d.value());
        return reshape(x, dims);
    }
    ops::shuffle::Attrs a;
    a.hasReshape = true;
    a.zeroIsPlaceholder = false;
    return value(ops::shuffle::def(), std::move(a), {x, shapeOf(like, 0, like->rank())});
}

Value* PluginLowering::spread(Value* x, int64_t step, Value* like, std::vector<int64_t> const& rest)
{
    ops::slice::Attrs a;
    a.start.assign(rest.size() + 1, 0);
    a.stride.assign(rest.size() + 1, step);
    a.stride[0] = 0;
    if (like->shape[0].isConst()) {
        a.size = rest;
        a.size.insert(a.size.begin(), like->shape[0].value());
        return value(ops::slice::def(), std::move(a), {x});
    }
    Value* const dims =
        constant(std::vector<double>(rest.begin(), rest.end()), {int64_t(rest.size())}, DataType::kInt32);
    return value(ops::slice::def(), std::move(a), {x, nullptr, concat({shapeOf(like, 0, 1), dims}, 0)});
}

Value* PluginLowering::repeated(Value* x, Value* like)
{
    if (like->shape[0].is(1))
        return x;
    std::vector<int64_t> rest;
    for (int d = 1; d < x->rank(); ++d)
        rest.push_back(known(x, d));
    return spread(x, 1, like, rest);
}

Value* PluginLowering::zeros(Value* like, std::vector<int64_t> const& dims)
{
    Extents ones{1};
    for (size_t d = 0; d < dims.size(); ++d)
        ones.push(1);
    return spread(constant({0}, ones, like->type), 0, like, dims);
}

Value* PluginLowering::positions(Value* x, int axis)
{
    // 1 everywhere, whatever x is: it equals itself or it does not.
    Value* const integers = cast(x, DataType::kInt32);
    Value* const ones = sum(mul(integers, scalar(0, integers)), scalar(1, integers));
    return runningSum(ones, axis, true);
}

Value* PluginLowering::runningSum(Value* x, int axis, bool exclusive)
{
    ops::cumulative_sum::Attrs a;
    a.axis = axis;
    a.exclusive = exclusive;
    return value(ops::cumulative_sum::def(), a, {x});
}

namespace {

struct Letter
{
    char type;
    char suffix; // '*', '?' or 0
};
std::vector<Letter> lettersOf(std::string_view text)
{
    std::vector<Letter> letters;
    for (char c : text)
        if (c == '*' || c == '?')
            letters.back().suffix = c;
        else
            letters.push_back({c, 0});
    return letters;
}

std::optional<char> letterAt(std::vector<Letter> const& letters, size_t i)
{
    if (i < letters.size())
        return letters[i].type;
    if (!letters.empty() && letters.back().suffix == '*')
        return letters.back().type;
    return std::nullopt;
}

std::pair<std::vector<Letter>, std::vector<Letter>> sidesOf(char const* text)
{
    std::string_view const all(text);
    size_t const arrow = all.find('>');
    return {lettersOf(all.substr(0, arrow)), lettersOf(all.substr(arrow + 1))};
}

} // namespace

std::optional<char> TypeRule::input(size_t i, size_t inputs) const
{
    return i < inputs ? letterAt(sidesOf(text).first, i) : std::nullopt;
}

std::optional<char> TypeRule::output(size_t i) const
{
    return letterAt(sidesOf(text).second, i);
}

size_t TypeRule::leastInputs() const
{
    auto const letters = sidesOf(text).first;
    return size_t(std::count_if(letters.begin(), letters.end(), [](Letter const& l) { return l.suffix == 0; }));
}

bool TypeRule::takes(size_t inputs) const
{
    auto const letters = sidesOf(text).first;
    bool const isOpen = !letters.empty() && letters.back().suffix == '*';
    return inputs >= leastInputs() && (isOpen || inputs <= letters.size());
}

std::optional<char> StandardPlugin::output(PluginFields const& f, size_t i) const
{
    return outputLetter ? outputLetter(f, i) : types.output(i);
}

int StandardPlugin::outputCount(PluginFields const& f) const
{
    return outputs ? outputs(f) : int(sidesOf(types.text).second.size());
}

Result<std::vector<Value*>> StandardPlugin::lowered(ir::Graph& graph, PluginFields const& fields,
                                                    std::vector<Value*> inputs, std::string const& layer,
                                                    PluginLowering::Add const& add) const
{
    PluginLowering p(graph, fields, std::move(inputs), layer, add);
    try {
        p.check(types.takes(p.inputs.size()), fmt::format("{} inputs are not possible", p.inputs.size()));
        std::optional<DataType> floating;
        for (size_t i = 0; i < p.inputs.size(); ++i) {
            char const letter = *types.input(i, p.inputs.size());
            Value*& x = p.inputs[i];
            bool const fits = letter == 'i'   ? x->type == DataType::kInt32
                              : letter == 'A' ? (isFloating(x->type) || x->type == DataType::kInt32) &&
                                                    isFloating(floating.value_or(x->type)) == isFloating(x->type)
                              : letter == '.' ? true
                                              : isFloating(x->type);
            p.check(fits, fmt::format("input {} ('{}') is of {}", i, x->name, nameOf(x->type)));
            // Floats of other widths than the plugin's are converted, as between layers.
            if (letter == 'f' && !isFullFloat(x->type))
                x = p.cast(x, DataType::kFloat);
            if (letter == 'h' && !isNarrowFloat(x->type))
                x = p.cast(x, DataType::kHalf);
            if (letter == 'T' || letter == 'A') {
                floating = floating.value_or(x->type);
                x = p.cast(x, *floating);
            }
        }
        lower(p);
    } catch (PluginLowering::Failed const& e) {
        return e.error;
    }
    if (int(p.outputs.size()) != outputCount(fields))
        return internalError("{} made {} outputs", describe(), p.outputs.size());
    return p.outputs;
}

Result<std::vector<ir::Shape>> StandardPlugin::shapes(PluginFields const& fields, std::vector<DataType> const& types,
                                                      std::vector<ir::Shape> const& inputs) const
{
    ir::Graph graph;
    std::vector<Value*> values;
    for (size_t i = 0; i < inputs.size(); ++i)
        values.push_back(graph.addInput(fmt::format("input {}", i), types[i], inputs[i]));
    TW_ASSIGN(auto const outputs,
              lowered(graph, fields, values, name,
                      [&](ir::OpDef const& op, std::unique_ptr<ir::AttrsBase> attrs, std::vector<Value*> in,
                          std::string const&) { return graph.addNode(op, std::move(attrs), std::move(in), name); }));
    std::vector<ir::Shape> shapes;
    for (Value const* v : outputs)
        shapes.push_back(v->shape);
    return shapes;
}

} // namespace tw::api
