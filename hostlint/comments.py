"""What `# hostlint:` comments say: suppressions, heat and placement hints, and the ones that cannot be understood."""
from __future__ import annotations

import contextlib
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import Enum

from hostlint.model import Span

MARK = "hostlint:"
_DIRECTIVE = re.compile(r"(?:^|(?<=\s))#\s*hostlint:[ \t]*")
# Another tool's comment on the same line (noqa, type: ignore) ends a reason; "see issue #12" does not.
_NEXT_COMMENT = re.compile(r"\s#\s*(?:noqa\b|[A-Za-z][\w-]*:)")
_IGNORE = re.compile(r"(ignore-file|ignore)\s*\[([^\]]*)\]\s*(.*)")
_SELECTOR = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_UNTIL = re.compile(r"(?:^|(?<=\s))until=(\S*)")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_HEAT = re.compile(r"(hot|cold)\b[\s:,;-]*(.*)")
_PLACE = re.compile(r"(device|host|constant)\s*\(([^()]*)\)[\s,;]*")
_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_KNOWN = "ignore[…], ignore-file[…], hot, cold, device(…), host(…), constant(…)"
_BEFORE_CODE = frozenset({tokenize.ENCODING, tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.STRING})
_LAYOUT = frozenset({tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})


class Scope(Enum):
    """How far a suppression reaches."""

    STATEMENT = "statement"  # the statement that holds one of its lines
    FILE = "file"
    BLOCK = "block"  # the body of `with allow(...)`


@dataclass(frozen=True, slots=True)
class Suppression:
    """`selectors` are as written (names, codes, code prefixes); none at all means every rule. `lines` is what it reaches, both ends
    included: a comment's own line, with the line of code below it where it stands alone; a block's body."""

    span: Span
    scope: Scope
    selectors: tuple[str, ...]
    reason: str
    until: date | None
    lines: tuple[int, int]


class HeatHint(Enum):
    HOT = "hot"
    COLD = "cold"


@dataclass(frozen=True, slots=True)
class Hint:
    """What the comments of one line claim about the function or the names on it."""

    span: Span
    heat: HeatHint | None = None
    reason: str = ""  # why it is cold
    device: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    constant: tuple[str, ...] = ()

    def joined(self, other: Hint) -> Hint:
        return Hint(
            self.span,
            other.heat or self.heat,
            other.reason or self.reason,
            self.device + other.device,
            self.host + other.host,
            self.constant + other.constant,
        )


@dataclass(frozen=True, slots=True)
class Malformed:
    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class Comments:
    """Everything said in one file's comments; `hints` by line."""

    suppressions: tuple[Suppression, ...] = ()
    hints: Mapping[int, Hint] = field(default_factory=dict)
    malformed: tuple[Malformed, ...] = ()

    def hint(self, first: int, last: int) -> Hint | None:
        """The hints on the lines `first` to `last` (a header, a statement) as one."""
        found: Hint | None = None
        for line in range(first, last + 1) if self.hints else ():
            if line in self.hints:
                found = found.joined(self.hints[line]) if found else self.hints[line]
        return found


@dataclass(frozen=True, slots=True)
class _Comment:
    body: str  # what follows `hostlint:`
    span: Span
    at_top: bool  # nothing but comments and a docstring comes before
    target: int  # the line that it is about: its own, or where it stands alone the line of code below


EMPTY = Comments()


def parse(text: str) -> Comments:
    """Read a file's comments and `with allow(...)` blocks; what cannot be tokenized ends the reading quietly, the parser reports it."""
    said_in_comments = map(_understand, _comments(text)) if MARK in text else ()
    said_in_code = _allow_blocks(text) if "runtime_checks" in text and "allow" in text else ()
    suppressions: list[Suppression] = []
    hints: dict[int, Hint] = {}
    malformed: list[Malformed] = []
    for said in (*said_in_comments, *said_in_code):
        if isinstance(said, Suppression):
            suppressions.append(said)
        elif isinstance(said, Hint):
            line = said.span.line
            hints[line] = hints[line].joined(said) if line in hints else said
        else:
            malformed.append(said)
    return Comments(tuple(suppressions), hints, tuple(malformed))


def _allow_blocks(text: str) -> Iterable[Suppression | Malformed]:
    from hostlint import allow  # it needs the types of this module, and few files need it

    return allow.blocks(text)


