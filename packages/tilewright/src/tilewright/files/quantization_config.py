# SPDX-License-Identifier: Apache-2.0
"""`QuantizationConfig`: what the configuration of a checkpoint says of its quantised weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .source_file import SourceFile, read_json

_MAX_CONFIG_BYTES = 10_000_000
_CONFIG_FILES = ("config.json", "hf_quant_config.json")


@dataclass(frozen=True, slots=True)
class WeightScheme:
    """What a configuration says of quantised weights; None where it says nothing.

    >>> WeightScheme(bits=8, block=(128, 128)).group is None
    True
    """

    bits: int | None = None
    group: int | None = None
    block: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class QuantizationConfig:
    """The `method` of a checkpoint, and the schemes of its weights.

    >>> QuantizationConfig.of({"quant_method": "fp8", "weight_block_size": [128, 128]}).schemes
    (WeightScheme(bits=None, group=None, block=(128, 128)),)
    """

    method: str
    schemes: tuple[WeightScheme, ...]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> QuantizationConfig:
        """Return the configuration of plain `data`: the `quantization_config` of a config.json, or the like.

        >>> weights = {"num_bits": 4, "type": "int", "group_size": 128}
        >>> QuantizationConfig.of({"config_groups": {"group_0": {"weights": weights}}}).schemes[0].group
        128
        """
        method = data.get("quant_method") or data.get("quant_algo") or "unknown"
        groups = data.get("config_groups")
        listed = list(groups.values()) if isinstance(groups, dict) else []
        described = [each.get("weights") for each in listed if isinstance(each, dict)]
        found = [_read_scheme(each) for each in (*described, data) if isinstance(each, dict)]
        return cls(str(method), tuple(dict.fromkeys([each for each in found if each != WeightScheme()])))

    def values(self, get: Callable[[WeightScheme], Any]) -> list[Any]:
        """Return the values that schemes have for something, each once.

        >>> QuantizationConfig("fp8", (WeightScheme(bits=4), WeightScheme(bits=8))).values(lambda each: each.bits)
        [4, 8]
        """
        return [each for each in dict.fromkeys(map(get, self.schemes)) if each is not None]


def _read_scheme(data: Mapping[str, Any]) -> WeightScheme:
    bits = data.get("num_bits", data.get("bits"))
    group = data.get("group_size")
    block = data.get("weight_block_size", data.get("block_structure"))
    if isinstance(block, str):
        block = [int(n) if n.isdecimal() else 0 for n in block.split("x")]
    is_pair = isinstance(block, list) and len(block) == 2 and all(type(n) is int and n > 0 for n in block)
    return WeightScheme(
        bits if type(bits) is int and 1 <= bits <= 8 else None,
        group if type(group) is int and group > 0 else None,
        (block[0], block[1]) if is_pair else None,
    )


def read_quantization_config(open_beside: Callable[[str], SourceFile]) -> QuantizationConfig | None:
    """Return what the configuration files of a checkpoint say of quantisation, None if nothing.

    `open_beside` opens a file next to the checkpoint, or raises FileNotFoundError.

    >>> read_quantization_config(lambda name: SourceFile(f"no such folder/{name}")) is None
    True
    """
    for name in _CONFIG_FILES:
        try:
            data = read_json(open_beside(name), name, _MAX_CONFIG_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            continue
        for each in (data, data.get("text_config")) if isinstance(data, dict) else ():
            for key in ("quantization_config", "compression_config", "quantization"):
                if isinstance(each, dict) and isinstance(each.get(key), dict):
                    return QuantizationConfig.of(each[key])
    return None
