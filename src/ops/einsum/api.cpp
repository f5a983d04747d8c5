// SPDX-License-Identifier: Apache-2.0
// Einsum becomes sums, transposes and one matrix product (or an element-wise one, where nothing is summed over).
#include <algorithm>

#include "api/network/setter.h"
#include "ops/concatenation/op.h"
#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/reduce/op.h"
#include "ops/shape/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"

using namespace tw;
using namespace tw::api;

namespace {

constexpr char kBatchLabel = '#'; // of the batch dimension that implicit batch networks leave out

bool has(std::string const& labels, char c)
{
    return labels.find(c) != std::string::npos;
}

template <class Wanted>
std::string those(std::string const& labels, Wanted wanted)
{
    std::string out;
    std::copy_if(labels.begin(), labels.end(), std::back_inserter(out), wanted);
    return out;
}

std::string repeated(std::string const& term)
{
    return those(term, [&](char c) { return std::count(term.begin(), term.end(), c) > 1; }).substr(0, 1);
}

struct Equation
{
    std::vector<std::string> inputs;
    std::string output;
};

// What stands there once, in alphabetical order.
std::string impliedOutput(std::string const& all)
{
    std::string output = those(all, [&](char c) { return std::count(all.begin(), all.end(), c) == 1; });
    std::sort(output.begin(), output.end());
    return output;
}

Result<void> checkTerms(Equation const& e, std::string const& what)
{
    std::string all;
    for (std::string const& term : e.inputs) {
        all += term;
        if (std::string const twice = repeated(term); !twice.empty())
            return invalidArgument(what + ": '" + twice + "' stands twice in '" + term +
                                   "'; diagonals are not supported");
    }
    for (char c : all + e.output)
        if (c < 'a' || c > 'z')
            return invalidArgument(what + ": '" + std::string(1, c) +
                                   "' is not possible (allowed: lower-case letters, commas, spaces, one ->)");
    if (std::string const twice = repeated(e.output); !twice.empty())
        return invalidArgument(what + ": '" + twice + "' stands twice in the result");
    for (char c : e.output)
        if (!has(all, c))
            return invalidArgument(what + ": no input has '" + std::string(1, c) + "' of the result");
    return {};
}

Result<Equation> parse(char const* text, size_t operands)
{
    if (!text)
        return invalidArgument("einsum: the equation is a null pointer");
    std::string const given = text, e = those(given, [](char c) { return c != ' '; });
    std::string const what = "einsum equation '" + given.substr(0, 200) + "'";
    if (has(e, '.'))
        return invalidArgument(what + ": ellipses are not supported; write a letter for each dimension");
    size_t const arrow = e.find("->");
    std::string const left = e.substr(0, arrow);
    Equation out;
    for (size_t begin = 0; begin <= left.size();) {
        size_t const end = std::min(left.find(',', begin), left.size());
        out.inputs.push_back(left.substr(begin, end - begin));
        begin = end + 1;
    }
    out.output =
        arrow != std::string::npos ? e.substr(arrow + 2) : impliedOutput(those(left, [](char c) { return c != ','; }));
    if (out.inputs.size() != operands)
        return invalidArgument("{} has {} terms, the layer has {} inputs", what, out.inputs.size(), operands);
    TW_TRY(checkTerms(out, what));
    return out;
}

struct Term
{
    ir::Value* x = nullptr;
    std::string labels; // one for each dimension
};

// One dimension of a reshape: the product of dimensions of values.
struct Factor
{
    ir::Value* of;
    size_t axis;
    ir::Dim const& dim() const { return of->shape[axis]; }
};
using Product = std::vector<Factor>;

class Maker
{
public:
    explicit Maker(LowerContext& ctx) : ctx_(ctx) {}

