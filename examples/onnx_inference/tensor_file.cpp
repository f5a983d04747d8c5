// SPDX-License-Identifier: Apache-2.0
#include "tensor_file.h"

#include <cstring>
#include <stdexcept>

#include <zlib.h>

namespace {

// Protocol buffer wire format: fields of (number << 3 | type). Only the four that a TensorProto of plain data has are
// used.
class WireReader
{
public:
    WireReader(char const* begin, char const* end) : at_(begin), end_(end) {}
    bool atEnd() const { return at_ == end_; }
    uint64_t varint()
    {
        uint64_t v = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            if (at_ == end_)
                throw std::runtime_error("truncated tensor file");
            unsigned char const c = static_cast<unsigned char>(*at_++);
            v |= static_cast<uint64_t>(c & 0x7f) << shift;
            if (!(c & 0x80))
                return v;
        }
        throw std::runtime_error("malformed number in a tensor file");
    }
    std::string block()
    {
        uint64_t const size = varint();
        if (size > static_cast<uint64_t>(end_ - at_))
            throw std::runtime_error("truncated tensor file");
        std::string s(at_, static_cast<size_t>(size));
        at_ += size;
        return s;
    }
    void skip(int wireType)
    {
        if (wireType == 0)
            varint();
        else if (wireType == 2)
            block();
        else if ((wireType == 1 || wireType == 5) && end_ - at_ >= (wireType == 1 ? 8 : 4))
            at_ += wireType == 1 ? 8 : 4;
        else
            throw std::runtime_error("malformed tensor file");
    }

private:
    char const* at_;
    char const* end_;
};

std::string readFile(std::string const& path, bool& exists)
{
    // zlib reads plain files as they are.
    gzFile f = gzopen(path.c_str(), "rb");
    exists = f != nullptr;
    std::string all;
    char buffer[1 << 16];
    while (exists) {
        int const n = gzread(f, buffer, sizeof buffer);
        if (n <= 0)
            break;
        all.append(buffer, static_cast<size_t>(n));
    }
    if (f)
        gzclose(f);
    return all;
}

size_t elementSize(int type)
{
    switch (type) {
    case TensorFile::kFloat32:
    case TensorFile::kInt32:
        return 4;
    case TensorFile::kInt64:
        return 8;
    case TensorFile::kBool:
        return 1;
    default:
        throw std::runtime_error("tensor type " + std::to_string(type) + " is not used by this example");
    }
}

} // namespace

bool readTensorFile(std::string const& path, TensorFile& tensor)
{
    bool exists = false;
    std::string const data = readFile(path, exists);
    if (!exists)
        return false;
    tensor = TensorFile();
    WireReader r(data.data(), data.data() + data.size());
    while (!r.atEnd()) {
        uint64_t const key = r.varint();
        int const field = static_cast<int>(key >> 3), wire = static_cast<int>(key & 7);
        if (field == 1 && wire == 0) {
            tensor.dims.push_back(static_cast<int64_t>(r.varint()));
        } else if (field == 1 && wire == 2) { // packed
            std::string const packed = r.block();
            WireReader list(packed.data(), packed.data() + packed.size());
            while (!list.atEnd())
                tensor.dims.push_back(static_cast<int64_t>(list.varint()));
        } else if (field == 2 && wire == 0) {
            tensor.type = static_cast<int>(r.varint());
        } else if (field == 4 && wire == 2) { // float_data, packed
            tensor.bytes = r.block();
        } else if (field == 9 && wire == 2) { // raw_data
            tensor.bytes = r.block();
        } else {
            r.skip(wire);
        }
    }
    for (int64_t d : tensor.dims)
        if (d < 0 || d > 1 << 28)
            throw std::runtime_error(path + ": dimension " + std::to_string(d));
    if (tensor.bytes.size() != static_cast<size_t>(tensor.count()) * elementSize(tensor.type))
        throw std::runtime_error(path + ": the data do not fit the dimensions");
    return true;
}
