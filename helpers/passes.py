"""Forward passes: the logits of given tokens, by OpenVINO or by transformers, for `helpers.likelihood`."""

import copy
import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from filelock import FileLock

from helpers.backends import chat_prompt, openvino_chat_ids, unpacked_model

PRECISION = {"KV_CACHE_PRECISION": "f32"}
"""OpenVINO's default rounds the cache to 8 bits, which saves no time here."""


class OpenVinoPasses:
    """Forward passes of a GGUF file's model, its weights packed."""

    def __init__(self, request, tokenizer, window: int):
        self.window = window
        self._request, self._tokenizer = request, tokenizer

    @classmethod
    def load(cls, file: Path, window: int) -> "OpenVinoPasses":
        """Load the model of a GGUF file; the first time this writes it once more, in OpenVINO's format."""
        import openvino
        import openvino_genai

        folder = openvino_folder(file)
        core = openvino.Core()
        model = core.read_model(folder / "openvino_model.xml")
        _add_first_input(model)
        compiled = core.compile_model(model, "CPU", PRECISION)
        return cls(compiled.create_infer_request(), openvino_genai.Tokenizer(folder), window)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, no special ones added."""
        return self._tokenizer.encode(text, add_special_tokens=False).input_ids.data[0].tolist()

    def encode_chat(self, prompt: str) -> list[int]:
        """Return the tokens of a prompt in the model's chat template."""
        return openvino_chat_ids(self._tokenizer, prompt).data[0].tolist()

    def read_prompt(self, tokens: list[int]) -> np.ndarray:
        """Read a prompt and keep its cache; return the logits of the token after it."""
        self._request.reset_state()
        logits = self._read(np.array([tokens]), np.ones((1, len(tokens))), before=0, first=len(tokens) - 1)
        self._length = len(tokens)
        self._states = [np.array(state.state.data) for state in self._request.query_state()]
        return logits[0, 0]

    def read_rows(self, rows: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Return the logits after each token of rows that follow the prompt."""
        import openvino

        for state, kept in zip(self._request.query_state(), self._states, strict=True):
            state.state = openvino.Tensor(kept)
        whole = np.hstack([np.ones((len(rows), self._length)), mask])
        return self._read(rows, whole, before=self._length, first=0)

    def _read(self, rows, mask, before, first):
        count, length = rows.shape
        results = self._request.infer(
            {
                "input_ids": rows,
                "attention_mask": mask.astype(np.int64),
                "position_ids": np.tile(np.arange(before, before + length), (count, 1)),
                "beam_idx": np.zeros(count, np.int32),  # every row goes on from the one cache
                "first": np.array([first]),
            }
        )
        return results["logits"]


class TransformersPasses:
    """Forward passes of a transformers model."""

    def __init__(self, model, tokenizer):
        self.window = model.config.max_position_embeddings
        self._model, self._tokenizer = model, tokenizer

    @classmethod
    def load(cls, file: Path) -> "TransformersPasses":
        """Load the model of a GGUF file, its weights unpacked."""
        return cls(*unpacked_model(file))

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, no special ones added."""
        return self._tokenizer(text, add_special_tokens=False).input_ids

    def encode_chat(self, prompt: str) -> list[int]:
        """Return the tokens of a prompt in the model's chat template."""
        return self.encode(chat_prompt(self._tokenizer, prompt))

    def read_prompt(self, tokens: list[int]) -> np.ndarray:
        """Read a prompt and keep its cache; return the logits of the token after it."""
        result = self._read([tokens], use_cache=True, logits_to_keep=1)
        self._cache = result.cache
        return result.logits[0, -1].float().cpu().numpy()

    def read_rows(self, rows: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Return the logits after each token of rows that follow the prompt."""
        import torch

        cache = copy.deepcopy(self._cache)  # reading appends to it
        cache.batch_repeat_interleave(len(rows))
        prompt = np.ones((len(rows), cache.get_seq_length()), dtype=np.int64)
        mask = torch.tensor(np.hstack([prompt, mask]), device=self._model.device)
        return self._read(rows, attention_mask=mask, cache=cache).logits.float().cpu().numpy()

    def _read(self, rows, **options):
        import torch

        with torch.inference_mode():
            return self._model(input_ids=torch.tensor(rows, device=self._model.device), **options)


def openvino_folder(file: Path) -> Path:
    """Return the folder of a GGUF file's model in OpenVINO's format, written beside the file at the first call."""
    folder = file.with_suffix(".openvino")
    if not folder.exists():
        with FileLock(f"{folder}.lock"):
            if not folder.exists():  # another process may have written it during the wait
                _convert(file, folder)
    return folder


def _convert(file, folder):
    import openvino_genai

    # The files go beside the GGUF file and have the same names for every model: hence a folder, and a copy in it.
    with TemporaryDirectory(dir=file.parent) as parts:
        model = Path(parts, "model")
        model.mkdir()
        copied = Path(shutil.copy(file, model))
        openvino_genai.LLMPipeline(copied, "CPU", enable_save_ov_model=True)
        copied.unlink()
        if not (model / "openvino_model.xml").exists():
            raise RuntimeError(f"OpenVINO wrote no model for {file.name}: set WORKBENCH_BACKEND=transformers")
        os.replace(model, folder)  # whole or not at all


def _add_first_input(model):
    """Give the model an input ``first``: it computes the logits of the tokens from there on, not of the prompt."""
    from openvino import opset13

    head = model.output("logits").node.input_value(0).node
    first = opset13.parameter([1], np.int64, name="first")
    first.output(0).set_names({"first"})
    end, step, axis = (np.array([number]) for number in (np.iinfo(np.int64).max, 1, 1))
    head.input(0).replace_source_output(opset13.slice(head.input_value(0), first, end, step, axis).output(0))
    model.add_parameters([first])
    model.validate_nodes_and_infer_types()