    // Sums over what nobody wants.
    Result<Term> summed(Term const& t, std::string const& wanted)
    {
        ops::reduce::Attrs a;
        for (size_t d = 0; d < t.labels.size(); ++d)
            if (!has(wanted, t.labels[d]))
                a.axes |= int64_t(1) << d;
        if (a.axes == 0)
            return t;
        TW_ASSIGN(ir::Value * y, ctx_.value(ops::reduce::def(), std::move(a), {t.x}, "sum"));
        return Term{y, those(t.labels, [&](char c) { return has(wanted, c); })};
    }

    Result<Term> transposed(Term const& t, std::string const& order)
    {
        if (t.labels == order)
            return t;
        ops::shuffle::Attrs a;
        for (char c : order)
            a.firstTranspose.push_back(int64_t(t.labels.find(c)));
        TW_ASSIGN(ir::Value * y, ctx_.value(ops::shuffle::def(), std::move(a), {t.x}, "transpose"));
        return Term{y, order};
    }

    Result<Term> product(Term a, Term b, std::string const& output)
    {
        TW_ASSIGN(a, summed(a, output + b.labels));
        TW_ASSIGN(b, summed(b, output + a.labels));
        // The operand whose own dimension comes first gives rows.
        auto const own =
            std::find_if(output.begin(), output.end(), [&](char c) { return has(a.labels, c) != has(b.labels, c); });
        if (own != output.end() && has(b.labels, *own))
            std::swap(a, b);
        auto isBoth = [&](char c) { return has(a.labels, c) && has(b.labels, c); };
        std::string const batch = those(output, isBoth);
        std::string const inner = those(a.labels, [&](char c) { return isBoth(c) && !has(output, c); });
        std::string const rows = those(a.labels, [&](char c) { return !isBoth(c); });
        std::string const columns = those(b.labels, [&](char c) { return !isBoth(c); });
        std::string const result = batch + rows + columns;
        if (result.size() > size_t(kMaxRank))
            return ctx_.error("the result '" + result + "' has more than 8 dimensions");
        TW_ASSIGN(a, transposed(a, batch + rows + inner));
        TW_ASSIGN(b, transposed(b, batch + inner + columns));
        TW_ASSIGN(ir::Value * y, inner.empty() ? elementProduct(a, b, batch, rows, columns)
                                               : matrixProduct(a, b, batch, rows, columns));
        return Term{y, result};
    }

    Result<ir::Value*> copied(ir::Value* x)
    {
        return ctx_.value(ops::identity::def(), ops::identity::Attrs(x->type), {x}, "copy");
    }

private:
    // Dimensions `begin` to `end` of x, each for itself, or all of them as one.
    static std::vector<Product> each(ir::Value* x, size_t begin, size_t end)
    {
        std::vector<Product> out;
        for (size_t d = begin; d < end; ++d)
            out.push_back({{x, d}});
        return out;
    }
    static Product joined(ir::Value* x, size_t begin, size_t end)
    {
        Product out;
        for (size_t d = begin; d < end; ++d)
            out.push_back({x, d});
        return out;
    }
    static std::vector<Product> all(std::vector<std::vector<Product>> const& parts)
    {
        std::vector<Product> out;
        for (auto const& part : parts)
            out.insert(out.end(), part.begin(), part.end());
        return out;
    }

    Result<ir::Value*> elementProduct(Term const& a, Term const& b, std::string const& batch, std::string const& rows,
                                      std::string const& columns)
    {
        size_t const n = batch.size();
        TW_ASSIGN(ir::Value * left,
                  reshaped(a.x, all({each(a.x, 0, n + rows.size()), std::vector<Product>(columns.size())})));
        TW_ASSIGN(ir::Value * right, reshaped(b.x, all({each(b.x, 0, n), std::vector<Product>(rows.size()),
                                                        each(b.x, n, n + columns.size())})));
        ops::elementwise::Attrs const prod(ops::elementwise::Operation::kProd);
        return ctx_.value(ops::elementwise::def(), prod, {left, right}, "product");
    }

