"""Servers of devices: sessions, secrets, time limits, and tuning on two of them."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from syno import UserError
from syno.codegen import emitters
from syno.devices import Address, Tracker, devices_at
from syno.devices.client import borrow
from syno.devices.server import DeviceServer
from syno.tune import TuningTask, run_grid, single_grid, tasks_of
from syno.tune.back_ends import problem

from .test_tracker import SECRET, tracker

needs_tvm = pytest.mark.skipif(
    emitters.get("tvm").available() is not None, reason="the package tvm is not installed"
)


@pytest.fixture(scope="module", autouse=True)
def tvm_is_there() -> None:
    """An import of TVM walks over all modules, and fails if a thread imports one meanwhile."""
    if importlib.util.find_spec("tvm") is not None:
        importlib.import_module("tvm")


@contextmanager
def server(address: Address, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """`syno device serve` in a process of its own."""
    command = [sys.executable, "-m", "syno", "device", "serve", "--tracker", str(address), *options]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(address: Address, count: int, secret: bytes | None = None) -> None:
    for _ in range(600):
        if len(devices_at(address, secret)) == count:
            return
        time.sleep(0.2)
    raise AssertionError(f"{count} devices did not report")


def task(folder: Path, address: Address, **changes: object) -> TuningTask:
    (found,) = tasks_of(
        single_grid(
            ["depthwise-separable"],
            layers=["8x8"],
            out=folder,
            back_ends=("tvm",),
            baseline=False,
            trials=4,
            rounds=20,
            rpc_key="box",
            tracker=str(address),
        )
    )
    return dataclasses.replace(found, **changes)  # type: ignore[arg-type]


@needs_tvm
def test_what_a_device_cannot_do_is_said(tmp_path: Path) -> None:
    with tracker() as address:
        assert "no device 'box'" in problem(task(tmp_path, address))
        assert "eager does not run on devices" in problem(task(tmp_path, address, back_end="eager"))
        assert "not for 'cuda'" in problem(task(tmp_path, address, device="cuda"))
    assert "no tracker answers" in problem(task(tmp_path, address))


def test_a_task_of_a_device_is_another_one_than_that_of_this_machine(tmp_path: Path) -> None:
    remote = task(tmp_path, Address("10.0.0.1", 9190))
    assert remote.key == dataclasses.replace(remote, tracker="10.0.0.2").key
    assert remote.key != dataclasses.replace(remote, tracker=None).key
    assert TuningTask.from_json(json.loads(json.dumps(remote.as_json()))) == remote
    with pytest.raises(UserError, match="both --rpc-key KEY and --tracker"):
        single_grid(["conv2d"], layers=["8x8"], out=tmp_path, rpc_key="box")


@needs_tvm
def test_a_server_refuses_what_it_cannot_serve() -> None:
    with tracker(SECRET) as address:
        with pytest.raises(UserError, match="asks for a secret"):
            DeviceServer("box", address)
        with pytest.raises(UserError, match="is no key of a device"):
            DeviceServer("a box", address, secret=SECRET)
        with pytest.raises(UserError, match="anybody who reaches"):
            DeviceServer("box", address, host="0.0.0.0")
        with pytest.raises(UserError, match="cannot listen"):
            DeviceServer("box", address, secret=SECRET, host="203.0.113.1")


@needs_tvm
@pytest.mark.slow
def test_two_servers_tune_an_operator_with_a_secret(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch(0o600)
    secret.write_bytes(SECRET)
    options = ("--key", "box", "--secret", str(secret))
    with ExitStack() as stack:
        address = stack.enter_context(tracker(SECRET))
        for _ in range(2):
            stack.enter_context(server(address, *options))
        wait_for(address, 2, SECRET)
        asked = task(tmp_path / "tuned", address, secret=str(secret))
        (result,) = run_grid([asked]).results
        assert result.status == "done", result.reason
        (row,) = result.rows
        assert row.outputs > 0 and 0 < row.best_ms <= row.median_ms
        assert str(result.environment["device"]).startswith("box: ")
        assert run_grid([asked]).new == 0
        assert all(each.free for each in devices_at(address, SECRET))


@needs_tvm
@pytest.mark.slow
def test_a_session_ends_with_its_time_and_the_device_is_free_again() -> None:
    from syno.devices.tvm_remote import SessionRequest

    with tracker() as address, server(address, "--key", "box", "--session-seconds", "3"):
        wait_for(address, 1)
        with pytest.raises(UserError, match="became free"):
            borrow(address, "other", wait=0.2)
        place = SessionRequest(address, "box", wait=60.0)
        with place.session(1) as session:
            time.sleep(5)
            with pytest.raises(Exception, match=r"."):
                session.get_function("runtime.config_threadpool")(1, 1)
        with place.session(1) as session:
            assert session.cpu(0).exist


@needs_tvm
@pytest.mark.slow
def test_a_server_finds_the_tracker_that_was_started_again() -> None:
    with ExitStack() as stack:
        with tracker() as address:
            stack.enter_context(server(address, "--key", "box"))
            wait_for(address, 1)
        for _ in range(50):  # the port is free when the server has noticed
            try:
                again = Tracker(address.host, address.port)
                break
            except UserError:
                time.sleep(0.2)
        with again:
            threading.Thread(target=again.serve_forever, daemon=True).start()
            wait_for(address, 1)
            again.shutdown()
