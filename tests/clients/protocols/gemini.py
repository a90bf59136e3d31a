"""Gemini's generateContent, whole and as server-sent events."""

import json

from prompt import Prompt, Turn, text_of

NAME = "gemini"


def read(body):
    system = body.get("systemInstruction") or body.get("system_instruction")
    prompt = Prompt(text_of(system))
    prompt.starts_with_user = True
    for tool in body.get("tools") or []:
        prompt.tools += [t["name"] for t in tool.get("functionDeclarations") or []]
    # Calls have no ids here: a call is answered in the next turn, under its name.
    number, open_calls, answered = 0, [], None
    for content in body["contents"]:
        turn = Turn("assistant" if content.get("role") == "model" else "user")
        for part in content["parts"]:
            if call := part.get("functionCall"):
                number += 1
                open_calls.append((call["name"], f"{call['name']}-{number}"))
                turn.calls.append(open_calls[-1][1])
                turn.text += json.dumps(call.get("args"))
            elif result := part.get("functionResponse"):
                turn.text += json.dumps(result.get("response"))
                found = next((c for c in open_calls if c[0] == result["name"]), None)
                if found:
                    open_calls.remove(found)
                    answered = result
                    turn.results.append(found[1])
                elif result != answered:  # Gemini CLI says the last one twice in a session it resumes.
                    turn.results.append(f"{result['name']}-?")
            else:
                turn.text += part.get("text", "")
        prompt.turns.append(turn)
    return prompt


def streams(_body, path):
    return ":streamGenerateContent" in path


def usage(reply):
    return {
        "promptTokenCount": reply.input,
        "cachedContentTokenCount": reply.cached,
        "candidatesTokenCount": reply.output,
        "totalTokenCount": reply.input + reply.output,
    }


def whole(reply, _body, parts=None, end="STOP"):
    if parts is None:
        parts = [{"text": reply.text}] if reply.text else []
        parts += [{"functionCall": {"name": n, "args": a}} for n, a in reply.calls]
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
    if end:
        candidate["finishReason"] = end
    head = {"responseId": f"r{reply.n}", "modelVersion": "fake"}
    return {"candidates": [candidate], "usageMetadata": usage(reply), **head}


def events(reply, body, halves):
    for piece in halves(reply.text):
        yield None, json.dumps(whole(reply, body, [{"text": piece}], None))
    calls = [{"functionCall": {"name": n, "args": a}} for n, a in reply.calls]
    yield None, json.dumps(whole(reply, body, calls or [{"text": ""}]))


def too_long(tokens, limit):
    words = (
        f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({limit})."
    )
    return 400, error(words, "INVALID_ARGUMENT")


def error(words, kind, _code=None):
    return {"error": {"code": 400, "message": words, "status": kind}}
