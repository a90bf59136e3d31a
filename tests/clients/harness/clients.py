"""The clients behind the proxy: requirements, settings, and how to run a turn."""

import json
import sqlite3

from .room import CTX, INSTALLED, MODULES, NODE

PLANTED = "Never push to the branch stable-7."  # a rule of the first turn
AIDER = INSTALLED / "aider/bin/aider"
CLAUDE = MODULES / "@anthropic-ai/claude-code-linux-x64/claude"


class Client:
    """A command line agent that reads a big file in each turn."""

    name = ""
    needs = ()
    tool = ("read", {"path": "big.txt"})
    limit = 62_000  # characters; prompts over it are refused
    window = 16_000  # tokens; what ctx is told
    turns = 8
    fails_alone = True  # without ctx, some turns fail; others compact by themselves
    compacts = False  # it asks its provider for compactions
    is_right = True  # its own prompts are such as a provider takes
    has_responses = True  # its provider has the Responses API
    summary = ""  # what its model answers to its requests for a summary, without the planted rule

    def settings(self, room, base):
        """Writes its configuration, and returns its environment."""
        raise NotImplementedError

    def command(self, turn):
        raise NotImplementedError

    def is_well(self, turn, code, out):
        return code == 0 and "DONE" in out

    def prompt(self, turn):
        plants = (self.compacts or self.summary) and turn == 1
        return f"BIGREAD {turn}. {PLANTED}" if plants else f"BIGREAD {turn}"

    def kept(self, room):
        """Returns the checks of its stored sessions, and whether each passes."""
        return []


class Codex(Client):
    name = "codex"
    needs = ("@openai/codex@0.169.0",)
    tool = ("exec_command", {"cmd": "cat big.txt"})

    def settings(self, room, base):
        common = 'model = "fake-model"\ncheck_for_update_on_startup = false\n'
        analytics = "[analytics]\nenabled = false\n"
        room.write(".codex/config.toml", common + self.provider(base) + analytics)
        return {"FAKE_KEY": "dummy", "OPENAI_API_KEY": "dummy", "CODEX_API_KEY": "dummy"}

    def provider(self, base):
        return f"""model_provider = "fake"
model_context_window = 200000
[model_providers.fake]
name = "fake"
base_url = "{base}/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""

    def command(self, turn):
        resume = ["resume", "--last"] if turn > 1 else []
        command = [MODULES / ".bin/codex", "exec", "--skip-git-repo-check"]
        return [*command, *resume, "--json", self.prompt(turn)]


class CodexCompaction(Codex):
    """Codex as it is with OpenAI: it asks the provider for compactions, which this one cannot make."""

    name = "codex-compaction"
    limit = 0
    window = 200_000
    compacts = True

    def provider(self, base):
        return f"""openai_base_url = "{base}/v1"
