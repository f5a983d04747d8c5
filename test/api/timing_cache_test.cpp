// SPDX-License-Identifier: Apache-2.0
#include "tune/timing_cache.h"

#include <cmath>
#include <thread>

#include <gtest/gtest.h>

#include "api/builder/config.h"
#include "api/client.h"
#include "base/hash.h"

using namespace tw::test;
using tw::tune::CacheEntry;
using tw::tune::TimingCache;

// What the fuzzer runs.
extern "C" int fuzzTimingCache(uint8_t const* data, size_t size);

namespace {

int run(std::string const& bytes)
{
    return fuzzTimingCache(reinterpret_cast<uint8_t const*>(bytes.data()), bytes.size());
}

TimingCache& filled(TimingCache& c, bool backwards = false)
{
    CacheEntry const a{1, {}, 0.5}, b{~0ull, {64, -3}, 12}, z{7, {1}, 0};
    if (backwards) {
        c.insert("z", z);
        c.insert("b", b);
    }
    c.insert("a", a);
    c.insert("b", b);
    c.insert("z", z);
    return c;
}

// As an attacker would: the contents changed and the hash set right again.
std::string withHash(std::string bytes)
{
    uint64_t const hash = tw::hashBytes(bytes.data(), bytes.size() - 8);
    bytes.replace(bytes.size() - 8, 8, reinterpret_cast<char const*>(&hash), 8);
    return bytes;
}

TEST(TimingCache, FindsWhatWasInserted)
{
    TimingCache c("dev");
    EXPECT_FALSE(c.find("a"));
    filled(c);
    EXPECT_EQ(c.size(), 3u);
    EXPECT_EQ(*c.find("b"), (CacheEntry{~0ull, {64, -3}, 12}));
    EXPECT_FALSE(c.find("B"));
    EXPECT_FALSE(c.find(""));
    EXPECT_FALSE(c.insert("", {}));
    EXPECT_FALSE(c.insert("k", {0, {}, -1}));
    EXPECT_FALSE(c.insert("k", {0, {}, std::nan("")}));
    EXPECT_FALSE(c.insert("k", {0, {}, INFINITY}));
    EXPECT_FALSE(c.insert("k", {0, std::vector<int64_t>(257), 1}));
    EXPECT_FALSE(c.insert(std::string((1 << 20) + 1, 'k'), {0, {}, 1}));
    EXPECT_EQ(c.size(), 3u);
    c.clear();
    EXPECT_EQ(c.size(), 0u);
}

TEST(TimingCache, BytesComeBackAndDoNotDependOnOrder)
{
    TimingCache c("dev"), d("dev");
    std::string const bytes = filled(c).serialize();
    EXPECT_EQ(bytes, filled(d, true).serialize());
    auto loaded = TimingCache::deserialize(bytes.data(), bytes.size(), "other");
    ASSERT_TRUE(loaded.ok());
    EXPECT_EQ(loaded->warning, "");
    EXPECT_EQ(loaded->cache->fingerprint(), "dev");
    EXPECT_EQ(loaded->cache->serialize(), bytes);
    EXPECT_EQ(*loaded->cache->find("z"), *c.find("z"));
}

TEST(TimingCache, SizeZeroIsEmpty)
{
    auto loaded = TimingCache::deserialize(nullptr, 0, "dev");
    ASSERT_TRUE(loaded.ok());
    EXPECT_EQ(loaded->cache->size(), 0u);
    EXPECT_EQ(loaded->cache->fingerprint(), "dev");
    EXPECT_FALSE(TimingCache::deserialize(nullptr, 5, "dev").ok());
}

TEST(TimingCache, EveryTruncationAndBitFlipIsRefused)
{
    TimingCache c("dev");
    std::string const bytes = filled(c).serialize();
    // Version and format fields (bytes 8..27) lead to the empty cache of another version instead.
    for (size_t n = 1; n < bytes.size(); ++n)
        EXPECT_FALSE(TimingCache::deserialize(bytes.data(), n, "dev").ok()) << n;
    for (size_t i = 0; i < bytes.size() * 8; ++i) {
        std::string bad = bytes;
        bad[i / 8] = char(bad[i / 8] ^ 1 << i % 8);
        auto loaded = TimingCache::deserialize(bad.data(), bad.size(), "dev");
        if (i / 8 >= 8 && i / 8 < 28) {
            ASSERT_TRUE(loaded.ok()) << i;
            EXPECT_EQ(loaded->cache->size(), 0u);
            EXPECT_NE(loaded->warning, "");
        } else {
            EXPECT_FALSE(loaded.ok()) << i;
        }
        run(bad);
    }
    EXPECT_FALSE(TimingCache::deserialize((bytes + "x").data(), bytes.size() + 1, "dev").ok());
}

TEST(TimingCache, UntrustedSizesWithARightHashAreRefused)
{
    TimingCache c("dev");
    std::string const bytes = filled(c).serialize();
    // Any four bytes after the version turned into a huge count or length: an error or, where they are data, a cache.
    for (size_t at = 28; at + 12 <= bytes.size(); ++at) {
        for (uint32_t v : {0u, 1u, 0x7fffffffu, 0xffffffffu}) {
            std::string bad = bytes;
            bad.replace(at, 4, reinterpret_cast<char const*>(&v), 4);
            bad = withHash(bad);
            auto loaded = TimingCache::deserialize(bad.data(), bad.size(), "dev");
            if (loaded.ok()) {
                EXPECT_EQ(loaded->cache->serialize(), bad);
            }
            run(bad);
        }
    }
    for (size_t n = 8; n < bytes.size(); ++n) {
        std::string const cut = withHash(bytes.substr(0, n) + std::string(8, '\0'));
        auto loaded = TimingCache::deserialize(cut.data(), cut.size(), "dev");
        EXPECT_TRUE(!loaded.ok() || loaded->cache->size() == 0 || n + 8 == bytes.size()) << n;
    }
}

TEST(TimingCache, FuzzTargetTakesItsSeeds)
{
    TimingCache c("dev"), empty("");
    std::string const seeds[] = {"", "TWTCACHE", filled(c).serialize(), empty.serialize(), std::string(100, '\xff')};
    for (std::string const& seed : seeds)
        EXPECT_EQ(run(seed), 0);
}

TEST(TimingCache, CombineKeepsOwnEntries)
{
    TimingCache c("dev"), d("dev"), foreign("gpu");
    filled(c);
    d.insert("a", {99, {}, 1});
    d.insert("n", {5, {}, 1});
    ASSERT_TRUE(c.combine(d, false).ok());
    EXPECT_EQ(c.find("a")->tactic, 1u);
    EXPECT_EQ(c.find("n")->tactic, 5u);
    EXPECT_EQ(d.size(), 2u);
    foreign.insert("q", {1, {}, 1});
    EXPECT_FALSE(c.combine(foreign, false).ok());
    EXPECT_FALSE(c.find("q"));
    EXPECT_TRUE(c.combine(foreign, true).ok());
    EXPECT_TRUE(c.find("q"));
    EXPECT_EQ(c.fingerprint(), "dev");
    EXPECT_TRUE(c.combine(c, false).ok());
    EXPECT_EQ(c.size(), 5u);
}

TEST(TimingCache, ThreadsMayShareOne)
{
    TimingCache c("dev"), d("dev");
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 200; ++i) {
                (t % 2 ? c : d).insert(std::to_string(i), {uint64_t(i), {}, 1});
                (void)(t % 2 ? c.combine(d, false) : d.combine(c, false));
                (void)c.find(std::to_string(i));
                if (i % 50 == 0)
                    (void)c.serialize();
            }
        });
    for (auto& t : threads)
        t.join();
    (void)c.combine(d, false);
    EXPECT_EQ(c.size(), 200u);
}

