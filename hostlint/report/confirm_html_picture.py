"""A step as a picture: a track for each thread of the host, with what happened there, where it is written and what was said of it."""
from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING

from hostlint.confirm.standing import Standing, Standings
from hostlint.report.confirm_html_elements import Markup, join, tag
from hostlint.report.confirm_words import plural, seconds, short

if TYPE_CHECKING:
    from hostlint.confirm.record import Event, Record
    from hostlint.report.confirm_html_steps import Drawn, Step, Track

MOST_CHIPS = 60  # of a track; a run of the same event is one
NARROWEST = 0.4  # per cent of a track that a mark takes at least
LEGEND = {
    Standing.UNPREDICTED: "no finding explains it",
    Standing.EXPLAINED: "has a finding",
    Standing.HIDDEN: "has a finding that is not shown",
    Standing.SETUP: "outside the steps",
    Standing.ALLOWED: "allowed",
    Standing.LIBRARY: "inside code that was not scanned",
    Standing.COLLECTION: "collection of garbage",
}


class Pictures:
    """Draws steps of one record; marks lead to the row of their finding, or of their event, where the page has it (`rows`)."""

    def __init__(self, record: Record, standings: Standings, rows: Container[str]) -> None:
        self._events = record.events
        self._standings = standings
        self._rows = rows

    def draw(self, steps: Sequence[Step]) -> Markup:
        """All pictures, with buttons to choose one; without a script they stand below each other."""
        names = [tag("button", step.title, type="button", data_step=number) for number, step in enumerate(steps)]
        buttons = tag("div", *names, class_="choice", hidden=True) if len(steps) > 1 else ""
        used = {self._standings.of(one.event) for step in steps for track in step.tracks for one in track.drawn}
        return join([buttons, *map(self._figure, steps), tag("ul", *map(_legend, filter(used.__contains__, Standing)), class_="legend")])

    def _figure(self, step: Step) -> Markup:
        many = sum(len(track.drawn) for track in step.tracks)
        told = [plural(many, "event"), f"{seconds(step.end)} long" if step.timed else "in their order: a stand-in knows no times"]
        if step.left_out[0]:
            told.append(f"{plural(step.left_out[0], 'more event')} without room")
        if step.left_out[1]:
            told.append(f"{plural(step.left_out[1], 'more track')} without room")
        caption = tag("figcaption", tag("strong", step.title), f" {', '.join(told)}")
        scale = _scale(step) if step.timed else ""
        return tag("figure", caption, *(self._track(track, step) for track in step.tracks), scale, class_="step")

    def _track(self, track: Track, step: Step) -> Markup:
        lane = tag("div", *(self._mark(one, step) for one in track.drawn), class_="lane", aria_hidden="true")
        chips = list(_runs(track.drawn))
        more = tag("li", f"and {len(chips) - MOST_CHIPS:,} more") if len(chips) > MOST_CHIPS else ""
        listed = tag("ol", *(self._chip(*one, step.timed) for one in chips[:MOST_CHIPS]), more, class_="chips")
        return tag("div", tag("div", track.name, class_="name"), lane, listed, class_="track")

    def _mark(self, one: Drawn, step: Step) -> Markup:
        whole = step.end or 1.0
        left = 100 * one.start / whole
        width = max(100 * one.length / whole - (0 if step.timed else 0.15), NARROWEST)
        style = f"left:{min(left, 100 - NARROWEST):.3f}%;width:{min(width, 100 - left if left < 100 - NARROWEST else NARROWEST):.3f}%"
        return tag("a", class_=self._standings.of(one.event).value, style=style, title=self._title(one, step.timed), href=self._target(one),
                   tabindex=-1)  # fmt: skip

    def _chip(self, one: Drawn, times: int, length: float, timed: bool) -> Markup:
        event = self._events[one.event]
        often = f" \N{MULTIPLICATION SIGN}{times}" if times > 1 else ""
        took = tag("i", seconds(length)) if timed and length else ""
        words = (tag("b", f"{short(event.place.path).rpartition('/')[2]}:{event.place.line}"), f" {event.call}{often} ", took)
        content = (tag("small", event.kind), *words)
        return tag("li", tag("a", *content, class_=self._standings.of(one.event).value, href=self._target(one), title=_where(event)))

    def _title(self, one: Drawn, timed: bool) -> str:
        event = self._events[one.event]
        took = f", {seconds(one.length)} from {seconds(one.start)}" if timed else f", number {int(one.start) + 1}"
        return f"{event.kind} {event.call}, {_where(event)}{took}: {LEGEND[self._standings.of(one.event)]}"

    def _target(self, one: Drawn) -> str | None:
        explained = self._standings.of(one.event) is Standing.EXPLAINED
        row = f"f{self._standings.findings(one.event)[0]}" if explained else f"e{one.event}"
        return f"#{row}" if row in self._rows else None


def _where(event: Event) -> str:
    return f"{short(event.place.path)}:{event.place.line} in {event.place.function}"


def _runs(drawn: Sequence[Drawn]) -> Iterator[tuple[Drawn, int, float]]:
    """What follows on itself once, with how often it does and how long that takes together."""
    run: list[Drawn] = []
    for one in drawn:
        if run and run[0].event != one.event:
            yield run[0], len(run), sum(each.length for each in run)
            run = []
        run.append(one)
    if run:
        yield run[0], len(run), sum(each.length for each in run)


def _scale(step: Step) -> Markup:
    return tag("div", *(tag("span", seconds(step.end * part / 4)) for part in range(5)), class_="scale", aria_hidden="true")


def _legend(standing: Standing) -> Markup:
    return tag("li", tag("span", class_=standing.value), LEGEND[standing])
