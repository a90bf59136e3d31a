"""What a model reads, whatever protocol it came by, and what a provider finds wrong with it."""

from dataclasses import dataclass, field


@dataclass
class Turn:
    """One message: who says it, its text, and the tool calls in it or answered by it, by id."""

    role: str  # user, assistant, tool
    text: str = ""
    calls: list = field(default_factory=list)
    results: list = field(default_factory=list)


@dataclass
class Prompt:
    system: str = ""
    turns: list = field(default_factory=list)
    tools: list = field(default_factory=list)  # names
    is_in_items: bool = False  # calls, and the words beside them, each stand in an item of their own
    starts_with_user: bool = False

    def flat(self):
        """All of it as text, to be measured and compared. Tool schemas are not in it."""
        return "\x00".join([self.system, *(f"{t.role}\x01{t.text}" for t in self.turns)])

    def newest(self):
        """What came after the model's last words."""
        at = max((n for n, t in enumerate(self.turns) if t.role == "assistant"), default=-1)
        return self.turns[at + 1 :]

    def faults(self):
        """What no provider takes: calls and results that are not whole and side by side."""
        waiting, seen = [], set()
        if self.starts_with_user and self.turns and self.turns[0].role != "user":
            yield "the first message is not the user's"
        for n, turn in enumerate(self.turns):
            if not turn.text.strip() and not turn.calls and not turn.results:
                yield f"message {n} ({turn.role}) is empty"
            for result in turn.results:
                if result in waiting:
                    waiting.remove(result)
                else:
                    yield f"message {n} answers the call {result}, which is not open"
            goes_on = self.is_in_items and turn.role == "assistant"
            if waiting and not turn.results and not goes_on:
                yield f"message {n} ({turn.role}) stands before the result of {waiting}"
                waiting = []
            for call in turn.calls:
                if call in seen:
                    yield f"the call {call} stands twice"
                seen.add(call)
                waiting.append(call)
        if waiting:
            yield f"no result for {waiting}"


def text_of(value):
    """The text of content in any protocol's shape."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(text_of, value)))
    if isinstance(value, dict):
        for key in ("text", "content", "output", "parts", "response", "thinking"):
            if key in value:
                return text_of(value[key]) if key != "response" else str(value[key])
        return str(value)
    return str(value)
