# SPDX-License-Identifier: Apache-2.0
"""tensorwright serve over HTTP: answers against NumPy's, batches, limits, plans that change, and requests that are none."""

import concurrent.futures
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import zlib

import numpy as np
import pytest
import tensorrt as trt

pytest.importorskip("aiohttp", reason="SKIP: aiohttp is not installed (tensorwright[serve])")
pytest.importorskip("prometheus_client", reason="SKIP: prometheus_client is not installed (tensorwright[serve])")

from serving import X, affine, ask, binary, get, infer, network, served, tensor  # noqa: E402
from tensorwright import _programs  # noqa: E402
from tensorwright.serve import Limits, Options, served as queue  # noqa: E402


def typed():
    """A plan of inputs and outputs of several types: a scalar, bools, halves, 32-bit integers."""

    def add(net, s, b, h, i):
        flip = net.add_unary(b, trt.UnaryOperation.NOT).get_output(0)
        double = net.add_elementwise(i, i, trt.ElementWiseOperation.SUM).get_output(0)
        half = net.add_elementwise(h, h, trt.ElementWiseOperation.SUM).get_output(0)
        negative = net.add_unary(s, trt.UnaryOperation.NEG).get_output(0)
        return {"s2": negative, "b2": flip, "h2": half, "i2": double}

    types = {"s": (trt.float32, ()), "b": (trt.bool, (3,)), "h": (trt.float16, (2, 3)), "i": (trt.int32, (1, 2, 2))}
    return network(add, types)


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    """A folder: scale.plan is y = 2x + 1, other.plan y = 3x - 1, types.plan typed(), mixes.plan y = x - mean of all rows."""
    folder = tmp_path_factory.mktemp("plans")
    (folder / "scale.plan").write_bytes(affine(2, 1))
    (folder / "other.plan").write_bytes(affine(3, -1))
    (folder / "types.plan").write_bytes(typed())

    def mixes(net, x):
        mean = net.add_reduce(x, trt.ReduceOperation.AVG, 1, True).get_output(0)
        return {"y": net.add_elementwise(x, mean, trt.ElementWiseOperation.SUB).get_output(0)}

    plan = network(mixes, {"x": (trt.float32, (-1, 5))}, {"x": [(1, 5), (4, 5), (16, 5)]})
    (folder / "mixes.plan").write_bytes(plan)
    return folder


@pytest.fixture(scope="module")
def server(plans):
    options = Options(batch=8, batch_delay=0.001)
    with served(plans / "scale.plan", f"typed={plans / 'types.plan'}", options=Options()) as both:
        with served(plans / "scale.plan", options=options) as batched:
            both.batched = batched
            yield both


def x_of(rows, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, 5)).astype(np.float32)


@pytest.fixture
def gate(monkeypatch):
    """Runs wait until the event is set; `begun` counts them."""
    event, run = threading.Event(), queue._Instance.run
    event.begun = threading.Semaphore(0)

    def held(self, jobs):
        event.begun.release()
        assert event.wait(60)
        return run(self, jobs)

    monkeypatch.setattr(queue._Instance, "run", held)
    yield event
    event.set()


def test_health_and_metadata(server):
    assert ask(server, "GET", "/v2/health/live")[0] == ask(server, "GET", "/v2/health/ready")[0] == 200
    assert get(server, "/v2")["name"] == "tensorwright"
    tensors = [{"name": "x", "datatype": "FP32", "shape": [-1, 5]}]
    about = get(server, "/v2/models/scale")
    assert about["inputs"] == tensors and about["versions"] == ["1"] and about["outputs"][0]["name"] == "y"
    assert [t["datatype"] for t in get(server, "/v2/models/typed")["inputs"]] == ["FP32", "BOOL", "FP16", "INT32"]
    assert get(server, "/v2/models/scale/config")["max_batch_size"] == 0
    assert get(server.batched, "/v2/models/scale/versions/1/config")["input"][0]["dims"] == [5]
    assert ask(server, "GET", "/v2/models/typed/versions/1/ready")[0] == 200
    for path in ("models/none", "models/scale/versions/2", "models/scale/versions/x/ready", "models", "models/none/stats"):
        status, _, body = ask(server, "GET", "/v2/" + path)
        assert status == 404 and json.loads(body)["error"], path
    assert ask(server, "GET", "/v2/models/scale/infer")[0] == 405


