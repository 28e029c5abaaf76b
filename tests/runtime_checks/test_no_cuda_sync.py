"""no_cuda_sync on a machine without a GPU: torch's four seams are replaced, as its users' own tests do."""
from __future__ import annotations

import asyncio
import threading
import unittest
import warnings
from collections.abc import Iterator
from unittest import mock

import pytest
import torch

from hostlint.runtime_checks import allow, assert_no_cuda_sync, no_cuda_sync
from hostlint.runtime_checks.call_mode import Call, noting_calls

TEXT = "called a synchronizing CUDA operation (Triggered internally at somewhere.cpp:12.)"


@pytest.fixture
def modes() -> Iterator[list[object]]:
    """Pretends that there is a GPU, and keeps every mode that is set."""
    seen: list[object] = []
    with (
        mock.patch.object(torch.cuda, "is_available", return_value=True),
        mock.patch.object(torch.cuda, "get_sync_debug_mode", return_value=0),
        mock.patch.object(torch.cuda, "set_sync_debug_mode", side_effect=seen.append),
        mock.patch.object(torch.cuda, "synchronize") as synchronize,
    ):
        yield seen
        assert torch.cuda.synchronize is synchronize


def reads() -> None:
    warnings.warn(TEXT, UserWarning, stacklevel=1)


def synchronizes() -> None:
    torch.cuda.synchronize()


def outer() -> None:
    reads()


def test_without_a_gpu_it_skips() -> None:
    with pytest.raises(unittest.SkipTest), no_cuda_sync():
        raise AssertionError("the body runs")


def test_the_mode_is_warn_inside_and_what_it_was_after(modes: list[object]) -> None:
    with no_cuda_sync():
        assert modes == ["warn"]
    assert modes == ["warn", 0]


def test_nested_guards_set_the_mode_once_and_the_inner_one_fails_first(modes: list[object]) -> None:
    with pytest.raises(AssertionError, match="1 host-device sync"), no_cuda_sync():
        with pytest.raises(AssertionError, match="1 host-device sync"), no_cuda_sync():
            reads()
        assert modes == ["warn"]
    assert modes == ["warn", 0]


def test_every_wait_is_counted_after_the_body_has_run_to_its_end(modes: list[object]) -> None:
    ran = []
    with pytest.raises(AssertionError, match=r"2 host-device sync\(s\)") as failed, no_cuda_sync():
        reads()
        synchronizes()
        ran.append("to the end")
    assert ran == ["to the end"]
    assert "in reads" in str(failed.value)
    assert "in synchronizes" in str(failed.value)


def test_an_explicit_synchronize_still_runs_once(modes: list[object]) -> None:
    with pytest.raises(AssertionError), no_cuda_sync():
        torch.cuda.synchronize()
    torch.cuda.synchronize.assert_called_once_with()  # type: ignore[attr-defined]


def test_an_entry_covers_the_functions_own_call_sites_not_its_callees(modes: list[object]) -> None:
    with no_cuda_sync(allow=["runtime_checks/test_no_cuda_sync.py:reads"]):
        reads()
        outer()
    with pytest.raises(AssertionError, match="1 host-device sync"), no_cuda_sync(allow=["test_no_cuda_sync.py:outer"]):
        outer()
    with pytest.raises(AssertionError, match="1 host-device sync"), no_cuda_sync(allow=["elsewhere.py:reads"]):
        reads()


@pytest.mark.parametrize("entry", ["reads", "file.py:", ":reads"])
def test_an_entry_without_path_or_function_is_an_error(entry: str) -> None:
    with pytest.raises(ValueError, match="end of path:function"):
        no_cuda_sync(allow=[entry])


def test_what_allow_covers_passes(modes: list[object]) -> None:
    with no_cuda_sync():
        with allow("the number is the product"):
            outer()
        with allow("a read is meant", rules=["HL1"]):
            reads()
    with pytest.raises(AssertionError, match="1 host-device sync"), no_cuda_sync(), allow("only uploads", rules=["HL2"]):
        reads()


