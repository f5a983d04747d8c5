# SPDX-License-Identifier: Apache-2.0
"""What 8.5 names is there, and nothing of it says that it comes later: every entry point of the C++ API, every property and method of
the Python module on a living object, every flag of trtexec (facts: test/surface)."""

import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import warnings

import numpy as np
import pytest
import tensorrt as trt

from named_flags import FLAGS, SHAPED, Files, Flag, names_of
from named_objects import Logger, Outputs, Selector, every_layer, f32
from surface_test import FACTS, FACTS_LIST, lookup, split_top

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(trt.tensorrt.__file__).resolve().parents[2]
# How a call says that its feature comes later. Nothing may say so.
LATER = re.compile(r"not part of (this|the present) version|not available yet|not possible yet|not (yet )?implemented|not built yet|comes? in a later version")


def test_no_message_says_later():
    found = []
    for folder in ("src", "tools", "python", "include"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cpp", ".h", ".def", ".py", ".cuh"):
                for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                    if LATER.search(line):
                        found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not found, "\n".join(found)


def test_entry_points_of_the_cpp_api():
    """What the facts say which library exports; that the headers declare all names, test/surface says."""
    missing, found = [], 0
    for line in (FACTS.parent / "cpp-8.5.txt").read_text(encoding="utf-8").splitlines():
        match = re.match(r"function (\S+?)\(.*\blib=(lib\w+)", line)
        if not match:
            continue
        library = BUILD / "lib" / f"{match[2]}.so.8"
        symbols = subprocess.run(["nm", "-DC", "--defined-only", library], capture_output=True, text=True, check=False).stdout
        name = match[1].rpartition("::")[2] if "extern-C" in line else match[1]
        found += 1
        if not re.search(rf" [TW] {re.escape(name)}(\(|$)", symbols, re.MULTILINE):
            missing.append(f"{match[2]}.so.8: {match[1]}")
    assert not missing and found > 15, missing


def trtexec(arguments):
    result = subprocess.run([BUILD / "bin/trtexec", *arguments], capture_output=True, text=True, timeout=200, check=False, stdin=subprocess.DEVNULL)
    return result.returncode, result.stdout + result.stderr


def check_flag(name, flag, files):
    """What is wrong with it; nothing, when it does what the table says."""
    arguments = [files.filled(a) for a in [*flag.base, *flag.arguments]]
    status, output = trtexec(arguments)
    text = output
    if re.search(r"Unknown option: ", output):
        return "is unknown"
    file, _, pattern = flag.expect.partition(": ")
    if "{%s}" % file in "".join(flag.arguments):
        path = files.path(file)
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    else:
        pattern = flag.expect
    if flag.status is not None and status != flag.status:
        return f"ends with {status}: {output[-1500:]}"
    if status not in (0, 1):
        return f"ends with {status}: {output[-1500:]}"
    if LATER.search(output):
        return f"says that it comes later: {LATER.search(output)}"
    return "" if re.search(pattern, text) else f"does not show '{pattern}': {text[-1500:]}"


def test_flags_of_trtexec(tmp_path):
    names = names_of((FACTS.parent / "trtexec-8.5.txt").read_text(encoding="utf-8"))
    assert len(names) == 82 and set(names) == set(FLAGS), set(names) ^ set(FLAGS)

    def made(arguments):
        status, output = trtexec(arguments)
        assert status == 0, output[-3000:]

    files = Files(tmp_path, made)
    files.path("plugin").symlink_to(BUILD / "lib/libnvinfer_plugin.so.8")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = dict(zip(names, pool.map(lambda n: check_flag(n, FLAGS[n], files), names), strict=True))
    wrong = {n: what for n, what in found.items() if what}
    assert not wrong, "\n".join(f"{n} {what}" for n, what in wrong.items())
    # What is no flag is found out by the same means.
    assert check_flag("--speed", Flag(SHAPED, ["--speed=11"], "."), files) == "is unknown"


# Clients make their own of these, and the library calls them (interfaces_test.py).
CLIENTS = {"ILogger", "IProfiler", "IErrorRecorder", "IGpuAllocator", "IOutputAllocator", "IAlgorithmSelector", "ICaffePluginFactoryV2"}
CLIENTS |= {n for n in dir(trt) if n.startswith("IInt8")}
# Nothing of the module gives one (8.5 neither).
NEVER = {"FallbackString", "FieldCollection"}
# Calls that an object does not live on after, last of all; pointers that are none would be followed, as in 8.5.
LAST = ("clear", "reset", "pop", "remove", "remove_tensor", "terminate", "destroy", "detach_from_context", "__delitem__", "__exit__")
POINTERS = {"IPluginV2.execute_async", "IPluginV2Ext.attach_to_context", "IExecutionContext.device_memory", "FieldMap.data", "PluginField.data"}


class Walk:
    """Reads and sets every property, calls every method, and keeps what was said."""

    def __init__(self):
        self.logger = Logger()
        self.objects, self.used, self.counts, self.said = {}, set(), collections.Counter(), []

    def add(self, thing):
        self.objects.setdefault(type(thing).__name__, thing)

    def attempt(self, what, call):
        """Refusals are answers; one that says "later" is none, and an argument of a wrong type is a fault of this test."""
        before = len(self.logger.lines)
        try:
            result = call()
        except TypeError as error:
            assert "incompatible function arguments" not in str(error), f"{what}: {error}"
            result = error
        except Exception as error:
            result = error
        texts = [*self.logger.lines[before:], str(result) if isinstance(result, Exception) else ""]
        self.said += [f"{what}: {text}" for text in texts if LATER.search(text)]
        return result

    def values(self, kind, name):
        """Arguments of a type of the facts."""
        simple = {
            "int": 0, "float": 1.0, "bool": True, "str": "x", "Buffer": b"abc", "capsule": None, "slice": slice(0, 1), "Iterable": (),
            "list[int]": [0], "list[float]": [-1.0, 1.0], "list[str]": ["x"], "list[bool]": [True], "list[tensorrt.DataType]": [trt.float32],
            "tensorrt.Dims": trt.Dims([1, 3, 8, 8]), "tensorrt.DimsHW": trt.DimsHW(1, 1), "tensorrt.Weights": f32(4), "list": [1], "tuple": (1,),
            "list[tensorrt.Dims]": [trt.Dims([1, 3, 8, 8])], "tuple[tensorrt.NodeIndices, bool]": (trt.NodeIndices([0]), True), "tensorrt.ILogger": self.logger,
        }  # fmt: skip
        if kind in simple:
            return [simple[kind]]
        kind = kind.removeprefix("tensorrt.")
        if kind.startswith("list["):
            return [[value] for value in self.values(kind[5:-1], name)]
        thing = lookup("tensorrt." + kind)
        if hasattr(thing, "__members__"):
            return list(dict.fromkeys(thing.__members__.values()))
        if kind == "ILayer":
            return [self.layer]
        found = [o for o in self.objects.values() if isinstance(o, thing)] or [None] * (kind in CLIENTS)
        assert found, f"no {kind} for {name}"
        return found[:1]

    def call(self, owner, thing, fact):
        name = fact.name.removeprefix("tensorrt.").split(".")[-1]
        kinds = [p.partition("=")[0].partition(":")[2].strip() for p in split_top(fact.rest.split(" | ")[0].partition(")")[0][1:]) if ":" in p]
        if name == "__exit__":
            kinds, choices = [], [[None, None, None]]
        else:
            choices = [self.values(kind, fact.name)[:1] for kind in kinds]
            choices = [[c[0] for c in choices]]
        for i, kind in enumerate(kinds):  # each member of each enumeration
            choices += [[*choices[0][:i], value, *choices[0][i + 1 :]] for value in self.values(kind, fact.name)[1:]]
        for arguments in choices:
            result = self.attempt(f"{owner}.{name}{tuple(arguments)!r}", lambda a=arguments: getattr(thing, name)(*a))
            self.counts["calls"] += 1
        return result

    def property(self, owner, thing, fact):
        name = fact.name.split(".")[-1]
        value = None
        if "write-only" not in fact.rest:
            value = self.attempt(f"{owner}.{name}", lambda: getattr(thing, name))
            self.counts["reads"] += 1
        if "read-only" in fact.rest or f"{owner}.{name}" in POINTERS:
            return
        values = [value]
        if hasattr(type(value), "__members__"):
            values = [*type(value).__members__.values(), value]
        elif value is None or isinstance(value, Exception):
            values = self.values(fact.rest.split(" | ")[0].split("(set:")[-1].strip(" :)"), fact.name)
        for v in values:
            self.attempt(f"{owner}.{name} = {v}", lambda v=v: setattr(thing, name, v))
            self.counts["sets"] += 1

    def walk(self, thing):
        """Everything that its class and the bases of that have."""
        for owner in [c.__name__ for c in type(thing).__mro__]:
            if owner in CLIENTS:
                continue
            facts = [f for f in FACTS_LIST if f.name.startswith(f"tensorrt.{owner}.") and f.name.count(".") == 2]
            facts = [f for f in facts if f.kind in ("property", "method") and not f.name.endswith((".__init__", ".__del__"))]
            facts.sort(key=lambda f: (f.name.split(".")[-1] in LAST, f.kind == "method"))
            for fact in facts:
                short = fact.name.removeprefix("tensorrt.")
                self.used.add(short)
                if isinstance(thing, trt.INetworkDefinition) and ".add_" in short:
                    continue  # every_layer() calls them
                if fact.kind == "property":
                    self.property(owner, thing, fact)
                elif short not in POINTERS:
                    self.call(owner, thing, fact)


CAFFE = b'name: "n" layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } } } '
CAFFE += b'layer { name: "y" type: "ReLU" bottom: "x" top: "y" }'


def living_objects(walk):
    """One of each class in walk.objects."""
    assert trt.init_libnvinfer_plugins(walk.logger, "")
    registry = trt.get_plugin_registry()
    field = trt.PluginField("negSlope", np.array([0.1], np.float32), trt.PluginFieldType.FLOAT32)
    fields = trt.PluginFieldCollection([field])
    creator = registry.get_plugin_creator("LReLU_TRT", "1", "")
    plugin = creator.create_plugin("leaky", trt.PluginFieldCollection_(fields))
    extended = registry.get_plugin_creator("SpecialSlice_TRT", "1", "").create_plugin("slice", trt.PluginFieldCollection_(trt.PluginFieldCollection()))
    builder = trt.Builder(walk.logger)
    network = builder.create_network(1)
    layers = every_layer(network, plugin)
    walk.layers_called = layers.called
    config = builder.create_builder_config()

    small = builder.create_network(1)
    x = small.add_input("x", trt.float32, (1, 3, 8, 8))
    walk.layer = small.add_convolution_nd(x, 4, (1, 1), f32(12), f32(4))
    small.mark_output(walk.layer.get_output(0))
    config.algorithm_selector = Selector(walk.walk)
    config.set_flag(trt.BuilderFlag.REFIT)
    plan = builder.build_serialized_network(small, config)
    assert plan, walk.logger.lines
    config.algorithm_selector = None
    runtime = trt.Runtime(walk.logger)
    engine = runtime.deserialize_cuda_engine(plan)
    inspector, refitter = engine.create_engine_inspector(), trt.Refitter(engine, walk.logger)
    other = builder.create_network(1)
    parser = trt.OnnxParser(other, walk.logger)
    assert not parser.parse(b"no model")
    caffe, of_caffe = trt.CaffeParser(), builder.create_network(1)
    table = walk.attempt("CaffeParser.parse_buffer", lambda: caffe.parse_buffer(CAFFE, b"\n\x01n", of_caffe, trt.float32))
    made = [
        *[t for t in (table,) if isinstance(t, trt.IBlobNameToTensor)], extended, trt.float32, trt.Profiler(), caffe, walk.layer, *[m for m in layers.made if m is not None], x, registry, creator, plugin, field, fields, trt.PluginFieldCollection_(fields),
        network, config, builder, runtime, engine, engine.create_execution_context(), inspector, refitter, plan, builder.create_optimization_profile(),
        config.create_timing_cache(b""), parser, parser.get_error(0), trt.UffParser(), trt.FieldMap("f", 0, trt.FieldType.FLOAT),
        trt.NodeIndices([0]), trt.SubGraphCollection(), trt.Permutation([0, 1]), trt.Weights(f32(2)), trt.Dims([1]), trt.Dims2(1, 2), trt.DimsHW(1, 2),
        trt.Dims3(1, 2, 3), trt.Dims4(1, 2, 3, 4), trt.Logger(trt.Logger.ERROR), Outputs(),
    ]  # fmt: skip
    for thing in made:
        walk.add(thing)
    return builder, other, of_caffe, made


def walk_all(walk):
    """Those last that others stand on."""
    last = ("ICudaEngine", "INetworkDefinition", "IBuilderConfig", "Builder", "Runtime")
    for name in sorted(walk.objects, key=lambda n: (n in last, n)):
        walk.walk(walk.objects[name])


def test_every_object_of_the_module(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    walk = Walk()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        kept = living_objects(walk)
        walk_all(walk)
    assert not walk.said, f"{len(walk.said)} calls say that they come later:\n" + "\n".join(sorted(set(walk.said)))
    classes = {f.name.removeprefix("tensorrt.") for f in FACTS_LIST if f.kind == "class"} - {"IAlgorithm", "IAlgorithmContext", "IAlgorithmIOInfo", "IAlgorithmVariant"}
    adds = {f.name.split(".")[-1] for f in FACTS_LIST if f.name.startswith("tensorrt.INetworkDefinition.add_")}
    assert adds <= walk.layers_called, sorted(adds - walk.layers_called)
    members = {f.name.removeprefix("tensorrt.") for f in FACTS_LIST if f.kind in ("property", "method") and f.name.count(".") == 2}
    skipped = {m for m in members - walk.used if m.split(".")[0] not in CLIENTS | NEVER and not m.endswith((".__init__", ".__del__"))}
    assert not skipped, f"nothing was called of {sorted(skipped)}"
    absent = [c for c in classes - CLIENTS - NEVER if not any(isinstance(o, lookup(f"tensorrt.{c}")) for o in kept[-1])]
    assert not absent, f"there was no {sorted(absent)}"
    assert walk.counts["calls"] > 500 and walk.counts["reads"] > 250 and walk.counts["sets"] > 150, walk.counts
    if os.environ.get("TW_REPORT_DIR"):
        text = f"everything named: {walk.counts['calls']} calls, {walk.counts['reads']} reads and {walk.counts['sets']} sets of the Python module\n"
        pathlib.Path(os.environ["TW_REPORT_DIR"], "everything_named.txt").write_text(text, encoding="utf-8")
    del kept
