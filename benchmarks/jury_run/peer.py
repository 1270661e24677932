"""One trial of inspect_ai, three model graders over as many samples: PORT CALLS CONCURRENCY FOLDER."""

import json
import os
import sys
import time

PORT, CALLS, CONCURRENCY, FOLDER = sys.argv[1:5]
os.environ["STUB_API_KEY"] = "none"
os.environ["STUB_BASE_URL"] = f"http://127.0.0.1:{PORT}/v1"

from inspect_ai import Task, eval  # noqa: E402, A004
from inspect_ai.dataset import Sample  # noqa: E402
from inspect_ai.model import ModelOutput  # noqa: E402
from inspect_ai.scorer import model_graded_qa  # noqa: E402
from inspect_ai.solver import Generate, TaskState, solver  # noqa: E402
from peak import peak_mb  # noqa: E402

CONTEXT = "The patient reports pain in the left knee since May, worse on stairs. " * 60
RESPONSE = "Left knee pain since May, worse on stairs; no fever; ibuprofen as needed. " * 12


@solver
def given():  # type: ignore[no-untyped-def]
    """Return the response that is there, as medjury's study has it."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output = ModelOutput.from_content("given", RESPONSE)
        return state

    return solve


if __name__ == "__main__":
    samples = [
        Sample(input=f"{CONTEXT}{n}", target="A whole note.") for n in range(int(CALLS) // 3)
    ]
    jurors = [model_graded_qa(model=f"openai-api/stub/{name}") for name in "abc"]
    began = time.perf_counter()
    log = eval(
        Task(dataset=samples, solver=given(), scorer=jurors),
        model="mockllm/model",
        max_connections=int(CONCURRENCY),
        max_samples=int(CONCURRENCY),
        display="none",
        log_dir=f"{FOLDER}/logs",
    )[0]
    span = time.perf_counter() - began
    if log.status != "success" or log.results.completed_samples != int(CALLS) // 3:
        raise SystemExit(f"{log.status}: {log.error}")
    print(json.dumps({"span": span, "mb": peak_mb()}))
