"""Functions that run once a step by convention, the chains that show heat, and the patterns that overrule it."""
from __future__ import annotations

import textwrap

import pytest

from hostlint.facts.lower import lower_file
from hostlint.heat import HeatMap, compute_heat
from hostlint.index import ProjectIndex
from hostlint.model import ChainLink, HeatLevel


def project(**sources: str) -> ProjectIndex:
    texts = {name.replace("__", "."): textwrap.dedent(text) for name, text in sources.items()}
    return ProjectIndex([lower_file(text, name.replace(".", "/") + ".py", name).outline for name, text in texts.items()])


def level(index: ProjectIndex, heat: HeatMap, qualname: str) -> str:
    found = [(file, f.index) for file, outline in enumerate(index.files) for f in outline.functions if f.qualname == qualname]
    return heat.function(found[0]).level.label


@pytest.mark.parametrize("source", [
    "class A(torch.nn.Module):\n    def forward(self, x):\n        pass",
    "class A(torch.nn.Module):\n    def __call__(self, x):\n        pass",
    "class A(transformers.PreTrainedModel):\n    def forward(self, x):\n        pass",
    "class A(torch.autograd.Function):\n    @staticmethod\n    def backward(ctx, x):\n        pass",
    "class AttentionImpl:\n    def forward(self, q, k):\n        pass",
    "class FastAttnProcessor:\n    def __call__(self, attn, x):\n        pass",
    "class A(torch.optim.Optimizer):\n    def step(self):\n        pass",
    "class EulerScheduler:\n    def step(self, x):\n        pass",
    "class EulerScheduler:\n    def add_noise(self, x):\n        pass",
    "class A(LightningModule):\n    def training_step(self, x):\n        pass",
    "class A:\n    def on_train_batch_end(self, x):\n        pass",
    "class A:\n    def denoise_step(self, x):\n        pass",
    "class Actor:\n    def forward(self, x):\n        return self.net(x)",
    "class Actor:\n    def forward(self, x):\n        return self.net(x.cpu())",
    "class Actor:\n    def forward(self, x):\n        seen = x.cpu()\n        return self.net(x).to(seen.dtype)",
    "class Net(torch.nn.Module):\n    def forward(self, x):\n        return self.net(x).cpu()",
    "class A(torch.utils.data.DataLoader):\n    def __iter__(self):\n        pass",
    "class PrioritySampler:\n    def update_priority(self, x):\n        pass",
    "class Accuracy(torchmetrics.Metric):\n    def update(self, x):\n        pass",
    "class PolicyTrainer(transformers.Trainer):\n    def _prepare_inputs(self, inputs):\n        pass",
    "def dice_loss(x):\n    pass",
    "def compute_loss(x):\n    pass",
    "class A:\n    def compute_loss(self, x):\n        pass",
    "def reduce_hook(grad):\n    pass",
])  # fmt: skip
def test_conventional_entries_are_hot(source: str) -> None:
    index = project(main="import torch, transformers, torchmetrics\nfrom lightning import LightningModule\n" + source)
    heat = compute_heat(index)
    entry = index.files[0].functions[1]
    assert level(index, heat, entry.qualname) == "call"
    assert heat.function((0, 1)).chain == (ChainLink("main.py", entry.line, entry.qualname),)


@pytest.mark.parametrize("source", [
    "class DecodingStage:\n    def forward(self, x):\n        pass",
    "class Actor:\n    def forward(self, x):\n        return self.net(x).to('cpu')",
    "@ray.remote\nclass Actor(Base):\n    def forward(self, x):\n        return self.net(x).cpu()",
    "class Actor:\n    def forward(self, x):\n        values = self.net(x).float().to(device='cpu')\n        return values",
    "class TextPipeline:\n    def __call__(self, x):\n        pass",
    "class Profiler:\n    def step(self):\n        pass",
    "class A:\n    def validation_step(self, x):\n        pass",
    "class A:\n    def set_step(self, x):\n        pass",
    "class A:\n    def step_index(self):\n        pass",
    "class EulerScheduler:\n    def set_timesteps(self, n):\n        pass",
    "class EulerScheduler:\n    def update(self, n):\n        pass",
    "class Reader:\n    def __iter__(self):\n        pass",
    "def get_loss(name):\n    pass",
    "def _maybe_build_adapter_hooks(x):\n    pass",
    "def dec_hook(kind, value):\n    pass",
    "def object_pairs_hook(pairs):\n    pass",
])  # fmt: skip
def test_their_look_alikes_are_requests(source: str) -> None:
    index = project(main=source)
    assert level(index, compute_heat(index), index.files[0].functions[1].qualname) == "request"


