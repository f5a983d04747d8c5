// SPDX-License-Identifier: Apache-2.0
// Gives constants of equal bytes one memory.
//   before: w = [1 2 3 4], v = [1 2 3 4], each with bytes of its own        after: w and v with the same bytes
// Values, names and origins stay apart, so that messages name each. Weights that refit reaches are left alone: they are
// equal today only. Any form, regions and bodies too. Stands last: the passes before it fold, merge and convert the weights of each layer by
// itself, and models hold equal ones. Whatever packs, uploads or writes constants goes by the address of their bytes.
#include <cstring>
#include <map>

#include "base/hash.h"
#include "passes/list.h"
#include "recipe/recipes.h"

namespace tw::passes {

namespace {

// Of blobs that look alike only: reading all weights of a large model takes a while.
uint64_t sampleOf(Blob const& b)
{
    constexpr size_t kSamples = 16, kSampleBytes = 64;
    if (b.sizeBytes() <= kSamples * kSampleBytes)
        return hashBytes(b.data(), b.sizeBytes());
    Hasher h;
    size_t const step = (b.sizeBytes() - kSampleBytes) / (kSamples - 1);
    for (size_t i = 0; i < kSamples; ++i)
        h.bytes(b.as<char>() + i * step, kSampleBytes);
    return h.value();
}

class Sharer
{
public:
    explicit Sharer(recipe::Recipes const* recipes) : recipes_(recipes) {}

    bool run(ir::Graph& g)
    {
        bool changed = false;
        for (auto const& v : g.values()) {
            if (!v->isConstant() || (recipes_ && recipes_->reaches(*v)))
                continue;
            BlobPtr const& own = v->constant->data;
            BlobPtr const& shared = sharedOf(own);
            if (shared->data() == own->data())
                continue;
            auto c = std::make_shared<ir::Constant>(*v->constant);
            c->data = shared;
            v->constant = std::move(c);
            changed = true;
        }
        for (auto const& n : g.nodes) {
            for (auto const& r : n->regions)
                changed = run(*r) || changed;
            if (n->body)
                changed = run(*n->body) || changed;
        }
        return changed;
    }

private:
    using Size = size_t;
    struct Alike
    {
        BlobPtr first;                              // until there is a second one
        std::multimap<uint64_t, BlobPtr> different; // by the hash of all bytes
    };

    BlobPtr const& sharedOf(BlobPtr const& b)
    {
        BlobPtr& known = known_[{b->data(), b->sizeBytes()}];
        if (!known)
            known = find(b);
        return known;
    }
    BlobPtr find(BlobPtr const& b)
    {
        Alike& alike = alike_[{b->sizeBytes(), sampleOf(*b)}];
        if (!alike.first) {
            alike.first = b;
            return b;
        }
        if (alike.different.empty())
            alike.different.emplace(hashBytes(alike.first->data(), alike.first->sizeBytes()), alike.first);
        uint64_t const hash = hashBytes(b->data(), b->sizeBytes());
        auto const [begin, end] = alike.different.equal_range(hash);
        for (auto it = begin; it != end; ++it)
            if (std::memcmp(it->second->data(), b->data(), b->sizeBytes()) == 0)
                return it->second;
        alike.different.emplace(hash, b);
        return b;
    }

    recipe::Recipes const* recipes_;
    std::map<std::pair<void const*, Size>, BlobPtr> known_; // by address; what is replaced lives until the end
    std::map<std::pair<Size, uint64_t>, Alike> alike_;      // by size and sample
};

} // namespace

Result<bool> shareConstants(ir::Graph& g, PassContext const& ctx)
{
    return Sharer(ctx.recipes).run(g);
}

} // namespace tw::passes