def test_other_warnings_reach_whoever_listened_once(modes: list[object]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with no_cuda_sync():
            warnings.warn("something else", DeprecationWarning, stacklevel=1)
    assert [str(one.message) for one in caught] == ["something else"]


def test_what_torch_says_of_the_mode_itself_disturbs_nobody(modes: list[object]) -> None:
    def setting(mode: object) -> None:
        modes.append(mode)
        warnings.warn("Synchronization debug mode is a prototype feature and does not yet detect all", UserWarning, stacklevel=1)

    with mock.patch.object(torch.cuda, "set_sync_debug_mode", side_effect=setting), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        with no_cuda_sync():
            pass
    assert (modes, caught) == (["warn", 0], [])


@pytest.mark.parametrize("action", ["error", "ignore"])
def test_filters_that_the_body_installs_hide_nothing_once_a_call_of_torch_was_made(modes: list[object], action: str) -> None:
    with pytest.raises(AssertionError, match="1 host-device sync"), no_cuda_sync(), warnings.catch_warnings():
        warnings.simplefilter(action)  # type: ignore[arg-type]
        _ = torch.ones(1) + 1
        reads()


def test_recorders_of_warnings_in_the_body_take_nothing_away(modes: list[object]) -> None:
    with pytest.raises(AssertionError, match="1 host-device sync"), no_cuda_sync():
        with warnings.catch_warnings(record=True) as caught:
            reads()
        assert caught == []


def test_filters_and_hooks_are_put_back(modes: list[object]) -> None:
    before = (list(warnings.filters), warnings.showwarning, vars(warnings)["_showwarnmsg"], threading.Thread.start)
    with pytest.raises(ZeroDivisionError), no_cuda_sync():
        raise ZeroDivisionError
    assert (list(warnings.filters), warnings.showwarning, vars(warnings)["_showwarnmsg"], threading.Thread.start) == before
    assert modes == ["warn", 0]


def test_the_bodys_own_exception_goes_out(modes: list[object]) -> None:
    with pytest.raises(ZeroDivisionError) as failed, no_cuda_sync():
        reads()
        raise ZeroDivisionError
    notes = getattr(failed.value, "__notes__", ["1 host-device sync(s)"])  # Python 3.11 and newer have notes
    assert "1 host-device sync(s)" in notes[0]


def test_threads_started_inside_count_and_others_do_not(modes: list[object]) -> None:
    go, done = threading.Event(), threading.Event()

    def read_when_told() -> None:
        go.wait()
        reads()
        done.set()

    before = threading.Thread(target=read_when_told)
    before.start()
    with no_cuda_sync():
        go.set()
        done.wait()
    before.join()
    with pytest.raises(AssertionError, match="1 host-device sync"), no_cuda_sync():
        inside = threading.Thread(target=reads)
        inside.start()
        inside.join()


def test_a_thread_that_outlives_the_body_is_nobodys(modes: list[object]) -> None:
    go = threading.Event()

    def read_late() -> None:
        go.wait()
        with no_cuda_sync(allow=["test_no_cuda_sync.py:reads"]):
            reads()

    with no_cuda_sync():
        late = threading.Thread(target=read_late)
        late.start()
    go.set()
    late.join()


def test_only_the_task_under_the_guard_counts(modes: list[object]) -> None:
    async def guarded(turn: asyncio.Event, other: asyncio.Event) -> str:
        with pytest.raises(AssertionError) as failed, no_cuda_sync():
            turn.set()
            await other.wait()
            reads()
        return str(failed.value)

    async def free(turn: asyncio.Event, other: asyncio.Event) -> None:
        await turn.wait()
        outer()
        other.set()

    async def both() -> str:
        turn, other = asyncio.Event(), asyncio.Event()
        return (await asyncio.gather(guarded(turn, other), free(turn, other)))[0]

    text = asyncio.run(both())
    assert "1 host-device sync(s)" in text
    assert "in outer" not in text


def test_a_guard_can_be_made_first_and_used_again(modes: list[object]) -> None:
    guard = no_cuda_sync()
    with torch.no_grad(), guard:
        _ = torch.ones(2) * 2
    with pytest.raises(AssertionError), guard:
        reads()


def test_assert_no_cuda_sync_returns_the_result(modes: list[object]) -> None:
    assert assert_no_cuda_sync(divmod, 7, 2) == (3, 1)
    assert assert_no_cuda_sync(lambda *, key: key, key=5) == 5
    with pytest.raises(AssertionError, match="in reads"):
        assert_no_cuda_sync(outer)
    assert_no_cuda_sync(outer, allow=["test_no_cuda_sync.py:reads"])


def test_a_function_that_torch_has_in_python_is_named_and_its_caller_is_the_place(modes: list[object]) -> None:
    def waits(*args: object) -> torch.Tensor:
        reads()
        return torch.ones(1)

    with mock.patch.object(torch._VF, "dropout", waits), pytest.raises(AssertionError) as failed, no_cuda_sync():
        torch.nn.functional.dropout(torch.ones(1), 0.5)
    lines = str(failed.value).splitlines()
    assert "torch.nn.functional.dropout" in lines[1]
    assert "test_a_function_that_torch_has_in_python" in lines[2]


def test_a_compiled_layer_goes_through_and_its_calls_are_seen() -> None:
    compiled = torch.compile(lambda x: torch.sin(x) * 2, backend="eager", fullgraph=True)
    calls: list[Call] = []
    with noting_calls(calls.append):
        result = compiled(torch.ones(3))
    assert torch.equal(result, torch.sin(torch.ones(3)) * 2)
    assert torch.sin in [call.func for call in calls]
