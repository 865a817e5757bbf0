"""The results of two nodes in a bucket of a real S3 server over HTTP: moto, which checks keys and their rights."""

import asyncio
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import obstore
import pytest
from obstore.store import from_url
from tests.chaos.daemon import free_port
from tests.chaos.proxy import Plan, Proxy
from tests.daemon_environment import daemon_environment
from tests.peers.conftest import PEERS, ROOT, START_S, require
from tests.postgres_cluster import Cluster
from toold.store import StoreError
from toold.store.postgres.pg_schema import migrate_postgres
from toold.store.postgres.postgres_results import CHUNK_BYTES, PostgresResults, open_postgres_results
from toold.store.postgres.result_bucket import ResultBucket

pytestmark = [pytest.mark.large_peer, pytest.mark.timeout(300)]

BUCKET: Final = "results"
LARGE: Final = bytes(range(256)) * 10_000
_RIGHTS: Final = ("PutObject", "GetObject", "DeleteObject", "ListBucket", "CreateBucket")
_UNSIGNED_REQUESTS: Final = 5
"""What makes the two users; all later requests need valid keys."""


@dataclass(frozen=True)
class S3Server:
    """A running server with a bucket."""

    url: str
    keys: dict[str, str]
    """The variables with the keys of a user who may use the bucket."""
    powerless: dict[str, str]
    """Those of a user without rights."""

    def env(self, **more: str) -> dict[str, str]:
        return {"AWS_ENDPOINT_URL": self.url, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1", **self.keys, **more}

    def object_names(self) -> list[str]:
        store: Any = from_url(f"s3://{BUCKET}", client_options={"allow_http": True})
        return [each["path"] for page in obstore.list(store) for each in page]


def _iam(url: str, action: str, **values: str) -> str:
    credential = "Credential=x/20260101/us-east-1/iam/aws4_request"
    headers = {"Authorization": f"AWS4-HMAC-SHA256 {credential}, SignedHeaders=host, Signature=x"}
    answer = httpx.post(url, data={"Action": action, "Version": "2010-05-08", **values}, headers=headers)
    assert answer.is_success, answer.text
    return answer.text


def _user(url: str, name: str) -> dict[str, str]:
    _iam(url, "CreateUser", UserName=name)
    made = _iam(url, "CreateAccessKey", UserName=name)
    names = {"AWS_ACCESS_KEY_ID": "AccessKeyId", "AWS_SECRET_ACCESS_KEY": "SecretAccessKey"}
    return {variable: re.findall(f"<{tag}>(.*?)</{tag}>", made)[0] for variable, tag in names.items()}


@contextmanager
def _listening(command: list[str], port: int, log: Path, env: dict[str, str]) -> Iterator[None]:
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=env, stdout=file, stderr=file)
    try:
        deadline = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def s3(starts_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A server with a bucket, a user who may use it, and one who may not."""
    require("moto")
    directory, port = tmp_path_factory.mktemp("s3"), free_port()
    command = [str(PEERS / "moto/bin/python"), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    env = {"PATH": os.environ["PATH"], "HOME": str(directory), "INITIAL_NO_AUTH_ACTION_COUNT": str(_UNSIGNED_REQUESTS)}
    with _listening(command, port, directory / "s3.log", env):
        url = f"http://127.0.0.1:{port}"
        keys, powerless = _user(url, "toold"), _user(url, "powerless")
        statement = {"Effect": "Allow", "Action": [f"s3:{right}" for right in _RIGHTS], "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        _iam(url, "PutUserPolicy", UserName="toold", PolicyName="p", PolicyDocument=policy)
        server = S3Server(url, keys, powerless)
        _create_bucket(server)
        yield server


def _create_bucket(server: S3Server) -> None:
    """With a signed request, by the library of the peer."""
    program = f"import boto3; boto3.client('s3', endpoint_url={server.url!r}).create_bucket(Bucket={BUCKET!r})"
    env = {"PATH": os.environ["PATH"], "AWS_DEFAULT_REGION": "us-east-1", **server.keys}
    subprocess.run([PEERS / "moto/bin/python", "-c", program], env=env, check=True)


@pytest.fixture(autouse=True)
def variables(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets the variables of the server; a test replaces some."""

    def replace(**values: str) -> None:
        for name, value in s3.env(**values).items():
            monkeypatch.setenv(name, value)

    replace()
    return replace


@pytest.fixture(scope="module")
def database(cluster: Cluster) -> str:
    """The address of a migrated database."""
    cluster.sql("CREATE DATABASE bucket")
    address = cluster.uri("bucket", "postgres")
    migrate_postgres(address)
    return address


Open = Callable[[str], PostgresResults]


@pytest.fixture
def open_node(database: str, variables: object) -> Iterator[Open]:
    """Opens the results of a node."""
    opened: list[PostgresResults] = []

    def make(name: str) -> PostgresResults:
        bucket = ResultBucket(f"s3://{BUCKET}/toold")
        limits: dict[str, Any] = {"lost_after_s": 60.0, "ttl_s": 3600.0, "max_bytes": 100_000_000}
        opened.append(open_postgres_results(database, node_name=name, bucket=bucket, **limits))
        return opened[-1]

    yield make
    for results in opened:
        results.close()


def test_another_node_reads_a_result(open_node: Open) -> None:
    """As a whole and in pieces; a small one is in the database."""
    first, second, handle = open_node("a"), open_node("b"), secrets.token_hex(4)
    first.write("local", handle, "json", [LARGE[:5], LARGE[5:]], 0.0)
    assert second.read("local", handle, 0.0) == ("json", LARGE)
    for offset, size in ((0, 10), (CHUNK_BYTES - 5, 10), (len(LARGE) - 4, 100), (len(LARGE), 5)):
        assert second.read_piece("local", handle, offset, size, 0.0) == LARGE[offset : offset + size]


def test_a_result_of_several_parts_is_uploaded(open_node: Open) -> None:
    """S3 takes large objects in parts of at least 5 MB."""
    parts = [bytes([number]) * 3_000_000 for number in range(8)]
    open_node("a").write("local", "parts", "txt", parts, 0.0)
    assert open_node("b").read("local", "parts", 0.0) == ("txt", b"".join(parts))


def test_the_object_of_a_deleted_result_is_deleted(open_node: Open, s3: S3Server, cluster: Cluster) -> None:
    """By any node, once it is due; nothing else in the bucket is."""
    first, second = open_node("a"), open_node("b")
    first.write("local", "gone", "json", [LARGE], 0.0)
    before = len(s3.object_names())
    first.write("local", "gone", "json", [b"small"], 0.0)
    cluster.sql("UPDATE toold.result_object SET due_at = 0", database="bucket")
    second.delete_expired(0.0)
    assert len(s3.object_names()) == before - 1


def test_an_object_that_is_missing_is_an_error_of_one_line(open_node: Open, cluster: Cluster) -> None:
    """Somebody emptied the bucket."""
    results = open_node("a")
    results.write("local", "missing", "json", [LARGE], 0.0)
    name = cluster.sql("SELECT object FROM toold.retained_result WHERE handle = 'missing'", database="bucket")
    ResultBucket(f"s3://{BUCKET}/toold").delete([name, "never-was"])
    with pytest.raises(StoreError, match=r"the bucket results, or the object, does not exist") as raised:
        results.read("local", "missing", 0.0)
    assert "\n" not in str(raised.value)


def test_a_bucket_that_can_be_used_passes_the_check(s3: S3Server) -> None:
    """The check leaves nothing behind."""
    before = s3.object_names()
    ResultBucket(f"s3://{BUCKET}/toold").check()
    assert s3.object_names() == before


@pytest.mark.parametrize(
    ("changed", "url", "said"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, BUCKET, r"refuses the keys \(SignatureDoesNotMatch\)"),
        ({"AWS_ACCESS_KEY_ID": "AKIAUNKNOWN"}, BUCKET, r"refuses the keys \(InvalidAccessKeyId\)"),
        ({}, "absent", r"the bucket absent, or the object, does not exist \(NoSuchBucket\)"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, BUCKET, r"no answer from http://127.0.0.1:1: check the address"),
        ({"AWS_ENDPOINT_URL": "s3.example"}, BUCKET, r"AWS_ENDPOINT_URL must be a URL"),
        ({"AWS_ALLOW_HTTP": ""}, BUCKET, r"set AWS_ALLOW_HTTP=true"),
    ],
)
def test_a_wrong_configuration_is_said_in_one_line(
    variables: Callable[..., None], changed: dict[str, str], url: str, said: str
) -> None:
    """Wrong keys, a wrong name, an address where nothing listens, one that is not a URL, and one without TLS."""
    variables(**changed)
    with pytest.raises(StoreError, match=said) as raised:
        ResultBucket(f"s3://{url}/toold").check()
    assert len(str(raised.value)) < 300
    assert "\n" not in str(raised.value)