def test_numbers_and_bytes(server):
    x = x_of(3)
    status, value = infer(server, "scale", {"id": "a", "inputs": [tensor("x", x)]})
    assert status == 200 and value["id"] == "a" and value["model_version"] == "1"
    np.testing.assert_allclose(np.array(value["outputs"][0]["data"]).reshape(3, 5), 2 * x + 1, rtol=1e-6)
    flat = {**tensor("x", x), "data": x.ravel().tolist()}
    assert infer(server, "scale", {"inputs": [flat]}, "1")[1]["outputs"] == value["outputs"]
    for parameters in ({"binary_data_output": True}, None):
        more = {"parameters": parameters} if parameters else {"outputs": [{"name": "y", "parameters": {"binary_data": True}}]}
        body, headers = binary({"x": ("FP32", x)}, **more)
        status, headers, body = ask(server, "POST", "/v2/models/scale/infer", body, headers)
        at = int(headers["Inference-Header-Content-Length"])
        assert status == 200 and json.loads(body[:at])["outputs"][0]["parameters"] == {"binary_data_size": 60}
        np.testing.assert_array_equal(np.frombuffer(body[at:], np.float32).reshape(3, 5), 2 * x + 1)


@pytest.mark.parametrize("whole", [False, True])
def test_types(server, whole):
    """whole: as bytes, the integers as 64-bit ones, which ONNX models declare; else as numbers."""
    random = np.random.default_rng(3)
    values = {
        "s": np.float32(-2.5),
        "b": np.array([True, False, True]),
        "h": random.standard_normal((2, 3)).astype(np.float16),
        "i": random.integers(-9, 9, (1, 2, 2)).astype(np.int64 if whole else np.int32),
    }
    names = {"s": "FP32", "b": "BOOL", "h": "FP16", "i": "INT64" if whole else "INT32"}
    if whole:
        body, headers = binary({n: (names[n], np.asarray(values[n])) for n in values}, outputs=[{"name": n + "2"} for n in values])
        status, _, body = ask(server, "POST", "/v2/models/typed/infer", body, headers)
        answer = json.loads(body)
    else:
        inputs = [{**tensor(n, np.asarray(v), names[n]), "data": np.ravel(v).tolist()} for n, v in values.items()]
        status, answer = infer(server, "typed", {"inputs": inputs})
    assert status == 200, answer
    got = {t["name"]: np.array(t["data"]).reshape(t["shape"]) for t in answer["outputs"]}
    assert [t["datatype"] for t in answer["outputs"]] == ["FP32", "BOOL", "FP16", "INT32"]
    expected = {"s2": -values["s"], "b2": ~values["b"], "h2": 2 * values["h"], "i2": 2 * values["i"]}
    for name, y in expected.items():
        np.testing.assert_array_equal(got[name], y)


