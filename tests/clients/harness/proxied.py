"""A client without ctx and through `ctx serve`, in the same turns."""

from .clients import PLANTED
from .judge import Run, judge, judge_compactions, judge_summaries, row
from .room import WITHOUT_RESPONSES, Room, forgetting, reading


def check(client):
    """Returns the failed checks, and the row of the table."""
    alone = held(client, "alone", lambda _room, upstream: upstream)
    through = held(client, "through", lambda room, upstream: room.serve(upstream, client.window))
    checks = judge(client, alone, through)
    if client.compacts:
        checks = judge_compactions(client, alone, through, PLANTED)
    if client.summary:
        checks = judge_summaries(client, alone, through, PLANTED)
    faults = [words for words, holds in checks if not holds]
    if faults:
        faults.append(f"see {alone.folder} and {through.folder}")
    return faults, row(client.name, alone, through)


def held(client, mode, base):
    with Room(f"{client.name}-{mode}") as room:
        run = Run(folder=room.folder)
        # Settings first: some contain the workspace in the tool's arguments.
        client.settings(room, "")
        is_strict = client.is_right or mode != "alone"
        steps = forgetting(client.summary) + reading(*client.tool)
        steps = steps if client.has_responses else [*WITHOUT_RESPONSES, *steps]
        upstream = room.provider(client.limit, steps, is_strict)
        environment = room.environment(client.settings(room, base(room, upstream)))
        for turn in range(1, client.turns + 1):
            code, out, err = room.run(client.command(turn), environment, f"turn{turn}")
            ok = client.is_well(turn, code, out)
            run.turns.append((ok, "" if ok else f"turn {turn}: code {code} {(out + err)[-160:]!r}"))
        run.requests = room.requests()
        run.records = room.records()
        run.kept = list(client.kept(room))
        return run
