"""How often a test of a counter holds: every n-th time, once for each generation of results, or in one iteration only."""
from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence

from hostlint.facts.chains import chain
from hostlint.facts.schema import RegionKind
from hostlint.facts.senses import identifiers, sense
from hostlint.facts.trees import walk

# What such a number counts makes a step of its own, as the optimizer's after the gradients of several batches.
ACCUMULATION = re.compile(r"accum|micro_?batch|steps_per_(update|optim|grad|batch)", re.IGNORECASE)
# Two models take turns: the generator's steps and the critic's.
TURNS = re.compile(
    r"(^|_)(d?fake|gen(erator)?|disc(riminator)?|critics?|actor|policy|student|[dg])_((gen(erator)?|disc|score|model)_)?"
    r"(updates?|train|steps?|iters?|delay|every|freq(uency)?)(_(ratio|interval|every|freq(uency)?|steps?|period))?$|^n_critics?$",
    re.IGNORECASE,
)
GENERATION = re.compile(r"generat|rollout|num_iterations", re.IGNORECASE)
EVERY_WORDS = re.compile(
    r"should_(log|save|eval|print|record|sync_log)|log_(interval|every|steps|freq)|logging_steps|is_log|report_every|time_to_log|do_log",
    re.IGNORECASE,
)
ONCE_WORDS = re.compile(
    r"warm(ing)?_?up|first_(step|iter|batch|call|run|time|forward|pass)|is_first|^first$|initiali[sz]ed|(^|_)inited$|is_init$|is_last|last_(step|iter)|"
    r"_built$|_ready$|needs_init",
    re.IGNORECASE,
)
DONE_WORDS = re.compile(r"initiali[sz]ed|(^|_)inited$|is_init$|_built$|_ready$")
READY = re.compile(r"_ready$")
STEP_NAME = re.compile(r"step|iter", re.IGNORECASE)
STEP_COUNTER = re.compile(
    r"^_?(global|cur(rent)?|train(ing)?|total|num|completed)?_?(steps?|iters?|iterations?)(_(idx|num|count|counter))?$", re.IGNORECASE
)
LAST_STEP = re.compile(r"^_?(total|max|last|final)_((train(ing)?|global|optimi[sz]\w*|num)_)*(steps?|iters?|iterations?)$", re.IGNORECASE)
COUNTER_WORDS = re.compile(r"step|iter|idx|index|epoch|batch|count|^i$|^j$|^k$|^n$", re.IGNORECASE)
SMALL_MODULUS = 8
_AT_START = {(ast.Lt, 1), (ast.LtE, 0), (ast.Eq, 0)}


def periodic(test: ast.expr, kind: RegionKind) -> int:
    """1 where a test holds at every n-th step only, -1 where it fails then; `kind` is what n counts."""
    found = sense(test, lambda leaf: _every_n(leaf, kind))
    if not found and isinstance(test, ast.BoolOp):  # `step % n == 0 or last`: the other part is the rare one
        return int(any(sense(part, lambda leaf: _every_n(leaf, kind)) > 0 for part in test.values))
    return found


def once(test: ast.expr, bound: Collection[str]) -> int:
    """1 where a test holds in one iteration, or few, -1 where it fails in those; `bound` are the names that the loop around it binds."""
    return sense(test, lambda leaf: _once(leaf) or _meets(leaf, bound))


def first_count(test: ast.expr, statements: Sequence[ast.stmt]) -> bool:
    """Whether a test holds while an object's counter stands at its start, and the statements count it up and never put it back."""
    counter = test.left if isinstance(test, ast.Compare) and _is_at_start(test) else test
    if not isinstance(counter, ast.Attribute):
        return False
    text = chain(counter)
    parts = [part for statement in statements for part in walk(statement)]
    counted = any(isinstance(part, ast.AugAssign) and isinstance(part.op, ast.Add) and chain(part.target) == text for part in parts)
    return counted and not any(isinstance(part, ast.Assign) and any(chain(to) == text for to in part.targets) for part in parts)


def _is_at_start(test: ast.Compare) -> bool:
    right = test.comparators[0]
    return len(test.ops) == 1 and isinstance(right, ast.Constant) and (type(test.ops[0]), right.value) in _AT_START


