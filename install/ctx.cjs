#!/usr/bin/env node
// Runs the binary of this platform, which npm installs as an optional dependency.
"use strict";
const { spawn } = require("node:child_process");

const name = `@ctxkeep/${process.platform}-${process.arch}`;
let binary;
try {
  binary = require.resolve(`${name}/bin/ctx${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`ctx: the package ${name} is not installed
hint: install again without --omit=optional; if there is no such package, build ctx with cargo`);
  process.exit(1);
}

const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
for (const signal of signals) {
  // A terminal sends SIGINT to the binary as well.
  process.on(signal, () => (signal === "SIGINT" && process.stdin.isTTY) || child.kill(signal));
}
child.on("error", (error) => {
  console.error(`ctx: cannot run ${binary}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  signals.forEach((each) => process.removeAllListeners(each));
  process.kill(process.pid, signal);
});
