"""The page of a run: sound HTML that loads nothing and that no text can break, pictures of the right steps, links that lead somewhere."""
from __future__ import annotations

import re
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b, sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from hostlint.confirm.record import Event, Loop, Mark, Pass, Place, Process, Record
from hostlint.confirm.standing import Standing, Standings
from hostlint.report.confirm_html import render
from hostlint.report.confirm_html_elements import VOID, Markup, join, tag
from hostlint.report.confirm_html_steps import MOST_MARKS, Step, Steps

NASTY = "</script></style><img src=x onerror=alert(1)>\"'><b>&amp;\x1b\u202e"
TRAIN = "import torch\n\n\ndef train(x):\n    for _ in range(9):\n        a = x.item()\n        b = x.tolist(\n        )\n    return a, b\n"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def event(line: int, count: int = 4, kind: str = "read", **given: Any) -> Event:
    settings: dict[str, Any] = {
        "call": "Tensor.item", "path": "train.py", "function": "train", "stack": (), "fact": None, "allowed": None, "waits": count,
        "blocked_s": 0.004, "bytes": 0, "threads": ("MainThread",), "ranks": {"": count}, "most": count, **given,
    }  # fmt: skip
    place = Place(settings.pop("path"), line, settings.pop("function"))
    return Event(kind=kind, place=place, count=count, **settings)


def finding(line: int, verdict: str = "confirmed", **given: Any) -> dict[str, Any]:
    confirmed = {"verdict": verdict, "count": 4, "steps": 4, "per_step": 1.0, "blocked_ms": 4.0, "why": None, "ranks": None}
    return {
        "code": "HL101", "name": "device-item", "path": "train.py", "line": line, "column": 13, "end_line": line, "end_column": 21,
        "message": "`x.item()` waits; read it later", "severity": "warning", "confidence": "certain", "function": "train",
        "heat": {"level": "loop", "chain": [{"path": "train.py", "line": 5, "function": "train"}]}, "kind_evidence": "`x` is a parameter",
        "fix": None, "confirmed": {**confirmed, **given.pop("confirmed", {})}, **given,
    }  # fmt: skip


def process(marks: Sequence[Mark | tuple[int, float]], passes: Sequence[float] = (), rank: str = "", **given: Any) -> Process:
    """Marks as (event, start) hold the host for 10 ms."""
    settings: dict[str, Any] = {"pid": 7, "threads": ("MainThread",), "torch": "2.13.0", "device": "cuda", "began_s": 100.0, **given}
    made = tuple(one if isinstance(one, Mark) else Mark(one[0], one[1], 0.01, 0) for one in marks)
    return Process(parent=1, how="started", rank=rank, arguments=("/usr/bin/python3", "train.py"), python="3.11.7",
                   marks=made, passes=tuple(Pass(0, start) for start in passes), **settings)  # fmt: skip


FOUR_STEPS = [(event, step + offset) for step in range(4) for event, offset in ((0, 0.25), (1, 0.5))]


def record(**given: Any) -> Record:
    """Four passes of one second each, in each of them event 0 (which finding 0 explains) and event 1 (which none does)."""
    settings: dict[str, Any] = {
        "program": ("train.py",), "device": "cuda", "exit": 0, "events": (event(6), event(7, call="Tensor.tolist")),
        "loops": (Loop("train.py", 6, 4),), "processes": (process(FOUR_STEPS, [0.0, 1.0, 2.0, 3.0]),), "digests": {"train.py": ""},
        "findings": (finding(6), finding(9, "not-reached")), "unpredicted": (1,), "explained": ((0,), ()), **given,
    }  # fmt: skip
    return Record(**settings)


