// SPDX-License-Identifier: Apache-2.0
// Einsum as sums, transposes and matrix products, two operands at a time from the left. Not: a label twice in one
// operand (diagonals), ellipses, dimensions of 1 that stand for others.
#include <algorithm>
#include <cctype>

#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using nvinfer1::ReduceOperation;

struct Term
{
    ITensor* x = nullptr;
    std::string labels; // one letter for each dimension
};

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

class Equation
{
public:
    explicit Equation(ImportContext& ctx) : ctx_(ctx)
    {
        std::string const text = ctx.attrString("equation", "");
        std::string const e = those(text, [](char c) { return c != ' '; });
        what_ = "equation '" + text.substr(0, 200) + "'";
        if (e.size() > size_t(Dims::MAX_DIMS + 1) * size_t(ctx.nbInputs() + 1) + 1)
            ctx.invalid(what_ + " has more letters than " + std::to_string(ctx.nbInputs()) + " operands of rank 8");
        size_t const arrow = e.find("->");
        std::string const left = e.substr(0, arrow);
        for (size_t begin = 0; begin <= left.size();) {
            size_t const end = std::min(left.find(',', begin), left.size());
            inputs.push_back(left.substr(begin, end - begin));
            begin = end + 1;
        }
        std::string all;
        for (std::string const& term : inputs)
            all += term;
        if (arrow != std::string::npos)
            output = e.substr(arrow + 2);
        else // what stands there once, in alphabetical order
            output = those(all, [&](char c) { return std::count(all.begin(), all.end(), c) == 1; });
        if (arrow == std::string::npos)
            std::sort(output.begin(), output.end());
        if (has(e, '.'))
            ctx.fail(what_ + ": ellipses are not supported; write a letter for each dimension");
        for (char c : all + output)
            if (!std::isalpha(static_cast<unsigned char>(c)))
                ctx.invalid(what_ + ": '" + std::string(1, c) + "' is no letter");
        if (int(inputs.size()) != ctx.nbInputs())
            ctx.invalid(what_ + " has " + std::to_string(inputs.size()) + " terms, the node has " +
                        std::to_string(ctx.nbInputs()) + " inputs");
        for (std::string const& term : inputs)
            if (std::string const twice = repeated(term); !twice.empty())
                ctx.fail(what_ + ": '" + twice + "' stands twice in '" + term + "'; diagonals are not supported");
        if (!repeated(output).empty())
            ctx.invalid(what_ + ": '" + repeated(output) + "' stands twice in the result");
        for (char c : output)
            if (!has(all, c))
                ctx.invalid(what_ + ": no operand has '" + std::string(1, c) + "' of the result");
        if (output.size() > size_t(Dims::MAX_DIMS))
            ctx.fail(what_ + ": the result has rank " + std::to_string(output.size()) + " (allowed: 0..8)");
    }

    Term operand(int i)
    {
        Term t{&ctx_.tensor(i), inputs[size_t(i)]};
        Dims const dims = t.x->getDimensions();
        if (size_t(dims.nbDims) != t.labels.size())
            ctx_.invalid(what_ + ": '" + t.labels + "' is the " + std::to_string(i) + ". operand, whose shape is " +
                         describe(dims));
        for (int d = 0; d < dims.nbDims; ++d) {
            char const c = t.labels[size_t(d)];
            auto const [at, isNew] = known_.try_emplace(c, dims.d[d]);
            if (!isNew && dims.d[d] >= 0 && at->second >= 0 && at->second != dims.d[d])
                ctx_.fail(what_ + ": '" + std::string(1, c) + "' is " + std::to_string(at->second) + " and " +
                          std::to_string(dims.d[d]));
            at->second = std::max(at->second, dims.d[d]);
        }
        return t;
    }

    std::vector<std::string> inputs;
    std::string output;

private:
    static std::string repeated(std::string const& term)
    {
        return those(term, [&](char c) { return std::count(term.begin(), term.end(), c) > 1; }).substr(0, 1);
    }
    ImportContext& ctx_;
    std::string what_;
    std::map<char, int32_t> known_;
};

class Maker
{
public:
    explicit Maker(ImportContext& ctx) : ctx_(ctx) {}

    // Sums over what nobody wants.
    Term summed(Term const& t, std::string const& wanted)
    {
        std::vector<int> axes;
        for (size_t d = 0; d < t.labels.size(); ++d)
            if (!has(wanted, t.labels[d]))
                axes.push_back(int(d));
        if (axes.empty())
            return t;
        return {&ctx_.reduce(*t.x, ReduceOperation::kSUM, axes, false),
                those(t.labels, [&](char c) { return has(wanted, c); })};
    }
    Term transposed(Term const& t, std::string const& order)
    {
        std::vector<int> permutation;
        for (char c : order)
            permutation.push_back(int(t.labels.find(c)));
        return {t.labels == order ? t.x : &ctx_.transpose(*t.x, permutation), order};
    }