    Result<ir::Value*> matrixProduct(Term const& a, Term const& b, std::string const& batch, std::string const& rows,
                                     std::string const& columns)
    {
        size_t const n = batch.size(), endA = a.labels.size(), endB = b.labels.size();
        size_t const endRows = n + rows.size(), inner = endB - n - columns.size();
        // Without a batch the rows keep their dimensions, so that a product with weights stays one.
        bool const isApart = batch.empty() && rows.size() > 1;
        std::vector<Product> const lines =
            isApart ? each(a.x, n, endRows) : std::vector<Product>{joined(a.x, n, endRows)};
        std::vector<Product> const before = isApart ? std::vector<Product>(rows.size() - 1) : each(b.x, 0, n);
        TW_ASSIGN(ir::Value * left, reshaped(a.x, all({each(a.x, 0, n), lines, {joined(a.x, endRows, endA)}})));
        TW_ASSIGN(ir::Value * right,
                  reshaped(b.x, all({before, {joined(b.x, n, n + inner), joined(b.x, n + inner, endB)}})));
        ops::matrix_multiply::Attrs const none;
        TW_ASSIGN(ir::Value * y, ctx_.value(ops::matrix_multiply::def(), none, {left, right}, ""));
        return reshaped(y, all({each(a.x, 0, endRows), each(b.x, n + inner, endB)}));
    }

    // x with these dimensions; x itself where it has as many and they are its own.
    Result<ir::Value*> reshaped(ir::Value* x, std::vector<Product> const& dims)
    {
        ir::Shape shape;
        for (Product const& p : dims) {
            shape.emplace_back(1);
            for (Factor const& f : p)
                shape.back() = shape.back() * f.dim();
        }
        if (x->shape == shape)
            return x;
        ops::shuffle::Attrs a;
        a.hasReshape = true;
        a.zeroIsPlaceholder = false;
        std::vector<ir::Value*> in{x};
        if (ir::isStatic(shape)) {
            for (ir::Dim const& d : shape)
                a.reshape.push_back(d.value());
        } else {
            in.push_back(nullptr);
            TW_ASSIGN(in.back(), numbers(dims));
        }
        return ctx_.value(ops::shuffle::def(), std::move(a), std::move(in), "reshape");
    }

    // The dimensions as a shape tensor.
    Result<ir::Value*> numbers(std::vector<Product> const& dims)
    {
        std::vector<ir::Value*> parts;
        for (Product const& p : dims) {
            ir::Value* size = nullptr;
            for (Factor const& f : p) {
                TW_ASSIGN(ir::Value * next, sizeOf(f));
                if (size) {
                    ops::elementwise::Attrs const prod(ops::elementwise::Operation::kProd);
                    TW_ASSIGN(next, ctx_.value(ops::elementwise::def(), prod, {size, next}, "size"));
                }
                size = next;
            }
            parts.push_back(size ? size : number(1));
        }
        return ctx_.value(ops::concatenation::def(), ops::concatenation::Attrs(), std::move(parts), "dimensions");
    }
    Result<ir::Value*> sizeOf(Factor const& f)
    {
        if (f.dim().isConst())
            return number(int32_t(f.dim().value()));
        TW_ASSIGN(ir::Value * shape, ctx_.value(ops::shape::def(), ir::NoAttrs(), {f.of}, "shape"));
        ops::slice::Attrs a;
        a.start = {int64_t(f.axis)};
        a.size = a.stride = {1};
        return ctx_.value(ops::slice::def(), std::move(a), {shape}, "size");
    }
    ir::Value* number(int32_t v) { return ctx_.graph().addConstant("size", DataType::kInt32, {1}, &v); }

    LowerContext& ctx_;
};

struct EinsumLayer final : LayerObject<nvinfer1::IEinsumLayer>
{
    std::string text;
    Equation equation;

    Result<void> set(char const* given, size_t operands)
    {
        TW_ASSIGN(equation, parse(given, operands));
        text = given;
        return {};
    }

