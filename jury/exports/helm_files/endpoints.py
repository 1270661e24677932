"""Where HELM finds a panel's jurors: deployments, models, and where the keys are read from."""

import json
import re
from collections.abc import Iterator

from data.errors import BadInput
from jury.panel import Juror, Panel
from jury.providers import VENDORS

VENDOR = VENDORS["anthropic"].own_host
UNDER_TEST = "medjury-under-test/model"
ODD = re.compile(r"[^A-Za-z0-9_-]")
ODD_MODEL = re.compile(r"[^A-Za-z0-9_.-]")


def deployments(panel: Panel) -> dict[str, str]:
    """Return HELM's name of each juror: its place before the stroke has a cache and a key alone.

    Raises
    ------
    BadInput
        If HELM cannot ask a juror: it is simulated, or an Anthropic model served elsewhere.
    """
    found: dict[str, str] = {}
    for number, one in enumerate(panel.juror, 1):
        _refuse(panel, one)
        place = f"medjury-{ODD.sub('-', one.name)}"
        if any(name.split("/")[0] == place for name in found.values()):
            place += f"-{number}"
        found[one.name] = f"{place}/{ODD_MODEL.sub('-', one.model.rsplit('/', 1)[-1])}"
    return found


def prod_env(panel: Panel) -> dict[str, str]:
    """Return HELM's settings: the jurors, and a place for the model that is to be evaluated."""
    known = deployments(panel)
    jurors = "".join(_deployment(one, known[one.name]) for one in panel.juror)
    names = dict.fromkeys([*known.values(), UNDER_TEST])
    return {
        "prod_env/model_deployments.yaml": DEPLOYMENTS + jurors,
        "prod_env/model_metadata.yaml": "models:\n" + "".join(map(_model, names)),
        "prod_env/credentials.conf": "".join(_keys(panel)) or "# no juror needs a key\n",
    }


def judges(panel: Panel) -> str:
    """Return `judges.yaml`, the jury of the benchmarks that HELM has."""
    known = deployments(panel)
    rows = "".join(
        f"  - name: {json.dumps(one.name)}\n    model: {known[one.name]}\n"
        f"    model_deployment: {known[one.name]}\n"
        for one in panel.juror
    )
    return f"judges:\n{rows}"


def differences(panel: Panel) -> list[str]:
    """Return in what HELM asks these jurors otherwise than the panel says."""
    told = []
    for one in panel.juror:
        said = {
            "temperature 0": one.temperature == 0,
            "at most 4096 tokens": one.max_tokens == 4096,
            "no effort": one.effort is None,
            "no schema": one.form == "text",
        }
        if other := [words for words, same in said.items() if not same]:
            told.append(f"{one.name} is asked with {', '.join(other)}")
    return told


def _refuse(panel: Panel, one: Juror) -> None:
    if one.simulated:
        raise BadInput(
            f"panel {panel.name}: {one.name} is simulated, and HELM cannot ask it; give --panel "
            "with jurors that are models"
        )
    if one.provider == "anthropic" and one.host != VENDOR:
        raise BadInput(
            f"panel {panel.name}: {one.name} is asked in Anthropic's protocol at {one.place}; "
            f"HELM does so at {VENDOR} only: give its OpenAI-compatible address, or another juror"
        )


def _deployment(one: Juror, name: str) -> str:
    if one.provider == "anthropic":
        client = "anthropic_client.AnthropicMessagesClient"
        said = {"anthropic_model_name": one.model}
    elif one.api_key_env:
        client = "openai_client.OpenAIClient"
        said = {"base_url": one.base_url, "openai_model_name": one.model}
    else:
        client = "vllm_client.VLLMChatClient"  # a server that needs no key
        said = {"base_url": one.base_url, "vllm_model_name": one.model}
    return (
        f"  - name: {name}\n    model_name: {name}\n"
        "    tokenizer_name: simple/tokenizer1\n    max_sequence_length: 1000000\n"
        f"    client_spec:\n      class_name: helm.clients.{client}\n"
        f"      args: {json.dumps(said, ensure_ascii=False)}\n"
    )


def _model(name: str) -> str:
    return (
        f"  - name: {name}\n    display_name: {name}\n    description: written by medjury\n"
        f"    creator_organization_name: {name.split('/', maxsplit=1)[0]}\n    access: open\n"
        "    release_date: 2026-01-01\n"
        "    tags: [TEXT_MODEL_TAG, FULL_FUNCTIONALITY_TEXT_MODEL_TAG]\n"
    )


def _keys(panel: Panel) -> Iterator[str]:
    """Yield where each juror's key is read from: never the key."""
    for name, one in zip(deployments(panel).values(), panel.juror, strict=True):
        if one.api_key_env:
            yield f"{name.split('/')[0]}ApiKey: ${{?{one.api_key_env}}}\n"


DEPLOYMENTS = f"""\
model_deployments:
  - name: {UNDER_TEST}  # the model that is to be evaluated: put its address and name here
    model_name: {UNDER_TEST}
    tokenizer_name: simple/tokenizer1
    max_sequence_length: 1000000
    client_spec:
      class_name: helm.clients.vllm_client.VLLMChatClient
      args: {{"base_url": "http://127.0.0.1:8000/v1", "vllm_model_name": "model"}}
"""
