"""The messages of a trial as text."""

from interchain_events.icrc72.conformance.trial import Trial


def trace_text(trial: Trial) -> str:
    """Return a line per entry: round, kind, call number, sender, receiver, method, bytes."""
    names = {trial.who: "candidate", trial.system.orchestrator: "orchestrator"}
    for index, broadcaster in enumerate(trial.system.broadcasters):
        names.setdefault(broadcaster, f"broadcaster{index}")
    lines = []
    for happening in trial.recorder.happenings:
        sender = names.get(happening.sender, happening.sender.text) or "system"
        receiver = names.get(happening.receiver, happening.receiver.text)
        if happening.kind == "trap":
            data = happening.data.decode(errors="backslashreplace")
        else:
            data = happening.data.hex() or "-"
        method = happening.method or "-"
        lines.append(
            f"{happening.round} {happening.kind} {happening.number} {sender} {receiver} {method}"
            f" {data}\n"
        )
    return "".join(lines)