    Result<void> lower(LowerContext& ctx) override
    {
        std::vector<ir::Value*> in;
        for (size_t i = 0; i < inputs.size(); ++i)
            in.push_back(ctx.in(int(i)));
        TW_TRY(ctx.shareBatch(in));
        TW_TRY(shareType(ctx, in));
        std::string const batch(size_t(ctx.axisShift()), kBatchLabel), output = batch + equation.output;
        std::vector<Term> terms;
        for (size_t i = 0; i < in.size(); ++i)
            terms.push_back({in[i], batch + equation.inputs[i]});
        TW_TRY(checkDims(terms, ctx.axisShift()));
        Maker maker(ctx);
        Term sum = terms[0];
        if (terms.size() > 1) {
            TW_ASSIGN(sum, maker.product(terms[0], terms[1], output));
        }
        TW_ASSIGN(sum, maker.summed(sum, output));
        TW_ASSIGN(sum, maker.transposed(sum, output));
        if (sum.x == in[0]) {
            TW_ASSIGN(sum.x, maker.copied(sum.x));
        }
        ctx.output(0, sum.x);
        return {};
    }

private:
    // f32 where the types differ.
    Result<void> shareType(LowerContext& ctx, std::vector<ir::Value*>& in) const
    {
        for (size_t i = 0; i < in.size(); ++i)
            if (!isFloating(in[i]->type))
                return error("input '" + inputs[i]->name + "' is " + nameOf(in[i]->type) + " (allowed: f32, f16)");
        for (ir::Value*& v : in)
            if (v->type != in[0]->type || v->type != in.back()->type) {
                TW_ASSIGN(v, ctx.value(ops::identity::def(), ops::identity::Attrs(DataType::kFloat), {v}, "float"));
            }
        return {};
    }

    Result<void> checkDims(std::vector<Term> const& terms, int skipped) const
    {
        std::map<char, ir::Dim> sizes;
        for (size_t i = 0; i < terms.size(); ++i) {
            Term const& t = terms[i];
            if (t.x->shape.size() != t.labels.size())
                return error("'" + equation.inputs[i] + "' does not fit input '" + inputs[i]->name + "' with shape " +
                             str(toPublic(t.x->shape, skipped)) + ": a letter stands for each dimension");
            for (size_t d = 0; d < t.labels.size(); ++d) {
                auto const [known, isNew] = sizes.try_emplace(t.labels[d], t.x->shape[d]);
                if (!isNew && known->second.isConst() && t.x->shape[d].isConst() && known->second != t.x->shape[d])
                    return error("'" + std::string(1, t.labels[d]) + "' is " + known->second.str() + " and " +
                                 t.x->shape[d].str());
            }
        }
        return {};
    }
};

TW_OBJECT(nvinfer1::IEinsumLayer, EinsumLayer)

} // namespace

namespace nvinfer1 {

IEinsumLayer* INetworkDefinition::addEinsum(ITensor* const* inputs, int32_t nbInputs, char const* equation) noexcept
{
    NetworkObject& network = objectOf(*this);
    if (!inputs || nbInputs < 1 || nbInputs > 2) {
        network.reporter.error(invalidArgument("einsum takes one or two inputs, {}{}", nbInputs,
                                               inputs ? " were given" : " in a null pointer were given"));
        return nullptr;
    }
    return addLayer<EinsumLayer>(*this, LayerType::kEINSUM, "Einsum", std::vector<ITensor*>(inputs, inputs + nbInputs),
                                 [&](EinsumLayer& l) { return l.set(equation, size_t(nbInputs)); });
}

bool IEinsumLayer::setEquation(char const* equation) noexcept
{
    return change(objectOf(*this), [&](EinsumLayer& l) { return l.set(equation, l.inputs.size()); });
}
TW_GETTER(IEinsumLayer, char const*, getEquation, self.text.c_str())

} // namespace nvinfer1
