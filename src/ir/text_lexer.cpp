// SPDX-License-Identifier: Apache-2.0
#include "ir/text_lexer.h"

#include <cstring>

namespace tw::ir::text {

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
