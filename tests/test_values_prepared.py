"""What a tokenizer or an image processor gives lies on the host until somebody moves it."""
from __future__ import annotations

import pytest

from hostlint.scan import scan_text

TRAINER = """\
import torch


class Trainer:
    def training_step(self, model, images, texts, counts):
        {made}
        return {read}  # line 7
"""

HOST = [
    ('info = self.processing_class.image_processor(images=images, return_tensors="pt")', 'info["rows"].sum().item()'),
    ('info = self.processor(images=images, return_tensors="pt")', '(info["rows"] * info["columns"]).max().item()'),
    (
        'patches = self.image_processor(images, return_tensors="pt")["patches"]',
        "[group.sum().item() for group in torch.split(patches, counts)]",
    ),
    ('texts = self.tokenizer(texts, padding=True, return_tensors="pt")', "texts.attention_mask.sum().item()"),
    ('sound = feature_extractor(images, return_tensors="pt").input_features', "sound.abs().max().item()"),
    ('texts = self.tokenizer(texts, return_tensors="pt").to(torch.float32)', "texts.attention_mask.sum().item()"),
    ('mask = self.tokenizer(texts, return_tensors="pt")["mask"].to(torch.float32)', "mask.sum().item()"),
]
MOVED = [
    ('texts = self.tokenizer(texts, return_tensors="pt").to(self.device)', 'texts["input_ids"].max().item()'),
    ('texts = self.tokenizer(texts, return_tensors="pt").to(self.device)', "texts.input_ids.max().item()"),
    ('ids = self.tokenizer(texts, return_tensors="pt").input_ids.to(self.device)', "ids.max().item()"),
    ('ids = self.tokenizer(texts, return_tensors="pt")["input_ids"].cuda()', "ids.max().item()"),
    ('ids = self.tokenizer(texts, return_tensors="pt")["input_ids"].to(device=model.device)', "ids.max().item()"),
    (
        'texts = {key: value.to(self.device) for key, value in self.tokenizer(texts, return_tensors="pt").items()}',
        'texts["input_ids"].max().item()',
    ),
    ('texts = self._prepare_inputs(self.processing_class(texts, return_tensors="pt"))', 'texts["input_ids"].max().item()'),
    ('texts = self.processor(images, return_tensors="pt", device="cuda")', 'texts["pixel_values"].max().item()'),
    ('out = model(**self.tokenizer(texts, return_tensors="pt"))', "out.logits.max().item()"),
]


def lines(made: str, read: str) -> list[int]:
    findings, errors = scan_text(TRAINER.replace("{made}", made).replace("{read}", read), "trainer.py")
    assert not errors
    return [finding.span.line for finding in findings]


@pytest.mark.parametrize(("made", "read"), HOST)
def test_what_nobody_moved_is_read_without_a_wait(made: str, read: str) -> None:
    assert lines(made, read) == []


@pytest.mark.parametrize(("made", "read"), MOVED)
def test_what_was_moved_is_the_devices(made: str, read: str) -> None:
    assert lines(made, read) == [7]