BAD = [
    (b"", "inputs is a list"),
    (b"{", "no JSON"),
    (b"[" * 100000, "no JSON"),
    (b"\xff\xfe{}", "no JSON"),
    (b'{"inputs": ' + b"9" * 5000 + b"}", "no JSON"),
    (b"[]", "a JSON object"),
    ({"inputs": [X, X]}, "given twice"),
    ({"inputs": [{**X, "name": "z"}]}, "no input 'z' (inputs: x)"),
    ({"inputs": []}, "input 'x' is missing"),
    ({"inputs": [3]}, "inputs is a list of tensors"),
    ({"inputs": [{**X, "shape": [1, 6]}]}, "does not fill"),
    ({"inputs": [{**X, "shape": [5]}]}, "input 'x' has the shape [5], the model takes [-1, 5], from [1, 5] to [16, 5]"),
    ({"inputs": [{**X, "shape": [-1, 5]}]}, "-1 is no dimension"),
    ({"inputs": [{**X, "shape": [2**40, 2**40]}]}, "is no dimension"),
    ({"inputs": [{**X, "shape": [2**31 - 1] * 8}]}, "input 'x': no array can have the shape [2147483647, "),
    ({"inputs": [{**X, "shape": [0, 2**31 - 1, 2**31 - 1, 2**31 - 1]}]}, "input 'x': no array can have the shape [0, 2147483647, "),
    ({"inputs": [{**X, "shape": [1] * 100}]}, "at most 8"),
    ({"inputs": [{**X, "shape": [True, 5]}]}, "True is no dimension"),
    ({"inputs": [{**X, "shape": "5"}]}, "shape is a list"),
    ({"inputs": [{**X, "datatype": "FP64"}]}, "datatype FP64 is taken by no engine"),
    ({"inputs": [{**X, "datatype": ["FP32"]}]}, "is none"),
    ({"inputs": [{**X, "datatype": "INT32"}]}, "input 'x' is INT32, the model takes FP32"),
    ({"inputs": [{**X, "data": [[1, 2], [3]]}]}, "no tensor"),
    ({"inputs": [{**X, "data": [1, 2, 3, 4, None]}]}, "data of FP32 is numbers"),
    ({"inputs": [{**X, "data": ["1"] * 5}]}, "data of FP32 is numbers"),
    ({"inputs": [{**X, "data": "12345"}]}, "data is a list"),
    ({"inputs": [{**X, "data": ["a" * 4000] + ["b"] * 4}]}, "data of FP32 is numbers"),
    ({"inputs": [{**X, "data": [[[1], [2]], 3]}]}, "no tensor"),
    ({"inputs": [{**X, "data": [[[[]]]]}]}, "data of shape [1, 1, 1, 0] does not fill the shape [1, 5]"),
    ({"inputs": [{**X, "data": [10**400] * 5}]}, "data of FP32 is numbers"),
    ({"inputs": [X], "outputs": [{"name": "z"}]}, "no output 'z' (outputs: y)"),
    ({"inputs": [X], "outputs": [{"name": "y"}] * 1000}, "output 'y' is asked for twice"),
    ({"inputs": [X], "outputs": [{"name": "y"}] * 4000}, "the request names 4000 outputs (limit: 1024)"),
    ({"inputs": [X], "outputs": [{"name": 3}]}, "no name of an output"),
    ({"inputs": [X], "outputs": [{"name": "y", "parameters": {"classification": 3}}]}, "'classification' is not supported"),
    ({"inputs": [X], "parameters": {"timeout": -1}}, "not less than 0"),
    ({"inputs": [X], "parameters": {"sequence_id": 4}}, "not supported"),
    ({"inputs": [X], "parameters": [1]}, "parameters are an object"),
    ({"inputs": [{**X, "parameters": {"binary_data_size": 20}}]}, "0 bytes are left"),
    ({"inputs": [{**X, "parameters": {"binary_data_size": -1}}]}, "binary_data_size is -1"),
    ({"inputs": [{**X, "parameters": {"binary_data_size": "20"}}]}, "a whole number"),
    ({"inputs": [{**X, "parameters": {"shared_memory_region": "r"}}]}, "shared memory is off"),
    ({"inputs": [X], "id": 5}, "'id' is text"),
]


@pytest.mark.parametrize("body,text", BAD, ids=range(len(BAD)))
def test_bad_requests(server, body, text):
    for each in (server, server.batched):
        status, value = infer(each, "scale", body)
        assert status in (400, 403) and text in value["error"] and len(value["error"]) < 500, value
    status, value = infer(server, "scale", {"inputs": [X]})
    assert status == 200 and value["outputs"][0]["data"] == [3, 5, 7, 9, 11]


def test_bytes_that_lie(server):
    x = x_of(2)
    body, headers = binary({"x": ("FP32", x)})
    for change, text in ((body + b"1", "belong to no input"), (body[:-1], "39 bytes are left")):
        status, _, answer = ask(server, "POST", "/v2/models/scale/infer", change, headers)
        assert status == 400 and text in json.loads(answer)["error"]
    for length in ("-1", "9" * 30, "x", "²", "1.5", str(len(body) + 1)):
        try:
            status, _, answer = ask(server, "POST", "/v2/models/scale/infer", body, {"Inference-Header-Content-Length": length})
        except UnicodeEncodeError:
            continue
        assert status == 400 and json.loads(answer)["error"], length
    bools, headers = binary({"b": ("BOOL", np.array([0, 1, 2], np.uint8))})
    assert b"a byte of 0 or 1" in ask(server, "POST", "/v2/models/typed/infer", bools, headers)[2]
    ints = {**tensor("i", np.zeros((1, 2, 2), np.int64), "INT64"), "data": [0, 0, 0, 2**31]}
    inputs = [tensor("s", np.float32(0)), tensor("b", np.ones(3, bool), "BOOL"), tensor("h", np.zeros((2, 3)), "FP16"), ints]
    inputs[0]["data"] = [0.0]
    assert "do not fit into INT32" in infer(server, "typed", {"inputs": inputs})[1]["error"]
    inputs[3] = {**ints, "datatype": "INT32"}
    assert "data beyond INT32" in infer(server, "typed", {"inputs": inputs})[1]["error"]


