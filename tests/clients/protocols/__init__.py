"""The protocols of model providers: reading requests, writing answers."""

from . import anthropic, chat, gemini, responses


def route(path):
    """Who speaks what is asked for at that path, or None."""
    path = path.split("?")[0]
    if path.endswith("/chat/completions"):
        return chat
    if path.endswith("/responses"):
        return responses
    if path.endswith("/messages"):
        return anthropic
    if path.endswith((":generateContent", ":streamGenerateContent")):
        return gemini
    return None


def halves(text):
    """A text in two deltas."""
    return [part for part in (text[: len(text) // 2], text[len(text) // 2 :]) if part]
