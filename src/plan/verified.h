// SPDX-License-Identifier: Apache-2.0
// Sections of a plan as FlatBuffers, whose offsets have been checked.
#pragma once

#include <algorithm>
#include <vector>

#include "plan/file.h"
#include "plan_generated.h"

namespace tw::plan {

inline constexpr int kMaxNesting = 32; // of graphs

inline Error bad(std::string const& text)
{
    return failedInitialization("the plan is damaged: " + text);
}
template <class... Args>
Error bad(fmt::format_string<Args...> text, Args&&... args)
{
    return bad(fmt::format(text, std::forward<Args>(args)...));
}

template <class V>
auto sizeOf(V const* v) -> flatbuffers::uoffset_t
{
    return v ? v->size() : 0;
}

inline Section const* find(std::vector<Section> const& sections, SectionKind kind)
{
    auto it = std::ranges::find_if(sections, [&](Section const& s) { return s.kind == kind; });
    return it == sections.end() ? nullptr : &*it;
}

template <class Table>
Result<Table const*> verified(Section const& s, char const* name)
{
    // A table has at least an offset that names it and one to its fields; ours are never named twice.
    constexpr uint64_t kMinTableBytes = 8;
    flatbuffers::Verifier v(static_cast<uint8_t const*>(s.data), size_t(s.sizeBytes), 4 * kMaxNesting,
                            flatbuffers::uoffset_t(s.sizeBytes / kMinTableBytes));
    if (s.sizeBytes < kMinTableBytes || s.sizeBytes > FLATBUFFERS_MAX_BUFFER_SIZE || !v.VerifyBuffer<Table>(nullptr))
        return bad("section {} is malformed", name);
    return flatbuffers::GetRoot<Table>(s.data);
}

} // namespace tw::plan
