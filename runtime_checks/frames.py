"""Where in the user's program something happened: the frames of the calling thread, told apart by whose code they are."""
from __future__ import annotations

import sys
import sysconfig
from functools import lru_cache
from pathlib import Path
from types import FrameType

from hostlint.runtime_checks.events import Frame, Origin

DEPTH = 64  # frames kept; deeper ones are those of the program's start
_OWN = str(Path(__file__).parent)
_RESUMED = "torch_dynamo_resume_in_"
_INSTALLED = ("site-packages", "dist-packages")
_MADE = {"<frozen": Origin.PYTHON, "<eval_with_key>": Origin.TORCH}  # torch.fx names the code that it generates so
_PYTHON = tuple({str(Path(sysconfig.get_path(name))) for name in ("stdlib", "platstdlib")})


@lru_cache(maxsize=4096)
def origin_of(path: str) -> Origin:
    """Whose code a file is, from its path alone."""
    if path.startswith("<"):
        return next((origin for start, origin in _MADE.items() if path.startswith(start)), Origin.USER)
    parts = Path(path).parts
    if _inside(path, _OWN):
        return Origin.HOSTLINT
    if any(name in parts for name in _INSTALLED):
        start = next(index for index, part in enumerate(parts) if part in _INSTALLED)
        inner = parts[start + 1 :]
        return Origin.TORCH if inner[:1] in (("torch",), ("torchgen",), ("functorch",)) else Origin.LIBRARY
    return Origin.PYTHON if any(_inside(path, folder) for folder in _PYTHON) else Origin.USER


def _inside(path: str, folder: str) -> bool:
    return path.startswith((folder + "/", folder + "\\"))


def stack_from(frame: FrameType | None) -> tuple[Frame, ...]:
    """The frames from `frame` outwards, innermost first, without this package's own."""
    frames: list[Frame] = []
    while frame is not None and len(frames) < DEPTH:
        code = frame.f_code
        origin = origin_of(code.co_filename)
        if origin is not Origin.HOSTLINT:
            frames.append(Frame(code.co_filename, frame.f_lineno or code.co_firstlineno, _name(frame), origin))
        frame = frame.f_back
    return tuple(frames)


def _name(frame: FrameType) -> str:
    name: str = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
    # torch.compile runs what follows a graph break as a function of its own
    return name[len(_RESUMED) :].rpartition("_at_")[0] if name.startswith(_RESUMED) else name


def current_stack(skip: int = 0) -> tuple[Frame, ...]:
    """The calling thread's frames, innermost first; `skip` leaves out that many callers' own frames."""
    return stack_from(sys._getframe(1 + skip))


def user_frame(stack: tuple[Frame, ...]) -> Frame:
    """The innermost frame of the user's code, else the innermost outside torch and Python, else the innermost."""
    for wanted in ((Origin.USER,), (Origin.LIBRARY,), tuple(Origin)):
        for frame in stack:
            if frame.origin in wanted:
                return frame
    return NOWHERE


def caller_outside_torch(stack: tuple[Frame, ...]) -> Frame:
    """The innermost frame that is neither torch's nor Python's own: the function that issued the call."""
    return next((frame for frame in stack if frame.origin in (Origin.USER, Origin.LIBRARY)), NOWHERE)


NOWHERE = Frame("<no Python frame>", 0, "<unknown>", Origin.PYTHON)