def test_batches(plans):
    with served(plans / "scale.plan", options=Options(batch=8, batch_delay=0.2)) as server:
        with concurrent.futures.ThreadPoolExecutor(16) as pool:

            def one(i):
                x = x_of(1 + i % 3, i)
                status, value = infer(server, "scale", {"inputs": [tensor("x", x)]})
                assert status == 200, value
                return np.abs(np.array(value["outputs"][0]["data"]).reshape(x.shape) - (2 * x + 1)).max()

            assert max(pool.map(one, range(48))) < 1e-5
        stats = get(server, "/v2/models/scale/stats")["model_stats"][0]
        rows = sum(1 + i % 3 for i in range(48))
        assert stats["inference_count"] == rows and stats["inference_stats"]["success"]["count"] == 48
        # Sixteen clients keep eight rows waiting most of the time.
        assert rows / 8 <= stats["execution_count"] < 40
        text = ask(server, "GET", "/metrics")[2].decode()
        assert f'tensorwright_rows_total{{model="scale",version="1"}} {float(rows)}' in text
        # More rows than a batch has run alone.
        assert infer(server, "scale", {"inputs": [tensor("x", x_of(16))]})[0] == 200


def test_alone_a_request_waits_for_others_no_longer_than_asked(plans):
    with served(plans / "scale.plan", options=Options(batch=8, batch_delay=0.3)) as server:
        start = time.monotonic()
        assert infer(server, "scale", {"inputs": [X]})[0] == 200
        assert time.monotonic() - start >= 0.3
        stats = get(server, "/v2/models/stats")["model_stats"][0]
        assert stats["execution_count"] == 1 and stats["inference_stats"]["queue"]["ns"] >= 0.29e9


def test_batches_only_where_rows_do_not_meet(plans):
    with served(plans / "mixes.plan", plans / "types.plan", options=Options(batch=4)) as server:
        reasons = {row["name"]: row["reason"] for row in json.loads(ask(server, "POST", "/v2/repository/index")[2])}
        assert "output 'y' of two requests together is not what it is of each alone" in reasons["mixes"]
        assert "tensor 's' has the shape [], whose first dimension is not open" in reasons["types"]
        status, value = infer(server, "mixes", {"inputs": [X]})
        assert status == 503 and "together" in value["error"]
        assert ask(server, "GET", "/v2/health/ready")[0] == 503
    with served(plans / "mixes.plan") as server:
        x = x_of(4)
        _, value = infer(server, "mixes", {"inputs": [tensor("x", x)]})
        np.testing.assert_allclose(np.array(value["outputs"][0]["data"]).reshape(4, 5), x - x.mean(0), atol=1e-5)


def test_one_failure_of_a_batch_is_of_one_request(plans, monkeypatch):
    run = queue._Instance.run

    def fails(self, jobs):
        if any(job.arrays["x"][0, 0] == 13 for job in jobs):
            raise RuntimeError("a planted failure")
        return run(self, jobs)

    monkeypatch.setattr(queue._Instance, "run", fails)
    with served(plans / "scale.plan", options=Options(batch=8, batch_delay=0.2)) as server:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            xs = [np.full((1, 5), v, np.float32) for v in (1, 13, 2, 3)]
            answers = list(pool.map(lambda x: infer(server, "scale", {"inputs": [tensor("x", x)]}), xs))
        assert [status for status, _ in answers] == [200, 500, 200, 200] and "planted" in answers[1][1]["error"]
        assert [v["outputs"][0]["data"][0] for s, v in answers if s == 200] == [3, 5, 7]


def test_a_burst_is_shed_and_what_was_taken_is_answered(plans, gate):
    with served(plans / "scale.plan", options=Options(queue=4, instances=2)) as server:
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            first = [pool.submit(infer, server, "scale", {"inputs": [X]}) for _ in range(2)]
            for _ in first:
                assert gate.begun.acquire(timeout=30)
            rest = [pool.submit(infer, server, "scale", {"inputs": [X]}) for _ in range(30)]
            shed = []
            for done in concurrent.futures.as_completed(rest, timeout=60):
                shed.append(done.result())
                if len(shed) == 26:
                    break
            assert all(s == 503 and "the queue of model 'scale' is full (4 requests wait)" in v["error"] for s, v in shed)
            assert ask(server, "GET", "/v2/health/live")[0] == 200
            gate.set()
            answers = [f.result(60)[0] for f in first + rest]
            assert sorted(answers) == [200] * 6 + [503] * 26
        text = ask(server, "GET", "/metrics")[2].decode()
        assert 'tensorwright_requests_total{model="scale",outcome="refused",version="1"} 26.0' in text