struct CacheApi : testing::Test
{
    KeepingLogger logger;
    tw::api::Reporter reporter{&logger};
    tw::api::BuilderConfigObject object{reporter, {"dev", 0}};
    nvinfer1::IBuilderConfig& config = object;
};

TEST_F(CacheApi, RoundTripThroughTheApi)
{
    std::unique_ptr<nvinfer1::ITimingCache> cache(config.createTimingCache(nullptr, 0));
    ASSERT_TRUE(cache);
    tw::api::objectOf(*cache).cache->insert("k", {3, {4}, 5});
    std::unique_ptr<nvinfer1::IHostMemory> bytes(cache->serialize());
    ASSERT_TRUE(bytes);
    EXPECT_GT(bytes->size(), 40u);
    std::unique_ptr<nvinfer1::ITimingCache> copy(config.createTimingCache(bytes->data(), bytes->size()));
    ASSERT_TRUE(copy);
    EXPECT_EQ(tw::api::objectOf(*copy).cache->find("k")->tactic, 3u);
    EXPECT_TRUE(copy->reset());
    EXPECT_EQ(tw::api::objectOf(*copy).cache->size(), 0u);
    EXPECT_TRUE(copy->combine(*cache, false));
    EXPECT_EQ(tw::api::objectOf(*copy).cache->size(), 1u);
    EXPECT_TRUE(config.setTimingCache(*copy, false));
    EXPECT_EQ(config.getTimingCache(), copy.get());
    EXPECT_TRUE(logger.lines.empty());
}

TEST_F(CacheApi, DamagedBytesGiveNull)
{
    char const bytes[] = "no cache at all";
    EXPECT_EQ(config.createTimingCache(bytes, sizeof bytes), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "no timing cache"));
    EXPECT_EQ(config.createTimingCache(nullptr, 3), nullptr);
    EXPECT_EQ(logger.errors(), 2);
}

TEST_F(CacheApi, CacheOfAnotherDevice)
{
    tw::api::TimingCacheObject foreign(reporter, std::make_shared<TimingCache>("gpu"));
    EXPECT_FALSE(config.setTimingCache(foreign, false));
    EXPECT_EQ(config.getTimingCache(), nullptr);
    EXPECT_EQ(logger.warnings(), 1);
    EXPECT_TRUE(config.setTimingCache(foreign, true));
    EXPECT_EQ(config.getTimingCache(), &foreign);
    std::unique_ptr<nvinfer1::ITimingCache> own(config.createTimingCache(nullptr, 0));
    EXPECT_FALSE(own->combine(foreign, false));
    EXPECT_EQ(logger.errors(), 1);
    EXPECT_TRUE(own->combine(foreign, true));
}

} // namespace
