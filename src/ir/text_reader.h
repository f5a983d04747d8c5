// SPDX-License-Identifier: Apache-2.0
// What every part of the graph's text form is made of, token by token. Errors name the line.
#pragma once

#include <bit>
#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "ir/dim.h"

namespace tw::ir::text {

// Tokens of the graph's text form.
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

class Reader
{
public:
    explicit Reader(std::string const& text) : lexer_(text) { advance(); }

protected:
    // At the token in hand: what is wrong with it, else `what`.
    Error bad(std::string const& what) const
    {
        return badAt(token_.line, token_.kind == TokenKind::kBad ? token_.text : what);
    }
    static Error badAt(int line, std::string const& what)
    {
        return invalidArgument("graph text, line {}: {}", line, what);
    }
    void advance() { token_ = lexer_.next(); }
    bool isMark(char const* m) const { return token_.kind == TokenKind::kMark && token_.text == m; }
    bool isWord(char const* w) const { return token_.kind == TokenKind::kWord && token_.text == w; }
    bool takeMark(char const* mark);
    bool takeWord(char const* word);
    Result<void> expectMark(char const* mark);
    Result<std::string> word(char const* what);
    Result<std::string> string(char const* what);
    Result<int64_t> integer(char const* what, int64_t lo = INT64_MIN, int64_t hi = INT64_MAX);
    Result<uint64_t> bits(std::string const& word, int line) const; // of "0x..."
    Result<DataType> dataType();
    // Dimension expressions between brackets; they have a parser of their own.
    Result<std::vector<Dim>> dims(size_t limit);
    // F: float or double; U: its bits.
    template <class F, class U>
    Result<F> real()
    {
        int const line = token_.line;
        TW_ASSIGN(std::string const w, word("number"));
        if (w.starts_with("0x")) {
            TW_ASSIGN(uint64_t const b, bits(w, line));
            if (b > U(-1))
                return badAt(line, "'" + w + "' has more bits than the type");
            return std::bit_cast<F>(U(b));
        }
        F v = 0;
        auto const r = std::from_chars(w.data(), w.data() + w.size(), v);
        if (r.ec != std::errc() || r.ptr != w.data() + w.size())
            return badAt(line, "number expected, got '" + w + "'");
        return v;
    }
    // Items between brackets.
    template <class Item>
    Result<void> list(Item item)
    {
        TW_TRY(expectMark("["));
        for (bool first = true; !takeMark("]"); first = false) {
            if (!first)
                TW_TRY(expectMark(","));
            TW_TRY(item());
        }
        return {};
    }

    Lexer lexer_;
    Token token_; // in hand
};

} // namespace tw::ir::text