def _every_n(leaf: ast.expr, kind: RegionKind) -> int:
    if _is_modulo(leaf, kind):
        return -1
    if isinstance(leaf, ast.Compare) and len(leaf.ops) == 1 and (_is_modulo(leaf.left, kind) or _is_modulo(leaf.comparators[0], kind)):
        above_zero = isinstance(leaf.ops[0], ast.Gt) and _is_edge(leaf.comparators[0])
        return -1 if above_zero or isinstance(leaf.ops[0], ast.NotEq) else 1
    return int(kind is RegionKind.EVERY_N and any(EVERY_WORDS.search(word) for word in identifiers(leaf)))


def _is_modulo(node: ast.expr, kind: RegionKind) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _counted(node.right) is kind


def _counted(node: ast.expr) -> RegionKind | None:
    """What the n of `step % n` counts, None where the guarded work is a step of its own: after accumulation, or with a small n."""
    words = identifiers(node)
    if any(map(ACCUMULATION.search, words)) or any(map(TURNS.search, words)):
        return None
    if any(map(GENERATION.search, words)):
        return RegionKind.ROUND
    small = isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value < SMALL_MODULUS
    return None if small else RegionKind.EVERY_N


def _once(test: ast.expr) -> int:
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(test)
    if isinstance(test, ast.Name) and READY.search(test.id):
        return 0  # what a caller or a test of this round says; an object's own flag stays as it is set
    if isinstance(test, (ast.Name, ast.Attribute)) and any(map(ONCE_WORDS.search, identifiers(test))):
        return -1 if DONE_WORDS.search(chain(test).rpartition(".")[2]) else 1
    return 0


def _compared(test: ast.Compare) -> int:
    """A counter against the first or last index, a number, a few numbers, or the length of the warm-up."""
    op, right, name = test.ops[0], test.comparators[0], _counter(test.left)
    negated = isinstance(op, (ast.NotEq, ast.NotIn))
    counts, steps = bool(COUNTER_WORDS.search(name)), bool(STEP_NAME.search(name))
    if isinstance(op, (ast.Eq, ast.NotEq)) and counts and (_is_edge(right) or (steps and _is_number(right))):
        return -1 if negated else 1
    if isinstance(op, (ast.In, ast.NotIn)) and steps and isinstance(right, (ast.Tuple, ast.List, ast.Set)):
        return (-1 if negated else 1) if all(map(_is_number, right.elts)) else 0
    below = isinstance(op, (ast.Lt, ast.LtE))
    if below and steps and isinstance(right, ast.Constant) and isinstance(right.value, int) and right.value < SMALL_MODULUS:
        return 1
    if STEP_COUNTER.search(name) and LAST_STEP.search(chain(right).rpartition(".")[2]) and isinstance(op, (ast.GtE, ast.Gt, ast.Lt)):
        return -1 if below else 1
    if any(re.search(r"warm_?up", word, re.IGNORECASE) for word in identifiers(test)):
        return 1 if below else -1
    return 0


def _counter(node: ast.expr) -> str:
    """The counter's name in `step`, `self.step`, `step - start` and `step + 1`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return _counter(node.left)
    return chain(node).rpartition(".")[2] if isinstance(node, (ast.Name, ast.Attribute)) else ""


def _meets(test: ast.expr, bound: Collection[str]) -> int:
    """`step == warm_steps`: a counter of steps meets a number that the loop leaves alone, in one iteration."""
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Eq, ast.NotEq))):
        return 0
    counter, right = test.left, test.comparators[0]
    if not (isinstance(counter, ast.Name) and isinstance(right, (ast.Name, ast.Attribute))):
        return 0
    counts = COUNTER_WORDS.search(counter.id) and STEP_NAME.search(chain(right).rpartition(".")[2])
    free = counter.id in bound and chain(right) not in bound if bound else chain(right).startswith("self.")
    if not (counts and free):
        return 0
    return 1 if isinstance(test.ops[0], ast.Eq) else -1


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool)


def _is_edge(node: ast.expr) -> bool:
    """0, or something minus 1: the first or the last index."""
    if isinstance(node, ast.Constant):
        return node.value == 0
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.right, ast.Constant) and node.right.value == 1