def _comments(text: str) -> Iterator[_Comment]:
    tokens = _tokens(text)
    code_lines = sorted({line for t in tokens if t.type not in _LAYOUT and t.type != tokenize.COMMENT for line in (t.start[0], t.end[0])})
    first_code = next((t.start[0] for t in tokens if t.type not in _BEFORE_CODE), len(text))
    occupied = frozenset(code_lines)
    commented = {t.start[0] for t in tokens if t.type == tokenize.COMMENT}
    following = iter(code_lines)
    target = 0
    for token in tokens:
        if token.type != tokenize.COMMENT or MARK not in token.string:
            continue
        row, column = token.start
        while target < row:
            target = next(following, row)
        alone = row not in occupied
        reached = target if alone and commented.issuperset(range(row, target)) else row
        for start, end, body in _bodies(token.string):
            yield _Comment(body, Span(row, column + start + 1, row, column + end + 1), row < first_code, reached)


def _bodies(comment: str) -> Iterator[tuple[int, int, str]]:
    """The directives of one comment: where each starts and ends, and what follows its `hostlint:`."""
    starts = [*_DIRECTIVE.finditer(comment)]
    for number, start in enumerate(starts):
        limit = starts[number + 1].start() if number + 1 < len(starts) else len(comment)
        other = _NEXT_COMMENT.search(comment, start.end(), limit)
        body = comment[start.end() : other.start() if other else limit].rstrip()
        yield start.start(), start.end() + len(body), body


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    found: list[tokenize.TokenInfo] = []
    lines = io.StringIO(text.replace("\r\n", "\n").replace("\r", "\n"))
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        found.extend(tokenize.generate_tokens(lines.readline))
    return found


def _understand(comment: _Comment) -> Suppression | Hint | Malformed:
    ignore = _IGNORE.fullmatch(comment.body)
    if ignore:
        return _suppression(comment, *ignore.groups())
    heat = _HEAT.fullmatch(comment.body)
    if heat:
        return Hint(comment.span, HeatHint(heat[1]), heat[2])
    if _PLACE.match(comment.body):
        return _placement(comment)
    if re.match(r"ignore(-file)?\b", comment.body):
        return Malformed(comment.span, "a suppression names its rules in brackets: `# hostlint: ignore[RULE] reason`")
    return Malformed(comment.span, f"`{comment.body}` is none of {_KNOWN}" if comment.body else f"nothing follows `{MARK}`: {_KNOWN}")


def _suppression(comment: _Comment, keyword: str, names: str, rest: str) -> Suppression | Malformed:
    selectors = tuple(name.strip() for name in names.split(","))
    wrong = next((name for name in selectors if not _SELECTOR.fullmatch(name)), None)
    if wrong is not None:
        return Malformed(comment.span, f"`{wrong}` is no rule, code or code prefix" if wrong else "a rule is missing between the brackets")
    whole_file = keyword == "ignore-file"
    if whole_file and not comment.at_top:
        return Malformed(comment.span, "`ignore-file` belongs at the top of the file, before the first statement")
    until = _UNTIL.search(rest)
    try:
        day = _day(until[1]) if until else None
    except ValueError as error:
        return Malformed(comment.span, f"`until=` wants a date as 2027-03-01: {error}")
    reason = (rest[: until.start()] + rest[until.end() :] if until else rest).strip(" \t:;,.-–—")
    scope = Scope.FILE if whole_file else Scope.STATEMENT
    return Suppression(comment.span, scope, selectors, reason, day, (comment.span.line, comment.target))


def _day(text: str) -> date:
    if not _DATE.fullmatch(text):  # newer Pythons read other forms too; which ones must not decide what a comment means
        raise ValueError(f"`{text}` has another form")
    return date.fromisoformat(text)


def _placement(comment: _Comment) -> Hint | Malformed:
    places: dict[str, tuple[str, ...]] = {"device": (), "host": (), "constant": ()}
    rest = comment.body
    while rest and (found := _PLACE.match(rest)):
        names = tuple(name.strip() for name in found[2].split(","))
        wrong = next((name for name in names if not _NAME.fullmatch(name)), None)
        if wrong is not None:
            return Malformed(comment.span, f"`{wrong}` in {found[1]}(…) is no name" if wrong else f"a name is missing in {found[1]}(…)")
        places[found[1]] += names
        rest = rest[found.end() :]
    if rest:
        return Malformed(comment.span, f"`{rest}` after the hints is not understood")
    return Hint(comment.span, device=places["device"], host=places["host"], constant=places["constant"])
