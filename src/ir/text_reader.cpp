// SPDX-License-Identifier: Apache-2.0
#include "ir/text_reader.h"

#include <cstring>

namespace tw::ir::text {

bool Reader::takeMark(char const* m)
{
    bool const yes = isMark(m);
    if (yes)
        advance();
    return yes;
}

bool Reader::takeWord(char const* w)
{
    bool const yes = isWord(w);
    if (yes)
        advance();
    return yes;
}

Result<void> Reader::expectMark(char const* m)
{
    if (!takeMark(m))
        return bad(fmt::format("'{}' expected", m));
    return {};
}

Result<std::string> Reader::word(char const* what)
{
    if (token_.kind != TokenKind::kWord)
        return bad(fmt::format("{} expected", what));
    std::string w = std::move(token_.text);
    advance();
    return w;
}

Result<std::string> Reader::string(char const* what)
{
    if (token_.kind != TokenKind::kString)
        return bad(fmt::format("{} in quotes expected", what));
    std::string s = std::move(token_.text);
    advance();
    return s;
}

Result<int64_t> Reader::integer(char const* what, int64_t lo, int64_t hi)
{
    int const line = token_.line;
    TW_ASSIGN(std::string const w, word(what));
    int64_t v = 0;
    auto const r = std::from_chars(w.data(), w.data() + w.size(), v);
    if (r.ec != std::errc() || r.ptr != w.data() + w.size() || v < lo || v > hi)
        return badAt(line, std::string(what) + " expected, got '" + w + "'" +
                               (lo != INT64_MIN ? fmt::format(" (allowed: {} to {})", lo, hi) : ""));
    return v;
}

Result<uint64_t> Reader::bits(std::string const& w, int line) const
{
    uint64_t v = 0;
    auto const r = std::from_chars(w.data() + 2, w.data() + w.size(), v, 16);
    if (w.size() < 3 || r.ec != std::errc() || r.ptr != w.data() + w.size())
        return badAt(line, "bits expected, got '" + w + "'");
    return v;
}

Result<DataType> Reader::dataType()
{
    int const line = token_.line;
    TW_ASSIGN(std::string const w, word("type"));
    std::string names;
    for (int i = 0; i < kDataTypeCount; ++i) {
        names += std::string(i > 0 ? " " : "") + nameOf(DataType(i));
        if (w == nameOf(DataType(i)))
            return DataType(i);
    }
    return badAt(line, "unknown type '" + w + "' (allowed: " + names + ")");
}

Result<std::vector<Dim>> Reader::dims(size_t limit)
{
    if (!isMark("["))
        return bad("'[' expected");
    std::vector<Dim> out;
    for (;;) {
        int const line = token_.line;
        std::string const text = lexer_.dimension();
        advance(); // ',' or ']'
        bool const blank = text.find_first_not_of(' ') == std::string::npos;
        if (!(blank && out.empty() && isMark("]"))) {
            auto d = Dim::parse(text);
            if (!d.ok())
                return badAt(line, d.error().message);
            out.push_back(std::move(*d));
        }
        if (out.size() > limit)
            return badAt(line, fmt::format("more than {} dimensions or elements", limit));
        if (takeMark("]"))
            return out;
        if (!isMark(","))
            return bad("',' or ']' expected");
    }
}

namespace {

bool isWordChar(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '$' || c == '+' || c == '-';
}

int hexDigit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

} // namespace

Token Lexer::next()
{
    skip();
    Token t;
    t.line = line_;
    if (at_ >= text_.size())
        return t;
    char const c = text_[at_];
    if (c == '"')
        return string(t);
    if (text_.compare(at_, 2, "->") == 0) {
        at_ += 2;
        t.kind = TokenKind::kMark;
        t.text = "->";
    } else if (isWordChar(c)) {
        size_t const start = at_;
        while (at_ < text_.size() && isWordChar(text_[at_]))
            ++at_;
        t.kind = TokenKind::kWord;
        t.text = text_.substr(start, at_ - start);
    } else {
        ++at_;
        t.kind = std::strchr("(){}[],=:%", c) && c != '\0' ? TokenKind::kMark : TokenKind::kBad;
        t.text = t.kind == TokenKind::kMark ? std::string(1, c) : "unexpected character";
    }
    return t;
}

std::string Lexer::dimension()
{
    size_t const start = at_;
    int open = 0;
    while (at_ < text_.size()) {
        char const c = text_[at_];
        if (c == '\n' || (open == 0 && (c == ',' || c == ']')))
            break;
        open += c == '(' ? 1 : c == ')' ? -1 : 0;
        ++at_;
    }
    return text_.substr(start, at_ - start);
}

void Lexer::skip()
{
    while (at_ < text_.size()) {
        char const c = text_[at_];
        if (c == '#')
            while (at_ < text_.size() && text_[at_] != '\n')
                ++at_;
        else if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
            line_ += text_[at_++] == '\n';
        else
            return;
    }
}

Token Lexer::string(Token t)
{
    t.kind = TokenKind::kString;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
        char c = text_[at_];
        if (c == '\n')
            break;
        if (c == '\\') {
            if (++at_ >= text_.size())
                break;
            c = text_[at_];
            if (c == 'n') {
                c = '\n';
            } else if (c == 'x') {
                int const hi = at_ + 2 < text_.size() ? hexDigit(text_[at_ + 1]) : -1;
                int const lo = hi >= 0 ? hexDigit(text_[at_ + 2]) : -1;
                if (lo < 0)
                    return Token{TokenKind::kBad, "bad \\x escape", t.line};
                c = char(hi * 16 + lo);
                at_ += 2;
            } else if (c != '"' && c != '\\') {
                return Token{TokenKind::kBad, "unknown escape", t.line};
            }
        }
        t.text += c;
    }
    if (at_ >= text_.size() || text_[at_] != '"')
        return Token{TokenKind::kBad, "string without end", t.line};
    ++at_;
    return t;
}

} // namespace tw::ir::text
