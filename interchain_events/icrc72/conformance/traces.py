"""The messages of a trial as text."""

from interchain_events.icrc72.conformance.trial import Trial


def trace_text(trial: Trial) -> str:
    """Return a line per event: round, kind, call number, sender, receiver, method, bytes."""
    names = {trial.who: "candidate", trial.system.orchestrator: "orchestrator"}
    names |= {
        each: f"broadcaster{at}"
        for at, each in enumerate(trial.system.broadcasters)
        if each not in names
    }
    lines = []
    for each in trial.recorder.happenings:
        sender = names.get(each.sender, each.sender.text) or "system"
        receiver = names.get(each.receiver, each.receiver.text)
        if each.kind == "trap":
            data = each.data.decode(errors="backslashreplace")
        else:
            data = each.data.hex() or "-"
        lines.append(
            f"{each.round} {each.kind} {each.number} {sender} {receiver} {each.method or '-'}"
            f" {data}\n"
        )
    return "".join(lines)
