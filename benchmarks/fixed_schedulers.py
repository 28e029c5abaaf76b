"""Every scheduler of diffusers, as it is and as `hostlint fix --review` leaves it, over whole schedules on the CPU: are the bits the same?

    python benchmarks/fixed_schedulers.py [--json FILE] [NAME…]    (needs diffusers, scipy, torchsde)

diffusers is copied and its schedulers are fixed. Each class runs in the original and in the copy, with the same seeds, over a short and a
longer schedule and in the variants that its constructor offers (prediction types, orders, sigmas, thresholding). What every step returns
is compared as integers, NaNs by position, with dtype, shape and strides; a variant that raises must raise the same. Told are also the
fixes, and how many of the changed lines have run. Exit status 1 where a bit differs.
"""
from __future__ import annotations

import argparse
import difflib
import importlib
import importlib.util
import inspect
import json
import os
import pkgutil
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

SCHEDULES = (5, 12)
VARIANTS: dict[str, tuple[Any, ...]] = {
    "prediction_type": ("v_prediction", "sample", "flow_prediction"), "solver_order": (1, 3), "solver_type": ("bh1", "midpoint", "heun"),
    "algorithm_type": ("dpmsolver", "sde-dpmsolver++"), "use_karras_sigmas": (True,), "use_exponential_sigmas": (True,),
    "use_beta_sigmas": (True,), "thresholding": (True,), "lower_order_final": (False,), "final_sigmas_type": ("zero", "sigma_min"),
    "timestep_spacing": ("leading", "trailing", "linspace"), "rescale_betas_zero_snr": (True,), "set_alpha_to_one": (False,),
    "use_flow_sigmas": (True,), "beta_schedule": ("squaredcos_cap_v2", "scaled_linear"), "variance_type": ("learned_range", "fixed_large"),
    "use_dynamic_shifting": (True,), "stochastic_sampling": (True,), "shift": (3.0,), "invert_sigmas": (True,), "disable_corrector": ([0],),
}  # fmt: skip
FOLDER = "diffusers/schedulers"


def main() -> int:
    given = _arguments()
    if given.run:
        _run(given.run, given.names, given.quick)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        return _compared(given, Path(scratch))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="classes; all by default")
    parser.add_argument("--hostlint", default=f"{sys.executable} -m hostlint", help="how hostlint is called")
    parser.add_argument("--alone", action="store_true", help="fix the schedulers without the pipelines around them, which is quicker")
    parser.add_argument("--quick", action="store_true", help="one short schedule, as the constructor has it; no lines are noted")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _compared(given: argparse.Namespace, scratch: Path) -> int:
    spec = importlib.util.find_spec("diffusers")
    if spec is None or spec.origin is None:
        print("diffusers is not installed", file=sys.stderr)
        return 2
    original = Path(spec.origin).parent
    shutil.copytree(original, scratch / "fixed" / "diffusers", ignore=shutil.ignore_patterns("__pycache__"))
    if given.alone:
        shutil.copytree(original / "schedulers", scratch / "alone" / FOLDER, ignore=shutil.ignore_patterns("__pycache__"))
    said = _fix(given.hostlint, scratch / ("alone" if given.alone else "fixed"))
    if given.alone:
        shutil.copytree(scratch / "alone" / FOLDER, scratch / "fixed" / FOLDER, dirs_exist_ok=True)
    for name, path in (("original", original.parent), ("fixed", scratch / "fixed")):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path), os.environ.get("PYTHONPATH", "")])}
        command = [sys.executable, __file__, "--run", str(scratch / f"{name}.pt"), *["--quick"] * given.quick, *given.names]
        subprocess.run(command, env=environment, check=True)  # noqa: S603 - ourselves
    return _told(given, said, original, scratch)