class Page(HTMLParser):
    """Reads a page as strictly as XHTML was read: what is opened is closed, in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), attrs
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        raise AssertionError(f"<{tag}/>")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def having(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        wanted = {key.rstrip("_"): value for key, value in attributes.items()}
        return [found for name, found in self.elements if name == tag and all(found.get(key) == value for key, value in wanted.items())]

    @property
    def text(self) -> str:
        return "".join(data for tag, data in self.texts if tag not in ("script", "style"))

    @property
    def lanes(self) -> list[list[dict[str, str | None]]]:
        """The marks of each track."""
        found: list[list[dict[str, str | None]]] = []
        for name, attributes in self.elements:
            if name == "div" and attributes.get("class") == "lane":
                found.append([])
            elif name == "a" and "style" in attributes:
                found[-1].append(attributes)
        return found


def drawn(step: Step) -> list[tuple[str, list[float]]]:
    return [(track.name, [one.start for one in track.drawn]) for track in step.tracks]


def page(made: Record) -> Page:
    return Page(render(made, False))


def check_links(read: Page) -> None:
    names = [found["id"] for _, found in read.elements if "id" in found]
    assert len(set(names)) == len(names)
    links = [str(found["href"]) for _, found in read.elements if "href" in found]
    links += [f"#{found['aria-labelledby']}" for _, found in read.elements if "aria-labelledby" in found]
    assert [link for link in links if not link.startswith("#") or link[1:] not in names] == []


def test_the_page_is_sound_and_loads_nothing() -> None:
    text = render(record(), False)
    read = Page(text)
    check_links(read)
    assert {"#f0", "#e1", "#rule-HL101"} <= {found.get("href") for found in read.having("a")}
    assert [found for _, found in read.elements if {"src", "srcset", "action", "data", "background"} & set(found)] == []
    assert not {"link", "img", "iframe", "object", "base", "form"} & {name for name, _ in read.elements}
    assert not re.search(r"url\(|@import|https?:|fetch\(|XMLHttp", "".join(data for tag, data in read.texts if tag in ("script", "style")))
    (script,) = [data for tag, data in read.texts if tag == "script"]
    (policy,) = read.having("meta", **{"http-equiv": "Content-Security-Policy"})
    seal = b64encode(sha256(script.encode()).digest()).decode()
    assert policy["content"] is not None
    assert policy["content"].startswith(f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{seal}'")


def test_no_text_of_a_program_can_break_the_page() -> None:
    nasty = event(6, call=NASTY, function=NASTY, path=NASTY, stack=(Place(NASTY, 3, NASTY),))
    events = tuple(replace(nasty, allowed=allowed, kind=kind) for allowed, kind in ((None, NASTY), (NASTY, "read"), (None, "collect")))
    words = dict.fromkeys(("message", "function", "path", "kind_evidence", "name"), NASTY)
    found = finding(6, NASTY, **words, fix={"message": NASTY, "applicability": "exact", "edits": []}, confirmed={"ranks": {NASTY: 3}})
    marks = [(number, float(number)) for number in range(3)]
    processes = (process(marks, rank=NASTY, threads=(NASTY,), gpu=NASTY), process(marks, rank="2", pid=8, failed=NASTY))
    joined = {"findings": (found,), "explained": ((0,), (), ()), "unpredicted": ()}
    made = record(program=(NASTY,), events=events, processes=processes, loops=(), **joined)
    text = render(made, False)
    read = Page(text)
    check_links(read)
    assert [name for name, _ in read.elements if name == "img"] == []
    assert len(read.having("script")) == len(read.having("style")) == 1
    assert all(not key.startswith("on") for _, found in read.elements for key in found)
    assert read.text.count("<img src=x onerror=alert(1)>") > 15
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_elements_escape_what_is_no_markup() -> None:
    inner = tag("b", 'a < "b"', class_="x & y", data_key=3, hidden=True, title=None)
    assert inner == '<b class="x &amp; y" data-key="3" hidden>a &lt; &quot;b&quot;</b>'
    assert tag("p", inner, f"{inner}", tag("br")) == f"<p>{inner}{join([str(inner)])}<br></p>"
    assert "&lt;b class" in join([str(inner)])
    assert isinstance(join([inner, "<"]), Markup)


def test_a_step_is_drawn_to_scale() -> None:
    """A second long; its events begin after a quarter and a half of it, and take a hundredth."""
    read = page(record())
    assert len(read.lanes) == 2  # a typical step and the first one: none is longer
    for lane in read.lanes:
        assert [(mark["style"], mark["class"], mark["href"]) for mark in lane] == [
            ("left:25.000%;width:1.000%", "explained", "#f0"),
            ("left:50.000%;width:1.000%", "unpredicted", "#e1"),
        ]
    assert "Typical step (2 of 4) 2 events, 1.00 s long" in read.text


def test_without_times_a_step_shows_the_order_and_says_so() -> None:
    events = tuple(replace(one, blocked_s=None) for one in record().events)
    collected = event(3, kind="collect", blocked_s=0.5)  # the collector's times are known everywhere, and say nothing about waits
    read = page(record(device="simulated", events=(*events, collected)))
    lefts = [str(mark["style"]).partition(";")[0] for mark in read.lanes[0]]
    assert lefts == ["left:0.000%", "left:50.000%"]
    assert "2 events, in their order: a stand-in knows no times" in read.text
    assert "simulated device: no times" in read.text
    assert [data for tag, data in read.texts if tag == "button"].count("blocked") == 1  # of the collections


def test_each_rank_has_a_track_by_its_own_steps() -> None:
    """The second rank runs half a second late; its third step is compared with the first rank's third."""
    late = [(number, start + 0.5) for number, start in FOUR_STEPS]
    ranks = (process(FOUR_STEPS, [0.0, 1.0, 2.0, 3.0], "0"), process(late, [0.5, 1.5, 2.5, 3.5], "1", pid=8))
    typical = Steps(record(processes=ranks)).worth_showing()[0]
    assert drawn(typical) == [("rank 0", [0.25, 0.5]), ("rank 1", [0.75, 1.0])]


