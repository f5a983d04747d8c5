// SPDX-License-Identifier: Apache-2.0
// Another protobuf, of which nobody but its own clients may call anything: names that ours had once, and TensorFlow's has.
#include <cstdlib>

namespace google::protobuf {

class MessageLite
{
public:
    [[gnu::visibility("default")]] bool ParseFromArray(void const* data, int size);
    [[gnu::visibility("default")]] bool ParsePartialFromArray(void const* data, int size);
};

bool MessageLite::ParseFromArray(void const*, int)
{
    std::abort();
}
bool MessageLite::ParsePartialFromArray(void const*, int)
{
    std::abort();
}

} // namespace google::protobuf
