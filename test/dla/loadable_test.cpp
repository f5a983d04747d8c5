// SPDX-License-Identifier: Apache-2.0
#include "dla/loadable.h"

#include <gtest/gtest.h>

using namespace tw;
using namespace tw::dla;

namespace {

std::string sample(std::string const& plan = std::string(300, 'p'))
{
    Loadable l{Model::kOrin, {}, plan};
    l.tensors = {{"x", true, 1, 9, 2, 3, 10, 21, 3840, {2, 64, 640, 1920}},
                 {"y", false, 2, 5, 1, 33, 4, 4, 1024, {32, 128, 512, 1024}}};
    auto packed = pack(l);
    EXPECT_TRUE(packed.ok());
    return packed.ok() ? *packed : std::string();
}

TEST(Loadable, RoundTrip)
{
    std::string const bytes = sample();
    EXPECT_TRUE(isLoadable(bytes.data(), bytes.size()));
    EXPECT_FALSE(isLoadable(bytes.data(), 7));
    EXPECT_FALSE(isLoadable(nullptr, 100));
    auto read = unpack(bytes.data(), bytes.size());
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->model, Model::kOrin);
    EXPECT_EQ(read->plan, std::string(300, 'p'));
    EXPECT_EQ((read->plan.data() - bytes.data()) % 256, 0);
    ASSERT_EQ(read->tensors.size(), 2u);
    EXPECT_EQ(read->tensors[0], (LoadableTensor{"x", true, 1, 9, 2, 3, 10, 21, 3840, {2, 64, 640, 1920}}));
    EXPECT_EQ(read->tensors[1].name, "y");
    EXPECT_EQ(read->tensors[1].c, 33);
    std::string const more = bytes + "behind it";
    EXPECT_TRUE(unpack(more.data(), more.size()).ok());
}

TEST(Loadable, LongNames)
{
    Loadable l{Model::kXavier, {}, "plan"};
    l.tensors = {{std::string(kMostNameBytes, 'n'), true, 1, 9, 1, 1, 1, 1, 64, {}}};
    auto fits = pack(l);
    ASSERT_TRUE(fits.ok());
    EXPECT_EQ(unpack(fits->data(), fits->size())->tensors[0].name.size(), kMostNameBytes);
    l.tensors[0].name += "n";
    auto packed = pack(l);
    ASSERT_FALSE(packed.ok());
    EXPECT_NE(packed.error().message.find("81 bytes"), std::string::npos) << packed.error().message;
}

// Every byte of header, tables and the plan's beginning, changed in two ways; every length.
TEST(Loadable, DamageIsAnError)
{
    std::string const bytes = sample();
    for (size_t i = 0; i < bytes.size(); ++i)
        for (int change : {1, 0x80}) {
            std::string bad = bytes;
            bad[i] = char(bad[i] ^ change);
            EXPECT_FALSE(unpack(bad.data(), bad.size()).ok()) << "byte " << i;
        }
    for (size_t size = 0; size < bytes.size(); ++size)
        EXPECT_FALSE(unpack(bytes.data(), size).ok()) << size << " bytes";
    EXPECT_FALSE(unpack(nullptr, 0).ok());
}

} // namespace
