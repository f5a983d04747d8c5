// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/blob.h"
#include "ir/dim.h"
#include "plan/file.h"
#include "plan/plan.h"
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

struct ReadGraph
{
    std::unique_ptr<ir::Graph> graph;
    std::map<ir::Value const*, ops::PanelOrder> panels; // of its constants, those that stay in panels
    std::map<ir::Value const*, double> scales;          // see Contents
    std::unique_ptr<ir::Graph> recipes;                 // null: not given
    std::map<ir::Value const*, int32_t> made;           // see Contents::made; the positions may be wrong
};

// The graph with its regions, as untrusted as the file may be; ir::verify() has still to see it. Constants lie in
// `weights`, and stay there where `owner` keeps it; those in panels too, if `keepPanels`. What graph and recipes share is
// kept once.
Result<ReadGraph> readGraph(fb::Graph const& in, fb::Graph const* recipes, Section const& weights,
                            std::shared_ptr<void const> owner, bool keepPanels, Copier& copy);

// Passes on which pages have been read, but for those that kernels will use where they lie.
class AllButPanels final : public PageKeeper
{
public:
    // Looks for constants in panels in a file that may still prove damaged: then it finds none, or others.
    AllButPanels(PageKeeper const& pages, std::vector<Section> const& sections);
    void done(void const* data, size_t sizeBytes) const override;

private:
    void pass(uintptr_t begin, uintptr_t end) const;
    PageKeeper const& pages_;
    std::vector<std::pair<uintptr_t, uintptr_t>> kept_; // in order
};

} // namespace tw::plan