    // `wanted`: labels that the result or later terms have.
    Term product(Term a, Term b, std::string const& wanted, std::string const& output)
    {
        a = summed(a, wanted + b.labels);
        b = summed(b, wanted + a.labels);
        // The operand whose own dimension comes first gives rows.
        for (char c : output)
            if (has(a.labels, c) != has(b.labels, c)) {
                if (has(b.labels, c))
                    std::swap(a, b);
                break;
            }
        auto isBoth = [&](char c) { return has(a.labels, c) && has(b.labels, c); };
        std::string const batch =
            those(output + those(wanted, [&](char c) { return !has(output, c); }), [&](char c) { return isBoth(c); });
        std::string const inner = those(a.labels, [&](char c) { return isBoth(c) && !has(wanted, c); });
        std::string const rows = those(a.labels, [&](char c) { return !isBoth(c); });
        std::string const columns = those(b.labels, [&](char c) { return !isBoth(c); });
        a = transposed(a, batch + rows + inner);
        b = transposed(b, batch + inner + columns);
        std::string const result = batch + rows + columns;
        if (result.size() > size_t(Dims::MAX_DIMS))
            ctx_.fail("an intermediate result '" + result + "' has more than 8 dimensions");
        Sizes const sizesA = ctx_.sizesOf(*a.x), sizesB = ctx_.sizesOf(*b.x);
        auto part = [](Sizes const& s, size_t begin, size_t count) {
            return Sizes(s.begin() + int64_t(begin), s.begin() + int64_t(begin + count));
        };
        Sizes const of = part(sizesA, 0, batch.size()), ofRows = part(sizesA, batch.size(), rows.size()),
                    ofColumns = part(sizesB, batch.size() + inner.size(), columns.size());
        auto joined = [](std::initializer_list<Sizes> lists) {
            Sizes all;
            for (Sizes const& list : lists)
                all.insert(all.end(), list.begin(), list.end());
            return all;
        };
        Sizes const ones[] = {Sizes(rows.size(), 1), Sizes(columns.size(), 1)};
        if (inner.empty()) {
            ITensor& left = columns.empty() ? *a.x : ctx_.reshape(*a.x, joined({of, ofRows, ones[1]}));
            ITensor& right = rows.empty() ? *b.x : ctx_.reshape(*b.x, joined({of, ones[0], ofColumns}));
            return {&ctx_.elementwise(left, right, nvinfer1::ElementWiseOperation::kPROD), result};
        }
        // Without a batch the rows keep their dimensions, so that a product with weights stays one.
        bool const isApart = batch.empty() && rows.size() > 1;
        Size const depth = ctx_.product(part(sizesA, batch.size() + rows.size(), inner.size()));
        Sizes const lines = isApart ? ofRows : Sizes{ctx_.product(ofRows)};
        Sizes const before = isApart ? Sizes(rows.size() - 1, 1) : of;
        ITensor& left = inner.size() == 1 && lines.size() == rows.size()
                            ? *a.x
                            : ctx_.reshape(*a.x, joined({of, lines, Sizes{depth}}));
        ITensor& right = inner.size() == 1 && columns.size() == 1 && !isApart
                             ? *b.x
                             : ctx_.reshape(*b.x, joined({before, Sizes{depth}, Sizes{ctx_.product(ofColumns)}}));
        ITensor& y = ctx_.matmul(left, right);
        bool const isDone = columns.size() == 1 && lines.size() == rows.size();
        return {isDone ? &y : &ctx_.reshape(y, joined({of, ofRows, ofColumns})), result};
    }

private:
    ImportContext& ctx_;
};

void importEinsum(ImportContext& ctx)
{
    Equation equation(ctx);
    Maker maker(ctx);
    Term sum = equation.operand(0);
    for (int i = 1; i < ctx.nbInputs(); ++i) {
        std::string wanted = equation.output;
        for (int later = i + 1; later < ctx.nbInputs(); ++later)
            for (char c : equation.inputs[size_t(later)])
                if (!has(wanted, c))
                    wanted += c;
        sum = maker.product(sum, equation.operand(i), wanted, equation.output);
    }
    sum = maker.transposed(maker.summed(sum, equation.output), equation.output);
    ctx.setOutput(0, ctx.nbInputs() == 1 && sum.x == &ctx.tensor(0) ? ctx.identity(*sum.x) : *sum.x);
}

} // namespace

void register_composites_einsum(ImporterMap& map)
{
    map.add("Einsum", importEinsum);
}

} // namespace tw::onnx
