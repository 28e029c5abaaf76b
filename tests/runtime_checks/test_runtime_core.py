"""What guards and recorders share: patches that are put back, threads that follow, permissions, call sites."""
from __future__ import annotations

import contextvars
import logging
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hostlint.facts.kinds import FactKind
from hostlint.runtime_checks.events import EventKind, Frame, HostEvent, Origin
from hostlint.runtime_checks.frames import caller_outside_torch, current_stack, origin_of, user_frame
from hostlint.runtime_checks.patches import Patch
from hostlint.runtime_checks.permissions import CallSites, allow, allowed_reason
from hostlint.runtime_checks.sinks import emit, listening
from hostlint.runtime_checks.threads import carried_into_threads

EVENT = HostEvent(EventKind.READ, "a.py", 3, "f", (), "Tensor.item", "MainThread", 0.0)


class Ears:
    def __init__(self) -> None:
        self.heard: list[HostEvent] = []

    def add(self, event: HostEvent) -> None:
        self.heard.append(event)


def in_thread(run: Callable[[], object]) -> None:
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


# Patches


def doubled(original: Callable[..., object]) -> Callable[..., object]:
    return lambda: [original(), original()]


def test_a_patch_is_set_once_and_put_back_by_the_last_user() -> None:
    owner = types.SimpleNamespace(f=lambda: 1)
    before = owner.f
    patch = Patch(owner, "f", doubled)
    with patch.applied():
        with patch.applied():
            assert owner.f() == [1, 1]
        assert owner.f() == [1, 1]
    assert owner.f is before


def test_a_replacement_by_somebody_else_stays() -> None:
    owner = types.SimpleNamespace(f=lambda: 1)
    with Patch(owner, "f", doubled).applied():
        theirs = owner.f = lambda: "theirs"
    assert owner.f is theirs


def test_an_inherited_attribute_is_inherited_again() -> None:
    class Base:
        def f(self) -> int:
            return 1

    class Derived(Base):
        pass

    with Patch(Derived, "f", lambda original: lambda self: -original(self)).applied():  # type: ignore[operator]
        assert Derived().f() == -1
    assert "f" not in vars(Derived)
    assert Derived().f() == 1


# Threads


def test_threads_started_inside_get_the_context_and_enter_what_they_are_given() -> None:
    seen: list[str] = []
    word = contextvars.ContextVar("word", default="none")

    @contextmanager
    def noted() -> Iterator[None]:
        seen.append(f"enter {word.get()}")
        yield
        seen.append("exit")

    word.set("inside")
    with carried_into_threads(noted):
        in_thread(lambda: in_thread(lambda: seen.append(word.get())))
    word.set("after")
    in_thread(lambda: seen.append(word.get()))
    own_context = getattr(sys.flags, "thread_inherit_context", False)
    assert seen == ["enter inside", "enter inside", "inside", "exit", "exit", "after" if own_context else "none"]


def test_a_subclass_that_overrides_run_follows_too_and_keeps_no_cycle() -> None:
    seen: list[bool] = []
    flag = contextvars.ContextVar("flag", default=False)

    class Worker(threading.Thread):
        def run(self) -> None:
            seen.append(flag.get())

    flag.set(True)
    with carried_into_threads():
        worker = Worker()
        worker.start()
        worker.join()
    assert seen == [True]
    assert "run" not in vars(worker)


def test_starting_a_thread_twice_is_still_an_error() -> None:
    with carried_into_threads():
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError):
            thread.start()


# Sinks


def test_events_go_to_those_who_listen_here() -> None:
    outer, inner, elsewhere = Ears(), Ears(), Ears()
    with listening(outer), listening(inner):
        in_thread(lambda: emit(EVENT))  # a thread that nobody carried along
        assert (outer.heard, inner.heard) == ([], [])
        emit(EVENT)
    emit(EVENT)
    with listening(elsewhere, every_thread=True):
        in_thread(lambda: emit(EVENT))
    assert [len(each.heard) for each in (outer, inner, elsewhere)] == [1, 1, 1]


def test_a_carried_thread_that_outlives_the_body_is_not_heard() -> None:
    ears, go = Ears(), threading.Event()

    def late() -> None:
        go.wait()
        emit(EVENT)

    with listening(ears), carried_into_threads():
        thread = threading.Thread(target=late)
        thread.start()
    go.set()
    thread.join()
    assert ears.heard == []


# Permissions


