"""Adapters of frameworks: each example runs twelve turns, without ctx and with its adapter."""

import json
import shutil
import subprocess

from .behaviour import check_behaviour
from .clients import Client
from .judge import Run, judge, row
from .room import CTX, INSTALLED, NODE, NODE_NEEDS, ROOT, Room, reading

PYTHON = ROOT / "packages/python"
NODE_PACKAGE = ROOT / "packages/node"

BUILT = ROOT / "target/async-openai"

# The script of its example, and its pip or npm packages.
ALL = {
    "langchain": ("langchain_agent.py", ["langchain==1.5.2", "langchain-openai==1.7.4"]),
    "langgraph": ("langgraph_agent.py", ["langgraph==1.2.24", "langchain-openai==1.7.4"]),
    "llama-index": (
        "llama_index_agent.py",
        ["llama-index-core==0.14.25", "llama-index-llms-openai-like==0.8.1"],
    ),
    "google-adk": ("google_adk_agent.py", ["google-adk==2.13.0"]),
    "hermes": ("hermes_agent.py", ["hermes-agent==0.19.0"]),
    "openai-agents": ("openai_agents.py", ["openai-agents==0.24.0"]),
    "pydantic-ai": ("pydantic_ai_agent.py", ["pydantic-ai-slim[openai]==2.68.0"]),
    "litellm": ("litellm_completion.py", ["litellm==1.110.2"]),
    "mini-swe-agent": ("mini_swe_agent.py", ["mini-swe-agent==2.4.6"]),
    "vercel-ai": ("vercel_ai.mjs", ["ai@7.0.173", "@ai-sdk/openai@4.0.118", "zod@4.6.7"]),
    "langchain-js": ("langchain_agent.mjs", ["langchain@1.5.14", "@langchain/openai@1.6.0", "zod@4.6.7"]),
    "openai-agents-js": ("openai_agents.mjs", ["@openai/agents@0.20.0", "zod@4.6.7"]),
    "mastra": ("mastra_agent.mjs", ["@mastra/core@1.71.0", "@ai-sdk/openai@4.0.118", "zod@4.6.7"]),
    # A program in Rust, without ctxkeep.
    "async-openai": ("async-openai-agent", ["async-openai"]),
}


