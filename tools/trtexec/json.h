// SPDX-License-Identifier: Apache-2.0
// JSON text, written in the order in which it is called: an array of flat objects, one on each line.
#pragma once

#include <string>
#include <string_view>

namespace tw::trtexec {

std::string jsonString(std::string_view text); // quoted and escaped; bytes that are not UTF-8 become U+FFFD
std::string jsonNumber(double value);          // up to 9 digits, as a float needs; NaN and infinity become null

class JsonRows
{
public:
    void beginRow();
    void number(std::string_view key, double value);
    void text(std::string_view key, std::string_view value);
    void raw(std::string_view key, std::string_view json);
    std::string finish() &&;

private:
    void key(std::string_view key);
    std::string text_;
    bool rowOpen_ = false;
    bool rowEmpty_ = true;
};

} // namespace tw::trtexec