def test_time_in_the_queue_ends(plans, gate):
    with served(plans / "scale.plan", options=Options(timeout=30)) as server:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            first = pool.submit(infer, server, "scale", {"inputs": [X]})
            assert gate.begun.acquire(timeout=30)
            second = pool.submit(infer, server, "scale", {"inputs": [X], "parameters": {"timeout": 50000}})
            time.sleep(0.3)
            gate.set()
            assert first.result(30)[0] == 200
            status, value = second.result(30)
            assert status == 504 and "waited longer than 0.05 s" in value["error"]


def test_sizes_are_limited(plans):
    with served(plans / "scale.plan", limits=Limits(request_bytes=4096, held_bytes=6000, json_bytes=2048)) as server:
        assert infer(server, "scale", {"inputs": [X]})[0] == 200
        status, value = infer(server, "scale", b" " * 3000)
        assert status == 413 and "3000 bytes of JSON (limit: 2048; tensors may be sent as bytes)" in value["error"]
        status, _, answer = ask(server, "POST", "/v2/models/scale/infer", b" " * 5000, {"Inference-Header-Content-Length": "9"})
        assert status == 413 and b"the request has 5000 bytes (limit: 4096)" in answer
        body = gzip.compress(b" " * 10**7)
        assert ask(server, "POST", "/v2/models/scale/infer", body, {"Content-Encoding": "gzip"})[0] == 413
        body = gzip.compress(json.dumps({"inputs": [X]}).encode())
        assert ask(server, "POST", "/v2/models/scale/infer", body, {"Content-Encoding": "gzip"})[0] == 200
        assert ask(server, "POST", "/v2/models/scale/infer", zlib.compress(body), {"Content-Encoding": "deflate"})[0] == 400
        for wrong in (b"no gzip", body[:-9]):
            status, _, answer = ask(server, "POST", "/v2/models/scale/infer", wrong, {"Content-Encoding": "gzip"})
            assert status == 400 and b"cannot be read" in answer
        assert ask(server, "POST", "/v2/models/scale/infer", body, {"Content-Encoding": "br"})[0] == 415
        assert ask(server, "POST", "/v2/repository/index", b" " * 70000)[0] == 413
        assert infer(server, "scale", {"inputs": [X]})[0] == 200 and server.core.held == 0


def test_folders_versions_and_options(plans, tmp_path):
    for version, plan in (("1", "scale"), ("10", "other"), ("9", "scale"), ("x", "scale"), ("0", "scale")):
        (tmp_path / "m" / version).mkdir(parents=True)
        shutil.copy(plans / f"{plan}.plan", tmp_path / "m" / version / "model.plan")
    (tmp_path / "m" / "serve.json").write_text('{"batch": 4, "instances": 2, "queue": 7}')
    shutil.copy(plans / "other.plan", tmp_path / "flat.plan")
    (tmp_path / "notes.txt").write_text("no plan")
    with served(tmp_path, control=True) as server:
        assert get(server, "/v2/models/m")["versions"] == ["1", "9", "10"]
        assert infer(server, "m", {"inputs": [X]})[1]["outputs"][0]["data"] == [2, 5, 8, 11, 14]
        assert infer(server, "m", {"inputs": [X]}, "1")[1]["outputs"][0]["data"] == [3, 5, 7, 9, 11]
        assert infer(server, "flat", {"inputs": [X]})[1]["model_version"] == "1"
        assert server.core.repository.get("m").options == Options(batch=4, instances=2, queue=7)
        assert get(server, "/v2/models/m/config")["max_batch_size"] == 4
        bad = (('{"bach": 1}', "'bach' is no option (allowed: "), ('{"batch": 0}', "batch: 0 is out of range"), ("{", ""))
        for text, reason in bad:
            (tmp_path / "m" / "serve.json").write_text(text)
            server.core.repository.refresh()
            row = next(r for r in json.loads(ask(server, "POST", "/v2/repository/index")[2]) if r["name"] == "m")
            assert row["state"] == "READY" and reason in row["reason"] and row["reason"]
        assert infer(server, "m", {"inputs": [X]})[0] == 200
        assert ask(server, "POST", "/v2/repository/models/flat/unload")[0] == 200
        assert infer(server, "flat", {"inputs": [X]})[0] == 404
        assert ask(server, "POST", "/v2/repository/models/flat/load", b"{}")[0] == 200
        assert infer(server, "flat", {"inputs": [X]})[0] == 200
        for call in ("load", "unload"):
            assert ask(server, "POST", f"/v2/repository/models/none/{call}")[0] == 404
        assert ask(server, "POST", "/v2/repository/models/m/load")[0] == 400  # its file of options is none
    with served(plans / "scale.plan") as server:
        assert ask(server, "POST", "/v2/repository/models/scale/unload")[0] == 403


