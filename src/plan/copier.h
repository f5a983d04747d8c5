// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "ir/dim.h"
#include "plan/verified.h"

namespace tw::plan {

// Copies texts and lists out of one section. Flatbuffers may share them, so that a few bytes could name gigabytes: what
// is copied is limited by the section's size.
class Copier
{
public:
    explicit Copier(uint64_t sectionBytes) : left_(kFree + kCopiesPerByte * sectionBytes) {}

    std::string text(flatbuffers::String const* s) { return spend(sizeOf(s)) && s ? s->str() : std::string(); }
    // The verifier checks the alignment of a list's length, not that of its elements.
    template <class T>
    std::vector<T> list(flatbuffers::Vector<T> const* v)
    {
        std::vector<T> out;
        if (!spend(uint64_t(sizeOf(v)) * sizeof(T)) || sizeOf(v) == 0)
            return out;
        out.resize(v->size());
        std::memcpy(out.data(), v->Data(), out.size() * sizeof(T));
        return out;
    }
    std::string bytes(flatbuffers::Vector<uint8_t> const* v)
    {
        return spend(sizeOf(v)) && v ? std::string(reinterpret_cast<char const*>(v->data()), v->size()) : std::string();
    }
    // Equal texts are parsed once.
    Result<ir::Dim> dim(flatbuffers::String const* s)
    {
        std::string const t = text(s);
        if (auto it = dims_.find(t); it != dims_.end())
            return it->second;
        spend(kDimCost * t.size());
        TW_TRY(status());
        TW_ASSIGN(ir::Dim d, ir::Dim::parse(t));
        return dims_[t] = d;
    }
    Result<void> status() const
    {
        if (spent_)
            return bad("its texts and lists are many times larger than the file");
        return {};
    }

private:
    static constexpr uint64_t kFree = 1 << 20, kCopiesPerByte = 256, kDimCost = 64;
    bool spend(uint64_t bytes)
    {
        spent_ = spent_ || bytes > left_;
        left_ -= spent_ ? 0 : bytes;
        return !spent_;
    }
    uint64_t left_;
    bool spent_ = false;
    std::map<std::string, ir::Dim> dims_;
};

} // namespace tw::plan
