"""Turns the messages to send into those of a framework with its own types of messages."""

import hashlib


def restored(messages, given, fitted, changed):
    """Returns the framework's messages to send: its own where they are unchanged.

    ``given`` are its messages as ctx got them. ``changed`` makes a message from the one that it replaces,
    or None for a new one, and from its new form.
    """
    made, places, last = [], {}, -1
    for at, message in enumerate(given if fitted.changed else ()):
        for key in _keys(message):
            places.setdefault(key, []).append(at)
    for at, new in fitted.own:
        if at is None:
            known = (place for key in _keys(new) for place in places.get(key, ()))
            at = next((place for place in known if place > last), None)
        last = last if at is None else at
        made.append(messages[at] if new is None else changed(None if at is None else messages[at], new))
    return made


def _keys(message):
    """Returns what a changed message has in common with the one that it replaces."""
    own = [message["id"]] if message.get("id") else []
    ids = [message.get("tool_call_id"), *(call.get("id") for call in message.get("tool_calls") or ())]
    return own + [(message["role"], identifier) for identifier in ids if identifier]


def opening(messages):
    """Returns an id for a conversation that has none: it depends on the first message of the user."""
    first = next((message for message in messages if field(message, "role") == "user"), None)
    return hashlib.sha256(repr(first and field(first, "content")).encode(errors="replace")).hexdigest()[:16]


def field(message, name):
    return message.get(name) if hasattr(message, "get") else getattr(message, name, None)


def extended(messages, text):
    """Returns messages for chat completions with a text at the end of the system prompt."""
    if not text:
        return messages
    first = messages[0] if messages else {}
    if not isinstance(first, dict) or first.get("role") not in ("system", "developer"):
        return [{"role": "system", "content": text}, *messages]
    content = first.get("content") or ""
    both = f"{content}\n\n{text}" if isinstance(content, str) else [*content, {"type": "text", "text": text}]
    return [{**first, "content": both}, *messages[1:]]
