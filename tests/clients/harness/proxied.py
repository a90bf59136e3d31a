"""A client without ctx and through `ctx serve`, in the same turns."""

from .clients import PLANTED
from .judge import Run, judge, judge_compactions, judge_summaries, row
from .room import TALKING, WITHOUT_RESPONSES, Room, forgetting, reading


def judged(client, alone, through):
    """Returns the checks of a client, and whether each passes."""
    if client.summary:
        return judge_summaries(client, alone, through, PLANTED)
    if client.compacts:
        return judge_compactions(client, alone, through, PLANTED)
    return judge(client, alone, through)


def commands(client, room, environment):
    """Runs a command for each turn. Returns whether it is well, and what was seen."""
    for turn in range(1, client.turns + 1):
        code, out, err = room.run(client.command(turn), environment, f"turn{turn}")
        yield client.is_well(turn, code, out), f"code {code} {(out + err)[-160:]!r}"


def check(client, turns=commands, checks=judged):
    """Returns the failed checks, and the row of the table."""
    alone = held(client, turns, "alone", lambda _room, upstream: upstream)
    through = held(client, turns, "through", lambda room, upstream: room.serve(upstream, client.window))
    faults = [words for words, holds in checks(client, alone, through) if not holds]
    if faults:
        faults.append(f"see {alone.folder} and {through.folder}")
    return faults, row(client.name, alone, through)


def held(client, turns, mode, base):
    with Room(f"{client.name}-{mode}") as room:
        run = Run(folder=room.folder)
        # Settings first: some contain the workspace in the tool's arguments.
        client.settings(room, "")
        is_strict = client.is_right or mode == "through"
        steps = forgetting(client.summary) + (reading(*client.tool) if client.tool else TALKING)
        steps = steps if client.has_responses else [*WITHOUT_RESPONSES, *steps]
        upstream = room.provider(client.limit, steps, is_strict)
        environment = room.environment(client.settings(room, base(room, upstream)))
        for turn, (ok, seen) in enumerate(turns(client, room, environment), 1):
            run.turns.append((ok, "" if ok else f"turn {turn}: {seen}"))
        run.requests = room.requests()
        run.records = room.records()
        run.kept = list(client.kept(room))
        return run
