# SPDX-License-Identifier: Apache-2.0
"""The module against the facts of the 8.5 Python API: every line of python-8.5.txt."""

import collections
import inspect
import os
import pathlib
import re

import pytest
import tensorrt

FACTS = pathlib.Path(__file__).parents[1] / "surface" / "python-8.5.txt"


def split_top(text, separator=","):
    """Splits where no bracket is open."""
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == separator and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return parts + [part.strip()] if part.strip() else parts


class Fact(collections.namedtuple("Fact", "line number kind name rest")):
    """One line: its kind, the full name, and what follows."""

    def __str__(self):
        return f"{self.number}: {self.line}"


def facts():
    found = []
    for number, line in enumerate(FACTS.read_text().splitlines(), 1):
        match = re.match(r"(class|enum|value|method|property|constant|function|override|implicit) (\S+?)([( ].*|)$", line)
        if line and not line.startswith("#"):
            assert match, f"{FACTS}:{number} cannot be read"
            found.append(Fact(line, number, *match.groups()))
    return found


FACTS_LIST = facts()


def lookup(name):
    thing = tensorrt
    for part in name.split(".")[1:]:
        thing = (
            inspect.getattr_static(thing, part)
            if inspect.isclass(thing) and not hasattr(thing, "__members__")
            else getattr(thing, part)
        )
    return thing


def parameters(text):
    """[(name or None, has a default)] without self, from "(self, a: int = 1) -> int"."""
    inner = (
        text[1 : text.rindex(")", 0, (text + " ->").index(" ->", text.index(")")))]
        if "->" in text
        else text[1 : text.rindex(")")]
    )
    result = []
    for part in split_top(inner):
        if part in ("/", "*"):
            continue
        name = part.split(":")[0].split("=")[0].strip()
        if name in ("self", "this"):
            continue
        result.append((None if re.fullmatch(r"arg\d*", name) else name, "=" in part.split(":", 1)[-1]))
    return result


def signatures(function):
    """The same of each overload of a function of the module."""
    if hasattr(function, "__nb_signature__"):
        return [parameters(re.sub(r"^def \w+", "", s[0])) for s in function.__nb_signature__]
    return [
        [
            (p.name, p.default is not p.empty)
            for p in inspect.signature(function).parameters.values()
            if p.name not in ("self", "this")
        ]
    ]


def check_class(fact):
    thing = lookup(fact.name)
    assert inspect.isclass(thing) and thing.__doc__
    if fact.rest.startswith("("):
        base = lookup(fact.rest[1 : fact.rest.index(")")])
        assert issubclass(thing, base) and thing is not base


def check_enum(fact):
    thing = lookup(fact.name)
    assert inspect.isclass(thing) and thing.__doc__ and thing.__members__
    members = list(dict.fromkeys(thing.__members__.values()))
    for member in members:
        assert thing(member.value) is member and int(member) == member.value and member.name in thing.__members__
        assert member == member and member != member.value
        if "ordered" in fact.rest:
            for other in members:
                assert (member < other) == (member.value < other.value) and (member >= other) == (member.value >= other.value)
                assert (member > other) == (member.value > other.value) and (member <= other) == (member.value <= other.value)


def check_value(fact):
    owner, _, member = fact.name.rpartition(".")
    thing = lookup(owner)
    assert thing.__members__[member].value == int(fact.rest.split("=")[1]) and getattr(thing, member) is thing.__members__[member]


def check_property(fact):
    thing = lookup(fact.name)
    if not isinstance(thing, property):  # a number of the class, which its objects cannot change
        assert isinstance(thing, int) and "read-only" in fact.rest
        return
    assert thing.__doc__ or (thing.fset or thing.fget).__doc__
    assert (thing.fget is None) == ("write-only" in fact.rest)
    assert (thing.fset is None) == ("read-only" in fact.rest)


def check_callable(fact):
    thing = lookup(fact.name)
    if fact.name.endswith(".__init__") and not hasattr(thing, "__nb_signature__"):
        raise AssertionError("no constructor")
    assert callable(thing) and thing.__doc__
    # Python's own grammar knows no parameter without default behind one with.
    expected = [
        (name, has or any(d for _, d in all_[:i]))
        for all_ in [parameters(fact.rest.split(" | ")[0])]
        for i, (name, has) in enumerate(all_)
    ]
    for found in signatures(thing):
        if len(found) == len(expected) and all((e[0] is None or e[0] == f[0]) and e[1] == f[1] for e, f in zip(expected, found)):
            return
    raise AssertionError(f"parameters are {signatures(thing)}, expected {expected}")


def check_constant(fact):
    thing = lookup(fact.name)
    if fact.rest.startswith(" = "):
        expected = lookup(fact.rest[3:].split(" | ")[0])
        assert thing is expected or thing == expected
    else:
        assert fact.name == "tensorrt.__version__" and thing == "8.5.3.1"


