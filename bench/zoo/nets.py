"""What is compared: models of `tests/python/graph_pass/models`, larger."""

from pathlib import Path
from typing import Dict, NamedTuple

import numpy as np

MODELS = Path(__file__).resolve().parents[2] / "tests" / "python" / "graph_pass" / "models"
FOLDER = Path("build") / "zoo"
"""Where `bench.zoo.write` puts the MetaGraphs."""

INFERENCE, TRAINING = "inference", "training"
"""What a call does: compute the outputs; or a loss, and its gradients of all variables."""

SIZES = {
    "sketch": {"STROKE": 5, "CELL": 256, "LATENT": 128, "MIXTURES": 20, "ROWS": 32, "STEPS": 50},
    "actor": {"OBSERVATION": 64, "CELL": 128, "ROWS": 16, "STEPS": 5, "ACTIONS": 6},
    "impala": {"SIDE": 16, "CHANNELS": 16, "FEATURES": 256, "CELL": 256, "ROWS": 8, "STEPS": 20},
    "bilm": {"WORDS": 2000, "WORD": 128, "CELL": 512, "MOST_ROWS": 16, "ROWS": 16, "STEPS": 20},
    "speech": {"SOUND": 494, "DENSE": 256, "CELL": 256, "LETTERS": 28, "ROWS": 8, "STEPS": 48},
    "tagger": {
        **{"WORDS": 2000, "CHARACTERS": 80, "TAGS": 9, "WORD": 300, "CHARACTER": 100},
        **{"CHARACTER_CELL": 25, "CELL": 100, "ROWS": 20, "STEPS": 20, "MOST_CHARACTERS": 8},
    },
    "crnn": {"HEIGHT": 16, "WIDTH": 64, "CHANNELS": 32, "CELL": 128, "LETTERS": 36, "ROWS": 8},
    "lm_1b": {"WORDS": 4000, "WORD": 128, "CELL": 512, "ROWS": 16, "STEPS": 20, "SAMPLED": 256},
    "interest": {"ITEMS": 2000, "ITEM": 36, "CELL": 36, "ROWS": 128, "STEPS": 50},
    "translation": {"WORDS": 2000, "WORD": 256, "CELL": 256, "ROWS": 8, "STEPS": 20, "MOST": 20},
    "zoneout": {"SYMBOLS": 80, "SYMBOL": 128, "CELL": 256, "FRAME": 80, "FRAMES": 40, "ROWS": 4},
    "music": {"NOTES": 90, "CELL": 256, "LATENT": 64, "BARS": 4, "STEPS": 16, "ROWS": 16},
}
"""Constants of the models' modules."""


class Net(NamedTuple):
    """A graph that `write.py` there makes, and what it is, in words."""

    name: str
    words: str

    def __str__(self) -> str:
        """Both parts of what it is."""
        return f"{self.words}, {self.work}"

    @property
    def work(self) -> str:
        """What a call does."""
        return TRAINING if self.name.endswith(TRAINING) else INFERENCE

    @property
    def module(self) -> str:
        """The module of the model."""
        return max((name for name in SIZES if self.name.startswith(name)), key=len)

    @property
    def shape(self) -> str:
        """Rows and units."""
        sizes = SIZES[self.module]
        return f"{sizes['ROWS']} rows, {sizes['CELL']} units"

    @property
    def file(self) -> Path:
        """The MetaGraph, with `initialize` and `results`."""
        return FOLDER / (self.name + ".meta")

    def arrays(self, seed: int) -> Dict[str, np.ndarray]:
        """Nothing is fed."""
        return {}


WORDS = {
    "sketch": "sketch-rnn, cells written out",
    "sketch_normalized": "the same, normalized cells",
    "actor": "A2C of baselines, one step at a time, cells written out",
    "impala": "IMPALA, steps without a loop, `BasicLSTMCell`",
    "impala_block": "the same, `LSTMBlockCell`",
    "bilm": "ELMo, two directions with projections",
    "speech_old": "DeepSpeech to 0.4, two directions of `BasicLSTMCell`",
    "speech_plain": "DeepSpeech, one direction of `BasicLSTMCell`",
    "speech_new": "DeepSpeech from 0.5, `LSTMBlockFusedCell`",
    "tagger": "tf_ner, characters and words, a CRF",
    "crnn": "CRNN, a stack in two directions, CTC",
    "lm_1b": "lm_1b, variables in parts, projections",
    "interest": "DIEN, `GRUCell` and AUGRU",
    "translation": "GNMT, residual stacks, attention, beam search",
    "zoneout": "Tacotron 2, zoneout",
    "music": "MusicVAE, `CudnnCompatibleLSTMCell` and `LSTMBlockCell`",
}
"""What the models are."""

WITHOUT = {"sketch_normalized", "impala_block", "speech_plain_training", "zoneout_training"}
"""What is not there: for people train these otherwise, or infer with the others."""

NETS = [
    Net(name + ending, words)
    for name, words in WORDS.items()
    for ending in ("", "_" + TRAINING)
    if name + ending not in WITHOUT
]
"""Those that are measured."""