model_context_window = 40000
model_auto_compact_token_limit = 16000
"""


class CodexChat(CodexCompaction):
    """The same with a server that has chat completions only."""

    name = "codex-chat"
    has_responses = False


class Gemini(Client):
    name = "gemini"
    needs = ("@google/gemini-cli@0.61.0",)
    tool = ("read_file", {"file_path": "big.txt"})
    limit = 76_000
    window = 24_000
    compression = {}
    is_right = False  # in a session that is resumed it sends each result of a tool twice
    turns = 4

    def settings(self, room, base):
        room.write(
            ".gemini/settings.json",
            {
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "general": {"enableAutoUpdate": False},
                "privacy": {"usageStatisticsEnabled": False},
                **self.compression,
            },
        )
        return {
            "GEMINI_API_KEY": "dummy",
            "GOOGLE_GEMINI_BASE_URL": base,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }

    def command(self, turn):
        resume = ["--resume", "latest"] if turn > 1 else []
        command = [NODE, MODULES / ".bin/gemini", "-m", "gemini-2.5-flash", "--approval-mode", "yolo"]
        return [*command, *resume, "-p", self.prompt(turn)]


class GeminiCompaction(Gemini):
    """Gemini CLI as it compacts by itself, here at 5,000 of a million tokens."""

    name = "gemini-compaction"
    limit = 0
    window = 200_000
    compression = {"model": {"compressionThreshold": 0.005}}
    summary = "<state_snapshot>\n<overall_goal>The user has a big file read.</overall_goal>\n</state_snapshot>"


class Qwen(Client):
    """Its tools alone take 9,700 tokens, and its answer limit exceeds the window."""

    name = "qwen"
    needs = ("@qwen-code/qwen-code@0.24.4",)
    tool = ("read_file", {"file_path": "big.txt"})
    limit = 60_000
    window = 16_000
    compression = {}

    def settings(self, room, base):
        self.tool = ("read_file", {"file_path": str(room.work / "big.txt")})
        room.write(
            ".qwen/settings.json",
            {
                "security": {"auth": {"selectedType": "openai"}},
                "general": {"enableAutoUpdate": False},
                "privacy": {"usageStatisticsEnabled": False},
                **self.compression,
            },
        )
        return {
            "OPENAI_API_KEY": "dummy",
            "OPENAI_BASE_URL": f"{base}/v1",
            "OPENAI_MODEL": "fake-model",
        }

    def command(self, turn):
        go_on = ["--continue"] if turn > 1 else []
        command = [NODE, MODULES / ".bin/qwen", "--approval-mode", "yolo"]
        return [*command, *go_on, "-p", self.prompt(turn)]


class QwenCompaction(Qwen):
    """Qwen Code as it compacts by itself, here at 5 % of the window."""

    name = "qwen-compaction"
    limit = 0
    window = 200_000
    turns = 4
    compression = {"context": {"autoCompactThreshold": 0.05}}
    summary = "<state_snapshot>\n<primary_request>The user has a big file read.</primary_request>\n</state_snapshot>"


class OpenCode(Client):
    name = "opencode"
    needs = ("opencode-ai@1.18.33",)
    tool = ("read", {"filePath": "big.txt"})
    limit = 60_000
    window = 18_000
    turns = 4
    context = 200_000

    def settings(self, room, base):
        model = {"limit": {"context": self.context, "output": 4096}}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{base}/v1", "apiKey": "dummy"},
            "models": {"fake-model": model},
        }
        room.write(
            ".config/opencode/opencode.json",
            {
                "autoupdate": False,
                "model": "fake/fake-model",
                "enabled_providers": ["fake"],
                "permission": {"*": "allow"},
                "provider": {"fake": provider},
            },
        )
        return {"OPENCODE_DISABLE_AUTOUPDATE": 1, "OPENCODE_DISABLE_MODELS_FETCH": 1}

    def command(self, turn):
        go_on = ["--continue"] if turn > 1 else []
        # The file in npm's .bin works only after an install script, which is not run.
        command = [MODULES / "opencode-linux-x64/bin/opencode", "run", "--title", "t", "--format", "json"]
        return [*command, *go_on, self.prompt(turn)]

    def kept(self, room):
        file = room.home / ".local/share/opencode/opencode.db"
        field = "coalesce(json_extract(data, '$.tokens.{}'), 0)".format
        prompt = " + ".join(map(field, ("input", "cache.read", "cache.write")))
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as database:
            (count,) = database.execute("SELECT count(*) FROM session").fetchone()
            (total,) = database.execute(f"SELECT sum({prompt}) FROM message").fetchone()
        environment = room.environment({"CTX_HOME": room.folder / "reader"})
        _, out, _ = room.run([CTX, "sessions", "--agent", "opencode", "--json"], environment, "sessions")
        found = [session["sessionId"] for session in json.loads(out)]
        yield f"ctx finds its session ({found} of {count})", len(found) == count == 1
        _, out, _ = room.run([CTX, "replay", *found, "--json"], environment, "replay")
        recorded = json.loads(out)["totals"]["recordedTokens"]
        yield f"ctx adds up the tokens of its database ({recorded} of {total})", recorded == total


class OpenCodeCompaction(OpenCode):
    """opencode as it compacts by itself, with a model of a small window."""

    name = "opencode-compaction"
    limit = 0
    window = 200_000
    context = 14_000
    turns = 5
    summary = "## Objective\n- The user has a big file read."

    def kept(self, room):
        return []


class Claude(Client):
    """Proprietary: used only if it is installed, never installed by this harness."""

    name = "claude"
    needs = ()
    tool = ("Read", {"file_path": "big.txt"})
    limit = 70_000
    window = 25_000  # 8,000 of them for the answer
    turns = 5
    fails_alone = False

    def settings(self, room, base):
        self.tool = ("Read", {"file_path": str(room.work / "big.txt")})
        return {
            "ANTHROPIC_BASE_URL": base,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": 1,
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": 8_000,
            "DISABLE_AUTOUPDATER": 1,
            "IS_SANDBOX": 1,
        }

    def command(self, turn):
        go_on = ["--continue"] if turn > 1 else []
        command = [CLAUDE, "--model", "fake-model", "--output-format", "json"]
        return [*command, "--allowedTools", "Read", *go_on, "-p", self.prompt(turn)]


class ClaudeCompaction(Claude):
    """Claude Code with its command to compact in the third and the fifth turn."""

    name = "claude-compaction"
    limit = 0
    window = 200_000
    turns = 6
    summary = "<analysis>Hm.</analysis>\n<summary>\n1. Primary Request and Intent: a big file of the workspace is read in each turn.\n</summary>"

    def prompt(self, turn):
        return "/compact" if turn in (3, 5) else super().prompt(turn)

    def is_well(self, turn, code, out):
        return code == 0 and ("DONE" in out or turn in (3, 5))


class AiderCompaction(Client):
    """Aider, whose weak model summarises a long chat history. It has no tools."""

    name = "aider-compaction"
    needs = ("aider-chat@0.86.2",)
    limit = 0
    window = 200_000
    turns = 6
    tool = None
    summary = "I asked you to read a big file of the workspace, and you read it in each turn."

    def settings(self, room, base):
        return {"OPENAI_API_BASE": f"{base}/v1", "OPENAI_API_KEY": "dummy"}

    def command(self, turn):
        quiet = ["--no-check-update", "--analytics-disable", "--no-show-model-warnings", "--yes-always", "--no-git"]
        history = ["--restore-chat-history", "--max-chat-history-tokens", "400"]
        command = [AIDER, "--model", "openai/fake-model", *quiet, *history]
        return [*command, "--message", self.prompt(turn)]
