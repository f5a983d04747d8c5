#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generate compile-time checks of a TensorRT 8.5 compatible header set from cpp-8.5.txt.

  make_surface_check.py                         write surface_check.cpp beside cpp-8.5.txt
  make_surface_check.py --per-class DIR         write one small translation unit per declaration group
  make_surface_check.py --per-class DIR --run "g++ -std=c++17 -fsyntax-only -w -I..." [-j N]
                                                also compile each, and report N of M groups
  make_surface_check.py --list                  list the groups

Build the result with -DONLY_<HEADER> (for example -DONLY_NvInferRuntime) to check one header by
itself; with -DSURFACE_EXACT to check exact member function types too, and not only that the listed
calls are valid; with -DSURFACE_EXACT -DSURFACE_LINK for an object that links only where every function
is defined, those of libraries that are not built (MISSING_LIBRARIES) aside. -w silences the warnings that deprecated declarations give.
"""
import argparse
import concurrent.futures
import os
import re
import shlex
import subprocess
import sys

MISSING_LIBRARIES = ("libnvinfer_safe", "libnvinfer_checker", "none")

HERE = os.path.dirname(os.path.abspath(__file__))

PRELUDE = r'''#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <type_traits>
#include <utility>

// A call on an object: valid, of the listed return type, and noexcept where listed.
#define SURFACE_CALL(id, decl, Obj, Nothrow, Ret, ...)                                                                 \
    template <class O, class = void>                                                                                   \
    struct call_##id                                                                                                   \
    {                                                                                                                  \
        static constexpr bool valid = false, returns = true, nothrow = true;                                           \
    };                                                                                                                 \
    template <class O>                                                                                                 \
    struct call_##id<O, std::void_t<decltype(std::declval<O>().__VA_ARGS__)>>                                          \
    {                                                                                                                  \
        static constexpr bool valid = true;                                                                            \
        static constexpr bool returns = std::is_same_v<decltype(std::declval<O>().__VA_ARGS__), Ret>;                  \
        static constexpr bool nothrow = !(Nothrow) || noexcept(std::declval<O>().__VA_ARGS__);                         \
    };                                                                                                                 \
    static_assert(call_##id<Obj>::valid, "no such call: " decl);                                                       \
    static_assert(call_##id<Obj>::returns, "other return type: " decl);                                                \
    static_assert(call_##id<Obj>::nothrow, "not noexcept: " decl);

// The exact type of a member function.
#ifdef SURFACE_EXACT
#define SURFACE_PMF(id, decl, Cls, name, ...)                                                                          \
    template <class O, class = void>                                                                                   \
    struct pmf_##id : std::false_type                                                                                  \
    {                                                                                                                  \
    };                                                                                                                 \
    template <class O>                                                                                                 \
    struct pmf_##id<O, std::void_t<decltype(static_cast<__VA_ARGS__>(&O::name))>> : std::true_type                     \
    {                                                                                                                  \
    };                                                                                                                 \
    static_assert(pmf_##id<Cls>::value, "other signature: " decl);                                                     \
    SURFACE_MEMBER_ADDRESS(id, Cls, name, __VA_ARGS__)
#else
#define SURFACE_PMF(...)
#endif

// For a program that links: needs the definitions of what is declared.
#ifdef SURFACE_LINK
#define SURFACE_MEMBER_ADDRESS(id, Cls, name, ...)                                                                     \
    template <class O>                                                                                                 \
    auto member_##id()                                                                                                 \
    {                                                                                                                  \
        return static_cast<__VA_ARGS__>(&O::name);                                                                     \
    }                                                                                                                  \
    auto volatile address_##id = member_##id<Cls>();
#define SURFACE_ADDRESS(id, ...) auto volatile address_##id = &__VA_ARGS__;
#else
#define SURFACE_MEMBER_ADDRESS(...)
#define SURFACE_ADDRESS(...)
#endif

// An enumerator or a static constant, and its value.
#define SURFACE_VALUE(id, decl, Owner, name, v)                                                                        \
    template <class O, class = void>                                                                                   \
    struct value_##id                                                                                                  \
    {                                                                                                                  \
        static constexpr bool exists = false, equal = true;                                                            \
    };                                                                                                                 \
    template <class O>                                                                                                 \
    struct value_##id<O, std::void_t<decltype(O::name)>>                                                               \
    {                                                                                                                  \
        static constexpr bool exists = true;                                                                           \
        static constexpr bool equal = static_cast<long long>(O::name) == (v);                                          \
    };                                                                                                                 \
    static_assert(value_##id<Owner>::exists, "no such value: " decl);                                                  \
    static_assert(value_##id<Owner>::equal, "other value: " decl);

// A data member and its type.
#define SURFACE_FIELD(id, decl, Cls, name, ...)                                                                        \
    template <class O, class = void>                                                                                   \
    struct field_##id                                                                                                  \
    {                                                                                                                  \
        static constexpr bool exists = false, same = true;                                                             \
    };                                                                                                                 \
    template <class O>                                                                                                 \
    struct field_##id<O, std::void_t<decltype(O::name)>>                                                               \
    {                                                                                                                  \
        static constexpr bool exists = true;                                                                           \
        static constexpr bool same = std::is_same_v<decltype(O::name), __VA_ARGS__>;                                   \
    };                                                                                                                 \
    static_assert(field_##id<Cls>::exists, "no such field: " decl);                                                    \
    static_assert(field_##id<Cls>::same, "other type: " decl);
'''


class Decl:
    """One line of cpp-8.5.txt."""

    def __init__(self, line):
        self.line = line
        head, _, tail = line.partition(" | ")
        self.head = head
        self.kind, _, self.rest = head.partition(" ")
        tags, self.args = tail, []
        m = re.match(r"(?:(.*?); )?args: (.*)$", tail)
        if m:
            tags, self.args = m.group(1) or "", split_top(m.group(2))
        self.tags = tags.split()
        self.note = tail
        if self.kind in ("method", "assign", "ctor", "dtor", "function"):
            m = re.match(r"([^(]+)\((.*)\)((?: const)?(?: &)?(?: noexcept)?)(?: -> (.*))?$", self.rest)
            self.qual, params, quals, self.ret = m.groups()
            self.params = split_top(params)
            self.const = " const" in quals
            self.nothrow = "noexcept" in quals
            self.lref = " &" in quals
            self.owner, self.name = self.qual.rsplit("::", 1) if "::" in self.qual else ("", self.qual)

    def text(self):
        return self.head.replace("\\", "\\\\").replace('"', '\\"')

    def has(self, tag):
        return tag in self.tags


def split_top(s):
    out, depth, cur = [], 0, ""
    for ch in s:
        if ch in "(<[{":
            depth += 1
        if ch in ")>]}":
            depth -= 1
        if ch == "," and depth == 0:
            out.append(cur.strip())
            cur = ""
        else:
            cur += ch
    if cur.strip():
        out.append(cur.strip())
    return out


class Group:
    def __init__(self, header, name, kind):
        self.header, self.name, self.kind, self.decls = header, name, kind, []


class Surface:
    def __init__(self, path):
        self.headers, self.includes, self.groups, self.aliases, self.classes = [], {}, [], {}, {}
        index, enums = {}, {}
        header = None

        def group(name, kind):
            key = (header, name)
            if key not in index:
                index[key] = Group(header, name, kind)
                self.groups.append(index[key])
            return index[key]

        for line in open(path):
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                continue
            d = Decl(line)
            if d.kind == "inline":
                continue
            if d.kind == "header":
                header, _, inc = d.rest.partition(" : includes ")
                self.headers.append(header)
                self.includes[header] = inc.split()
                continue
            d.header = header
            if d.kind == "macro":
                group("macros", "macros").decls.append(d)
            elif d.kind == "class":
                name, _, bases = d.rest.partition(" : ")
                d.name, d.bases = name, [b.split(" ", 1) for b in split_top(bases)]
                g = group(name, "class")
                g.decls.append(d)
                self.classes[name] = g
            elif d.kind == "enum":
                d.name, d.under = d.rest.split(" : ")
                owner = d.name.rsplit("::", 1)[0]
                g = self.classes.get(owner) or group(d.name, "enum")
                enums[d.name] = g
                g.decls.append(d)
            elif d.kind == "value":
                d.owner, d.name = d.rest.split(" = ")[0].rsplit("::", 1)
                d.value = d.rest.split(" = ")[1]
                enums[d.owner].decls.append(d)
            elif d.kind == "enummax":
                d.name, d.value = d.rest.split(" = ")
                enums[d.name].decls.append(d)
            elif d.kind == "using":
                d.owner, d.name = d.rest.split(" = ")[0].rsplit("::", 1)
                d.source = d.rest.split(" = ")[1]
                self.classes[d.owner].decls.append(d)
            elif d.kind == "alias":
                d.name, d.target = d.rest.split(" = ", 1)
                self.aliases[d.name] = d.target
                owner = d.name.rsplit("::", 1)[0]
                (self.classes.get(owner) or group("aliases", "aliases")).decls.append(d)
            elif d.kind in ("const", "field"):
                q, _, d.type = d.rest.partition(" : ")
                d.owner, d.name = q.rsplit("::", 1) if "::" in q else ("", q)
                if d.kind == "const":
                    d.type, d.value = re.match(r"static (?:constexpr |const )?(.*) = (.*)$", d.type).groups()
                g = self.classes.get(d.owner) or group("constants", "constants")
                g.decls.append(d)
            elif d.kind == "forward":
                d.key, d.name = d.rest.split(" ")
                group("aliases", "aliases").decls.append(d)
            elif d.kind == "function":
                group("functions", "functions").decls.append(d)
            else:
                self.classes[d.owner].decls.append(d)

    def canon(self, t):
        t = t.replace("std::size_t", "size_t").replace("std::int32_t", "int32_t")
        while True:
            n = re.sub(r"[A-Za-z_][\w]*(?:::\w+)*", lambda m: self.aliases.get(m.group(0), m.group(0)), t)
            if n == t:
                return t
            t = n

    def class_decl(self, name):
        return self.classes[self.canon(name)].decls[0]

    def methods(self, name):
        return [d for d in self.classes[self.canon(name)].decls if d.kind == "method"]

    def key(self, d):
        return d.name, tuple(self.canon(p) for p in d.params), d.const

    def virtuals(self, name):
        """key -> the declaration of the final overrider that the class has."""
        out = {}
        for _, base in self.class_decl(name).bases:
            out.update(self.virtuals(base))
        for d in self.methods(name):
            if d.has("virtual") or self.key(d) in out:
                out[self.key(d)] = d
        return out

    def closure(self, header):
        seen = []
        todo = list(self.includes[header])
        while todo:
            h = todo.pop(0)
            if h in self.includes and h not in seen:
                seen.append(h)
                todo += self.includes[h]
        return seen


def cname(s):
    return re.sub(r"\W+", "_", s).strip("_")


def val(t):
    return "std::declval<%s>()" % t


def override_text(d):
    return "%s %s(%s)%s%s override { std::abort(); }" % (
        d.ret, d.name, ", ".join(d.params), " const" if d.const else "", " noexcept" if d.nothrow else "")


class Writer:
    def __init__(self, surface):
        self.s, self.n, self.out = surface, 0, []

    def id(self):
        self.n += 1
        return self.n

    def w(self, text):
        self.out.append(text)

    def creator(self, name):
        pures = [d for d in self.s.virtuals("nvinfer1::IPluginCreator").values() if d.has("pure")]
        self.w("struct %s : nvinfer1::IPluginCreator\n{" % name)
        for d in pures:
            self.w("    " + override_text(d))
        self.w("};")

    def call(self, d, obj, cls, kind="method"):
        nargs = len(d.params)
        ndef = 0
        for a in reversed(d.args):
            if "=" not in a:
                break
            ndef += 1
        for k in range(nargs, nargs - ndef - 1, -1):
            expr = "%s(%s)" % (d.name, ", ".join(val(p) for p in d.params[:k]))
            note = "" if k == nargs else " [with %d arguments]" % k
            self.w('SURFACE_CALL(%d, "%s%s", %s, %d, %s, %s)' % (
                self.id(), d.text(), note, obj, d.nothrow, d.ret, expr))

    def hidden(self, name):
        """(base, method) for each method name that the class overrides in private and a base has in public."""
        names = []
        for d in self.s.methods(name):
            if d.has("private") and d.name not in names:
                names.append(d.name)
        out = []
        for m in names:
            todo = [b for _, b in self.s.class_decl(name).bases]
            while todo:
                base = todo.pop(0)
                todo += [b for _, b in self.s.class_decl(base).bases]
                if any(d.name == m and not d.has("private") and not d.has("protected") for d in self.s.methods(base)):
                    out.append((base, m))
                    break
        return out

    def do_class(self, g):
        s, c = self.s, g.decls[0]
        name = c.name
        if any(t.startswith("template<") for t in c.tags):
            self.creator("Creator")
            self.w('static_assert(std::is_default_constructible_v<%s<Creator>>, "%s");' % (name, c.text()))
            return
        for access, base in c.bases:
            self.w('static_assert(std::is_base_of_v<%s, %s>, "no such base: %s");' % (base, name, c.text()))
            if access == "public":
                self.w('static_assert(std::is_convertible_v<%s*, %s*>, "base not public: %s");' % (name, base, c.text()))
        if c.has("aggregate"):
            self.w('static_assert(std::is_aggregate_v<%s>, "not an aggregate: %s");' % (name, c.text()))
        if c.has("polymorphic"):
            self.w("#ifdef SURFACE_EXACT")
            self.w('static_assert(std::is_polymorphic_v<%s> && !std::is_abstract_v<%s>, "%s");' % (name, name, c.text()))
            self.w("#endif")
        methods = [d for d in g.decls if d.kind == "method"]
        virt = s.virtuals(name)
        pures = [d for d in virt.values() if d.has("pure")]
        probe = name
        if c.has("abstract"):
            self.w('static_assert(std::is_abstract_v<%s>, "not abstract: %s");' % (name, c.text()))
            tag = "OVERRIDE_%s_" % cname(name)
            for i, d in enumerate(pures):
                self.w("#define %s%d %s" % (tag, i, override_text(d)))
            self.w("struct All : %s\n{" % name)
            for i in range(len(pures)):
                self.w("    %s%d" % (tag, i))
            self.w("};")
            self.w('static_assert(!std::is_abstract_v<All>, "has more pure virtuals than listed: %s");' % c.text())
            for i, d in enumerate(pures):
                self.w("struct But%d : %s { %s };" % (
                    i, name, " ".join("%s%d" % (tag, j) for j in range(len(pures)) if j != i)))
                self.w('static_assert(std::is_abstract_v<But%d>, "not pure in %s: %s");' % (i, name, d.text()))
            soft = [d for d in virt.values() if not d.has("pure") and not d.has("final") and not d.has("private")]
            if soft:
                self.w("struct Soft : All\n{")
                for d in soft:
                    self.w("    " + override_text(d))
                self.w("};")
            probe = "All"
            hidden = self.hidden(name)
            if hidden:
                self.w("// Plugins bring the names that the class hides back like this.")
                self.w("struct Unhide : All\n{")
                for base, m in hidden:
                    self.w("    using %s::%s;" % (base, m))
                self.w("};")
            self.w('static_assert(std::is_default_constructible_v<All>, "cannot be derived from and made: %s");' % c.text())
            self.w("inline void make()\n{\n    All object;\n    static_cast<void>(object);\n}")
            self.address("make")
        elif any(d.kind == "ctor" and d.has("protected") for d in g.decls):
            self.w("struct Probe : %s\n{\n};" % name)
            probe = "Probe"
            if c.has("polymorphic"):
                self.w("inline void* make()\n{\n    return new Probe;\n}")
                self.address("make")
        opened = sorted({d.name for d in methods if d.has("protected")})
        if opened:
            self.w("struct Open : %s\n{" % name)
            for m in opened:
                self.w("    using %s::%s;" % (name, m))
            self.w("};")
        order = []
        for d in g.decls[1:]:
            if d.has("private"):
                continue
            if d.kind == "method":
                obj = "Open" if d.has("protected") else name
                obj = "%s const&" % obj if d.const else "%s&" % obj
                self.call(d, obj, name)
                if not d.has("protected"):
                    self.w('SURFACE_PMF(%d, "%s", %s, %s, %s (O::*)(%s)%s%s)' % (
                        self.id(), d.text(), name, d.name, d.ret, ", ".join(d.params),
                        " const" if d.const else "", " noexcept" if d.nothrow else ""))
            elif d.kind == "using":
                base, m = d.source.rsplit("::", 1)
                for b in s.methods(base):
                    if b.name == m:
                        self.w('SURFACE_CALL(%d, "%s", %s, %d, %s, %s(%s))' % (
                            self.id(), d.text(), "%s const&" % name if b.const else "%s&" % name, b.nothrow, b.ret,
                            b.name, ", ".join(val(p) for p in b.params)))
            elif d.kind == "field":
                self.w('SURFACE_FIELD(%d, "%s", %s, %s, %s)' % (self.id(), d.text(), name, d.name, d.type))
                order.append(d.name)
            elif d.kind == "const":
                self.w('SURFACE_VALUE(%d, "%s", %s, %s, %s)' % (self.id(), d.text(), name, d.name, d.value))
                self.w('static_assert(std::is_same_v<decltype(%s::%s), %s const>, "other type: %s");' % (
                    name, d.name, d.type, d.text()))
            elif d.kind == "ctor":
                self.do_ctor(d, name, c, probe)
            elif d.kind == "assign":
                ok = "" if not d.has("deleted") else "!"
                src = "const %s&" % probe if "const" in d.params[0] else "%s&&" % probe
                self.w('static_assert(%sstd::is_assignable_v<%s&, %s>, "%s");' % (ok, probe, src, d.text()))
            elif d.kind == "dtor":
                if d.has("virtual"):
                    self.w('static_assert(std::has_virtual_destructor_v<%s>, "not virtual: %s");' % (name, d.text()))
                if d.has("protected"):
                    self.w('static_assert(!std::is_destructible_v<%s>, "not protected: %s");' % (name, d.text()))
                else:
                    self.w('static_assert(std::is_nothrow_destructible_v<%s>, "not public: %s");' % (name, d.text()))
            else:
                self.do_plain(d)
        for a, b in zip(order, order[1:]):
            self.w('static_assert(offsetof(%s, %s) < offsetof(%s, %s), "other field order: %s: %s, %s");' % (
                name, a, name, b, name, a, b))

    def do_ctor(self, d, name, c, probe):
        copy = len(d.params) == 1 and self.s.canon(d.params[0]) in ("const %s&" % name, "%s&&" % name)
        if copy:
            ok = "!" if d.has("deleted") else ""
            src = "const %s&" % probe if "const" in d.params[0] else "%s&&" % probe
            self.w('static_assert(%sstd::is_constructible_v<%s, %s>, "%s");' % (ok, probe, src, d.text()))
            return
        nargs, ndef = len(d.params), 0
        for a in reversed(d.args):
            if "=" not in a:
                break
            ndef += 1
        for k in range(nargs, nargs - ndef - 1, -1):
            ps = "".join(", " + p for p in d.params[:k])
            self.w('static_assert(std::is_constructible_v<%s%s>, "no such constructor: %s");' % (probe, ps, d.text()))
            if d.nothrow:
                self.w('static_assert(std::is_nothrow_constructible_v<%s%s>, "not noexcept: %s");' % (probe, ps, d.text()))

    def do_plain(self, d):
        if d.kind == "enum":
            self.w('static_assert(std::is_enum_v<%s> && !std::is_convertible_v<%s, int>, "%s");' % (d.name, d.name, d.text()))
            self.w('static_assert(std::is_same_v<std::underlying_type_t<%s>, %s>, "%s");' % (d.name, d.under, d.text()))
        elif d.kind == "value":
            self.w('SURFACE_VALUE(%d, "%s", %s, %s, %s)' % (self.id(), d.text(), d.owner, d.name, d.value))
        elif d.kind == "enummax":
            f = "%s::EnumMax<%s>()" % (d.name.split("::")[0], d.name)
            if d.has("not-constexpr"):
                self.w('static_assert(std::is_same_v<decltype(%s), int32_t>, "%s");' % (f, d.text()))
            else:
                self.w('static_assert(%s == %s && noexcept(%s), "%s");' % (f, d.value, f, d.text()))
        elif d.kind == "alias":
            self.w('static_assert(std::is_same_v<%s, %s>, "%s");' % (d.name, d.target, d.text()))
        elif d.kind == "forward":
            self.w('static_assert(std::is_class_v<std::remove_pointer_t<%s*>>, "%s");' % (d.name, d.text()))
        elif d.kind == "const":
            q = (d.owner + "::" if d.owner else "::") + d.name
            self.w('static_assert(%s == %s, "%s");' % (q, d.value, d.text()))
            self.w('static_assert(std::is_same_v<decltype(%s), %s const>, "%s");' % (q, d.type, d.text()))
        elif d.kind == "macro":
            nm = re.match(r"\w+", d.rest).group(0)
            self.w('#ifndef %s\n#error "no such macro: %s"\n#endif' % (nm, nm))
            if " = " in d.rest:
                self.w('static_assert(%s == %s, "%s");' % (nm, d.rest.split(" = ")[1], d.text()))
            elif nm == "NV_TENSORRT_VERSION":
                self.w('static_assert(NV_TENSORRT_VERSION == 8503 && std::is_same_v<std::decay_t<decltype(NV_TENSORRT_VERSION)>, int32_t>, "%s");' % d.text())
            elif nm == "TRT_DEPRECATED":
                self.w("TRT_DEPRECATED void useDeprecated();\nclass TRT_DEPRECATED UseDeprecated;")
            elif nm == "TRT_DEPRECATED_ENUM":
                self.w("enum class UseDeprecatedEnum\n{\n    kOLD TRT_DEPRECATED_ENUM = 1\n};")
            elif nm == "TRT_DEPRECATED_API":
                self.w("TRT_DEPRECATED_API void useDeprecatedApi();")
            elif nm == "TENSORRTAPI":
                self.w("TENSORRTAPI void useApi();")
            elif nm == "TRTNOEXCEPT":
                self.w("struct UseNoexcept\n{\n    virtual void f() TRTNOEXCEPT;\n};")
            elif nm.startswith("REGISTER_"):
                self.creator("Creator" + nm)
                self.w("#ifndef SURFACE_LINK // the creator's methods must not be called\n%s(Creator%s);\n#endif" % (nm, nm))
        else:
            raise SystemExit("no check for: " + d.line)

    def function(self, d):
        """Checks outside any namespace (a redeclaration needs its own scope)."""
        if any(t.startswith("template<") for t in d.tags):
            return
        ndef = 0
        for a in reversed(d.args):
            if "=" not in a:
                break
            ndef += 1
        q = d.qual if "::" in d.qual else "::" + d.qual
        for k in range(len(d.params), len(d.params) - ndef - 1, -1):
            e = "%s(%s)" % (q, ", ".join(val(p) for p in d.params[:k]))
            self.w('static_assert(std::is_same_v<decltype(%s), %s>, "other return type: %s");' % (e, d.ret, d.text()))
            if d.nothrow:
                self.w('static_assert(noexcept(%s), "not noexcept: %s");' % (e, d.text()))
        if not d.has("inline"):
            sig = "%s%s %s(%s)%s;" % ('extern "C" ' if d.has("extern-C") else "", d.ret, d.name, ", ".join(d.params),
                                    " noexcept" if d.nothrow else "")
            if d.owner:
                sig = "namespace %s\n{\n%s\n}" % (d.owner, sig)
            self.w("// Declares it again: an error here means other linkage, another signature or another noexcept.")
            self.w(sig)
            if not any(d.has("lib=" + library) for library in MISSING_LIBRARIES):
                self.w("namespace surface_functions\n{")
                self.address(q)
                self.w("}")

    def address(self, what):
        self.w("SURFACE_ADDRESS(%d, %s)" % (self.id(), what))

    def group(self, g):
        self.w("// %s" % g.name)
        funcs = [d for d in g.decls if d.kind == "function"]
        for d in funcs:
            self.function(d)
        if not funcs:
            self.w("namespace surface_%s\n{" % cname(g.header[:-2] + "_" + g.name))
            if g.kind == "class":
                self.do_class(g)
            else:
                for d in g.decls:
                    self.do_plain(d)
            self.w("}")
        self.w("")


def includes_checks(s, header):
    """Each header that this one includes must have come along."""
    out = []
    for h in s.closure(header):
        for g in s.groups:
            if g.header == h and g.kind == "class" and not any(t.startswith("template<") for t in g.decls[0].tags):
                out.append('static_assert(sizeof(%s) > 0, "%s must include %s");' % (g.name, header, h))
                break
        else:
            for g in s.groups:
                if g.header == h and g.kind == "macros":
                    out.append('#ifndef %s\n#error "%s must include %s"\n#endif' % (
                        re.match(r"\w+", g.decls[0].rest).group(0), header, h))
                    break
    return out


BANNER = "// Generated by make_surface_check.py from cpp-8.5.txt: change those, not this file.\n"


def whole(s):
    out = [BANNER]
    names = [h[:-2] for h in s.headers]
    out.append("#if !(%s)" % " || ".join("defined(ONLY_%s)" % n for n in names))
    out.append("#define SURFACE_ALL\n#endif\n")
    for h in s.headers:
        out.append('#if defined(SURFACE_ALL) || defined(ONLY_%s)\n#include "%s"\n#endif' % (h[:-2], h))
    out.append("\n" + PRELUDE)
    w = Writer(s)
    for h in s.headers:
        w.w("//\n// %s\n//" % h)
        w.w("#if defined(SURFACE_ALL) || defined(ONLY_%s)\n" % h[:-2])
        for t in includes_checks(s, h):
            w.w(t)
        for g in s.groups:
            if g.header == h:
                w.group(g)
        w.w("#endif // %s\n" % h)
    return "\n".join(out + w.out).rstrip("\n") + "\n"


def one(s, g):
    w = Writer(s)
    w.group(g)
    return "\n".join([BANNER, '#include "%s"\n' % g.header, PRELUDE] + w.out).rstrip("\n") + "\n"


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--facts", default=os.path.join(HERE, "cpp-8.5.txt"))
    ap.add_argument("--out", default=os.path.join(HERE, "surface_check.cpp"))
    ap.add_argument("--per-class", metavar="DIR")
    ap.add_argument("--run", metavar="COMPILER_COMMAND")
    ap.add_argument("-j", type=int, default=os.cpu_count())
    ap.add_argument("--list", action="store_true")
    ap.add_argument("--report", metavar="FILE", help="with --run: the counts go there too")
    a = ap.parse_args()
    s = Surface(a.facts)
    if a.list:
        for g in s.groups:
            print(g.header, g.kind, g.name, len(g.decls))
        return 0
    if not a.per_class:
        with open(a.out, "w") as f:
            f.write(whole(s))
        return 0
    os.makedirs(a.per_class, exist_ok=True)
    files = []
    for g in s.groups:
        p = os.path.join(a.per_class, cname(g.header[:-2]) + "__" + cname(g.name) + ".cpp")
        with open(p, "w") as f:
            f.write(one(s, g))
        files.append((g, p))
    if not a.run:
        return 0
    cmd = shlex.split(a.run)

    def build(item):
        r = subprocess.run(cmd + [item[1]], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        return item, r.returncode, r.stderr

    good, good_classes, classes = 0, 0, 0
    with concurrent.futures.ThreadPoolExecutor(a.j) as pool:
        for (g, p), rc, err in pool.map(build, files):
            good += rc == 0
            classes += g.kind == "class"
            good_classes += g.kind == "class" and rc == 0
            if rc:
                first = [l for l in err.splitlines() if "error" in l][:1]
                print("FAIL %s %s: %s" % (g.header, g.name, first[0].split("error: ")[-1] if first else "exit %d" % rc))
    counts = "%d of %d classes compile; %d of %d groups compile" % (good_classes, classes, good, len(files))
    print(counts)
    if a.report:
        os.makedirs(os.path.dirname(a.report), exist_ok=True)
        with open(a.report, "w", encoding="utf-8") as f:
            f.write(counts + "\n")
    return 0 if good == len(files) else 1


if __name__ == "__main__":
    sys.exit(main())
