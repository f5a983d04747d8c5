// SPDX-License-Identifier: Apache-2.0
// Tokens of the graph's text form.
#pragma once

#include <cstdint>
#include <string>

namespace tw::ir::text {

enum class TokenKind : uint8_t
{
    kEnd,
    kWord,   // letters, digits and _ . $ + - (numbers too)
    kString, // text holds the contents
    kMark,   // one of ( ) { } [ ] , = : % or "->"
    kBad,    // text holds what is wrong
};
struct Token
{
    TokenKind kind = TokenKind::kEnd;
    std::string text;
    int line = 1;
};

class Lexer
{
public:
    explicit Lexer(std::string const& text) : text_(text) {}

    Token next();
    // Raw text up to the next ',' or ']' outside parentheses: a dimension expression.
    std::string dimension();

private:
    void skip();
    Token string(Token t);

    std::string const& text_;
    size_t at_ = 0;
    int line_ = 1;
};

} // namespace tw::ir::text
