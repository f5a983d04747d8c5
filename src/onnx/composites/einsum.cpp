// SPDX-License-Identifier: Apache-2.0
// Einsum of any number of operands: einsum layers of two at a time, from the left. What the layer does not take is made
// before: ellipses become letters, a letter twice in an operand its diagonal, dimensions of 1 that stand for others go.
#include <algorithm>
#include <cctype>

#include "onnx/importer.h"

namespace tw::onnx {

namespace {

struct Term
{
    ITensor* x = nullptr;
    std::string labels; // one for each dimension
};

bool has(std::string const& labels, char c)
{
    return labels.find(c) != std::string::npos;
}

template <class Wanted>
std::string those(std::string const& labels, Wanted wanted)
{
    std::string out;
    std::ranges::copy_if(labels, std::back_inserter(out), wanted);
    return out;
}

constexpr char kFirstOfEllipsis = '0'; // digits, the last dimension is '0': an ellipsis has at most 8 dimensions

class Equation
{
public:
    explicit Equation(ImportContext& ctx) : ctx_(ctx)
    {
        std::string const text = ctx.attrString("equation", "");
        std::string const e = those(text, [](char c) { return c != ' '; });
        what_ = "equation '" + text.substr(0, 200) + "'";
        if (e.size() > size_t(Dims::MAX_DIMS + 4) * size_t(ctx.nbInputs() + 1) + 2)
            ctx.invalid(fmt::format("{} has more letters than {} operands of rank 8", what_, ctx.nbInputs()));
        size_t const arrow = e.find("->");
        std::string const left = e.substr(0, arrow);
        for (size_t begin = 0; begin <= left.size();) {
            size_t const end = std::min(left.find(',', begin), left.size());
            inputs.push_back(left.substr(begin, end - begin));
            begin = end + 1;
        }
        if (int(inputs.size()) != ctx.nbInputs())
            ctx.invalid(fmt::format("{} has {} terms, the node has {} inputs", what_, inputs.size(), ctx.nbInputs()));
        checkLetters(e);
        std::string shared; // dimensions of the longest ellipsis
        for (size_t i = 0; i < inputs.size(); ++i) {
            int const rank = ctx.input(int(i)).rank();
            inputs[i] = spelled(inputs[i], rank, shared);
        }
        std::string all;
        for (std::string const& term : inputs)
            all += term;
        if (arrow != std::string::npos)
            output = spelledOutput(e.substr(arrow + 2), shared);
        else
            output = shared + implied(all);
        check(all);
    }

    Term operand(int i)
    {
        Term t{&ctx_.tensor(i), inputs[size_t(i)]};
        for (size_t d = 0; d < t.labels.size(); ++d)
            if (t.labels.find(t.labels[d], d + 1) != std::string::npos)
                t = diagonal(t, t.labels[d--]);
        return t;
    }

    std::vector<std::string> inputs;
    std::string output;

private:
    // The term with letters for its ellipsis: as many as the rank leaves.
    std::string spelled(std::string const& term, int rank, std::string& shared) const
    {
        size_t const dots = term.find("...");
        int const left = rank - int(term.size()) + (dots == std::string::npos ? 0 : 3);
        if (left < 0 || (dots == std::string::npos && left != 0))
            ctx_.invalid(fmt::format("{}: '{}' stands for an operand of rank {}", what_, term, rank));
        if (dots == std::string::npos)
            return term;
        std::string letters;
        for (int d = left; d-- > 0;)
            letters += char(kFirstOfEllipsis + d);
        if (letters.size() > shared.size())
            shared = letters;
        return term.substr(0, dots) + letters + term.substr(dots + 3);
    }
    static std::string spelledOutput(std::string const& term, std::string const& shared)
    {
        size_t const dots = term.find("...");
        return dots == std::string::npos ? term : term.substr(0, dots) + shared + term.substr(dots + 3);
    }
    // Letters that stand there once, in alphabetical order.
    static std::string implied(std::string const& all)
    {
        std::string out = those(all, [&](char c) {
            return std::isalpha(static_cast<unsigned char>(c)) && std::ranges::count(all, c) == 1;
        });
        std::ranges::sort(out);
        return out;
    }
    // Commas, one arrow, and an ellipsis at most in each term, stand between letters.
    void checkLetters(std::string const& e) const
    {
        size_t const arrow = e.find("->");
        for (size_t i = 0; i < e.size(); ++i) {
            if (i == arrow || e.compare(i, 3, "...") == 0)
                i += i == arrow ? 1 : 2;
            else if (!std::isalpha(static_cast<unsigned char>(e[i])) && (e[i] != ',' || i > arrow))
                ctx_.invalid(what_ + ": '" + std::string(1, e[i]) + "' is no letter");
        }
    }
    void check(std::string const& all) const
    {
        for (char c : all + output)
            if (c == '.')
                ctx_.invalid(what_ + ": a term has more than one ellipsis");
        for (char c : output) {
            if (std::ranges::count(output, c) > 1)
                ctx_.invalid(what_ + ": '" + std::string(1, c) + "' stands twice in the result");
            if (!has(all, c))
                ctx_.invalid(what_ + ": no operand has '" + std::string(1, c) + "' of the result");
        }
        if (output.size() > size_t(Dims::MAX_DIMS))
            ctx_.fail(fmt::format("{}: the result has rank {} (allowed: 0..8)", what_, output.size()));
    }