def _fix(command: str, folder: Path) -> list[str]:
    """The lines in which the fixer says what it did to the schedulers."""
    options = ["fix", "--review", "--isolated", "--min-heat", "request", "--no-cache", "--exit-zero", "--color", "never", FOLDER]
    done = subprocess.run([*command.split(), *options], cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - hostlint
    if done.returncode:
        sys.exit(f"hostlint fix failed ({done.returncode}): {done.stdout[-500:]}{done.stderr[-2000:]}")
    return [line for line in done.stdout.splitlines() if ": fixed HL" in line]


def _told(given: argparse.Namespace, said: list[str], original: Path, scratch: Path) -> int:
    import torch

    from hostlint.runtime_checks.bits import difference

    before, after = (torch.load(scratch / f"{name}.pt", weights_only=False) for name in ("original", "fixed"))
    changed = {
        file.name: _changed(file, scratch / "fixed" / file.relative_to(original.parent))
        for file in sorted((original / "schedulers").rglob("*.py"))
    }
    ran = {name: set(lines) for name, lines in after["lines"].items()}
    same, rows = 0, []
    for name, runs in before["results"].items():
        differing = {variant: told for variant in runs if (told := difference(runs[variant], after["results"][name][variant], variant))}
        steps = sum(len(one) - 2 for one in runs.values() if isinstance(one, list))
        file = before["files"][name]
        rows.append({
            "class": name, "file": file, "variants": len(runs), "steps": steps, "differing": differing,
            "changed_lines": len(changed[file]), "changed_lines_run": len(changed[file] & ran.get(file, set())),
        })  # fmt: skip
        same += not differing
        told = f"{len(runs)} variants, {steps} steps; {file}: {len(changed[file])} lines changed"
        print(f"{name}: {'DIFFERS' if differing else 'equal'} ({told})")
        for one in differing.values():
            print(f"    {one[:300]}")
    total, executed = sum(map(len, changed.values())), sum(len(lines & ran.get(name, set())) for name, lines in changed.items())
    noted = "" if given.quick else f"; {executed} of {total} changed lines ran"
    print(f"{len(said)} fixes in {sum(bool(lines) for lines in changed.values())} files{noted}")
    print(f"{same} of {len(rows)} classes equal")
    if given.json:
        given.json.write_text(json.dumps({"classes": rows, "fixes": said, "changed_lines": total, "run": executed}, indent=1) + "\n")
    return 0 if same == len(rows) else 1


def _changed(before: Path, after: Path) -> set[int]:
    """The lines of the fixed file that the original has not, without those that hold no code of their own."""
    lines = after.read_text().splitlines()
    matcher = difflib.SequenceMatcher(None, before.read_text().splitlines(), lines, autojunk=False)
    pieces = [range(first, last) for kind, _, _, first, last in matcher.get_opcodes() if kind in ("replace", "insert")]
    words = {number: lines[number].strip() for piece in pieces for number in piece}
    return {number + 1 for number, word in words.items() if word.rstrip("()[]{},:") and not word.startswith(('"""', "#"))}


# In a process of its own: run all classes of the diffusers on the path


def _run(kept: Path, names: list[str], quick: bool) -> None:
    warnings.simplefilter("ignore")
    import diffusers
    import simulated_schedulers
    import torch

    diffusers.utils.logging.set_verbosity_error()
    names = names or sorted(name for name in dir(diffusers) if name.endswith("Scheduler") and not name.startswith("Flax"))
    results: dict[str, dict[str, object]] = {}
    files: dict[str, str] = {}
    lines: dict[str, set[int]] = {}
    folder = str(Path(diffusers.__file__).parent / "schedulers")
    for name in names:
        files[name] = Path(inspect.getfile(_class(name))).name
        results[name] = {}
        for steps in SCHEDULES[: 1 if quick else None]:
            simulated_schedulers.STEPS = steps
            for variant in [{}] if quick else _variants(_class(name)):
                with _lines_seen(folder, lines) if kept.stem == "fixed" and not quick else nullcontext():  # some libraries end a trace
                    results[name][f"{steps} steps, {variant}"] = _outputs(simulated_schedulers, name, variant)
    torch.save({"results": results, "files": files, "lines": lines}, kept)


def _class(name: str) -> Any:
    """The class itself, also where diffusers hides an old one behind a library that it does not need."""
    import diffusers

    found = getattr(diffusers, name)
    if "dummy" not in found.__module__:
        return found
    package = importlib.import_module("diffusers.schedulers.deprecated")
    modules = [importlib.import_module(f"{package.__name__}.{one.name}") for one in pkgutil.iter_modules(package.__path__)]
    return next(getattr(one, name) for one in modules if hasattr(one, name))


def _variants(kind: type) -> Iterator[dict[str, Any]]:
    yield {}
    taken = inspect.signature(kind.__init__).parameters  # type: ignore[misc]
    yield from ({name: value} for name, values in VARIANTS.items() if name in taken for value in values if value != taken[name].default)


def _outputs(driver: Any, name: str, variant: dict[str, Any]) -> object:
    """What every step returned, or what was raised."""
    import diffusers
    import torch

    kind, exported = _class(name), getattr(diffusers, name)
    seen: list[object] = []

    class Watched(kind):  # type: ignore[misc, valid-type]
        def set_timesteps(self, *args: Any, **options: Any) -> None:
            super().set_timesteps(*args, **options)
            seen.append(_noisy(self))

        def step(self, *args: Any, **options: Any) -> Any:
            out = super().step(*args, **options)
            parts = out if isinstance(out, tuple) else tuple(vars(out).values())
            seen.append([one.detach().clone() for one in parts if isinstance(one, torch.Tensor)])
            return out

    Watched.set_timesteps.__signature__ = inspect.signature(kind.set_timesteps)  # type: ignore[attr-defined]
    Watched.__name__ = Watched.__qualname__ = name
    Watched.step.__signature__ = inspect.signature(kind.step) if hasattr(kind, "step") else None  # type: ignore[attr-defined]
    torch.manual_seed(0)
    default = driver.CONSTRUCTED.get(name, {})
    setattr(diffusers, name, Watched)
    driver.CONSTRUCTED[name] = {**default, **variant}
    try:
        last = driver.program(name)("cpu")
    except Exception as error:  # noqa: BLE001 - a variant that this class refuses: the fixed one must refuse it too
        return f"{type(error).__name__}: {error}"
    finally:
        setattr(diffusers, name, exported)
        driver.CONSTRUCTED[name] = default
    return [*seen, [last]]


def _noisy(scheduler: Any) -> object:
    """What `add_noise` makes of a sample, where a scheduler has it."""
    import torch

    if not hasattr(scheduler, "add_noise"):
        return None
    sample, noise = torch.linspace(-1, 1, 48).view(1, 3, 4, 4), torch.linspace(2, -2, 48).view(1, 3, 4, 4)
    try:
        return scheduler.add_noise(sample, noise, scheduler.timesteps[1:2])
    except Exception as error:  # noqa: BLE001 - as in `_outputs`
        return f"{type(error).__name__}: {error}"


@contextmanager
def _lines_seen(folder: str, lines: dict[str, set[int]]) -> Iterator[None]:
    """Notes which lines of the files in a folder run."""

    def local(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            lines.setdefault(Path(frame.f_code.co_filename).name, set()).add(frame.f_lineno)
        return local

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        return local if frame.f_code.co_filename.startswith(folder) else None

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)


if __name__ == "__main__":
    sys.exit(main())