class Adapter(Client):
    tool = ("read_file", {})
    turns = 12

    def __init__(self, name, packages=None):
        """``packages`` is a folder with a wheel and npm packages, which are tested instead of the sources."""
        self.name = name
        self.script, self.needs = ALL[name]
        self.folder = INSTALLED / "adapters" / name
        self.packages = packages
        self.prefix = self.folder / "packed" if packages else self.folder

    def is_node(self):
        return self.script.endswith(".mjs")

    def is_rust(self):
        return self.name == "async-openai"

    def missing(self):
        """Returns the packages that are not installed as they are named here."""
        if self.is_rust():
            return self.needs  # cargo knows what is to be built again
        mark = self.folder / "installed"
        has_node = NODE.exists() or not self.is_node()
        return [] if has_node and mark.exists() and mark.read_text().split() == self.needs else self.needs

    def install(self):
        """Returns the commands that install it into a folder of its own."""
        if self.is_rust():
            manifest = ROOT / "examples/async-openai/Cargo.toml"
            build = ["cargo", "build", "--quiet", "--locked", "--target-dir", BUILT]
            return [[*build, "--manifest-path", manifest]]
        if self.is_node():
            npm = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
            node = [*npm, "--prefix", INSTALLED, NODE_NEEDS]
            # The example imports the package by its name, as users do.
            package = [*npm, "--prefix", self.folder, "--install-links=false", *self.needs, NODE_PACKAGE]
            return [package] if NODE.exists() else [node, package]
        pip = [self.folder / "bin/pip", "install", "--quiet"]
        return [["python3", "-m", "venv", self.folder], [*pip, *self.needs]]

    def unpack(self):
        """Installs the packages offline into a clean folder, from where the framework is found too."""
        shutil.rmtree(self.prefix, ignore_errors=True)
        if self.is_node():
            npm = ["npm", "install", "--offline", "--no-audit", "--no-fund", "--loglevel=error"]
            # Node also looks for packages in the folders above.
            run([*npm, "--prefix", self.prefix, *self.packages.glob("ctxkeep-*.tgz")])
            return
        # The pip of the framework is found too; one here would bring other releases of what frameworks need.
        run(["python3", "-m", "venv", "--without-pip", self.prefix])
        (framework,) = self.folder.glob("lib/*/site-packages")
        (site,) = self.prefix.glob("lib/*/site-packages")
        (site / "framework.pth").write_text(f"{framework}\n")
        (wheel,) = self.packages.glob("ctxkeep-*.whl")
        pip = [self.prefix / "bin/python", "-m", "pip", "install", "--quiet", "--no-index"]
        run([*pip, f"{wheel}[{self.name}]"])

    def example(self):
        """Returns its example, and the scripts that this imports."""
        package = NODE_PACKAGE if self.is_node() else PYTHON
        return [package / "examples" / self.script, *package.glob("examples/turns.*")]

    def checks(self):
        return [ROOT / "tests/adapters" / ("checks.mjs" if self.is_node() else "checks.py")]

    def command(self, scripts, *arguments):
        if self.is_rust():
            return [BUILT / "debug" / self.script]
        if not self.is_node():
            return [self.prefix / "bin/python", scripts[0], *arguments]
        # A script finds packages beside itself only.
        beside = self.prefix / "examples"
        beside.mkdir(exist_ok=True)
        for script in scripts:
            (beside / script.name).write_bytes(script.read_bytes())
        # The sources are a link there, and find the framework beside the link.
        return [NODE, "--preserve-symlinks", beside / scripts[0].name, *arguments]

    def environment(self, room, base, is_on):
        # Installed packages need neither.
        sources = {} if self.packages else {"CTX_BIN": CTX, "PYTHONPATH": PYTHON}
        return room.environment(
            {
                "OPENAI_BASE_URL": f"{base}/v1",
                "OPENAI_API_BASE": f"{base}/v1",
                "OPENAI_API_KEY": "dummy",
                "GOOGLE_GEMINI_BASE_URL": base,
                "GOOGLE_API_KEY": "dummy",
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # nothing is downloaded
                "CTX": "on" if is_on else "off",
                "CTX_HOME": room.folder / "ctx",
                "PYTHONWARNINGS": "ignore",
                **sources,
            }
        )


def check(adapter):
    """Returns the faults of an adapter, and its row of the table."""
    alone, through = held(adapter, False), held(adapter, True)
    checks = judge(adapter, alone, through)
    faults = [words for words, holds in checks if not holds]
    if faults:
        faults.append(f"see {alone.folder} and {through.folder}")
    # Those of the sources hold for the packages too, and a program of one's own has no framework.
    is_left_out = adapter.packages or adapter.is_rust()
    more, cells = ([], ["-"] * 4) if is_left_out else check_behaviour(adapter)
    return faults + more, [*row(adapter.name, alone, through)[:5], *cells]


def held(adapter, is_on):
    with Room(f"adapter-{adapter.name}-{'on' if is_on else 'off'}") as room:
        run = Run(folder=room.folder)
        base = room.provider(adapter.limit, reading(*adapter.tool))
        environment = adapter.environment(room, base, is_on)
        code, out, err = room.run(adapter.command(adapter.example()), environment, "turns")
        told = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        if len(told) != adapter.turns:
            raise RuntimeError(f"{adapter.script}: code {code}, {len(told)} turns: {err[-900:]}")
        for number, turn in enumerate(told, 1):
            run.turns.append((turn["ok"], f"turn {number}: {turn['said']!r}"))
        run.requests = room.requests()
        left = room.processes_of(room.folder / "ctx")
        run.kept.append((f"no process is left {left}", not left))
        return run


def run(command):
    subprocess.run([str(part) for part in command], check=True)
