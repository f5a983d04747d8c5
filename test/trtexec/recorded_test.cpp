// SPDX-License-Identifier: Apache-2.0
// Readers of recorded tensors: what they read, and every way in which bytes can be wrong.
#include "recorded.h"

#include <cmath>
#include <filesystem>
#include <random>

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include "failure.h"
#include "files.h"
#include "output_file.h"

namespace tw::trtexec {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytesOf(std::string const& text)
{
    auto const* first = reinterpret_cast<std::byte const*>(text.data());
    return Bytes(first, first + text.size());
}

std::string number(uint64_t value, size_t size)
{
    return std::string(reinterpret_cast<char const*>(&value), size);
}

std::string varint(uint64_t v)
{
    std::string s;
    while (v >= 0x80) {
        s += static_cast<char>(v | 0x80);
        v >>= 7;
    }
    return s + static_cast<char>(v);
}

std::string lengthField(int field, std::string const& body)
{
    return varint(field << 3 | 2) + varint(body.size()) + body;
}
std::string varintField(int field, uint64_t v)
{
    return varint(field << 3) + varint(v);
}

std::string floatBytes(std::vector<float> const& values)
{
    return std::string(reinterpret_cast<char const*>(values.data()), values.size() * sizeof(float));
}

std::string const kRaw2x3 = varintField(1, 2) + varintField(1, 3) + varintField(2, 1) + lengthField(8, "prob") +
                            lengthField(9, floatBytes({1, 2, 3, 4, 5, 6}));

RecordedTensor proto(std::string const& text)
{
    return readTensorProto(bytesOf(text), "t.pb");
}

TEST(TensorProto, RawAndTypedFields)
{
    RecordedTensor const raw = proto(kRaw2x3);
    EXPECT_EQ(raw.name, "prob");
    EXPECT_EQ(raw.dims, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(raw.at(5), 6);

    std::string const dims2 = lengthField(1, varint(2)); // packed
    EXPECT_EQ(proto(dims2 + varintField(2, 1) + lengthField(4, floatBytes({0.5f, -1}))).at(1), -1);
    EXPECT_EQ(
        proto(dims2 + varintField(2, 1) + varint(4 << 3 | 5) + floatBytes({3}) + varint(4 << 3 | 5) + floatBytes({4}))
            .at(1),
        4);
    uint64_t const minusTwo = static_cast<uint64_t>(-2);
    EXPECT_EQ(proto(dims2 + varintField(2, 6) + lengthField(5, varint(7) + varint(minusTwo))).at(1), -2);
    EXPECT_EQ(proto(dims2 + varintField(2, 3) + varintField(5, 7) + varintField(5, minusTwo)).at(1), -2);
    EXPECT_EQ(proto(dims2 + varintField(2, 7) + lengthField(7, varint(7) + varint(minusTwo))).at(1), -2);
    EXPECT_EQ(proto(dims2 + varintField(2, 9) + lengthField(5, varint(0) + varint(1))).at(1), 1);
    EXPECT_EQ(proto(dims2 + varintField(2, 10) + lengthField(5, varint(0) + varint(0x3c00))).at(1), 1);
    double const two[] = {1.5, 2.5};
    EXPECT_EQ(
        proto(dims2 + varintField(2, 11) + lengthField(10, std::string(reinterpret_cast<char const*>(two), 16))).at(1),
        2.5);
    EXPECT_EQ(proto(varintField(2, 1) + lengthField(9, floatBytes({9}))).count(), 1u); // a scalar
    EXPECT_EQ(proto(varintField(1, 0) + varintField(2, 1)).count(), 0u);               // an empty tensor
    EXPECT_EQ(proto(kRaw2x3 + lengthField(12, "a comment")).count(), 6u);              // a field of no interest
}

TEST(TensorProto, WrongBytes)
{
    std::string const f1 = varintField(2, 1);
    std::string const wrong[] = {
        "",                                         // no type
        varintField(2, 8) + lengthField(6, "text"), // strings
        varintField(2, 99),
        f1 + varintField(1, 2) + lengthField(9, floatBytes({1})), // too few
        f1 + varintField(1, 2) + lengthField(4, floatBytes({1, 2, 3})),
        f1 + varintField(1, 2) + lengthField(9, "1234567"),
        f1 + varintField(1, static_cast<uint64_t>(-1)) + lengthField(9, floatBytes({1})),
        f1 + varintField(1, uint64_t{1} << 40) + varintField(1, uint64_t{1} << 40),
        f1 + varintField(1, uint64_t{1} << 62) + varintField(1, 4), // the product wraps to 0
        f1 + varint(9 << 3 | 2) + varint(uint64_t{1} << 63) + "x",  // length past the end
        f1 + varint(9 << 3 | 2) + varint(~uint64_t{0}),
        f1 + lengthField(4, "12345"),   // ends inside a float
        f1 + varint(9 << 3 | 3),        // group
        f1 + std::string(1, '\0'),      // field 0
        std::string(12, '\xff'),        // endless varint
        "\x08\x80",                     // cut off varint
        kRaw2x3 + varintField(14, 1),   // external data
        kRaw2x3 + lengthField(3, ""),   // segments
        varint(2 << 3 | 2) + varint(0), // type with a wrong wire type
        varint(1 << 3 | 5) + "1234" + f1,
    };
    for (std::string const& text : wrong)
        EXPECT_THROW((void)proto(text), Failure) << testing::PrintToString(text);
    for (size_t cut = 0; cut < kRaw2x3.size(); ++cut)
        EXPECT_THROW((void)proto(kRaw2x3.substr(0, cut)), Failure) << cut;
}

std::string npy(std::string const& descr, std::string const& shape, std::string const& data, bool fortran = false)
{
    std::string const header =
        "{'descr': " + descr + ", 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }\n";
    return "\x93NUMPY" + number(1, 2).substr(0, 1) + std::string(1, '\0') + number(header.size(), 2) + header + data;
}

RecordedTensor readNpyText(std::string const& text)
{
    return readNpy(bytesOf(text), "a.npy");
}

TEST(Npy, ReadsAndRefuses)
{
    RecordedTensor const t = readNpyText(npy("'<f4'", "(2, 3)", floatBytes({1, 2, 3, 4, 5, 6})));
    EXPECT_EQ(t.dims, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(t.at(4), 5);
    EXPECT_EQ(readNpyText(npy("'|u1'", "(3,)", "abc")).at(0), 'a');
    EXPECT_EQ(readNpyText(npy("'<i8'", "()", number(static_cast<uint64_t>(-5), 8))).at(0), -5);
    EXPECT_EQ(readNpyText(npy("'<f2'", "(1,)", number(0xc000, 2))).at(0), -2);
    EXPECT_EQ(readNpyText(npy("'<f4'", "(2,)", floatBytes({1, 2}), true)).count(), 2u); // order is one in 1-D

    std::string const good = npy("'<f4'", "(2, 3)", floatBytes({1, 2, 3, 4, 5, 6}));
    for (size_t cut = 0; cut < good.size(); ++cut)
        EXPECT_THROW((void)readNpyText(good.substr(0, cut)), Failure) << cut;
    EXPECT_THROW((void)readNpyText(good + "x"), Failure);
    EXPECT_THROW((void)readNpyText(npy("'>f4'", "(1,)", floatBytes({1}))), Failure);
    EXPECT_THROW((void)readNpyText(npy("'|O'", "(1,)", "12345678")), Failure);
    EXPECT_THROW((void)readNpyText(npy("'<U4'", "(1,)", "12345678")), Failure);
    EXPECT_THROW((void)readNpyText(npy("'<f4'", "(-1,)", floatBytes({1}))), Failure);
    EXPECT_THROW((void)readNpyText(npy("'<f4'", "(a,)", floatBytes({1}))), Failure);
    EXPECT_THROW((void)readNpyText(npy("'<f4'", "(1", floatBytes({1}))), Failure);
    EXPECT_THROW((void)readNpyText(npy("'<f4'", "(4294967296, 4294967296)", "")), Failure);
    EXPECT_THROW((void)readNpyText(npy("'<f4'", "(99999999999999999999,)", "")), Failure);
    EXPECT_THROW((void)readNpyText(npy("'<f4'", "(2, 2)", floatBytes({1, 2, 3, 4}), true)), Failure);
}

std::string deflated(std::string const& text, int windowBits)
{
    z_stream stream{};
    EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, windowBits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::string out(text.size() + 256, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

struct Entry
{
    std::string name;
    std::string data;
    bool compress = false;
};

std::string zip(std::vector<Entry> const& entries)
{
    std::string file;
    std::string directory;
    for (Entry const& e : entries) {
        std::string const body = e.compress ? deflated(e.data, -15) : e.data;
        uint64_t const crc = crc32(0, reinterpret_cast<Bytef const*>(e.data.data()), static_cast<uInt>(e.data.size()));
        std::string const common = number(0, 2) + number(e.compress ? 8 : 0, 2) + number(0, 4) + number(crc, 4) +
                                   number(body.size(), 4) + number(e.data.size(), 4) + number(e.name.size(), 2);
        directory += number(0x02014b50, 4) + number(20, 2) + number(20, 2) + common + number(0, 2) + number(0, 2) +
                     number(0, 2) + number(0, 2) + number(0, 4) + number(file.size(), 4) + e.name;
        file += number(0x04034b50, 4) + number(20, 2) + common + number(4, 2) + e.name + "XTRA" + body;
    }
    return file + directory + number(0x06054b50, 4) + number(0, 4) + number(entries.size(), 2) +
           number(entries.size(), 2) + number(directory.size(), 4) + number(file.size(), 4) + number(0, 2);
}

TEST(Npz, StoredAndDeflated)
{
    std::string const a = npy("'<f4'", "(2,)", floatBytes({1, 2}));
    std::string const b = npy("'<i4'", "(1, 1)", number(7, 4));
    auto const tensors = readNpz(bytesOf(zip({{"y.npy", a}, {"arr_0.npy", b, true}})), "r.npz");
    ASSERT_EQ(tensors.size(), 2u);
    EXPECT_EQ(tensors[0].name, "y");
    EXPECT_EQ(tensors[0].at(1), 2);
    EXPECT_EQ(tensors[1].name, "arr_0");
    EXPECT_EQ(tensors[1].at(0), 7);
}

TEST(Npz, DamagedBytesNeverCrash)
{
    std::string const good = zip({{"y.npy", npy("'<f4'", "(2,)", floatBytes({1, 2}))},
                                  {"z.npy", npy("'<f4'", "(64,)", floatBytes(std::vector<float>(64, 3))), true}});
    for (size_t cut = 0; cut < good.size(); ++cut)
        EXPECT_THROW((void)readNpz(bytesOf(good.substr(0, cut)), "r.npz"), Failure) << cut;
    std::mt19937 random(20260101);
    for (int i = 0; i < 20000; ++i) {
        std::string bad = good;
        for (int flips = 1 + i % 3; flips > 0; --flips)
            bad[random() % bad.size()] = static_cast<char>(random());
        try {
            (void)readNpz(bytesOf(bad), "r.npz");
        } catch (Failure const&) {
        }
        std::string badProto = kRaw2x3;
        badProto[random() % badProto.size()] = static_cast<char>(random());
        try {
            (void)proto(badProto);
        } catch (Failure const&) {
        }
    }
}

TEST(Inflate, StopsAtTheLimit)
{
    std::string const zeros(1 << 22, '\0'); // 4 MiB in about 4 KiB
    Bytes const packed = bytesOf(deflated(zeros, 31));
    EXPECT_EQ(inflateAll(packed, 31, zeros.size(), "z").size(), zeros.size());
    EXPECT_THROW((void)inflateAll(packed, 31, zeros.size() - 1, "z"), Failure);
    EXPECT_THROW((void)inflateAll(std::span(packed).first(packed.size() / 2), 31, zeros.size(), "z"), Failure);
    EXPECT_THROW((void)inflateAll(bytesOf("not gzip"), 31, 100, "z"), Failure);
    EXPECT_THROW((void)inflateAll({}, 31, 100, "z"), Failure);
}

class Folder : public testing::Test
{
protected:
    void SetUp() override
    {
        path_ = std::filesystem::temp_directory_path() / ("trtexec_test_" + std::to_string(getpid()));
        std::filesystem::create_directories(path_);
    }
    void TearDown() override { std::filesystem::remove_all(path_); }
    std::string file(std::string const& name) const { return (path_ / name).string(); }
    std::filesystem::path path_;
};

TEST_F(Folder, ReadsPlainAndGzippedSets)
{
    writeFile(file("output_0.pb"), kRaw2x3);
    writeFile(file("output_1.pb.gz"), deflated(kRaw2x3, 31));
    writeFile(file("output_3.pb"), kRaw2x3); // after a gap: not part of the set
    EXPECT_EQ(readRecorded(path_.string(), "output").size(), 2u);
    EXPECT_THROW((void)readRecorded(path_.string(), "input"), Failure);
    EXPECT_THROW((void)readRecorded(file("none.npz"), "output"), Failure);
    EXPECT_THROW((void)readRecorded(file("output_0.pb"), "output"), Failure);
    writeFile(file("r.npz"), zip({{"y.npy", npy("'<f4'", "(1,)", floatBytes({1}))}}));
    EXPECT_EQ(readRecorded(file("r.npz"), "output").size(), 1u);
}

TEST_F(Folder, WritesWholeFilesOrNone)
{
    writeFile(file("a"), "one");
    writeFile(file("a"), "two!");
    EXPECT_EQ(readFile(file("a")), bytesOf("two!"));
    EXPECT_THROW(writeFile(file("missing/a"), "x"), Failure);
    EXPECT_THROW(checkWritable(file("missing/a")), Failure);
    checkWritable(file("b")); // leaves nothing, see below
    std::filesystem::create_directory(path_ / "taken");
    EXPECT_THROW(writeFile(file("taken"), "x"), Failure); // a folder stands there
    size_t files = 0;
    for ([[maybe_unused]] auto const& entry : std::filesystem::directory_iterator(path_))
        ++files;
    EXPECT_EQ(files, 2u); // "a" and "taken": no temporary file is left
    EXPECT_THROW((void)readFile(file("taken")), Failure);
    EXPECT_THROW((void)readFile(file("nothing")), Failure);
    EXPECT_THROW((void)readFile(file("a"), 3), Failure);
    writeFile(file("empty"), "");
    EXPECT_THROW(MappedFile(file("empty")), Failure);
    EXPECT_EQ(MappedFile(file("a")).size(), 4u);
}

TEST(Match, ByNameElseByPosition)
{
    std::vector<RecordedTensor> tensors(2);
    tensors[0].name = "b";
    tensors[1].name = "a";
    std::vector<std::string> const ab = {"a", "b"};
    EXPECT_EQ(matchRecorded(tensors, ab, "r"), (std::vector<size_t>{1, 0}));
    std::vector<std::string> const other = {"c", "d"};
    EXPECT_EQ(matchRecorded(tensors, other, "r"), (std::vector<size_t>{0, 1}));
    std::vector<std::string> const mixed = {"a", "d"};
    EXPECT_THROW((void)matchRecorded(tensors, mixed, "r"), Failure);
    std::vector<std::string> const three = {"c", "d", "e"};
    EXPECT_THROW((void)matchRecorded(tensors, three, "r"), Failure);
    EXPECT_EQ(matchRecorded(tensors, std::vector<std::string>{"a"}, "r"), std::vector<size_t>{1});
}

TEST(Half, ConvertsBothWays)
{
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        double const value = halfToDouble(static_cast<uint16_t>(bits));
        if (!std::isnan(value)) {
            EXPECT_EQ(doubleToHalf(value), bits);
        }
    }
    EXPECT_EQ(doubleToHalf(65519), 0x7bff);
    EXPECT_EQ(doubleToHalf(65520), 0x7c00);
    EXPECT_EQ(doubleToHalf(1 + 0x1p-11), 0x3c00);     // tie to even: down
    EXPECT_EQ(doubleToHalf(1 + 3 * 0x1p-11), 0x3c02); // tie to even: up
    EXPECT_EQ(doubleToHalf(0x1p-25), 0);
    EXPECT_EQ(doubleToHalf(std::nan("")) & 0x7fff, 0x7e00);
}

} // namespace
} // namespace tw::trtexec