def test_threads_have_tracks_and_keep_the_order_between_them() -> None:
    marks = [Mark(0, 0.1, 0.0, 0), Mark(1, 0.2, 0.0, 1), Mark(0, 0.3, 0.0, 0)]
    events = tuple(replace(one, blocked_s=None) for one in record().events)
    (step,) = Steps(record(events=events, loops=(), processes=(process(marks, threads=("MainThread", "loader")),))).worth_showing()
    assert step.title == "All that was recorded (no step loop is known)"
    assert drawn(step) == [("main thread", [0.0, 2.0]), ("loader", [1.0])]


def test_steps_are_the_marked_ones_else_the_passes_of_the_outermost_loop_around_the_events() -> None:
    inner = tuple(Pass(1, step + part / 10) for step in range(4) for part in range(8))
    seldom = (Pass(2, 3.9), Pass(2, 3.95))
    outer = process(FOUR_STEPS, [0.0, 1.0, 2.0, 3.0])
    loops = (Loop("train.py", 6, 4), Loop("train.py", 7, 32), Loop("train.py", 8, 2))
    many = replace(outer, passes=(*outer.passes, *inner, *seldom))
    assert Steps(record(loops=loops, processes=(many,))).begins(0) == [100.0, 101.0, 102.0, 103.0]
    marked = replace(many, marks=(Mark(-1, 0.0, 0.0, 0), *many.marks, Mark(-1, 2.0, 0.0, 0)), steps=2)
    steps = Steps(record(loops=loops, processes=(marked,)))
    assert steps.begins(0) == [100.0, 102.0]
    assert [step.title for step in steps.worth_showing()] == ["Typical step (2 of 2)", "First step (1 of 2)"]


def test_the_steps_that_are_shown_are_typical_first_and_longest() -> None:
    """Passes of 5, 1, 1, 3, 1 seconds and one whose end is not known."""
    begins = [0.0, 5.0, 6.0, 7.0, 10.0, 11.0]
    marks = [(0, begin + 0.5) for begin in begins] + [(1, 50.0)]
    loops = (Loop("train.py", 6, 6),)
    steps = Steps(record(loops=loops, processes=(process(marks, begins),))).worth_showing()
    assert [(step.title, step.end) for step in steps] == [
        ("Typical step (2 of 6)", 1.0), ("First step (1 of 6)", 5.0), ("Longest step (4 of 6)", 3.0),
    ]  # fmt: skip


def test_a_picture_has_room_for_so_much() -> None:
    threads = tuple(f"worker {number}" for number in range(64))
    marks = [Mark(number % 2, number / 1000, 0.0001, number % 64) for number in range(64_000)]
    text = render(record(loops=(), processes=(process(marks, threads=threads),)), False)
    read = Page(text)
    assert 0 < sum(map(len, read.lanes)) <= MOST_MARKS
    assert len(read.lanes) == 24
    assert f"{64_000 - sum(map(len, read.lanes)):,} more events without room, 40 more tracks without room" in read.text
    assert len(text) < 1_000_000


def test_tables_have_room_for_so_much() -> None:
    events = tuple(event(number + 1, call=f"call_{number}") for number in range(900))
    findings = tuple(finding(number + 1) for number in range(700))
    marks = process([(0, 0.5), (899, 1.5)])  # the last one's row is not on the page
    made = record(events=events, findings=findings, unpredicted=tuple(range(900)), explained=((),) * 900, processes=(marks,), loops=())
    read = page(made)
    check_links(read)
    assert [mark.get("href") for mark in read.lanes[0]] == ["#e0", None]
    assert len([found for found in read.having("tbody") if str(found.get("id", "")).startswith("f")]) == 300
    assert "400 more are in the record" in read.text
    assert "600 more are in the record" in read.text