    // Elements whose coordinates along both dimensions of the letter are equal: every (n + 1)th of the n * n.
    Term diagonal(Term const& t, char letter) const
    {
        size_t const first = t.labels.find(letter), second = t.labels.find(letter, first + 1);
        Dims const dims = t.x->getDimensions();
        if (dims.d[first] >= 0 && dims.d[second] >= 0 && dims.d[first] != dims.d[second])
            ctx_.invalid(
                fmt::format("{}: '{}' is {} and {}", what_, std::string(1, letter), dims.d[first], dims.d[second]));
        std::vector<int> order;
        std::string labels;
        for (int d = 0; d < dims.nbDims; ++d)
            if (size_t(d) != first && size_t(d) != second) {
                order.push_back(d);
                labels += t.labels[size_t(d)];
            }
        order.push_back(int(first));
        order.push_back(int(second));
        ITensor& moved = ctx_.transpose(*t.x, order);
        Sizes sizes = ctx_.sizesOf(moved);
        Size const n = sizes.back();
        sizes.pop_back();
        sizes.back() = ctx_.mul(n, n);
        ITensor& flat = ctx_.reshape(moved, sizes);
        Sizes const start(sizes.size(), Size(0));
        Sizes stride(sizes.size(), Size(1));
        sizes.back() = n;
        stride.back() = ctx_.add(n, 1);
        return {&ctx_.slice(flat, start, sizes, stride), labels + letter};
    }

    ImportContext& ctx_;
    std::string what_;
};

// Dimensions of 1 where the other term's is not 1: they go, their letter stays with the other.
Term withoutOnes(ImportContext& ctx, Term const& t, Term const& other)
{
    Dims const dims = t.x->getDimensions(), others = other.x->getDimensions();
    std::vector<int> ones;
    std::string labels;
    for (int d = 0; d < dims.nbDims; ++d) {
        char const c = t.labels[size_t(d)];
        size_t const at = other.labels.find(c);
        int const here = dims.d[d], there = at == std::string::npos ? here : others.d[at];
        if (here > 1 && there > 1 && here != there)
            ctx.fail(fmt::format("'{}' is {} and {}", std::string(1, c), here, there));
        if (here == 1 && there != 1)
            ones.push_back(d);
        else
            labels += c;
    }
    return ones.empty() ? t : Term{&ctx.squeeze(*t.x, ones), labels};
}

// A layer of one or two terms, under letters of its own.
Term layerOf(ImportContext& ctx, std::vector<Term> const& terms, std::string const& output)
{
    std::string known;
    auto spell = [&](std::string const& labels) {
        std::string out;
        for (char c : labels) {
            if (!has(known, c))
                known += c;
            out += char('a' + known.find(c));
        }
        return out;
    };
    std::vector<ITensor*> in;
    std::string equation;
    for (Term const& t : terms) {
        equation += (in.empty() ? "" : ",") + spell(t.labels);
        in.push_back(t.x);
    }
    equation += "->" + spell(output);
    auto& layer = ctx.added(ctx.network().addEinsum(in.data(), int32_t(in.size()), equation.c_str()));
    return {&ctx.out(layer), output};
}

void importEinsum(ImportContext& ctx)
{
    Equation equation(ctx);
    Term sum = equation.operand(0);
    if (ctx.nbInputs() == 1)
        return ctx.setOutput(0, *layerOf(ctx, {sum}, equation.output).x);
    for (int i = 1; i < ctx.nbInputs(); ++i) {
        Term const next = equation.operand(i);
        Term const left = withoutOnes(ctx, sum, next), right = withoutOnes(ctx, next, left);
        std::string later = equation.output;
        for (int j = i + 1; j < ctx.nbInputs(); ++j)
            later += equation.inputs[size_t(j)];
        // The result's letters in its order, then those that later terms need.
        std::string const both = left.labels + right.labels;
        std::string kept = those(equation.output, [&](char c) { return has(both, c); });
        for (char c : both)
            if (has(later, c) && !has(kept, c))
                kept += c;
        sum = layerOf(ctx, {left, right}, kept);
    }
    ctx.setOutput(0, *sum.x);
}

} // namespace

void register_composites_einsum(ImporterMap& map)
{
    map.add("Einsum", importEinsum);
}

} // namespace tw::onnx