def test_keys_without_rights_are_refused(variables: Callable[..., None], s3: S3Server) -> None:
    """The message names the rights that are needed."""
    variables(**s3.powerless)
    with pytest.raises(StoreError, match=r"\(AccessDenied\): they need the right to read, write and delete"):
        ResultBucket(f"s3://{BUCKET}/toold").check()


async def test_a_slow_server_takes_its_time(variables: Callable[..., None], s3: S3Server) -> None:
    """Each piece of data is late; nothing is lost."""
    port = int(s3.url.rsplit(":", 1)[1])
    async with Proxy(lambda: [port], lambda _: Plan("delay", 0, to_daemon=True, seconds=0.05)) as proxy:
        variables(AWS_ENDPOINT_URL=f"http://127.0.0.1:{proxy.port}")
        bucket = ResultBucket(f"s3://{BUCKET}/toold")
        assert await asyncio.to_thread(bucket.put, "slow", [LARGE]) == len(LARGE)
        assert await asyncio.to_thread(bucket.read, "slow", 0, len(LARGE)) == LARGE
        await asyncio.to_thread(bucket.delete, ["slow"])


async def test_a_server_that_is_away_for_a_moment_is_asked_again(variables: Callable[..., None], s3: S3Server) -> None:
    """The first attempts reach no server; the upload succeeds."""
    port, away = int(s3.url.rsplit(":", 1)[1]), threading.Event()
    answers = [[], [], [port]]

    def upstream() -> list[int]:
        away.set()
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async with Proxy(upstream, lambda _: Plan("none", 0, to_daemon=True, seconds=0)) as proxy:
        variables(AWS_ENDPOINT_URL=f"http://127.0.0.1:{proxy.port}")
        bucket = ResultBucket(f"s3://{BUCKET}/toold")
        assert await asyncio.to_thread(bucket.put, "again", [LARGE]) == len(LARGE)
    assert away.is_set()
    assert len(answers) == 1


