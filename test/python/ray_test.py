# SPDX-License-Identifier: Apache-2.0
"""tensorwright.ray on a Ray cluster of two nodes on this machine: answers of both, batches, failures, a plan replaced under load."""

import concurrent.futures
import os
import threading
import time

import numpy as np
import pytest

# A cluster of tests needs no token, and leaves none in the home folder.
os.environ["RAY_AUTH_MODE"] = "disabled"
for module in ("ray.serve", "aiohttp", "prometheus_client", "tokenizers", "jinja2", "openai"):
    pytest.importorskip(module, reason=f"SKIP: {module} is not installed (tensorwright[ray])")

import ray  # noqa: E402
from ray import serve  # noqa: E402
from ray._private.state import available_resources_per_node  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

import openai  # noqa: E402
from tiny_decoders import Decoder, folder  # noqa: E402
from generation_text_test import END, TEMPLATE, ids, written  # noqa: E402
from serving import X, affine, ask, binary, get, infer  # noqa: E402
from tensorwright.ray import application, generation  # noqa: E402


class Port:
    http = 0


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of two CPUs; the proxy's port."""
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        Port.http = free.getsockname()[1]
    nodes = {"num_cpus": 2, "object_store_memory": 100 << 20}
    both = Cluster(initialize_head=True, head_node_args={**nodes, "include_dashboard": False})
    both.add_node(**nodes)
    ray.init(address=both.address, log_to_driver=False)
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": Port.http})
        yield Port
    finally:
        serve.shutdown()
        ray.shutdown()
        both.shutdown()


def wait_for(cluster, path):
    """Until Ray's proxy knows an application that is ready, for some time it answers 404."""
    deadline = time.monotonic() + 60
    while ask(cluster, "GET", path)[0] != 200:
        assert time.monotonic() < deadline, path
        time.sleep(0.1)


def test_two_nodes(cluster, tmp_path):
    (tmp_path / "m.plan").write_bytes(affine(2, 1))
    handle = serve.run(application(tmp_path / "m.plan", replicas=2, replicas_per_node=1, batch=8), name="app")
    free = [node.get("CPU", 0) for node in available_resources_per_node().values()]
    assert sorted(free) == [1, 1], free
    wait_for(cluster, "/v2/health/ready")
    assert get(cluster, "/v2/models/m")["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 5]}]
    assert get(cluster, "/v2/models/m/config")["max_batch_size"] == 8
    x = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)
    body, headers = binary({"x": ("FP32", x)}, parameters={"binary_data_output": True})
    status, headers, data = ask(cluster, "POST", "/v2/models/m/infer", body, headers)
    at = {k.lower(): v for k, v in headers.items()}["inference-header-content-length"]
    assert status == 200
    np.testing.assert_array_equal(np.frombuffer(data[int(at) :], np.float32).reshape(3, 5), 2 * x + 1)
    answers = [handle.infer.remote({"x": x + i}) for i in range(40)]
    for i, answer in enumerate(answers):
        np.testing.assert_allclose(answer.result(timeout_s=60)["y"], 2 * (x + i) + 1, rtol=1e-6)
    with pytest.raises(Exception, match="no input 'z'"):
        handle.infer.remote({"z": x}).result(timeout_s=60)
    for body, status, text in (
        ({"inputs": []}, 400, "input 'x' is missing"),
        (b"{", 400, "no JSON"),
        ({"inputs": [{**X, "shape": [1, 4]}]}, 400, "does not fill"),
    ):
        got, value = infer(cluster, "m", body)
        assert got == status and text in value["error"]
    assert ask(cluster, "GET", "/v2/models/m/ready")[0] == 200 and get(cluster, "/v2")["name"] == "tensorwright"
    assert get(cluster, "/v2/models/m/versions/1/stats")["model_stats"][0]["name"] == "m"
    assert infer(cluster, "none", {"inputs": [X]})[0] == 404 and ask(cluster, "GET", "/v3")[0] == 404
    assert ask(cluster, "GET", "/v2/models/m/infer")[0] == 405

    # A new plan under load: every request is answered, by one plan or the other, and in the end by the new one.
    got, done = [], threading.Event()

    def client():
        while not done.is_set():
            got.append(infer(cluster, "m", {"inputs": [X]}))

    threads = [threading.Thread(target=client) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(1)
        serve.run(application(affine(3, -1), model="m", replicas=2, replicas_per_node=1, batch=8), name="app")
        deadline = time.monotonic() + 60
        while infer(cluster, "m", {"inputs": [X]})[1]["outputs"][0]["data"] != [2, 5, 8, 11, 14]:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert len(got) > 10 and all(status == 200 for status, _ in got), [g for g in got if g[0] != 200][:3]
    kinds = {tuple(value["outputs"][0]["data"]) for _, value in got}
    assert kinds <= {(3, 5, 7, 9, 11), (2, 5, 8, 11, 14)} and (3, 5, 7, 9, 11) in kinds


def test_what_cannot_be_served(cluster, tmp_path):
    with pytest.raises(FileNotFoundError):
        application(tmp_path / "none.plan")
    with pytest.raises(ValueError, match="needs a name"):
        application(b"123")
    with pytest.raises(ValueError, match="batch: 0 is out of range"):
        application(b"123", model="m", batch=0)
    with pytest.raises(RuntimeError):
        serve.run(application(b"123", model="m"), name="broken", route_prefix="/broken")


def test_texts_of_two_replicas(cluster, tmp_path, monkeypatch):
    """OpenAI's client before two replicas: answers at once and as they come, failures, a client that leaves."""
    model = Decoder("llama", seed=3)
    path = folder(tmp_path / "tiny", model, end=END, tokenizer_config={"chat_template": TEMPLATE})
    serve.run(generation(path, replicas=2, replicas_per_node=1, slots=2, cache=str(tmp_path / "plans")), name="texts", route_prefix="/texts")
    wait_for(cluster, "/texts/v1/models")
    prompts = ["hello ", "a", "go ", "what is this"] * 5
    expected = {p: written(model.greedy(ids(p), 20, [END])) for p in prompts}
    with openai.OpenAI(base_url=f"http://127.0.0.1:{cluster.http}/texts/v1", api_key="none", max_retries=0) as client:
        assert [m.id for m in client.models.list()] == ["tiny"] and client.models.retrieve("tiny").id == "tiny"

        def one(prompt):
            return client.completions.create(model="tiny", prompt=prompt, temperature=0, max_tokens=20).choices[0].text

        with concurrent.futures.ThreadPoolExecutor(10) as threads:
            assert list(threads.map(one, prompts)) == [expected[p] for p in prompts]
        text = ""
        for chunk in client.completions.create(model="tiny", prompt="hello ", temperature=0, max_tokens=20, stream=True):
            text += chunk.choices[0].text
        assert text == expected["hello "]
        chat = client.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "hi"}], temperature=0, max_tokens=5)
        assert chat.choices[0].message.content == written(model.greedy(ids("u  hi\na "), 5, [END]))
        with pytest.raises(openai.BadRequestError, match="temperature: -1"):
            client.completions.create(model="tiny", prompt="x", temperature=-1)
        with pytest.raises(openai.NotFoundError):
            client.completions.create(model="none", prompt="x")
        for _ in range(6):  # more than there are slots: those that have left hold none
            stream = client.completions.create(model="tiny", prompt="go ", temperature=1, max_tokens=90, n=4, stream=True)
            next(iter(stream))
            stream.close()
        assert one("a") == expected["a"]
