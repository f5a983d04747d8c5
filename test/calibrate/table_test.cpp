// SPDX-License-Identifier: Apache-2.0
// The caches' texts: what is written is read, and what is wrong is refused with its line.
#include "calibrate/table.h"

#include <gtest/gtest.h>

#include "calibrate/histogram.h"

namespace tw::test {

using namespace calibrate;

TEST(Table, TextOfEightFive)
{
    std::string const text = "TRT-8503-EntropyCalibration2\nimages: 3c010204\n(Unnamed Layer* 64) [Shuffle]_output: "
                             "3d0a1b2c\na: b: 40000000\nempty: 0\n";
    auto const table = readTable(text);
    ASSERT_TRUE(table.ok()) << table.error().message;
    EXPECT_EQ(table->version, 8503);
    EXPECT_EQ(table->algorithm, "EntropyCalibration2");
    ASSERT_EQ(table->scales.size(), 4u);
    EXPECT_EQ(table->scales[0], std::pair(std::string("images"), 1.f / 127));
    EXPECT_EQ(table->scales[1].first, "(Unnamed Layer* 64) [Shuffle]_output");
    EXPECT_EQ(table->scales[2], std::pair(std::string("a: b"), 2.f));
    EXPECT_EQ(table->scales[3].second, 0);
    EXPECT_EQ(writeTable(*table), text);
}

TEST(Table, LineEndsAndTerminators)
{
    std::string const text = "TRT-7103-MinMaxCalibration\r\nx: 3C010204\r\n";
    for (std::string const& t : {text, text + '\0', text.substr(0, text.size() - 2)}) {
        auto const table = readTable(t);
        ASSERT_TRUE(table.ok()) << table.error().message;
        EXPECT_EQ(table->algorithm, "MinMaxCalibration");
        EXPECT_EQ(table->scales, (decltype(table->scales){{"x", 1.f / 127}}));
    }
    EXPECT_TRUE(readTable("TRT-8503-EntropyCalibration2")->scales.empty());
}

// What is left of a number is a number, too.
TEST(Table, CutWithinTheLastNumber)
{
    std::string const text = "TRT-8503-EntropyCalibration2\na: 3c010204\nx: 3d010204";
    EXPECT_TRUE(readTable(text).ok());
    EXPECT_TRUE(readTable(text.substr(0, text.size() - 8) + "0").ok());
    for (size_t n = 1; n < 8; ++n) {
        auto const table = readTable(text.substr(0, text.size() - n));
        ASSERT_FALSE(table.ok()) << n;
        EXPECT_NE(table.error().message.find("of 8 digits and no line end: it has been cut"), std::string::npos)
            << table.error().message;
    }
}

TEST(Table, NamesOfAlgorithms)
{
    EXPECT_STREQ(nameOf(Algorithm::kLegacy), "LegacyCalibration");
    EXPECT_STREQ(nameOf(Algorithm::kEntropy), "EntropyCalibration");
    EXPECT_STREQ(nameOf(Algorithm::kEntropy2), "EntropyCalibration2");
    EXPECT_STREQ(nameOf(Algorithm::kMinMax), "MinMaxCalibration");
}

TEST(Table, WhatIsWrongIsNamed)
{
    std::string const first = "TRT-8503-EntropyCalibration2\n";
    std::pair<std::string, char const*> const wrong[] = {
        {"", "it is empty"},
        {std::string(1, '\0'), "it is empty"},
        {"\n", "line 1"},
        {"x: 3c010204\n", "line 1"},
        {"TRT-8503\n", "line 1"},
        {"TRT-8503-\n", "line 1"},
        {"TRT--8503-EntropyCalibration2\n", "line 1"},
        {"TRT-x-EntropyCalibration2\n", "line 1"},
        {"TRT-99999999999-EntropyCalibration2\n", "line 1"},
        {"TRT-8503-Entropy Calibration\n", "line 1"},
        {first + "x 3c010204\n", "line 2: 'x 3c010204'"},
        {first + "x:3c010204\n", "line 2"},
        {first + "x: \n", "hexadecimal"},
        {first + "x: 3c01020g\n", "hexadecimal"},
        {first + "x: -3c01020\n", "hexadecimal"},
        {first + "x: 0x3c0102\n", "hexadecimal"},
        {first + "x: 3c0102040\n", "hexadecimal"},
        {first + "x: 3c010204 \n", "hexadecimal"},
        {first + "\nx: 3c010204\n", "line 2"},
        {first + "x: 7fc00000\n", "positive normal number"}, // NaN
        {first + "x: 7f800000\n", "positive normal number"}, // infinity
        {first + "x: bf800000\n", "positive normal number"}, // -1
        {first + "x: 80000000\n", "positive normal number"}, // -0
        {first + "x: 1\n", "positive normal number"},        // 1e-45
        {first + "x: 3c010204\ny: 3c010204\nx: 3c010205\n",
         "line 4: 'x: 3c010205' is about a tensor that stands above"},
        {first + "x\x01y 3c010204\n", "x?y"},
    };
    for (auto const& [text, part] : wrong) {
        auto const table = readTable(text);
        ASSERT_FALSE(table.ok()) << text;
        EXPECT_NE(table.error().message.find(part), std::string::npos) << table.error().message;
        EXPECT_EQ(table.error().message.find("calibration cache"), 0u) << table.error().message;
    }
}

TEST(Table, NamesThatCannotStandThere)
{
    EXPECT_TRUE(isWritable("a: b [c]"));
    for (std::string const& name : {std::string("a\nb"), std::string("a\r"), std::string("a\0b", 3)})
        EXPECT_FALSE(isWritable(name));
}

TEST(HistogramText, IsReadAsItWasWritten)
{
    Tensor t(DataType::kFloat, {1000});
    for (int i = 0; i < 1000; ++i)
        t.ref().set(i, i % 3 == 0 ? 0 : (i - 500) * 0.37);
    NamedHistograms list{{"x", {}}, {"y: z", {}}, {"zeros", {}}};
    Tally tally(serialWorkers());
    tally.add(t.ref(), list[0].second);
    t.ref().set(0, 1e6);
    tally.add(t.ref(), list[1].second);
    tally.add(t.ref(), list[1].second);
    list[1].second.isFinite = false;
    std::string const text = writeHistograms(list, 8503);
    auto const read = readHistograms(text);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(*read, list);
    // Cut short it is refused, and with one byte changed it is refused or it is other histograms; never something else.
    for (size_t n = 0; n < text.size(); ++n)
        EXPECT_FALSE(readHistograms(text.substr(0, n)).ok()) << n;
    std::string const half = text.substr(0, text.find('\n', text.find('\n') + 1) + 1); // at the end of a line
    EXPECT_NE(readHistograms(half).error().message.find("it has been cut: there are 1 of 3 tensors"),
              std::string::npos);
    for (size_t n = 0; n + 1 < text.size(); n += 7) {
        std::string other = text;
        other[n] = char(other[n] ^ 5);
        auto const changed = readHistograms(other);
        EXPECT_TRUE(!changed.ok() || readHistograms(writeHistograms(*changed, 1)).ok()) << n;
    }
    EXPECT_FALSE(readHistograms("TRT-8503-EntropyCalibration2\nx: 3c010204\n").ok());
}

} // namespace tw::test