def test_a_new_plan_takes_the_place_of_the_old_without_a_lost_request(plans, tmp_path):
    path, done, answers = tmp_path / "m.plan", threading.Event(), []
    shutil.copy(plans / "scale.plan", path)
    with served(tmp_path, poll=0.05, options=Options(batch=4, instances=2)) as server:

        def client():
            while not done.is_set():
                answers.append(infer(server, "m", {"inputs": [X]}))

        threads = [threading.Thread(target=client) for _ in range(3)]
        for thread in threads:
            thread.start()
        kinds = {"scale": [3, 5, 7, 9, 11], "other": [2, 5, 8, 11, 14]}
        for plan in ("other", "scale", "other"):
            shutil.copy(plans / f"{plan}.plan", tmp_path / "next")
            os.replace(tmp_path / "next", path)
            deadline = time.monotonic() + 30
            while infer(server, "m", {"inputs": [X]})[1]["outputs"][0]["data"] != kinds[plan]:
                assert time.monotonic() < deadline
                time.sleep(0.02)
        path.write_bytes(b"no plan")
        deadline = time.monotonic() + 30
        while not json.loads(ask(server, "POST", "/v2/repository/index")[2])[0]["reason"]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        done.set()
        for thread in threads:
            thread.join()
        assert all(status == 200 for status, _ in answers) and len(answers) > 20
        assert {tuple(v["outputs"][0]["data"]) for _, v in answers} == {tuple(k) for k in kinds.values()}
        assert infer(server, "m", {"inputs": [X]})[1]["outputs"][0]["data"] == kinds["other"]
        path.unlink()
        deadline = time.monotonic() + 30
        while infer(server, "m", {"inputs": [X]})[0] != 404:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_options_are_checked(capfd, tmp_path, plans):
    for arguments, text in (
        (["none.plan"], "there is no plan none.plan"),
        ([plans / "scale.plan", plans / "scale.plan"], "a model is called 'scale' already; say NAME=PLAN"),
        ([f"a b={plans / 'scale.plan'}"], "'a b' is no name"),
        ([tmp_path], "no model can be served (there is no plan)"),
        ([plans / "mixes.plan", "--batch", "4", "--no-grpc"], "two requests together"),
        ([plans / "scale.plan", "--batch", "0"], "batch: 0 is out of range"),
        ([plans / "scale.plan", "--max-request", "0"], "--max-request"),
    ):
        assert _programs.main(["serve", "--port", "0", "--grpc-port", "0", *map(str, arguments)]) == 1
        assert text in capfd.readouterr().err


def test_the_program_ends_when_its_requests_have_been_answered(plans):
    command = [sys.executable, "-m", "tensorwright", "serve", str(plans / "scale.plan"), "--port", "0", "--no-grpc", "--batch", "8"]
    process = subprocess.Popen([*command, "--batch-delay", "1500"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("serving scale on http://127.0.0.1:"), process.stderr.read()

        class At:
            http = int(line.rpartition(":")[2])

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waits = pool.submit(infer, At, "scale", {"inputs": [X]})
            time.sleep(0.5)
            process.send_signal(signal.SIGTERM)
            status, value = waits.result(30)
        assert status == 200 and value["outputs"][0]["data"] == [3, 5, 7, 9, 11]
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


def test_the_example(server):
    client = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "serving", "client.py")
    at = f"http://127.0.0.1:{server.http}"
    run = subprocess.run([sys.executable, client, at, "typed"], capture_output=True, text=True)
    assert run.returncode == 0 and "h2: FP16 [2, 3], mean " in run.stdout, run.stderr
    run = subprocess.run([sys.executable, client, at, "none"], capture_output=True, text=True)
    assert run.returncode == 1 and "404: there is no model 'none'" in run.stderr