def test_the_chain_starts_at_the_loop_and_has_a_link_for_every_call() -> None:
    index = project(
        main="""\
        from tools import helper

        def run(model, timesteps):
            for t in timesteps:
                model(t)
                helper()
        """,
        tools="""\
        def helper():
            deep()

        def deep():
            for i in range(3):
                probe()
        """,
    )
    heat = compute_heat(index)
    links = (ChainLink("main.py", 4, "run"), ChainLink("main.py", 6, "run"))
    assert heat.function((1, 1)).chain == links
    assert heat.function((1, 2)).chain == (*links, ChainLink("tools.py", 2, "helper"))
    assert heat.site((0, 1), 1).chain == (ChainLink("main.py", 4, "run"),)
    inside = heat.site((1, 2), 1)
    assert inside.level is HeatLevel.LOOP
    assert inside.chain[-1] == ChainLink("tools.py", 5, "deep")
    assert heat.site((0, 1), 0).chain == ()


def test_the_shortest_chain_is_kept() -> None:
    index = project(main="""\
    def run(model, timesteps):
        for t in timesteps:
            model(t)
            first()
            last()

    def first():
        middle()

    def middle():
        last()

    def last():
        pass
    """)
    assert [link.line for link in compute_heat(index).function((0, 4)).chain] == [2, 5]


def test_a_loop_that_is_seen_is_better_evidence_than_a_convention() -> None:
    index = project(main="""\
    from torch import nn

    class Net(nn.Module):
        def forward(self, x):
            return x

    def run(net: Net, timesteps):
        for t in timesteps:
            net(t)
    """)
    assert [link.line for link in compute_heat(index).function((0, 1)).chain] == [8, 9]


def test_step_loops_are_told_from_other_loops() -> None:
    index = project(main="""\
    def run(model, timesteps, names):
        for t in timesteps:
            model(t)
        for name in names:
            print(name)
    """)
    heat = compute_heat(index)
    assert [heat.is_step_loop((0, 1), region) for region in (0, 1, 2)] == [False, True, False]


def test_comments_overrule() -> None:
    index = project(main="""\
    class Net(torch.nn.Module):
        def forward(self, x):  # hostlint: cold only in demos
            for y in x:
                self.net(y)
            helper()

    def evaluate(x):  # hostlint: hot
        helper_of_hot()

    def helper():
        pass

    def helper_of_hot():
        pass
    """)
    heat = compute_heat(index)
    assert [level(index, heat, name) for name in ("Net.forward", "evaluate", "helper", "helper_of_hot")] == ["cold", "call", "cold", "call"]
    assert heat.site((0, 1), 1).level is HeatLevel.COLD


def test_patterns_overrule() -> None:
    index = project(pkg__mod="""\
    class Net:
        def go(self):
            helper()

        def forward(self, x):
            pass

    def helper():
        pass
    """)
    heat = compute_heat(index, hot=["pkg.mod:Net.g*"], cold=["pkg.*:Net.forward"])
    assert [level(index, heat, name) for name in ("Net.go", "helper", "Net.forward")] == ["call", "call", "cold"]
    assert heat.function((0, 3)).chain == (ChainLink("pkg/mod.py", 2, "Net.go"), ChainLink("pkg/mod.py", 3, "Net.go"))
    assert level(index, compute_heat(index, hot=["other:Net.go"]), "Net.go") == "request"


def test_a_hot_pattern_overrules_a_cold_name() -> None:
    index = project(main="def load_weights(x):\n    helper()\n\ndef helper():\n    pass\n")
    assert level(index, compute_heat(index), "helper") == "cold"
    heat = compute_heat(index, hot=["main:load_weights"])
    assert [level(index, heat, name) for name in ("load_weights", "helper")] == ["call", "call"]


def test_the_same_project_gives_the_same_heat() -> None:
    body = "(model, timesteps):\n    for t in timesteps:\n        model(t)\n        f"
    source = "\n".join(f"def f{i}{body}{(i * 7) % 20}(model, t)\n" for i in range(20))
    heats = [compute_heat(project(main=source)) for _ in range(2)]
    assert len({tuple(heat.function((0, i)) for i in range(1, 21)) for heat in heats}) == 1


@pytest.mark.parametrize(("head", "expected"), [
    ("def tiny_ce_loss():", "request"),
    ("def tiny_ce_loss(size) -> Trainer.Config:", "request"),
    ("def tiny_ce_loss(size) -> LossConfig:", "request"),
    ("def tiny_ce_loss(logits):", "call"),
    ("def tiny_ce_loss(logits, config: Config) -> torch.Tensor:", "call"),
])  # fmt: skip
def test_what_chooses_a_loss_computes_none(head: str, expected: str) -> None:
    index = project(main=f"{head}\n    return build()\n")
    assert level(index, compute_heat(index), "tiny_ce_loss") == expected


def test_a_loss_that_its_function_computes_of_what_lies_around_it_is_a_step() -> None:
    index = project(main="def run(x, y):\n    def closure_loss():\n        return x - y\n    return closure_loss\n")
    assert level(index, compute_heat(index), "run.closure_loss") == "call"
