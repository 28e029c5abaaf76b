"""Reading a project's configuration, and the words for what is wrong with it."""
from __future__ import annotations

from pathlib import Path

import pytest

from hostlint.config.files import Config, find, read
from hostlint.errors import ConfigError
from hostlint.model import Confidence, HeatLevel, Severity

EVERY_KEY = """
select = ["HL1", "HL2"]
ignore = ["device-item"]
extend-select = ["HL901"]
exclude = ["old"]
extend-exclude = ["gen/*"]
min-heat = "any"
min-confidence = "possible"
fail-on = "error"
hot = ["pkg.serve:Engine.step"]
cold = ["pkg.tools:*"]
device-names = ["hidden"]
host-names = ["lengths"]
device-returns = ["pkg.ops:norm"]
upload-helpers = ["pkg.util:to_gpu"]
rule-modules = ["our_rules"]
baseline = "known.jsonl"
cache-dir = "var/cache"
[PREFIX.per-file-ignores]
"tests/*" = ["HL1"]
"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def expected(file: Path) -> Config:
    return Config(
        file=file,
        select=("HL1", "HL2"),
        ignore=("device-item",),
        extend_select=("HL901",),
        per_file_ignores=(("tests/*", ("HL1",)),),
        exclude=("old",),
        extend_exclude=("gen/*",),
        min_heat=HeatLevel.COLD,
        min_confidence=Confidence.POSSIBLE,
        fail_on=Severity.ERROR,
        hot=("pkg.serve:Engine.step",),
        cold=("pkg.tools:*",),
        device_names=("hidden",),
        host_names=("lengths",),
        device_returns=("pkg.ops:norm",),
        upload_helpers=("pkg.util:to_gpu",),
        rule_modules=("our_rules",),
        baseline=file.parent / "known.jsonl",
        cache_dir=file.parent / "var/cache",
    )


def test_every_key_of_hostlint_toml(tmp_path: Path) -> None:
    file = write(tmp_path / "hostlint.toml", EVERY_KEY.replace("PREFIX.", ""))
    assert read(file) == expected(file)


def test_every_key_of_pyproject(tmp_path: Path) -> None:
    file = write(tmp_path / "pyproject.toml", "[tool.other]\nx = 1\n[tool.hostlint]" + EVERY_KEY.replace("PREFIX", "tool.hostlint"))
    assert read(file) == expected(file)


def test_the_nearest_file_wins(tmp_path: Path) -> None:
    outer = write(tmp_path / "hostlint.toml", 'fail-on = "error"')
    write(tmp_path / "a" / "pyproject.toml", "[project]\nname = 'x'\n")
    inner = write(tmp_path / "a" / "b" / "pyproject.toml", "[tool.hostlint]\n")
    write(tmp_path / "a" / "b" / "c" / "x.py", "")
    assert find(tmp_path / "a").file == outer
    assert find(tmp_path / "a" / "b" / "c").file == inner
    beside = write(tmp_path / "a" / "b" / "hostlint.toml", "")
    assert find(tmp_path / "a" / "b" / "c").file == beside


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("selct = []", ["unknown key `selct`", "did you mean `select`?"]),
        ("min_heat = 'call'", ["unknown key `min_heat`", "did you mean `min-heat`?"]),
        ("zzz = 1", ["unknown key `zzz`"]),
        ("select = 'HL1'", ["`select` must be a list of strings, not 'HL1'"]),
        ("select = ['HL1', 2]", ["`select` must be a list of strings, not 2"]),
        ("baseline = []", ["`baseline` must be a string, not a list"]),
        ("per-file-ignores = ['x']", ["`per-file-ignores` must be a table of lists of strings, not a list"]),
        ("[per-file-ignores]\nx = 'HL1'", ["`per-file-ignores` must be", "not 'HL1'"]),
        ("min-heat = 'cal'", ["`min-heat` must be one of request, call, loop, any", "did you mean `call`?"]),
        ("min-heat = true", ["`min-heat` must be", "not True"]),
        ("min-confidence = 'sure'", ["`min-confidence` must be one of possible, likely, certain"]),
        ("fail-on = 'warn'", ["`fail-on` must be one of", "did you mean `warning`?"]),
        ("select = [", ["not valid TOML"]),
    ],
)
def test_mistakes_name_the_file_and_the_key(tmp_path: Path, text: str, words: list[str]) -> None:
    file = write(tmp_path / "hostlint.toml", text)
    with pytest.raises(ConfigError) as caught:
        read(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert [word for word in words if word not in str(caught.value)] == []


def test_a_section_that_is_no_table(tmp_path: Path) -> None:
    file = write(tmp_path / "pyproject.toml", "[tool]\nhostlint = 3\n")
    with pytest.raises(ConfigError, match="must be a table"):
        find(tmp_path)
    write(file, "[project]\nname = 'x'\n")
    with pytest.raises(ConfigError, match=r"no \[tool.hostlint\] table"):
        read(file)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        read(tmp_path / "missing.toml")
    (tmp_path / "latin.toml").write_bytes(b'baseline = "\xe9"')
    with pytest.raises(ConfigError, match="not valid TOML"):
        read(tmp_path / "latin.toml")