def _environment(directory: Path, database: str, **more: str) -> dict[str, str]:
    """The environment of a node with the bucket."""
    settings = {
        "TOOLD_STORE": database,
        "TOOLD_CLUSTER_SECRET": "a-secret-of-all-nodes",
        "TOOLD_RESULTS_BUCKET": f"s3://{BUCKET}/toold",
        "TOOLD_SIMULATE": "true",
    }
    return daemon_environment(directory / "state", **settings | more)


def _toold(directory: Path, database: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = _environment(directory, database, **more)
    command = [str(ROOT / ".venv/bin/python"), "-m", "toold", *arguments]
    return subprocess.run(command, env=env, cwd=directory, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("url", "status", "said"),
    [
        (f"s3://{BUCKET}/toold", "ok", "can be written, read and emptied"),
        ("s3://absent/toold", "fail", "the bucket absent, or the object, does not exist"),
    ],
)
def test_the_doctor_tries_the_bucket(tmp_path: Path, database: str, url: str, status: str, said: str) -> None:
    """And says what is wrong with it."""
    report = _toold(tmp_path, database, "doctor", "--json", TOOLD_RESULTS_BUCKET=url)
    checks: dict[str, Any] = {check["name"]: check for check in json.loads(report.stdout)}
    assert checks["results bucket"]["status"] == status, report.stderr
    assert said in checks["results bucket"]["message"]


def test_a_node_starts_without_its_bucket_and_says_so(tmp_path: Path, database: str) -> None:
    """The bucket may be created later; until then the log and the problems of the node name it."""
    log = tmp_path / "daemon.log"
    env = _environment(tmp_path, database, TOOLD_RESULTS_BUCKET="s3://absent/toold", TOOLD_LOG_FORMAT="json")
    port = free_port()
    command = [str(ROOT / ".venv/bin/python"), "-m", "toold", "serve", "--port", "0", "--http-port", str(port)]
    with _listening(command, port, log, env):
        deadline = time.monotonic() + START_S
        while "the bucket of results cannot be used" not in log.read_text():
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        token = (tmp_path / "state" / "token").read_text().strip()
        shown = httpx.get(
            f"http://127.0.0.1:{port}/readyz", headers={"Authorization": f"Bearer {token}"}, timeout=START_S
        )
    assert "the bucket absent, or the object, does not exist (NoSuchBucket)" in log.read_text()
    assert "the bucket of results cannot be used" in shown.text