def test_the_innermost_reason_that_covers_the_event_is_given() -> None:
    assert allowed_reason(EventKind.READ) is None
    with allow("all"), allow("only uploads", rules=["HL2"]):
        assert allowed_reason(EventKind.READ, FactKind.ITEM) == "all"
        assert allowed_reason(EventKind.UPLOAD, FactKind.UPLOAD_CONSTRUCTOR) == "only uploads"
    assert allowed_reason(EventKind.READ) is None


@pytest.mark.parametrize(
    ("rule", "kind", "fact", "covered"),
    [
        ("device-item", EventKind.READ, FactKind.ITEM, True),
        ("device-item", EventKind.READ, FactKind.TOLIST, False),
        ("device-item", EventKind.READ, None, True),
        ("HL1", EventKind.HIDDEN_WAIT, FactKind.CHECKED_LINALG, True),
        ("HL1", EventKind.UPLOAD, FactKind.UPLOAD_CONSTRUCTOR, False),
        ("HL4", EventKind.FLUSH, None, True),
        ("HL4", EventKind.READ, None, False),
    ],
)
def test_rules_limit_what_is_allowed(rule: str, kind: EventKind, fact: FactKind | None, covered: bool) -> None:
    with allow("a reason", rules=[rule]):
        assert (allowed_reason(kind, fact) is not None) is covered


def test_a_wrong_allow_is_an_error_at_once() -> None:
    with pytest.raises(ValueError, match="reason"), allow("  "):
        pass
    with pytest.raises(ValueError, match="no-such-rule"), allow("a reason", rules=["no-such-rule"]):
        pass


def test_entries_match_the_end_of_the_path_and_the_function_by_either_name() -> None:
    sites = CallSites.parse(["stages/denoise.py:run", "other.py:Loop.step"])
    assert sites.cover(Frame("/p/stages/denoise.py", 1, "Stage.run"))
    assert sites.cover(Frame("C:\\p\\stages\\denoise.py", 1, "run"))
    assert sites.cover(Frame("/p/other.py", 1, "Loop.step"))
    assert not sites.cover(Frame("/p/other.py", 1, "step.<locals>.inner"))
    assert not sites.cover(Frame("/p/denoise.py", 1, "run"))


# Call sites


def test_origins_are_told_apart_by_path() -> None:
    import hostlint.runtime_checks

    torch = pytest.importorskip("torch")
    assert origin_of(__file__) is Origin.USER
    assert origin_of(torch.__file__) is Origin.TORCH
    assert origin_of(str(Path(torch.__file__).parent.parent / "torchvision" / "ops.py")) is Origin.LIBRARY
    assert origin_of(logging.__file__) is Origin.PYTHON
    assert origin_of(hostlint.runtime_checks.__file__) is Origin.HOSTLINT
    assert origin_of("<stdin>") is Origin.USER
    assert origin_of("<eval_with_key>.3") is Origin.TORCH
    assert origin_of("<frozen importlib._bootstrap>") is Origin.PYTHON


def test_the_users_innermost_frame_is_found_below_libraries() -> None:
    frames: list[tuple[Frame, ...]] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            frames.append(current_stack())

    logger = logging.Logger("test")
    logger.addHandler(Handler())
    logger.warning("here")
    (stack,) = frames
    assert stack[0].function.endswith("emit")
    assert stack[1].origin is Origin.PYTHON
    deeper = stack[1:]
    assert user_frame(deeper).function.endswith("test_the_users_innermost_frame_is_found_below_libraries")
    assert caller_outside_torch(deeper) == user_frame(deeper)


# The package


def test_importing_the_package_and_its_torch_free_parts_does_not_import_torch() -> None:
    script = (
        "import sys\nimport hostlint.runtime_checks as r\nfrom hostlint.runtime_checks import allow, request_gc, record_gc, forbid_gc\n"
        "assert 'torch' not in sys.modules\nassert set(r.__all__) <= set(dir(r))\n"
        "from hostlint.runtime_checks import plugin\nassert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_torch_a_guard_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    script = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nfrom hostlint.runtime_checks import no_cuda_sync\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("no_cuda_sync needs torch: pip install 'hostlint[runtime]'")


def test_every_name_that_is_offered_is_there() -> None:
    import hostlint.runtime_checks as package

    pytest.importorskip("torch")
    assert sorted(package.__all__) == sorted(package._HOMES)
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        package.no_such_name  # noqa: B018