def check_override(fact):
    # That it is called is the matter of callbacks_test.py; here, that the module knows the name.
    owner, _, method = fact.name.rpartition(".")
    assert inspect.isclass(lookup(owner))
    assert method.encode() + b"\0" in pathlib.Path(tensorrt.tensorrt.__file__).read_bytes()


def check_implicit(fact):
    import numpy

    target = fact.rest.split("-> tensorrt.")[1].split(" ")[0]
    network = tensorrt.Builder(tensorrt.Logger()).create_network(1)
    x = network.add_input("x", tensorrt.float32, (1, 2, 4, 4))
    if target == "Weights":
        assert network.add_constant((2,), numpy.zeros(2, numpy.float32)).shape == (2,)
    elif target == "DimsHW":
        with pytest.warns(DeprecationWarning):
            assert network.add_pooling(x, tensorrt.PoolingType.MAX, [2, 2]) and network.add_pooling(
                x, tensorrt.PoolingType.MAX, (2, 2)
            )
    elif target == "Permutation":
        layer = network.add_shuffle(x)
        for order in ([0, 2, 3, 1], (0, 2, 3, 1)):
            layer.first_transpose = order
            assert layer.first_transpose[3] == 1
    elif target.startswith("Dims"):
        rank = int(target[4:] or 3)
        for shape in ([7] * rank, (7,) * rank):
            assert getattr(tensorrt, target)(shape) == shape
        assert network.add_input("y", tensorrt.float32, [1, 2]).shape == (1, 2)
    elif target == "PluginFieldCollection_":
        assert len(tensorrt.PluginFieldCollection_(tensorrt.PluginFieldCollection([tensorrt.PluginField("a")]))) == 1
    elif target == "FallbackString":
        assert tensorrt.PluginField("a").name == "a"
    else:
        raise AssertionError("unknown conversion")


CHECKS = {
    "class": check_class,
    "enum": check_enum,
    "value": check_value,
    "property": check_property,
    "method": check_callable,
    "function": check_callable,
    "constant": check_constant,
    "override": check_override,
    "implicit": check_implicit,
}


def test_every_line():
    failures, counts = [], collections.Counter()
    for fact in FACTS_LIST:
        try:
            CHECKS[fact.kind](fact)
            counts[fact.kind] += 1
        except (AssertionError, AttributeError, KeyError) as error:
            failures.append(f"{fact}\n    {type(error).__name__}: {error}")
    total = len(FACTS_LIST)
    report = f"{sum(counts.values())} of {total} declarations of the 8.5 Python API: " + ", ".join(
        f"{n} {k}" for k, n in sorted(counts.items())
    )
    if os.environ.get("TW_REPORT_DIR"):
        pathlib.Path(os.environ["TW_REPORT_DIR"], "python_surface.txt").write_text(report + "\n")
    assert not failures, f"{len(failures)} of {total} lines are not met:\n" + "\n".join(failures[:60])
    assert total == 1240, "the list of facts is cut"


def test_nothing_else():
    """What programs see is what 8.5 has."""
    known = {f.name.split(".")[1].split("(")[0] for f in FACTS_LIST if f.kind not in ("implicit",)}
    public = {n for n in dir(tensorrt) if not n.startswith("_")}
    assert public - known <= {"tensorrt", "warnings", "hostcuda"}, sorted(public - known)
    assert set(tensorrt.__all__) <= known, sorted(set(tensorrt.__all__) - known)
    for name in sorted(known - {"__version__"}):
        thing = getattr(tensorrt, name)
        if inspect.isclass(thing) and not hasattr(thing, "__members__"):
            members = {f.name.split(".")[2].split("(")[0] for f in FACTS_LIST if f.name.startswith(f"tensorrt.{name}.")}
            own = {n for n in vars(thing) if not n.startswith("_")}
            assert own <= members, (name, sorted(own - members))


def test_the_check_catches():
    """Each kind of check refuses what is not there."""
    for line in (
        "class tensorrt.Nothing",
        "class tensorrt.Dims3(tensorrt.ILayer)",
        "value tensorrt.DataType.FLOAT = 1",
        "property tensorrt.Dims3.q : int | read-only",
        "property tensorrt.ITensor.name : str | read-only",
        "method tensorrt.Builder.create_network(self, flag: int = 0) -> None",
        "method tensorrt.Builder.create_network(self, flags: int) -> None",
        "constant tensorrt.float32 = tensorrt.DataType.HALF",
        "override tensorrt.ILogger.never_a_method(x)",
        "function tensorrt.volume(a, b)",
    ):
        match = re.match(r"(\w+) (\S+?)([( ].*|)$", line)
        with pytest.raises((AssertionError, AttributeError, KeyError)):
            CHECKS[match.group(1)](Fact(line, 0, *match.groups()))
