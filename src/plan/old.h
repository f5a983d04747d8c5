// SPDX-License-Identifier: Apache-2.0
// The hash of plans of format 1.5 and older, and of the ids that their tactics have: a chain of 64-bit words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/attrs.h"
#include "ir/graph.h"
#include "plan/file.h"

namespace tw::plan {

class OldHasher
{
public:
    void bytes(void const* data, size_t size);
    void number(uint64_t v)
    {
        state_ ^= v + 0x9e3779b97f4a7c15ull;
        state_ = mix(state_);
    }
    void text(std::string_view s)
    {
        number(s.size());
        bytes(s.data(), s.size());
    }
    uint64_t value() const { return mix(state_ ^ 0x2545f4914f6cdd1dull); }

private:
    // Finalizer of splitmix64: every input bit reaches every output bit.
    static uint64_t mix(uint64_t z)
    {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
    uint64_t state_ = 0x6a09e667f3bcc908ull;
};

// fileHash() of minors 0 to 5.
//   minor 0: one chain over all. From minor 1 on: pieces as today, each with lanes that do not depend on each other: 4,
//   each of every 4th word, or, from minor 3 on, 8, each of every 8th pair of words. The lanes' values are hashed in
//   order, then what is left after the last whole round of lanes.
uint64_t oldFileHash(void const* bytes, size_t sizeBytes, uint16_t minor, PageKeeper const* pages, Workers& workers);

// Ops and tactics that older plans name and that are others today. Until format 1.4 matrix products, convolutions and
// what was fused with them were ops of their own each (docs/adr/0006-one-op-with-an-epilogue.md); until 1.5 the ids of
// all tactics were made with another hash (docs/adr/0010-content-is-hashed-by-xxh3.md).

// Makes today's op, attributes and inputs of a node's; others stay as they are.
void renewNode(std::string& op, std::vector<ir::FieldValue>& fields, std::vector<ir::Value*>& inputs);

// Makes today's tactic of one that was chosen; others stay as they are. Names of tactics are others since 1.5, too
// (tactic/registry.h). One that has no counterpart is not found when the plan is loaded, which then runs the plain
// kernel and says so.
void renewTactic(uint64_t& id, std::string& name, int version);

} // namespace tw::plan
