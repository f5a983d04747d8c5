// SPDX-License-Identifier: Apache-2.0
// Text form of graphs from untrusted text: what is parsed prints as text that parses to the same text.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "ir/text.h"
#include "tactic/registry.h"

extern "C" int LLVMFuzzerTestOneInput(uint8_t const* data, size_t size)
{
    using namespace tw;
    auto graph = ir::parse(std::string(reinterpret_cast<char const*>(data), size), ops::find);
    if (!graph.ok()) {
        if (graph.error().message.empty())
            std::abort();
        return 0;
    }
    std::string const text = ir::print(**graph);
    auto again = ir::parse(text, ops::find);
    if (!again.ok() || ir::print(**again) != text)
        std::abort();
    return 0;
}
