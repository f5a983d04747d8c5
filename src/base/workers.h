// SPDX-License-Identifier: Apache-2.0
// Workers: what kernels share their work out to. The thread pool of the process is one (src/device); tests and the
// interpreter run everything in the calling thread.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace tw {

// A reference to a callable, for calls that end before the callable dies; costs no allocation.
template <class Signature>
class FunctionRef;
template <class R, class... A>
class FunctionRef<R(A...)>
{
public:
    template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, FunctionRef>>>
    FunctionRef(F&& f)
        : object_(const_cast<void*>(static_cast<void const*>(std::addressof(f)))), call_([](void* o, A... a) -> R {
              return (*static_cast<std::remove_reference_t<F>*>(o))(static_cast<A&&>(a)...);
          })
    {}
    R operator()(A... a) const { return call_(object_, static_cast<A&&>(a)...); }

private:
    void* object_;
    R (*call_)(void*, A...);
};

class Workers
{
public:
    virtual ~Workers() = default;
    // Workers that may take part; the caller is number 0.
    virtual int count() const { return 1; }
    // Calls body(part, worker) once for each part in [0, parts), in any order and from several threads at once; two
    // calls at the same time never have the same `worker` (in [0, count())), so that it can choose scratch memory.
    // Returns when all are done. A call from within a body runs its parts in that thread, all with that body's worker.
    virtual void run(int64_t parts, FunctionRef<void(int64_t part, int worker)> body)
    {
        for (int64_t p = 0; p < parts; ++p)
            body(p, 0);
    }
};

// The calling thread alone.
inline Workers& serialWorkers()
{
    static Workers serial;
    return serial;
}

} // namespace tw
