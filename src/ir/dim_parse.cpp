// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "ir/dim.h"

namespace tw::ir {

namespace {

// Recursive descent over the text that str() writes: sum := product ('+' product)*, product := factor ('*' factor)*,
// factor := integer | name | name '(' sum ',' sum ')' | '(' sum ')'. Depth is limited: the text may be untrusted.
class DimParser
{
public:
    explicit DimParser(std::string const& t) : text_(t) {}
    Result<Dim> parse()
    {
        TW_ASSIGN(Dim d, sum(0));
        skip();
        if (at_ != text_.size())
            return bad("trailing text");
        return d;
    }

private:
    static constexpr int kMaxDepth = 600; // no text of kMaxDimTextBytes that str() writes is nested deeper
    Error bad(std::string const& what) const
    {
        return invalidArgument("dimension '{}': {} at character {}", text_, what, at_);
    }
    void skip()
    {
        while (at_ < text_.size() && text_[at_] == ' ')
            ++at_;
    }
    bool take(char c)
    {
        skip();
        if (at_ < text_.size() && text_[at_] == c) {
            ++at_;
            return true;
        }
        return false;
    }
    static bool isNameChar(char c)
    {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
               c == '$';
    }
    Result<Dim> sum(int depth)
    {
        TW_ASSIGN(Dim d, product(depth));
        while (take('+')) {
            TW_ASSIGN(Dim const e, product(depth));
            d = d + e;
        }
        return d;
    }
    Result<Dim> product(int depth)
    {
        TW_ASSIGN(Dim d, factor(depth));
        while (take('*')) {
            TW_ASSIGN(Dim const e, factor(depth));
            d = d * e;
        }
        return d;
    }
    Result<Dim> factor(int depth)
    {
        if (depth > kMaxDepth)
            return bad("nested too deeply");
        if (take('(')) {
            TW_ASSIGN(Dim d, sum(depth + 1));
            if (!take(')'))
                return bad("')' expected");
            return d;
        }
        skip();
        size_t const start = at_;
        if (at_ < text_.size() && (text_[at_] == '-' || (text_[at_] >= '0' && text_[at_] <= '9'))) {
            ++at_;
            while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9')
                ++at_;
            int64_t number = 0;
            auto const [end, error] = std::from_chars(text_.data() + start, text_.data() + at_, number);
            if (error != std::errc() || end != text_.data() + at_)
                return bad("number expected");
            return Dim(number);
        }
        while (at_ < text_.size() && isNameChar(text_[at_]))
            ++at_;
        if (at_ == start)
            return bad("dimension expected");
        std::string const name = text_.substr(start, at_ - start);
        if (at_ < text_.size() && text_[at_] == '(') {
            for (DimOp op :
                 {DimOp::kMax, DimOp::kMin, DimOp::kFloorDiv, DimOp::kCeilDiv, DimOp::kEqual, DimOp::kLess}) {
                if (name != nameOf(op))
                    continue;
                ++at_;
                TW_ASSIGN(Dim const a, sum(depth + 1));
                if (!take(','))
                    return bad("',' expected");
                TW_ASSIGN(Dim const b, sum(depth + 1));
                if (!take(')'))
                    return bad("')' expected");
                return Dim::make(op, a, b);
            }
            return bad("unknown function '" + name + "'");
        }
        return Dim::symbol(name);
    }
    std::string const& text_;
    size_t at_ = 0;
};

} // namespace

Result<Dim> Dim::parse(std::string const& text)
{
    if (text.size() > kMaxDimTextBytes)
        return invalidArgument("dimension expression longer than {} characters", kMaxDimTextBytes);
    return DimParser(text).parse();
}

} // namespace tw::ir