def test_numbers_sort_as_numbers_and_places_by_line() -> None:
    read = page(record(findings=(finding(6, confirmed={"count": 1000}), finding(12))))
    keys = [found.get("data-key") for found in read.having("td") if found.get("data-key")]
    assert {"1000", "train.py:000000006", "train.py:000000012"} <= set(keys)
    heads = [found for found in read.having("th", scope="col") if found.get("class") in ("number", "text")]
    assert len(heads) == 6 + 5  # of the findings, and of the events that none explains


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "hostlint.toml").write_text("")
    (tmp_path / "train.py").write_text(TRAIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def digested(text: str) -> dict[str, str]:
    return {"train.py": blake2b(text.encode(), digest_size=16).hexdigest()}


def test_a_finding_shows_its_source_with_the_expression_marked(project: Path) -> None:
    read = page(record(digests=digested(TRAIN), findings=(finding(6), finding(7, end_line=8, end_column=10))))
    marked = [data for tag, data in read.texts if tag == "mark"]
    assert marked == ["x.item()"] * 2 + ["x.tolist("] * 2 + [")"] + ["b = x.tolist("] * 2  # the last of the event that none explains
    assert "for _ in range(9):" in read.text
    assert [data for tag, data in read.texts if tag == "b"].count("6") == 3  # numbered in the frames of both findings and of the event


def test_a_file_that_is_not_what_was_scanned_is_not_shown(project: Path) -> None:
    (project / "train.py").write_text(TRAIN.replace("range(9)", "range(8)"))
    read = page(record(digests=digested(TRAIN)))
    assert [data for tag, data in read.texts if tag == "mark"] == []
    assert "range(8)" not in read.text
    assert "x.item() waits" in read.text


def test_a_record_cannot_put_another_file_into_a_page(project: Path) -> None:
    (project / "secret").write_text("word of pass\n")
    found = finding(1, path="secret")
    assert "word of pass" not in page(record(findings=(found,), digests={"secret": ""})).text


def test_every_event_has_a_standing() -> None:
    events = (
        event(6), event(7), event(8), event(9, allowed="a log line"), event(1, path="/x/site-packages/lib.py"), event(3, kind="collect"),
        event(4, kind="collect", allowed="between requests"), event(5), event(2, kind="collect"),
    )  # fmt: skip
    made = record(events=events, unpredicted=(1,), setup=(2,), library=(4,), explained=((0,), (), (), (0,), (), (), (), (), (1,)))
    standings = Standings(made)
    assert [standings.of(number) for number in range(len(events))] == [
        Standing.EXPLAINED, Standing.UNPREDICTED, Standing.SETUP, Standing.ALLOWED, Standing.LIBRARY, Standing.COLLECTION,
        Standing.ALLOWED, Standing.HIDDEN, Standing.EXPLAINED,
    ]  # fmt: skip
    check_links(page(made))


@pytest.mark.parametrize("made", [record(events=(), findings=(), processes=(), unpredicted=(), explained=()), record(processes=())])
def test_little_was_recorded(made: Record) -> None:
    read = page(made)
    check_links(read)
    assert read.lanes == []
    assert "did not import torch" in read.text


@pytest.fixture
def dom(tmp_path: Path) -> Callable[..., Page]:
    """What a browser makes of a page, after its scripts have run."""
    if BROWSER is None:
        pytest.skip("no Chromium here")

    def opened(text: str, place: str = "") -> Page:
        (tmp_path / "page.html").write_text(text, encoding="utf-8")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
        flags += ["--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=2000"]
        command = [str(BROWSER), *flags, "--dump-dom", f"file://{tmp_path / 'page.html'}{place}"]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True, timeout=120)
        return Page(done.stdout)

    return opened


def test_a_browser_runs_the_script_and_shows_one_step(dom: Callable[..., Page]) -> None:
    read = dom(render(record(), False))
    assert [("hidden" in found) for found in read.having("figure", class_="step")] == [False, True]
    assert [found.get("aria-pressed") for found in read.having("button") if "data-step" in found] == ["true", "false"]


def test_a_browser_opens_the_part_that_a_link_leads_into(dom: Callable[..., Page]) -> None:
    text = render(record(setup=(1,), unpredicted=()), False)

    def is_open(place: str) -> list[bool]:
        sections = [found for name, found in dom(text, place).elements if name in ("details", "tbody")]
        inside = next(number for number, found in enumerate(sections) if found.get("id") == "e1")
        return ["open" in found for found in sections[:inside] if "id" not in found][-1:]

    assert (is_open(""), is_open("#e1")) == ([False], [True])


def test_a_browser_sorts_by_what_is_clicked(dom: Callable[..., Page]) -> None:
    findings = (finding(30, confirmed={"count": 9}), finding(4, confirmed={"count": 1000}), finding(200, confirmed={"count": 20}))
    text = render(record(findings=findings), False)
    policy = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
    assert policy.search(text)

    def order(*clicks: int) -> list[str | None]:
        click = "".join(f"document.querySelectorAll('#findings th button')[{number}].click();" for number in clicks)
        read = dom(policy.sub("", text).replace("</body>", f"<script>{click}</script></body>"))
        return [found["id"] for found in read.having("tbody") if str(found.get("id")).startswith("f")]

    assert order(2) == ["f1", "f2", "f0"]
    assert order(2, 2) == ["f0", "f2", "f1"]
    assert order(2, 4) == ["f1", "f0", "f2"]
