"""Metrics as Prometheus reads them: text, version 0.0.4, named by its conventions (`promtool check metrics`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fewer.serve.observe.metrics import AWAY, BATCH, SECONDS, Metrics, Series, cells
from fewer.serve.observe.process import most_files

__all__ = ["exposition"]

Total = Mapping[Series, float]


def exposition(metrics: Metrics) -> str:
    """Everything, summed over the workers."""
    metrics.look()
    total = metrics.total()
    return "\n".join([*_requests(metrics, total), *_models(metrics, total), *_processes(metrics, total)]) + "\n"


def _requests(metrics: Metrics, total: Total) -> Iterator[str]:
    yield from _head("fewer_requests_total", "counter", "Answers by task and status.")
    for key, value in total.items():
        if key[0] == "requests" and (value or key[2] == "200"):
            yield _line("fewer_requests_total", {"task": key[1], "status": key[2]}, value)
    yield from _head("fewer_sent_away_total", "counter", "Sent away before any task was asked, by status.")
    for status in AWAY:
        yield _line("fewer_sent_away_total", {"status": str(status)}, total[("away", str(status))])
    name, words = "fewer_request_duration_seconds", "From the request's head to its answer, by task."
    yield from _histograms(name, words, "task", _Kind("seconds", SECONDS, metrics.tasks), total)


class _Kind:
    """A histogram for each of some names."""

    def __init__(self, word: str, edges: Sequence[float], names: Sequence[str]) -> None:
        self.word, self.edges, self.names = word, edges, names


def _histograms(name: str, words: str, label: str, kind: _Kind, total: Total) -> Iterator[str]:
    yield from _head(name, "histogram", words)
    for each in kind.names:
        below = 0.0
        for edge in cells(kind.edges)[:-1]:
            below += total[(kind.word, each, edge)]
            yield _line(f"{name}_bucket", {label: each, "le": edge}, below)
        yield _line(f"{name}_sum", {label: each}, total[(kind.word, each, "sum")])
        yield _line(f"{name}_count", {label: each}, below)


def _models(metrics: Metrics, total: Total) -> Iterator[str]:
    waits, batches = _Kind("queue", SECONDS, metrics.models), _Kind("batch", BATCH, metrics.models)
    words = "From a place in a model's queue to the batch that takes it, by model."
    yield from _histograms("fewer_queue_duration_seconds", words, "model", waits, total)
    words = "Samples predicted together; the count is that of predictions."
    yield from _histograms("fewer_batch_samples", words, "model", batches, total)
    yield from _head("fewer_waiting_samples", "gauge", "Samples that wait for a model.")
    for model in metrics.models:
        yield _line("fewer_waiting_samples", {"model": model}, total[("waiting", model)])


def _processes(metrics: Metrics, total: Total) -> Iterator[str]:
    for name, words in (
        ("fewer_build_info", "What runs: always 1."),
        ("fewer_model_info", "What is served, by the file's SHA-256: always 1."),
    ):
        found = [labels for key, labels in metrics.facts.items() if key[0] == name]
        yield from _head(name, "gauge", words) if found else ()
        yield from (_line(name, labels, 1.0) for labels in found)
    yield from _head("fewer_reloads_total", "counter", "Reloads of all packs, by how they went.")
    for how in ("good", "failed"):
        yield _line("fewer_reloads_total", {"result": how}, total[("reloads", how)])
    for name, kind, value, words in (
        ("fewer_worker_starts_total", "counter", total[("starts",)], "Processes started, the first ones included."),
        ("fewer_workers", "gauge", metrics.workers, "Processes that share the work."),
        ("process_cpu_seconds_total", "counter", total[("processor",)], "Processor time of all workers."),
        ("process_resident_memory_bytes", "gauge", total[("resident",)],
         "Memory of all workers; what they share counts once for each."),
        ("process_open_fds", "gauge", total[("files",)], "Open files and connections of all workers."),
        ("process_max_fds", "gauge", most_files(), "Files and connections that one worker may open."),
        ("process_start_time_seconds", "gauge", metrics.started, "When the service began, in seconds since 1970."),
    ):  # fmt: skip
        yield from _head(name, kind, words)
        yield _line(name, {}, value)


def _head(name: str, kind: str, sentence: str) -> Iterable[str]:
    return f"# HELP {name} {sentence}", f"# TYPE {name} {kind}"


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    inner = ",".join(f'{label}="{_escaped(word)}"' for label, word in labels.items())
    said = f"{value:.0f}" if value == int(value) else f"{value:.6f}"
    return f"{name}{{{inner}}} {said}" if inner else f"{name} {said}"


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
